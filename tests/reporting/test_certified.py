"""Certificates from the rows of a report: the same numbers as in its gaps, and as of a model with these answers."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from fairconstrained import FairnessReport, certify, fairness_report
from fairconstrained.datasets import make_biased_classification


@pytest.mark.parametrize("probabilities", [False, True])
def test_every_gap_is_that_of_the_report(rows, probabilities):
    y_true, scores, groups = rows
    given = (
        {"y_score": 1 / (1 + np.exp(-scores)), "threshold": 0.6}
        if probabilities
        else {"y_score": scores, "threshold": 0.3}
    )
    report = fairness_report(y_true, sensitive_features=groups, interval=(0, 0.3), n_resamples=0, **given)
    quick = report.gaps.index.difference(["loss_parity_gap", "wasserstein_gap"])
    for metric in quick:
        report = report.certified(metric)
    assert {found.metric: found.gap for found in report.certificates} == dict(report.gaps["value"][quick])


def test_bounds_are_those_of_a_model_with_these_answers():
    X, y, groups = make_biased_classification(1000, random_state=0)
    model = LogisticRegression().fit(X, y)
    report = fairness_report(y, model.decision_function(X), sensitive_features=groups, n_resamples=0)
    for metric in ("independence_gap", "group_auc_gap"):
        expected = certify(model, X, y, sensitive_features=groups, metric=metric, kappa=0.5)
        found = report.certified(metric, kappa=0.5).certificates[-1]
        assert (found.gap, found.method) == (expected.gap, expected.method)
        assert found.upper_bound == expected.upper_bound
        assert found.passed is expected.passed


def test_the_report_shows_its_certificates(report):
    certified = report.certified("demographic_parity", kappa=0.4, delta=0.1).certified("equalized_odds")
    assert report.certificates == ()
    for words in (str(certified), certified.to_html()):
        assert "independence_gap is at most" in words
        assert "with 0.9 confidence" in words
        assert "separation_gap is at most" in words
    assert "<p><strong>Positive rate (demographic parity)</strong></p>" in certified.to_html()
    assert "In the population" not in report.to_html()


def test_what_cannot_be_certified_is_refused(rows):
    y_true, scores, groups = rows
    decisions = fairness_report(y_true, None, y_pred=(scores > 0).astype(int), sensitive_features=groups, n_resamples=0)
    with pytest.raises(ValueError, match="'group_auc' needs y_score"):
        decisions.certified("group_auc")
    with pytest.raises(ValueError, match="metric must be one of"):
        decisions.certified("other")
    weighted = fairness_report(
        y_true, scores, sensitive_features=groups, sample_weight=np.ones(len(scores)), n_resamples=0
    )
    with pytest.raises(ValueError, match="equal weight: leave out the weights"):
        weighted.certified("independence_gap")
    several = fairness_report(
        np.arange(600) % 3, np.eye(3)[np.arange(600) % 3], sensitive_features=groups, n_resamples=0
    )
    with pytest.raises(ValueError, match="two classes: choose the positive one"):
        several.certified("independence_gap")
    X = scores[:, None]
    of_model = FairnessReport.from_estimator(
        LogisticRegression().fit(X, y_true), X, y_true, sensitive_features=groups, n_resamples=0
    )
    with pytest.raises(ValueError, match=r"report of a model: fairconstrained.certify\(model"):
        of_model.certified("independence_gap")
