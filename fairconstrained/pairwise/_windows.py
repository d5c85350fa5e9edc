"""Means of piecewise polynomials over all pairs of two samples, from moments of sorted windows.

Pairs in one piece of the kernel are a window of the other sample in sorted order; see `fairconstrained.pairwise`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairconstrained.kernels import PiecewisePolynomial, taylor_shifted
from fairconstrained.pairwise._grid import Result, Sample

__all__ = ["centre", "group_potentials", "pair_sums"]

#: Points that are summed at once: more do not stay in the cache, fewer are slowed down by the number of calls.
_AT_ONCE = 2**14


@dataclass(frozen=True)
class Others:
    """The other sample of every point, a part of the rows that is sorted by itself."""

    x: np.ndarray  # of shape (n_others,)
    weights: np.ndarray  # of shape (n_others,)
    #: begins and ends: the part ``begins : ends`` of the rows belongs to a point; broadcasts with the points. Between
    #: one point's knots there are no rows of another part.
    begins: np.ndarray  # of int
    ends: np.ndarray  # of int

    @classmethod
    def of(cls, x: np.ndarray, weights: np.ndarray) -> Others:
        """Take sorted rows, which are the other sample of all points."""
        return cls(x, weights, np.zeros(1, dtype=np.intp), np.array([x.size]))

    def find(self, points: np.ndarray, side: Any = "left", width: float | None = None) -> np.ndarray:
        """Return the first row of its part that is not below a point, or not up to it (side "right").

        With a ``width``, points are numbers of cells of that width, and are compared with those of the rows.
        """
        return np.searchsorted(_cells(self.x, width), points, side)


@dataclass(frozen=True)
class GroupedOthers(Others):
    """The rows of every group, group after group, each of which is the other sample of all points."""

    #: The rows of all groups, sorted: one search in them serves all groups.
    every: np.ndarray  # of shape (n_rows,)
    #: Index in ``x`` of every group's next row after the first rows of ``every``.
    places: np.ndarray  # of shape (n_groups, n_rows + 1)

    @classmethod
    def of_groups(cls, x: np.ndarray, weights: np.ndarray, is_member: np.ndarray) -> GroupedOthers:
        """Take the groups' rows, ``is_member`` of shape (n_groups, n_rows), from sorted ones."""
        counts = np.zeros((len(is_member), x.size + 1), dtype=np.intp)
        np.cumsum(is_member, axis=1, out=counts[:, 1:])
        ends = np.cumsum(counts[:, -1:], axis=0)
        begins = ends - counts[:, -1:]
        rows = np.nonzero(is_member)[1]
        return cls(x[rows], weights[rows], begins, ends, x, counts + begins)

    def find(self, points: np.ndarray, side: Any = "left", width: float | None = None) -> np.ndarray:
        """Return the rows that `Others.find` returns, for every group; shape (n_groups, n_points)."""
        return self.places.take(np.searchsorted(_cells(self.every, width), points, side), axis=1)


def _cells(x: np.ndarray, width: float | None) -> np.ndarray:
    return x if width is None else np.floor(x / width)


def centre(x: np.ndarray, weights: np.ndarray) -> float:
    """Weighted mean: powers of centred scores lose less to rounding."""
    total = weights.sum()
    return float(weights @ x / total) if total > 0 else 0.0


def potentials(kernel: PiecewisePolynomial, points: np.ndarray, others: Others) -> np.ndarray:
    """Sums over the others of the weighted kernel and of its derivative, stacked; the points are sorted."""
    return (_hinge_potentials if _is_linear(kernel) else _polynomial_potentials)(kernel, points, others)


