"""Stand-ins for the indicator ``1[x > 0]``, their convex split, and their means over groups at many thresholds.

Everything a rate constraint needs from the scores is one matrix: the mean of ``kernel((s_i - theta_p) / width)``
over the rows ``i`` of every group, at every threshold ``theta_p``. `Kernel.group_means` computes it, and its
gradient, as a single differentiable torch operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import Cells

__all__ = ["SURROGATES", "Kernel", "LogisticKernel", "PiecewisePolynomial", "QuadraticKernel", "Surrogate"]

#: Rows evaluated at a time by `LogisticKernel`: a block of (thresholds x rows) doubles that stays in the cache.
_CHUNK = 16_384
#: Entries of the table that finds the bin of a score, and comparisons after it at which a binary search is as good.
_TABLE = 4096
_MANY = 8
#: Rows from which on the table takes less time than it saves.
_WORTH_A_TABLE = 10_000


class Kernel(ABC):
    """A function of one variable whose group means at many thresholds are cheap."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Value at every entry of ``x`` (the plain definition, which tests compare with)."""

    @abstractmethod
    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        """Weighted mean over every cell of ``kernel((scores - threshold) / width)``.

        Parameters
        ----------
        scores : Tensor of shape (n_samples,)
        thresholds : Tensor of shape (n_thresholds,)
        width : float
        cells : Cells

        Returns
        -------
        means : Tensor of shape (n_bins, n_thresholds)
            Differentiable in ``scores`` and ``thresholds``.
        """


class LogisticKernel(Kernel):
    """``1 / (1 + exp(-x))``."""

    @override
    def __call__(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x)

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        """Implement `Kernel.group_means`; O(n_samples n_thresholds) time, in chunks that stay in the cache."""
        return _LogisticGroupMeans.apply(scores, thresholds, width, cells)


class _LogisticGroupMeans(torch.autograd.Function):
    """Group means of the logistic function; backwards it is computed again rather than kept."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        means = scores.new_zeros(len(cells), thresholds.shape[0])
        for cell, part in _chunks(cells):
            means[cell] += _sigmoid(scores[part], thresholds, width) @ cells.weights[part]
        ctx.save_for_backward(scores, thresholds)
        ctx.width, ctx.cells = width, cells
        return means

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (cotangent,) = grads
        scores, thresholds = ctx.saved_tensors
        cells, width = ctx.cells, ctx.width
        d_scores = torch.zeros_like(scores)
        d_thresholds = torch.zeros_like(thresholds)
        for cell, part in _chunks(cells):
            sigma = _sigmoid(scores[part], thresholds, width)
            slope = sigma.addcmul_(sigma, sigma, value=-1)
            d_scores[part] = cotangent[cell] @ slope
            d_thresholds -= cotangent[cell] * (slope @ cells.weights[part])
        d_scores *= cells.weights
        return d_scores / width, d_thresholds / width, None, None


def _chunks(cells: Cells) -> Any:
    for cell, rows in enumerate(cells.slices):
        for start in range(rows.start, rows.stop, _CHUNK):
            yield cell, slice(start, min(start + _CHUNK, rows.stop))


def _sigmoid(scores: Tensor, thresholds: Tensor, width: float) -> Tensor:
    return (scores - thresholds[:, None]).div_(width).sigmoid_()


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

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        """Implement `Kernel.group_means`.

        The knots of all thresholds cut the line into bins. Within a bin every threshold's kernel is one
        polynomial, so the moments of the scores in each bin are all that is needed: O(n_samples log n_bins)
        time whatever the number of thresholds, instead of O(n_samples n_thresholds). Where the kernel is
        constant outside its knots, scores beyond all of them are only counted.
        """
        if not thresholds.numel():
            return scores.new_zeros(len(cells), 0)
        return _PolynomialGroupMeans.apply(scores, thresholds, width, cells, self)

    @property
    def flat_outside(self) -> bool:
        """Whether the kernel is constant left of its first knot and right of its last one."""
        return not self.coefficients[[0, -1], 1:].any()


class _PolynomialGroupMeans(torch.autograd.Function):
    """Moments of the scores per (cell, bin) forwards; one polynomial per (cell, bin) backwards."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        thresholds: Tensor,
        width: float,
        cells: Cells,
        kernel: PiecewisePolynomial,
    ) -> Tensor:
        ctx.bins = bins = _Bins(thresholds.detach().numpy(), width, kernel, scores.shape[0])
        ctx.parts = [
            (cell, bins.sort_in(scores.detach().numpy()[part], cells.weights.numpy()[part]), part)
            for cell, part in _chunks(cells)
        ]
        moments = np.zeros((len(cells), *bins.shape))
        for cell, part, _ in ctx.parts:
            moments[cell] += part.moments
            part.moments = None  # summed up; the rows are kept for the gradient
        ctx.moments = moments
        ctx.n_samples = scores.shape[0]
        return torch.from_numpy(np.einsum("gbj,pbj->gp", moments, bins.local))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        bins: _Bins = ctx.bins
        cotangent = grads[0].numpy()
        # q'(x) = sum_j j a_j x^(j-1), in the coordinates of every bin
        powers = np.arange(1, bins.local.shape[2])
        slopes = bins.local[:, :, 1:] * powers
        combined = np.einsum("gp,pbj->gjb", cotangent, slopes)
        d_thresholds = -np.einsum("gp,gbj,pbj->p", cotangent, ctx.moments[:, :, : powers.size], slopes)
        d_scores = np.zeros(ctx.n_samples)
        for cell, part, rows in ctx.parts:
            d_scores[rows.start : rows.stop][part.inside] = part.slope(combined[cell])
        d_scores /= bins.width
        return torch.from_numpy(d_scores), torch.from_numpy(d_thresholds / bins.width), None, None, None


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
        self.local = np.moveaxis(taylor_shifted(np.moveaxis(piece, -1, 0), shift), 0, -1)
        self.shape = self.local.shape[1:]
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
        part.moments[-1, 0] += counted
        part.moments[0, 0] += weights.sum() - part.moments[:, 0].sum()
        return part


