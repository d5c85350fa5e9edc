"""Results that the fits of a path share."""

import pickle

from fairconstrained import RateParityClassifier, fairness_path
from fairconstrained.data import FairData
from fairconstrained.estimators.shared_rows import SharedRows


def test_a_result_is_computed_once_where_it_is_kept():
    found, shared = [], SharedRows()
    for _ in range(2):
        assert shared.once("a", lambda: found.append(1) or 5) == 5
        assert list(shared.each("b", lambda: iter([1, 2]))) == [1, 2]
    assert len(found) == 1


def test_a_single_fit_keeps_nothing():
    found, shared = [], SharedRows(keeps=False)
    for _ in range(2):
        assert shared.once("a", lambda: found.append(1) or 5) == 5
        assert iter(parts := shared.each("b", lambda: iter([1, 2]))) is parts  # one after the other
    assert len(found) == 2


def test_rows_are_not_sent_to_other_processes():
    shared = SharedRows()
    shared.once("a", lambda: 1)
    assert pickle.loads(pickle.dumps(shared)).once("a", lambda: 2) == 2


def test_a_path_orders_its_rows_once_with_the_same_models(classes, monkeypatch, new_row_estimates):
    made, from_arrays = [], FairData.from_arrays

    def counted(*args, **options):
        made.append(1)
        return from_arrays(*args, **options)

    monkeypatch.setattr(FairData, "from_arrays", counted)

    def path():
        made.clear()
        options = {"sensitive_features": classes.groups, "kappas": [0.1, 0.06]}
        return fairness_path(RateParityClassifier(), classes.X, classes.y, **options), len(made)

    shared, n_shared = path()
    monkeypatch.setattr(SharedRows, "once", lambda self, key, compute: compute())
    alone, n_alone = path()
    assert (n_shared, n_alone) == (1, 2)
    assert shared.table.drop(columns="seconds").equals(alone.table.drop(columns="seconds"))
    assert "_shared" not in vars(shared.models[0])
