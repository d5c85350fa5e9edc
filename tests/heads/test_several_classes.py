"""Heads of more than two classes on a forest and on finished models."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils import get_tags

from fairconstrained import (
    FairHeadClassifier,
    LossParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
    metrics,
)


@pytest.fixture(scope="module")
def sample():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 4))
    X[:, :2] += 0.6 * groups[:, None]
    weights = np.random.default_rng(7).normal(size=(4, 3)) * 1.5
    return X, (X @ weights + rng.gumbel(size=(600, 3))).argmax(axis=1), groups


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(30, min_samples_leaf=5, random_state=0)


HEADS = {
    "rates": (RateParityClassifier(0.06, new_row_folds=None), metrics.independence_gap),
    "opportunity": (
        PartialParityClassifier(0.06, constraint="equal_opportunity", new_row_folds=None),
        metrics.equal_opportunity_gap,
    ),
    "losses": (
        LossParityClassifier(0.02, hidden_layer_sizes=(4,), random_state=0, max_epochs=20, new_row_folds=None),
        metrics.loss_parity_gap,
    ),
}


@pytest.mark.parametrize(("head", "metric"), HEADS.values(), ids=HEADS)
def test_the_head_keeps_its_bound_on_the_cross_fitted_scores(sample, forest, head, metric):
    X, y, groups = sample
    model = FairHeadClassifier(forest, head, cv=3, random_state=0).fit(X, y, sensitive_features=groups)
    (name,) = model.constraint_values_
    assert model.constraint_values_[name] <= head.kappa + model.granularity_[name]
    assert model.status_ in ("optimal", "completed")
    assert model.predict_proba(X).shape == (600, 3)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert get_tags(model).classifier_tags.multi_class
    # the rows of the fit, as the final forest scores them: the metric that a user reads
    of_metric = model.decision_function(X) if metric is metrics.loss_parity_gap else model.predict(X)
    read = metric(y, of_metric, sensitive_features=groups)
    assert model.constraint_values(X, y, sensitive_features=groups)[name] == pytest.approx(read, abs=1e-9)
    assert model.score(X, y) > 0.5


def test_a_finished_model_of_several_classes(sample, forest):
    X, y, groups = sample
    forest.fit(X[:300], y[:300])
    model = FairHeadClassifier(forest, RateParityClassifier(0.1, new_row_folds=None), cv="prefit", random_state=0)
    model.fit(X[300:], y[300:], sensitive_features=groups[300:])
    gap = metrics.independence_gap(y[300:], model.predict(X[300:]), sensitive_features=groups[300:])
    assert gap <= 0.1 + model.granularity_["demographic_parity"] + 1e-9
