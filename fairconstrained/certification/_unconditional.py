r"""Exact bounds on the difference of two independent rates, of which only the difference is of interest.

With the difference :math:`\hat d` of the sample, the differences :math:`p_a - p_b` are not rejected for which

.. math:: P_{p_a, p_b}(\hat D \le \hat d) > \delta - \gamma

for some pair of rates that is likely at all, namely within four ends that fail with probability :math:`\gamma` together
(Berger and Boos 1994). The largest of them is the bound. The probability falls with :math:`p_a` and rises with
:math:`p_b`, so that it is enough to look at :math:`p_b` on a grid: between two of its points the upper one has the
larger probability, and the lower one the larger difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import betainc, gammaln, xlog1py, xlogy
from typing_extensions import override

from fairconstrained.certification._binomial import binomial_ends, counted_events
from fairconstrained.certification.evidence import Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import CellRates, Comparison, NotOffered
from fairconstrained.metrics.contrasts import PairGaps

__all__ = ["DifferencesOfRates", "difference_upper"]

#: Share of delta for where the rates may be.
_NUISANCE = 0.05
#: Points of the grid for the rate of the larger group, and halvings for that of the smaller one.
_GRID, _HALVINGS = 100, 14
#: Outcomes of b that fall short by no more than rounding count.
_ROUNDING = 1e-6
#: Outcomes less likely than this are left out of sums.
_LEFT_OUT = 1e-12
_STANDARD_DEVIATIONS = 8
#: Rows up to which other sample sizes are computed by sums as well.
_ENOUGH = 20_000
#: Rows from which on intervals of both rates are used instead; the sums would be too long.
_MANY = 10_000_000


def difference_upper(hits: tuple[float, float], counts: tuple[int, int], delta: float) -> float:
    """Bound that ``p_a - p_b`` exceeds with probability at most ``delta``.

    Parameters
    ----------
    hits : tuple of float
        Numbers of hits of the groups a and b; need not be integers.

    References
    ----------
    R. Berger, D. Boos, "P Values Maximized Over a Confidence Set for the Nuisance Parameter", JASA 1994. I. Chan,
    Z. Zhang, "Test-Based Exact Confidence Intervals for the Difference of Two Binomial Proportions", Biometrics 1999.
    """
    if max(counts) > _MANY:
        low, high = binomial_ends(np.array(hits), np.array(counts), delta / 2)
        return float(high[0] - low[1])
    if counts[0] > counts[1]:
        # The rate of the larger group is on the grid. Misses for hits and b for a have the same difference.
        hits, counts = (counts[1] - hits[1], counts[0] - hits[0]), counts[::-1]
    n, m = counts
    gamma = _NUISANCE * delta
    low, high = binomial_ends(np.array(hits), np.array(counts), gamma / 4)
    grid = np.linspace(low[1], high[1], _GRID + 1)
    # outcomes of a that are likely for any of its rates, and the least outcome of b that makes up for each
    spread = _STANDARD_DEVIATIONS * (np.sqrt(n) / 2 + 1)
    outcomes = np.arange(max(0, int(n * low[0] - spread)), min(n, int(n * high[0] + spread)) + 1)
    difference = hits[0] / n - hits[1] / m
    least = np.ceil(m * (outcomes / n - difference) - _ROUNDING)
    tails = _survival(least, m, grid[1:, None])
    constant = gammaln(n + 1) - gammaln(outcomes + 1) - gammaln(n - outcomes + 1)

    def are_likely(rates: np.ndarray, tails: np.ndarray) -> np.ndarray:
        rates = rates[:, None]
        probabilities = np.exp(constant + xlogy(outcomes, rates) + xlog1py(n - outcomes, -rates))
        return np.einsum("ij,ij->i", probabilities, tails) + _LEFT_OUT > delta - gamma

    # a cell of the grid is out as a whole if its likeliest pair of rates is
    kept = are_likely(np.full(_GRID, low[0]), tails)
    if not kept.any():
        return float(low[0] - high[1])
    below, tails = grid[:-1][kept], tails[kept]
    # of every other cell: differences that are not rejected, and such that are
    inside, outside = low[0] - below, high[0] - below
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        not_rejected = are_likely(below + middle, tails)
        inside, outside = np.where(not_rejected, middle, inside), np.where(not_rejected, outside, middle)
        largest = outside >= inside.max()  # what the others reach is less than what one of them is sure of
        inside, outside, below, tails = inside[largest], outside[largest], below[largest], tails[largest]
    return float(outside.max())


def _survival(least: np.ndarray, count: int, rates: np.ndarray) -> np.ndarray:
    """``P(K >= least)`` of binomial K."""
    inner = (least > 0) & (least <= count)
    safe = np.where(inner, least, 1)
    return np.where(inner, betainc(safe, count - safe + 1, rates), least <= 0)


@dataclass(frozen=True, eq=False)
class DifferencesOfRates(Evidence):
    """The largest difference between the rates of two groups, in any block."""

    #: Comparison of the rates of groups that do not overlap.
    found: Comparison
    method: ClassVar[str] = "unconditional"
    _precision: ClassVar[float] = 1e-3  # counts are rounded, and a bound takes its time

    @property
    @override
    def n_events(self) -> int:
        return 5

    @property
    @override
    def union(self) -> str:
        return (
            f"the difference of one pair of groups ({1 - _NUISANCE:g} delta), and 4 ends between which its rates are "
            f"({_NUISANCE:g} delta together); none over pairs of groups, as the largest of bounds that hold singly "
            "bounds the largest gap"
        )

    def upper(self, delta: float, scale: float = 1.0) -> float:
        """Implement `Evidence.upper`.

        For larger samples numbers of rows are rounded, and beyond `_ENOUGH` of them in the smallest cell the margin
        falls with the root of their number.
        """
        reached = max(1.0, _ENOUGH / self.found.counts.min())
        if scale > reached:
            return self.gap + (self.upper(delta, reached) - self.gap) * np.sqrt(reached / scale)
        best = 0.0
        for most, hits, counts in sorted(self._pairs(delta, scale), reverse=True):
            if most <= best:  # what the ends of the rates alone allow
                break
            best = max(best, difference_upper(hits, counts, delta))
        return best

    def _pairs(self, delta: float, scale: float) -> Iterator[tuple[float, tuple[float, float], tuple[int, int]]]:
        """The largest difference that the rates may have at all, hits and counts, for every ordered pair."""
        counts = np.maximum(np.rint(self.found.counts * scale), 1)
        hits = self.found.sums(self.found.values) / self.found.counts * counts
        low, high = binomial_ends(hits, counts, _NUISANCE * delta / 4)
        for block in range(len(counts)):
            for a, b in permutations(range(counts.shape[1]), 2):
                most = float(high[block, a] - low[block, b])
                yield most, (hits[block, a], hits[block, b]), (int(counts[block, a]), int(counts[block, b]))

    def cells(self, delta: float) -> pd.DataFrame:
        """Implement `Evidence.cells`; counts and estimates only, as the bound is one of their difference."""
        return self.found.table


@offers("unconditional", CellRates)
def _differences(sample: Sample) -> Evidence:
    found = counted_events(sample)
    contrast = found.contrast
    if type(contrast) is not PairGaps or contrast.intervals is not None:
        raise NotOffered("'unconditional' bounds differences of two rates.")
    if contrast.agg != "max" or (contrast.fold == "sum" and contrast.n_blocks > 1):
        raise NotOffered("'unconditional' bounds the largest difference of two rates, not sums or means of several.")
    if found.with_overall or found.groups.unions is not None:
        raise NotOffered("'unconditional' needs rates that are independent: of groups that do not overlap.")
    return DifferencesOfRates(sample.gap, sample.n_samples, found)
