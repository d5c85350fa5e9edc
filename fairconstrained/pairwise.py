"""Means of a kernel over all pairs of two samples, without ever forming the pairs.

Every pairwise quantity (AUC, pairwise losses, group AUC) is ``sum_ij a_i b_j kernel((s_i - t_j) / width)``.
`pair_mean` computes it, and its gradient in ``s`` and ``t``, by the route that suits the kernel: moments, sorted
windows, or a grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fairconstrained._pair_grid import Result, Sample, close_gaps, evaluate_on_grid
from fairconstrained.surrogates import LogisticKernel, PiecewisePolynomial, QuadraticKernel, _Sum

__all__ = ["SoftplusKernel", "interval_weights", "pair_mean"]


@dataclass(frozen=True)
class SoftplusKernel:
    """``log(1 + exp(-x))``, the logistic loss of a pair."""

    def __call__(self, x: Tensor) -> Tensor:
        """Value at every entry of ``x``."""
        return F.softplus(-x)


def pair_mean(
    kernel: Callable[[Tensor], Tensor],
    first: Tensor,
    second: Tensor,
    first_weights: Tensor,
    second_weights: Tensor,
    width: float = 1.0,
) -> Tensor:
    """``sum_ij first_weights_i second_weights_j kernel((first_i - second_j) / width)``.

    Parameters
    ----------
    kernel : callable
        A kernel of `fairconstrained.surrogates` (or their sum), or `SoftplusKernel`. `PiecewisePolynomial` takes
        O(n log n) time by sorting and `QuadraticKernel` O(n), both exact; a piecewise linear kernel takes a third of
        the time of a cubic one, and loses 1e-16 times the range of the scores in widths. Smooth kernels are replaced
        by cubic splines on a grid that is fixed in units of the width: O(n + m log m) time for m nodes in the range of
        the scores. The spline differs from the kernel by less than 2e-8, is twice differentiable, and the gradient is
        its own. Only where rows are so few and far between that 2**22 nodes do not suffice is the grid coarser.
    first, second : Tensor of shape (n_first,) and (n_second,)
        Scores, at least one of each.
    first_weights, second_weights : Tensor of shape (n_first,) and (n_second,)
        Weights; the result is a mean if both sum to one. They are constants: no gradient.
    width : float
        Positive, in units of the scores.

    Returns
    -------
    mean : Tensor of shape ()
        Differentiable once, in ``first`` and ``second``.

    Raises
    ------
    TypeError
        If nothing is known about pairs of this kernel.
    """
    return _PairMean.apply(first, second, first_weights, second_weights, width, kernel)


class _PairMean(torch.autograd.Function):
    """Value and gradients at once: they share the sorting, or the grid."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        first_weights: Tensor,
        second_weights: Tensor,
        width: float,
        kernel: Any,
    ) -> Tensor:
        one = Sample(first.numpy() / width, first_weights.numpy())
        other = Sample(second.numpy() / width, second_weights.numpy())
        value, d_first, d_second = _evaluate(kernel, one, other)
        ctx.slopes = torch.from_numpy(d_first / width), torch.from_numpy(d_second / width)
        return first.new_tensor(value)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        d_first, d_second = ctx.slopes
        return grads[0] * d_first, grads[0] * d_second, None, None, None, None


@singledispatch
def _evaluate(kernel: object, one: Sample, other: Sample) -> Result:
    """Pair mean of a kernel; one implementation for every class of kernels."""
    raise TypeError(f"pair_mean does not know how to sum {type(kernel).__name__} over pairs.")


@_evaluate.register
def _evaluate_sum(kernel: _Sum, one: Sample, other: Sample) -> Result:
    first, second = _evaluate(kernel.first, one, other), _evaluate(kernel.second, one, other)
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


# --- moments


@_evaluate.register
def _evaluate_quadratic(kernel: QuadraticKernel, one: Sample, other: Sample) -> Result:
    origin = _centre(other.x, other.weights)
    (a, u), (b, v) = (one.x - origin, one.weights), (other.x - origin, other.weights)
    u0, u1, u2 = u.sum(), u @ a, (u * a) @ a
    v0, v1, v2 = v.sum(), v @ b, (v * b) @ b
    value = kernel.curvature / 2 * (v0 * u2 - 2 * u1 * v1 + u0 * v2)
    return float(value), kernel.curvature * u * (v0 * a - v1), kernel.curvature * v * (u0 * b - u1)