def group_potentials(
    kernel: PiecewisePolynomial, x: np.ndarray, weights: np.ndarray, codes: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """`potentials` of the rows of every group, at all rows; two ndarrays of shape (n_groups, n).

    The rows are sorted.
    """
    values, slopes = np.empty((2, n_groups, x.size))
    at_once = max(_AT_ONCE // x.size, 1)
    for first in range(0, n_groups, at_once):
        some = np.arange(first, min(first + at_once, n_groups))
        values[some], slopes[some] = potentials(kernel, x, GroupedOthers.of_groups(x, weights, codes == some[:, None]))
    return values, slopes


def pair_sums(kernel: PiecewisePolynomial, first: Sample, second: Sample) -> Result:
    """Sum over the pairs of two samples, and its derivatives in the rows of both."""
    orders = [np.argsort(sample.x, kind="stable") for sample in (first, second)]
    one, other = (Others.of(*(c[order] for c in s)) for s, order in zip((first, second), orders, strict=True))
    values, d_one = potentials(kernel, one.x, other)
    d_other = (_hinge_slopes if _is_linear(kernel) else _polynomial_slopes)(kernel, other.x, one)
    slopes = np.empty_like(one.x), np.empty_like(other.x)
    slopes[0][orders[0]], slopes[1][orders[1]] = one.weights * d_one, -other.weights * d_other
    return float(one.weights @ values), *slopes


def _is_linear(kernel: PiecewisePolynomial) -> bool:
    """Whether the pieces are lines."""
    return kernel.coefficients.shape[1] == 2


def _hinge_potentials(kernel: PiecewisePolynomial, points: np.ndarray, others: Others) -> np.ndarray:
    """A continuous piecewise linear kernel, as a line plus a hinge ``change_k max(x - knot_k, 0)`` at every knot.

    With ``V(x)`` and ``M(x)``, the sums of the others' weights and of their weighted scores below x, a hinge adds ``x
    V(x) - M(x)`` at ``x = point - knot_k``.
    """
    (constant, slope), *_ = kernel.coefficients
    origin = centre(others.x, others.weights)
    centred = points - origin
    below, sums = _cumulative(others.weights), _cumulative(others.weights * (others.x - origin))
    mass, first = below[others.ends] - below[others.begins], sums[others.ends] - sums[others.begins]
    values = constant * mass + slope * (centred * mass - first)
    slopes = slope * mass + np.zeros_like(values)
    for knot, change in zip(kernel.knots, np.diff(kernel.coefficients[:, 1]), strict=True):
        place = others.find(points - knot)
        so_far = below[place] - below[others.begins]
        values += change * ((centred - knot) * so_far - (sums[place] - sums[others.begins]))
        slopes += change * so_far
    return np.stack([values, slopes])


def _hinge_slopes(kernel: PiecewisePolynomial, points: np.ndarray, others: Others) -> np.ndarray:
    """Weighted sums of the derivative where the points are the second ones of the pairs."""
    below = _cumulative(others.weights)
    slopes = kernel.coefficients[0, 1] * (below[others.ends] - below[others.begins])
    for knot, change in zip(kernel.knots, np.diff(kernel.coefficients[:, 1]), strict=True):
        slopes = slopes + change * (below[others.ends] - below[others.find(points + knot, "right")])
    return slopes


def _cumulative(x: np.ndarray) -> np.ndarray:
    """Sums of the first entries, of none at first."""
    sums = np.zeros(x.size + 1)
    np.cumsum(x, out=sums[1:])
    return sums


def _polynomial_potentials(kernel: PiecewisePolynomial, points: np.ndarray, others: Others) -> np.ndarray:
    """Between two knots the kernel is one polynomial of the moments of a window of the sorted other sample."""
    tables = np.stack([kernel.coefficients, _derivative(kernel)])
    return _window_sums(points, others, kernel.knots, tables, side="left")


def _polynomial_slopes(kernel: PiecewisePolynomial, points: np.ndarray, others: Others) -> np.ndarray:
    """Return the slopes of polynomials, as `_hinge_slopes` does those of hinges."""
    # the second sample sees the mirrored kernel, x -> -x: a knot belongs to the piece on its other side
    mirrored = _derivative(kernel)[::-1] * (-1.0) ** np.arange(kernel.coefficients.shape[1])
    return _window_sums(points, others, -kernel.knots[::-1], mirrored[None], side="right")[0]


def _derivative(kernel: PiecewisePolynomial) -> np.ndarray:
    """Coefficients of the derivative, padded with zeros."""
    slopes = np.zeros_like(kernel.coefficients)
    slopes[:, :-1] = kernel.coefficients[:, 1:] * np.arange(1, kernel.coefficients.shape[1])
    return slopes


def _window_sums(points: np.ndarray, others: Others, knots: np.ndarray, tables: np.ndarray, side: Any) -> np.ndarray:
    """``sum_j weights_j p(points_i - others_j)`` for several piecewise polynomials ``p`` with the same knots.

    Parameters
    ----------
    points : ndarray of shape (n_points,), sorted
    knots : ndarray of shape (n_knots,)
    tables : ndarray of shape (n_tables, n_knots + 1, degree + 1)
        Coefficients of every ``p``.
    side : {"left", "right"}
        Whether a knot belongs to the piece on its left or on its right.

    Returns
    -------
    sums : ndarray of shape (n_tables, ..., n_points)
    """
    # the others in the window of piece k are edges[k + 1] : edges[k]
    edges = [others.ends, *(others.find(points - knot, side) for knot in knots), others.begins]
    last = knots.size
    # The two outer windows have no bound, so they take moments about a common origin. Their terms are no smaller
    # than what the powers lose, unless the kernel vanishes there and the term is left out.
    origin = centre(others.x, others.weights)
    size = _length(tables[:, [0, last]])
    prefix = _prefix_moments(others.x - origin, others.weights, size)
    sums = np.zeros((len(tables), *edges[1].shape))
    for piece in (0, last):
        if tables[:, piece, :size].any():
            window = prefix.take(edges[piece], axis=1) - prefix.take(edges[piece + 1], axis=1)
            sums += _of_moments(tables[:, piece, :size], points - origin, window)
    if last < 2:
        return sums
    # The inner windows take moments about the centre of a cell, whose powers are small. The cells are a little
    # wider than any window, which therefore ends in the cell after the one in which it begins, or before.
    width = 1.25 * np.diff(knots).max()
    prefix = _prefix_moments(others.x - (_cells(others.x, width) + 0.5) * width, others.weights, tables.shape[2])
    up_to_end = prefix.take(edges[1], axis=1)
    for piece in range(1, last):
        begins, ends = edges[piece + 1], edges[piece]
        cell = _cells(points - knots[piece], width)
        middle = np.clip(others.find(cell + 1, width=width), begins, ends)
        up_to_begin, up_to_middle = prefix.take(begins, axis=1), prefix.take(middle, axis=1)
        sums += _of_moments(tables[:, piece], points - (cell + 0.5) * width, up_to_middle - up_to_begin)
        sums += _of_moments(tables[:, piece], points - (cell + 1.5) * width, up_to_end - up_to_middle)
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


def _of_moments(tables: np.ndarray, shift: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Weighted sums of polynomials in ``shift - x`` over windows of rows x, from the windows' moments of ``-x``.

    Parameters
    ----------
    tables : ndarray of shape (n_tables, size)
        Coefficients of every polynomial.
    shift : ndarray of shape (n_points,)
    moments : ndarray of shape (size, ..., n_points)

    Returns
    -------
    sums : ndarray of shape (n_tables, ..., n_points)
    """
    shifted = taylor_shifted(np.repeat(tables.T[:, :, None], shift.size, axis=2), shift)
    return np.einsum("mtp,m...p->t...p", shifted, moments)
