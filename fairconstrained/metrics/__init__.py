"""Fairness metrics as numpy functions whose definitions a user can check by hand.

Every metric is called ``metric(y_true, y_pred or y_score, *, sensitive_features, sample_weight=None, ...)``,
returns a float (0 is fair, smaller is better), and is listed in ``METRICS`` with an entry: the estimator response that
it reads, its names, its sentence in a report, and what it compares, from which certificates follow. A new metric is one
function with the ``register`` decorator. Not listed are
only ``subset_auc_gap`` and ``conditional_parity_gap``, whose subsets and strata only the user knows,
``pairwise_ranking_gap``, which takes queries, and ``group_rates``, ``minority_share`` and ``parity_pair``, which need
not be zero where all is fair.
"""

from fairconstrained.metrics.auc import (
    group_auc_gap,
    inter_group_auc_gap,
    intra_group_auc_gap,
    partial_group_auc_gap,
)
from fairconstrained.metrics.decision_rates import (
    accuracy_ratio_gap,
    conditional_parity_gap,
    demographic_parity_ratio_gap,
    equal_opportunity_ratio_gap,
    equalized_odds_ratio_gap,
    error_rate_parity_gap,
    error_rate_ratio_gap,
    predictive_equality_gap,
    predictive_equality_ratio_gap,
    predictive_parity_gap,
    predictive_parity_ratio_gap,
)
from fairconstrained.metrics.group_means import loss_parity_gap, rate_gap
from fairconstrained.metrics.group_rates import group_rates
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.partial import (
    granularity,
    partial_demographic_parity_gap,
    partial_statistical_parity_gap,
)
from fairconstrained.metrics.partial_odds import partial_equal_opportunity_gap, partial_equalized_odds_gap
from fairconstrained.metrics.ranking import pairwise_ranking_gap
from fairconstrained.metrics.registry import METRICS, MetricInfo, find_metric, metric_names, register
from fairconstrained.metrics.score import score_curve, statistical_parity_gap, wasserstein_gap
from fairconstrained.metrics.shares import minority_share, parity_pair
from fairconstrained.metrics.subgroup_auc import (
    bpsn_bnsp_gap,
    negative_equality_gap,
    positive_equality_gap,
    subset_auc_gap,
)
from fairconstrained.metrics.threshold import (
    equal_opportunity_gap,
    inaccuracy,
    independence_gap,
    separation_gap,
    sufficiency_gap,
)

__all__ = [
    "METRICS",
    "MetricInfo",
    "PercentileIntervals",
    "accuracy_ratio_gap",
    "bpsn_bnsp_gap",
    "conditional_parity_gap",
    "demographic_parity_ratio_gap",
    "equal_opportunity_gap",
    "equal_opportunity_ratio_gap",
    "equalized_odds_ratio_gap",
    "error_rate_parity_gap",
    "error_rate_ratio_gap",
    "find_metric",
    "granularity",
    "group_auc_gap",
    "group_rates",
    "inaccuracy",
    "independence_gap",
    "inter_group_auc_gap",
    "intra_group_auc_gap",
    "loss_parity_gap",
    "metric_names",
    "minority_share",
    "negative_equality_gap",
    "pairwise_ranking_gap",
    "parity_pair",
    "partial_demographic_parity_gap",
    "partial_equal_opportunity_gap",
    "partial_equalized_odds_gap",
    "partial_group_auc_gap",
    "partial_statistical_parity_gap",
    "positive_equality_gap",
    "predictive_equality_gap",
    "predictive_equality_ratio_gap",
    "predictive_parity_gap",
    "predictive_parity_ratio_gap",
    "rate_gap",
    "register",
    "score_curve",
    "separation_gap",
    "statistical_parity_gap",
    "subset_auc_gap",
    "sufficiency_gap",
    "wasserstein_gap",
]
