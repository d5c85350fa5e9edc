"""Means of piecewise polynomials over all pairs of two samples, from moments of sorted windows.

Pairs in one piece of the kernel are a window of the other sample in sorted order; see `fairconstrained.pairwise`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Pieces", "Side", "centre", "group_potentials", "pair_sums"]

#: Points that are summed at once: more do not stay in the cache, fewer are slowed down by the number of calls.
_AT_ONCE = 2**14


class Pieces(NamedTuple):
    """A piecewise polynomial; those of degree one are continuous.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing.
    coefficients : ndarray of shape (n_knots + 1, degree + 1)
        Of every piece, the constant first.
    """

    knots: np.ndarray
    coefficients: np.ndarray


class Parts(NamedTuple):
    """The part ``begins_i : ends_i`` of the others that belongs to a point; ndarrays of shape (n_points,).

    Between one point's knots there are no others of another part.
    """

    begins: np.ndarray
    ends: np.ndarray


def centre(x: np.ndarray, weights: np.ndarray) -> float:
    """Weighted mean: powers of centred scores lose less to rounding."""
    total = weights.sum()
    return float(weights @ x / total) if total > 0 else 0.0


def potentials(kernel: Pieces, points: np.ndarray, others: np.ndarray, weights: np.ndarray, parts: Parts) -> np.ndarray:
    """Sums over a point's part of the others of the weighted kernel and of its derivative; shape (2, n_points).

    Points and others are sorted.
    """
    return (_hinge_potentials if _is_linear(kernel) else _polynomial_potentials)(kernel, points, others, weights, parts)


def group_potentials(
    kernel: Pieces, x: np.ndarray, weights: np.ndarray, codes: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """`potentials` of the rows of every group, at all rows; two ndarrays of shape (n_groups, n).

    The rows are sorted. Groups are laid side by side, so far apart that one search finds all windows.
    """
    place = np.argsort(codes, kind="stable")
    apart = (2 * np.ptp(x) + 2 * np.abs(kernel.knots).max()) * np.arange(n_groups)
    ends = np.cumsum(np.bincount(codes, minlength=n_groups))
    begins = np.append(0, ends[:-1])
    values, slopes = np.empty((2, n_groups, x.size))
    at_once = max(_AT_ONCE // x.size, 1)
    for first in range(0, n_groups, at_once):
        some = slice(first, first + at_once)
        own = place[begins[first] : ends[some][-1]]
        points, others = (x + apart[some, None]).ravel(), x[own] + apart[codes[own]]
        parts = Parts(*(np.repeat(edges[some] - begins[first], x.size) for edges in (begins, ends)))
        values[some], slopes[some] = potentials(kernel, points, others, weights[own], parts).reshape(2, -1, x.size)
    return values, slopes


class Side(NamedTuple):
    """One side of several pairs of samples, sample after sample."""

    x: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray

    def blocks(self, n_samples: int) -> Iterator[Side]:
        """The same in parts of so many samples."""
        ends = np.append(0, np.cumsum(self.sizes))
        for first in range(0, self.sizes.size, n_samples):
            sizes = self.sizes[first : first + n_samples]
            rows = slice(ends[first], ends[first + sizes.size])
            yield Side(self.x[rows], self.weights[rows], sizes)

    def laid_out(self, apart: float) -> tuple[Side, np.ndarray, np.ndarray]:
        """The same sorted, every sample ``apart`` from the one before; the order; and the number of the sample."""
        numbers = np.repeat(np.arange(self.sizes.size), self.sizes)
        x = self.x + apart * numbers
        order = np.argsort(x, kind="stable")
        return Side(x[order], self.weights[order], self.sizes), order, numbers

    def parts(self, numbers: np.ndarray) -> Parts:
        """Where the samples of these numbers begin and end."""
        ends = np.cumsum(self.sizes)
        return Parts((ends - self.sizes)[numbers], ends[numbers])


def pair_sums(kernel: Pieces, first: Side, second: Side) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums over the pairs of every two samples, and their derivatives in the rows of both sides.

    The pairs of samples are laid side by side, so far apart that one search finds the windows of all.
    """
    both = np.concatenate([first.x, second.x])
    apart = 2 * float(np.ptp(both)) + 2 * float(np.abs(kernel.knots).max()) if first.sizes.size > 1 else 0.0
    (one, place, numbers), (other, other_place, other_numbers) = (side.laid_out(apart) for side in (first, second))
    values, d_one = potentials(kernel, one.x, other.x, other.weights, other.parts(numbers))
    slopes = _hinge_slopes if _is_linear(kernel) else _polynomial_slopes
    d_other = slopes(kernel, other.x, one.x, one.weights, one.parts(other_numbers))
    d_first, d_second = np.empty_like(one.x), np.empty_like(other.x)
    d_first[place], d_second[other_place] = one.weights * d_one, -other.weights * d_other
    return np.bincount(numbers, one.weights * values, minlength=first.sizes.size), d_first, d_second


