"""Units of the features: without a penalty they do not matter, and never to whether the bound is kept."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    AUCFairClassifier,
    CorrelationPenaltyClassifier,
    FairRanker,
    GroupLossClassifier,
    GroupLossRegressor,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
)
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning

#: Powers of two, with which every rounding error is the same in other units; near to 1e-8, 1e8 and 1e6.
UNITS = {"small": 2.0**-27, "large": 2.0**27, "mixed": 2.0 ** np.array([-20, 0, 20])}
FREE = {"alpha": 0.0}
#: The warning for features of tiny units.
TINY = "of X are so small"
MODELS = {
    "statistical_parity": (PartialParityClassifier, {"kappa": 0.1}),
    "demographic_parity": (PartialParityClassifier, {"kappa": 0.1, "constraint": "demographic_parity"}),
    "equal_opportunity": (PartialParityClassifier, {"kappa": 0.15, "constraint": "equal_opportunity"}),
    "group_auc": (PartialParityClassifier, {"kappa": 0.1, "constraint": "group_auc"}),
    "zero_one": (PartialParityClassifier, {"kappa": 0.1, "constraint": "demographic_parity", "objective": "zero_one"}),
    "interactions": (PartialParityClassifier, {"kappa": 0.1, "group_interactions": True}),
    "regressor": (PartialParityRegressor, {"kappa": 0.1}),
    "auc": (AUCFairClassifier, {"kappa": 0.1}),
    "auc of moments": (AUCFairClassifier, {"kappa": 0.1, "surrogate": "quadratic"}),
    "rate": (RateParityClassifier, {"kappa": 0.1}),
    "group loss": (GroupLossClassifier, {"kappa": "minimax"}),
    "group loss of numbers": (GroupLossRegressor, {"kappa": "minimax"}),
    "error": (NeymanPearsonClassifier, {"bounds": {0: 0.3}}),
    "ranker": (FairRanker, {"kappa": 0.1}),
    "minority": (MinorityRateClassifier, {"min_share": 0.6, "minority": 1, "l1_radius": None}),
    "pairwise": (PairwiseParityClassifier, {"kappa": 0.5}),
    "correlation": (CorrelationPenaltyClassifier, {}),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    groups = np.arange(300) % 2
    X = rng.normal(size=(300, 3)) + 0.5 * groups[:, None]
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int), groups


def fit(name, X, rows, **options):
    model, own = MODELS[name]
    _, y, groups = rows
    extra = {} if name == "error" else {"sensitive_features": groups}
    if name == "ranker":
        extra["qid"] = np.arange(y.size) // 10
    return model(**{**own, **options}).fit(X, y, **extra)


@pytest.fixture(scope="module")
def reference(rows):
    known = {}

    def fitted(name):
        if name not in known:
            known[name] = fit(name, rows[0], rows, **FREE)
        return known[name]

    return fitted


# some bound probabilities, and are warned of the decisions
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("name", MODELS)
def test_without_a_penalty_units_do_not_matter(name, units, rows, reference):
    one, other = reference(name), fit(name, rows[0] * units, rows, **FREE)
    assert other.status_ == one.status_
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-5)
    assert other.constraint_values_ == pytest.approx(one.constraint_values_, abs=1e-3)
    X, _, groups = rows
    extra = {"sensitive_features": groups} if name == "interactions" else {}
    np.testing.assert_allclose(one.predict(X, **extra), other.predict(X * units, **extra), rtol=0.01, atol=0.01)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.filterwarnings("ignore:The values of the features .* of X are so small")
@pytest.mark.parametrize("units", [1e-8, 1e-12, 1e8])
@pytest.mark.parametrize(
    "name", ["statistical_parity", "demographic_parity", "group_auc", "regressor", "rate", "ranker", "error"]
)
def test_with_a_penalty_the_bound_is_kept_in_any_unit(name, units, rows):
    """And the result is the optimum of the problem as it is stated: all but constant for tiny features."""
    model = fit(name, rows[0] * units, rows, alpha=1e-4)
    assert model.status_ == "optimal"
    assert model.violation_ <= max(model.granularity_.values())
    if units < 1 and name != "error":
        free = fit(name, rows[0] * units, rows, alpha=1e-4, kappa=None)
        assert model.objective_ == pytest.approx(free.objective_, rel=1e-6)


@pytest.mark.slow
def test_a_ball_of_coefficients_of_different_units(rows):
    """The optimum in the ball has the largest feature alone; the others could only change its last digits."""
    X, y, _ = rows
    options = {"bounds": {0: 0.5}, "radius": 0.3, "alpha": 0.0}
    alone = NeymanPearsonClassifier(**options).fit(X[:, :1] * 1e6, y)
    model = NeymanPearsonClassifier(**options).fit(X * np.array([1e6, 1e-6, 1e-6]), y)
    assert model.status_ == alone.status_ == "optimal"
    assert model.objective_ == pytest.approx(alone.objective_, rel=1e-4)
    tight = NeymanPearsonClassifier({0: 0.3}, radius=2.0, alpha=0.0).fit(X * np.array([1e-6, 1.0, 1e6]), y)
    assert tight.status_ == "optimal"
    assert (np.linalg.norm(tight.coef_, axis=1) <= 2.0 + 1e-9).all()


def test_a_ball_of_standardised_features_has_no_units(rows):
    X, y, _ = rows
    y = (X[:, 0] > 0.2).astype(int)  # the ball alone keeps coefficients from becoming infinite
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = NeymanPearsonClassifier({0: 0.5}, loss="logistic", alpha=0.0, tol=1e-6)
    units = np.array([100.0, 1.0, 0.01])
    expected = clone(model).set_params(radius=10.0).fit(X, y)
    found = clone(model).set_params(radius="auto").fit(X * units + 3.0, y)
    for coefficients in (expected.coef_, found.coef_ * units):
        assert np.linalg.norm(coefficients, axis=1).max() == pytest.approx(10.0, rel=1e-3)
    assert found.objective_ == pytest.approx(expected.objective_, rel=0.01)
    assert found.status_ == expected.status_ == "optimal"


@pytest.mark.parametrize("kappa", [None, 0.3])
def test_an_outlying_row_costs_no_more_than_with_standardised_features(rows, kappa):
    X, y, groups = rows
    X = X.copy()
    X[7, 2] = 1e6
    other = make_pipeline(StandardScaler(), LogisticRegression(C=1e10)).fit(X, y)
    least = log_loss(y, other.predict_proba(X))
    assert least < log_loss(y, np.full(y.size, y.mean())) - 0.01
    model = RateParityClassifier(kappa, alpha=0.0, new_row_folds=None).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert log_loss(y, model.predict_proba(X)) <= least + 1e-5


def test_a_ball_that_leaves_tiny_features_nothing_to_do(rows):
    X, y, _ = rows
    with pytest.warns(ConvergenceWarning, match=TINY):
        model = NeymanPearsonClassifier({0: 0.3}, radius=2.0).fit(1e-200 * X, y)
    assert model.status_ == "optimal"


def test_a_feature_that_is_tiny_beside_the_penalty_is_named(rows):
    X, y, groups = rows
    units = np.array([1.0, 1e-9, 1.0])
    with pytest.warns(ConvergenceWarning, match=rf"features \[1\] {TINY}.*StandardScaler"):
        GroupLossClassifier(1.0, new_row_folds=None).fit(X * units, y, sensitive_features=groups)
    GroupLossClassifier(1.0, alpha=0.0, new_row_folds=None).fit(X * units, y, sensitive_features=groups)
    # a feature of zeros, one with few values that are none, and a constant are no matter of units
    rare = np.column_stack([X[:, 0], np.zeros(len(y)), np.arange(len(y)) == 0, np.full(len(y), 1e-15)])
    GroupLossClassifier(1.0, alpha=0.1, new_row_folds=None).fit(rare, y, sensitive_features=groups)


def test_a_ranker_warns_of_tiny_features(rows):
    with pytest.warns(ConvergenceWarning, match=rf"features \[0, 1, 2\] {TINY}"):
        fit("ranker", rows[0] * 1e-9, rows, alpha=1e-4, new_row_folds=None)


def test_a_network_warns_of_tiny_features(rows):
    X, y, groups = rows
    model = LossParityClassifier(0.5, hidden_layer_sizes=(4,), max_epochs=3, random_state=0, new_row_folds=None)
    with pytest.warns(ConvergenceWarning, match=rf"features \[1\] {TINY}"):
        model.fit(X * [1.0, 1e-6, 1.0], y, sensitive_features=groups)
    with pytest.warns(ConvergenceWarning, match=TINY):  # it takes the features as they are
        model.set_params(solver="ssl_alm").fit(X * 1e-6, y, sensitive_features=groups)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_networks_of_small_features_are_those_of_large_ones(rows, kind):
    """With the penalty of the default, features of a tenth of the size gave the same score to all rows."""
    X, y, groups = rows
    X = np.column_stack([(X - X.mean(axis=0)) / X.std(axis=0), np.full(len(X), 5.0)])  # a constant has no size
    options = {"hidden_layer_sizes": (4,), "max_epochs": 20, "random_state": 0, "new_row_folds": None}
    one, other = (
        LossParityClassifier(0.1, **options).fit(kind(X * unit), y, sensitive_features=groups) for unit in (1, 2.0**-7)
    )
    scores = other.decision_function(X * 2.0**-7)
    assert one.score(X, y) > 0.6
    np.testing.assert_allclose(scores, one.decision_function(X), rtol=1e-4, atol=1e-6)
    with torch.no_grad():
        np.testing.assert_allclose(other.module_(torch.from_numpy(X * 2.0**-7)).ravel(), scores, rtol=1e-9)


@pytest.mark.parametrize("name", ["fit", "partial_fit"])
def test_a_network_that_goes_on_keeps_its_units(rows, name):
    """In other units, the same parameters would be another network."""
    X, y, groups = rows
    own = {"hidden_layer_sizes": (4,), "solver": "sgd", "learning_rate": 0.1, "max_epochs": 1, "random_state": 0}
    model = LossParityClassifier(None, **own, warm_start=True, new_row_folds=None)
    extra = {"classes": [0, 1], "groups": [0, 1]} if name == "partial_fit" else {}
    getattr(model, name)(0.1 * X, y, sensitive_features=groups, **extra)
    before = model.decision_function(X)
    assert np.ptp(before) > 0.01
    model.set_params(learning_rate=1e-12, max_epochs=2)
    getattr(model, name)(0.01 * X, y, sensitive_features=groups, **extra)
    np.testing.assert_allclose(model.decision_function(X), before, rtol=1e-6)


def test_units_are_those_of_the_parameters_that_a_fit_goes_on_from(rows):
    X, y, groups = rows
    own = {"hidden_layer_sizes": (4,), "warm_start": True, "new_row_folds": None, "random_state": 0}
    model = LossParityClassifier(0.5, **own, solver="ssl_alm", max_epochs=1)
    model.fit(0.05 * X, y, sensitive_features=groups)
    before = model.decision_function(0.05 * X)
    model.set_params(solver="sgd", kappa=None, solver_options=None, learning_rate=1e-12, max_epochs=2)
    model.fit(0.05 * X, y, sensitive_features=groups)
    np.testing.assert_allclose(model.decision_function(0.05 * X), before, atol=1e-9)
    # another network begins anew, and so do its units
    model.fit(0.001 * X[:, :2], y, sensitive_features=groups)
    started = clone(model).fit(X, y, sensitive_features=groups)
    model.fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(model.decision_function(X), started.decision_function(X), rtol=1e-6)


@pytest.mark.parametrize(("kind", "radius"), [(MinorityRateClassifier, "l1_radius"), (ParityPairClassifier, "radius")])
@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.FairnessWarning")  # probabilities are bounded
def test_a_default_ball_is_that_of_standardised_features(rows, kind, radius):
    X, _, groups = rows
    y = (X[:, 0] > 0.2).astype(int)  # the ball alone keeps coefficients from becoming infinite
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    bound = {"min_share": 0.2, "minority": 1} if kind is MinorityRateClassifier else {"kappa": 3.0}
    number = 20.0 if radius == "l1_radius" else 10.0
    own = {**bound, "alpha": 0.0, "new_row_folds": None}
    expected = kind(**own, **{radius: number}).fit(X, y, sensitive_features=groups)
    order = 1 if radius == "l1_radius" else 2
    assert np.linalg.norm(expected.coef_.ravel(), order) == pytest.approx(number, rel=1e-3)
    found = kind(**own).fit(0.01 * X, y, sensitive_features=groups)
    np.testing.assert_allclose(0.01 * found.coef_, expected.coef_, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("kind", [MinorityRateClassifier, ParityPairClassifier])
@pytest.mark.parametrize("intercept", [True, False])
def test_default_balls_do_not_depend_on_units(rows, kind, intercept):
    X, y, groups = rows
    bound = {"min_share": 0.45, "minority": 1} if kind is MinorityRateClassifier else {"kappa": 1.05}
    model = kind(**bound, fit_intercept=intercept, new_row_folds=None)
    units = np.array([2.0**-9, 1.0, 2.0**9])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # probabilities are bounded, not decisions
        one, other = (clone(model).fit(X * unit, y, sensitive_features=groups) for unit in (1.0, units))
    assert one.status_ == other.status_ == "optimal"
    np.testing.assert_allclose(other.coef_ * units, one.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("unit", [2.0**-13, 2.0**17])
@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize(("constraint", "kappa"), [("loss_parity", 0.05), ("bounded_group_loss", 1.8)])
def test_units_of_the_target_change_little(constraint, kappa, loss, unit):
    rng = np.random.default_rng(0)
    groups = np.arange(900) % 3
    X = rng.normal(size=(900, 3)) + 0.3 * groups[:, None]
    y = X.sum(axis=1) + rng.normal(size=900) * (1 + 0.4 * groups)
    of_loss = unit ** (2 if loss == "squared" else 1)

    def fitted(unit, of_loss):
        options = {"constraint": constraint, "loss": loss, "new_row_folds": None}
        return GroupLossRegressor(kappa * of_loss, **options).fit(X, unit * y, sensitive_features=groups)

    plain, other = fitted(1.0, 1.0), fitted(unit, of_loss)
    assert plain.status_ == other.status_ == "optimal"
    assert plain.constraint_values_[constraint] <= kappa * (1 + 1e-6)
    assert other.constraint_values_[constraint] <= kappa * of_loss * (1 + 1e-6)
    assert other.objective_ / of_loss == pytest.approx(plain.objective_, rel=0.005)
