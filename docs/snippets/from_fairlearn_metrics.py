"""Metrics of Fairlearn beside those of this package: the same numbers."""

from functools import partial

import fairlearn.metrics as fairlearn_metrics
import numpy as np
from fairlearn.metrics import MetricFrame, make_derived_metric, selection_rate
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from fairconstrained import fairness_report
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import conditional_parity_gap, find_metric, group_rates
from fairconstrained.model_selection import get_fairness_scorer, make_fairness_scorer

X, y, group = make_biased_classification(
    3000, group_proportions=(0.5, 0.3, 0.2), positive_rates=(0.6, 0.3, 0.4), random_state=0
)
model = LogisticRegression().fit(X, y)
decisions, scores = model.predict(X), model.decision_function(X)
department = np.random.default_rng(0).integers(0, 2, y.size)
weights = 1.0 + (np.arange(y.size) % 3)

# by name
rows = {"sensitive_features": group, "sample_weight": weights}
for name in ("demographic_parity_difference", "demographic_parity_ratio", "equalized_odds_ratio"):
    theirs = getattr(fairlearn_metrics, name)(y, decisions, **rows)
    ours, _ = find_metric(name)  # the entry of the metric, also of get_fairness_scorer and certify
    gap = ours.function(y, decisions, **rows)
    print(f"{name:30s} {theirs:.4f} {ours.name:30s} {gap:.4f}")
# end of by name
for name in fairlearn_metrics.__all__:
    for ending, as_gap in (("_difference", lambda value: value), ("_ratio", lambda value: 1 - value)):
        if name.endswith(ending) and name not in ("true_negative_rate_ratio", "false_negative_rate_ratio"):
            theirs = getattr(fairlearn_metrics, name)(y, decisions, **rows)
            assert np.isclose(find_metric(name)[0].function(y, decisions, **rows), as_gap(theirs)), name

# any rate
theirs = fairlearn_metrics.demographic_parity_difference(y, decisions, method="to_overall", **rows)
ours = group_rates(y, scores, rule="to_overall", **rows)
print("largest distance from all rows", theirs, ours)
theirs = fairlearn_metrics.recall_score_group_min(y, decisions, **rows)
ours = group_rates(y, scores, rate="true_positive", rule="floor", **rows)
print("least true positive rate", theirs, ours)
theirs = fairlearn_metrics.zero_one_loss_group_max(y, decisions, **rows)
ours = group_rates(y, scores, rate="error", rule="ceiling", **rows)
print("largest error rate", theirs, ours)
theirs = fairlearn_metrics.false_negative_rate_ratio(y, decisions, **rows)
ours = 1 - group_rates(y, scores, rate="false_negative", rule="ratio", **rows)
print("ratio of false negative rates", theirs, ours)
# end of any rate
assert np.isclose(theirs, ours)
for theirs, rate, rule in (
    (fairlearn_metrics.recall_score_group_min, "true_positive", "floor"),
    (fairlearn_metrics.precision_score_group_min, "positive_predictive_value", "floor"),
    (fairlearn_metrics.accuracy_score_group_min, "accuracy", "floor"),
    (fairlearn_metrics.zero_one_loss_group_max, "error", "ceiling"),
    (partial(fairlearn_metrics.demographic_parity_difference, method="to_overall"), "selection", "to_overall"),
):
    assert np.isclose(theirs(y, decisions, **rows), group_rates(y, scores, rate=rate, rule=rule, **rows))
theirs = fairlearn_metrics.true_negative_rate_ratio(y, decisions, **rows)
assert np.isclose(theirs, 1 - group_rates(y, scores, rate="true_negative", rule="ratio", **rows))
theirs = fairlearn_metrics.log_loss_group_max(y, model.predict_proba(X)[:, 1], **rows)
assert np.isclose(theirs, group_rates(y, scores, rate="log_loss", rule="ceiling", **rows))

# control features
frame = MetricFrame(
    metrics=selection_rate,
    y_true=y,
    y_pred=decisions,
    sensitive_features=group,
    control_features=department,
    sample_params={"sample_weight": weights},
)
gap, table = conditional_parity_gap(y, decisions, strata=department, return_groups=True, **rows)
print(frame.by_group, frame.difference().max(), table, gap, sep="\n")
# end of control features
assert np.isclose(frame.difference().max(), gap)
assert np.allclose(frame.by_group.to_numpy(), table.filter(like="selection").to_numpy().T.ravel())

# frame
report = fairness_report(y, scores, sensitive_features=group, sample_weight=weights, n_resamples=0)
print(report.table[["n_samples", "positive_rate", "true_positive_rate", "accuracy"]])
frame = report.to_metric_frame()  # a MetricFrame with the same numbers
print(frame.difference())
# end of frame
assert np.allclose(frame.by_group["positive_rate"], report.table["positive_rate"].loc[frame.by_group.index])

# scorers
scorer = get_fairness_scorer("neg_equalized_odds_difference")
print(scorer(model, X, y, sensitive_features=group))
derived = make_derived_metric(metric=f1_score, transform="difference", sample_param_names=["sample_weight"])
scorer = make_fairness_scorer(derived, response="predict")
print(scorer(model, X, y, sensitive_features=group))
# end of scorers
assert np.isclose(scorer(model, X, y, sensitive_features=group), -derived(y, decisions, sensitive_features=group))
