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

from fairconstrained.data import FairData

__all__ = ["SURROGATES", "Kernel", "LogisticKernel", "PiecewisePolynomial", "QuadraticKernel", "Surrogate"]

#: Rows evaluated at a time by `LogisticKernel`: a block of (thresholds x rows) doubles that stays in the cache.
_CHUNK = 16_384


class Kernel(ABC):
    """A function of one variable whose group means at many thresholds are cheap."""

    @abstractmethod
    def __call__(self, x: Tensor) -> Tensor:
        """Value at every entry of ``x`` (the plain definition, which tests compare with)."""

    @abstractmethod
    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, data: FairData) -> Tensor:
        """Weighted mean over every group of ``kernel((scores - threshold) / width)``.

        Parameters
        ----------
        scores : Tensor of shape (n_samples,)
        thresholds : Tensor of shape (n_thresholds,)
        width : float
        data : FairData

        Returns
        -------
        means : Tensor of shape (n_groups, n_thresholds)
            Differentiable in ``scores`` and ``thresholds``.
        """


class LogisticKernel(Kernel):
    """``1 / (1 + exp(-x))``."""

    def __call__(self, x: Tensor) -> Tensor:
        """See `Kernel`."""
        return torch.sigmoid(x)

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, data: FairData) -> Tensor:
        """See `Kernel.group_means`; O(n_samples n_thresholds) time, in chunks that stay in the cache."""
        return _LogisticGroupMeans.apply(scores, thresholds, width, data)


class _LogisticGroupMeans(torch.autograd.Function):
    """Group means of the logistic function; backwards it is computed again rather than kept."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, thresholds: Tensor, width: float, data: FairData) -> Tensor:
        means = scores.new_zeros(data.n_groups, thresholds.shape[0])
        for group, part in _chunks(data):
            means[group] += _sigmoid(scores[part], thresholds, width) @ data.group_weights[part]
        ctx.save_for_backward(scores, thresholds)
        ctx.width, ctx.data = width, data
        return means

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        (cotangent,) = grads
        scores, thresholds = ctx.saved_tensors
        data, width = ctx.data, ctx.width
        d_scores = torch.empty_like(scores)
        d_thresholds = torch.zeros_like(thresholds)
        for group, part in _chunks(data):
            sigma = _sigmoid(scores[part], thresholds, width)
            slope = sigma.addcmul_(sigma, sigma, value=-1)
            d_scores[part] = cotangent[group] @ slope
            d_thresholds -= cotangent[group] * (slope @ data.group_weights[part])
        d_scores *= data.group_weights
        return d_scores / width, d_thresholds / width, None, None


def _chunks(data: FairData) -> Any:
    for group, rows in enumerate(data.slices):
        for start in range(rows.start, rows.stop, _CHUNK):
            yield group, slice(start, min(start + _CHUNK, rows.stop))


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

    def __call__(self, x: Tensor) -> Tensor:
        """See `Kernel`."""
        piece = torch.bucketize(x, torch.from_numpy(self.knots))
        table = torch.from_numpy(self.coefficients)
        value = torch.zeros_like(x)
        for column in reversed(range(self.coefficients.shape[1])):
            value = value * x + table[:, column][piece]
        return value

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, data: FairData) -> Tensor:
        """See `Kernel.group_means`.

        The knots of all thresholds cut the line into cells. Within a cell every threshold's kernel is one
        polynomial, so the moments of the scores in each cell are all that is needed: O(n_samples log n_cells)
        time whatever the number of thresholds, instead of O(n_samples n_thresholds).
        """
        if not thresholds.numel():
            return scores.new_zeros(data.n_groups, 0)
        return _PolynomialGroupMeans.apply(scores, thresholds, width, data, self)


class _PolynomialGroupMeans(torch.autograd.Function):
    """Moments of the scores per (group, cell) forwards; one polynomial per (group, cell) backwards."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        thresholds: Tensor,
        width: float,
        data: FairData,
        kernel: PiecewisePolynomial,
    ) -> Tensor:
        cells = _Cells(scores.detach(), thresholds.detach().numpy(), width, data, kernel)
        ctx.cells = cells
        return torch.from_numpy(np.einsum("gcj,pcj->gp", cells.moments, cells.local))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        cells: _Cells = ctx.cells
        # q'(x) = sum_j j a_j x^(j-1), in the coordinates of every cell
        powers = np.arange(1, cells.local.shape[2])
        slopes = cells.local[:, :, 1:] * powers
        combined = np.einsum("gp,pcj->gcj", grads[0].numpy(), slopes)
        d_thresholds = -np.einsum("gp,gcj,pcj->p", grads[0].numpy(), cells.moments[:, :, : powers.size], slopes)
        table = torch.from_numpy(combined.reshape(-1, powers.size))
        d_scores = table[:, -1].index_select(0, cells.index)
        for column in reversed(range(powers.size - 1)):
            d_scores.mul_(cells.x).add_(table[:, column].index_select(0, cells.index))
        d_scores.mul_(cells.weights)
        return d_scores / cells.width, torch.from_numpy(d_thresholds / cells.width), None, None, None


