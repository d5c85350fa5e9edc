"""Results that the fits of a path share."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone

from fairconstrained import PartialParityClassifier, RateParityClassifier, fairness_path
from fairconstrained.data import FairData
from fairconstrained.estimators.shared_rows import SharedRows
from fairconstrained.solvers import _unconstrained, span
from fairconstrained.solvers._last_of_data import LastOfData


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


@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_unconstrained_models_and_curvatures_of_folds_serve_all_bounds_of_a_path(
    classes, monkeypatch, new_row_estimates
):
    """All rows and two folds have one each, and the fits are those that would find their own."""
    fits, curvatures = [], []

    def path():
        fits.clear()
        curvatures.clear()
        model = RateParityClassifier(rate="sigmoid", solver="span", random_state=0)
        options = {"sensitive_features": classes.groups, "kappas": [0.1, 0.06, 0.03]}
        table = fairness_path(model, classes.X, classes.y, **options).table
        return table.drop(columns="seconds"), len(fits), len(curvatures)

    def counted(calls, function):
        return lambda *args: calls.append(1) or function(*args)

    monkeypatch.setattr(_unconstrained, "unconstrained_of_parts", counted(fits, _unconstrained.unconstrained_of_parts))
    monkeypatch.setattr(span, "curvature_table", counted(curvatures, span.curvature_table))
    shared, *n_shared = path()
    monkeypatch.setattr(LastOfData, "get", lambda self, data, needs, compute: compute())
    alone, *n_alone = path()
    assert (n_shared, n_alone) == ([3, 3], [7, 9])
    assert shared.equals(alone)


@pytest.mark.filterwarnings("ignore")  # other tests are about the warnings
@pytest.mark.parametrize("small_groups", ["merge", "ignore"])
def test_where_groups_are_small_for_some_bounds_only_no_fit_takes_the_folds_of_another(small_groups, new_row_estimates):
    rng = np.random.default_rng(0)
    groups = np.repeat(["c", "d", "a", "b"], [500, 340, 40, 20])  # small ones come first in the order of the data
    X = rng.normal(size=(900, 4)) + 0.8 * (groups == "c")[:, None]
    y = (X[:, 0] + rng.normal(size=900) > 0.3).astype(int)
    model = PartialParityClassifier(constraint="demographic_parity", small_groups=small_groups, random_state=0)
    path = fairness_path(model, X, y, sensitive_features=groups, kappas=[0.1, 0.03], warm_start=False)
    for kappa, of_path in zip(path.kappas, path.models, strict=True):
        alone = clone(model).set_params(kappa=kappa).fit(X, y, sensitive_features=groups)
        assert of_path.new_row_gaps_ == alone.new_row_gaps_
