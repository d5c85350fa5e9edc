"""Costs, balanced accuracy, F1 and class weights as objectives of the classifiers."""

from itertools import product

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score, roc_auc_score
from sklearn.naive_bayes import GaussianNB

from fairconstrained import (
    CorrelationPenaltyClassifier,
    FairBoostingClassifier,
    FairHeadClassifier,
    PairwiseParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
    RegularizedParityClassifier,
)
from fairconstrained.constraints import GroupRates
from fairconstrained.objectives import CostMatrix, DecisionUtility, Logistic

COSTS = CostMatrix([[0, 1], [6, 0]])


def negative_cost(y, predicted):
    return -np.mean((y == 0) * (predicted == 1) + 6 * ((y == 1) * (predicted == 0)))


SCORES = {
    "zero_one": accuracy_score,
    "balanced_accuracy": balanced_accuracy_score,
    "f1": f1_score,
    "costs": negative_cost,
}


@pytest.fixture(scope="module")
def skewed():
    """Few positives, fewer in one group."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, 2)) + 0.7 * groups[:, None]
    y = (rng.random(1500) < 1 / (1 + np.exp(-(X @ [1.5, 0.5] - 2.2)))).astype(int)
    return X, y, groups


def gap_of(predicted, groups):
    return abs(predicted[groups == 0].mean() - predicted[groups == 1].mean())


def objective_named(name):
    return COSTS if name == "costs" else name


@pytest.mark.slow
@pytest.mark.parametrize("kappa", [None, 0.03])
def test_each_objective_is_the_best_by_its_own_measure(skewed, kappa):
    X, y, groups = skewed
    found = {}
    for name in SCORES:
        model = RateParityClassifier(kappa, objective=objective_named(name), random_state=0)
        model.fit(X, y, sensitive_features=groups)
        assert model.status_ != "infeasible"
        predicted = model.predict(X)
        if kappa is not None:
            assert gap_of(predicted, groups) <= kappa + 0.002
        found[name] = {measure: score(y, predicted) for measure, score in SCORES.items()}
    for name, measure in product(SCORES, SCORES):
        assert found[measure][measure] >= found[name][measure] - 0.005
    # and they are not all the same
    assert found["f1"]["f1"] > found["zero_one"]["f1"] + 0.05
    assert found["costs"]["costs"] > found["zero_one"]["costs"] + 0.1
    assert found["balanced_accuracy"]["balanced_accuracy"] > found["zero_one"]["balanced_accuracy"] + 0.05


@pytest.mark.parametrize(
    ("objective", "score"),
    [
        ("f1", f1_score),
        ("balanced_accuracy", balanced_accuracy_score),
        (COSTS, negative_cost),
        pytest.param(  # Jaccard's index rises with F1
            DecisionUtility(lambda tn, fp, fn, tp: tp / (tp + fp + fn)), f1_score, marks=pytest.mark.slow
        ),
    ],
    ids=["f1", "balanced_accuracy", "costs", "jaccard"],
)
def test_thresholds_by_group_on_one_feature_are_the_best_of_all(objective, score):
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 2, 120)
    x = np.round(rng.normal(size=120) + 0.5 * groups, 2)
    y = (rng.random(120) < 1 / (1 + np.exp(-2 * x + 1.5))).astype(int)
    model = PartialParityClassifier(
        0.1, constraint="demographic_parity", objective=objective, group_interactions=True, random_state=0
    ).fit(x[:, None], y, sensitive_features=groups)
    cuts = [np.append(-np.inf, np.unique(x[groups == g])) for g in (0, 1)]
    decisions = [(x > np.array(pair)[groups]).astype(int) for pair in product(*cuts)]
    best = max(score(y, d) for d in decisions if abs(d[groups == 0].mean() - d[groups == 1].mean()) <= 0.1 + 1e-12)
    predicted = model.predict(x[:, None], sensitive_features=groups)
    assert score(y, predicted) >= best - 1e-12
    assert model.constraint_values_["demographic_parity"] <= 0.1 + model.granularity_["demographic_parity"]


CLASSIFIERS = [
    PartialParityClassifier(None),
    RateParityClassifier(None),
    FairBoostingClassifier(None, n_estimators=10),
    CorrelationPenaltyClassifier(0.0),
    PairwiseParityClassifier(None, solver="augmented_lagrangian"),
    pytest.param(RegularizedParityClassifier(0.0, max_iter=200), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda model: type(model).__name__)
def test_without_a_bound_class_weights_are_weights_of_the_rows(skewed, model):
    X, y, groups = skewed
    y = np.array(["no", "yes"])[y]
    by_class = model.set_params(objective="logistic", class_weight={"no": 2, "yes": 6}).fit(
        X, y, sensitive_features=groups
    )
    scores = by_class.decision_function(X)
    weights = np.where(y == "yes", 3.0, 1.0)
    by_row = model.set_params(class_weight=None).fit(X, y, sensitive_features=groups, sample_weight=weights)
    assert scores == pytest.approx(by_row.decision_function(X), abs=1e-3)
    plain = model.fit(X, y, sensitive_features=groups).decision_function(X)
    assert scores.mean() > plain.mean() + 0.1


def test_class_weights_leave_the_bounded_rates_alone(skewed):
    X, y, groups = skewed
    model = RateParityClassifier(0.02, class_weight={1: 5}, random_state=0).fit(X, y, sensitive_features=groups)
    gap = gap_of(model.predict(X), groups)
    assert model.constraint_values_["demographic_parity"] == pytest.approx(gap)
    assert gap <= 0.02 + model.granularity_["demographic_parity"]


@pytest.mark.slow
def test_balanced_class_weights_of_errors_are_balanced_accuracy(skewed):
    X, y, groups = (column[:600] for column in skewed)
    options = {"kappa": 0.05, "random_state": 0}
    one = RateParityClassifier(objective="zero_one", class_weight="balanced", **options)
    other = RateParityClassifier(objective="balanced_accuracy", **options)
    scores = [each.fit(X, y, sensitive_features=groups).decision_function(X) for each in (one, other)]
    np.testing.assert_array_equal(*scores)


def test_an_objective_may_be_an_instance(skewed):
    X, y, groups = skewed
    by_name = PartialParityClassifier(None).fit(X, y, sensitive_features=groups)
    given = PartialParityClassifier(None, objective=Logistic()).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(by_name.decision_function(X), given.decision_function(X))


def test_a_head_takes_costs(skewed):
    X, y, groups = skewed
    head = RateParityClassifier(0.03, objective=COSTS)
    model = FairHeadClassifier(GaussianNB(), head, random_state=0)
    model.fit(X, y, sensitive_features=groups)
    errors = RateParityClassifier(0.03, objective="zero_one")
    other = FairHeadClassifier(GaussianNB(), errors, random_state=0)
    other.fit(X, y, sensitive_features=groups)
    assert model.head_.solver_ == "span_search"
    assert negative_cost(y, model.predict(X)) > negative_cost(y, other.predict(X))
    assert model.constraint_values_["demographic_parity"] <= 0.03 + model.granularity_["demographic_parity"]


def test_a_network_takes_all_rows_for_f1(skewed):
    X, y, groups = (column[:600] for column in skewed)
    options = {"hidden_layer_sizes": (4,), "random_state": 0}
    model = RateParityClassifier(None, objective="f1", **options).fit(X, y, sensitive_features=groups)
    assert model.solver_ == "augmented_lagrangian"
    linear = RateParityClassifier(None, objective="f1", random_state=0).fit(X, y, sensitive_features=groups)
    assert f1_score(y, model.predict(X)) > f1_score(y, linear.predict(X)) - 0.02
    costs = RateParityClassifier(None, objective=COSTS, max_iter=3, **options).fit(X, y, sensitive_features=groups)
    assert costs.solver_ == "adam_lagrangian"


def test_boosted_trees_learn_to_classify_by_f1(skewed):
    X, y, groups = skewed
    options = {"n_estimators": 100, "random_state": 0}
    f1 = FairBoostingClassifier(None, objective="f1", **options).fit(X, y, sensitive_features=groups)
    plain = FairBoostingClassifier(None, **options).fit(X, y, sensitive_features=groups)
    assert roc_auc_score(y, f1.decision_function(X)) > 0.8
    assert f1_score(y, f1.predict(X)) >= f1_score(y, plain.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"class_weight": {"perhaps": 2}}, "class_weight"),
        ({"class_weight": {1: -2}}, "class_weight must be positive"),
        ({"class_weight": "even"}, "class_weight"),
        ({"objective": "accuracy"}, "objective"),
        ({"objective": len}, "objective"),
    ],
)
def test_what_is_no_objective_is_refused(skewed, options, message):
    X, y, groups = skewed
    with pytest.raises(ValueError, match=message):
        PartialParityClassifier(**options).fit(X, y, sensitive_features=groups)


def test_function_that_torch_cannot_compute_says_what_to_write(skewed):
    X, y, groups = skewed
    model = RateParityClassifier(objective=DecisionUtility(lambda tn, fp, fn, tp: np.sqrt(tn * tp)))
    with pytest.raises(TypeError, match=r"arithmetic and powers alone, such as \(tp \* tn\) \*\* 0.5"):
        model.fit(X, y, sensitive_features=groups)


def few_features(seed):
    """Few positives and binary features, of which few rows of a group tell the classes apart."""
    rng = np.random.default_rng(seed)
    X, groups = (rng.random((1500, 4)) < 0.3) * 1.0, rng.integers(0, 3, 1500)
    chances = 1 / (1 + np.exp(-(X @ [1, -1, 0.5, 0] + 0.8 * (groups == 0) - 3)))
    return X, (rng.random(1500) < chances).astype(int), groups


def many_features(seed):
    """Predictive values that the cross-fitted scores of few rows hardly make equal."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(700, 30)), rng.choice(3, 700, p=[0.5, 0.3, 0.2])
    scores = X @ rng.normal(size=30) * 0.4 + 1.2 * (groups == 0) + 1.6 - (groups == 2)
    return X, (rng.random(700) < 1 / (1 + np.exp(-scores))).astype(int), groups


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.filterwarnings("ignore:.*no iterate kept the bound:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("data", "bound"),
    [
        (few_features(7), {"constraint": "error_rate_parity", "kappa": 0.02}),
        (many_features(4), {"constraint": "predictive_parity", "kappa": 0.05}),
        (many_features(7), {"constraint": "predictive_parity", "kappa": 0.05}),
    ],
    ids=["few_features", "many_features", "other_features"],
)
def test_errors_are_counted_where_steps_along_smooth_errors_end_at_a_poor_model(data, bound):
    X, y, groups = data
    options = bound | {"new_row_folds": None, "random_state": 0}
    plain, counted = (
        RateParityClassifier(objective=objective, **options).fit(X, y, sensitive_features=groups)
        for objective in ("logistic", "zero_one")
    )
    (name,) = counted.constraint_values_
    assert counted.constraint_values_[name] <= bound["kappa"] + counted.granularity_[name]
    assert counted.score(X, y) > plain.score(X, y) - 0.1


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.filterwarnings("ignore:.*no iterate kept the bound:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("objective", ["balanced_accuracy", "f1"])
def test_bound_that_another_objective_keeps_is_kept(objective):
    rng = np.random.default_rng(2)
    X, groups = rng.normal(size=(1500, 12)), rng.integers(0, 2, 1500)
    y = (rng.random(1500) < 1 / (1 + np.exp(-(X[:, 0] + 0.7 * X[:, 1] + 0.8 * groups - 2.8)))).astype(int)
    floor = GroupRates("positive_predictive_value", rule="floor", kappa=0.6)
    model = RateParityClassifier(constraint=floor, objective=objective, new_row_folds=None, random_state=0)
    model.fit(X, y, sensitive_features=groups)
    accepted = model.predict(X) == 1
    assert min(y[accepted & (groups == g)].mean() for g in (0, 1)) >= 0.6 - 1e-9
