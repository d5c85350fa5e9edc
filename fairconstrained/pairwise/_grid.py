"""Means of smooth kernels over all pairs of two samples by cubic splines on a grid; see `fairconstrained.pairwise`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from scipy.fft import irfft, next_fast_len, rfft
from scipy.linalg import solve_banded
from torch import Tensor

__all__ = ["Result", "Sample", "close_gaps", "evaluate_on_grid", "has_few_nodes", "near_pairs", "table_on_grid"]

#: Nodes of the grid in one width. A power of two, so that moving scores by whole nodes is exact.
_NODES_PER_WIDTH = 16
#: Distance in widths from which the smooth kernels are constant or linear to double precision.
_TAIL = 40
#: Nodes from which empty stretches are worth looking for, and nodes at most.
_MANY_NODES, _MAX_NODES = 2**16, 2**22
#: Pairs that take as long as a node.
_PAIRS_PER_NODE = 16
#: Nodes beyond the grid at which the spline coefficients begin; what is wrong there has decayed by 0.27**40.
_PADDING = 40


class Sample(NamedTuple):
    """Scores in units of the width, and their weights; ndarrays of shape (n,)."""

    x: np.ndarray
    weights: np.ndarray


#: Value of the pair mean and its derivatives in the two samples' scores (in units of the width).
Result = tuple[float, np.ndarray, np.ndarray]


def close_gaps(*positions: np.ndarray) -> tuple[list[np.ndarray], bool]:
    """The scores of some samples with empty stretches shortened to `_TAIL`, where a smooth kernel sees no difference.

    An outlier, or a width much smaller than the spacing of the scores, would need an immense grid otherwise. Scores
    move by whole nodes, so that they keep their place within a cell of the grid.
    """
    x = np.concatenate(positions)
    if (x.max() - x.min()) * _NODES_PER_WIDTH < _MANY_NODES:
        return list(positions), False
    order = np.argsort(x)
    gaps = np.diff(x[order])
    excess = np.floor(np.maximum(gaps - _TAIL, 0) * _NODES_PER_WIDTH) / _NODES_PER_WIDTH
    near = np.empty_like(x)
    near[order] = x[order] - np.append(0.0, np.cumsum(excess))
    return np.split(near, np.cumsum([own.size for own in positions])[:-1]), True


def near_pairs(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Places in ``a`` and in ``b`` of the pairs at most `_TAIL` apart; None if a grid takes less time than they do.

    Where a few rows are spread far, most nodes of a grid are empty.
    """
    n_rows = a.size + b.size
    n_nodes = _NODES_PER_WIDTH * min(max(a.max(), b.max()) - min(a.min(), b.min()), n_rows * _TAIL)
    if n_nodes < n_rows:
        return None
    order = np.argsort(b)
    begins = np.searchsorted(b[order], a - _TAIL)
    counts = np.searchsorted(b[order], a + _TAIL, "right") - begins
    if counts.sum() > _PAIRS_PER_NODE * min(n_nodes, _MAX_NODES):
        return None
    places = np.arange(counts.sum()) + np.repeat(begins - np.cumsum(counts) + counts, counts)
    return np.repeat(np.arange(a.size), counts), order[places]


def evaluate_on_grid(kernel: Callable[[Tensor], Tensor], one: Sample, other: Sample) -> Result:
    """Tensor product of cubic B-splines: spread the weights on the nodes, convolve with the kernel, gather."""
    rows, size, density = _grid_rows([one.x, other.x])
    spread = [r.spread(sample.weights, size)[0] for r, sample in zip(rows, (one, other), strict=True)]
    spectrum = _spectrum(kernel, size, density)
    potential = _convolved(spectrum, spread[1]), _correlated(spectrum, spread[0])
    gradients = [
        density * sample.weights * r.slopes(p) for r, sample, p in zip(rows, (one, other), potential, strict=True)
    ]
    return float(spread[0] @ potential[0]), gradients[0], gradients[1]


