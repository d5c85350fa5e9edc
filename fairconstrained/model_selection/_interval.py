"""Choice of the interval of ranks for a constraint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.checks.messages import is_number
from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals
from fairconstrained.metrics.ranks import RankTable, gaps_by_threshold
from fairconstrained.metrics.validation import GroupedRows, check_groups, check_scores, check_threshold

__all__ = ["IntervalSuggestion", "suggest_interval"]

# Sums such as 3 * 0.05 carry rounding; ends of candidates are round numbers to be read and typed again.
_DECIMALS = 12
# Gaps are quotients of ranks by lengths: closer than this they are the same gap.
_SAME_GAP_DECIMALS = 9


@dataclass(frozen=True, eq=False)
class IntervalSuggestion:
    """Result of :func:`suggest_interval`.

    Attributes
    ----------
    interval : tuple of two floats
        The first row of the table, ``(alpha, beta)``: the ``interval`` for estimators and metrics.
    gap : float
        Partial statistical parity gap of the interval, in [0, 1].
    rank_gap : float
        Rank gap of the interval, in [0, 1]: the partial statistical parity gap with ``normalize=False``.
    rate : float
        Share of positive decisions that all candidates cover, in (0, 1).
    table : DataFrame
        All candidates that cover ``rate``, the most unfair first, with the columns ``alpha``, ``beta``, ``gap``
        and ``rank_gap``.
    """

    interval: tuple[float, float]
    gap: float
    rank_gap: float
    rate: float
    table: pd.DataFrame = field(repr=False)


def suggest_interval(
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    rate: float | None = None,
    threshold: float = 0.0,
    width: float | Sequence[float] = 0.25,
    step: float = 0.05,
    candidates: Sequence[tuple[float, float]] | None = None,
    normalize: bool = True,
) -> IntervalSuggestion:
    r"""Percentile interval around the decision on which a model treats the groups most differently.

    For users without an interval of their own: with the share of positive decisions
    :math:`p = P(s > \hat\theta)`, of all candidates :math:`[\alpha, \beta) \ni p` the one of the largest
    partial statistical parity gap,

    .. math:: \arg\max_{[\alpha, \beta) \ni p} \; \max_{g, g'} \max_\theta
        \frac{|\mathrm{clip}(\bar F_g(\theta)) - \mathrm{clip}(\bar F_{g'}(\theta))|}{\beta - \alpha}.

    The rows around rank :math:`p` are those whose decision changes with a small change of the score or of the
    threshold.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores of a model fitted *without* fairness constraints (``kappa=None``, or any other classifier).
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row, at least two groups; several columns are combined.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative; a weight of 2 stands for the same row twice.
    rate : float, default=None
        Share of positive decisions to expect, in (0, 1), for instance last year's share of admissions. By
        default the share of the rows that score above ``threshold``.
    threshold : float, default=0.0
        A row is predicted positive if its score exceeds this: 0 for ``decision_function``, 0.5 for
        probabilities. Ignored if ``rate`` is given.
    width : float or sequence of floats, default=0.25
        Length of the candidates, in (0, 1]; several lengths are all tried (see Notes before you do).
    step : float, default=0.05
        The candidates start at the multiples of ``step``, at most the smallest ``width``; one more ends at 1.
    candidates : sequence of pairs of floats, default=None
        The candidates themselves, instead of ``width`` and ``step``. Those that do not cover the rate are left
        out.
    normalize : bool, default=True
        Order the candidates by the gap divided by the length of the interval, as above; False: by the rank
        gap. The other one decides between equals. Both are those of
        :func:`~fairconstrained.metrics.partial_statistical_parity_gap`.

    Returns
    -------
    suggestion : IntervalSuggestion
        Result with the attributes ``interval``, ``gap``, ``rank_gap``, ``rate`` and ``table``. Of candidates that are
        equal in both gaps the one whose middle is nearest to the rate comes first.

    Raises
    ------
    ValueError
        If there is a single group, all decisions are alike, no candidate covers the rate, or an argument is
        out of its range.

    Notes
    -----
    *The gap.* The normalised gap is the default because ``kappa`` bounds it in the estimators: ``gap`` shows how far
    the model is from a given ``kappa``. It is at most 1, and equal to 1 if at some threshold one group is beyond the
    interval on one side and the other group on the other side, so that very unfair models have many candidates with 1;
    the rank gap then decides.

    *One length at a time.* Neither gap can be compared between intervals of different lengths. The clipped differences
    of two adjacent intervals add up to that of their union, so one of the two parts has a normalised gap at least as
    large as the union: short intervals tend to have the larger ones. The rank gap never decreases as an interval grows:
    long intervals have the larger ones. So choose the length by the decision (how much the rate may vary, and how far
    the groups' rates have to move) and let the data choose the position. The gap of a short interval also has a larger
    sampling error; see :func:`~fairconstrained.metrics.granularity`.

    *The table.* If its gaps are nearly equal, the data do not prefer an interval, so take the one that suits the
    decision best. The largest of several noisy gaps is biased upwards; measure the constrained model on other rows.

    *The rate.* ``rate`` is that of all rows together. The groups' own rates differ without a constraint, and approach
    it with the constraint. With a ``rate`` from the past, the interval contains the ranks around the threshold that
    gives this rate, whatever its score is.

    Time: one sort, then linear in the number of rows for each candidate.

    References
    ----------
    .. [1] Y. He, Y. Huang, Y. Yao, Q. Lin, "Enforcing Fair Predicted Scores on Intervals of Percentiles by
       Difference-of-Convex Constraints", arXiv:2505.12530. Appendix B; definition 4.2, equation (6).

    Examples
    --------
    Middle halves of the groups: the scores 7, 4 and 6, 2; lower halves: 4, 3 and 2, 1, without overlap.

    >>> from fairconstrained.model_selection import suggest_interval
    >>> group, score = list("aaaabbbb"), [8, 7, 4, 3, 8, 6, 2, 1]
    >>> suggestion = suggest_interval(score, sensitive_features=group, rate=0.6, width=0.5, step=0.25)
    >>> suggestion
    IntervalSuggestion(interval=(0.5, 1.0), gap=1.0, rank_gap=0.5, rate=0.6)
    >>> suggestion.table
       alpha  beta  gap  rank_gap
    0   0.50  1.00  1.0       0.5
    1   0.25  0.75  0.5       0.5
    """
    scores = check_scores(y_score)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    if rows.n_groups < 2:
        raise ValueError(f"there is one group only, {rows.labels[0]!r}, so no interval has a gap; pass at least two.")
    check_threshold(threshold)
    if rate is None:
        rate = _positive_rate(scores, rows, threshold)
    if not is_number(rate) or not 0 < rate < 1:
        raise ValueError(f"rate must lie strictly between 0 and 1; got {rate!r}. Write 5% as 0.05.")
    pairs = _grid(width, step) if candidates is None else _pairs(candidates)
    intervals = [PercentileIntervals.parse(tuple(pair), rows.labels, "candidates") for pair in pairs.tolist()]
    covers = [bool(interval.contains(np.array([rate]))[0]) for interval in intervals]
    if not any(covers):
        raise ValueError(
            f"none of the candidates {[tuple(pair) for pair in pairs.tolist()]} covers the positive rate {rate:.4g}; "
            "add one, or pass the rate= that you have in mind."
        )
    intervals = [interval for interval, keep in zip(intervals, covers, strict=True) if keep]
    gaps = _largest_gaps(scores, rows, intervals)
    table = _table(pairs[covers], gaps, rate, order=("gap", "rank_gap") if normalize else ("rank_gap", "gap"))
    alpha, beta, gap, rank_gap = table.iloc[0].tolist()
    return IntervalSuggestion((alpha, beta), gap, rank_gap, rate, table)


def _positive_rate(scores: np.ndarray, rows: GroupedRows, threshold: float) -> float:
    rate = float(np.average(scores > threshold, weights=rows.weights))
    if not RANK_TOLERANCE < rate < 1 - RANK_TOLERANCE:
        raise ValueError(
            f"{'all' if rate > 0.5 else 'no'} scores exceed threshold={threshold!r}, so no rank lies at the decision. "
            "Pass the threshold of these scores (0.5 for probabilities), or rate=."
        )
    return rate


def _grid(width: float | Sequence[float], step: float) -> np.ndarray:
    """Candidates of every width, of shape (n_candidates, 2): at the multiples of ``step``, and flush with 1."""
    given = list(width) if isinstance(width, Iterable) else [width]
    if not given or not all(is_number(length) and 0 < length <= 1 for length in given):
        raise ValueError(f"width must be one or several lengths in (0, 1]; got {width!r}. Write 25% as 0.25.")
    widths = np.unique(np.array(given, dtype=float))
    if not is_number(step) or not 0 < step <= widths.min():
        raise ValueError(
            f"step must be positive and at most the smallest width, {widths.min():g}, "
            f"or candidates would leave out ranks; got {step!r}."
        )
    starts = np.arange(0, 1, step)
    of_width = [np.unique(np.r_[starts[starts < 1 - length], 1 - length].round(_DECIMALS)) for length in widths]
    return np.concatenate(
        [np.column_stack([alpha, alpha + length]) for alpha, length in zip(of_width, widths, strict=True)]
    ).round(_DECIMALS)


def _pairs(candidates: Sequence[tuple[float, float]]) -> np.ndarray:
    pairs = np.asarray(candidates)
    if pairs.ndim != 2 or pairs.shape[0] == 0 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iuf":
        raise ValueError(f"candidates must be a list of pairs (alpha, beta), e.g. [(0, 0.2)]; got {candidates!r}.")
    return pairs.astype(float)


def _largest_gaps(
    scores: np.ndarray, rows: GroupedRows, intervals: Sequence[PercentileIntervals]
) -> dict[str, np.ndarray]:
    """Largest gaps over thresholds and pairs of groups, each of shape (n_intervals,); the scores are sorted once."""
    gaps = np.zeros((2, len(intervals)))
    for _, ranks in RankTable(scores, *rows.arrays):
        of_block = [
            [gaps_by_threshold(ranks, interval, normalize).max() for interval in intervals]
            for normalize in (True, False)
        ]
        gaps = np.maximum(gaps, of_block)
    return {"gap": gaps[0], "rank_gap": gaps[1]}


def _table(pairs: np.ndarray, gaps: dict[str, np.ndarray], rate: float, order: Sequence[str]) -> pd.DataFrame:
    """Largest gaps first, in the order of their names; of equal ones the interval centred best on the rate."""
    off_centre = np.abs(pairs.mean(axis=1) - rate).round(_DECIMALS)
    keys = [-gaps[name].round(_SAME_GAP_DECIMALS) for name in order]
    alpha, beta = pairs.T
    table = pd.DataFrame({"alpha": alpha, "beta": beta, **gaps})
    # numpy sorts by the last key first; what is still equal goes by alpha
    return table.iloc[np.lexsort((alpha, off_centre, *reversed(keys)))].reset_index(drop=True)
