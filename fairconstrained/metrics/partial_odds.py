"""Gaps between groups within a percentile interval and among rows of equal label."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.metrics.comparisons import (
    CellRates,
    Comparison,
    MetricRows,
    NotOffered,
    contrast_of_ranks,
    label_blocks,
)
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.label_ranks import RANKS, Ranks
from fairconstrained.metrics.ranks import gaps_by_threshold, pair_gaps
from fairconstrained.metrics.rates import AGGREGATES, Aggregate, aggregate_pairs
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.validation import (
    GroupedRows,
    OnEmpty,
    check_cells,
    check_groups,
    check_option,
    check_scores,
    check_threshold,
    check_true_labels,
)

__all__ = ["partial_equal_opportunity_gap", "partial_equalized_odds_gap"]

# Columns of the tables, by label.
_RATES = ("false_positive_rate", "true_positive_rate")


def _by_label(rows: MetricRows, among: Sequence[int] = (0, 1)) -> Comparison:
    """Ranks of one threshold among the rows of each of these labels of a group."""
    if rows.params.get("ranks", "group_and_label") != "group_and_label":
        raise NotOffered(
            "Its bounds need an interval with known ends; with ranks='group' its ends within a label are estimates."
        )
    scores = check_scores(rows.response)
    groups = rows.groups
    positive, labels = check_true_labels(rows.y_true)
    blocks, names = label_blocks(positive, "y_true", labels, among)
    above = scores > rows.params.get("threshold", 0.0)
    return Comparison(above, blocks, names, groups, contrast_of_ranks(rows.params, groups.names, len(blocks)))


def _given(params: dict[str, Any]) -> tuple[str, ...]:
    """Numbers of rows by group, and by label where ranks are those among the rows of a label."""
    return ("group",) if params.get("ranks") == "group" else ("group", "label")


@register(
    "decision_function",
    title="True positive rate, part of the ranks (pEOP)",
    description="Difference between the shares of the positives of two groups above the threshold, divided by the "
    "length of the interval.",
    symbol="pEOP",
    compared=CellRates(partial(_by_label, among=[1])),
    given=_given,
)
def partial_equal_opportunity_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    interval: Any = (0.0, 1.0),
    threshold: float = 0.0,
    normalize: bool = True,
    ranks: Ranks = "group_and_label",
    pos_label: Any = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the groups' true positive rates within a percentile interval (pEOP).

    The partial demographic parity gap among the positives. With ``ranks="group_and_label"`` the ranks are those among
    the positives of a group, :math:`\bar F_{g,1}(\theta) = P(s > \theta \mid g, y = 1)`; with
    :math:`I = [\alpha, \beta)` and the threshold :math:`\hat\theta`,

    .. math::
        \max_{g, g'} \left| P(s > \hat\theta \mid g, y = 1, \bar F_{g,1}(s) \in I)
        - P(s > \hat\theta \mid g', y = 1, \bar F_{g',1}(s) \in I) \right|
        = \max_{g, g'}
        \frac{|\mathrm{clip}(\bar F_{g,1}(\hat\theta)) - \mathrm{clip}(\bar F_{g',1}(\hat\theta))|}{\beta - \alpha},

    where :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`. With ``normalize=False`` a pair counts
    with :math:`|\bar F_{g,1}(\hat\theta) - \bar F_{g',1}(\hat\theta)|` if either rank lies in the interval, and
    with 0 otherwise.

    With ``ranks="group"`` the ranks are those in the whole group, :math:`\bar F_g(\theta) = P(s > \theta \mid g)`,

    .. math::
        \max_{g, g'} \left| P(s > \hat\theta \mid g, y = 1, \bar F_g(s) \in I)
        - P(s > \hat\theta \mid g', y = 1, \bar F_{g'}(s) \in I) \right|.

    The positives of a group at these ranks are those at ranks :math:`[\alpha_g, \beta_g)` among its positives, where
    :math:`\alpha_g` and :math:`\beta_g` are the shares of its positives in the top :math:`\alpha` and
    :math:`\beta` of the group. With this interval for each group, the first formula holds, and so does what
    ``normalize=False`` means.

    Parameters
    ----------
    ranks : {"group_and_label", "group"}, default="group_and_label"
        Whether a row's rank is the one among the positives of its group, or the one among all rows of its group.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``true_positive_rate``; ``partial_true_positive_rate``, the
        rate within the interval. Only if ``return_groups``.

    Notes
    -----
    Its resolution is :func:`granularity` of the positive rows. With ``ranks="group"`` that is exact where the share of
    positives is the same in the interval as in the group.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: ``ranks="group_and_label"`` is the gap of the problem that the paper
       solves, eq. (50); ``ranks="group"`` is that of its Definition A.2, eq. (42). Remark 5.3 for unions and intervals
       by group.

    Examples
    --------
    >>> from fairconstrained.metrics import partial_equal_opportunity_gap
    >>> y_true, score = [1, 1, 0, 1, 1, 0], [2, -1, 1, 3, 1, -2]
    >>> partial_equal_opportunity_gap(y_true, score, sensitive_features=list("aaabbb"))
    0.5
    >>> partial_equal_opportunity_gap(y_true, score, sensitive_features=list("aaabbb"), interval=(0, 0.5))
    0.0

    With ``ranks="group"`` and the upper two thirds of each group, a positive of score 2 is compared with two positives
    of scores 3 and 1:

    >>> options = {"sensitive_features": list("aaabbb"), "interval": (0, 2 / 3), "threshold": 1.5}
    >>> partial_equal_opportunity_gap(y_true, score, ranks="group", **options)
    0.5
    >>> partial_equal_opportunity_gap(y_true, score, **options)
    0.0
    """
    rows, which = (y_true, y_score, sensitive_features, sample_weight), (interval, threshold, normalize, ranks)
    return _gap([1], *rows, *which, pos_label, agg, on_empty, return_groups)