def table_on_grid(
    kernel: Callable[[Tensor], Tensor], rows: Sample, codes: np.ndarray, n_groups: int
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Pair means of all groups with each other, on one grid.

    Returns
    -------
    means : ndarray of shape (n_groups, n_groups)
    slopes : callable
        Function from factors of the means, of their shape, to the derivatives of the sum in the rows as the first ones
        of the pairs; shape (n_rows,).
    """
    (grid,), size, density = _grid_rows([rows.x])
    spread = grid.spread(rows.weights, size, codes, n_groups)
    potential = _convolved(_spectrum(kernel, size, density), spread)

    def slopes(factors: np.ndarray) -> np.ndarray:
        used: np.ndarray = np.any(factors, axis=1)
        if used.all():
            return density * rows.weights * grid.slopes(factors @ potential, codes)
        found, own = np.zeros_like(rows.x), np.flatnonzero(used[codes])  # most groups take no part in one component
        numbers = (np.cumsum(used) - 1)[codes[own]]
        found[own] = density * rows.weights[own] * grid.at(own).slopes(factors[used] @ potential, numbers)
        return found

    return spread @ potential.T, slopes


def has_few_nodes(x: np.ndarray, per_row: int) -> bool:
    """Whether a grid over these scores, in units of the width, has fewer nodes than so many for every score."""
    return bool(np.ptp(x) * _NODES_PER_WIDTH < per_row * x.size)


def _grid_rows(positions: Sequence[np.ndarray]) -> tuple[list[_GridRows], int, float]:
    """Samples on a common grid, the number of its nodes, and how many of them are in one width."""
    lowest = min(x.min() for x in positions)
    span = max(x.max() for x in positions) - lowest
    density = min(_NODES_PER_WIDTH, (_MAX_NODES - 4) / max(span, 1.0))
    # Nodes stand at multiples of the spacing: wherever the scores go, they meet the same function.
    origin = np.floor(lowest * density)
    rows = [_GridRows.of(x * density - origin) for x in positions]
    size = max(int(r.node.max()) for r in rows) + 4
    # in steps of an eighth, so that the scores of the next evaluation have the same grid, as a rule
    step = 2 ** max(size.bit_length() - 4, 0)
    return rows, -(-size // step) * step, density


def _length(size: int) -> int:
    """Length of transforms that hold every difference of two nodes; what wraps around stays below ``size - 1``."""
    return int(next_fast_len(2 * size - 1, real=True))


def _spectrum(kernel: Callable[[Tensor], Tensor], size: int, density: float) -> np.ndarray:
    """Fourier transform of `_spline_table`, of a length that the transform is fast for."""
    return (_known_spectrum if size < _MANY_NODES else _new_spectrum)(kernel, size, density)


def _new_spectrum(kernel: Callable[[Tensor], Tensor], size: int, density: float) -> np.ndarray:
    return rfft(_spline_table(kernel, size, density), _length(size))


_known_spectrum = lru_cache(maxsize=8)(_new_spectrum)


def _convolved(spectrum: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``sum_j table[size - 1 + i - j] x_j``; ndarray of shape (..., size), like ``x``."""
    size = x.shape[-1]
    return irfft(spectrum * rfft(x, _length(size)), _length(size))[..., size - 1 : 2 * size - 1]


def _correlated(spectrum: np.ndarray, x: np.ndarray) -> np.ndarray:
    """``sum_i table[size - 1 + i - j] x_i``: the same with the arguments of the kernel exchanged."""
    size = x.shape[-1]
    return irfft(spectrum * rfft(x, _length(size)).conj(), _length(size))[..., size - 1 :: -1]


def _spline_table(kernel: Callable[[Tensor], Tensor], size: int, density: float) -> np.ndarray:
    """Coefficients, by difference of two nodes, of the spline in both arguments that equals the kernel at the nodes.

    Cubic B-splines are 1/6, 4/6, 1/6 at the nodes; both arguments divide by them.

    Returns
    -------
    table : ndarray of shape (2 size - 1,)
        Coefficients for differences from ``-(size - 1)`` to ``size - 1``.
    """
    reach = size - 1 + _PADDING
    table = kernel(torch.arange(-reach, reach + 1, dtype=torch.float64) / density).numpy()
    bands = np.repeat([[1 / 6], [4 / 6], [1 / 6]], table.size, axis=1)
    bands[1, [0, -1]], bands[0, 1], bands[2, -2] = 1.0, 0.0, 0.0
    for _ in range(2):
        table = solve_banded((1, 1), bands, table)
    return table[_PADDING:-_PADDING]


class _GridRows:
    """Rows between the nodes of the grid, by the node below and the distance from it; both of shape (n,)."""

    def __init__(self, node: np.ndarray, t: np.ndarray) -> None:
        self.node, self.t = node, t

    @classmethod
    def of(cls, position: np.ndarray) -> _GridRows:
        """``position`` is in units of the spacing, at least 0; ndarray of shape (n,)."""
        cell = np.floor(position)
        return cls(cell.astype(np.intp), position - cell)

    def at(self, chosen: np.ndarray) -> _GridRows:
        """Return some of the rows."""
        return _GridRows(self.node[chosen], self.t[chosen])

    def spread(self, weights: np.ndarray, size: int, codes: np.ndarray | int = 0, n_groups: int = 1) -> np.ndarray:
        """Weights of the nodes for every group: every row gives to the four B-splines that are not zero there.

        ndarray of shape (n_groups, size).
        """
        t, s = self.t, 1 - self.t
        tt, ss = t * t, s * s
        shares = (s * ss, 4 - 3 * tt * (1 + s), 4 - 3 * ss * (1 + t), t * tt)
        first, total = self.node + codes * size, np.zeros(n_groups * size)
        for k, share in enumerate(shares):
            total += np.bincount(first + k, weights * share / 6, minlength=total.size)
        return total.reshape(n_groups, size)

    def slopes(self, potential: np.ndarray, codes: np.ndarray | int = 0) -> np.ndarray:
        """Derivative in the position of the spline with its group's coefficients, of shape (n_groups, size)."""
        t, s = self.t, 1 - self.t
        shares = (-(s**2), t * (3 * t - 4), s * (4 - 3 * s), t**2)
        first, flat = self.node + codes * potential.shape[-1], potential.ravel()
        return sum((share * flat[first + k] for k, share in enumerate(shares)), np.zeros_like(t)) / 2
