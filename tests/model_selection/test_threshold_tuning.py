"""Fairness scorers choose the threshold of scikit-learn's TunedThresholdClassifierCV."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import KFold, StratifiedKFold, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import equal_opportunity_gap, independence_gap
from fairconstrained.model_selection import get_fairness_scorer, make_fairness_scorer, make_performance_scorer

THRESHOLDS = np.array([0.2, 0.35, 0.5, 0.65, 0.8])
FOLDS = StratifiedKFold(3)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=300, p=[0.6, 0.4])
    X = rng.normal(size=(300, 3)) + 0.8 * (groups == "a")[:, None]
    return X, (X[:, 0] + rng.normal(size=300) > 0.4).astype(int), groups


def tuned(scorer, model=None, **options):
    model = LogisticRegression() if model is None else model
    options = {"cv": FOLDS, "thresholds": THRESHOLDS, "store_cv_results": True, **options}
    return TunedThresholdClassifierCV(model, scoring=scorer, **options)


def gaps_of_thresholds(X, y, groups, metric, positive=1):
    """Mean over the folds of the gap of every threshold, by hand; decisions are 1 for ``positive``."""
    table = []
    for train, test in FOLDS.split(X, y):
        model = LogisticRegression().fit(X[train], y[train])
        probability = model.predict_proba(X[test])[:, model.classes_.tolist().index(positive)]
        truth = (y[test] == positive).astype(int)
        decisions = [(probability >= threshold).astype(int) for threshold in THRESHOLDS]
        table.append([metric(truth, row, sensitive_features=groups[test]) for row in decisions])
    return np.mean(table, axis=0)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("metric", [independence_gap, equal_opportunity_gap])
def test_the_groups_reach_the_metric_at_every_threshold(data, metric):
    X, y, groups = data
    model = tuned(get_fairness_scorer(f"neg_{metric.__name__}")).fit(X, y, sensitive_features=groups)
    expected = -gaps_of_thresholds(X, y, groups, metric)
    np.testing.assert_allclose(model.cv_results_["scores"], expected)
    assert model.best_threshold_ == THRESHOLDS[expected.argmax()]
    assert np.ptp(expected) > 0.05  # the thresholds differ


@pytest.mark.usefixtures("routing")
def test_labels_of_strings_and_a_positive_label_of_ones_own(data):
    X, y, groups = data
    words = np.array(["no", "yes"])[y]
    for positive, options in [("yes", {}), ("no", {"pos_label": "no"})]:
        scorer = make_fairness_scorer(equal_opportunity_gap, **options)
        model = tuned(scorer).fit(X, words, sensitive_features=groups)
        expected = -gaps_of_thresholds(X, words, groups, equal_opportunity_gap, positive)
        np.testing.assert_allclose(model.cv_results_["scores"], expected)


@pytest.mark.usefixtures("routing")
def test_parameters_of_the_metric_and_the_sign(data):
    X, y, groups = data

    def share(y_true, y_pred, *, sensitive_features, factor=1.0):
        return factor * float(y_pred[sensitive_features == "a"].mean())

    scorer = make_fairness_scorer(share, greater_is_better=True, factor=10.0)
    scores = tuned(scorer).fit(X, y, sensitive_features=groups).cv_results_["scores"]
    assert (np.diff(scores) < 0).all()  # a higher threshold selects fewer
    assert scores[0] > 1


@pytest.mark.usefixtures("routing")
def test_a_performance_scorer_agrees_with_scikit_learn(data):
    X, y, groups = data
    theirs = tuned("f1").fit(X, y).cv_results_["scores"]
    ours = tuned(get_fairness_scorer("f1")).fit(X, y, sensitive_features=groups).cv_results_["scores"]
    np.testing.assert_allclose(ours, theirs)


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_our_own_classifier_in_a_pipeline(data):
    X, y, groups = data
    fair = PartialParityClassifier(0.2, constraint="demographic_parity", tol=0.05)
    model = tuned(get_fairness_scorer("neg_independence_gap"), make_pipeline(StandardScaler(), fair), thresholds=5)
    model = clone(model).fit(X, y, sensitive_features=groups)
    assert list(model.estimator_[-1].groups_) == ["a", "b"]
    assert np.isfinite(model.best_threshold_)
    assert model.best_score_ == max(model.cv_results_["scores"])


@pytest.mark.usefixtures("routing")
def test_without_groups_the_error_says_so(data):
    X, y, _ = data
    with pytest.raises(ValueError, match="needs sensitive_features"):
        tuned(get_fairness_scorer("neg_independence_gap")).fit(X, y)


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize(
    ("name", "response"), [("neg_statistical_parity_gap", "decision_function"), ("neg_log_loss", "predict_proba")]
)
def test_a_metric_that_no_threshold_changes_is_refused(data, name, response):
    X, y, groups = data
    with pytest.raises(ValueError, match=f"metric of decisions.*'{response}'.*response='predict'"):
        tuned(get_fairness_scorer(name)).fit(X, y, sensitive_features=groups)


@pytest.mark.usefixtures("routing")
def test_a_metric_of_probabilities_still_serves_where_scikit_learn_looks_into_a_scorer(data):
    X, y, groups = data
    scorer = get_fairness_scorer("neg_wasserstein_gap")
    options = {"Cs": [0.01, 1.0], "cv": FOLDS, "scoring": scorer}
    if "use_legacy_attributes" in LogisticRegressionCV().get_params():  # from scikit-learn 1.8 on
        options |= {"use_legacy_attributes": False, "l1_ratios": (0.0,)}
    model = LogisticRegressionCV(**options).fit(X, y, sensitive_features=groups)
    assert np.ravel(model.C_)[0] == 0.01  # probabilities that hardly differ


# --- arguments that no metric has


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: get_fairness_scorer("neg_independence_gap", intervall=(0, 1)), r"independence_gap .*'intervall'.*agg"),
        (lambda: get_fairness_scorer("accuracy", normalise=True), r"accuracy_score .*'normalise'.*normalize"),
        (lambda: make_fairness_scorer(independence_gap, kappa=0.1), r"independence_gap .*'kappa'"),
        (lambda: make_fairness_scorer(independence_gap, return_groups=True), "return_groups.*one number"),
        (lambda: make_fairness_scorer(independence_gap, sensitive_features=[0]), "sensitive_features.*the rows"),
        (lambda: make_performance_scorer(lambda y_true, y_pred: 0.0, beta=2), r"'beta'.*choose from \[\]"),
    ],
)
def test_an_unknown_argument_is_an_error_when_the_scorer_is_made(make, message):
    with pytest.raises(TypeError, match=message):
        make()


def test_a_metric_that_takes_any_argument_gets_it(data):
    X, y, groups = data
    scorer = make_fairness_scorer(lambda y_true, y_pred, sensitive_features, **options: options["level"], level=0.25)
    assert scorer(LogisticRegression().fit(X, y), X, y, sensitive_features=groups) == -0.25


def test_a_fold_of_a_single_group_is_refused(data, routing):
    X, y, groups = (column[np.argsort(data[2], kind="stable")] for column in data)
    scorer = get_fairness_scorer("neg_independence_gap")
    with (
        pytest.warns(FairnessWarning, match="only one group, 'a'"),
        pytest.raises(ValueError, match="independence_gap is NaN on the rows of a fold"),
    ):
        tuned(scorer, cv=KFold(3)).fit(X, y, sensitive_features=groups)