def _centre(x: np.ndarray, weights: np.ndarray) -> float:
    """Weighted mean: powers of centred scores lose less to rounding."""
    total = weights.sum()
    return float(weights @ x / total) if total > 0 else 0.0


# --- sorted windows


@_evaluate.register
def _evaluate_polynomial(kernel: PiecewisePolynomial, one: Sample, other: Sample) -> Result:
    orders = np.argsort(one.x), np.argsort(other.x)
    # sorted queries are much faster too
    samples = [Sample(x[order], w[order]) for (x, w), order in zip((one, other), orders, strict=True)]
    sums = _hinge_sums if kernel.coefficients.shape[1] == 2 else _polynomial_sums
    value, *slopes = sums(kernel, *samples)
    gradients = np.empty_like(one.x), np.empty_like(other.x)
    for gradient, order, slope in zip(gradients, orders, slopes, strict=True):
        gradient[order] = slope
    return value, *gradients


def _hinge_sums(kernel: PiecewisePolynomial, one: Sample, other: Sample) -> Result:
    """A continuous piecewise linear kernel, as a line plus a hinge ``change_k max(x - knot_k, 0)`` at every knot.

    With ``V(x)`` and ``M(x)``, the sums of the others' weights and of their weighted scores below x, the hinges add up
    to ``sum_i u_i (x V(x) - M(x))`` at ``x = a_i - knot_k``.
    """
    (a, u), (b, v) = one, other
    (constant, slope), *_ = kernel.coefficients
    origin = _centre(b, v)
    centred_a, centred_b = a - origin, b - origin
    below_a, below_b, sum_b = _cumulative(u), _cumulative(v), _cumulative(v * centred_b)
    total_u, total_v = below_a[-1], below_b[-1]
    value = constant * total_u * total_v + slope * ((u @ centred_a) * total_v - sum_b[-1] * total_u)
    d_a, d_b = np.full(a.size, slope * total_v), np.full(b.size, slope * total_u)
    for knot, change in zip(kernel.knots, np.diff(kernel.coefficients[:, 1]), strict=True):
        place = np.searchsorted(b, a - knot)
        weight = below_b[place]
        value += change * (u @ ((centred_a - knot) * weight - sum_b[place]))
        d_a += change * weight
        d_b += change * (total_u - below_a[np.searchsorted(a, b + knot, "right")])
    return float(value), u * d_a, -v * d_b


def _cumulative(x: np.ndarray) -> np.ndarray:
    """Sums of the first entries, of none at first."""
    sums = np.zeros(x.size + 1)
    np.cumsum(x, out=sums[1:])
    return sums


def _polynomial_sums(kernel: PiecewisePolynomial, one: Sample, other: Sample) -> Result:
    """Between two knots the kernel is one polynomial of the moments of a window of the sorted other sample."""
    (a, u), (b, v) = one, other
    slopes = np.zeros_like(kernel.coefficients)
    slopes[:, :-1] = kernel.coefficients[:, 1:] * np.arange(1, kernel.coefficients.shape[1])
    means, d_a = _window_sums(a, b, v, kernel.knots, np.stack([kernel.coefficients, slopes]), side="left")
    # the second sample sees the mirrored kernel, x -> -x: a knot belongs to the piece on its other side
    mirrored = slopes[::-1] * (-1.0) ** np.arange(slopes.shape[1])
    (d_b,) = _window_sums(b, a, u, -kernel.knots[::-1], mirrored[None], side="right")
    return float(u @ means), u * d_a, -v * d_b