def _is_linear(kernel: Pieces) -> bool:
    """Whether the pieces are lines."""
    return kernel.coefficients.shape[1] == 2


def _hinge_potentials(
    kernel: Pieces, points: np.ndarray, others: np.ndarray, weights: np.ndarray, parts: Parts
) -> np.ndarray:
    """A continuous piecewise linear kernel, as a line plus a hinge ``change_k max(x - knot_k, 0)`` at every knot.

    With ``V(x)`` and ``M(x)``, the sums of the others' weights and of their weighted scores below x, a hinge adds ``x
    V(x) - M(x)`` at ``x = point - knot_k``.
    """
    (constant, slope), *_ = kernel.coefficients
    origin = centre(others, weights)
    centred = points - origin
    below, sums = _cumulative(weights), _cumulative(weights * (others - origin))
    mass, first = below[parts.ends] - below[parts.begins], sums[parts.ends] - sums[parts.begins]
    values = constant * mass + slope * (centred * mass - first)
    slopes = slope * mass + np.zeros(points.size)
    for knot, change in zip(kernel.knots, np.diff(kernel.coefficients[:, 1]), strict=True):
        place = np.searchsorted(others, points - knot)
        so_far = below[place] - below[parts.begins]
        values += change * ((centred - knot) * so_far - (sums[place] - sums[parts.begins]))
        slopes += change * so_far
    return np.stack([values, slopes])


def _hinge_slopes(
    kernel: Pieces, points: np.ndarray, others: np.ndarray, weights: np.ndarray, parts: Parts
) -> np.ndarray:
    """Weighted sums of the derivative where the points are the second ones of the pairs."""
    below = _cumulative(weights)
    slopes = kernel.coefficients[0, 1] * (below[parts.ends] - below[parts.begins])
    for knot, change in zip(kernel.knots, np.diff(kernel.coefficients[:, 1]), strict=True):
        slopes += change * (below[parts.ends] - below[np.searchsorted(others, points + knot, "right")])
    return slopes


def _cumulative(x: np.ndarray) -> np.ndarray:
    """Sums of the first entries, of none at first."""
    sums = np.zeros(x.size + 1)
    np.cumsum(x, out=sums[1:])
    return sums


def _polynomial_potentials(
    kernel: Pieces, points: np.ndarray, others: np.ndarray, weights: np.ndarray, parts: Parts
) -> np.ndarray:
    """Between two knots the kernel is one polynomial of the moments of a window of the sorted other sample."""
    tables = np.stack([kernel.coefficients, _derivative(kernel)])
    return _window_sums(points, others, weights, kernel.knots, tables, parts, side="left")


def _polynomial_slopes(
    kernel: Pieces, points: np.ndarray, others: np.ndarray, weights: np.ndarray, parts: Parts
) -> np.ndarray:
    """See `_hinge_slopes`."""
    # the second sample sees the mirrored kernel, x -> -x: a knot belongs to the piece on its other side
    mirrored = _derivative(kernel)[::-1] * (-1.0) ** np.arange(kernel.coefficients.shape[1])
    return _window_sums(points, others, weights, -kernel.knots[::-1], mirrored[None], parts, side="right")[0]


