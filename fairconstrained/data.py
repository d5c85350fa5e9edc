"""`FairData`: the validated, immutable training data, and the border between numpy and torch."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any
from zlib import crc32

import numpy as np
import scipy.sparse as sp
import torch

from fairconstrained.cells import cell_sums
from fairconstrained.features import divided, kept, rows_of
from fairconstrained.groups import Strata, Unions
from fairconstrained.tables.table import rows_in_memory

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
        Names of the cells in messages.
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

    def largest_shares(self) -> np.ndarray:
        """Share of its cell that the heaviest row stands for, 1 in an empty one; ndarray of shape (n_cells,)."""
        weights = self.weights.numpy()
        return np.array([weights[rows].max() if rows.stop > rows.start else 1.0 for rows in self.slices])


@dataclass(frozen=True, eq=False)
class FairData:
    """Training data whose rows are ordered by group and, within a group, by target.

    So the rows of a group are one contiguous block, and those of a group and label are one too.
    Scores, targets and weights follow this internal order; ``order`` leads back to the rows of the caller.
    Slices of a contiguous vector are views, so no term ever gathers or copies the rows of a group.

    Attributes
    ----------
    X : ndarray, csr_array, Table or Tensor of shape (n_samples, n_features)
        Features; a Tensor where a model has placed them on its device.
    y : Tensor of shape (n_samples,)
        Targets: -1 / +1 for classification, real values for regression.
    weights : Tensor of shape (n_samples,)
        Positive sample weights, normalised to sum to one.
    labels : tuple
        The value of the sensitive features that each group stands for.
    order : ndarray of shape (n_samples,)
        Row ``i`` here is row ``order[i]`` of the arrays given to `from_arrays`.
    codes : ndarray of shape (n_samples,)
        Group of every row, ascending.
    n_given : int
        Number of the rows given to `from_arrays`, those without weight as well; that of all where these are a part.
    unions : Unions, optional
        Overlapping groups that these are the parts of. Mini-batches have none: what is bound on data knows them.
    clusters : ndarray of shape (n_samples,), optional
        Numbers of what rows belong to, such as the queries of pairs; mini-batches then have whole clusters.
    n_ignored : int
        The last so many groups take part in the objective, but no constraint compares them.
    strata : Strata, optional
        Strata of the rows, for constraints that compare groups within them.
    is_sample : bool
        Whether these are a mini-batch to train on, for models that differ in training.
    label_names : dict from float to str, optional
        The classes of the user by target, for messages.
    """

    X: Any
    y: torch.Tensor
    weights: torch.Tensor
    labels: tuple[Hashable, ...]
    order: np.ndarray
    codes: np.ndarray
    n_given: int
    unions: Unions | None = None
    clusters: np.ndarray | None = None
    n_ignored: int = 0
    strata: Strata | None = None
    is_sample: bool = False
    label_names: Mapping[float, str] | None = None

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: np.ndarray,
        codes: np.ndarray,
        labels: tuple[Hashable, ...],
        sample_weight: np.ndarray | None = None,
        unions: Unions | None = None,
        clusters: np.ndarray | None = None,
        n_ignored: int = 0,
        strata: Strata | None = None,
        label_names: Mapping[float, str] | None = None,
    ) -> FairData:
        """Order validated arrays by group and target.

        Parameters
        ----------
        X : ndarray, CSR matrix or Table of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,)
        codes : ndarray of shape (n_samples,)
            Group of every row, in ``0 .. len(labels) - 1``; every group has at least one row, unless there are unions.
        sample_weight : ndarray of shape (n_samples,), optional
            Non-negative. Rows of weight zero are dropped: they are as if they had never been given.
        labels, unions, clusters, n_ignored, strata, label_names
            Attributes of `FairData` of the same names. All but ``labels`` are optional; ``clusters`` and ``strata`` are
            in the order of the given rows.
        """
        weights = np.ones(y.shape[0]) if sample_weight is None else sample_weight
        order = np.lexsort((y, codes))
        order = order[weights[order] > 0]
        if order.size < y.shape[0] or (np.diff(order) < 0).any():
            X = X[order]
        ordered = weights[order]
        return cls(
            X=X,
            y=torch.from_numpy(np.ascontiguousarray(y[order], dtype=np.float64)),
            weights=torch.from_numpy(ordered / ordered.sum()),
            labels=labels,
            order=order,
            codes=codes[order],
            n_given=y.shape[0],
            unions=unions,
            clusters=None if clusters is None else clusters[order],
            n_ignored=n_ignored,
            strata=None if strata is None else strata.among(order),
            label_names=label_names,
        )

    def label_name(self, target: float) -> str:
        """Name of a target in messages: the class of the user where it is known, and otherwise the number."""
        return (self.label_names or {}).get(target, f"{target:+g}")

    @property
    def compared(self) -> FairData:
        """Rows of the groups that constraints compare, which come first; the data themselves if all are compared."""
        return self._compared if self.n_ignored else self  # a reference of the data to themselves would keep them alive

    @cached_property
    def _compared(self) -> FairData:
        n_groups = self.n_groups - self.n_ignored
        rows = slice(0, int(np.searchsorted(self.codes, n_groups)))
        weights = self.weights[rows]
        found = self._of_rows(rows, rows_of(self.X, rows), weights / weights.sum())
        return replace(found, labels=self.labels[:n_groups], n_ignored=0)

    def _of_rows(self, rows: slice | np.ndarray, X: Any, weights: torch.Tensor) -> FairData:
        """Some rows as data, with these features and weights."""
        return replace(
            self,
            X=X,
            y=self.y[rows],
            weights=weights,
            order=self.order[rows],
            codes=self.codes[rows],
            clusters=None if self.clusters is None else self.clusters[rows],
            strata=None if self.strata is None else self.strata.at(rows),
        )

    @property
    def n_samples(self) -> int:
        """Number of rows with positive weight."""
        return self.y.shape[0]

    def check_mask(self, n_entries: int, of: str) -> None:
        """Raise ValueError if a mask has another number of entries than there were rows.

        Parameters
        ----------
        n_entries : int
        of : str
            Beginning of the message, such as "among has".
        """
        if n_entries != self.n_given:
            raise ValueError(
                f"{of} {n_entries} entries, but {self.n_given} rows were given. A mask has an entry for every row that "
                "was passed to fit: it does not go with other rows, nor with parts of these, such as the folds of a "
                "search or of a path. Give each fit its own mask, or name the rows by a label or a group."
            )

    @property
    def rows_of_sample(self) -> int:
        """Number of successive rows that make up a sample; parts of the data have whole samples."""
        return 1

    @property
    def n_features(self) -> int:
        """Number of columns of X, or of the numbers in a row of another shape."""
        return int(np.prod(self.X.shape[1:]))

    @cached_property
    def without_features(self) -> FairData:
        """Rows without features, for all that is computed from scores: choosing some of them copies little."""
        return replace(self, X=np.empty((self.n_samples, 0)))

    @property
    def row_shape(self) -> int | tuple[int, ...]:
        """Number of columns of X; the shape of a row where rows are no vectors."""
        return self.n_features if self.X.ndim == 2 else tuple(self.X.shape[1:])

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """Places of the rows of every group."""
        ends = np.searchsorted(self.codes, np.arange(self.n_groups + 1)).tolist()
        return tuple(slice(a, b) for a, b in pairwise(ends))

    @cached_property
    def blocks(self) -> tuple[Any, ...]:
        """The feature rows of every group; CSR blocks share the memory of ``X``."""
        return tuple(rows_of(self.X, rows) for rows in self.slices)

    @cached_property
    def fingerprint(self) -> int:
        """Hash of all targets, weights and groups, and of a thousand rows."""
        X = rows_in_memory(self.X[:: max(1, self.n_samples // 1000)])
        parts = [self.y.numpy(), self.weights.numpy(), self.codes]
        if sp.issparse(X):
            parts += [X.data, X.indices, X.indptr]
        else:
            parts += [np.asarray(X.cpu() if isinstance(X, torch.Tensor) else X, dtype=float)]
        return reduce(lambda known, part: crc32(part.tobytes(), known), parts, 0)

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
        return self._cells(tuple(spans), tuple(f"{label}, y={self.label_name(target)}" for label in self.labels))

    def _cells(self, slices: tuple[slice, ...], labels: tuple[str, ...]) -> Cells:
        weights = torch.zeros_like(self.weights)
        for rows in slices:
            if rows.stop > rows.start:
                weights[rows] = self.weights[rows] / self.weights[rows].sum()
        return Cells(slices, weights, labels)

    @property
    def group_weights(self) -> torch.Tensor:
        """Sample weights normalised to sum to one *within every group*; Tensor of shape (n_samples,)."""
        return self.groups.weights

    def kept(self, column: np.ndarray) -> Any:
        """Return a column for many sums over rows, such as those of `LinearModel.sums`; it must not change any more."""
        return kept(self.X, column)

    def divided(self, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        """Yield the results of calls that need no features, which the processes that hold the rows divide."""
        return divided(self.X, calls)

    def sums(self, values: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted sums of the rows' values in every group, or its weight; ndarray of shape (n_groups,)."""
        weights = self.weights.numpy()
        return cell_sums(self.codes, self.n_groups, weights if values is None else weights * values)

    def counts(self) -> dict[Hashable, int]:
        """Rows per group, for messages."""
        return {label: rows.stop - rows.start for label, rows in zip(self.labels, self.slices, strict=True)}

    def thinned(self, rng: np.random.Generator, size: int) -> FairData:
        """Return about ``size`` rows that represent all of them: every k-th row of every group.

        Rows are ordered by target, so the shares of the targets are kept. A group that is small gets more rows than
        its share, up to all it has; the weights make up for it. With more groups than half the ``size``, it is every
        so many-th row of all. For mini-batches see `fairconstrained.sampling`.
        """
        many = 2 * self.n_groups > size
        rows, weights = [], []
        for part in (slice(0, self.n_samples),) if many else self.slices:
            cumulative = torch.cumsum(self.weights[part], 0).numpy()
            if not cumulative.size:  # a group without rows
                continue
            share = float(cumulative[-1])
            count = min(max(round(share * size), size // (2 * self.n_groups)), cumulative.size)
            at = (rng.random() + np.arange(count)) / count * share
            drawn = np.searchsorted(cumulative, at, side="right").clip(max=cumulative.size - 1)
            rows.append(drawn + part.start)
            weights.append(np.full(count, share / count))
        return self.at(np.concatenate(rows), torch.from_numpy(np.concatenate(weights)))

    def at(self, rows: np.ndarray, weights: torch.Tensor | None = None) -> FairData:
        """Return some rows as data; a group may have none of them.

        Parameters
        ----------
        rows : ndarray of shape (size,)
            Numbers in the internal order, ascending; a row may come several times.
        weights : Tensor of shape (size,), optional
            Weights of the rows; None: all alike.
        """
        weights = _alike(rows.size) if weights is None else weights
        return self._of_rows(rows, self.X[rows], weights)

    def part(self, rows: np.ndarray) -> FairData:
        """Return some rows with their weights, see `at`."""
        weights = self.weights[torch.from_numpy(rows)]
        return self.at(rows, weights / weights.sum())

    def folds(self, n_folds: int, units: np.ndarray | None = None) -> np.ndarray:
        """Divide the rows into folds with the same share of every group and target, the same in every call.

        Parameters
        ----------
        n_folds : int
        units : ndarray of shape (n_samples,), optional
            Rows with the same number are in one fold, with others like the first of them. None: ``clusters``, if there
            are any.

        Returns
        -------
        folds : ndarray of int, of shape (n_samples,)
            Number of the fold of every row.
        """
        units = self.clusters if units is None else units
        if units is None:
            return _dealt_out(self._dealt, n_folds)
        _, first, place = np.unique(units, return_index=True, return_inverse=True)
        return _dealt_out(self._dealing(first), n_folds)[place]

    @cached_property
    def _dealt(self) -> np.ndarray:
        """Numbers of all rows in the order in which `folds` deals them out; a path asks for folds again and again."""
        return self._dealing(np.arange(self.n_samples))

    def _dealing(self, rows: np.ndarray) -> np.ndarray:
        """Places of some rows in the order in which they are dealt out: by group and target, and by chance therein."""
        shuffled = np.argsort(np.random.default_rng(0).random(rows.size))
        numbers = rows[shuffled]
        return shuffled[np.lexsort((self.y.numpy()[numbers], self.codes[numbers]))]

    def batches(
        self, rows: np.ndarray, weights: torch.Tensor | None = None, codes: np.ndarray | None = None
    ) -> Iterator[FairData]:
        """Return the data `at` every row of a table, faster than one by one: X is gathered once for all.

        Rows of a few sparse features come dense, since products with so small a matrix take no time but that of the
        call.

        Parameters
        ----------
        rows : ndarray of shape (n_batches, size)
            Numbers in the internal order, ascending in every batch.
        weights : Tensor of shape (n_batches, size) or (size,), optional
            The latter where all batches have the same. None: all count alike.
        codes : ndarray of shape (size,), optional
            Groups, where they are known to be the same in all batches; these then share the very array.
        """
        n_batches, size = rows.shape
        X = self.X[rows.ravel()]
        if sp.issparse(X) and X.shape[1] <= _FEW_FEATURES:
            X = X.toarray()
        weights = _alike(size) if weights is None else weights
        every_weights = [weights] * n_batches if weights.ndim == 1 else weights.unbind()
        every_codes = self.codes[rows] if codes is None else [codes] * n_batches
        every_y, labels = self.y[torch.from_numpy(rows)].unbind(), self.labels
        of_batches = zip(every_y, every_weights, self.order[rows], every_codes, strict=True)
        for k, (y, shares, order, groups) in enumerate(of_batches):
            part = rows_of(X, slice(k * size, (k + 1) * size))
            strata = None if self.strata is None else self.strata.at(rows[k])
            own = part, y, shares, labels, order, groups, self.n_given
            yield FairData(*own, n_ignored=self.n_ignored, strata=strata, is_sample=True)


def rows_within(rows: Rows, part: slice) -> tuple[Rows, Rows]:
    """Return the rows that stand in a part, and their numbers counted from its beginning."""
    if isinstance(rows, slice):
        start, stop = max(rows.start, part.start), max(min(rows.stop, part.stop), part.start)
        start = min(start, stop)
        return slice(start, stop), slice(start - part.start, stop - part.start)
    inside = rows[slice(*np.searchsorted(rows, [part.start, part.stop]))]
    return inside, inside - part.start


def _alike(size: int) -> torch.Tensor:
    return torch.full((size,), 1 / size, dtype=torch.float64)


def _dealt_out(order: np.ndarray, n_folds: int) -> np.ndarray:
    """Numbers of the folds of what is dealt out to one fold after the other in that order."""
    folds = np.empty(order.size, dtype=int)
    folds[order] = np.arange(order.size) % n_folds
    return folds
