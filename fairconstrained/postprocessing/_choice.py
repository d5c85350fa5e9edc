"""Exact choice of one candidate for every group, under bounds on how far the groups' numbers may lie apart.

A group has candidates, such as thresholds, and each of them a number for every bound, such as a rate. The numbers of
the chosen ones have to lie in a window of a given width, for every bound. Where a window begins, at the least number of
all groups, is not known; branch and bound divides these beginnings into boxes. Candidates that are in none of the
windows of a box are left out of it; the largest gains of the groups among the others bound what the box may hold, and
so leave out candidates too. A box whose best candidates lie in one window is solved.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.objectives import DecisionLoss

__all__ = ["ROUNDING", "Candidates", "best_choice", "best_decisions"]

#: Numbers and gains are sums of floats; those that differ by less are the same.
ROUNDING = 1e-12
#: Points of a grid, and grids one inside the other, by which a place of a known loss is found.
_GRID, _GRIDS = np.linspace(0.0, 1.0, 33), 5


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of all groups, those of the first group first."""

    #: Group of every candidate, ascending from 0; every group has one at least.
    groups: np.ndarray  # of int, of shape (n_candidates,)
    #: NaN for candidates of groups that a bound is not about; it is about two groups at least.
    numbers: np.ndarray  # of shape (n_bounds, n_candidates)
    #: How far the numbers of the groups may lie apart, for every bound.
    widths: np.ndarray  # of shape (n_bounds,)

    @cached_property
    def n_groups(self) -> int:
        return int(self.groups[-1]) + 1


def best_decisions(candidates: Candidates, columns: np.ndarray, loss: DecisionLoss) -> np.ndarray | None:
    """Numbers of one candidate of every group with the least loss of their sums; None if none are within the bounds.

    The loss is taken as linear around the best candidates known, again and again, which is the method of Dinkelbach
    where it is a ratio. Where gains to first order do not tell whether others are better, the sums of a lower loss are
    searched; they are a convex set if the loss is quasi-convex. ``columns`` has the amounts that every candidate adds
    to the sums.
    """
    chosen = best_choice(candidates, loss.slopes(loss.centre) @ columns, -np.inf)
    while chosen is not None:
        sums = columns[:, chosen].sum(axis=1)
        gains, level = loss.slopes(sums) @ columns, float(loss.of_sums(sums))
        found = best_choice(candidates, gains, float(gains[chosen].sum())) if gains.any() else chosen
        if found is not None and not loss.of_sums(columns[:, found].sum(axis=1)) < level - ROUNDING:
            found = _Search(candidates, _LowerLoss(columns, loss, level)).best()
        if found is None:
            return chosen
        chosen = found
    return None


def best_choice(candidates: Candidates, gains: np.ndarray, least: float) -> np.ndarray | None:
    """Numbers of one candidate of every group, within the windows, with the largest sum of gains.

    None if no sum exceeds ``least``.
    """
    return _Search(candidates, _LargerGain(gains, least)).best()


class _Aim(ABC):
    """Mark that candidates have to be better than; it rises with the best ones found."""

    #: Whether the best candidates of a box, once in one window, are all that there is to find in it.
    is_linear: bool
    #: Whether the search is to end.
    is_reached: bool = False

    @abstractmethod
    def plane(self, left: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, float]:
        """Gains of some candidates, and the sum that all better choices among them exceed."""

    @abstractmethod
    def takes(self, chosen: np.ndarray) -> bool:
        """Whether candidates are better than all before, which they are part of from now on."""


class _LargerGain(_Aim):
    """A sum of gains beyond the largest known."""

    is_linear = True

    def __init__(self, gains: np.ndarray, least: float) -> None:
        self.gains, self.least = gains, least

    @override
    def plane(self, left: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, float]:
        return self.gains[left], self.least

    @override
    def takes(self, chosen: np.ndarray) -> bool:
        gain = float(self.gains[chosen].sum())
        is_better = gain > self.least + ROUNDING
        self.least = max(gain, self.least)
        return is_better


class _LowerLoss(_Aim):
    """A loss below a level. The sums that have it lie beyond the tangent at any sums whose loss is not below it."""

    is_linear = False

    def __init__(self, columns: np.ndarray, loss: DecisionLoss, level: float) -> None:
        self.columns, self.loss, self.level = columns, loss, level

    @override
    def plane(self, left: np.ndarray, groups: np.ndarray) -> tuple[np.ndarray, float]:
        columns = self.columns[:, left]
        starts = _starts(groups)
        ends = [end.reduceat(columns, starts, axis=1).sum(axis=1) for end in (np.minimum, np.maximum)]
        sums = self._near(*ends)
        slopes = self.loss.slopes(sums)
        # Where the loss is flat, no tangent tells anything.
        return slopes @ columns, float(slopes @ sums) if slopes.any() else -1.0

    def _near(self, least: np.ndarray, most: np.ndarray) -> np.ndarray:
        """Sums in the middle between two, except for the last one, with a loss that is the level or little above."""
        sums = np.tile(((least + most) / 2)[:, None], _GRID.size)
        low, high = 0.0, 2 * float(self.loss.centre[-1])
        for _ in range(_GRIDS):
            sums[-1] = low + (high - low) * _GRID
            is_above = self.loss.of_sums(sums) >= self.level
            last = int(np.flatnonzero(is_above)[-1]) if is_above.any() else 0
            low, high = sums[-1, last], sums[-1, min(last + 1, _GRID.size - 1)]
        return np.append(sums[:-1, 0], low)

    @override
    def takes(self, chosen: np.ndarray) -> bool:
        self.is_reached |= bool(self.loss.of_sums(self.columns[:, chosen].sum(axis=1)) < self.level - ROUNDING)
        return self.is_reached


