"""The correlation penalty as an estimator: a weight and what comes of it."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained import CorrelationPenaltyClassifier, FairnessWarning, PartialParityClassifier
from fairconstrained.metrics import partial_group_auc_gap
from fairconstrained.model_selection import make_fairness_scorer, make_performance_scorer


def correlation(scores, member):
    return abs(np.corrcoef(scores, member)[0, 1])


@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.usefixtures("classes_by_value")
@parametrize_with_checks([CorrelationPenaltyClassifier(objective="logistic", alpha=0.1)])
def test_estimator_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["auc", "logistic"])
@pytest.mark.parametrize("group_interactions", [False, True], ids=["shared", "by group"])
def test_a_larger_weight_leaves_a_smaller_correlation(classes, objective, group_interactions):
    X, y, groups = classes
    sizes, areas = [], []
    for weight in (0.0, 0.02, 10.0):
        model = CorrelationPenaltyClassifier(weight, objective=objective, group_interactions=group_interactions)
        scores = model.fit(X, y, sensitive_features=groups).decision_function(X, sensitive_features=groups)
        gap = partial_group_auc_gap(None, scores, sensitive_features=groups)
        assert model.constraint_values_ == {"group_auc": pytest.approx(gap)}
        assert (model.status_, model.violation_, model.multipliers_) == ("optimal", 0.0, {})
        sizes.append(correlation(scores, groups))
        areas.append(roc_auc_score(y, scores))
    assert sizes[0] > sizes[1] > sizes[2]
    assert sizes[2] < 1e-3
    assert areas[0] > areas[2]


@pytest.mark.parametrize("objective", ["auc", "logistic"])
def test_weight_zero_is_the_unconstrained_fit(classes, objective):
    X, y, groups = classes
    model = CorrelationPenaltyClassifier(0.0, objective=objective).fit(X, y, sensitive_features=groups)
    free = PartialParityClassifier(kappa=None, objective=objective).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(model.coef_, free.coef_, atol=1e-5)


def test_the_group_named_makes_no_difference_between_two(classes):
    X, y, groups = classes
    models = [
        CorrelationPenaltyClassifier(0.05, objective="logistic", protected=protected) for protected in (None, "f", "m")
    ]
    coefs = [model.fit(X, y, sensitive_features=np.array(["f", "m"])[groups]).coef_ for model in models]
    np.testing.assert_allclose(coefs[0], coefs[1], atol=1e-6)
    np.testing.assert_allclose(coefs[0], coefs[2], atol=1e-6)


def test_more_than_two_groups(classes):
    X, y, groups = classes
    three = np.where(np.arange(y.size) % 4 == 0, "c", np.array(["a", "b"])[groups])
    with pytest.raises(ValueError, match=r"protected must name .* \['a', 'b', 'c'\]"):
        CorrelationPenaltyClassifier().fit(X, y, sensitive_features=three)
    with pytest.raises(ValueError, match=r"protected must be one of the groups .* got 'x'"):
        CorrelationPenaltyClassifier(protected="x").fit(X, y, sensitive_features=three)
    model = CorrelationPenaltyClassifier(5.0, protected="b", objective="logistic").fit(X, y, sensitive_features=three)
    scores = model.decision_function(X)
    assert correlation(scores, three == "b") < 1e-3
    assert model.constraint_values_["group_auc"] == pytest.approx(abs(roc_auc_score(three == "b", scores) - 0.5))


def test_weights_are_repeated_rows(classes):
    X, y, groups = classes
    times = np.random.default_rng(1).integers(0, 4, y.size)
    rows = np.repeat(np.arange(y.size), times)
    model = CorrelationPenaltyClassifier(0.05, objective="logistic", alpha=0.01)
    weighted = model.fit(X, y, sensitive_features=groups, sample_weight=times).coef_
    repeated = model.fit(X[rows], y[rows], sensitive_features=groups[rows]).coef_
    np.testing.assert_allclose(weighted, repeated, atol=1e-5)


@pytest.mark.slow
def test_a_network(classes):
    X, y, groups = (column[:200] for column in classes)
    network = CorrelationPenaltyClassifier(
        objective="logistic", hidden_layer_sizes=(3,), activation="logistic", alpha=0.01, random_state=0
    )
    free, fair = (
        clone(network).set_params(weight=weight).fit(X, y, sensitive_features=groups) for weight in (0.0, 2.0)
    )
    assert correlation(fair.decision_function(X), groups) < 0.01 < correlation(free.decision_function(X), groups)
    assert fair.status_ in ("optimal", "completed")


def test_one_group_is_said(classes):
    with pytest.warns(FairnessWarning, match="set weight=0"):
        model = CorrelationPenaltyClassifier().fit(classes.X, classes.y)
    assert model.constraint_values_ == {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CorrelationPenaltyClassifier(0.0).fit(classes.X, classes.y)


@pytest.mark.usefixtures("routing")
def test_pipeline_in_a_grid_search(classes):
    X, y, groups = classes
    search = GridSearchCV(
        make_pipeline(StandardScaler(), CorrelationPenaltyClassifier(objective="logistic")),
        {"correlationpenaltyclassifier__weight": [0.0, 5.0]},
        scoring={
            "accuracy": make_performance_scorer(accuracy_score),
            "gap": make_fairness_scorer(partial_group_auc_gap),
        },
        refit="accuracy",
        cv=3,
        error_score="raise",
    )
    search.fit(X, y, sensitive_features=groups)
    free, fair = search.cv_results_["mean_test_gap"]
    assert free < fair < 0


@pytest.mark.parametrize(
    "options", [{"weight": -0.1}, {"objective": "gini"}, {"threshold": np.nan}, {"activation": "step"}], ids=str
)
def test_invalid_parameters(classes, options):
    X, y, groups = classes
    with pytest.raises(ValueError, match="parameter of CorrelationPenaltyClassifier must be"):
        CorrelationPenaltyClassifier(**options).fit(X, y, sensitive_features=groups)


@pytest.mark.slow
def test_real_data(adult):
    X, y, groups = (column[:3000] for column in adult[0])
    X = X.toarray()
    free, fair = (
        CorrelationPenaltyClassifier(weight, objective="logistic", alpha=1e-3).fit(X, y, sensitive_features=groups)
        for weight in (0.0, 1.0)
    )
    assert fair.constraint_values_["group_auc"] < 0.05 < 0.15 < free.constraint_values_["group_auc"]
    areas = [roc_auc_score(y, model.decision_function(X)) for model in (free, fair)]
    assert areas[0] - 0.04 < areas[1] < areas[0]
