"""Rows of a mini-batch: natural labels and groups, in any order, as terms see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from fairconstrained.checks.messages import shortened
from fairconstrained.data import FairData

__all__ = ["Known", "Places", "RowCoder", "Rows", "numbers_of", "vector_of"]


class Rows(NamedTuple):
    """Rows of a mini-batch in the order of the caller."""

    #: Scores in double precision, without a graph.
    scores: np.ndarray  # of shape (n_rows,)
    #: Targets in the package's form: -1 and 1 for classes.
    targets: np.ndarray  # of shape (n_rows,)
    #: Group of every row, from 0 on.
    codes: np.ndarray  # of shape (n_rows,)
    #: Weights that need not sum to one; None where all rows count alike.
    weights: np.ndarray | None  # of shape (n_rows,)


class Places(NamedTuple):
    """Places of the rows of a mini-batch when they are ordered by group and target."""

    #: Row i in the order of the terms is row ``order[i]`` of the caller; None where it is row i.
    order: np.ndarray | None  # of shape (n_ordered,)
    #: Number of rows of every group, those with a target of at most 0 and then the others.
    counts: np.ndarray  # of shape (2 * n_groups,)


class Known(dict[Any, Any]):
    """Results for mini-batches that came before, the last few of them.

    A `StratifiedBatchSampler` sorts the rows and draws few different numbers of each group, so that most of its
    mini-batches have the labels and groups of one that came before.
    """

    #: Results that are kept, and the number of rows up to which they are.
    LIMIT, ROWS = 64, 4096

    def found(self, key: Any, n_rows: int, find: Callable[[], Any]) -> Any:
        """Return what is known by a key, or find it."""
        result = self.get(key)
        if result is None:
            result = find()
            if n_rows <= self.ROWS:
                if len(self) == self.LIMIT:
                    self.clear()
                self[key] = result
        return result


class RowCoder:
    """The classes and groups of the training rows, by which other rows are read.

    Parameters
    ----------
    y : array-like or Tensor of shape (n_samples,)
        Classes 0 and 1 (or booleans, or -1 and 1), or real targets.
    groups : array-like or Tensor of shape (n_samples,)
        Integers.
    sample_weight : array-like or Tensor of shape (n_samples,), optional
        Non-negative weights.

    Attributes
    ----------
    data : FairData
        The training rows, without features and without those of weight zero.
    n_samples : int
        Number of the training rows.
    has_classes : bool
        Whether the targets are two classes.

    Raises
    ------
    ValueError
        If lengths differ, there are no rows, groups are no integers, or targets or weights are not finite.
    """

    def __init__(self, y: Any, groups: Any, sample_weight: Any = None) -> None:
        targets, labels = vector_of(y, "y"), vector_of(groups, "groups")
        if labels.dtype.kind not in "iub":
            raise ValueError(
                f"groups must be integers, got {labels.dtype}; np.unique(groups, return_inverse=True)[1] are integers "
                "for groups of any kind."
            )
        if not targets.size or targets.shape != labels.shape:
            raise ValueError(
                f"y and groups must have the same number of rows, at least one; got {targets.size} and {labels.size}."
            )
        values = set(np.unique(targets).tolist())
        self._lowest = 0.0 if values <= {0.0, 1.0} else -1.0
        self.has_classes = values <= {0.0, 1.0} or values <= {-1.0, 1.0}
        self._labels = np.unique(labels)
        self._is_coded = bool((self._labels == np.arange(self._labels.size)).all())
        names = tuple(self._labels.tolist())
        weights = None if sample_weight is None else _weights(sample_weight, targets.size)
        self._known = Known()
        codes, self.n_samples = self._codes(labels), targets.size
        self.data = FairData.from_arrays(np.empty((targets.size, 0)), self._targets(targets), codes, names, weights)

    def rows(self, scores: Tensor, y: Any, groups: Any, sample_weight: Any = None) -> Rows:
        """Check a mini-batch and return its rows; raises ValueError for unknown groups and classes."""
        targets, labels = _columns(scores, y, groups)
        weights = None if sample_weight is None else _weights(sample_weight, targets.size)
        return Rows(numbers_of(scores), self._targets(targets), self._codes(labels), weights)

    def places(self, scores: Tensor, y: Any, groups: Any) -> Places:
        """Check a mini-batch of rows that count alike, and return their places; raises ValueError as `rows`."""
        targets, labels = _columns(scores, y, groups)
        if targets.dtype.hasobject or labels.dtype.hasobject:  # whose bytes are no values
            return self.places_of(self._targets(targets), self._codes(labels))
        key = targets.dtype, targets.tobytes(), labels.dtype, labels.tobytes()
        return self._known.found(key, targets.size, lambda: self.places_of(self._targets(targets), self._codes(labels)))

    def places_of(self, targets: np.ndarray, codes: np.ndarray, weights: np.ndarray | None = None) -> Places:
        """Order rows by group and target, without those of weight zero; arguments as in `Rows`."""
        cells = 2 * codes + (targets > 0)
        order = cells.argsort(kind="stable") if self.has_classes else np.lexsort((targets, codes))
        if weights is not None:
            order = order[weights[order] > 0]
        counts = np.bincount(cells[order], minlength=2 * self._labels.size)
        return Places(None if np.array_equal(order, np.arange(cells.size)) else order, counts)

    def data_of(self, rows: Rows, order: np.ndarray | None) -> FairData:
        """Return the rows of a mini-batch as terms see them, without features."""
        _, targets, codes, weights = rows
        order = np.arange(targets.size) if order is None else order
        shares = np.full(order.size, 1 / order.size) if weights is None else weights[order] / weights.sum()
        return self._data(targets[order], codes[order], shares, order)

    def data_of_counts(self, counts: np.ndarray) -> FairData:
        """Return ordered rows of two classes that count alike, from their numbers in every group and class."""
        n_rows = int(counts.sum())
        cells = np.repeat(np.arange(counts.size), counts)
        return self._data(2.0 * (cells % 2) - 1.0, cells // 2, np.full(n_rows, 1 / n_rows), np.arange(n_rows))

    def _data(self, targets: np.ndarray, codes: np.ndarray, shares: np.ndarray, order: np.ndarray) -> FairData:
        return FairData(
            X=np.empty((order.size, 0)),
            y=torch.from_numpy(targets),
            weights=torch.from_numpy(shares),
            labels=self.data.labels,
            order=order,
            codes=codes,
            n_given=self.data.n_given,
        )

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Targets in the package's form; raises ValueError for other classes than those of the training rows."""
        if not self.has_classes:
            if not np.isfinite(y).all():
                raise ValueError("y holds values that are not finite.")
            return y.astype(np.float64)
        targets = y * 2.0 - 1.0 if self._lowest == 0 else y.astype(np.float64)
        if np.count_nonzero(targets * targets == 1.0) < targets.size:
            raise ValueError(
                f"y must be {self._lowest:g} or 1, as in the rows that were bound; got {shortened(np.unique(y))}."
            )
        return targets

    def _codes(self, groups: np.ndarray) -> np.ndarray:
        """Group of every row from 0 on; raises ValueError for a group that the training rows do not have."""
        n_groups = self._labels.size
        if self._is_coded:
            codes = groups.astype(np.int64, copy=False)
            known = bool(codes.min() >= 0 and codes.max() < n_groups)
        else:
            codes = np.searchsorted(self._labels, groups).clip(max=n_groups - 1)
            known = bool((self._labels[codes] == groups).all())
        if not known:
            unknown = np.setdiff1d(groups, self._labels)
            raise ValueError(
                f"groups {shortened(unknown)} are not among those of the rows that were bound: "
                f"{shortened(self._labels)}."
            )
        return codes


