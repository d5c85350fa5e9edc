"""Means of a kernel over all pairs of two samples, by the route that suits the kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from fairconstrained.kernels import KernelSum, LogisticKernel, PiecewisePolynomial, QuadraticKernel
from fairconstrained.pairwise._grid import (
    Result,
    Sample,
    close_gaps,
    evaluate_on_grid,
    has_few_nodes,
    near_pairs,
    table_on_grid,
)
from fairconstrained.pairwise._windows import centre, group_potentials, pair_sums
from fairconstrained.slopes import with_own_slopes

__all__ = ["SoftplusKernel", "interval_weights", "pair_mean", "pair_table"]

#: Rows from which on a table of piecewise polynomials may be taken on a grid: with fewer, single pairs count for more
#: than what the spline smooths away, and there is little time to win.
_MANY_ROWS = 2**8


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
        A kernel of `fairconstrained.kernels` (or their sum), or `SoftplusKernel`. `PiecewisePolynomial` takes
        O(n log n) time by sorting and `QuadraticKernel` O(n), both exact; a piecewise linear kernel takes a third of
        the time of a cubic one, and loses 1e-16 times the range of the scores in widths. Smooth kernels are replaced
        by cubic splines on a grid that is fixed in units of the width: O(n + m log m) time for m nodes in the range of
        the scores. The spline differs from the kernel by less than 2e-8, is twice differentiable, and the gradient is
        its own. Only where rows are so few and far between that 2**22 nodes do not suffice is the grid coarser. Where
        `SoftplusKernel` is all but straight for most pairs, the others are summed one by one instead.
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

    def evaluated(one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], list[np.ndarray]]]:
        samples = Sample(one / width, first_weights.numpy()), Sample(other / width, second_weights.numpy())
        value, *slopes = _evaluate(kernel, *samples)  # at once: they share the sorting, or the grid
        return np.asarray(value), lambda factor: [factor * (slope / width) for slope in slopes]

    return with_own_slopes(evaluated, first, second)


#: Pair means of all groups with each other, and a function from factors of the means to the slopes of the rows.
Table = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


def pair_table(
    kernel: Callable[[Tensor], Tensor],
    scores: np.ndarray,
    weights: np.ndarray,
    codes: np.ndarray,
    n_groups: int,
    width: float = 1.0,
) -> Table:
    """`pair_mean` of all groups with each other; one pass over the rows for every group instead of every pair.

    Parameters
    ----------
    kernel : PiecewisePolynomial or LogisticKernel
        Kernel with an even derivative, such as one with ``kernel(x) + kernel(-x) = 1``. With some hundred rows and
        few nodes for every row, a `PiecewisePolynomial` that is constant outside its knots is replaced by a spline on
        the grid as well. A ramp moves by less than 7e-3 near its knots and a smoothstep by less than 2e-4, the means by
        far less, and the gradient is that of the means.
    scores, weights : ndarray of shape (n,)
        Rows.
    codes : ndarray of shape (n,)
        Group of every row, in ``0 .. n_groups - 1``.
    n_groups : int
    width : float
        Positive, in units of the scores.

    Returns
    -------
    means : ndarray of shape (n_groups, n_groups)
        Means with the group of the row as the first of a pair; those of a group with itself, and with one that has no
        rows, are zero.
    pull : callable
        Takes factors of the means, an ndarray of their shape, and returns the slopes of ``(factors * means).sum()`` in
        the scores. Few factors take little time: only rows of their groups have slopes.

    Raises
    ------
    TypeError
        If nothing is known about tables of this kernel.
    """
    means, slopes = _tabulate(kernel, Sample(scores / width, weights), codes, n_groups)
    np.fill_diagonal(means, 0.0)

    def pull(factors: np.ndarray) -> np.ndarray:
        # rows are second in the means of the column's group, where an even derivative has the opposite sign
        return slopes(factors - factors.T) / width

    return means, pull


@singledispatch
def _evaluate(kernel: object, one: Sample, other: Sample) -> Result:
    """Pair mean of a kernel; one implementation for every class of kernels."""
    raise TypeError(f"pair_mean does not know how to sum {type(kernel).__name__} over pairs.")


@_evaluate.register
def _evaluate_sum(kernel: KernelSum, one: Sample, other: Sample) -> Result:
    first, second = _evaluate(kernel.first, one, other), _evaluate(kernel.second, one, other)
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


@singledispatch
def _tabulate(kernel: object, rows: Sample, codes: np.ndarray, n_groups: int) -> Table:
    """Pair means of all groups with each other; one implementation for every class of kernels."""
    raise TypeError(f"pair_table does not know how to sum {type(kernel).__name__} over pairs.")


# --- moments


@_evaluate.register
def _evaluate_quadratic(kernel: QuadraticKernel, one: Sample, other: Sample) -> Result:
    origin = centre(other.x, other.weights)
    (a, u), (b, v) = (one.x - origin, one.weights), (other.x - origin, other.weights)
    u0, u1, u2 = u.sum(), u @ a, (u * a) @ a
    v0, v1, v2 = v.sum(), v @ b, (v * b) @ b
    value = kernel.curvature / 2 * (v0 * u2 - 2 * u1 * v1 + u0 * v2)
    return float(value), kernel.curvature * u * (v0 * a - v1), kernel.curvature * v * (u0 * b - u1)


# --- sorted windows


@_evaluate.register
def _evaluate_polynomial(kernel: PiecewisePolynomial, one: Sample, other: Sample) -> Result:
    return pair_sums(kernel, one, other)


@_tabulate.register
def _tabulate_polynomial(kernel: PiecewisePolynomial, rows: Sample, codes: np.ndarray, n_groups: int) -> Table:
    degree = kernel.coefficients.shape[1] - 1  # the time of a window is proportional to it
    if rows.x.size >= _MANY_ROWS and kernel.flat_outside and has_few_nodes(rows.x, degree):
        return table_on_grid(kernel, rows, codes, n_groups)
    order = np.argsort(rows.x)
    x, weights, groups = rows.x[order], rows.weights[order], codes[order]
    values, derivatives = group_potentials(kernel, x, weights, groups, n_groups)
    means = np.stack([np.bincount(groups, weights * value, minlength=n_groups) for value in values], axis=1)

    def slopes(factors: np.ndarray) -> np.ndarray:
        found = np.empty_like(x)
        found[order] = weights * np.einsum("ih,hi->i", factors[groups], derivatives)
        return found

    return means, slopes


# --- grid


@_tabulate.register
def _tabulate_logistic(kernel: LogisticKernel, rows: Sample, codes: np.ndarray, n_groups: int) -> Table:
    (near,), _ = close_gaps(rows.x)  # in the tails the kernel is constant
    return table_on_grid(kernel, rows._replace(x=near), codes, n_groups)


@_evaluate.register
def _evaluate_logistic(kernel: LogisticKernel, one: Sample, other: Sample) -> Result:
    (near_one, near_other), _ = close_gaps(one.x, other.x)
    return evaluate_on_grid(kernel, one._replace(x=near_one), other._replace(x=near_other))


@_evaluate.register
def _evaluate_softplus(kernel: SoftplusKernel, one: Sample, other: Sample) -> Result:
    pairs = near_pairs(one.x, other.x)
    if pairs is not None:
        return _softplus_of_pairs(one, other, *pairs)
    (near_one, near_other), closed = close_gaps(one.x, other.x)
    value, d_one, d_other = evaluate_on_grid(kernel, one._replace(x=near_one), other._replace(x=near_other))
    if closed:
        # The left tail has slope -1: what a pair has been brought nearer is missing from its loss. The slopes
        # are right already, being constant in the tails.
        moved = Sample(one.x - near_one, one.weights), Sample(other.x - near_other, other.weights)
        value += _evaluate(_LEFT_HINGE, *moved)[0]
    return value, d_one, d_other


def _softplus_of_pairs(one: Sample, other: Sample, i: np.ndarray, j: np.ndarray) -> Result:
    """``max(-x, 0)`` of all pairs, and what the kernel exceeds it by, ``log(1 + exp(-|x|))``, of near ones."""
    value, d_one, d_other = _evaluate(_LEFT_HINGE, one, other)
    x, weights = one.x[i] - other.x[j], one.weights[i] * other.weights[j]
    falling = np.exp(-np.abs(x))
    slopes = weights * np.where(x > 0, -1.0, 1.0) * falling / (1 + falling)
    value += float(weights @ np.log1p(falling))
    return value, d_one + np.bincount(i, slopes, one.x.size), d_other - np.bincount(j, slopes, other.x.size)


#: ``max(-x, 0)``.
_LEFT_HINGE = PiecewisePolynomial(np.zeros(1), np.array([[0.0, -1.0], [0.0, 0.0]]))


# --- ranks


def interval_weights(
    scores: Tensor,
    weights: Tensor,
    alpha: float | np.ndarray,
    beta: float | np.ndarray,
    codes: np.ndarray | None = None,
) -> Tensor:
    """Weight of every row at ranks in ``[alpha, beta)`` of its own set; rank 0 is the highest score.

    A row at an end of the interval counts in part, and tied rows share in proportion to their weights, so the
    result does not depend on the order of the rows.

    Parameters
    ----------
    scores : Tensor of shape (n,)
    weights : Tensor of shape (n,)
        Non-negative, with sum one in every set.
    alpha, beta : float, or ndarray of shape (n_pieces, n_sets) or (n_pieces, 1)
        ``0 <= alpha <= beta <= 1``, of disjoint pieces.
    codes : ndarray of shape (n,), optional
        Number of every row's set; by default all rows are one set.

    Returns
    -------
    weights : Tensor of shape (n,)
        Weights in the interval, with sum ``beta - alpha`` in every set; a constant, without gradient.
    """
    x, w = scores.detach().numpy(), weights.detach().numpy()
    sets = np.zeros(x.size, dtype=int) if codes is None else codes
    order = np.argsort(-x)
    order = order[np.argsort(sets[order].astype(np.min_scalar_type(sets.max())), kind="stable")]
    x, sets = x[order], sets[order]
    first = np.flatnonzero(np.append(True, (x[1:] != x[:-1]) | (sets[1:] != sets[:-1])))
    mass, sets = np.add.reduceat(w[order], first), sets[first]
    ends = np.append(0.0, np.cumsum(mass))
    bounds = ends[np.searchsorted(sets, np.arange(sets[-1] + 2))]
    ranks = (ends[:-1] - bounds[sets], ends[1:] - bounds[sets]) / np.diff(bounds)[sets]
    inside = np.zeros_like(mass)
    for low, high in zip(np.atleast_2d(alpha), np.atleast_2d(beta), strict=True):
        of_set = (np.broadcast_to(end, sets[-1] + 1)[sets] for end in (low, high))
        inside += np.diff(np.clip(ranks, *of_set), axis=0)[0]
    share = np.divide(inside, mass, out=np.zeros_like(mass), where=mass > 0)
    result = np.empty_like(w)
    result[order] = w[order] * np.repeat(share, np.diff(np.append(first, x.size)))
    return torch.from_numpy(result)
