"""Bounds on the gap between cells, from intervals of their rates, means or ranks.

Arrays of ends have the shape (..., n_blocks, n_groups): what is compared within a block are groups, and leading axes
are thresholds, of which the gap takes the largest. A block is, say, all rows of one label.

A gap that is the largest of several needs no union over them: where ``bound_j >= gap_j`` with probability ``1 - delta``
for each j, then ``max_j bound_j >= gap_j* = max_j gap_j`` with the same probability, j* being a property of the
population and not of the sample. The same holds for thresholds. What has to hold at once are the ends that the bound of
*one* gap is made of, and these are counted here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import permutations
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.rates import AGGREGATES, OVER_LABELS, Aggregate, AggregateLabels

__all__ = [
    "AUCGaps",
    "Contrast",
    "LargestCell",
    "OneCell",
    "OverallGaps",
    "PairGaps",
    "ParityPairs",
    "RankGaps",
    "RatioGaps",
    "counted",
]


@dataclass(frozen=True, kw_only=True)
class Contrast(ABC):
    """Contrast of the cells: the number that a metric makes of them."""

    n_blocks: int = 1
    n_groups: int = 1
    #: Aggregate of the blocks of each pair.
    fold: AggregateLabels = "max"
    #: Aggregate of the pairs.
    agg: Aggregate = "max"
    #: Ends that bound the difference of one pair in one block.
    tails_of_one: int = 2

    #: Name of one comparison, for reports.
    item: ClassVar[str] = "pair of groups"

    @abstractmethod
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Upper bounds of the gaps of the pairs, the largest over leading axes; ndarray of shape (n_items,)."""

    @property
    def n_items(self) -> int:
        """Number of pairs."""
        return self.n_groups * (self.n_groups - 1) // 2

    @property
    def n_tails(self) -> int:
        """Number of ends of intervals that have to hold at once."""
        blocks = self.n_blocks if self.fold == "sum" else 1
        return self.tails_of_one * blocks * (1 if self.agg == "max" else self.n_items)

    @property
    def words(self) -> str:
        """`n_tails` in words."""
        blocks = self.n_blocks if self.fold == "sum" else 1
        of_blocks = f" in {counted(blocks, 'block')} of rows" if blocks > 1 else ""
        one = f"{counted(self.tails_of_one * blocks, 'end')} of the intervals of one {self.item}{of_blocks}"
        if self.agg == "mean":
            return f"{one}, for each of {counted(self.n_items, self.item)}"
        return f"{one}; none over {plural(self.item)}, as the largest of bounds that hold singly bounds the largest gap"

    def upper(self, lower: np.ndarray, upper: np.ndarray) -> float:
        """Upper bound of the gap; the gap itself where lower and upper ends are the estimates."""
        return float(AGGREGATES[self.agg](self.bounds(lower, upper)))

    def worst(self, lower: np.ndarray, upper: np.ndarray) -> int:
        """The place on the first axis where the largest bound of a pair is, by halving."""
        first, last = 0, len(lower)
        while last - first > 1:
            middle = (first + last) // 2
            halves = [slice(first, middle), slice(middle, last)]
            ahead, behind = (self.bounds(lower[half], upper[half]).max() for half in halves)
            first, last = (first, middle) if ahead >= behind else (middle, last)
        return first


@dataclass(frozen=True, kw_only=True)
class PairGaps(Contrast):
    """Differences between groups: of rates or means, or of the parts of ranks that lie in an interval.

    The latter, ``clip(rank) / length``, increase with the rank, so that ends become ends.
    """

    intervals: PercentileIntervals | None = None

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        if self.intervals is not None:
            lower, upper = (self.intervals.clip(ends) / self.intervals.length for ends in (lower, upper))
        found = []
        for group in range(self.n_groups - 1):
            own, others = slice(group, group + 1), slice(group + 1, None)
            apart = np.maximum(upper[..., own] - lower[..., others], upper[..., others] - lower[..., own])
            found.append(_largest(OVER_LABELS[self.fold](apart, axis=-2)))
        return np.concatenate(found)


