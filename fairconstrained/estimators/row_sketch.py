"""Which rows a model was fitted on, remembered by hashes, so that it is not judged on them by mistake."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from fairconstrained.features import map_rows, row_blocks

__all__ = ["RowSketch", "row_hashes"]

#: Distinct rows that are remembered; of more, those of the smallest hashes. With 12 bytes each they take 60 kB.
_SIZE = 5000
_COUNT = np.uint32
# Constants of splitmix64 (Steele, Lea, Flood 2014).
_STEP, _FIRST, _SECOND = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def row_hashes(X: Any) -> np.ndarray:
    """A number for every row that is the same for equal rows, dense or sparse; ndarray of uint64, shape (n_samples,).

    The sum over the entries that are not zero of what their bits and their column are mixed to: the order of the
    entries does not matter, and zeros that a sparse matrix does not store add nothing.

    Parameters
    ----------
    X : ndarray, sparse matrix or Table of shape (n_samples, n_features), or ndarray of shape (n_samples, ...)
        Numbers; those that are missing are NaN.
    """
    return map_rows(X, _hashes)


@dataclass(frozen=True, eq=False)
class RowSketch:
    """Hashes of some rows."""

    #: Ascending and distinct: all there are up to ``limit``.
    hashes: np.ndarray  # of uint64, of shape (n_kept,)
    #: Numbers of rows that have each of them.
    counts: np.ndarray  # of uint32, of shape (n_kept,)
    #: Rows of larger hashes are not remembered.
    limit: int = 2**64 - 1

    @classmethod
    def of(cls, X: Any) -> Self:
        """The sketch of rows, dense or sparse, as `row_hashes` takes them."""
        hashes, counts = np.unique(row_hashes(X), return_counts=True)
        return cls(hashes, counts.astype(_COUNT))._thinned()

    def joined(self, X: Any) -> Self:
        """The sketch of these rows and those of X."""
        other, limit = self.of(X), np.uint64(self.limit)
        new, counts = other.hashes[other.hashes <= limit], self.counts.copy()
        places = np.searchsorted(self.hashes, new)
        known = self.hashes[places.clip(max=max(self.hashes.size - 1, 0))] == new if self.hashes.size else new < 0
        added = other.counts[: new.size]
        counts[places[known]] += added[known]
        hashes = np.insert(self.hashes, places[~known], new[~known])
        counts = np.insert(counts, places[~known], added[~known])
        return replace(self, hashes=hashes, counts=counts, limit=min(self.limit, other.limit))._thinned()

    @property
    def share_remembered(self) -> float:
        """Probability with which any kind of rows is remembered: 1 as long as there are few."""
        return (self.limit + 1) / 2**64

    @property
    def share_repeated(self) -> float:
        """Share of the rows that occur more than once: what share of *other* rows to expect here by accident."""
        return float(self.counts[self.counts > 1].sum() / self.counts.sum())

    def n_testable(self, X: Any) -> int:
        """How many rows of X have a hash that would have been remembered."""
        return int((row_hashes(X) <= np.uint64(self.limit)).sum())

    def share_seen(self, X: Any) -> float:
        """Share of the rows of X that are among those of the sketch, of the testable ones; NaN if there are none.

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        """
        hashes = row_hashes(X)
        testable = hashes[hashes <= np.uint64(self.limit)]
        return float(np.isin(testable, self.hashes).mean()) if testable.size else np.nan

    def _thinned(self) -> Self:
        """Return a sketch of at most as many rows as are remembered, none of them above the limit."""
        limit = int(self.hashes[_SIZE - 1]) if self.hashes.size > _SIZE else self.limit
        kept = int(np.searchsorted(self.hashes, np.uint64(limit), side="right"))
        # copies, as parts would keep the arrays of all rows alive
        return replace(self, hashes=self.hashes[:kept].copy(), counts=self.counts[:kept].copy(), limit=limit)


def _hashes(X: Any) -> np.ndarray:
    if sp.issparse(X):
        return np.concatenate([_sparse_hashes(block) for _, block in row_blocks(sp.csr_array(X))])
    X = np.reshape(X, (X.shape[0], -1)) if X.ndim > 2 else X
    return np.concatenate([_dense_hashes(block) for _, block in row_blocks(X)])


def _dense_hashes(X: np.ndarray) -> np.ndarray:
    return _mixed(_entries(X, np.arange(X.shape[1])).sum(axis=1, dtype=np.uint64))


def _sparse_hashes(X: sp.csr_array) -> np.ndarray:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    mixed = _entries(X.data, X.indices)
    ends = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(mixed, dtype=np.uint64)])
    return _mixed(ends[X.indptr[1:]] - ends[X.indptr[:-1]])  # integers wrap around, so differences are exact


def _entries(values: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the hashes that the entries add to their rows; zero for zeros."""
    values = np.where(np.isnan(values), np.nan, values)  # there are many NaN, which differ in their bits
    bits = values.astype(np.float64, copy=False).view(np.uint64)
    mixed = _mixed(bits ^ _mixed(columns.astype(np.uint64) + np.uint64(1)))
    return np.where(values == 0, np.uint64(0), mixed)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """splitmix64: every bit of the result depends on every bit of the number."""
    numbers = numbers + _STEP
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))