@register(
    "decision_function",
    title="True or false positive rate, part of the ranks (pEOD)",
    description="Difference between the shares of the positives, or of the negatives, of two groups above the "
    "threshold, whichever is larger, divided by the length of the interval.",
    symbol="pEOD",
    compared=CellRates(_by_label),
    given=_given,
)
def partial_equalized_odds_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    interval: Any = (0.0, 1.0),
    threshold: float = 0.0,
    normalize: bool = True,
    ranks: Ranks = "group_and_label",
    pos_label: Any = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Larger difference of the groups' true and false positive rates within a percentile interval (pEOD).

    The larger of the partial demographic parity gaps among the positives and among the negatives. With
    ``ranks="group_and_label"`` the ranks are those among the rows of equal group and label,
    :math:`\bar F_{g,v}(\theta) = P(s > \theta \mid g, y = v)`; with :math:`I = [\alpha, \beta)` and the
    threshold :math:`\hat\theta`,

    .. math::
        \max_{g, g'} \max_{v \in \{0, 1\}} \left| P(s > \hat\theta \mid g, y = v, \bar F_{g,v}(s) \in I)
        - P(s > \hat\theta \mid g', y = v, \bar F_{g',v}(s) \in I) \right|.

    With ``ranks="group"`` they are those in the whole group: :math:`\bar F_g(\theta) = P(s > \theta \mid g)` takes the
    place of :math:`\bar F_{g,v}`. See :func:`partial_equal_opportunity_gap` for the forms with ranks alone, and for
    ``normalize=False``.

    Parameters
    ----------
    ranks : {"group_and_label", "group"}, default="group_and_label"
        Whether a row's rank is the one among the rows of its group and label, or the one among all rows of its group.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``false_positive_rate``, ``true_positive_rate``;
        ``partial_false_positive_rate``, ``partial_true_positive_rate``, the rates within the interval. Only if
        ``return_groups``.

    Notes
    -----
    Its resolution is the larger :func:`granularity` of the positive and of the negative rows, with ``ranks="group"`` as
    in :func:`partial_equal_opportunity_gap`.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: ``ranks="group_and_label"`` is the gap of the problem that the paper
       solves, eq. (56); ``ranks="group"`` is that of its Definition A.3, eq. (45). Remark 5.3 for unions and intervals
       by group.
    """
    rows, which = (y_true, y_score, sensitive_features, sample_weight), (interval, threshold, normalize, ranks)
    return _gap([0, 1], *rows, *which, pos_label, agg, on_empty, return_groups)


def _gap(
    labels: list[int],
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None,
    interval: Any,
    threshold: float,
    normalize: bool,
    ranks: Ranks,
    pos_label: Any,
    agg: Aggregate,
    on_empty: OnEmpty,
    return_groups: bool,
) -> float | tuple[float, pd.DataFrame]:
    """Partial demographic parity gap within each of the labels (0 and 1), the largest one for each pair of groups."""
    scores = check_scores(y_score, y_true)
    positive, names = check_true_labels(y_true, pos_label)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    rates = rows.means(scores > check_threshold(threshold), positive)
    intervals = PercentileIntervals.parse(interval, rows.labels)
    check_option("ranks", ranks, RANKS)
    check_option("agg", agg, AGGREGATES)
    counted = RANKS[ranks](intervals, scores, positive, *rows.arrays)
    at_ranks = GroupedRows(rows.groups, rows.weights * counted.shares)
    by_label = {}
    for label in labels:
        inside = counted.intervals[label]
        own = np.where(np.isnan(inside.length), np.nan, rates[label])  # NaN where a group has no rows at these ranks
        check_cells(own, positive, at_ranks, (f"y_true={names[0]}", f"y_true={names[1]}"), on_empty)
        by_label[label] = own, inside
    needs_no_pairs = agg == "max"
    gaps_of = gaps_by_threshold if needs_no_pairs else pair_gaps
    gaps = np.max([gaps_of(own[None], inside, normalize) for own, inside in by_label.values()], axis=0)
    gap = rows.gap(gaps[0] if needs_no_pairs else aggregate_pairs(gaps, agg), on_empty)
    if not return_groups:
        return gap
    columns = {_RATES[label]: rates[label] for label in labels}
    within = {f"partial_{_RATES[label]}": inside.clip(own) / inside.length for label, (own, inside) in by_label.items()}
    return gap, rows.table(**columns, **within)