def numbers_of(scores: Tensor) -> np.ndarray:
    """Return a copy of the scores in double precision, without a graph; ndarray of shape (n_rows,)."""
    known = scores.float() if scores.dtype == torch.bfloat16 else scores  # which NumPy does not have
    return known.numpy(force=True).astype(np.float64).reshape(-1)


def _columns(scores: Tensor, y: Any, groups: Any) -> tuple[np.ndarray, np.ndarray]:
    """Targets and groups as arrays; raises ValueError unless there is one for every score, and at least one."""
    targets, labels = vector_of(y, "y"), vector_of(groups, "groups")
    if not scores.numel() == targets.size == labels.size:
        raise ValueError(
            "scores, y and groups must have an entry for every row, and there is one score for a row; got "
            f"{tuple(scores.shape)}, {targets.shape} and {labels.shape}."
        )
    if not targets.size:
        raise ValueError("the mini-batch has no rows.")
    return targets, labels


def vector_of(values: Any, name: str) -> np.ndarray:
    """Values as an array of shape (n,); raises ValueError for tables."""
    array = values.numpy(force=True) if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise ValueError(f"{name} must have one entry for every row, got shape {array.shape}.")
    return array


def _weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights of rows; raises ValueError for negative ones, or if all are zero."""
    weights = vector_of(sample_weight, "sample_weight").astype(np.float64)
    if weights.size != n_rows or not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise ValueError(
            "sample_weight must hold a finite number of at least 0 for every row, and not zeros alone; got "
            f"{weights.size} of them, {shortened(np.unique(weights)[:3])} and so on, for {n_rows} rows."
        )
    return weights
