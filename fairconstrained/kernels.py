"""Functions of one variable, and their means over groups at many thresholds, with the slopes of these means.

Everything a rate constraint needs from the scores is one matrix: the mean of ``kernel((s_i - theta_p) / width)``
over the rows ``i`` of every group, at every threshold ``theta_p``. `Kernel.means_at` computes it and its slopes;
`Kernel.group_means` is the same as one differentiable torch operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import Cells

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


class GroupMeans(Protocol):
    """Means of a kernel over cells of rows, at many thresholds."""

    #: ndarray of shape (n_cells, n_thresholds).
    means: np.ndarray

    def slopes(self, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of ``(cotangent * means).sum()``.

        Parameters
        ----------
        cotangent : ndarray of shape (n_cells, n_thresholds)

        Returns
        -------
        scores : ndarray of shape (n_samples,)
        thresholds : ndarray of shape (n_thresholds,)
        """


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
        means : GroupMeans
        """

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        """Return the means of `means_at` for torch; Tensor of shape (n_cells, n_thresholds).

        Differentiable in ``scores`` and ``thresholds``.
        """
        return _Differentiable.apply(scores, thresholds, width, cells, self)


class _Differentiable(torch.autograd.Function):
    """`Kernel.means_at` for torch."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, thresholds: Tensor, width: float, cells: Cells, kernel: Kernel) -> Tensor:
        ctx.found = kernel.means_at(scores.detach().numpy(), thresholds.detach().numpy(), width, cells)
        return torch.from_numpy(ctx.found.means)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        d_scores, d_thresholds = ctx.found.slopes(gradients[0].numpy())
        return torch.from_numpy(d_scores), torch.from_numpy(d_thresholds), None, None, None


