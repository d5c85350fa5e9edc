"""Sums and maxima of the rows of every cell: a group, or any other disjoint sets of rows with numbers."""

from __future__ import annotations

from math import prod

import numpy as np

__all__ = ["cell_maxima", "cell_sums", "effective_size", "quotients", "sums_above"]

#: Weight of rows, of a total of one, up to which a difference of sums is rounding.
_NOTHING = 1e-12


def cell_sums(cells: np.ndarray, n_cells: int, values: np.ndarray | None = None) -> np.ndarray:
    """Return the sum of the rows' values in every cell, or the number of rows; ndarray of shape (..., n_cells).

    Parameters
    ----------
    cells : ndarray of shape (n_samples,)
        Rows whose cell is ``n_cells`` are in none.
    n_cells : int
    values : ndarray of shape (..., n_samples), optional
    """
    if values is None or values.ndim == 1:
        return np.bincount(cells, values, minlength=n_cells + 1)[:n_cells]
    outer = values.shape[:-1]
    firsts = (n_cells + 1) * np.arange(prod(outer))  # those of the next sums follow
    numbers = (firsts[:, None] + cells).ravel()
    sums = np.bincount(numbers, values.ravel(), minlength=(n_cells + 1) * firsts.size)
    return sums.reshape(*outer, n_cells + 1)[..., :n_cells]


def sums_above(scores: np.ndarray, cuts: np.ndarray, cells: np.ndarray, n_cells: int, values: np.ndarray) -> np.ndarray:
    """Return, for every cut, the `cell_sums` of the rows whose score is above it; ndarray of shape (n_cuts, n_cells).

    Memory and time grow with the number of rows, and with the number of cuts times that of cells.
    """
    order = np.argsort(cuts, kind="stable")
    n_below = np.searchsorted(cuts[order], scores)
    shape = cuts.size + 1, n_cells + 1
    by_interval = np.bincount(n_below * shape[1] + cells, values, minlength=shape[0] * shape[1]).reshape(shape)
    sums = np.empty((cuts.size, n_cells))
    sums[order] = np.cumsum(by_interval[::-1], axis=0)[-2::-1, :-1]  # of the rows with more cuts below them
    return sums


def cell_maxima(cells: np.ndarray, n_cells: int, values: np.ndarray) -> np.ndarray:
    """Return the largest of the rows' non-negative values in every cell, 0 without rows; see `cell_sums`."""
    largest = np.zeros(n_cells + 1)
    np.maximum.at(largest, cells, values)
    return largest[:n_cells]


def quotients(totals: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Return totals over the weight of their rows, NaN where there are none; both may be off by rounding."""
    return np.divide(totals, mass, out=np.full(mass.shape, np.nan), where=mass > _NOTHING)


def effective_size(weights: np.ndarray) -> float:
    """Return the number of rows of equal weight whose mean varies as much as that of rows with these weights."""
    return float(weights.sum() ** 2 / (weights @ weights))
