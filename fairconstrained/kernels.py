"""Functions of one variable, and their means over groups at many thresholds, with the slopes of these means.

Everything a rate constraint needs from the scores is one matrix: the mean of ``kernel((s_i - theta_p) / width)``
over the rows ``i`` of every group, at every threshold ``theta_p``. `Kernel.means_at` computes it and its slopes;
`Kernel.group_means` is the same as one differentiable torch operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import Cells
from fairconstrained.slopes import with_own_slopes

__all__ = [
    "GroupMeans",
    "Kernel",
    "KernelSum",
    "LogisticKernel",
    "PiecewisePolynomial",
    "QuadraticKernel",
    "taylor_shifted",
]

#: Rows evaluated at a time by `LogisticKernel`: a block of (thresholds x rows) doubles that stays in the cache.
_CHUNK = 16_384
#: Entries of the table that finds the bin of a score, and comparisons after it at which a binary search is as good.
_TABLE = 4096
_MANY = 8
#: Rows from which on the table takes less time than it saves.
_WORTH_A_TABLE = 10_000
#: Rows times thresholds up to which a polynomial is evaluated for every pair of them: bins take longer to set up.
_FEW_PAIRS = 15_000


#: Means over cells of rows at many thresholds, of shape (n_cells, n_thresholds), and what gives their slopes, see
#: `Kernel.means_at`.
GroupMeans = tuple[np.ndarray, Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]]


class Kernel(ABC):
    """A function of one variable whose group means at many thresholds are cheap."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Value at every entry of ``x`` (the plain definition, which tests compare with)."""

    @abstractmethod
    def means_at(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> GroupMeans:
        """Weighted mean over every cell of ``kernel((scores - threshold) / width)``.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
        thresholds : ndarray of shape (n_thresholds,)
        width : float
        cells : Cells

        Returns
        -------
        means : ndarray of shape (n_cells, n_thresholds)
        slopes : callable
            Takes factors of the means, an ndarray of their shape, and returns the slopes of ``(factors * means).sum()``
            in scores and thresholds, shaped as these are.
        """

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        """Return the means of `means_at` for torch; Tensor of shape (n_cells, n_thresholds).

        Differentiable in ``scores`` and ``thresholds``.
        """
        return with_own_slopes(partial(self.means_at, width=width, cells=cells), scores, thresholds)


class LogisticKernel(Kernel):
    """``1 / (1 + exp(-x))``."""

    @override
    def __call__(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    @override
    def means_at(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> GroupMeans:
        """Implement `Kernel.means_at`; O(n_samples n_thresholds) time, in chunks that stay in the cache."""
        weights, means = cells.weights.numpy(), np.zeros((len(cells), thresholds.size))

        def sigmoid(part: slice, chosen: np.ndarray) -> np.ndarray:
            x = (scores[part] - chosen[:, None]) / width
            return expit(x, out=x)

        for cell, part in _chunks(cells):
            means[cell] += sigmoid(part, thresholds) @ weights[part]

        def slopes(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            d_scores, d_thresholds = np.zeros(scores.shape), np.zeros(thresholds.shape)
            for cell, part in _chunks(cells):
                used = factors[cell].nonzero()[0]  # one threshold of one cell for the slope of one component
                if used.size:
                    sigma = sigmoid(part, thresholds[used])  # computed again rather than kept
                    slope = sigma * (1 - sigma)
                    d_scores[part] = factors[cell, used] @ slope
                    d_thresholds[used] -= factors[cell, used] * (slope @ weights[part])
            return d_scores * weights / width, d_thresholds / width

        return means, slopes


def _chunks(cells: Cells) -> Iterator[tuple[int, slice]]:
    for cell, rows in enumerate(cells.slices):
        for start in range(rows.start, rows.stop, _CHUNK):
            yield cell, slice(start, min(start + _CHUNK, rows.stop))


@dataclass(frozen=True, eq=False)
class PiecewisePolynomial(Kernel):
    """A continuous piecewise polynomial.

    Parameters
    ----------
    knots : ndarray of shape (n_knots,)
        Ascending break points.
    coefficients : ndarray of shape (n_knots + 1, degree + 1)
        Piece ``k`` (left of knot ``k``; the last one right of all knots) is ``sum_j coefficients[k, j] x**j``.
    """

    knots: np.ndarray
    coefficients: np.ndarray

    @override
    def __call__(self, x: Tensor) -> Tensor:
        piece = torch.bucketize(x, torch.from_numpy(self.knots))
        table = torch.from_numpy(self.coefficients)
        value = torch.zeros_like(x)
        for column in reversed(range(self.coefficients.shape[1])):
            value = value * x + table[:, column][piece]
        return value

    def piece(self, x: np.ndarray) -> np.ndarray:
        """Number of the piece of every entry of ``x``."""
        pieces = np.zeros(x.shape, dtype=np.intp)
        for knot in self.knots.tolist():  # few of them, so that comparisons are faster than a search
            pieces += x > knot
        return pieces

    @override
    def means_at(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> GroupMeans:
        """Implement `Kernel.means_at`.

        The knots of all thresholds cut the line into bins. Within a bin every threshold's kernel is one
        polynomial, so the moments of the scores in each bin are all that is needed: O(n_samples log n_bins)
        time whatever the number of thresholds, instead of O(n_samples n_thresholds). Where the kernel is
        constant outside its knots, scores beyond all of them are only counted.
        """
        by_pairs = scores.size * thresholds.size <= _FEW_PAIRS
        return (_means_of_pairs if by_pairs else _means_of_bins)(scores, thresholds, width, cells, self)

    @property
    def flat_outside(self) -> bool:
        """Whether the kernel is constant left of its first knot and right of its last one."""
        return not self.coefficients[[0, -1], 1:].any()


def _polynomials(coefficients: np.ndarray, piece: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Value at ``x`` of the polynomials whose coefficients are the rows with the numbers ``piece``."""
    columns = coefficients.T
    value = columns[-1].take(piece)
    for column in columns[-2::-1]:
        value *= x
        value += column.take(piece)
    return value


def _means_of_pairs(
    scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells, kernel: PiecewisePolynomial
) -> GroupMeans:
    """Group means of a piecewise polynomial, by its values for every row and threshold."""
    x, weights = (scores - thresholds[:, None]) / width, cells.weights.numpy()
    piece, coefficients = kernel.piece(x), kernel.coefficients
    values = _polynomials(coefficients, piece, x) * weights

    def slopes(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        used = np.flatnonzero(factors.any(axis=0))
        # q'(x) = sum_j j a_j x^(j-1)
        derivatives = coefficients[:, 1:] * np.arange(1, coefficients.shape[1])
        of_rows = _polynomials(derivatives, piece[used], x[used])
        of_rows *= weights / width
        d_scores, d_thresholds = np.zeros(scores.size), np.zeros(thresholds.size)
        for own, rows in zip(factors[:, used], cells.slices, strict=True):
            d_scores[rows] = own @ of_rows[:, rows]
            d_thresholds[used] -= own * of_rows[:, rows].sum(axis=1)
        return d_scores, d_thresholds

    return np.stack([values[:, rows].sum(axis=1) for rows in cells.slices]), slopes


def _means_of_bins(
    scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells, kernel: PiecewisePolynomial
) -> GroupMeans:
    """Group means of a piecewise polynomial, by the moments of the scores per (cell, bin)."""
    weights, bins = cells.weights.numpy(), _Bins(thresholds, width, kernel, scores.size)
    parts = [(cell, bins.sort_in(scores[part], weights[part]), part) for cell, part in _chunks(cells)]
    moments = np.zeros((bins.degree, len(cells), bins.origins.size))
    for cell, part, _ in parts:
        moments[:, cell] += part.moments
        part.moments = None  # summed up; the rows are kept for the gradient

    def slopes(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One polynomial per (cell, bin), from the thresholds that have slopes at all."""
        used = np.flatnonzero(factors.any(axis=0))
        # q'(x) = sum_j j a_j x^(j-1), in the coordinates of every bin
        powers = np.arange(1, bins.degree)
        derivatives, own = bins.local[1:, used] * powers[:, None, None], factors[:, used]
        combined = np.matmul(own, derivatives).transpose(1, 0, 2)
        d_scores, d_thresholds = np.zeros(scores.size), np.zeros(thresholds.size)
        means = np.matmul(moments[: powers.size], derivatives.transpose(0, 2, 1)).sum(axis=0)
        d_thresholds[used] = -(own * means).sum(axis=0)
        has_slopes = np.any(own, axis=1).tolist()
        for cell, part, rows in parts:
            if has_slopes[cell]:
                d_scores[rows.start : rows.stop][part.inside] = part.slope(combined[cell])
        return d_scores / width, d_thresholds / width

    return np.matmul(moments, bins.local.transpose(0, 2, 1)).sum(axis=0), slopes


class _Bins:
    """The bins between the knots of all thresholds, and the kernel's polynomial in each, for every threshold."""

    #: The first bin that every entry of the table can mean, if there is a table.
    _first: np.ndarray | None = None

    def __init__(self, thresholds: np.ndarray, width: float, kernel: PiecewisePolynomial, n_samples: int) -> None:
        self.width, self.flat = width, kernel.flat_outside
        self.edges = edges = np.sort((thresholds[:, None] + width * kernel.knots).ravel())
        # A bin's own origin keeps the powers of x small; the two outer bins start from their only edge.
        self.origins = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        # polynomial of threshold p in bin b, re-centred at the bin's origin: q(x + shift)
        shift = (self.origins - thresholds[:, None]) / width
        within = np.concatenate([shift[:, :1] - 1, shift[:, 1:-1], shift[:, -1:] + 1], axis=1)
        piece = kernel.coefficients[np.searchsorted(kernel.knots, within)]
        self.local = taylor_shifted(np.ascontiguousarray(np.moveaxis(piece, -1, 0)), shift)
        self.degree = len(self.local)
        if n_samples >= _WORTH_A_TABLE:
            self._tabulate()

    def _tabulate(self) -> None:
        """Tabulate the bins of equally spaced scores, which leaves few comparisons per row."""
        edges = self.edges
        self._begin, span = edges[0], edges[-1] - edges[0]
        self._per_unit = _TABLE / span if span > 0 else 0.0
        starts = edges[0] + np.arange(_TABLE + 1) * (span / _TABLE)
        rounding = 1e-9 * (span + np.abs(edges[[0, -1]]).max())
        self._first = np.searchsorted(edges, starts - rounding)
        ends = np.searchsorted(edges, np.append(starts[1:], edges[-1]) + rounding)
        self._n_compare = int((ends - self._first).max())
        self._bounds = np.append(edges, np.inf)

    def search(self, scores: np.ndarray) -> np.ndarray:
        """Return the bin of every score, like ``np.searchsorted(edges, scores)``."""
        if self._first is None or self._n_compare > _MANY:  # or crowded edges, all within one or two entries
            return np.searchsorted(self.edges, scores)
        entry = ((scores - self._begin) * self._per_unit).clip(0, _TABLE).astype(np.intp)
        found = self._first[entry]
        for _ in range(self._n_compare):
            found += self._bounds[found] < scores
        return found

    def sort_in(self, scores: np.ndarray, weights: np.ndarray) -> _Binned:
        """Sort some rows of one cell by bin."""
        if not self.flat:
            return _Binned(self, slice(None), scores, weights)
        above = scores >= self.edges[-1]
        inside = np.flatnonzero((scores > self.edges[0]) & ~above)
        part = _Binned(self, inside, scores[inside], weights[inside])
        counted = float(weights @ above)
        part.moments[0, -1] += counted
        part.moments[0, 0] += weights.sum() - part.moments[0].sum()
        return part


class _Binned:
    """Rows by bin: what the gradient needs of them, and their moments."""

    def __init__(self, bins: _Bins, inside: Any, scores: np.ndarray, weights: np.ndarray) -> None:
        self.inside, self.weights = inside, weights
        self.bin = bins.search(scores)
        self.x = (scores - bins.origins[self.bin]) / bins.width
        n_bins = bins.origins.size
        self.moments: Any = np.empty((bins.degree, n_bins))
        moment = weights
        for j in range(bins.degree):
            moment = moment * self.x if j else moment
            self.moments[j] = np.bincount(self.bin, moment, minlength=n_bins)

    def slope(self, table: np.ndarray) -> np.ndarray:
        """Weighted value of the bins' polynomials, ``table`` of shape (degree, n_bins), at every row."""
        return _polynomials(table.T, self.bin, self.x) * self.weights


@dataclass(frozen=True)
class QuadraticKernel(Kernel):
    """``curvature x^2 / 2``; its group means need two moments of the scores and no threshold loop."""

    curvature: float

    @override
    def __call__(self, x: Tensor) -> Tensor:
        return self.curvature / 2 * x**2

    @override
    def means_at(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> GroupMeans:
        """Implement `Kernel.means_at`; O(n_samples) time."""
        factor, weights = self.curvature / width**2, cells.weights.numpy()
        weighted = weights * scores
        first = np.array([weighted[rows].sum() for rows in cells.slices])[:, None]
        second = np.array([weighted[rows] @ scores[rows] for rows in cells.slices])[:, None]

        def slopes(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            d_scores = np.zeros(scores.size)
            for own, rows in zip(factors, cells.slices, strict=True):
                d_scores[rows] = own.sum() * scores[rows] - own @ thresholds
            d_thresholds = (factors * (thresholds - first)).sum(axis=0)
            return factor * d_scores * weights, factor * d_thresholds

        return factor / 2 * (second - 2 * thresholds * first + thresholds**2), slopes


@dataclass(frozen=True)
class KernelSum(Kernel):
    """The sum of two kernels."""

    first: Kernel
    second: Kernel

    @override
    def __call__(self, x: Tensor) -> Tensor:
        return self.first(x) + self.second(x)

    @override
    def means_at(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> GroupMeans:
        found = [kernel.means_at(scores, thresholds, width, cells) for kernel in (self.first, self.second)]
        (one, slopes_of_one), (other, slopes_of_other) = found

        def slopes(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            (of_scores, of_thresholds), (more, more_of_thresholds) = slopes_of_one(factors), slopes_of_other(factors)
            return of_scores + more, of_thresholds + more_of_thresholds

        return one + other, slopes


def taylor_shifted(coefficients: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Coefficients of ``q(x + shift)`` from those of ``q(x)``, by Horner's scheme.

    Parameters
    ----------
    coefficients : ndarray of shape (degree + 1, ...)
        The constant first.
    shift : ndarray
        Broadcasts with one coefficient.

    Returns
    -------
    shifted : ndarray of the shape of ``coefficients``
    """
    shifted = coefficients.copy(order="K")
    degree = len(shifted) - 1
    for start in range(degree):
        for m in reversed(range(start, degree)):
            shifted[m] += shift * shifted[m + 1]
    return shifted
