"""Cross-fitted scores: weights, seeds, and groups that overlap."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairHeadClassifier, LossParityClassifier, PartialParityClassifier, fairness_path
from fairconstrained.datasets import make_biased_classification
from fairconstrained.heads import CrossFittedScores

X, Y, GROUPS = make_biased_classification(n_samples=300, random_state=0)
META = {
    "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
    "boosted": AdaBoostClassifier(n_estimators=2, random_state=0),
    "bagged": BaggingClassifier(LogisticRegression(), 2, random_state=0),
}


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", META)
def test_meta_estimators_take_weights_without_a_request(name, routing):
    weights = np.random.default_rng(0).integers(1, 9, Y.size).astype(float)
    features = []
    for given in (None, weights):
        scores = CrossFittedScores(META[name], group_estimator=None, cv=3, random_state=0)
        with warnings.catch_warnings(), sklearn.config_context(enable_metadata_routing=routing):
            warnings.simplefilter("error")
            features.append(scores.fit_transform(X, Y, sensitive_features=GROUPS, sample_weight=given))
    assert features[0].shape != features[1].shape or not np.allclose(*features)


def test_numpys_generator_stays_as_it_was():
    before = np.random.get_state()[1:3]  # noqa: NPY002
    CrossFittedScores(LogisticRegression(), cv=3).fit(X, Y, sensitive_features=GROUPS)
    after = np.random.get_state()[1:3]  # noqa: NPY002
    assert (before[0] == after[0]).all()
    assert before[1] == after[1]


def test_groups_of_rows_are_not_kept():
    scores = CrossFittedScores(LogisticRegression(), cv=3, random_state=0).fit(X, Y, sensitive_features=GROUPS)
    assert scores.groups_.columns.size == 0
    assert scores.groups_.labels == (0, 1)


def test_groups_of_pictures_need_a_classifier_that_takes_them():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 1))
    network = LossParityClassifier(None, module=module, max_epochs=2, random_state=0)
    pictures = X[:, :4].reshape(-1, 2, 2)
    scores = CrossFittedScores(network, cv=2)
    with pytest.raises(ValueError, match=r"X has 3 dimensions. Pass a classifier that takes such rows"):
        scores.fit(pictures, Y, sensitive_features=GROUPS)
    scores.set_params(group_estimator=None).fit(pictures, Y, sensitive_features=GROUPS)
    assert scores.transform(pictures).shape == (300, 1)


@pytest.fixture(scope="module")
def overlapping():
    table = pd.DataFrame({"a": GROUPS == 1, "b": X[:, 0] > 0})
    return CrossFittedScores(LogisticRegression(), use_groups=True, cv=3).fit(X, Y, sensitive_features=table), table


def test_groups_that_overlap_are_found_by_name(overlapping):
    scores, table = overlapping
    expected = scores.transform(X, sensitive_features=table)
    for same in (table[["b", "a"]], table.to_numpy(), table.astype(int)):
        np.testing.assert_array_equal(scores.transform(X, sensitive_features=same), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.rename(columns={"b": "c"}), "has the columns .*'c'.* in fit it had .*'b'"),
        (lambda table: table[["a"]], "has 1 columns, in fit it had 2"),
        (lambda table: table * 7, "must hold True and False"),
        (lambda table: table.astype(str), "must hold True and False"),
    ],
)
def test_other_tables_of_groups_are_refused(overlapping, change, message):
    scores, table = overlapping
    with pytest.raises(ValueError, match=message):
        scores.transform(X, sensitive_features=change(table))


@pytest.mark.slow
def test_a_path_takes_steps_that_are_named_like_those_of_the_head():
    head = FairHeadClassifier(LogisticRegression(), PartialParityClassifier(), cv=3, random_state=0)
    inner = Pipeline([("scale", StandardScaler()), ("head", head)])
    pipeline = Pipeline([("scores", StandardScaler()), ("scale", StandardScaler()), ("all", inner)])
    (model,) = fairness_path(pipeline, X, Y, sensitive_features=GROUPS, kappas=[0.1]).models
    assert [name for name, _ in model.steps] == ["scores", "scale", "all"]
    assert [name for name, _ in model[-1].steps] == ["scale", "head"]
    flat = Pipeline([("one", StandardScaler()), ("two", StandardScaler()), ("three", StandardScaler()), ("four", head)])
    (expected,) = fairness_path(flat, X, Y, sensitive_features=GROUPS, kappas=[0.1]).models
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


@pytest.mark.parametrize("frozen", [False, True])
def test_the_rows_of_a_finished_models_own_fit_are_refused(frozen):
    own = Pipeline([("scale", StandardScaler()), ("fair", PartialParityClassifier(0.2))])
    with sklearn.config_context(enable_metadata_routing=True):
        own.fit(X[:200], Y[:200], sensitive_features=GROUPS[:200])
    options = {"group_estimator": None, "cv": 5 if frozen else "prefit"}
    scores = CrossFittedScores(FrozenEstimator(own) if frozen else own, **options)
    with pytest.raises(ValueError, match="67% of the rows are among those that Pipeline was fitted on"):
        scores.fit(X, Y, sensitive_features=GROUPS)
    scores.fit(X[200:], Y[200:], sensitive_features=GROUPS[200:])
    own[-1].forget_rows()
    scores.fit(X, Y, sensitive_features=GROUPS)


def test_a_path_keeps_the_cache_of_a_pipeline(tmp_path):
    steps = [("one", StandardScaler()), ("two", StandardScaler()), ("fair", PartialParityClassifier())]
    path = fairness_path(Pipeline(steps, memory=str(tmp_path)), X, Y, sensitive_features=GROUPS, kappas=[0.2])
    assert path.models[0].memory == str(tmp_path)
    assert list(tmp_path.rglob("*.pkl"))
