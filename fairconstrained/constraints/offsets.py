"""Exact search for the intercepts that classify best within a bound on the groups' positive rates.

Adding ``b_g`` to the scores of group g only changes how many of its rows are above the threshold, so a group has at
most ``n_g + 1`` different outcomes, each with a rate and a gain. Both searches examine all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Cuts", "allowed_in_order", "cuts_between", "free_offset", "group_offsets", "shared_offset"]

#: Windows of rates that `group_offsets` tries at most, evenly spread over all there are.
_MAX_WINDOWS = 50_000
#: Cuts that are examined at first, and at most, at a time: many groups have a sum for every cut.
_FEW_CUTS, _MANY_CUTS = 256, 65_536
#: Rates are sums of floats; windows that differ by less are the same.
_ROUNDING = 1e-12


class Cuts(NamedTuple):
    """Every way to split sorted scores in two; each array has shape (n_cuts,), from no row above to all."""

    #: Threshold, above which rows are positive.
    at: np.ndarray
    #: Sums of the weights and of the gains of these rows.
    rate: np.ndarray
    gain: np.ndarray


def cuts_between(scores: np.ndarray, weights: np.ndarray, gains: np.ndarray) -> Cuts:
    """Return the cuts between any two scores that differ, and beyond both ends; all have shape (n_samples,)."""
    order = np.argsort(-scores, kind="stable")
    ordered = scores[order]
    beyond = 1e-6 * (1 + np.abs(ordered[[0, -1]]))
    ends = np.concatenate([[ordered[0] + beyond[0]], ordered, [ordered[-1] - beyond[1]]])
    middle = (ends[1:] + ends[:-1]) / 2
    middle = np.where(middle < ends[:-1], middle, ends[1:])  # of neighbouring floats it may be the upper one
    split = np.append(True, ends[1:-1] > ends[2:])  # tied rows stay together
    rate = np.append(0.0, np.cumsum(weights[order]))
    gain = np.append(0.0, np.cumsum(gains[order]))
    return Cuts(middle[split], rate[split], gain[split])


def group_offsets(
    scores: list[np.ndarray],
    weights: list[np.ndarray],
    gains: list[np.ndarray],
    values: Sequence[Callable[[np.ndarray], np.ndarray]],
    tolerance: float,
    threshold: float,
) -> np.ndarray:
    """Offsets, one per group, of largest gain such that the groups' values differ by at most ``tolerance``.

    Parameters
    ----------
    scores, weights, gains : lists of ndarray of shape (n_g,), one for each group
        Weights sum to one within a group; the gain of a row is what predicting it positive is worth.
    values : sequence of callable, one for each group
        Non-decreasing function of the group's rate that the tolerance refers to.
    threshold : float
        Rows above it are positive.

    Returns
    -------
    offsets : ndarray of shape (n_groups,)
    """
    cuts = [cuts_between(*rows) for rows in zip(scores, weights, gains, strict=True)]
    levels = [value(cut.rate) for value, cut in zip(values, cuts, strict=True)]
    # In the best solution some group has the least value: windows that begin at those values are enough.
    starts = np.unique(np.concatenate(levels))
    starts = starts[np.linspace(0, starts.size - 1, min(starts.size, _MAX_WINDOWS)).astype(int)]
    ranges = [
        (
            np.searchsorted(v, starts - _ROUNDING),
            np.searchsorted(v, starts + tolerance + _ROUNDING, side="right"),
        )
        for v in levels
    ]
    total = sum(_range_max(cut.gain, *span) for cut, span in zip(cuts, ranges, strict=True))
    best = int(np.argmax(total))
    offsets = []
    for cut, (first, last) in zip(cuts, ranges, strict=True):
        inside = slice(first[best], last[best])
        offsets.append(threshold - cut.at[inside][np.argmax(cut.gain[inside])])
    return np.array(offsets)


def shared_offset(
    scores: np.ndarray,
    gains: np.ndarray,
    allowed: Callable[[np.ndarray], np.ndarray],
    threshold: float,
) -> float:
    """The offset of largest gain that can be added to all scores; 0 if none is allowed.

    Parameters
    ----------
    scores, gains : ndarray of shape (n_samples,)
    allowed : callable
        Takes thresholds, an ndarray of shape (n_cuts,), and returns which are allowed. It is asked for those of the
        largest gains first, and for more only where none of them is allowed.
    """
    cuts = cuts_between(scores, np.zeros_like(scores), gains)
    by_gain = cuts.at[np.argsort(-cuts.gain, kind="stable")]
    best = next(allowed_in_order(by_gain, allowed), None)
    return 0.0 if best is None else threshold - best


def allowed_in_order(cuts: np.ndarray, allowed: Callable[[np.ndarray], np.ndarray]) -> Iterator[float]:
    """Yield those of the cuts that are allowed, in their order; few more are examined than are asked for."""
    first, size = 0, _FEW_CUTS
    while first < cuts.size:
        some = cuts[first : first + size]
        yield from some[allowed(some).astype(bool)].tolist()
        first, size = first + size, min(4 * size, _MANY_CUTS)


def free_offset(scores: np.ndarray, gains: np.ndarray, threshold: float) -> float:
    """`shared_offset` where every threshold is allowed."""
    return shared_offset(scores, gains, np.ones_like, threshold)


def _range_max(values: np.ndarray, first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Maximum of ``values[first:last]`` for many ranges, -inf for empty ones; O((n + n_ranges) log n)."""
    length = last - first
    result = np.full(first.shape, -np.inf)
    level, span = values, 1
    while level.size:
        # ranges of span <= length < 2 span are the union of two blocks of this length
        these = np.flatnonzero((length >= span) & (length < 2 * span))
        result[these] = np.maximum(level[first[these]], level[last[these] - span])
        level, span = np.maximum(level[:-span], level[span:]), 2 * span
    return result
