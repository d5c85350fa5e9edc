"""Exact search for the slope and the shift of one side's scores.

Two sides, the moved one and the fixed one, each with positives and negatives, are four cells. A positive slope keeps
the AUC between the two cells of a side, so the overall AUC and every AUC gap are *linear* in the four cross AUCs

    cross[x, y](slope, shift) = P(slope s + shift > t) + P(slope s + shift = t) / 2

of cell x of the moved side, with scores s, over cell y of the fixed one, with scores t. Each of them rises with the
shift. So their values at both ends of an interval of shifts bound the overall AUC and the gap everywhere between them,
and halving those intervals that may still hold a better shift than the best known one searches all shifts without
looking at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from fairconstrained.metrics.auc_sets import AUCDifference

__all__ = ["ROUNDING", "BestShift", "ShiftedAUCs", "best_shift"]

# Cells as `fairconstrained.metrics.auc_sets` numbers them where the moved side is group 0 and the fixed one group 1:
# positives 0 and 1, negatives 2 and 3.
_MOVED, _FIXED = np.array([0, 2]), np.array([1, 3])
#: Sums of weights carry rounding errors, far below what one row weighs.
ROUNDING = 1e-12
#: Where every shift is allowed: the overall AUC that the search may miss, and the least difference of two shifts in
#: units of the range of the scores.
_AUC_TOLERANCE, _FINEST = 1e-5, 1e-9


class BestShift(NamedTuple):
    """Result of the search."""

    slope: float
    shift: float
    #: gap and auc: the AUC gap and the overall AUC there.
    gap: float
    auc: float
    #: Pairs of slope and shift that were looked at.
    n_evaluations: int


class _Side(NamedTuple):
    """One side's distinct scores, ascending, and the weights of its cells on them, which sum to one in each."""

    scores: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, scores: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> _Side:
        distinct, place = np.unique(scores, return_inverse=True)
        cells = [np.bincount(place, weights * member, minlength=distinct.size) for member in (positive, ~positive)]
        return cls(distinct, np.stack([cell / (cell.sum() or 1.0) for cell in cells]))

    @property
    def below(self) -> np.ndarray:
        """Weight below the first so many scores; ndarray of shape (2, n_scores + 1)."""
        return np.pad(np.cumsum(self.weights, axis=1), ((0, 0), (1, 0)))

    @property
    def auc(self) -> float:
        """AUC of the positives over the negatives."""
        positives, negatives = self.weights
        return float(positives @ (self.below[1, :-1] + negatives / 2))


