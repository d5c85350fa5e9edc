"""`FairData`: the validated, immutable training data, and the border between numpy and torch."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

__all__ = ["FairData"]


@dataclass(frozen=True, eq=False)
class FairData:
    """Training data whose rows are ordered by group, so that every group is one contiguous block.

    Scores, labels and weights follow this internal order; ``order`` leads back to the rows of the caller.
    Slices of a contiguous vector are views, so no term ever gathers or copies the rows of a group.

    Attributes
    ----------
    blocks : tuple of (ndarray or csr_array) of shape (n_g, n_features)
        The feature rows of every group. CSR blocks share the memory of one matrix.
    y : Tensor of shape (n_samples,)
        Targets: -1 / +1 for classification, real values for regression.
    weights : Tensor of shape (n_samples,)
        Positive sample weights, normalised to sum to one.
    labels : tuple
        The value of the sensitive features that each block stands for.
    order : ndarray of shape (n_samples,)
        Row ``i`` here is row ``order[i]`` of the arrays given to `from_arrays`.
    """

    blocks: tuple[Any, ...]
    y: torch.Tensor
    weights: torch.Tensor
    labels: tuple[Hashable, ...]
    order: np.ndarray

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: np.ndarray,
        codes: np.ndarray,
        labels: tuple[Hashable, ...],
        sample_weight: np.ndarray | None = None,
    ) -> FairData:
        """Order validated arrays by group.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        codes : ndarray of shape (n_samples,)
            Group of every row, in ``0 .. len(labels) - 1``; every group has at least one row.
        labels : tuple
        sample_weight : ndarray of shape (n_samples,), optional
            Non-negative. Rows of weight zero are dropped: they are as if they had never been given.
        """
        weights = np.ones(y.shape[0]) if sample_weight is None else sample_weight
        order = np.argsort(codes, kind="stable")
        order = order[weights[order] > 0]
        if order.size < y.shape[0] or (np.diff(order) < 0).any():
            X = X[order]
        bounds = np.searchsorted(codes[order], np.arange(len(labels) + 1))
        ordered = weights[order]
        return cls(
            blocks=tuple(_rows(X, a, b) for a, b in zip(bounds[:-1], bounds[1:], strict=True)),
            y=torch.from_numpy(np.ascontiguousarray(y[order], dtype=np.float64)),
            weights=torch.from_numpy(ordered / ordered.sum()),
            labels=labels,
            order=order,
        )

    @property
    def n_samples(self) -> int:
        """Number of rows with positive weight."""
        return self.y.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.blocks[0].shape[1]

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Where the rows of every group stand."""
        ends = np.cumsum([block.shape[0] for block in self.blocks])
        return tuple(
            slice(int(b) - block.shape[0], int(b)) for b, block in zip(ends, self.blocks, strict=True)
        )

    @cached_property
    def codes(self) -> np.ndarray:
        """Group of every row, ascending; ndarray of shape (n_samples,)."""
        return np.repeat(np.arange(self.n_groups), [block.shape[0] for block in self.blocks])

    @cached_property
    def group_weights(self) -> torch.Tensor:
        """Sample weights normalised to sum to one *within every group*; Tensor of shape (n_samples,)."""
        weights = self.weights.clone()
        for rows in self.slices:
            weights[rows] /= weights[rows].sum()
        return weights

    def counts(self) -> dict[Hashable, int]:
        """Rows per group, for messages."""
        return {label: block.shape[0] for label, block in zip(self.labels, self.blocks, strict=True)}

    def take(self, rows: np.ndarray) -> FairData:
        """The data of some rows, for a mini-batch.

        Parameters
        ----------
        rows : ndarray of shape (n_batch,)
            Ascending row numbers in the internal order, with at least one row of every group.
        """
        bounds = np.searchsorted(rows, [s.start for s in self.slices] + [self.n_samples])
        index = torch.from_numpy(rows)
        weights = self.weights[index]
        return FairData(
            blocks=tuple(
                block[rows[a:b] - s.start]
                for block, s, a, b in zip(self.blocks, self.slices, bounds[:-1], bounds[1:], strict=True)
            ),
            y=self.y[index],
            weights=weights / weights.sum(),
            labels=self.labels,
            order=self.order[rows],
        )


def _rows(X: Any, start: int, stop: int) -> Any:
    """Rows ``start:stop`` without a copy; slicing a CSR matrix would copy its values."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    values = (X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first)
    return sp.csr_array(values, shape=(stop - start, X.shape[1]))
