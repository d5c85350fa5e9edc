"""Measures of a path on held-out rows: against loops written by hand, with pipelines, scorers and processes."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import accuracy_score, balanced_accuracy_score, make_scorer, r2_score, roc_auc_score
from sklearn.model_selection import GroupKFold, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    AUCFairClassifier,
    FairnessWarning,
    FairRanker,
    MinorityRateClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.metrics import partial_statistical_parity_gap, rate_gap
from fairconstrained.model_selection import make_fairness_scorer
from fairconstrained.paths._rows import Rows, folds

KAPPAS = [None, 0.1, 0.02]


def path_of(estimator, sample, **options):
    options = {"kappas": KAPPAS, "cv": 3, **options}
    return fairness_path(estimator, sample.X, sample.y, sensitive_features=sample.groups, **options)


@pytest.fixture
def forked():
    """Processes that need not import everything first."""
    with parallel_config("multiprocessing"):
        yield


def by_hand(estimator, sample, splits, scale=False):
    """Accuracy and smooth gap on the held-out rows, for every fold and kappa."""
    measured = []
    for train, test in splits:
        transformer = StandardScaler().fit(sample.X[train]) if scale else None
        inside, outside = (transformer.transform(sample.X[rows]) if scale else sample.X[rows] for rows in (train, test))
        for kappa in KAPPAS:
            estimator.set_params(kappa=kappa, warm_start=True)
            estimator.fit(inside, sample.y[train], sensitive_features=sample.groups[train])
            scores = estimator.decision_function(outside)
            gap = rate_gap(sample.y[test], scores, sensitive_features=sample.groups[test], rate="sigmoid")
            measured.append((accuracy_score(sample.y[test], scores > 0), gap))
        estimator = sklearn.clone(estimator)
    return np.array(measured).reshape(len(splits), len(KAPPAS), 2)


# --- held-out rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@pytest.mark.parametrize("scale", [False, True], ids=["alone", "pipeline"])
def test_columns_are_those_of_a_loop_over_the_folds(classes, scale):
    splitter = KFold(2, shuffle=True, random_state=0)
    estimator = RateParityClassifier(rate="sigmoid")
    path = path_of(make_pipeline(StandardScaler(), estimator) if scale else estimator, classes, cv=splitter)
    expected = by_hand(RateParityClassifier(rate="sigmoid"), classes, list(splitter.split(classes.X)), scale)
    for column, name in enumerate(["accuracy", "gap"]):
        values = expected[:, :, column]
        np.testing.assert_allclose(path.table[f"mean_test_{name}"], values.mean(axis=0), atol=1e-12)
        np.testing.assert_allclose(path.table[f"std_test_{name}"], values.std(axis=0), atol=1e-12)
    assert path.table["mean_test_gap"][2] > path.table["gap"][2]  # kappa bounds the gap on the training rows alone


def test_folds_share_groups_and_classes(classes):
    rows = Rows(classes.X, classes.y, {"sensitive_features": classes.groups})
    parts = folds(4, RateParityClassifier(), rows)
    cells = 2 * classes.groups + classes.y
    for train, test in parts:
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(400))
        np.testing.assert_allclose(np.bincount(cells[test]), np.bincount(cells) / 4, atol=1)
    by_group = folds(4, PartialParityRegressor(), rows)  # numbers are no classes
    np.testing.assert_allclose(np.bincount(classes.groups[by_group[0][1]]), np.bincount(classes.groups) / 4, atol=1)


def test_documents_of_a_query_stay_together(classes):
    queries = np.arange(400) % 40
    rows = Rows(classes.X, classes.y, {"sensitive_features": classes.groups, "qid": queries})
    for splitter in (4, GroupKFold(4)):
        for train, test in folds(splitter, FairRanker(), rows):
            assert not set(queries[train]) & set(queries[test])


def test_groups_that_a_fold_lacks(classes):
    groups = np.where(np.arange(400) < 3, 2, classes.groups)
    rows = Rows(classes.X, classes.y, {"sensitive_features": groups})
    assert len(folds(3, RateParityClassifier(), rows)) == 3  # rare cells are spread as far as they go
    with pytest.warns(FairnessWarning, match=r"the held-out rows of fold \d of 5 lack \[2\].*fewer folds, or merge"):
        folds(5, RateParityClassifier(), rows)
    by_group = [(np.flatnonzero(groups != group), np.flatnonzero(groups == group)) for group in (0, 1)]
    with pytest.raises(ValueError, match=r"the held-out rows of fold 1 of 2 lack \[1, 2\], so that there is nothing"):
        folds(by_group, RateParityClassifier(), rows)
    tables = Rows(
        classes.X, classes.y, {"sensitive_features": np.stack([groups == 2, groups < 2, groups == 1], axis=1)}
    )
    with pytest.raises(ValueError, match=r"fold 4 of 5 lack \[0\], columns of sensitive_features without a row"):
        folds(5, RateParityClassifier(), tables)


def test_numbers_and_masks_are_the_same_folds(classes):
    mask = np.arange(400) < 300
    rows = Rows(classes.X, classes.y, {"sensitive_features": classes.groups})
    expected = [(np.arange(300), np.arange(300, 400))]
    for given in ([(mask, ~mask)], [(np.arange(300).tolist(), np.arange(-100, 0))]):
        np.testing.assert_equal(folds(given, RateParityClassifier(), rows), expected)


def test_splitters_with_groups_of_their_own(classes):
    blocks = np.arange(400) // 50
    with pytest.raises(ValueError, match=r"needs groups of its own.*cv=list\(splitter.split\(X, y, groups\)\)"):
        path_of(RateParityClassifier(), classes, cv=GroupKFold(2))
    splits = list(GroupKFold(2).split(classes.X, classes.y, blocks))
    assert path_of(RateParityClassifier(), classes, kappas=[None], cv=splits).n_splits == 2


@pytest.mark.slow
def test_held_out_rows_need_groups_of_their_own(classes):
    """Where those of the constraint are on rows apart, a gap of held-out rows would be one of nothing."""
    extra = {"X_constraint": classes.X[:150], "sensitive_features_constraint": classes.groups[:150]}
    options = {"kappas": [None, 0.75], "fit_params": extra, "cv": 2}
    estimator = MinorityRateClassifier(rate="indicator", minority=1)
    with pytest.raises(ValueError, match=r"fold 1 of 2: there is nothing on these rows to measure \['majority"):
        fairness_path(estimator, classes.X, classes.y, sensitive_features=None, **options)
    assert (path_of(estimator, classes, **options).table["mean_test_gap"] > 0).all()


@pytest.mark.slow
@pytest.mark.usefixtures("forked")
def test_processes_change_nothing(classes, path):
    other = path_of(RateParityClassifier(), classes, n_jobs=2)
    pd.testing.assert_frame_equal(other.table.drop(columns="seconds"), path.table.drop(columns="seconds"))
    for model, same in zip(other.models, path.models, strict=True):
        np.testing.assert_array_equal(model.coef_, same.coef_)


@pytest.mark.slow
def test_threads_leave_the_warnings_of_the_process_alone(classes, path):
    show = warnings.showwarning
    with parallel_config("threading"):
        other = path_of(RateParityClassifier(), classes, n_jobs=4)
    assert warnings.showwarning is show
    np.testing.assert_array_equal(other.table["mean_test_gap"], path.table["mean_test_gap"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # since Python 3.12
@pytest.mark.usefixtures("forked")
def test_warnings_of_other_processes_arrive(classes):
    estimator = RateParityClassifier(max_iter=1)
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match=r"fold 1 of 2: 0.1; fold 2 of 2: 0.1\)"):
        path_of(estimator, classes, kappas=[0.1], cv=2, n_jobs=2)


# --- pipelines


class Counting(TransformerMixin, BaseEstimator):
    """Doubles the features, and notes every fit with what it was given."""

    fits = []  # noqa: RUF012 (clones share it)

    def fit(self, X, y=None, sample_weight=None, sensitive_features=None):
        self.fits.append((len(X), sample_weight is not None, sensitive_features is not None))
        self.n_fitted_ = len(X)
        return self

    def transform(self, X):
        return 2.0 * X


@pytest.mark.slow
def test_transformers_are_fitted_once_for_all_models(classes):
    Counting.fits.clear()
    pipeline = make_pipeline(Counting(), StandardScaler(), RateParityClassifier())
    path = path_of(pipeline, classes, cv=2)
    assert Counting.fits == [(400, False, False), (200, False, False), (200, False, False)]
    first, last = path.models[0], path.models[-1]
    assert all(isinstance(model, Pipeline) for model in path.models)
    assert first[0] is last[0]
    assert [name for name, _ in first.steps] == [name for name, _ in pipeline.steps]
    assert (first[-1].kappa, last[-1].kappa) == (None, 0.02)
    assert not hasattr(pipeline[0], "n_fitted_")
    scaled = StandardScaler().fit_transform(classes.X)
    alone = fairness_path(RateParityClassifier(), scaled, classes.y, sensitive_features=classes.groups, kappas=KAPPAS)
    np.testing.assert_allclose(last.decision_function(classes.X), alone.models[-1].decision_function(scaled))
    np.testing.assert_allclose(path.table["objective"], alone.table["objective"])


@pytest.mark.slow
def test_transformers_are_fitted_once_in_every_fold(classes):
    """Also where the bounds are known only after the first fits of all folds."""
    Counting.fits.clear()
    path = path_of(make_pipeline(Counting(), RateParityClassifier()), classes, kappas=None, n_kappas=2, cv=2)
    assert Counting.fits == [(400, False, False), (200, False, False), (200, False, False)]
    given = path_of(make_pipeline(Counting(), RateParityClassifier()), classes, kappas=path.kappas, cv=2)
    pd.testing.assert_frame_equal(given.table.drop(columns="seconds"), path.table.drop(columns="seconds"))


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_transformers_get_what_they_request(classes):
    Counting.fits.clear()
    asking = Counting().set_fit_request(sample_weight=True, sensitive_features=False)
    estimator = RateParityClassifier().set_fit_request(sample_weight=True)
    path_of(make_pipeline(asking, estimator), classes, kappas=[0.1], cv=None, sample_weight=np.ones(400))
    assert Counting.fits == [(400, True, False)]


@pytest.mark.slow
def test_a_pipeline_of_one_step(classes, path):
    alone = path_of(Pipeline([("model", RateParityClassifier())]), classes)
    np.testing.assert_array_equal(alone.table["mean_test_gap"], path.table["mean_test_gap"])
    assert isinstance(alone.models[0], Pipeline)


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_rows_of_the_constraint_are_transformed_too(classes):
    """`Pipeline.transform_input` says which arguments of fit are rows."""
    half = np.arange(400) < 200
    extra = {"X_constraint": classes.X[half][:150], "sensitive_features_constraint": classes.groups[half][:150]}
    estimator = MinorityRateClassifier(rate="indicator", minority=1)
    pipeline = make_pipeline(StandardScaler(), estimator, transform_input=["X_constraint"])
    path = fairness_path(pipeline, classes.X, classes.y, sensitive_features=None, kappas=[None, 0.75], fit_params=extra)
    pipeline.set_params(minorityrateclassifier__min_share=0.25, minorityrateclassifier__warm_start=True)
    scaler = StandardScaler().fit(classes.X)
    rows = {**extra, "X_constraint": scaler.transform(extra["X_constraint"])}
    by_hand = MinorityRateClassifier(None, rate="indicator", minority=1, warm_start=True)
    for share in (None, 0.25):
        by_hand.set_params(min_share=share).fit(scaler.transform(classes.X), classes.y, **rows)
    np.testing.assert_allclose(path.models[1][-1].coef_, by_hand.coef_)
    assert path.table["gap"][1] == pytest.approx(1 - by_hand.minority_share_)


# --- performance


def test_performance_by_default(classes, numbers):
    for estimator, sample, name, metric in (
        (AUCFairClassifier(), classes, "roc_auc", lambda m, s: roc_auc_score(s.y, m.decision_function(s.X))),
        (PartialParityRegressor(), numbers, "r2", lambda m, s: r2_score(s.y, m.predict(s.X))),
        (RateParityClassifier(), classes, "accuracy", lambda m, s: accuracy_score(s.y, m.predict(s.X))),
    ):
        path = path_of(estimator, sample, kappas=[None], cv=None)
        assert path.scores == (name,)
        assert path.table[f"train_{name}"][0] == pytest.approx(metric(path.models[0], sample))
    queries = np.arange(400) % 40
    path = path_of(FairRanker(), classes, kappas=[None], fit_params={"qid": queries})
    assert path.table["train_score"][0] == path.models[0].score(classes.X, classes.y, qid=queries)


@pytest.mark.slow
def test_scores_by_name_and_by_function(classes):
    def share(estimator, X, y, sensitive_features):
        return float(np.mean(estimator.predict(X) * (sensitive_features == 1)))

    scoring = {
        "balance": "balanced_accuracy",  # of the package
        "kappa": "matthews_corrcoef",  # of scikit-learn
        "mine": share,
        "theirs": make_scorer(balanced_accuracy_score),
        "partial": make_fairness_scorer(partial_statistical_parity_gap, interval=(0.0, 0.2)),
    }
    estimator = make_pipeline(StandardScaler(), RateParityClassifier())
    path = path_of(estimator, classes, kappas=[0.1], scoring=scoring, cv=2)
    assert path.scores == tuple(scoring)
    model, row = path.models[0], path.table.iloc[0]
    predicted, scores = model.predict(classes.X), model.decision_function(classes.X)
    balanced = balanced_accuracy_score(classes.y, predicted)
    assert row["train_balance"] == row["train_theirs"] == pytest.approx(balanced)
    assert row["train_mine"] == np.mean(predicted * classes.groups)
    gap = partial_statistical_parity_gap(None, scores, sensitive_features=classes.groups, interval=(0.0, 0.2))
    assert row["train_partial"] == pytest.approx(-gap)
    assert row["mean_test_balance"] == row["mean_test_theirs"]
    for given, names in ((["roc_auc", "f1"], ("roc_auc", "f1")), ("roc_auc", ("roc_auc",)), (share, ("score",))):
        assert path_of(RateParityClassifier(), classes, kappas=[None], scoring=given, cv=None).scores == names


def test_scores_of_models_by_group_and_with_weights(classes):
    weights = 1.0 + classes.y
    path = path_of(RateParityClassifier(group_interactions=True), classes, kappas=[0.1], cv=None, sample_weight=weights)
    predicted = path.models[0].predict(classes.X, sensitive_features=classes.groups)
    assert path.table["train_accuracy"][0] == pytest.approx(accuracy_score(classes.y, predicted, sample_weight=weights))


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("speed", "'speed' is not a valid scoring value"),
        ({"gap": "accuracy"}, r"scoring has the names \['gap'\]"),
        ([], "scoring is empty"),
        ([make_scorer(accuracy_score)], "have no names; give a dict"),
        (accuracy_score, "looks like it is a metric function rather than a scorer"),
    ],
)
def test_scores_that_there_are_not(classes, scoring, message):
    with pytest.raises(ValueError, match=message):
        path_of(RateParityClassifier(), classes, scoring=scoring)


def test_errors_of_scores_name_them(classes):
    estimator = RateParityClassifier(group_interactions=True)
    with pytest.raises(ValueError, match=r"^scoring 'matthews_corrcoef': This model has coefficients of its own"):
        path_of(estimator, classes, kappas=[None], scoring="matthews_corrcoef")
