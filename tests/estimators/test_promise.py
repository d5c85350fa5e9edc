"""The promise: the metric that the user measures on the training data is within kappa, up to one row."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from fairconstrained import PartialParityClassifier, PartialParityRegressor
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import granularity, partial_demographic_parity_gap, partial_statistical_parity_gap

GAPS = {"statistical_parity": partial_statistical_parity_gap, "demographic_parity": partial_demographic_parity_gap}
INTERVAL = (0.0, 0.5)
each_parity = pytest.mark.parametrize("parity", sorted(GAPS))


def measured_gap(model, scores, groups, **extra):
    return GAPS[model.constraint](
        None, scores, sensitive_features=groups, interval=model.interval, normalize=model.normalize, **extra
    )


def check_promise(model, free, X, groups, scores_of, **extra):
    """``model`` keeps its kappa, which ``free``, the same without a constraint, does not."""
    gap = measured_gap(model, scores_of(model, X, groups), groups, **extra)
    one_row = granularity(groups, interval=model.interval, normalize=model.normalize)
    assert gap <= model.kappa + one_row + 1e-9
    assert model.status_ in ("optimal", "max_iter")
    assert list(model.constraint_values_.values()) == [pytest.approx(gap, abs=1e-9)]
    assert model.violation_ == pytest.approx(max(gap - model.kappa, 0), abs=1e-9)
    assert measured_gap(free, scores_of(free, X, groups), groups, **extra) > model.kappa + one_row
    assert free.constraint_values_.keys() == model.constraint_values_.keys()


def decision(model, X, groups):
    return model.decision_function(X, sensitive_features=groups)


def prediction(model, X, groups):
    return model.predict(X, sensitive_features=groups)


#: A quarter of all combinations of objective, parity, form and model, such that any two of the four choices meet.
CLASSIFIERS = [
    (objective, parity, (i // 2 + j) % 2 == 0, (i + j) % 2 == 0)
    for i, objective in enumerate(["logistic", "truncated_logistic", "hinge", "squared", "zero_one"])
    for j, parity in enumerate(sorted(GAPS))
]
#: Half of all combinations of parity, form and model, such that any two of the three choices meet.
REGRESSORS = [
    (parity, normalize, j == normalize) for j, parity in enumerate(sorted(GAPS)) for normalize in (True, False)
]


@pytest.mark.slow
@pytest.mark.parametrize(("objective", "parity", "normalize", "group_interactions"), CLASSIFIERS)
def test_classifier(classes, objective, parity, normalize, group_interactions):
    X, y, groups = classes
    model = PartialParityClassifier(
        0.1,
        interval=INTERVAL,
        objective=objective,
        constraint=parity,
        normalize=normalize,
        group_interactions=group_interactions,
    )
    free = PartialParityClassifier(**{**model.get_params(), "kappa": None})
    model.fit(X, y, sensitive_features=groups)
    free.fit(X, y, sensitive_features=groups)
    check_promise(model, free, X, groups, decision)
    # and it is better than a constant, which is fair too
    assert model.score(X, y, sensitive_features=groups) > max(y.mean(), 1 - y.mean()) + 0.05


@pytest.mark.slow
@pytest.mark.parametrize(("parity", "normalize", "group_interactions"), REGRESSORS)
def test_regressor(numbers, parity, normalize, group_interactions):
    X, y, groups = numbers
    threshold = float(np.quantile(y, 0.6))
    model = PartialParityRegressor(
        0.1,
        interval=INTERVAL,
        constraint=parity,
        normalize=normalize,
        threshold=threshold,
        group_interactions=group_interactions,
    )
    free = PartialParityRegressor(**{**model.get_params(), "kappa": None})
    model.fit(X, y, sensitive_features=groups)
    free.fit(X, y, sensitive_features=groups)
    extra = {"threshold": threshold} if parity == "demographic_parity" else {}
    check_promise(model, free, X, groups, prediction, **extra)
    assert model.score(X, y, sensitive_features=groups) > 0.2


@pytest.mark.slow
@each_parity
def test_four_groups(parity):
    X, y, groups = make_biased_classification(
        1200,
        4,
        group_proportions=(0.3, 0.3, 0.2, 0.2),
        positive_rates=(0.6, 0.3, 0.5, 0.4),
        group_shift=(0.0, -0.3, 0.2, 0.0),
        random_state=1,
    )
    model = PartialParityClassifier(0.15, constraint=parity).fit(X, y, sensitive_features=groups)
    free = PartialParityClassifier(None, constraint=parity).fit(X, y, sensitive_features=groups)
    check_promise(model, free, X, groups, decision)
    assert list(model.groups_) == [0, 1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parity", "group_interactions"), [("demographic_parity", False), ("statistical_parity", True)]
)
def test_two_sensitive_columns(parity, group_interactions):
    X, y, groups = make_biased_classification(
        1200, 4, group_proportions=(0.3, 0.3, 0.4), positive_rates=(0.65, 0.35, 0.5), random_state=2
    )
    # three of the four combinations are observed
    table = pd.DataFrame({"sex": np.array(["f", "m", "m"])[groups], "old": np.array([True, True, False])[groups]})
    options = {"constraint": parity, "group_interactions": group_interactions}
    model = PartialParityClassifier(0.15, **options).fit(X, y, sensitive_features=table)
    free = PartialParityClassifier(None, **options).fit(X, y, sensitive_features=table)
    check_promise(model, free, X, table, decision)
    assert list(model.groups_) == [("f", True), ("m", False), ("m", True)]


@each_parity
def test_weighted_rows(classes, parity):
    X, y, groups = classes
    weights = np.random.default_rng(0).uniform(0.3, 2.0, y.size)
    model = PartialParityClassifier(0.1, constraint=parity)
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    gap = measured_gap(model, model.decision_function(X), groups, sample_weight=weights)
    assert gap <= 0.1 + granularity(groups, sample_weight=weights) + 1e-9
    assert model.constraint_values_[parity] == pytest.approx(gap)
    assert measured_gap(model, model.decision_function(X), groups) != pytest.approx(gap)


@pytest.mark.slow
@each_parity
def test_a_threshold_of_the_classifier(classes, parity):
    X, y, groups = classes
    model = PartialParityClassifier(0.1, constraint=parity, threshold=0.8).fit(X, y, sensitive_features=groups)
    extra = {"threshold": 0.8} if parity == "demographic_parity" else {}
    gap = measured_gap(model, model.decision_function(X), groups, **extra)
    assert gap <= 0.1 + granularity(groups) + 1e-9
    np.testing.assert_array_equal(model.predict(X), (model.decision_function(X) > 0.8).astype(int))


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["logistic", "ramp", "smoothstep"])
def test_every_surrogate(classes, surrogate):
    X, y, groups = classes
    model = PartialParityClassifier(0.1, surrogate=surrogate).fit(X, y, sensitive_features=groups)
    assert measured_gap(model, model.decision_function(X), groups) <= 0.1 + granularity(groups) + 1e-9


@pytest.mark.slow
def test_a_smaller_kappa_costs_more(classes):
    X, y, groups = classes
    objectives = [
        PartialParityClassifier(kappa).fit(X, y, sensitive_features=groups).objective_ for kappa in (0.08, 0.2, None)
    ]
    assert objectives[0] > objectives[1] > objectives[2]


# --- without a constraint


@pytest.mark.parametrize("objective", ["logistic", "truncated_logistic", "hinge", "squared", "zero_one"])
@each_parity
def test_kappa_one_is_kappa_none(classes, objective, parity):
    X, y, groups = classes
    one, none = (
        PartialParityClassifier(kappa, objective=objective, constraint=parity).fit(X, y, sensitive_features=groups)
        for kappa in (1.0, None)
    )
    np.testing.assert_array_equal(one.coef_, none.coef_)
    np.testing.assert_array_equal(one.intercept_, none.intercept_)
    assert one.status_ == none.status_ == "optimal"
    assert one.violation_ == none.violation_ == 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_unconstrained_classifier_is_logistic_regression(classes, weighted, fit_intercept):
    X, y, groups = classes
    weights = np.random.default_rng(0).uniform(0.3, 2.0, y.size) if weighted else np.ones(y.size)
    model = PartialParityClassifier(None, alpha=0.01, fit_intercept=fit_intercept)
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    reference = LogisticRegression(C=1 / (0.01 * weights.sum()), fit_intercept=fit_intercept, tol=1e-8, max_iter=1000)
    reference.fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-4)
    np.testing.assert_allclose(model.predict_proba(X), reference.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_unconstrained_regressor_is_ridge(numbers, weighted, fit_intercept):
    X, y, groups = numbers
    weights = np.random.default_rng(0).uniform(0.3, 2.0, y.size) if weighted else np.ones(y.size)
    model = PartialParityRegressor(None, alpha=0.01, fit_intercept=fit_intercept)
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    reference = Ridge(0.01 * weights.sum(), fit_intercept=fit_intercept).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(model.coef_, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, atol=1e-5)


def test_unconstrained_interactions_are_one_model_per_group(numbers):
    X, y, groups = numbers
    model = PartialParityRegressor(None, alpha=0.0, group_interactions=True).fit(X, y, sensitive_features=groups)
    for group in (0, 1):
        alone = PartialParityRegressor(None, alpha=0.0).fit(X[groups == group], y[groups == group])
        np.testing.assert_allclose(model.coef_[group], alone.coef_, atol=1e-4)
        np.testing.assert_allclose(model.intercept_[group], alone.intercept_, atol=1e-4)


def test_kappa_none_asks_nothing_of_the_size_of_the_groups(classes):
    """Nothing is compared, so nothing needs to be resolved."""
    X, y, _ = classes
    groups = (np.arange(y.size) < 6).astype(int)
    model = PartialParityClassifier(None, interval=(0.0, 0.1)).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"


# --- zero-one: the search over intercepts is exact


def test_zero_one_is_the_best_pair_of_thresholds(classes):
    """One feature that orders the rows of every group: all classifiers are pairs of thresholds."""
    X, y, groups = classes
    x = X[:, [0]] + X[:, [1]]
    kappa = 0.1
    model = PartialParityClassifier(
        kappa, constraint="demographic_parity", objective="zero_one", group_interactions=True
    )
    model.fit(x, y, sensitive_features=groups)
    assert (model.coef_ > 0).all()  # in both groups a larger x speaks for the positive class
    rates, hits = [], []
    for group in (0, 1):
        own = groups == group
        order = np.argsort(-x[own, 0])
        gained = np.append(0, np.cumsum(2 * y[own][order] - 1))  # correct, compared with all negative
        rates.append(np.arange(own.sum() + 1) / own.sum())
        hits.append(gained + (1 - y[own]).sum())
    allowed = np.abs(rates[0][:, None] - rates[1][None, :]) <= kappa + 1e-12
    best = (hits[0][:, None] + hits[1][None, :])[allowed].max() / y.size
    assert model.score(x, y, sensitive_features=groups) == pytest.approx(best)
    assert model.constraint_values_["demographic_parity"] <= kappa + 1e-12


@pytest.mark.slow
def test_more_levels_do_not_spoil_the_objective():
    """Their components together must not outweigh the objective."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 20)) + (2.0 * groups - 1)[:, None] * np.linspace(0, 1, 20)
    y = X[:, -5:].sum(axis=1) + rng.logistic(size=2000) > 0
    few, many = (
        PartialParityClassifier(0.1, interval=(0.2, 0.4), n_levels=n).fit(X, y, sensitive_features=groups)
        for n in (10, 50)
    )
    assert many.violation_ <= 0.01
    assert many.objective_ <= few.objective_ * 1.02
