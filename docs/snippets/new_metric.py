"""A metric of one's own: one function with one entry, and certificates, scorers and reports know it."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairconstrained import certify
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import register
from fairconstrained.metrics.comparisons import CellRates, Comparison, MetricRows
from fairconstrained.metrics.contrasts import PairGaps
from fairconstrained.metrics.validation import check_binary_labels, check_groups
from fairconstrained.model_selection import get_fairness_scorer
from fairconstrained.reporting import fairness_report


def missed(rows: MetricRows) -> Comparison:
    """Positives among the negative decisions in each group: a rate, so that exact binomial bounds hold."""
    labels = check_binary_labels(rows.y_true, rows.response)
    contrast = PairGaps(n_groups=len(rows.groups.names))
    return Comparison(labels.y_true, ~labels.y_pred[None], ("rejected",), rows.groups, contrast)


@register(
    "predict",
    title="False omission rate",
    description="Difference between the shares of positives among those of two groups with a negative decision.",
    aliases=("false_omission_rate_parity",),
    compared=CellRates(missed),
    given=("group", "response"),
)
def false_omission_rate_gap(y_true, y_pred, *, sensitive_features, sample_weight=None):
    """Largest difference between the groups' false omission rates."""
    labels = check_binary_labels(y_true, y_pred)
    rows = check_groups(sensitive_features, sample_weight, labels.y_true.size)
    weights = np.where(labels.y_pred, 0.0, rows.weights)
    rates = np.bincount(rows.codes, weights * labels.y_true) / np.bincount(rows.codes, weights)
    return float(np.ptp(rates))


X, y, group = make_biased_classification(n_samples=6000, random_state=0)
model = LogisticRegression().fit(X[:3000], y[:3000])
new = {"sensitive_features": group[3000:]}

certificate = certify(model, X[3000:], y[3000:], metric="false_omission_rate", kappa=0.2, **new)
print(certificate)

score = get_fairness_scorer("neg_false_omission_rate")(model, X[3000:], y[3000:], **new)
print(f"score: {score:.3f}")

report = fairness_report(y[3000:], model.decision_function(X[3000:]), metrics=["false_omission_rate"], **new)
print(report.gaps.loc["false_omission_rate_gap", ["gap", "value", "lower", "upper"]])
