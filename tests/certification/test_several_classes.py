"""Certificates of the largest gap of a class against all others."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from fairconstrained import CertifiedFairClassifier, RateParityClassifier, certify
from fairconstrained.certification.evidence import evidence_of
from fairconstrained.certification.sample import Sample, strata_of
from fairconstrained.metrics import METRICS, equal_opportunity_gap, independence_gap, separation_gap
from fairconstrained.metrics.classes import class_log_loss, class_margins

CLASSES = np.array(["high", "low", "mid"])


class ScoresAsGiven(ClassifierMixin, BaseEstimator):
    """A model whose scores are the features."""

    def __init__(self, classes=CLASSES):
        self.classes = classes

    def fit(self, X=None, y=None):
        self.classes_ = np.asarray(self.classes)
        return self

    def decision_function(self, X):
        return X

    def predict_proba(self, X):
        return np.exp(X) / np.exp(X).sum(axis=1, keepdims=True)

    def predict(self, X):
        return self.classes_[X.argmax(axis=1)]


MODEL = ScoresAsGiven().fit()


def drawn(n_samples=400, seed=0):
    """Scores, labels and two groups; the class of number 0 is scored higher in the second group."""
    rng = np.random.default_rng(seed)
    y, groups = rng.choice(3, n_samples, p=[0.3, 0.3, 0.4]), rng.integers(0, 2, n_samples)
    scores = rng.normal(size=(n_samples, 3)) + np.eye(3)[y]
    scores[:, 0] += 0.6 * groups
    return scores, CLASSES[y], groups


def certificate(metric, rows=None, **options):
    X, y, groups = drawn() if rows is None else rows
    return certify(MODEL, X, y, sensitive_features=groups, metric=metric, random_state=0, **options)


@pytest.mark.parametrize("name", [name for name, info in METRICS.items() if info.by_class])
def test_the_bound_is_the_largest_of_those_of_the_classes(name):
    info = METRICS[name]
    params = {"interval": (0.0, 0.5)} if "partial" in name else {}
    whole = certificate(name, drawn(120), metric_params=params)
    assert whole.by_class.index.tolist() == CLASSES.tolist()
    assert whole.gap == whole.by_class["gap"].max() <= whole.upper_bound
    X, y, groups = drawn(120)
    for k, label in enumerate(CLASSES):
        said = {
            "predict": MODEL.predict(X) == label,
            "decision_function": class_margins(X)[:, k],
            "predict_proba": MODEL.predict_proba(X)[:, k],
        }
        alone = evidence_of(Sample(info.function, y == label, said[info.response], groups, params))
        assert (alone.gap, alone.upper(0.05)) == tuple(whole.by_class.loc[label])
        assert alone.method == whole.method
    assert whole.upper_bound == whole.by_class["upper_bound"].max()


def test_a_class_of_the_model_counts_though_no_row_has_it():
    # 50 rows of each group without an event: at most 1 - (delta / 2)^(1 / 50) of them in the population
    scores = np.tile([[1.0, 0.0, -1.0]], (100, 1))
    rows = scores, np.full(100, "high"), np.repeat([0, 1], 50)
    found = certificate("independence_gap", rows, method="binomial")
    end = 1 - 0.025 ** (1 / 50)
    assert found.gap == 0.0
    np.testing.assert_allclose(found.by_class["upper_bound"], end)
    advice = r"Merge small groups, or use more data. Called by itself with on_empty='nan', the metric is NaN here"
    with pytest.raises(ValueError, match=rf"class 'low' against all others: a cell that.* {advice}"):
        certificate("equal_opportunity_gap", rows)


def test_words_and_cells_say_which_class():
    found = certificate("independence_gap", kappa=0.3)
    assert "Every one of 3 classes against all others; the bound is largest for 'high'" in str(found)
    X, y, groups = drawn()
    of_numbers = certify(
        ScoresAsGiven(np.arange(3)).fit(), X, CLASSES.searchsorted(y), sensitive_features=groups, metric="independence"
    )
    assert "the bound is largest for 0, whose gap" in str(of_numbers)
    assert "none over the 3 classes" in found.union
    assert found.cells.index.names == ["class", "group"]
    X, _, groups = drawn()
    rates = [np.mean(MODEL.predict(X)[groups == g] == "high") for g in (0, 1)]
    np.testing.assert_allclose(found.cells.loc["high", "estimate"], rates)


def test_the_sample_that_would_suffice_is_that_of_the_class_that_needs_most():
    found = certificate("independence_gap", method="binomial")
    assert found.sample_size(found.gap) is None
    needed = found.sample_size(found.gap + 0.05)
    alone = [
        certificate("independence_gap", method="binomial", metric_params={"pos_label": label}).sample_size(
            found.gap + 0.05
        )
        for label in CLASSES
    ]
    assert needed == max(alone)


def test_losses_are_those_of_all_classes():
    X, y, groups = drawn()
    found = certificate("loss_parity_gap", loss_bound=20.0)
    losses = class_log_loss(X, np.searchsorted(CLASSES, y))
    np.testing.assert_allclose(found.cells["estimate"], [losses[groups == g].mean() for g in (0, 1)])
    assert (found.method, found.by_class) == ("betting", None)
    by_label = certificate("loss_parity_gap", loss_bound=20.0, metric_params={"constraint": "equalized_odds"})
    expected = losses[(groups == 1) & (y == "mid")].mean()
    assert by_label.cells.loc[(1, "mid"), "estimate"] == pytest.approx(expected)


def test_numbers_of_rows_by_label_are_left_to_chance():
    _, y, groups = drawn()
    codes, _ = strata_of(separation_gap, {}, groups, y)
    np.testing.assert_array_equal(codes, groups)
    assert len(strata_of(separation_gap, {}, groups, y == "mid")[1]) == 4


def test_a_certified_classifier():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 1500), rng.integers(0, 2, 1500)
    X = rng.normal(size=(1500, 3)) + np.eye(3)[y]
    model = CertifiedFairClassifier(
        RateParityClassifier(new_row_folds=None), kappa=0.25, metric="independence_gap", kappas=[0.1], random_state=0
    )
    model.fit(X, CLASSES[y], sensitive_features=groups)
    rows = model.calibration_rows_
    gap = independence_gap(CLASSES[y][rows], model.predict(X[rows]), sensitive_features=groups[rows])
    assert model.status_ == "certified"
    assert model.certificate_.gap == pytest.approx(gap)
    assert model.certificate_.by_class.index.tolist() == CLASSES.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("metric", [independence_gap, equal_opportunity_gap, separation_gap])
def test_coverage(metric):
    """A bound is below the gap of the population, 0.3, in at most half of 200 samples for a ``delta`` of one half.

    In less than that, as two ends that fail with a quarter each are far from one another: twice 0.67 standard errors of
    a rate are 0.95 of a difference, which 17 % of the samples exceed.
    """
    rng = np.random.default_rng(0)
    # rows by group and label, columns are predictions; the rates of class 0 differ by 0.3 for every label
    probabilities = np.array([
        [[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.2, 0.2, 0.6]],
        [[0.9, 0.05, 0.05], [0.5, 0.45, 0.05], [0.5, 0.05, 0.45]],
    ])  # fmt: skip
    failures = 0
    for _ in range(200):
        y, groups = rng.integers(0, 3, 300), rng.integers(0, 2, 300)
        chance = probabilities[groups, y].cumsum(axis=1)
        said = (rng.random(300)[:, None] > chance).sum(axis=1)
        sample = Sample(metric, y, said, groups, {}, classes=[0, 1, 2])
        failures += evidence_of(sample, "binomial").upper(0.5) < 0.3
    assert 1 <= failures <= 100