def _derivative(kernel: Pieces) -> np.ndarray:
    """Coefficients of the derivative, padded with zeros."""
    slopes = np.zeros_like(kernel.coefficients)
    slopes[:, :-1] = kernel.coefficients[:, 1:] * np.arange(1, kernel.coefficients.shape[1])
    return slopes


def _window_sums(
    points: np.ndarray,
    others: np.ndarray,
    weights: np.ndarray,
    knots: np.ndarray,
    tables: np.ndarray,
    parts: Parts,
    side: Any,
) -> np.ndarray:
    """``sum_j weights_j p(points_i - others_j)`` for several piecewise polynomials ``p`` with the same knots.

    Parameters
    ----------
    points, others : ndarray of shape (n_points,) and (n_others,), both sorted
    weights : ndarray of shape (n_others,)
    knots : ndarray of shape (n_knots,)
    tables : ndarray of shape (n_tables, n_knots + 1, degree + 1)
        Coefficients of every ``p``.
    parts : Parts
    side : {"left", "right"}
        Whether a knot belongs to the piece on its left or on its right.

    Returns
    -------
    sums : ndarray of shape (n_tables, n_points)
    """
    # the others in the window of piece k are edges[k + 1] : edges[k]
    edges = [parts.ends, *(np.searchsorted(others, points - knot, side) for knot in knots), parts.begins]
    last = knots.size
    sums = np.zeros((tables.shape[0], points.size))
    # The two outer windows have no bound, so they take moments about a common origin. Their terms are no smaller
    # than what the powers lose, unless the kernel vanishes there and the term is left out.
    origin = centre(others, weights)
    size = _length(tables[:, [0, last]])
    prefix = _prefix_moments(others - origin, weights, size)
    for piece in (0, last):
        window = prefix.take(edges[piece], axis=1) - prefix.take(edges[piece + 1], axis=1)
        sums += tables[:, piece, :size] @ _moved(window, points - origin)
    if last < 2:
        return sums
    # The inner windows take moments about the centre of a cell, whose powers are small. The cells are a little
    # wider than any window, which therefore ends in the cell after the one in which it begins, or before.
    width = 1.25 * np.diff(knots).max()
    cells = np.floor(others / width)
    prefix = _prefix_moments(others - (cells + 0.5) * width, weights, tables.shape[2])
    up_to_end = prefix.take(edges[1], axis=1)
    for piece in range(1, last):
        begins, ends = edges[piece + 1], edges[piece]
        cell = np.floor((points - knots[piece]) / width)
        middle = np.clip(np.searchsorted(cells, cell + 1), begins, ends)
        up_to_begin, up_to_middle = prefix.take(begins, axis=1), prefix.take(middle, axis=1)
        window = _moved(up_to_middle - up_to_begin, points - (cell + 0.5) * width)
        window += _moved(up_to_end - up_to_middle, points - (cell + 1.5) * width)
        sums += tables[:, piece] @ window
        up_to_end = up_to_begin
    return sums


def _length(tables: np.ndarray) -> int:
    """Number of coefficients up to the last that is not zero in all tables, at least 1."""
    used = np.flatnonzero(tables.reshape(-1, tables.shape[-1]).any(axis=0))
    return int(used[-1]) + 1 if used.size else 1


def _prefix_moments(x: np.ndarray, weights: np.ndarray, size: int) -> np.ndarray:
    """Sums of ``weights (-x)^m`` over the first rows; ndarray of shape (size, n + 1)."""
    prefix = np.zeros((size, x.size + 1))
    moment = weights
    for row in prefix:
        np.cumsum(moment, out=row[1:])
        moment = moment * -x
    return prefix


def _moved(moments: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Moments of ``shift - x`` from those of ``-x``, in place; both of shape (size, n_points)."""
    for start in range(1, len(moments)):  # binomial theorem, as in Pascal's triangle
        for m in reversed(range(start, len(moments))):
            moments[m] += shift * moments[m - 1]
    return moments