class _Cells:
    """The cells between the knots of all thresholds, the scores in them, and the kernel's polynomial in each."""

    def __init__(
        self,
        scores: Tensor,
        thresholds: np.ndarray,
        width: float,
        data: FairData,
        kernel: PiecewisePolynomial,
    ) -> None:
        self.width, self.weights = width, data.group_weights
        edges = np.sort((thresholds[:, None] + width * kernel.knots).ravel())
        n_cells = edges.size + 1
        # A cell's own origin keeps the powers of x small; the two outer cells start from their only edge.
        origins = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        cell = torch.bucketize(scores, torch.from_numpy(edges))
        self.x = (scores - torch.from_numpy(origins)[cell]).div_(width)
        self.index = cell + torch.from_numpy(data.codes) * n_cells if data.n_groups > 1 else cell
        degree = kernel.coefficients.shape[1]
        size = n_cells * data.n_groups
        moment, columns = self.weights, []
        for j in range(degree):
            moment = moment * self.x if j else moment
            columns.append(torch.bincount(self.index, weights=moment, minlength=size))
        self.moments = torch.stack(columns, dim=1).numpy().reshape(data.n_groups, n_cells, degree)
        # polynomial of threshold p in cell c, re-centred at the cell's origin: q(x + shift)
        shift = (origins - thresholds[:, None]) / width
        inside = np.concatenate([shift[:, :1] - 1, shift[:, 1:-1], shift[:, -1:] + 1], axis=1)
        piece = kernel.coefficients[np.searchsorted(kernel.knots, inside)]
        self.local = _shifted(piece, shift)


def _shifted(coefficients: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Coefficients of ``q(x + shift)``, by Horner's scheme on the last axis (Taylor shift)."""
    result = coefficients.copy()
    degree = result.shape[-1] - 1
    for start in range(degree):
        for j in reversed(range(start, degree)):
            result[..., j] += shift * result[..., j + 1]
    return result


@dataclass(frozen=True)
class QuadraticKernel(Kernel):
    """``curvature x^2 / 2``; its group means need two moments of the scores and no threshold loop."""

    curvature: float

    def __call__(self, x: Tensor) -> Tensor:
        """See `Kernel`."""
        return self.curvature / 2 * x**2

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, data: FairData) -> Tensor:
        """See `Kernel.group_means`; O(n_samples) time."""
        weighted = data.group_weights * scores
        first = torch.stack([weighted[rows].sum() for rows in data.slices])[:, None]
        second = torch.stack([weighted[rows] @ scores[rows] for rows in data.slices])[:, None]
        return self.curvature / (2 * width**2) * (second - 2 * thresholds * first + thresholds**2)


@dataclass(frozen=True)
class _Sum(Kernel):
    """The sum of two kernels."""

    first: Kernel
    second: Kernel

    def __call__(self, x: Tensor) -> Tensor:
        return self.first(x) + self.second(x)

    def group_means(self, scores: Tensor, thresholds: Tensor, width: float, data: FairData) -> Tensor:
        """See `Kernel.group_means`."""
        means = self.first.group_means(scores, thresholds, width, data)
        return means + self.second.group_means(scores, thresholds, width, data)


@dataclass(frozen=True)
class Surrogate:
    """A stand-in ``sigma(x / width)`` for ``1[x > 0]`` with a convex split ``sigma = plus - minus``.

    Attributes
    ----------
    name : str
    value, plus, minus : Kernel
        ``sigma`` and its split; ``plus`` and ``minus`` are convex.
    spread : float
        Standard deviation of the steep part of the density ``sigma'`` at width 1. Surrogates of equal
        ``width * spread`` blur the scores alike, whatever their shape.
    width : float
        In units of the scores; the narrower, the closer to the indicator.
    """

    name: str
    value: Kernel
    plus: Kernel
    minus: Kernel
    spread: float
    width: float = 1.0

    def with_width(self, width: float) -> Surrogate:
        """The same shape at another width."""
        return replace(self, width=width)

    def with_blur(self, blur: float) -> Surrogate:
        """The same shape, its width chosen such that ``width * spread = blur`` (units of the scores)."""
        return replace(self, width=blur / self.spread)

    def rates(self, scores: Tensor, thresholds: Tensor, data: FairData) -> Tensor:
        """Smooth share of every group above every threshold; Tensor of shape (n_groups, n_thresholds)."""
        return self.value.group_means(scores, thresholds, self.width, data)

    def split_rates(self, scores: Tensor, thresholds: Tensor, data: FairData) -> tuple[Tensor, Tensor]:
        """The two convex parts whose difference is `rates`."""
        return (
            self.plus.group_means(scores, thresholds, self.width, data),
            self.minus.group_means(scores, thresholds, self.width, data),
        )


def _hinge(knot: float) -> PiecewisePolynomial:
    """``max(x - knot, 0)``."""
    return PiecewisePolynomial(np.array([knot]), np.array([[0.0, 0.0], [-knot, 1.0]]))


def _curved(name: str, kernel: Kernel, curvature: float, spread: float) -> Surrogate:
    """A smooth surrogate whose second derivative is at least ``-curvature`` (Example D.4)."""
    quadratic = QuadraticKernel(curvature)
    return Surrogate(name, kernel, _Sum(kernel, quadratic), quadratic, spread)


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
