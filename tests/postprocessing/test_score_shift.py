"""The meta-estimator: what it promises, what it accepts, and the groups on their way through it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from fairconstrained import ConvergenceWarning, FairnessWarning, PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import (
    bpsn_bnsp_gap,
    inter_group_auc_gap,
    negative_equality_gap,
    partial_group_auc_gap,
    positive_equality_gap,
)
from fairconstrained.model_selection import make_fairness_scorer, make_performance_scorer
from fairconstrained.postprocessing import ScoreShiftPostprocessor

GAPS = {
    "group_auc": partial_group_auc_gap,
    "inter_group": inter_group_auc_gap,
    "positive_equality": positive_equality_gap,
    "negative_equality": negative_equality_gap,
    "bpsn_bnsp": bpsn_bnsp_gap,
}


@pytest.fixture(scope="module")
def sample():
    return make_biased_classification(600, 4, random_state=0)


def shifted(**options):
    return ScoreShiftPostprocessor(LogisticRegression(), **options)


#: Half of all combinations of metric, kappa, shifts and weights, such that any three of the four choices meet.
PROMISES = [
    (metric, kappa, shifts, (i + j + k) % 2 == 0)
    for i, metric in enumerate(sorted(GAPS))
    for j, kappa in enumerate([0.1, 0.02])
    for k, shifts in enumerate([None, "all"])
]


@pytest.mark.parametrize(("metric", "kappa", "shifts", "weighted"), PROMISES)
def test_kappa_bounds_the_metric_of_the_package(sample, metric, kappa, shifts, weighted):
    X, y, groups = sample
    weights = np.random.default_rng(0).uniform(0.2, 3.0, y.size) if weighted else None
    model = shifted(constraint=metric, kappa=kappa, shifts=shifts)
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    scores = model.decision_function(X, sensitive_features=groups)
    gap = GAPS[metric](y, scores, sensitive_features=groups, sample_weight=weights)
    assert model.constraint_values_ == {metric: pytest.approx(gap, abs=1e-10)}
    assert gap <= kappa + 1e-10
    assert (model.status_, model.violation_) == ("optimal", pytest.approx(0.0, abs=1e-10))
    assert model.auc_ == pytest.approx(roc_auc_score(y, scores, sample_weight=weights))
    raw = LogisticRegression().fit(X, y, sample_weight=weights).decision_function(X)
    moved = groups == model.protected_
    np.testing.assert_array_equal(scores[~moved], raw[~moved])
    np.testing.assert_array_equal(scores[moved], model.slope_ * raw[moved] + model.shift_)
    assert model.protected_ == np.bincount(groups, weights).argmin()


def test_without_a_bound_the_auc_is_the_best(sample):
    X, y, groups = sample
    free = shifted(kappa=None).fit(X, y, sensitive_features=groups)
    bounds = [1.0, 0.3, 0.1, 0.01]
    aucs = [shifted(kappa=kappa).fit(X, y, sensitive_features=groups).auc_ for kappa in bounds]
    assert free.auc_ == aucs[0]
    assert aucs == sorted(aucs, reverse=True)
    assert free.auc_ >= roc_auc_score(y, free.estimator_.decision_function(X))


def test_integer_weights_are_repeated_rows(sample):
    X, y, groups = sample
    times = np.random.default_rng(1).integers(0, 4, y.size)
    rows = np.repeat(np.arange(y.size), times)
    base = LogisticRegression().fit(X, y)
    model = ScoreShiftPostprocessor(FrozenEstimator(base))
    weighted = clone(model).fit(X, y, sensitive_features=groups, sample_weight=times)
    repeated = clone(model).fit(X[rows], y[rows], sensitive_features=groups[rows])
    assert (weighted.slope_, weighted.shift_) == (repeated.slope_, repeated.shift_)
    assert weighted.constraint_values_ == pytest.approx(repeated.constraint_values_)


def test_infeasible_is_never_silent(sample):
    X, y, groups = sample
    model = shifted(kappa=0.01, slopes=[1.0], shifts=[0.0, 0.1])
    with pytest.warns(
        ConvergenceWarning, match=r"'group_auc' is 0\.\d+ on the training .* and exceeds kappa=0.01 by more than"
    ):
        model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "infeasible"
    assert model.violation_ == pytest.approx(model.constraint_values_["group_auc"] - 0.01)
    scores = model.estimator_.decision_function(X)
    gaps = [
        partial_group_auc_gap(None, scores + shift * (groups == model.protected_), sensitive_features=groups)
        for shift in (0.0, 0.1)
    ]
    assert model.constraint_values_["group_auc"] == pytest.approx(min(gaps))


def test_one_group_is_said(sample):
    X, y, _ = sample
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        model = shifted().fit(X, y)
    np.testing.assert_array_equal(model.predict(X), LogisticRegression().fit(X, y).predict(X))
    assert (model.slope_, model.shift_, model.protected_, model.constraint_values_) == (1.0, 0.0, None, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shifted(kappa=None).fit(X, y)


@pytest.mark.parametrize(
    "base",
    [
        GaussianNB(),
        RidgeClassifier(),
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
        PartialParityClassifier(kappa=0.3, constraint="demographic_parity", group_interactions=True),
    ],
    ids=lambda base: type(base).__name__,
)
def test_any_scorer(sample, base):
    X, y, groups = sample
    model = ScoreShiftPostprocessor(base, kappa=0.05, shifts="all").fit(X, y, sensitive_features=groups)
    scores = model.decision_function(X, sensitive_features=groups)
    gap = partial_group_auc_gap(None, scores, sensitive_features=groups)
    assert model.constraint_values_["group_auc"] == pytest.approx(gap)
    assert gap <= 0.05 + 1 / np.bincount(groups).min()
    np.testing.assert_array_equal(model.predict(X, sensitive_features=groups), (scores > 0).astype(int))
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.decision_function(X, sensitive_features=groups), scores)
    probabilities = model.predict_proba(X, sensitive_features=groups)
    np.testing.assert_allclose(np.log(probabilities[:, 1] / probabilities[:, 0]), scores, atol=1e-6, rtol=1e-3)


def test_labels_and_groups_in_other_forms(sample):
    X, y, groups = sample
    reference = shifted().fit(X, y, sensitive_features=groups)
    names, labels = np.array(["f", "m"])[groups], np.array(["no", "yes"])[y]
    frame = pd.DataFrame({"sex": pd.Categorical(names)})
    model = shifted().fit(pd.DataFrame(X, columns=list("abcd")), labels, sensitive_features=frame)
    assert (model.slope_, model.shift_) == (reference.slope_, reference.shift_)
    assert list(model.feature_names_in_) == list("abcd")
    assert model.protected_ == "fm"[reference.protected_]
    assert list(model.groups_) == ["f", "m"]
    predicted = model.predict(pd.DataFrame(X, columns=list("abcd")), sensitive_features=names)
    assert (predicted == np.array(["no", "yes"])[reference.predict(X, sensitive_features=groups)]).all()
    sparse = shifted().fit(sp.csr_array(X), y, sensitive_features=groups)
    assert (sparse.slope_, sparse.shift_) == (reference.slope_, reference.shift_)


def test_more_than_two_groups(sample):
    X, y, groups = sample
    three = np.where(np.arange(y.size) % 4 == 0, "c", np.array(["a", "b"])[groups])
    with pytest.raises(ValueError, match=r"more than two groups, protected must name .* \['a', 'b', 'c'\]"):
        shifted().fit(X, y, sensitive_features=three)
    model = shifted(protected="b", kappa=0.02).fit(X, y, sensitive_features=three)
    scores = model.decision_function(X, sensitive_features=three)
    gap = abs(roc_auc_score(three == "b", scores) - 0.5)
    assert model.constraint_values_["group_auc"] == pytest.approx(gap)
    assert gap <= 0.02 + 1e-12
    with pytest.raises(ValueError, match=r"not seen in fit: \['d'\]"):
        model.predict(X[:2], sensitive_features=["d", "a"])


@pytest.mark.parametrize("protected", [0, 1])
def test_either_group_can_be_moved(sample, protected):
    X, y, groups = sample
    model = shifted(protected=protected, kappa=0.02).fit(X, y, sensitive_features=groups)
    raw = model.estimator_.decision_function(X)
    changed = model.decision_function(X, sensitive_features=groups) != raw
    assert (groups[changed] == protected).all()
    assert changed.any()


# --- fitted already


@pytest.mark.slow
def test_frozen(sample):
    X, y, groups = sample
    base = LogisticRegression().fit(X[:300], y[:300])
    model = ScoreShiftPostprocessor(FrozenEstimator(base)).fit(X[300:], y[300:], sensitive_features=groups[300:])
    assert model.estimator_ is base
    scores = model.decision_function(X[300:], sensitive_features=groups[300:])
    assert partial_group_auc_gap(None, scores, sensitive_features=groups[300:]) <= 0.05 + 1e-12
    fair = PartialParityClassifier(kappa=0.3, constraint="demographic_parity", group_interactions=True)
    fair.fit(X, y, sensitive_features=groups)
    search = GridSearchCV(ScoreShiftPostprocessor(FrozenEstimator(fair)), {"kappa": [0.1]}, cv=2, error_score="raise")
    with sklearn.config_context(enable_metadata_routing=True):
        search.fit(X, y, sensitive_features=groups)
    assert search.best_estimator_.estimator_ is fair
    with pytest.raises(NotFittedError):
        ScoreShiftPostprocessor(FrozenEstimator(LogisticRegression())).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"y has the classes .* and the estimator"):
        ScoreShiftPostprocessor(FrozenEstimator(base)).fit(X, y + 5, sensitive_features=groups)


# --- routing


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_pipeline_in_a_grid_search(sample):
    X, y, groups = sample
    search = GridSearchCV(
        make_pipeline(StandardScaler(), shifted()),
        {
            "scoreshiftpostprocessor__kappa": [None, 0.02],
            "scoreshiftpostprocessor__estimator__C": [1.0],
        },
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
    assert search.best_estimator_.predict(X, sensitive_features=groups).shape == y.shape


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_weights_and_groups_reach_the_estimator(sample):
    X, y, groups = sample
    weights = np.random.default_rng(0).uniform(0.3, 2.0, y.size)
    base = LogisticRegression().set_fit_request(sample_weight=True)
    model = ScoreShiftPostprocessor(make_pipeline(StandardScaler().set_fit_request(sample_weight=False), base))
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    alone = LogisticRegression().fit(StandardScaler().fit_transform(X), y, sample_weight=weights)
    np.testing.assert_array_equal(model.estimator_[-1].coef_, alone.coef_)
    fair = PartialParityClassifier(kappa=0.3, constraint="demographic_parity", group_interactions=True)
    model = ScoreShiftPostprocessor(make_pipeline(StandardScaler(), fair)).fit(X, y, sensitive_features=groups)
    assert model.predict(X, sensitive_features=groups).shape == y.shape


# --- errors


def test_intra_group_is_explained(sample):
    X, y, groups = sample
    with pytest.raises(ValueError, match=r"intra_group.* no slope and no shift .* need the labels at prediction"):
        shifted(constraint="intra_group").fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("base", [LinearSVR(), StandardScaler()], ids=["regressor", "transformer"])
def test_an_estimator_without_scores(sample, base):
    X, y, groups = sample
    with pytest.raises(TypeError, match="neither decision_function nor predict_proba"):
        ScoreShiftPostprocessor(base).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_proba"])
def test_prediction_needs_the_groups(sample, method):
    X, y, groups = sample
    model = shifted().fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"pass sensitive_features to predict.*turn metadata routing on"):
        getattr(model, method)(X)
    with pytest.raises(ValueError, match="sensitive_features has 5 rows in place of 600"):
        getattr(model, method)(X, sensitive_features=groups[:5])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"protected": "x"}, r"protected must be one of the groups \[0, 1\] or None, got 'x'"),
        ({"slopes": [-1.0, 1.0]}, "slopes must not be negative"),
        ({"slopes": []}, "slopes must be a list of finite numbers"),
        ({"shifts": [np.nan]}, "shifts must be a list of finite numbers"),
        ({"shifts": "some"}, "'shifts' parameter"),
        ({"constraint": "xauc"}, "'constraint' parameter"),
        ({"kappa": 1.5}, "'kappa' parameter"),
    ],
)
def test_invalid_parameters(sample, options, message):
    X, y, groups = sample
    with pytest.raises(ValueError, match=message):
        shifted(**options).fit(X, y, sensitive_features=groups)


def test_weights_that_the_estimator_does_not_take(sample):
    X, y, groups = sample
    with pytest.raises(ValueError, match="KNeighborsClassifier takes no sample_weight"):
        ScoreShiftPostprocessor(KNeighborsClassifier()).fit(
            X, y, sensitive_features=groups, sample_weight=np.ones(y.size)
        )


def test_a_failed_fit_leaves_the_estimator_as_it_was(sample):
    X, y, groups = sample
    model = shifted().fit(X, y, sensitive_features=groups)
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="599"):
        model.fit(X, y, sensitive_features=groups[1:])
    assert model.__dict__ == before


@pytest.mark.slow
def test_real_data(adult):
    X, y, groups = (column[:8000] for column in adult[0])
    model = shifted(kappa=0.05, shifts="all", constraint="inter_group").fit(X, y, sensitive_features=groups)
    scores = model.decision_function(X, sensitive_features=groups)
    assert inter_group_auc_gap(y, scores, sensitive_features=groups) <= 0.05 + 1e-10
    raw_scores = model.estimator_.decision_function(X)
    assert inter_group_auc_gap(y, raw_scores, sensitive_features=groups) > 0.1
    assert model.auc_ > roc_auc_score(y, raw_scores) - 0.01
