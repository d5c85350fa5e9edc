"""AUCs between the rows of many groups: one sort, and work for the scores that a group has instead of for all of them.

Pure functions of arrays, without validation. An AUC minus one half is here called *centred*. It is a sum over the
rows of one set: how much of the other set they score above, minus how much they score below, halved. So it is exactly
0 for a constant score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.metrics.intervals import ALL_RANKS, RANK_TOLERANCE, PercentileIntervals

__all__ = [
    "ScoredRows",
    "centred_aucs_of_groups",
    "largest_centred_auc",
    "pair_aucs",
    "partial_steps",
]

#: Groups up to which a dense table is faster than a sparse one.
FEW_GROUPS = 8
# 32 MB a block, however many groups and scores there are
_BLOCK_ENTRIES = 2**22
#: Bins of scores that bound the AUCs of many groups.
_BINS = 64
#: Amount by which rounding may move a bound.
_ROUNDING = 1e-12


class ScoredRows(NamedTuple):
    """Rows with the number of their score among the distinct ones, the highest first; build it with :meth:`of`."""

    levels: np.ndarray  # of shape (n_samples,)
    codes: np.ndarray  # of shape (n_samples,)
    weights: np.ndarray  # of shape (n_samples,)
    n_levels: int
    n_groups: int

    @classmethod
    def of(cls, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int) -> Self:
        """Sort the scores."""
        distinct, levels = np.unique(-scores, return_inverse=True)
        return cls(levels, codes, weights, distinct.size, n_groups)

    def among(self, chosen: np.ndarray) -> Self:
        """Some of the rows, under the same numbers."""
        return self._replace(
            levels=self.levels[chosen], codes=self.codes[chosen], weights=np.asarray(self.weights)[chosen]
        )

    @property
    def mass(self) -> np.ndarray:
        """Weight of every group, of shape (n_groups,)."""
        return np.bincount(self.codes, self.weights, minlength=self.n_groups)

    def steps(self) -> sp.csr_array:
        """Weight of every group at every score, of shape (n_groups, n_levels)."""
        shape = self.n_groups, self.n_levels
        # column by column first: rows of ascending levels follow without a sort
        steps = sp.csc_array((self.weights, (self.codes, self.levels)), shape=shape, dtype=np.float64)
        return steps.tocsr()

    def against(self, others: ScoredRows) -> np.ndarray:
        """Centred AUC of every group's rows above all the other rows; NaN for empty ones, of shape (n_groups,)."""
        mass = np.bincount(others.levels, others.weights, minlength=self.n_levels)
        above = _excess_above(mass)
        sums = np.bincount(self.codes, self.weights * above[self.levels], minlength=self.n_groups)
        with np.errstate(invalid="ignore"):
            return np.asarray(sums / (self.mass * mass.sum()))

    def within(self, others: ScoredRows) -> np.ndarray:
        """Centred AUC of every group's rows above the other rows of the same group; of shape (n_groups,)."""
        # masses in units that are powers of two: the rounding of heavy groups does not reach the light ones
        unit = np.ldexp(1.0, -np.frexp(np.maximum(self.mass, others.mass))[1])
        places = np.concatenate([part.codes * np.int64(self.n_levels) + part.levels for part in (self, others)])
        if self.n_groups * self.n_levels <= _BLOCK_ENTRIES:
            keys = np.arange(self.n_groups * self.n_levels)
        else:
            keys, places = np.unique(places, return_inverse=True)
        own, other = places[: self.codes.size], places[self.codes.size :]
        mass = np.bincount(other, others.weights * unit[others.codes], minlength=keys.size)
        sums = np.concatenate([[0.0], np.cumsum(mass)])
        ends = sums[np.searchsorted(keys, np.arange(self.n_groups + 1, dtype=np.int64) * self.n_levels)]
        group = keys // self.n_levels
        # of the same group: what is below minus what is above, from the sums up to either end of a score
        above = ((ends[group] - sums[:-1]) + (ends[group + 1] - sums[1:])) / 2
        totals = np.bincount(self.codes, self.weights * above[own], minlength=self.n_groups)
        with np.errstate(invalid="ignore"):
            return np.asarray(totals / (self.mass * others.mass * unit))