class LogisticKernel(Kernel):
    """``1 / (1 + exp(-x))``."""

    @override
    def __call__(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    @override
    def means_at(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> GroupMeans:
        """Implement `Kernel.means_at`; O(n_samples n_thresholds) time, in chunks that stay in the cache."""
        return _LogisticMeans(scores, thresholds, width, cells)


class _LogisticMeans:
    """Group means of the logistic function; for slopes it is computed again rather than kept."""

    def __init__(self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells) -> None:
        self._scores, self._thresholds, self._width, self._cells = scores, thresholds, width, cells
        self._weights = cells.weights.numpy()
        self.means = np.zeros((len(cells), thresholds.size))
        for cell, part in _chunks(cells):
            self.means[cell] += self._sigmoid(part, self._thresholds) @ self._weights[part]

    def _sigmoid(self, part: slice, thresholds: np.ndarray) -> np.ndarray:
        x = (self._scores[part] - thresholds[:, None]) / self._width
        return expit(x, out=x)

    def slopes(self, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d_scores, d_thresholds = np.zeros(self._scores.shape), np.zeros(self._thresholds.shape)
        for cell, part in _chunks(self._cells):
            used = cotangent[cell].nonzero()[0]  # one threshold of one cell for the slope of one component
            if used.size:
                sigma = self._sigmoid(part, self._thresholds[used])
                slope = sigma * (1 - sigma)
                d_scores[part] = cotangent[cell, used] @ slope
                d_thresholds[used] -= cotangent[cell, used] * (slope @ self._weights[part])
        return d_scores * self._weights / self._width, d_thresholds / self._width


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
        if scores.size * thresholds.size <= _FEW_PAIRS:
            return _PairMeans(scores, thresholds, width, cells, self)
        return _BinnedMeans(scores, thresholds, width, cells, self)

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


class _PairMeans:
    """Group means of a piecewise polynomial, by its values for every row and threshold."""

    def __init__(
        self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells, kernel: PiecewisePolynomial
    ) -> None:
        self._x = (scores - thresholds[:, None]) / width
        self._piece, self._kernel, self._width, self._cells = kernel.piece(self._x), kernel, width, cells
        values = _polynomials(kernel.coefficients, self._piece, self._x) * cells.weights.numpy()
        self.means = np.stack([values[:, rows].sum(axis=1) for rows in cells.slices])

    def slopes(self, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        coefficients, used = self._kernel.coefficients, np.flatnonzero(cotangent.any(axis=0))
        # q'(x) = sum_j j a_j x^(j-1)
        derivatives = coefficients[:, 1:] * np.arange(1, coefficients.shape[1])
        slopes = _polynomials(derivatives, self._piece[used], self._x[used])
        slopes *= self._cells.weights.numpy() / self._width
        d_scores, d_thresholds = np.zeros(slopes.shape[1]), np.zeros(cotangent.shape[1])
        for weights, rows in zip(cotangent[:, used], self._cells.slices, strict=True):
            d_scores[rows] = weights @ slopes[:, rows]
            d_thresholds[used] -= weights * slopes[:, rows].sum(axis=1)
        return d_scores, d_thresholds


class _BinnedMeans:
    """Group means of a piecewise polynomial, by the moments of the scores per (cell, bin)."""

    def __init__(
        self, scores: np.ndarray, thresholds: np.ndarray, width: float, cells: Cells, kernel: PiecewisePolynomial
    ) -> None:
        self._n_samples, weights = scores.size, cells.weights.numpy()
        self._bins = bins = _Bins(thresholds, width, kernel, scores.size)
        self._parts = [(cell, bins.sort_in(scores[part], weights[part]), part) for cell, part in _chunks(cells)]
        self._moments = np.zeros((bins.degree, len(cells), bins.origins.size))
        for cell, part, _ in self._parts:
            self._moments[:, cell] += part.moments
            part.moments = None  # summed up; the rows are kept for the gradient
        self.means = np.matmul(self._moments, bins.local.transpose(0, 2, 1)).sum(axis=0)

    def slopes(self, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """One polynomial per (cell, bin), from the thresholds that have slopes at all."""
        bins, used = self._bins, np.flatnonzero(cotangent.any(axis=0))
        # q'(x) = sum_j j a_j x^(j-1), in the coordinates of every bin
        powers = np.arange(1, bins.degree)
        slopes, own = bins.local[1:, used] * powers[:, None, None], cotangent[:, used]
        combined = np.matmul(own, slopes).transpose(1, 0, 2)
        d_thresholds = np.zeros(cotangent.shape[1])
        means = np.matmul(self._moments[: powers.size], slopes.transpose(0, 2, 1)).sum(axis=0)
        d_thresholds[used] = -(own * means).sum(axis=0)
        d_scores = np.zeros(self._n_samples)
        has_slopes = np.any(own, axis=1).tolist()
        for cell, part, rows in self._parts:
            if has_slopes[cell]:
                d_scores[rows.start : rows.stop][part.inside] = part.slope(combined[cell])
        return d_scores / bins.width, d_thresholds / bins.width


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
        value = table[-1][self.bin]
        for coefficients in table[-2::-1]:
            value *= self.x
            value += coefficients[self.bin]
        value *= self.weights
        return value


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
        return _QuadraticMeans(scores, thresholds, self.curvature / width**2, cells)


class _QuadraticMeans:
    """Group means of ``factor (s - theta)^2 / 2``."""

    def __init__(self, scores: np.ndarray, thresholds: np.ndarray, factor: float, cells: Cells) -> None:
        self._scores, self._thresholds, self._factor, self._cells = scores, thresholds, factor, cells
        weighted = cells.weights.numpy() * scores
        self._first = np.array([weighted[rows].sum() for rows in cells.slices])[:, None]
        second = np.array([weighted[rows] @ scores[rows] for rows in cells.slices])[:, None]
        self.means = factor / 2 * (second - 2 * thresholds * self._first + thresholds**2)

    def slopes(self, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d_scores = np.zeros(self._scores.size)
        for weights, rows in zip(cotangent, self._cells.slices, strict=True):
            d_scores[rows] = weights.sum() * self._scores[rows] - weights @ self._thresholds
        d_thresholds = (cotangent * (self._thresholds - self._first)).sum(axis=0)
        return self._factor * d_scores * self._cells.weights.numpy(), self._factor * d_thresholds


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
        return _SumOfMeans([kernel.means_at(scores, thresholds, width, cells) for kernel in (self.first, self.second)])


class _SumOfMeans:
    """The sum of group means."""

    def __init__(self, parts: list[GroupMeans]) -> None:
        self._parts, self.means = parts, np.sum([part.means for part in parts], axis=0)

    def slopes(self, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        d_scores, d_thresholds = zip(*(part.slopes(cotangent) for part in self._parts), strict=True)
        return np.sum(d_scores, axis=0), np.sum(d_thresholds, axis=0)


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
