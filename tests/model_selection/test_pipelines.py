"""Models inside of pipelines, searches and other estimators."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained.model_selection.pipelines import before_last_step, last_step, model_with, nested_models

X = np.random.default_rng(0).normal(size=(60, 2)) * 5 + 3
y = (X[:, 0] > 3).astype(int)
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.fixture
def pipeline():
    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)


def test_every_part_receives_its_rows(pipeline):
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2)
    tuned = TunedThresholdClassifierCV(FrozenEstimator(search.fit(X, y)), cv="prefit", refit=False).fit(X, y)
    parts = list(nested_models(tuned, X))
    kinds = ["TunedThresholdClassifierCV", "GridSearchCV", "Pipeline", "LogisticRegression"]
    assert [type(part).__name__ for part, _ in parts] == kinds
    np.testing.assert_array_equal(parts[2][1], X)
    np.testing.assert_allclose(parts[3][1], SCALED)
    assert parts[2][0] is search.best_estimator_
    assert parts[3][0] is last_step(search.best_estimator_)


def test_the_outermost_part_with_an_attribute_comes_with_its_rows(pipeline):
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, cv=2).fit(X, y)
    part, rows = model_with("coef_", search, X)
    assert part is last_step(search.best_estimator_)
    np.testing.assert_allclose(rows, SCALED)
    assert model_with("steps", search)[0] is search.best_estimator_
    assert model_with("no_such_attribute", search, X) == (search, X)


def test_pipelines_in_pipelines_transform_once_each(pipeline):
    outer = make_pipeline(StandardScaler(with_std=False), clone(pipeline)).fit(X, y)
    *_, (innermost, rows) = nested_models(outer, X)
    assert isinstance(innermost, LogisticRegression)
    np.testing.assert_allclose(rows, SCALED)


def test_without_rows_nothing_is_transformed(pipeline):
    unfitted = clone(pipeline)
    assert [(type(part).__name__, rows) for part, rows in nested_models(unfitted)] == [
        ("Pipeline", None),
        ("LogisticRegression", None),
    ]
    assert list(nested_models(None)) == []


def test_before_the_last_step(pipeline):
    np.testing.assert_allclose(before_last_step(pipeline, X), SCALED)
    assert before_last_step(pipeline[-1], X) is X
    assert before_last_step(make_pipeline(LogisticRegression()), X) is X
