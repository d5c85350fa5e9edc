"""A metric of one's own: one function with one entry, and certificates, scorers and reports know it."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairconstrained import certify
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import register
from fairconstrained.metrics.comparisons import CellRates, Comparison, MetricRows, gaps_of_pairs
from fairconstrained.metrics.validation import check_binary_labels, check_groups
from fairconstrained.model_selection import get_fairness_scorer
from fairconstrained.reporting import fairness_report


def false_alarms(rows: MetricRows) -> Comparison:
    """Positive predictions among the negatives of each group: a rate, so that exact binomial bounds hold."""
    labels = check_binary_labels(rows.y_true, rows.response)
    groups = check_groups(rows.sensitive_features, None, labels.y_true.size).groups
    return Comparison(labels.y_pred, ~labels.y_true[None], ("negatives",), groups, gaps_of_pairs(rows, groups, 1))


@register(
    "predict",
    title="False positive rate (predictive equality)",
    description="Difference between the shares of the negatives of two groups that get a positive decision.",
    aliases=("predictive_equality",),
    compared=CellRates(false_alarms),
    given=("group", "label"),
)
def false_positive_rate_gap(y_true, y_pred, *, sensitive_features, sample_weight=None):
    """Largest difference between the groups' false positive rates."""
    labels = check_binary_labels(y_true, y_pred)
    rows = check_groups(sensitive_features, sample_weight, labels.y_true.size)
    weights = np.where(labels.y_true, 0.0, rows.weights)
    rates = np.bincount(rows.codes, weights * labels.y_pred) / np.bincount(rows.codes, weights)
    return float(np.ptp(rates))


X, y, group = make_biased_classification(n_samples=6000, random_state=0)
model = LogisticRegression().fit(X[:3000], y[:3000])
new = {"sensitive_features": group[3000:]}

certificate = certify(model, X[3000:], y[3000:], metric="predictive_equality", kappa=0.2, **new)
print(certificate)

score = get_fairness_scorer("neg_predictive_equality")(model, X[3000:], y[3000:], **new)
print(f"score: {score:.3f}")

report = fairness_report(y[3000:], model.decision_function(X[3000:]), metrics=["predictive_equality"], **new)
print(report.gaps.loc["false_positive_rate_gap", ["gap", "value", "lower", "upper"]])
