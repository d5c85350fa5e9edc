"""Ranks of thresholds within groups, and the gaps between groups computed from them.

Pure functions of arrays, without validation, for the layers above: ``scores`` of shape (n_samples,), integer
``codes`` in ``0 .. n_groups - 1``, non-negative ``weights`` with a positive sum in every group.

The rank of a threshold is ``Fbar_g(theta) = P(score > theta | g)``. As a function of theta it only changes at
observed scores, so a table over the distinct scores is exact. Tied scores lie on one side of any threshold:
no order is ever chosen among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals

__all__ = [
    "RankTable",
    "WorstGap",
    "gaps_by_threshold",
    "pair_gaps",
    "rank_table",
    "ranks_of_models",
    "worst_gap",
]

# 32 MB a block: the whole table for two groups and two million rows, bounded memory for a hundred groups.
_BLOCK_ENTRIES = 2**22


class WorstGap(NamedTuple):
    """The largest gap over thresholds and pairs of groups, and where it is attained."""

    gap: float
    #: An observed score; ``-inf`` never attains a positive gap.
    threshold: float
    #: Rank of ``threshold`` in every group.
    ranks: np.ndarray  # of shape (n_groups,)


class RankTable:
    """The rank table as blocks of consecutive thresholds, so that memory stays bounded.

    Parameters
    ----------
    scores, codes, weights, n_groups
        Rows, as described at the top of the module.

    Attributes
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        Distinct scores in decreasing order, then ``-inf``.
    """

    def __init__(self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int) -> None:
        order = np.argsort(-scores)
        ordered = scores[order]
        is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])
        self.thresholds = np.append(ordered[is_first], -np.inf)
        self._codes, self._weights, self._n_groups = codes[order], weights[order], n_groups
        # A score counts as "above" from the next lower threshold on: that is its first row in the table.
        self._row = np.cumsum(is_first)
        self._size = max(1, _BLOCK_ENTRIES // n_groups)
        self._starts = np.arange(0, self.thresholds.size, self._size)
        self._total = np.bincount(codes, weights, minlength=n_groups)
        shape = self._starts.size, n_groups
        added = np.bincount(
            self._row // self._size * n_groups + self._codes, self._weights, minlength=shape[0] * shape[1]
        )
        self._above = np.cumsum(np.concatenate([np.zeros((1, n_groups)), added.reshape(shape)]), axis=0)

    def __len__(self) -> int:
        """Number of blocks."""
        return self._starts.size

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Iterate over the blocks, each as `block` returns it; the last threshold of the last one is ``-inf``."""
        return map(self.block, range(len(self)))

    def block(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Thresholds of a block, of shape (n_block,), and their ranks, of shape (n_block, n_groups)."""
        start = int(self._starts[number])
        thresholds = self.thresholds[start : start + self._size]
        rows = slice(*np.searchsorted(self._row, [start, start + self._size]))
        cells = self._codes[rows] * thresholds.size + self._row[rows] - start
        added = np.bincount(cells, self._weights[rows], minlength=self._n_groups * thresholds.size)
        above = self._above[number][:, None] + np.cumsum(added.reshape(self._n_groups, -1), axis=1)
        return thresholds, _ranks(above.T, self._total)

    def ends(self) -> np.ndarray:
        """Ranks before the first block and at the end of each, of shape (n_blocks + 1, n_groups)."""
        return _ranks(self._above, self._total)


def rank_table(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Rank of every distinct score in every group, by one sort.

    Returns
    -------
    thresholds : ndarray of shape (n_thresholds,)
        Distinct scores in decreasing order, then ``-inf``.
    ranks : ndarray of shape (n_thresholds, n_groups)
        ``P(score > threshold | g)``: increasing down the rows, from 0 to 1.
    """
    order = np.argsort(-scores)
    ordered, mass = scores[order], np.zeros((n_groups, scores.size + 1))
    mass[codes[order], np.arange(1, scores.size + 1)] = weights[order]
    # A score counts as "above" from the next lower threshold on.
    is_first = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    # groups first in memory, as sums and extremes over long axes are faster
    above = np.cumsum(mass, axis=1).compress(is_first, axis=1).T
    return np.append(ordered, -np.inf)[is_first], _ranks(above, np.bincount(codes, weights, minlength=n_groups))


def _ranks(above: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Ranks from the weights above thresholds and those of whole groups."""
    ranks = above / total
    ranks[ranks > 1 - RANK_TOLERANCE] = 1.0
    return ranks


def ranks_of_models(
    scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """Ranks in every group of the scores of several models.

    Parameters
    ----------
    scores : ndarray of shape (n_models, n_samples)
    codes, weights, n_groups
        Rows, as described at the top of the module.

    Returns
    -------
    ranks : ndarray of shape (n_models, n_samples, n_groups)
        Share of every group with scores at least as large as each of the scores, which descend.
    counts : ndarray of bool of shape (n_models, n_samples)
        Whether the next score is smaller. The ranks of other entries are those of no threshold.
    """
    order = np.argsort(-scores, axis=1)
    ordered = np.take_along_axis(scores, order, axis=1)
    mass = np.zeros((n_groups, codes.size))
    mass[codes, np.arange(codes.size)] = weights
    above = np.moveaxis(np.cumsum(mass.take(order, axis=1), axis=2), 0, -1)
    counts = np.concatenate([ordered[:, 1:] != ordered[:, :-1], np.ones((len(scores), 1), dtype=bool)], axis=1)
    return _ranks(above, mass.sum(axis=1)), counts


def gaps_by_threshold(ranks: np.ndarray, intervals: PercentileIntervals, normalize: bool = True) -> np.ndarray:
    """Largest gap over pairs of groups, at each threshold; ndarray of shape (n_thresholds,).

    Parameters
    ----------
    ranks : ndarray of shape (n_thresholds, n_groups)
    normalize : bool, default=True
        Compare ``clip(rank) / length``; otherwise the ranks themselves, for the pairs in which at least one
        rank lies in its group's interval.
    """
    if normalize:
        # groups first in memory: extremes over a short last axis are slow
        values = np.ascontiguousarray((intervals.clip(ranks) / intervals.length).T)
        return values.max(axis=0) - values.min(axis=0)
    # The pair of a group inside the interval that differs most is the one with the extreme group overall,
    # so the extremes inside and overall suffice and no loop over pairs is needed.
    inside = intervals.contains(ranks)
    lowest_inside = np.where(inside, ranks, np.inf).min(axis=1)
    highest_inside = np.where(inside, ranks, -np.inf).max(axis=1)
    gaps = np.maximum(ranks.max(axis=1) - lowest_inside, highest_inside - ranks.min(axis=1))
    return np.maximum(gaps, 0.0)


def pair_gaps(ranks: np.ndarray, intervals: PercentileIntervals, normalize: bool = True) -> np.ndarray:
    """Largest gap over the thresholds, for each pair of groups.

    Takes the parameters of :func:`gaps_by_threshold`; costs O(n_thresholds n_groups^2).

    Returns
    -------
    gaps : ndarray of shape (n_groups, n_groups)
        Symmetric, with a zero diagonal.
    """
    n_groups = ranks.shape[1]
    values = intervals.clip(ranks) / intervals.length if normalize else ranks
    counts = np.ones_like(ranks, dtype=bool) if normalize else intervals.contains(ranks)
    gaps = np.zeros((n_groups, n_groups))
    for group in range(n_groups - 1):
        own, others = slice(group, group + 1), slice(group + 1, None)
        differences = np.abs(values[:, others] - values[:, own]) * (counts[:, others] | counts[:, own])
        gaps[group, others] = differences.max(axis=0)
    return gaps + gaps.T


def worst_gap(
    scores: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    n_groups: int,
    intervals: PercentileIntervals,
    normalize: bool = True,
) -> WorstGap:
    """Largest gap over all thresholds and pairs of groups, in O(n log n + n n_groups) time at most.

    Parameters
    ----------
    scores, codes, weights, n_groups
        Rows, as described at the top of the module.
    normalize : bool, default=True
        Whether gaps are shares of the interval, as in :func:`gaps_by_threshold`.

    Returns
    -------
    worst : WorstGap
        Ties between thresholds go to the highest threshold.
    """
    table = RankTable(scores, codes, weights, n_groups)
    least, most = -np.inf, np.full(len(table), np.inf)
    if normalize and len(table) > 1:  # then gaps are differences of shares, which grow from block to block
        shares = intervals.clip(ends := table.ends()) / intervals.length
        least = gaps_by_threshold(ends, intervals).max()
        most = shares[1:].max(axis=1) - shares[:-1].min(axis=1)
    worst: WorstGap | None = None
    for number in np.flatnonzero(most >= least).tolist():
        if worst is not None and most[number] <= worst.gap:
            continue
        thresholds, ranks = table.block(number)
        gaps = gaps_by_threshold(ranks, intervals, normalize)
        at = int(gaps.argmax())
        if worst is None or gaps[at] > worst.gap:
            worst = WorstGap(float(gaps[at]), float(thresholds[at]), ranks[at].copy())
    assert worst is not None  # the table always has the row of -inf
    return worst
