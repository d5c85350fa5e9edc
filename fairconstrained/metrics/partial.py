"""Gaps between groups of their rank distributions, on the whole or on a percentile interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.cells import cell_maxima, cell_sums
from fairconstrained.metrics.comparisons import (
    CellRates,
    Comparison,
    MetricRows,
    RanksOfThresholds,
    contrast_of_ranks,
    everyone,
)
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.ranks import RankTable, gaps_by_threshold, pair_gaps, worst_gap
from fairconstrained.metrics.rates import (
    AGGREGATES,
    Aggregate,
    aggregate_pairs,
)
from fairconstrained.metrics.registry import documented_metric, register
from fairconstrained.metrics.validation import (
    GroupedRows,
    check_groups,
    check_option,
    check_scores,
    check_threshold,
)

__all__ = ["granularity", "partial_demographic_parity_gap", "partial_statistical_parity_gap"]


@register(
    "decision_function",
    title="Scores, part of the ranks (pSP)",
    description="Difference between the shares of two groups above a threshold, divided by the length of the interval, "
    "for the threshold at which it is largest.",
    symbol="pSP",
    compared=RanksOfThresholds(),
)
def partial_statistical_parity_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    interval: Any = (0.0, 1.0),
    normalize: bool = True,
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Distance of the groups' score distributions within a percentile interval (pSP).

    With the rank :math:`\bar F_g(\theta) = P(s > \theta \mid g)` and :math:`I = [\alpha, \beta)`,

    .. math::
        \max_{g, g'} \max_\theta \left| P(s > \theta \mid g, \bar F_g(s) \in I)
        - P(s > \theta \mid g', \bar F_{g'}(s) \in I) \right|
        = \max_{g, g'} \max_\theta
        \frac{|\mathrm{clip}(\bar F_g(\theta)) - \mathrm{clip}(\bar F_{g'}(\theta))|}{\beta - \alpha},

    where :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`. Rank 0 is the top:
    ``interval=(0, 0.2)`` compares the top fifths. With ``normalize=False`` it is the *rank gap*,

    .. math:: \max_{g, g'} \max_{\theta: \bar F_g(\theta) \in I \text{ or } \bar F_{g'}(\theta) \in I}
        |\bar F_g(\theta) - \bar F_{g'}(\theta)|.

    Parameters
    ----------
    normalize : bool, default=True
        Divide by the length of the interval (of each group's own, if they differ); False for the rank gap.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``threshold``, the score with the largest gap over all pairs;
        its ``rank`` in the group; ``partial_rank``, the rank within the interval. Only if ``return_groups``.

    Notes
    -----
    Tied scores lie on the same side of every threshold, so no tie is ever broken and a constant score has
    gap 0. A row (or a block of ties) that straddles an end of the interval counts with the fraction inside.
    The rank gap is 0 if no observed score has a rank in the interval; compare :func:`granularity` with the
    length of the interval. Time: one sort, then linear in the number of rows times groups.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: definition 4.2, eq. (6); remark 5.3 for unions and intervals by group.

    Examples
    --------
    >>> from fairconstrained.metrics import partial_statistical_parity_gap
    >>> group, score = list("aaaabbbb"), [8, 7, 4, 3, 8, 6, 2, 1]
    >>> partial_statistical_parity_gap(None, score, sensitive_features=group, interval=(0, 0.5))
    0.5
    """
    scores = check_scores(y_score, y_true)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    intervals = PercentileIntervals.parse(interval, rows.labels)
    check_option("agg", agg, AGGREGATES)
    worst = worst_gap(scores, *rows.arrays, intervals, normalize)
    gap = rows.gap(worst.gap)
    if agg != "max":  # the maximum needs no loop over the pairs of groups
        by_pair = [pair_gaps(ranks, intervals, normalize) for _, ranks in RankTable(scores, *rows.arrays)]
        gap = aggregate_pairs(np.max(by_pair, axis=0), agg)
    if not return_groups:
        return gap
    return gap, _rank_table_by_group(rows, worst.threshold, worst.ranks, intervals)


def _selection(rows: MetricRows) -> Comparison:
    """Ranks of one threshold in the groups."""
    scores = check_scores(rows.response)
    groups = rows.groups
    above = scores > rows.params.get("threshold", 0.0)
    return Comparison(above, everyone(scores.size), ("all",), groups, contrast_of_ranks(rows.params, groups.names))


@register(
    "decision_function",
    title="Positive rate, part of the ranks (pDP)",
    description="Difference between the shares of two groups above the threshold, divided by the length of the "
    "interval.",
    symbol="pDP",
    compared=CellRates(_selection),
)
def partial_demographic_parity_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    interval: Any = (0.0, 1.0),
    threshold: float = 0.0,
    normalize: bool = True,
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the groups' positive rates within a percentile interval, at one threshold (pDP).

    With the notation of :func:`partial_statistical_parity_gap` and the threshold :math:`\hat\theta`,

    .. math::
        \max_{g, g'} \left| P(s > \hat\theta \mid g, \bar F_g(s) \in I)
        - P(s > \hat\theta \mid g', \bar F_{g'}(s) \in I) \right|
        = \max_{g, g'} \frac{|\mathrm{clip}(\bar F_g(\hat\theta)) - \mathrm{clip}(\bar F_{g'}(\hat\theta))|}
        {\beta - \alpha}.

    With ``normalize=False`` a pair counts with :math:`|\bar F_g(\hat\theta) - \bar F_{g'}(\hat\theta)|` if
    either rank lies in the interval, and with 0 otherwise.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``, ``threshold``; its ``rank`` in the group, which is the
        positive rate; ``partial_rank``, the positive rate within the interval. Only if ``return_groups``.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: definition 4.3, eq. (10), and lemma 5.2; eq. (3) for the whole
       interval.
    """
    scores = check_scores(y_score, y_true)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    intervals = PercentileIntervals.parse(interval, rows.labels)
    check_option("agg", agg, AGGREGATES)
    ranks = rows.means(scores > check_threshold(threshold))
    if agg == "max":
        gap = float(gaps_by_threshold(ranks, intervals, normalize)[0])
    else:
        gap = aggregate_pairs(pair_gaps(ranks, intervals, normalize), agg)
    gap = rows.gap(gap)
    return (gap, _rank_table_by_group(rows, threshold, ranks[0], intervals)) if return_groups else gap


@documented_metric
def granularity(
    sensitive_features: Any,
    *,
    sample_weight: npt.ArrayLike | None = None,
    interval: Any = (0.0, 1.0),
    normalize: bool = True,
) -> float:
    r"""Change that moving one row can make in a gap: the resolution of the empirical metric.

    .. math:: \max_g \frac{\max_{i \in g} w_i}{(\beta_g - \alpha_g) \sum_{i \in g} w_i}

    Returns
    -------
    granularity : float
        Without weights and on the whole interval it is 1 / (size of the smallest group). A gap cannot be controlled
        more finely than this: with groups of equal size, a ``kappa`` below it asks for equal rates.
    """
    rows = check_groups(sensitive_features, sample_weight)
    codes, weights, n_groups = rows.arrays
    share = cell_maxima(codes, n_groups, weights) / cell_sums(codes, n_groups, weights)
    intervals = PercentileIntervals.parse(interval, rows.labels)
    return float((share / intervals.length if normalize else share).max())


def _rank_table_by_group(
    rows: GroupedRows, threshold: float, ranks: np.ndarray, intervals: PercentileIntervals
) -> pd.DataFrame:
    partial_ranks = intervals.clip(ranks) / intervals.length
    return rows.table(threshold=threshold, rank=ranks, partial_rank=partial_ranks)