class _Box(NamedTuple):
    """Candidates that are left, and the first and last beginnings of the windows, for every bound."""

    left: np.ndarray  # of int, of shape (n_left,)
    low: np.ndarray  # of shape (n_bounds,)
    high: np.ndarray  # of shape (n_bounds,)
    #: How far the largest gains are beyond what they have to exceed.
    worth: float = np.inf
    #: Whether the candidates of these gains lie in one window.
    in_window: bool = False


class _Search:
    """Branch and bound over the beginnings of the windows, the box that may hold most first."""

    def __init__(self, candidates: Candidates, aim: _Aim) -> None:
        self.candidates, self.aim = candidates, aim
        self._best: np.ndarray | None = None

    def best(self) -> np.ndarray | None:
        """Find the best choice; None if there is none that is good enough."""
        n_bounds, order = self.candidates.widths.size, count()
        every = np.arange(self.candidates.groups.size)
        parts: Iterator[_Box] = iter([_Box(every, np.full(n_bounds, -np.inf), np.full(n_bounds, np.inf))])
        boxes: list[tuple[float, int, _Box]] = []
        while True:
            for part in parts:
                box = self._narrowed(part)
                if box is not None:
                    heapq.heappush(boxes, (-box.worth, next(order), box))
            if self.aim.is_reached or not boxes:
                return self._best
            parts = self._halves(heapq.heappop(boxes)[2])

    def _narrowed(self, box: _Box) -> _Box | None:
        """The box without candidates that cannot be chosen; None if it is solved."""
        widths, (left, low, high, *_) = self.candidates.widths, box
        while True:
            groups, numbers = self.candidates.groups[left], self.candidates.numbers[:, left]
            starts = _starts(groups)
            if starts.size < self.candidates.n_groups:
                return None
            gains, least = self.aim.plane(left, groups)
            lowest, highest = (end.reduceat(numbers, starts, axis=1) for end in (np.fmin, np.fmax))
            low = np.max([low, _least(lowest), _most(lowest) - widths - ROUNDING], axis=0)
            high = np.minimum(high, _least(highest))
            largest = np.maximum.reduceat(gains, starts)
            worth = float(largest.sum()) - least
            if worth <= ROUNDING:
                return None
            kept = _inside(numbers, low, high + widths) & (largest[groups] - gains < worth - ROUNDING)
            if kept.all():
                break
            left = left[kept]
        for begin in (high, (low + high) / 2, low):
            inside = _inside(numbers, begin, begin + widths)
            self._offer(left[inside], gains[inside])
        chosen = _best_of_each(groups, gains)
        in_window = bool((_most(numbers[:, chosen]) - _least(numbers[:, chosen]) <= widths + ROUNDING).all())
        if in_window:
            self._offer(left[chosen], gains[chosen])
        is_solved = left.size == starts.size or (in_window and self.aim.is_linear)
        return None if is_solved else _Box(left, low, high, worth, in_window)

    def _offer(self, left: np.ndarray, gains: np.ndarray) -> None:
        """Take the best of some candidates that are within one window, if it is better than all before."""
        groups = self.candidates.groups[left]
        if self.aim.is_reached or _starts(groups).size < self.candidates.n_groups:
            return
        chosen = left[_best_of_each(groups, gains)]
        if self.aim.takes(chosen):
            self._best = chosen

    def _halves(self, box: _Box) -> Iterator[_Box]:
        """Two boxes: of beginnings up to the middle and beyond it, or of the candidates of one group."""
        left, low, high, *_ = box
        sizes = (high - low) / np.maximum(self.candidates.widths, ROUNDING)
        if box.in_window or not sizes.any():
            groups = self.candidates.groups[left]
            own = np.flatnonzero(groups == np.bincount(groups).argmax())
            middle = own[own.size // 2]
            yield _Box(np.delete(left, own[own >= middle]), low, high)
            yield _Box(np.delete(left, own[own < middle]), low, high)
            return
        bound = int(np.argmax(sizes))
        middle = (low[bound] + high[bound]) / 2
        middle = middle if middle < high[bound] else low[bound]
        up, down = high.copy(), low.copy()
        up[bound], down[bound] = middle, np.nextafter(middle, np.inf)
        yield _Box(left, low, up)
        yield _Box(left, down, high)


def _starts(groups: np.ndarray) -> np.ndarray:
    """Places of the first candidate of every group that has any."""
    return np.flatnonzero(np.diff(groups, prepend=-1))


def _least(numbers: np.ndarray) -> np.ndarray:
    return np.fmin.reduce(numbers, axis=1)


def _most(numbers: np.ndarray) -> np.ndarray:
    return np.fmax.reduce(numbers, axis=1)


def _inside(numbers: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Whether candidates have no number outside of the windows."""
    return ~np.any((numbers < first[:, None]) | (numbers > last[:, None] + ROUNDING), axis=0)


def _best_of_each(groups: np.ndarray, gains: np.ndarray) -> np.ndarray:
    """Places of the first of the largest gains of every group."""
    order = np.lexsort((-gains, groups))
    return order[_starts(groups[order])]