def _window_sums(
    points: np.ndarray,
    others: np.ndarray,
    weights: np.ndarray,
    knots: np.ndarray,
    tables: np.ndarray,
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
    side : {"left", "right"}
        Whether a knot belongs to the piece on its left or on its right.

    Returns
    -------
    sums : ndarray of shape (n_tables, n_points)
    """
    # the others in the window of piece k are edges[k + 1] : edges[k]
    edges = [others.size, *(np.searchsorted(others, points - knot, side) for knot in knots), 0]
    last = knots.size
    sums = np.zeros((tables.shape[0], points.size))
    # The two outer windows have no bound, so they take moments about a common origin. Their terms are no smaller
    # than what the powers lose, unless the kernel vanishes there and the term is left out.
    origin = _centre(others, weights)
    size = _length(tables[:, [0, last]])
    prefix = _prefix_moments(others - origin, weights, size)
    for piece in (0, last):
        window = _moments(prefix, edges[piece + 1], edges[piece], points - origin)
        sums += tables[:, piece, :size] @ window
    if last < 2:
        return sums
    # The inner windows take moments about the centre of a cell, whose powers are small. The cells are a little
    # wider than any window, which therefore ends in the cell after the one in which it begins, or before.
    width = 1.25 * np.diff(knots).max()
    cells = np.floor(others / width)
    prefix = _prefix_moments(others - (cells + 0.5) * width, weights, tables.shape[2])
    for piece in range(1, last):
        begins, ends = edges[piece + 1], edges[piece]
        cell = np.floor((points - knots[piece]) / width)
        middle = np.clip(np.searchsorted(cells, cell + 1), begins, ends)
        window = _moments(prefix, begins, middle, points - (cell + 0.5) * width)
        window += _moments(prefix, middle, ends, points - (cell + 1.5) * width)
        sums += tables[:, piece] @ window
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


def _moments(prefix: np.ndarray, begins: Any, ends: Any, shift: np.ndarray) -> np.ndarray:
    """Moments of ``shift_i - x_j`` over the windows ``begins_i : ends_i``; ndarray of shape (size, n_points)."""
    moments = np.stack([np.broadcast_to(row[ends] - row[begins], shift.shape) for row in prefix])
    for start in range(1, len(moments)):  # binomial theorem, as in Pascal's triangle
        for m in reversed(range(start, len(moments))):
            moments[m] += shift * moments[m - 1]
    return moments


# --- grid


@_evaluate.register
def _evaluate_logistic(kernel: LogisticKernel, one: Sample, other: Sample) -> Result:
    near_one, near_other, _ = close_gaps(one.x, other.x)  # in the tails the kernel is constant
    return evaluate_on_grid(kernel, one._replace(x=near_one), other._replace(x=near_other))


@_evaluate.register
def _evaluate_softplus(kernel: SoftplusKernel, one: Sample, other: Sample) -> Result:
    near_one, near_other, closed = close_gaps(one.x, other.x)
    value, d_one, d_other = evaluate_on_grid(kernel, one._replace(x=near_one), other._replace(x=near_other))
    if closed:
        # The left tail has slope -1: what a pair has been brought nearer is missing from its loss. The slopes
        # are right already, being constant in the tails.
        moved = Sample(one.x - near_one, one.weights), Sample(other.x - near_other, other.weights)
        value += _evaluate(_LEFT_HINGE, *moved)[0]
    return value, d_one, d_other


#: ``max(-x, 0)``.
_LEFT_HINGE = PiecewisePolynomial(np.zeros(1), np.array([[0.0, -1.0], [0.0, 0.0]]))


# --- ranks


def interval_weights(scores: Tensor, weights: Tensor, alpha: float, beta: float) -> Tensor:
    """Weight of every row at ranks in ``[alpha, beta)`` of its own set; rank 0 is the highest score.

    A row at an end of the interval counts in part, and tied rows share in proportion to their weights, so the
    result does not depend on the order of the rows.

    Parameters
    ----------
    scores : Tensor of shape (n,)
    weights : Tensor of shape (n,)
        Non-negative, with sum one.
    alpha, beta : float
        ``0 <= alpha <= beta <= 1``.

    Returns
    -------
    weights : Tensor of shape (n,)
        With sum ``beta - alpha``; a constant, without gradient.
    """
    x, w = scores.detach().numpy(), weights.detach().numpy()
    order = np.argsort(-x)
    ordered = x[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    mass = np.add.reduceat(w[order], first)
    ends = np.append(0.0, np.cumsum(mass))
    inside = np.diff(np.clip(ends / ends[-1], alpha, beta))
    share = np.divide(inside, mass, out=np.zeros_like(mass), where=mass > 0)
    result = np.empty_like(w)
    result[order] = w[order] * np.repeat(share, np.diff(np.append(first, x.size)))
    return torch.from_numpy(result)
