"""Gaps of AUCs between groups and labels."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.metrics.auc_gaps import compare_groups
from fairconstrained.metrics.cell_aucs import ScoredRows, largest_centred_auc, pair_aucs, partial_steps
from fairconstrained.metrics.comparisons import AUCDifferences, PartialAUCs, given_labelled_sides, given_sides
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.rates import AGGREGATES, Aggregate, aggregate_pairs
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.validation import OnEmpty, check_groups, check_option, check_scores

__all__ = ["group_auc_gap", "inter_group_auc_gap", "intra_group_auc_gap", "partial_group_auc_gap"]


@register(
    "decision_function",
    title="One group above another, part of the ranks (pGAUC)",
    description="How far the chance that a row of one group scores above a row of another is from one half.",
    label="partial group AUC gap",
    unit="AUC",
    symbol="pGAUC",
    compared=PartialAUCs(),
)
def partial_group_auc_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    interval: Any = (0.0, 1.0),
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference between one half and the AUC of one group over another within an interval of ranks (pGAUC).

    With the rank :math:`\bar F_g(\theta) = P(s > \theta \mid g)` and :math:`I = [\alpha, \beta)`,

    .. math::
        \max_{g, g'} \left| P\left(s \ge s' \mid g, g', \bar F_g(s) \in I, \bar F_{g'}(s') \in I\right)
        - \tfrac{1}{2} \right|,

    in which a tie :math:`s = s'` counts one half.

    Returns
    -------
    gap : float
        Gap in [0, 1/2], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``against``, the group from which it differs most; ``auc``,
        the probability that a row of the group outranks one of that group within the interval. Only if
        ``return_groups``.

    Notes
    -----
    A row (or a block of ties) that straddles an end of the interval counts with the fraction inside, which is
    the mean over all orders of the ties. One row changes the gap by at most its share of the group divided by
    the length of the interval, which is :func:`granularity`. Time: one sort, then linear in the number of rows
    times the number of groups; no pairs of rows are formed.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: appendix A, eq. (37); eq. (36) for the whole interval; remark 5.3 for
       unions and intervals by group.

    Examples
    --------
    >>> from fairconstrained.metrics import partial_group_auc_gap
    >>> group, score = list("aaaabbbb"), [8, 7, 4, 3, 8, 6, 2, 1]
    >>> partial_group_auc_gap(None, score, sensitive_features=group, interval=(0, 0.5))
    0.125
    """
    scores = check_scores(y_score, y_true)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    intervals = PercentileIntervals.parse(interval, rows.labels)
    check_option("agg", agg, AGGREGATES)
    if agg == "max" and not return_groups:  # the largest gap needs no table of all pairs
        return rows.gap(largest_centred_auc(partial_steps(ScoredRows.of(scores, *rows.arrays), intervals)))
    aucs = pair_aucs(scores, *rows.arrays, intervals)
    gaps = np.abs(aucs - 0.5)
    gap = rows.gap(aggregate_pairs(gaps, agg))
    if not return_groups:
        return gap
    worst = gaps.argmax(axis=1)
    against = [rows.labels[code] for code in worst]
    return gap, rows.table(against=against, auc=aucs[np.arange(rows.n_groups), worst])