def pair_aucs(
    scores: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray,
    n_groups: int,
    intervals: PercentileIntervals,
) -> np.ndarray:
    """Probability that a row of one group outranks a row of another, both within the interval.

    The area under the curve of two columns of ``clip(rank) / length`` along the scores, by the trapezoidal rule: a tie
    between groups counts one half, and a block of ties on an end of the interval with the fraction inside.
    O(n log n + n n_groups) time.

    Parameters
    ----------
    scores, codes, weights, n_groups
        Rows, as described at the top of ``_ranks``.

    Returns
    -------
    aucs : ndarray of shape (n_groups, n_groups)
        ``P(s > s') + P(s = s') / 2`` for ``s`` of the group of the row and ``s'`` of the group of the column;
        ``aucs + aucs.T = 1``.
    """
    steps = partial_steps(ScoredRows.of(scores, codes, weights, n_groups), intervals)
    centred = _centred_aucs(steps, steps)
    # Rounding aside, the two triangles are complements already.
    return 0.5 + (centred - centred.T) / 2


def centred_aucs_of_groups(scores: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_groups: int) -> np.ndarray:
    """`pair_aucs` of all ranks minus one half, for groups that all have weight; ndarray of shape (n_groups, n_groups).

    Of up to `FEW_GROUPS` groups by a dense table, which is faster.
    """
    if n_groups > FEW_GROUPS:
        return pair_aucs(scores, codes, weights, n_groups, ALL_RANKS) - 0.5
    order = np.argsort(-scores)
    ordered = scores[order]
    levels = np.concatenate([[0], np.cumsum(ordered[1:] != ordered[:-1])])
    n_levels = int(levels[-1]) + 1
    places = codes[order] * n_levels + levels
    mass = np.bincount(places, weights[order], minlength=n_groups * n_levels).reshape(n_groups, n_levels)
    totals = mass.sum(axis=1)
    centred = mass @ _excess_above(mass.T) / np.outer(totals, totals)
    return np.clip((centred - centred.T) / 2, -0.5, 0.5)


def partial_steps(rows: ScoredRows, intervals: PercentileIntervals) -> sp.csr_array:
    """Share of the interval of every group that every score makes up; csr_array of shape (n_groups, n_levels)."""
    steps = rows.steps()
    sizes = np.diff(steps.indptr)
    codes = np.repeat(np.arange(rows.n_groups), sizes)
    mass = rows.mass
    # as in `ScoredRows.within`
    unit = np.ldexp(1.0, -np.frexp(mass)[1])
    sums = np.concatenate([[0.0], np.cumsum(steps.data * unit[codes])])
    ranks = (sums[1:] - sums[steps.indptr[:-1]][codes]) / (mass * unit)[codes]
    ranks[ranks > 1 - RANK_TOLERANCE] = 1.0
    own = intervals.of_codes(codes)
    shares = own.clip(ranks) / own.length
    is_first = np.zeros(codes.size, dtype=bool)
    is_first[steps.indptr[:-1][sizes > 0]] = True
    before = np.where(is_first, 0.0, np.concatenate([[0.0], shares[:-1]]))
    return sp.csr_array((shares - before, steps.indices, steps.indptr), shape=steps.shape)