@dataclass(frozen=True, kw_only=True)
class OverallGaps(Contrast):
    """Differences of every group from all rows, which are the last column; with a sign, how far it is above."""

    signed: bool = False
    item: ClassVar[str] = "comparison of a group with all rows"

    @property
    def n_items(self) -> int:
        """Number of groups."""
        return self.n_groups

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        apart = upper[..., :-1] - lower[..., -1:]
        if not self.signed:
            apart = np.maximum(apart, upper[..., -1:] - lower[..., :-1])
        return _largest(OVER_LABELS[self.fold](apart, axis=-2))


@dataclass(frozen=True, kw_only=True)
class RankGaps(Contrast):
    """Differences of ranks of pairs in which one of both ranks lies in the interval.

    Whether it may lie there is a matter of both of its ends, so four have to hold.
    """

    intervals: PercentileIntervals
    tails_of_one: int = 4

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        low, high = self._inside(lower, upper)  # the part of every interval of ranks that counts; NaN if none does
        found = np.zeros((self.n_groups, self.n_groups))
        for a, b in permutations(range(self.n_groups), 2):
            apart = np.fmax(high[..., a] - lower[..., b], upper[..., b] - low[..., a])
            found[a, b] = np.nan_to_num(apart, nan=0.0).max(initial=0.0)
        return np.maximum(found, found.T)[np.triu_indices(self.n_groups, 1)]

    def _inside(self, lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        low, high = np.full(lower.shape, np.nan), np.full(lower.shape, np.nan)
        for alpha, beta in zip(self.intervals.alpha, self.intervals.beta, strict=True):
            start, end = np.maximum(lower, alpha), np.minimum(upper, beta)
            meets = (start <= end) & (alpha < beta)
            low = np.where(meets, np.fmin(low, start), low)
            high = np.where(meets, np.fmax(high, end), high)
        return low, high


@dataclass(frozen=True, kw_only=True)
class ParityPairs(Contrast):
    """``R_a + beta (1 - R_b)``, for ordered pairs of groups."""

    beta: float = 1.0

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        values = upper[..., :, None] + self.beta * (1 - lower[..., None, :])
        return _largest(values[..., ~np.eye(self.n_groups, dtype=bool)])


@dataclass(frozen=True, kw_only=True)
class RatioGaps(Contrast):
    """One minus the ratio of the smaller rate of two groups to the larger one.

    The ends of both rates bound the ratio: the lower end of one over the upper end of the other.
    """

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore", divide="ignore"):
            shortfall = 1 - lower[..., :, None] / upper[..., None, :]
        shortfall = np.nan_to_num(shortfall, nan=1.0)  # where nothing is known of a rate but that it is zero
        first, second = np.triu_indices(self.n_groups, 1)
        return _largest(np.maximum(shortfall[..., first, second], shortfall[..., second, first]))


@dataclass(frozen=True, kw_only=True)
class LargestCell(Contrast):
    """The largest rate or mean of any group in any block."""

    tails_of_one: int = 1
    item: ClassVar[str] = "group"

    @property
    def n_items(self) -> int:
        """Number of groups."""
        return self.n_groups

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return _largest(upper)


@dataclass(frozen=True, kw_only=True)
class OneCell(LargestCell):
    """The rate or mean of a single cell."""

    @property
    @override
    def words(self) -> str:
        return "1 end of one interval"


@dataclass(frozen=True, kw_only=True)
class AUCGaps(Contrast):
    """Differences of two AUCs, which are the two columns."""

    n_differences: int
    #: Ends that the bound of one difference is made of; 0 for an AUC that is 1/2 by definition.
    tails_of_one: int = field()
    item: ClassVar[str] = "difference of AUCs"

    @property
    def n_items(self) -> int:
        """Number of differences."""
        return self.n_differences

    @override
    def bounds(self, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return np.maximum(upper[:, 0] - lower[:, 1], upper[:, 1] - lower[:, 0])


def counted(number: int, what: str) -> str:
    """``1 end``, ``2 ends``."""
    return f"{number} {what if number == 1 else plural(what)}"


def plural(what: str) -> str:
    """``pairs of groups``."""
    head, of, rest = what.partition(" of ")
    return f"{head}s{of}{rest}"


def _largest(values: np.ndarray) -> np.ndarray:
    """The largest over all axes but the last."""
    return values.reshape(-1, values.shape[-1]).max(axis=0)