@dataclass(frozen=True, eq=False)
class _Linear:
    """Numbers ``constant + coefficients @ cross``, with bounds for monotone ``cross``."""

    constant: np.ndarray
    coefficients: np.ndarray

    def at(self, cross: np.ndarray) -> np.ndarray:
        return self.constant + self.coefficients @ cross

    def bounds(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Least and largest values while every entry of ``cross`` is between those of ``low`` and ``high``."""
        rises, falls = np.maximum(self.coefficients, 0), np.minimum(self.coefficients, 0)
        return self.constant + rises @ low + falls @ high, self.constant + rises @ high + falls @ low


class ShiftedAUCs:
    """The overall AUC and the AUC gap as functions of the slope and the shift of one side's scores.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_samples,)
        Weights are positive.
    moved, positive : ndarray of bool, of shape (n_samples,)
        The side of every row, and its label.
    differences : sequence of AUCDifference
        Differences whose largest absolute value is the gap, with the moved side as group 0 of two.

    Raises
    ------
    ValueError
        If a set is empty; the message prints the counts.
    """

    def __init__(
        self,
        scores: np.ndarray,
        weights: np.ndarray,
        moved: np.ndarray,
        positive: np.ndarray,
        differences: Sequence[AUCDifference],
    ) -> None:
        self.moved = _Side.of(scores[moved], positive[moved], weights[moved])
        self.fixed = _Side.of(scores[~moved], positive[~moved], weights[~moved])
        self._below = self.fixed.below
        codes = np.where(moved, 0, 1) + np.where(positive, 0, 2)
        mass = np.bincount(codes, weights, minlength=4)
        sets = {cells for difference in differences for cells in difference}
        if min(mass[list(cells)].sum() for cells in sets) == 0:
            counts = np.bincount(codes, minlength=4).tolist()
            raise ValueError(
                "a set of rows that the metric compares is empty. Rows of positive weight: protected group "
                f"{counts[0]} positive, {counts[2]} negative; others {counts[1]} positive, {counts[3]} negative."
            )
        heaviest = np.array([weights[codes == cell].max(initial=0.0) for cell in range(4)])
        #: Largest share of a set that one row stands for.
        self.granularity = max(float(heaviest[list(cells)].max() / mass[list(cells)].sum()) for cells in sets)
        pairs = [_pairs(mass, (0, 1), (2, 3))]
        pairs += [_pairs(mass, *sets[:2]) - _pairs(mass, *sets[2:]) for sets in differences]
        self._linear = _linear(np.stack(pairs), self.moved.auc, self.fixed.auc)
        # A slope of zero makes the moved rows one block of ties.
        self._collapsed = _linear(np.stack(pairs), 0.5, self.fixed.auc)

    def cross(self, slope: float, shift: float) -> np.ndarray:
        """AUCs of the moved over the fixed cells, ``[++, +-, -+, --]``."""
        # in the order of prediction's operations, so that ties here are ties there
        scores = slope * self.moved.scores + shift
        first = np.searchsorted(self.fixed.scores, scores)
        ties = self.fixed.scores[np.minimum(first, self.fixed.scores.size - 1)] == scores
        below = self._below[:, first]
        below[:, ties] += self.fixed.weights[:, first[ties]] / 2
        return (self.moved.weights @ below.T).ravel()

    def linear(self, slope: float) -> _Linear:
        """The overall AUC and the signed differences as functions of `cross`."""
        return self._linear if slope > 0 else self._collapsed

    def auc_and_gap(self, slope: float, shift: float) -> tuple[float, float]:
        """The overall AUC and the gap."""
        return auc_and_gap(self.linear(slope).at(self.cross(slope, shift)))

    def shift_range(self, slope: float) -> tuple[float, float]:
        """Shifts that put all moved rows below, and above, all fixed ones."""
        ends = slope * self.moved.scores[[0, -1]]
        room = 0.01 * self.spread
        return float(self.fixed.scores[0] - ends[1] - room), float(self.fixed.scores[-1] - ends[0] + room)

    @property
    def spread(self) -> float:
        """Range of all scores, or 1 if they are constant."""
        both = np.concatenate([self.moved.scores, self.fixed.scores])
        return float(np.ptp(both)) or 1.0


def auc_and_gap(values: np.ndarray) -> tuple[float, float]:
    return float(values[0]), float(np.abs(values[1:]).max(initial=0.0))


def _pairs(mass: np.ndarray, above: Sequence[int], below: Sequence[int]) -> np.ndarray:
    """Share of every pair of cells in the pairs of two sets; ndarray of shape (4, 4)."""
    shares = np.zeros((4, 4))
    shares[np.ix_(list(above), list(below))] = np.outer(mass[list(above)], mass[list(below)])
    return shares / shares.sum()


def _linear(pairs: np.ndarray, moved: float, fixed: float) -> _Linear:
    """Sums over pairs of cells in terms of the cross AUCs, given the AUC of each side."""
    constant = np.zeros(len(pairs))
    for cells, auc in ((_MOVED, moved), (_FIXED, fixed)):
        own = pairs[:, cells[:, None], cells]
        constant += (own * np.array([[0.5, auc], [1 - auc, 0.5]])).sum(axis=(1, 2))
    forth = pairs[:, _MOVED[:, None], _FIXED]
    back = pairs[:, _FIXED[:, None], _MOVED]
    # the AUC of a fixed over a moved cell is one minus that of the moved over the fixed one
    return _Linear(constant + back.sum(axis=(1, 2)), (forth - back.transpose(0, 2, 1)).reshape(len(pairs), 4))


class _Positions(Protocol):
    """Shifts to choose from, as positions that an interval of them can be halved at."""

    def ends(self, slope: float) -> tuple[float, float]:
        """First and last position."""

    def shift(self, position: float) -> float:
        """The shift at a position."""

    def middle(self, low: float, high: float) -> float | None:
        """A position between two others; None if there is none."""


class _Grid(NamedTuple):
    """Given shifts, ascending; positions are their numbers."""

    shifts: np.ndarray

    def ends(self, slope: float) -> tuple[float, float]:
        return 0, self.shifts.size - 1

    def shift(self, position: float) -> float:
        return float(self.shifts[int(position)])

    def middle(self, low: float, high: float) -> float | None:
        return (low + high) // 2 if high - low > 1 else None


class _Line(NamedTuple):
    """Every shift that changes the order of any two rows; positions are the shifts themselves."""

    aucs: ShiftedAUCs

    def ends(self, slope: float) -> tuple[float, float]:
        return self.aucs.shift_range(slope)

    def shift(self, position: float) -> float:
        return position

    def middle(self, low: float, high: float) -> float | None:
        return (low + high) / 2 if high - low > _FINEST * self.aucs.spread else None


def best_shift(
    aucs: ShiftedAUCs, kappa: float | None, slopes: np.ndarray, shifts: np.ndarray | None = None
) -> BestShift:
    """The slope and shift of best overall AUC among those whose gap is at most ``kappa``.

    Parameters
    ----------
    kappa : float or None
        None is no bound.
    slopes : ndarray of shape (n_slopes,)
        Non-negative.
    shifts : ndarray of shape (n_shifts,) or None
        None allows every shift, and an AUC up to 1e-5 below the largest one.

    Returns
    -------
    best : BestShift
        If no gap is at most ``kappa``, the best one among those that exceed it by no more than the granularity; if
        there is none either, that of the least gap.
    """
    positions = _Line(aucs) if shifts is None else _Grid(np.unique(shifts))
    tolerance = _AUC_TOLERANCE if shifts is None else 0.0
    slopes = np.unique(slopes)
    # Near the scores as they are, good shifts are found at once, and they rule out most others.
    slopes = slopes[np.argsort(np.abs(slopes - 1), kind="stable")]
    n_evaluations = 0
    for bound in (np.inf,) if kappa is None else (kappa, kappa + aucs.granularity):
        search = _Search(aucs, positions, bound, tolerance)
        for slope in slopes.tolist():
            search.run(slope)
        n_evaluations += search.n_evaluations
        if search.best.gap <= search.kappa:
            break
    return search.best._replace(n_evaluations=n_evaluations)


class _Search:
    """Branch and bound over the shifts of one slope after another."""

    def __init__(self, aucs: ShiftedAUCs, positions: _Positions, kappa: float, tolerance: float) -> None:
        self.aucs, self.positions = aucs, positions
        self.kappa, self.tolerance = kappa + ROUNDING, tolerance
        self.best = BestShift(1.0, 0.0, np.inf, -np.inf, 0)
        self.n_evaluations = 0

    def run(self, slope: float) -> None:
        """Look for something better than `best` among all shifts of one slope."""
        linear = self.aucs.linear(slope)
        ends = self.positions.ends(slope)
        intervals = [tuple((position, self._look(slope, position)) for position in ends)]
        while intervals:
            (low, low_cross), (high, high_cross) = intervals.pop()
            middle = self.positions.middle(low, high)
            if middle is None or self._is_hopeless(*linear.bounds(low_cross, high_cross)):
                continue
            between = middle, self._look(slope, middle)
            intervals += [((low, low_cross), between), (between, (high, high_cross))]

    def _look(self, slope: float, position: float) -> np.ndarray:
        """The cross AUCs at a position, which becomes the best one if it is better."""
        shift = self.positions.shift(position)
        cross = self.aucs.cross(slope, shift)
        self.n_evaluations += 1
        auc, gap = auc_and_gap(self.aucs.linear(slope).at(cross))
        if self._is_better(auc, gap):
            self.best = BestShift(slope, shift, gap, auc, 0)
        return cross

    def _is_better(self, auc: float, gap: float) -> bool:
        if gap <= self.kappa and self.best.gap <= self.kappa:
            return auc > self.best.auc
        return gap < self.best.gap

    def _is_hopeless(self, lower: np.ndarray, upper: np.ndarray) -> bool:
        """Whether nothing within these bounds of the values is better than `best`."""
        least_gap = np.maximum(lower[1:], -upper[1:]).max(initial=0.0)
        if self.best.gap <= self.kappa:
            return least_gap > self.kappa or upper[0] <= self.best.auc + self.tolerance
        return least_gap > self.kappa and least_gap >= self.best.gap
