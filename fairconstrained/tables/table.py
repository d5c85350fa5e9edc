"""`Table`: features whose rows are not in the memory of this process, and what computes with them where they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from operator import add
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp

from fairconstrained.features import (
    beside,
    divided,
    extremes,
    extremes_by_group,
    group_sums,
    kept,
    map_rows,
    product,
    products_by_code,
    products_by_group,
    rows_of,
    squares,
    sums_of_products,
    weighted_gram,
)

__all__ = ["KeptColumn", "Parts", "Table", "rows_in_memory", "taken_rows"]

#: Share of all rows up to which some of them are few enough to be brought into the memory of this process.
_SMALL = 0.25


class Parts(ABC):
    """Rows in several parts, which lie in files or in other processes, one part after the other.

    Attributes
    ----------
    lengths : tuple of int
        Number of rows of every part.
    n_features : int
    dtype : numpy.dtype
        Type of the numbers.
    names : tuple of str or None
        Names of the features, if they have any.
    index : pandas.Index or None
        Labels of the rows, if they have any.
    most_gathered : int
        Numbers up to which some rows are brought into the memory of this process, where they are a small share of all;
        2**24 of them take 128 MB in float64.
    """

    most_gathered: ClassVar[int] = 2**24

    lengths: tuple[int, ...]
    n_features: int
    dtype: np.dtype
    names: tuple[str, ...] | None = None
    index: pd.Index | None = None

    @abstractmethod
    def results(
        self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]], taken: Sequence[np.ndarray | None]
    ) -> Iterator[Any]:
        """Call a function where the rows are, on those of one part after the other.

        Parameters
        ----------
        function : callable
            Takes features, an ndarray or a CSR array, and the columns. It can be pickled.
        columns : sequence of tuple
            Further arguments for every part.
        taken : sequence of ndarray or None
            Numbers of the rows of every part that the function takes, ascending; None for all of them. The object is
            the same whenever the rows are, so that they may be kept.

        Yields
        ------
        result : object
            Result of the function, by part. Parts without rows are left out.
        """

    def kept(self, part: int, values: np.ndarray) -> Any:
        """Return an object for columns of `results` that stands for values in many calls; here the values themselves.

        Parameters
        ----------
        part : int
        values : ndarray with an entry for every row
            Values for that part. Where the rows are elsewhere, they are sent there once.
        """
        return values

    def beside(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Begin a call in another process that can ask for results, and return what waits for its result.

        Here there is none, so the call itself is returned.
        """
        return call

    def divided(self, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        """Yield the results of calls, which may be made where the rows are; here each is made when it is asked for."""
        return (call() for call in calls)

    def with_rows(self, taken: Sequence[np.ndarray | None]) -> list[int]:
        """Return the numbers of the parts that have rows of a choice, given as to `results`."""
        pairs = enumerate(zip(self.lengths, taken, strict=True))
        return [number for number, (length, rows) in pairs if (length if rows is None else len(rows))]


class KeptColumn:
    """Column of the rows of a table that is in use again and again, and stays where the rows are as long as it is here.

    Parameters
    ----------
    values : ndarray with n_samples rows
    pieces : list of object
        Results of `Parts.kept`, one for every part.
    """

    def __init__(self, values: np.ndarray, pieces: list[Any]) -> None:
        self._values, self.pieces = values, pieces

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self._values[rows]


class Table:
    """Rows of features in parts that are not in memory, all of them or some, in any order.

    Estimators take it as X: everything that they compute with features is a function of the rows, or a sum over them,
    and is computed where the rows are. Scores, targets, weights and groups stay in the memory of this process.

    Parameters
    ----------
    parts : Parts
    rows : ndarray of int, of shape (n_samples,), optional
        Numbers of the rows, counted over all parts. None: all of them as they are stored.
    """

    ndim = 2

    def __init__(self, parts: Parts, rows: np.ndarray | None = None) -> None:
        self._parts, self._rows = parts, rows
        ends = np.cumsum((0, *parts.lengths))
        self.shape = (int(ends[-1]) if rows is None else len(rows), parts.n_features)
        self._taken: list[np.ndarray | None] = [None] * len(parts.lengths)
        self._places: np.ndarray | None = None
        self._codes: dict[tuple[tuple[int, int], ...], KeptColumn] = {}
        if rows is not None:
            self._places = np.argsort(rows, kind="stable")
            stored = rows[self._places]
            bounds = np.searchsorted(stored, ends)
            spans = list(zip(ends[:-1], parts.lengths, bounds[:-1], bounds[1:], strict=True))
            self._taken = [_unless_all(stored[first:last] - begin, length) for begin, length, first, last in spans]
            ends = bounds
        self._bounds = [(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def dtype(self) -> np.dtype:
        """Type of the numbers."""
        return self._parts.dtype

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the features, if they have any."""
        return self._parts.names

    @property
    def index(self) -> pd.Index | None:
        """Labels of the rows, if they have any."""
        labels = self._parts.index
        return labels if labels is None or self._rows is None else labels[self._rows]

    @property
    def size(self) -> int:
        """Number of rows times features."""
        return self.shape[0] * self.shape[1]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_codes": {}}  # which are kept for this process

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            f"a table of {self.shape[0]:,} rows that are not in memory cannot become an array by itself. Estimators "
            "with linear scores or networks take it as it is. For another model, fit it where its rows are, and then a "
            "head on its scores: FairHeadClassifier(model, cv='prefit'). Or bring the rows into memory: gathered()."
        )

    def map_rows(self, function: Callable[..., Any], *columns: Any) -> np.ndarray:
        """Return a function of every row.

        Parameters
        ----------
        function : callable
            Takes features of some rows, and those rows of the columns; returns an ndarray with an entry for every row.
        *columns : ndarray or sparse array with n_samples rows, or KeptColumn

        Returns
        -------
        results : ndarray of shape (n_samples, ...)
        """
        results = None
        for (first, last), part in self._results(partial(_mapped, function=function), columns):
            if results is None:
                results = np.empty((len(self), *part.shape[1:]), dtype=part.dtype)
            results[slice(first, last) if self._places is None else self._places[first:last]] = part
        return function(self._no_rows(), *(column[:0] for column in columns)) if results is None else results

    def reduce_rows(self, function: Callable[..., Any], combine: Callable[[Any, Any], Any], *columns: Any) -> Any:
        """Return what the results for all parts make together; arguments as for `map_rows`.

        Parameters
        ----------
        function : callable
            Takes features of some rows, and those rows of the columns.
        combine : callable
            Makes one result of two.
        *columns : ndarray or sparse array with n_samples rows, or KeptColumn
        """
        if not len(self):
            return function(self._no_rows(), *(column[:0] for column in columns))
        of_part = partial(_reduced, function=function, combine=combine)
        return reduce(combine, (result for _, result in self._results(of_part, columns)))

    def kept(self, column: np.ndarray) -> KeptColumn:
        """Return a column that is used again and again, and has been put in the order of the stored rows."""
        pieces = enumerate(self._by_part(column))
        return KeptColumn(column, [self._parts.kept(number, values) for number, values in pieces])

    def beside(self, call: Callable[[], Any]) -> Callable[[], Any]:
        """Begin a call in another process, if one can, and return what waits for its result."""
        return self._parts.beside(call)

    def divided(self, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
        """Yield the results of calls, which the processes that hold the rows divide among themselves."""
        return self._parts.divided(calls)

    def codes(self, groups: Sequence[slice]) -> KeptColumn:
        """Return the number of the group of every row, in as few bytes as there can be."""
        ends = tuple((rows.start, rows.stop) for rows in groups)
        if ends not in self._codes:
            codes = np.empty(len(self), dtype=np.min_scalar_type(len(groups)))
            for code, rows in enumerate(groups):
                codes[rows] = code
            self._codes[ends] = self.kept(codes)
        return self._codes[ends]

    def __getitem__(self, rows: slice | np.ndarray) -> Any:
        """Some rows: as an array in memory if they are few, such as a mini-batch, and as a table otherwise."""
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        elif rows.dtype == bool:
            rows = np.flatnonzero(rows)
        table = self.taken(rows)
        few = table.size <= self._parts.most_gathered and len(table) <= _SMALL * sum(self._parts.lengths)
        return table.gathered() if few else table

    def taken(self, rows: np.ndarray) -> Table:
        """Return some rows, by their numbers, as a table."""
        return Table(self._parts, rows if self._rows is None else self._rows[rows])

    def without_rows(self) -> Any:
        """Return no rows of the same features: a DataFrame if they have names, and otherwise an ndarray."""
        return pd.DataFrame(columns=self.names) if self.names else self._no_rows()

    def gathered(self) -> Any:
        """Return all rows in memory: an ndarray, or a CSR array."""
        found = [part for _, part in self._results(rows_in_memory, ())]
        if not found:
            return self._no_rows()
        rows = sp.vstack(found, format="csr") if any(map(sp.issparse, found)) else np.concatenate(found)
        if self._places is None:
            return rows
        order = np.empty(len(self), dtype=np.intp)
        order[self._places] = np.arange(len(self))
        return rows[order]

    def _results(self, function: Callable[..., Any], columns: Sequence[Any]) -> Iterator[tuple[tuple[int, int], Any]]:
        """Yield the result of every part that has rows, and where they stand among the stored ones of this table."""
        pieces = [column.pieces if isinstance(column, KeptColumn) else self._by_part(column) for column in columns]
        by_part = [tuple(each[part] for each in pieces) for part in range(len(self._bounds))]
        present = [(first, last) for first, last in self._bounds if last > first]
        yield from zip(present, self._parts.results(function, by_part, self._taken), strict=True)

    def _by_part(self, column: Any) -> list[Any]:
        """Values of a column for the rows of every part."""
        stored = column.tocsr() if sp.issparse(column) else column
        stored = stored if self._places is None else stored[self._places]
        return [stored[first:last] for first, last in self._bounds]

    def _no_rows(self) -> np.ndarray:
        return np.empty((0, self.shape[1]), dtype=self.dtype)


def taken_rows(X: Any, rows: np.ndarray | None) -> Any:
    """Return the rows of a part that are asked for, all for None; for implementations of `Parts.results`."""
    return X if rows is None else X[rows]


def rows_in_memory(X: Any) -> Any:
    """Return features as an ndarray or a CSR array, if they are a `Table`; others as they are."""
    return X.gathered() if isinstance(X, Table) else X


def _unless_all(rows: np.ndarray, length: int) -> np.ndarray | None:
    """None in place of all rows of a part, each once. The numbers, which may be sent, are short where they fit."""
    if rows.size == length and (np.diff(rows) == 1).all():
        return None
    return rows.astype(np.int32) if length <= np.iinfo(np.int32).max else rows


def _mapped(X: Any, *columns: Any, function: Callable[..., Any]) -> Any:
    """Function of the rows of a part, which may itself be a table."""
    return map_rows(X, function, *columns)


def _reduced(X: Any, *columns: Any, function: Callable[..., Any], combine: Callable[[Any, Any], Any]) -> Any:
    """Result for a part, which may itself be a table."""
    return X.reduce_rows(function, combine, *columns) if isinstance(X, Table) else function(X, *columns)


def _sums_of_codes(X: Any, codes: np.ndarray, *columns: Any, functions: Sequence[Callable[..., Any]]) -> np.ndarray:
    """A sum over the rows of every group; ndarray of shape (n_groups, ...)."""
    members = [np.flatnonzero(codes == code) for code in range(len(functions))]
    parts = zip(functions, members, strict=True)
    return np.stack([function(X[rows], *(column[rows] for column in columns)) for function, rows in parts])


def _of_codes(X: Any, codes: np.ndarray, n_groups: int) -> np.ndarray:
    """Least and largest values of the features in every group; ndarray of shape (2, n_groups, n_features)."""
    table = np.stack([np.full((n_groups, X.shape[1]), np.inf), np.full((n_groups, X.shape[1]), -np.inf)])
    for code in np.unique(codes):
        table[:, code] = extremes(X[codes == code])
    return table


def _joined(one: Any, other: Any) -> np.ndarray:
    """Least and largest values of the rows of both."""
    return np.stack([np.minimum(one[0], other[0]), np.maximum(one[1], other[1])])


@rows_of.register
def _rows_of(X: Table, rows: slice) -> Any:
    return X[rows]


@map_rows.register
def _map_rows(X: Table, function: Callable[..., Any], *columns: Any) -> np.ndarray:
    return X.map_rows(function, *columns)


@product.register
def _product(X: Table, columns: np.ndarray) -> np.ndarray:
    return X.map_rows(partial(product, columns=columns))


@sums_of_products.register
def _sums_of_products(X: Table, columns: Any) -> Any:
    return X.reduce_rows(sums_of_products, add, columns)


def _sums_about(
    X: Table, weights: np.ndarray, centre: np.ndarray | None = None, *, function: Callable[..., Any]
) -> np.ndarray:
    return X.reduce_rows(partial(function, centre=centre), add, weights)


for _function in (squares, weighted_gram):
    _function.register(Table, partial(_sums_about, function=_function))


@extremes.register
def _extremes(X: Table) -> tuple[np.ndarray, np.ndarray]:
    low, high = X.reduce_rows(extremes, _joined)
    return low, high


@extremes_by_group.register
def _extremes_by_group(X: Table, groups: Sequence[slice]) -> tuple[np.ndarray, np.ndarray]:
    low, high = X.reduce_rows(partial(_of_codes, n_groups=len(groups)), _joined, X.codes(groups))
    return low, high


@products_by_group.register
def _products_by_group(X: Table, columns: np.ndarray, groups: Sequence[slice]) -> np.ndarray:
    return product(X, columns[0]) if len(groups) == 1 else products_by_code(X, columns, X.codes(groups))


@group_sums.register
def _group_sums(
    X: Table, functions: Sequence[Callable[..., np.ndarray]], groups: Sequence[slice], *columns: Any
) -> np.ndarray:
    if len(groups) == 1:
        return X.reduce_rows(functions[0], add, *columns)[None]
    return X.reduce_rows(partial(_sums_of_codes, functions=functions), add, X.codes(groups), *columns)


@beside.register
def _beside(X: Table, call: Callable[[], Any]) -> Callable[[], Any]:
    return X.beside(call)


@divided.register
def _divided(X: Table, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
    return X.divided(calls)


@kept.register
def _kept(X: Table, column: np.ndarray) -> KeptColumn:
    return X.kept(column)
