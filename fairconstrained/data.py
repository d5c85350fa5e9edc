"""`FairData`: the validated, immutable training data, and the border between numpy and torch."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

__all__ = ["Cells", "FairData", "Rows", "rows_within"]

#: Some rows in the internal order of the data: a slice, or their numbers in ascending order.
Rows = slice | np.ndarray

#: Features up to which a mini-batch of sparse rows is made dense.
_FEW_FEATURES = 1000


@dataclass(frozen=True, eq=False)
class Cells:
    """Disjoint sets of rows whose shares are compared: the groups, or the rows of one label in every group.

    Attributes
    ----------
    slices : tuple of slice
        The rows of every cell.
    weights : Tensor of shape (n_samples,)
        Weights that sum to one within every cell; zero for rows in no cell.
    labels : tuple of str
        What to call the cells in messages.
    """

    slices: tuple[slice, ...]
    weights: torch.Tensor
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.slices)

    @cached_property
    def codes(self) -> torch.Tensor:
        """Cell of every row, ``len(self)`` for rows in none; Tensor of shape (n_samples,)."""
        codes = torch.full(self.weights.shape, len(self))
        for code, rows in enumerate(self.slices):
            codes[rows] = code
        return codes

    def counts(self) -> dict[str, int]:
        """Rows per cell, for messages."""
        return {label: rows.stop - rows.start for label, rows in zip(self.labels, self.slices, strict=True)}

    def largest_shares(self) -> np.ndarray:
        """Share of its cell that the heaviest row stands for; ndarray of shape (n_cells,)."""
        return np.array([float(self.weights[rows].max()) for rows in self.slices])


@dataclass(frozen=True, eq=False)
class FairData:
    """Training data whose rows are ordered by group and, within a group, by target.

    So the rows of a group are one contiguous block, and those of a group and label are one too.
    Scores, targets and weights follow this internal order; ``order`` leads back to the rows of the caller.
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
        """Order validated arrays by group and target.

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
        order = np.lexsort((y, codes))
        order = order[weights[order] > 0]
        if order.size < y.shape[0] or (np.diff(order) < 0).any():
            X = X[order]
        bounds = np.searchsorted(codes[order], np.arange(len(labels) + 1))
        ordered = weights[order]
        return cls(
            blocks=tuple(_rows(X, a, b) for a, b in pairwise(bounds)),
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
        return tuple(slice(int(b) - block.shape[0], int(b)) for b, block in zip(ends, self.blocks, strict=True))

    @cached_property
    def transposed(self) -> tuple[Any, ...]:
        """The transposes of ``blocks``, sharing their memory."""
        return tuple(_transposed(block) for block in self.blocks)

    @cached_property
    def codes(self) -> np.ndarray:
        """Group of every row, ascending; ndarray of shape (n_samples,)."""
        return np.repeat(np.arange(self.n_groups), [block.shape[0] for block in self.blocks])

    @cached_property
    def groups(self) -> Cells:
        """The groups as cells."""
        return self._cells(self.slices, tuple(str(label) for label in self.labels))

    def groups_with_label(self, target: float) -> Cells:
        """The rows of every group whose target is ``target``; a cell may be empty."""
        spans = []
        for rows in self.slices:
            ends = (
                np.searchsorted(self.y[rows].numpy(), target, side="left"),
                np.searchsorted(self.y[rows].numpy(), target, side="right"),
            )
            spans.append(slice(rows.start + int(ends[0]), rows.start + int(ends[1])))
        return self._cells(tuple(spans), tuple(f"{label}, y={target:+g}" for label in self.labels))

    def _cells(self, slices: tuple[slice, ...], labels: tuple[str, ...]) -> Cells:
        weights = torch.zeros_like(self.weights)
        for rows in slices:
            weights[rows] = self.weights[rows] / self.weights[rows].sum()
        return Cells(slices, weights, labels)

    @property
    def group_weights(self) -> torch.Tensor:
        """Sample weights normalised to sum to one *within every group*; Tensor of shape (n_samples,)."""
        return self.groups.weights

    def counts(self) -> dict[Hashable, int]:
        """Rows per group, for messages."""
        return {label: block.shape[0] for label, block in zip(self.labels, self.blocks, strict=True)}

    def sample(self, rng: np.random.Generator, size: int) -> FairData:
        """A group-stratified mini-batch whose weighted means are unbiased.

        Every group gets its share of ``size`` (at least one row). Rows are drawn with replacement in proportion
        to their weight and then count alike, and every group keeps its share of the total weight.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int
            Rows to draw, about.
        """
        rows, weights = [], []
        for part in self.slices:
            share = float(self.weights[part].sum())
            count = max(1, round(share * size))
            cumulative = torch.cumsum(self.group_weights[part], 0).numpy()
            drawn = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
            rows.append(np.sort(drawn) + part.start)
            weights.append(np.full(count, share / count))
        return self._take(rows, np.concatenate(weights))

    def thinned(self, rng: np.random.Generator, size: int) -> FairData:
        """About ``size`` rows that stand for all of them: every so many-th row of every group.

        Rows are ordered by target, so the shares of the targets are kept. A group that is small gets more rows than
        its share, up to all it has; the weights make up for it. For mini-batches see `sample`.

        Parameters
        ----------
        rng : numpy.random.Generator
        size : int
        """
        rows, weights = [], []
        for part in self.slices:
            share = float(self.weights[part].sum())
            count = min(max(round(share * size), size // (2 * self.n_groups)), part.stop - part.start)
            cumulative = torch.cumsum(self.group_weights[part], 0).numpy()
            at = (rng.random() + np.arange(count)) / count * cumulative[-1]
            drawn = np.searchsorted(cumulative, at, side="right").clip(max=cumulative.size - 1)
            rows.append(drawn + part.start)
            weights.append(np.full(count, share / count))
        return self._take(rows, np.concatenate(weights))

    def at(self, rows: np.ndarray) -> FairData:
        """Some rows, which all count alike; a group may have none of them.

        Parameters
        ----------
        rows : ndarray of shape (size,)
            Numbers in the internal order, ascending; a row may come several times.
        """
        return next(self.batches(rows[None]))

    def batches(self, rows: np.ndarray) -> Iterator[FairData]:
        """The data `at` every row of a table of row numbers, for less than one by one: X is gathered once for all.

        Rows of a few sparse features come dense, since products with so small a matrix take no time but that of the
        call.

        Parameters
        ----------
        rows : ndarray of shape (n_batches, size)
            Numbers in the internal order, ascending in every batch.
        """
        starts = np.array([part.start for part in self.slices[1:]])
        groups = np.searchsorted(starts, rows, side="right")
        blocks, ends = [], []
        for group, (block, part) in enumerate(zip(self.blocks, self.slices, strict=True)):
            chosen = groups == group
            block = block[rows[chosen] - part.start]
            few = sp.issparse(block) and block.shape[1] <= _FEW_FEATURES
            blocks.append(block.toarray() if few else block)
            ends.append(np.append(0, chosen.sum(axis=1).cumsum()).tolist())
        targets, order = self.y[torch.from_numpy(rows)], self.order[rows]
        weights = torch.full((rows.shape[1],), 1 / rows.shape[1], dtype=torch.float64)
        for k in range(len(rows)):
            yield FairData(
                blocks=tuple(_rows(block, end[k], end[k + 1]) for block, end in zip(blocks, ends, strict=True)),
                y=targets[k],
                weights=weights,
                labels=self.labels,
                order=order[k],
            )

    def _take(self, rows: list[np.ndarray], weights: np.ndarray) -> FairData:
        """Some rows of every group, given by their numbers in the internal order."""
        chosen = np.concatenate(rows)
        blocks = zip(self.blocks, self.slices, rows, strict=True)
        return FairData(
            blocks=tuple(block[local - part.start] for block, part, local in blocks),
            y=self.y[torch.from_numpy(chosen)],
            weights=torch.from_numpy(weights),
            labels=self.labels,
            order=self.order[chosen],
        )


def rows_within(rows: Rows, part: slice) -> tuple[Rows, Rows]:
    """Those of the rows that stand in a part, and the same counted from its beginning."""
    if isinstance(rows, slice):
        start, stop = max(rows.start, part.start), max(min(rows.stop, part.stop), part.start)
        start = min(start, stop)
        return slice(start, stop), slice(start - part.start, stop - part.start)
    inside = rows[slice(*np.searchsorted(rows, [part.start, part.stop]))]
    return inside, inside - part.start


def _rows(X: Any, start: int, stop: int) -> Any:
    """Rows ``start:stop`` without a copy; slicing a CSR matrix would copy its values."""
    if not sp.issparse(X):
        return X[start:stop]
    first, last = X.indptr[start], X.indptr[stop]
    block = sp.csr_array((stop - start, X.shape[1]), dtype=X.dtype)
    return _with_arrays(block, X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first)


def _transposed(block: Any) -> Any:
    if not sp.issparse(block):
        return block.T
    return _with_arrays(sp.csc_array(block.shape[::-1], dtype=block.dtype), block.data, block.indices, block.indptr)


def _with_arrays(matrix: Any, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    """``matrix`` made of these arrays; the constructor would copy arrays that are small parts of larger ones."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix
