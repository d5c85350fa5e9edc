"""Ranks that count among the rows of one label: taken among those rows, or in their whole group. Array functions only.

A row of label v at rank p of its group has a rank among the rows of label v as well, and the order is the same. So an
interval of ranks in the group is an interval of ranks in group and label too; it only depends on the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from fairconstrained.metrics.cell_means import mean_by_cell
from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals

__all__ = ["RANKS", "CountedRanks", "Ranks"]

#: Among which rows a rank is taken.
Ranks = Literal["group_and_label", "group"]


class CountedRanks(NamedTuple):
    """The ranks that count among the rows of either label."""

    #: Intervals of the negatives and of the positives, as ranks among them; NaN where a group has none at ranks that
    #: count.
    intervals: tuple[PercentileIntervals, PercentileIntervals]
    #: Part of every row that is at ranks that count, where those depend on the scores; ones elsewhere.
    shares: np.ndarray  # of shape (n_samples,)


def _of_group_and_label(intervals: PercentileIntervals, scores: np.ndarray, *_: object) -> CountedRanks:
    return CountedRanks((intervals, intervals), np.ones_like(scores))


def _of_group(
    intervals: PercentileIntervals,
    scores: np.ndarray,
    positive: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    n_groups: int,
) -> CountedRanks:
    above, reached = _ranks_of_rows(scores, codes, weights, n_groups)
    own = reached - above

    def top(end: np.ndarray) -> np.ndarray:
        """Part of every row that is among the top rows of its group; ndarray of shape (n_samples,)."""
        missing = np.broadcast_to(end, n_groups)[codes] - above
        return np.clip(np.divide(missing, own, out=np.zeros_like(own), where=own > 0), 0.0, 1.0)

    ends = [[top(end) for end in side] for side in (intervals.alpha, intervals.beta)]
    shares = np.sum(ends[1], axis=0) - np.sum(ends[0], axis=0)
    cells = codes + n_groups * positive
    alpha, beta = (np.stack([mean_by_cell(part, cells, weights, (2, n_groups)) for part in side]) for side in ends)
    nobody = (beta - alpha).sum(axis=0) <= RANK_TOLERANCE
    alpha[:, nobody] = beta[:, nobody] = np.nan
    of_negatives, of_positives = (PercentileIntervals(alpha[:, v], beta[:, v]) for v in (0, 1))
    return CountedRanks((of_negatives, of_positives), shares)


#: Functions that find the ranks that count among the rows of a label, by name. They take the intervals, the scores,
#: whether every row is positive, and the codes, the weights and the number of the groups.
RANKS: dict[str, Callable[..., CountedRanks]] = {"group_and_label": _of_group_and_label, "group": _of_group}


def _ranks_of_rows(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Share of the group that scores above every row, and at or above it; two ndarrays of shape (n_samples,)."""
    order = np.lexsort((-scores, codes))
    ordered, groups = scores[order], codes[order]
    is_first = np.append(True, (ordered[1:] != ordered[:-1]) | (groups[1:] != groups[:-1]))
    tie = np.cumsum(is_first) - 1
    of_tie = groups[is_first]
    mass = np.bincount(tie, weights[order])
    sums = np.append(0.0, np.cumsum(mass))
    begins = sums[np.searchsorted(of_tie, np.arange(n_groups))]
    totals = np.bincount(codes, weights, minlength=n_groups)
    above, reached = np.empty_like(scores), np.empty_like(scores)
    above[order] = ((sums[:-1] - begins[of_tie]) / totals[of_tie])[tie]
    reached[order] = ((sums[1:] - begins[of_tie]) / totals[of_tie])[tie]
    return above, reached