def largest_centred_auc(steps: sp.csr_array, others: sp.csr_array | None = None) -> float:
    """Largest absolute value over all pairs of groups; of many groups, of those that bounds leave.

    Parameters
    ----------
    steps : csr_array of shape (n_groups, n_levels)
        The centred AUC ``P(s > s')`` for ``s`` from the rows of one group and ``s'`` from those of the other.
    others : csr_array of shape (n_groups, n_levels), optional
        Subtrahends, if differences of two AUCs are compared: that of a group's ``steps`` above the other group's
        ``others``, and that with the groups exchanged.

    Returns
    -------
    largest : float
        NaN for a single group, or if any of the groups has no weight.
    """
    is_one_auc = others is None
    others = steps if others is None else others
    n_groups, n_levels = steps.shape
    if n_groups == 1:
        return float("nan")
    if not (steps.sum(axis=1).all() and others.sum(axis=1).all()):
        return float("nan")
    floor = 0.0
    if n_groups * n_levels > _BLOCK_ENTRIES:
        floor, kept = _promising_groups([(steps, others)] if is_one_auc else [(steps, others), (others, steps)])
        steps, others = steps[kept], others[kept]
    centred = _centred_aucs(steps, others)
    return float(np.abs(centred if is_one_auc else centred - centred.T).max(initial=floor))


def _promising_groups(pairs: Sequence[tuple[sp.csr_array, sp.csr_array]]) -> tuple[float, np.ndarray]:
    """A number that the largest absolute sum of centred AUCs reaches, and the groups where it may be larger.

    Of scores in bins it is known how those of different bins compare. Pairs of rows within a bin, all ties at first,
    can move the AUC of two groups by half of their share.
    """
    binned = [tuple(_binned_shares(steps) for steps in pair) for pair in pairs]
    excess = [_excess_above(below.T) for _, below in binned]
    n_groups = pairs[0][0].shape[0]
    size = max(1, _BLOCK_ENTRIES // n_groups)
    floor, candidates = 0.0, []
    for start in range(0, n_groups, size):
        rows = slice(start, start + size)
        centred = np.abs(sum(above[rows] @ of_below for (above, _), of_below in zip(binned, excess, strict=True)))
        moves = sum(above[rows] @ below.T for above, below in binned) / 2
        floor = max(floor, float((centred - moves).max()))
        first, second = np.nonzero(centred + moves > floor + _ROUNDING)
        candidates.append((start + first, second, (centred + moves)[first, second]))
    first, second, most = (np.concatenate(parts) for parts in zip(*candidates, strict=True))
    floor = min(floor, len(pairs) / 2)  # rounding alone leads out
    return floor, np.union1d(*(groups[most > floor + _ROUNDING] for groups in (first, second)))


def _binned_shares(steps: sp.csr_array) -> np.ndarray:
    """Share of every group in each of ``_BINS`` bins of about as many scores, of shape (n_groups, _BINS)."""
    n_groups, n_levels = steps.shape
    bins = steps.indices.astype(np.int64) * _BINS // n_levels
    groups = np.repeat(np.arange(n_groups), np.diff(steps.indptr))
    mass = np.bincount(groups * _BINS + bins, steps.data, minlength=n_groups * _BINS).reshape(n_groups, _BINS)
    return mass / mass.sum(axis=1, keepdims=True)


def _centred_aucs(above: sp.csr_array, below: sp.csr_array) -> np.ndarray:
    """AUCs, minus one half, of all groups of ``above`` over all of ``below``; ndarray of shape (n_groups, n_groups)."""
    n_groups, n_levels = below.shape
    centred = np.empty((n_groups, n_groups))
    for group in range(n_groups):
        own = slice(*below.indptr[group : group + 2])
        of_group = np.bincount(below.indices[own], below.data[own], minlength=n_levels)
        centred[:, group] = above @ _excess_above(of_group)  # one group at a time stays in the cache
    mass, of_below = (np.asarray(steps.sum(axis=1)) for steps in (above, below))
    with np.errstate(invalid="ignore"):
        centred /= mass[:, None] * of_below
    return np.clip(centred, -0.5, 0.5, out=centred)  # rounding alone leads out


def _excess_above(mass: np.ndarray) -> np.ndarray:
    """Half of what lies below minus half of what lies above each score, the highest first; by columns."""
    sums = np.cumsum(mass, axis=0)
    return sums[-1] / 2 - sums + mass / 2