@register(
    "decision_function",
    title="One group above another (group AUC)",
    description="How far the chance that a row of one group scores above a row of another is from one half.",
    unit="AUC",
    compared=AUCDifferences("group_auc"),
    given=given_sides,
)
def group_auc_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    protected: Hashable = None,
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference between one half and the AUC of one group over another (group AUC).

    .. math:: \max_{g, g'} \left| P(s \ge s' \mid g, g') - \tfrac{1}{2} \right|,

    in which a tie :math:`s = s'` counts one half. It measures how well the score separates the groups.

    Returns
    -------
    gap : float
        Gap in [0, 1/2], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``against``, the group from which it differs most; ``auc``,
        the probability that a row of the group outranks one of that group, NaN for a single group. Only if
        ``return_groups``.

    See Also
    --------
    partial_group_auc_gap : The same within a percentile interval.

    Notes
    -----
    One row changes the gap by at most its share of its group.

    References
    ----------
    .. [1] Yao, Lin, Yang, arXiv:2212.12603: definition 2 and example 1.

    Examples
    --------
    >>> from fairconstrained.metrics import group_auc_gap
    >>> group_auc_gap(None, [8, 7, 4, 3, 8, 6, 2, 1], sensitive_features=list("aaaabbbb"))
    0.15625
    """
    found = compare_groups("group_auc", y_true, y_score, sensitive_features, sample_weight, protected=protected)
    return found.result(agg, return_groups, ["auc"], against=True)


@register(
    "decision_function",
    title="Positives of one group, negatives of another (inter-group AUC)",
    description="Difference between the chance that a positive of one group scores above a negative of the other, and "
    "the same with the groups exchanged.",
    label="inter-group AUC gap",
    unit="AUC",
    aliases=("inter_group",),
    compared=AUCDifferences("inter_group"),
    given=given_labelled_sides,
)
def inter_group_auc_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    protected: Hashable = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the AUCs between one group's positives and another's negatives (xAUC, inter-group).

    .. math:: \max_{g, g'} \left| P(s \ge s' \mid g, y = 1, g', y' = 0) - P(s \ge s' \mid g', y = 1, g, y' = 0) \right|,

    in which a tie :math:`s = s'` counts one half.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``against``, the group with which the gap is largest; ``auc``
        of the group's positives against that group's negatives; ``reverse_auc`` of that group's positives against the
        group's negatives; both NaN for a single group. Only if ``return_groups``.

    Notes
    -----
    One row changes the gap by at most its share of its cell of group and label.

    References
    ----------
    .. [1] N. Kallus, A. Zhou, "The Fairness of Risk Scores Beyond Classification: Bipartite Ranking and the xAUC
       Metric", NeurIPS 2019.
    .. [2] He, Huang, Yao, Lin, arXiv:2505.12530: eq. (104).
    .. [3] Yao, Lin, Yang, arXiv:2212.12603: definition 2 and example 2.
    """
    found = compare_groups(
        "inter_group", y_true, y_score, sensitive_features, sample_weight, pos_label, protected, on_empty
    )
    return found.result(agg, return_groups, ["auc", "reverse_auc"], against=True, on_empty=on_empty)


@register(
    "decision_function",
    title="Ranking within the groups (intra-group AUC)",
    description="Difference of two groups in how well the score tells their own positives from their own negatives.",
    label="intra-group AUC gap",
    unit="AUC",
    aliases=("intra_group",),
    compared=AUCDifferences("intra_group"),
    given=given_labelled_sides,
)
def intra_group_auc_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    protected: Hashable = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the AUCs within the groups (intra-group).

    .. math:: \max_{g, g'} |\mathrm{AUC}_g - \mathrm{AUC}_{g'}|, \qquad
              \mathrm{AUC}_g = P(s \ge s' \mid y = 1, y' = 0, \text{both of group } g),

    in which a tie :math:`s = s'` counts one half.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``, ``auc``, which is NaN for a single group. Only if
        ``return_groups``.

    Notes
    -----
    One row changes the gap by at most its share of its cell of group and label.

    References
    ----------
    .. [1] A. Beutel et al., "Fairness in Recommendation Ranking through Pairwise Comparisons", KDD 2019.
    .. [2] He, Huang, Yao, Lin, arXiv:2505.12530: eq. (106).
    .. [3] Yao, Lin, Yang, arXiv:2212.12603: definition 2 and example 3.
    """
    found = compare_groups(
        "intra_group", y_true, y_score, sensitive_features, sample_weight, pos_label, protected, on_empty
    )
    return found.result(agg, return_groups, ["auc"], on_empty=on_empty)
