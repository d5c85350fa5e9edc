"""Fits that are cut off and go on from a file: the model of a fit that was not, for fewer products with the rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fairconstrained import (
    AUCFairClassifier,
    GroupLossClassifier,
    LossParityClassifier,
    NeymanPearsonClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    fairness_path,
)
from fairconstrained.callbacks import StopTraining, TimeLimit, resumable
from fairconstrained.datasets import make_biased_classification
from fairconstrained.tables import Parts, Table

pytestmark = pytest.mark.usefixtures("in_parts")

X, Y, GROUP = make_biased_classification(300, n_features=10, random_state=0)
PARITY = PartialParityClassifier(0.1, constraint="demographic_parity", random_state=0)
LOSSES = LossParityClassifier(kappa=0.02, hidden_layer_sizes=(), solver="augmented_lagrangian", random_state=0)
ESTIMATORS = {
    "cross-fitted": PARITY,
    "augmented Lagrangian": clone(PARITY).set_params(solver="augmented_lagrangian"),
    "span": PartialParityClassifier(0.1, random_state=0),
    "exact thresholds": PartialParityClassifier(0.2, constraint="equalized_odds", objective="zero_one", random_state=0),
    "AUC": AUCFairClassifier(0.05, random_state=0),
    "ball": ParityPairClassifier(1.02, radius=3.0, random_state=0),
}


class CutOff(Exception):
    """A fit that ends in the middle."""


class Counted(Parts):
    """Rows of an array that are asked for so often at most."""

    def __init__(self, most=np.inf):
        self.lengths, self.n_features, self.dtype = (len(X),), X.shape[1], X.dtype
        self.n, self.most = 0, most

    def results(self, function, columns, taken):
        self.n += 1
        if self.n > self.most:
            raise CutOff
        yield function(X if taken[0] is None else X[taken[0]], *columns[0])


def fitted(estimator, most=np.inf):
    """The fitted estimator, and how often the rows were asked for."""
    parts = Counted(most)
    columns = {} if isinstance(estimator, NeymanPearsonClassifier) else {"sensitive_features": GROUP}
    return clone(estimator).fit(Table(parts), Y, **columns), parts.n


@pytest.mark.parametrize("name", [pytest.param(k, marks=pytest.mark.slow if k == "span" else ()) for k in ESTIMATORS])
def test_a_fit_that_was_cut_off_ends_with_the_same_model(name, tmp_path):
    estimator, path = ESTIMATORS[name], tmp_path / "fit"
    whole, n = fitted(estimator)
    for share in (0.5, 0.4):  # the second time it is cut off further on
        with pytest.raises(CutOff), resumable(path, every=1000):
            fitted(estimator, int(share * n))
    with resumable(path):
        model, n_resumed = fitted(estimator)
    np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))
    assert model.constraint_values_ == whole.constraint_values_
    assert n_resumed < 0.95 * n  # what comes before and after the iterations is done again
    assert not path.exists()


def stop(record):
    """End in the middle."""
    if record["n_iter"] == 2:
        raise StopTraining


def choose(record):
    """End with the model of a record."""
    if record["n_iter"] == 2:
        raise StopTraining(record["params"])


@pytest.mark.filterwarnings("ignore:solver 'augmented_lagrangian'")  # which says what came of the limit
@pytest.mark.parametrize(
    ("limit", "is_kept"),
    [
        ({"max_time": 1e-9}, True),
        ({"callbacks": [stop]}, True),
        ({"callbacks": [choose]}, False),
        ({"max_time": 1e9}, False),
    ],
    ids=["time", "callback", "choice", "in time"],
)
def test_the_file_of_a_fit_that_was_stopped_by_a_limit_is_kept(limit, is_kept, tmp_path):
    path = tmp_path / "fit"
    with resumable(path):
        fitted(clone(LOSSES).set_params(**limit))
    assert path.exists() is is_kept
    whole, n = fitted(LOSSES)
    with resumable(path):
        model, n_resumed = fitted(LOSSES)
    assert (n_resumed < n) is is_kept
    assert not path.exists()
    np.testing.assert_array_equal(model.decision_function(X), whole.decision_function(X))


def test_a_stop_before_all_that_is_known_loses_nothing(tmp_path):
    path = tmp_path / "fit"
    with pytest.raises(CutOff), resumable(path):
        fitted(LOSSES, 100)
    known = path.read_bytes()
    with pytest.warns(ConvergenceWarning, match="no iterate kept the bound"), resumable(path):
        fitted(clone(LOSSES).set_params(callbacks=[TimeLimit(0.0)]))
    assert path.read_bytes() == known


def test_a_file_is_written_while_a_minimum_is_sought(tmp_path, monkeypatch):
    path, known = tmp_path / "fit", []
    monkeypatch.setattr(
        "fairconstrained.solvers.resuming.write_pickle", lambda _, value: known.append(pickle.dumps(value))
    )
    with resumable(path, every=0):
        whole, n = fitted(PARITY)
    path.write_bytes(known[len(known) // 2])  # the last one of a process that was killed
    with resumable(path):
        model, n_resumed = fitted(PARITY)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert n_resumed < 0.9 * n


@pytest.mark.slow
def test_the_fits_of_a_path_go_on(tmp_path):
    options = {"sensitive_features": GROUP, "kappas": [0.3, 0.2, 0.1]}
    whole, path = Counted(), tmp_path / "path"
    expected = fairness_path(PARITY, Table(whole), Y, **options)
    with pytest.raises(CutOff), resumable(path):
        fairness_path(PARITY, Table(Counted(int(0.8 * whole.n))), Y, **options)
    resumed = Counted()
    with resumable(path):
        found = fairness_path(PARITY, Table(resumed), Y, **options)
    assert found.table["objective"].tolist() == expected.table["objective"].tolist()
    assert resumed.n < 0.8 * whole.n


def test_the_file_of_another_fit_is_refused_and_kept(tmp_path):
    path = tmp_path / "fit"
    with pytest.raises(CutOff), resumable(path):
        fitted(PARITY, 20)
    kept = path.read_bytes()
    with pytest.raises(ValueError, match="is that of another fit, with other rows or parameters"), resumable(path):
        clone(PARITY).fit(X, 1 - Y, sensitive_features=GROUP)
    assert path.read_bytes() == kept
    with resumable(path):
        pass  # nothing to minimise
    assert path.exists()


@pytest.mark.parametrize("other", [{"tol": 1e-2}, {"alpha": 0.1}])
def test_the_file_of_other_parameters_is_refused(tmp_path, other):
    """At zero scores neither value nor slope tells how much a penalty weighs, and no point tells a tolerance."""
    with pytest.raises(CutOff), resumable(tmp_path / "fit"):
        fitted(PARITY, 20)
    with pytest.raises(ValueError, match="is that of another fit, with other rows or parameters"):  # noqa: SIM117
        with resumable(tmp_path / "fit"):
            fitted(clone(PARITY).set_params(**other))
    with resumable(tmp_path / "fit"):
        model, _ = fitted(clone(PARITY).set_params(verbose=0))
    np.testing.assert_array_equal(model.coef_, fitted(PARITY)[0].coef_)


def test_rows_that_differ_by_rounding_are_those_of_the_file(tmp_path):
    """Sums of other processes differ by as much; rows that differ by more are others."""
    noise = np.random.default_rng(0).normal(size=X.shape)
    near, far = X + 1e-8 * noise, X + 1e-3 * noise
    with pytest.raises(CutOff), resumable(tmp_path / "fit"):
        fitted(PARITY, 20)
    with pytest.raises(ValueError, match="is that of another fit"), resumable(tmp_path / "fit"):
        clone(PARITY).fit(far, Y, sensitive_features=GROUP)
    with resumable(tmp_path / "fit"):
        model = clone(PARITY).fit(near, Y, sensitive_features=GROUP)
    whole = clone(PARITY).fit(near, Y, sensitive_features=GROUP)
    assert model.objective_ == pytest.approx(whole.objective_, rel=whole.tol)
    assert model.constraint_values_ == model.constraint_values(near, Y, sensitive_features=GROUP)


def test_a_folder_that_does_not_exist_is_told_before_the_fit(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"), resumable(tmp_path / "none" / "fit"):
        pass


def test_a_path_that_cannot_be_written_is_told_before_the_fit(tmp_path):
    with pytest.raises(ValueError, match="is a folder; pass the path of a file in it"), resumable(tmp_path):
        pass
    (tmp_path / "fit.tmp").mkdir()  # stands for a folder that is read-only, which is none to an administrator
    with pytest.raises(ValueError, match="cannot be written"), resumable(tmp_path / "fit"):
        fitted(PARITY)


def test_another_bound_takes_over_what_does_not_depend_on_it(tmp_path):
    path, other = tmp_path / "fit", clone(PARITY).set_params(kappa=0.3)
    with pytest.raises(CutOff), resumable(path):
        fitted(PARITY, 20)
    with resumable(path):
        model, _ = fitted(other)
    np.testing.assert_array_equal(model.coef_, fitted(other)[0].coef_)


@pytest.mark.parametrize("content", [b"no pickle", pickle.dumps({"a": 1}), pickle.dumps([1, 2])])
def test_a_file_of_something_else_is_refused(tmp_path, content):
    path = tmp_path / "fit"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not a checkpoint"), resumable(path):
        pass


def test_solvers_that_save_nothing_say_so(tmp_path):
    with pytest.raises(ValueError, match="'interior_point' does not save how far it has come"):  # noqa: SIM117
        with resumable(tmp_path / "fit"):
            GroupLossClassifier("minimax").fit(X, Y, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="every must be a number of seconds"), resumable(tmp_path / "fit", every=-1):
        pass