class _Binned:
    """Rows by bin: what the gradient needs of them, and their moments."""

    def __init__(self, bins: _Bins, inside: Any, scores: np.ndarray, weights: np.ndarray) -> None:
        self.inside, self.weights = inside, weights
        self.bin = bins.search(scores)
        self.x = (scores - bins.origins[self.bin]) / bins.width
        n_bins, degree = bins.shape
        self.moments: Any = np.empty(bins.shape)
        moment = weights
        for j in range(degree):
            moment = moment * self.x if j else moment
            self.moments[:, j] = np.bincount(self.bin, moment, minlength=n_bins)

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

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        """Implement `Kernel.group_means`; O(n_samples) time."""
        weighted = cells.weights * scores
        first = torch.stack([weighted[rows].sum() for rows in cells.slices])[:, None]
        second = torch.stack([weighted[rows] @ scores[rows] for rows in cells.slices])[:, None]
        return self.curvature / (2 * width**2) * (second - 2 * thresholds * first + thresholds**2)


@dataclass(frozen=True)
class KernelSum(Kernel):
    """The sum of two kernels."""

    first: Kernel
    second: Kernel

    def __call__(self, x: Tensor) -> Tensor:
        return self.first(x) + self.second(x)

    @override
    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, cells: Cells) -> Tensor:
        means = self.first.group_means(scores, thresholds, width, cells)
        return means + self.second.group_means(scores, thresholds, width, cells)


@dataclass(frozen=True)
class Surrogate:
    """A surrogate ``sigma(x / width)`` of ``1[x > 0]`` with a convex split ``sigma = plus - minus``.

    Attributes
    ----------
    name : str
    value, plus, minus : Kernel
        ``sigma`` and its split; ``plus`` and ``minus`` are convex.
    spread : float
        Standard deviation of the steep part of the density ``sigma'`` at width 1. Surrogates of equal
        ``width * spread`` blur the scores alike, whatever their shape.
    width : float
        Width in units of the scores; the narrower, the closer to the indicator.
    """

    name: str
    value: Kernel
    plus: Kernel
    minus: Kernel
    spread: float
    width: float = 1.0

    def with_width(self, width: float) -> Surrogate:
        """Return the shape at another width."""
        return replace(self, width=width)

    def with_blur(self, blur: float) -> Surrogate:
        """Return the shape at the width for which ``width * spread = blur`` (units of the scores)."""
        return replace(self, width=blur / self.spread)

    def rates(self, scores: Tensor, thresholds: Tensor, cells: Cells) -> Tensor:
        """Smooth share of every cell above every threshold; Tensor of shape (n_cells, n_thresholds)."""
        return self.value.group_means(scores, thresholds, self.width, cells)

    def split_rates(self, scores: Tensor, thresholds: Tensor, cells: Cells) -> tuple[Tensor, Tensor]:
        """The two convex parts whose difference is `rates`."""
        return (
            self.plus.group_means(scores, thresholds, self.width, cells),
            self.minus.group_means(scores, thresholds, self.width, cells),
        )


def _hinge(knot: float) -> PiecewisePolynomial:
    """``max(x - knot, 0)``."""
    return PiecewisePolynomial(np.array([knot]), np.array([[0.0, 0.0], [-knot, 1.0]]))


def _curved(name: str, kernel: Kernel, curvature: float, spread: float) -> Surrogate:
    """A smooth surrogate whose second derivative is at least ``-curvature`` (Example D.4)."""
    quadratic = QuadraticKernel(curvature)
    return Surrogate(name, kernel, KernelSum(kernel, quadratic), quadratic, spread)


def _footed_smoothstep(foot: float, share: float) -> PiecewisePolynomial:
    """A cubic smoothstep on [-1, 1], of which a share is stretched ``foot`` times as wide.

    Where the scores of a group leave a hole around a threshold, the steep part has no slope to offer; the foot has.
    """
    rise = np.array([0.5, 0.75, 0.0, -0.25])
    stretched = share * rise / foot ** np.arange(4)
    one = np.array([1.0, 0.0, 0.0, 0.0])
    pieces = [0 * one, stretched, (1 - share) * rise + stretched, (1 - share) * one + stretched, one]
    return PiecewisePolynomial(np.array([-foot, -1.0, 1.0, foot]), np.stack(pieces))


#: The surrogates by name, at width 1: the ramp of Example D.3, the logistic function of Example D.4, and the
#: cubic smoothstep, which is smooth like the second and costs no more per threshold than the first.
SURROGATES: dict[str, Surrogate] = {
    "logistic": _curved("logistic", LogisticKernel(), 1 / (6 * np.sqrt(3)), np.pi / np.sqrt(3)),
    "ramp": Surrogate(
        "ramp",
        PiecewisePolynomial(np.array([-0.5, 0.5]), np.array([[0.0, 0.0], [0.5, 1.0], [1.0, 0.0]])),
        _hinge(-0.5),
        _hinge(0.5),
        1 / np.sqrt(12),
    ),
    "smoothstep": _curved("smoothstep", _footed_smoothstep(foot=8.0, share=0.15), 1.5, 1 / np.sqrt(5)),
}


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
