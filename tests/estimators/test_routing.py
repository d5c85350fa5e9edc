"""The groups on their way through pipelines and searches, with metadata routing and without."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from fairconstrained import PartialParityClassifier, PartialParityRegressor
from fairconstrained.metrics import partial_statistical_parity_gap
from fairconstrained.model_selection import make_fairness_scorer, make_performance_scorer

GAP = make_fairness_scorer(partial_statistical_parity_gap)


def classifier(**options):
    return PartialParityClassifier(**{"kappa": 0.2, "constraint": "demographic_parity", **options})


# --- routing on


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("group_interactions", [False, True])
def test_pipeline_in_a_grid_search_with_fairness_scorers(classes, group_interactions):
    X, y, groups = classes
    pipe = make_pipeline(StandardScaler(), classifier(group_interactions=group_interactions))
    search = GridSearchCV(
        pipe,
        {"partialparityclassifier__kappa": [None, 0.2]},
        scoring={"accuracy": make_performance_scorer(accuracy_score), "gap": GAP},
        refit="accuracy",
        cv=2,
        error_score="raise",
    )
    search.fit(X, y, sensitive_features=groups)
    results = search.cv_results_
    assert np.isfinite(results["mean_test_accuracy"]).all()
    free, fair = results["mean_test_gap"]
    assert free < fair < 0  # gaps are negated: the constraint brings them nearer to zero
    assert list(search.best_estimator_[-1].groups_) == [0, 1]
    predicted = search.best_estimator_.predict(X, sensitive_features=groups)
    assert (predicted == y).mean() > y.mean() + 0.05


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_the_groups_reach_every_fit_of_a_search(classes):
    X, y, groups = classes
    results = cross_validate(
        classifier(kappa=0.2), X, y, params={"sensitive_features": groups}, cv=2, return_estimator=True, scoring=GAP
    )
    assert all(list(model.groups_) == [0, 1] for model in results["estimator"])


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_sample_weight_can_be_requested_too(classes):
    X, y, groups = classes
    weights = np.random.default_rng(0).uniform(0.3, 2.0, 600)
    pipe = make_pipeline(StandardScaler(), classifier().set_fit_request(sample_weight=True))
    pipe.named_steps["standardscaler"].set_fit_request(sample_weight=False)
    pipe.fit(X, y, sensitive_features=groups, sample_weight=weights)
    alone = classifier().fit(StandardScaler().fit_transform(X), y, sensitive_features=groups, sample_weight=weights)
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("estimator", [PartialParityClassifier(), PartialParityRegressor()], ids=["classes", "numbers"])
def test_every_method_asks_for_the_groups(estimator):
    requests = get_routing_for_object(clone(estimator))
    methods = ["fit", "predict", "score"]
    methods += ["decision_function", "predict_proba"] if isinstance(estimator, PartialParityClassifier) else []
    for method in methods:
        assert getattr(requests, method).requests["sensitive_features"] is True


# --- routing off


@pytest.mark.slow
def test_fit_and_step_parameters_without_routing(classes):
    X, y, groups = classes
    pipe = make_pipeline(StandardScaler(), classifier())
    pipe.fit(X, y, partialparityclassifier__sensitive_features=groups)
    alone = classifier().fit(StandardScaler().fit_transform(X), y, sensitive_features=groups)
    np.testing.assert_array_equal(pipe[-1].coef_, alone.coef_)
    np.testing.assert_array_equal(pipe.predict(X), alone.predict(StandardScaler().fit_transform(X)))


@pytest.mark.slow
def test_grid_search_without_routing(classes):
    X, y, groups = classes
    search = GridSearchCV(classifier(), {"kappa": [0.15, 0.3]}, cv=2, error_score="raise")
    search.fit(X, y, sensitive_features=groups)
    assert list(search.best_estimator_.groups_) == [0, 1]


@pytest.mark.slow
def test_set_output_of_a_preceding_step(classes):
    X, y, groups = classes
    pipe = make_pipeline(StandardScaler(), classifier()).set_output(transform="pandas")
    pipe.fit(X, y, partialparityclassifier__sensitive_features=groups)
    assert list(pipe[-1].feature_names_in_) == ["x0", "x1", "x2", "x3"]
