"""Products with the rows of X, dense or CSR, whose numbers may be of any type; sums are taken in float64.

Nothing else in the package reads X. So features that are no array in memory, such as those of files or of other
processes, need these few functions alone: `fairconstrained.tables` registers them.

NumPy and SciPy convert the whole of a matrix for a product with float64 numbers. Here the rows are converted block by
block, in the cache, which takes no longer than a product with a float64 matrix: there is more to compute, and less to
read. The numbers that are multiplied are those of a float64 copy, so that scores and sums are as exact. Products in
float32 would be off by 1e-6, and a bound holds for scores of the training rows that a prediction has to give again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce, singledispatch
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp

__all__ = [
    "NUMBERS",
    "as_dense",
    "beside",
    "divided",
    "extremes",
    "extremes_by_group",
    "group_sums",
    "kept",
    "map_rows",
    "narrowed",
    "product",
    "products_by_code",
    "products_by_group",
    "row_blocks",
    "rows_of",
    "squares",
    "sums_by_group",
    "sums_of_products",
    "weighted_gram",
]

#: Types that the numbers of X may have; others become the first.
NUMBERS = tuple(map(np.dtype, ("float64", "float32", "int8", "int16", "int32", "int64", "uint8", "bool")))
#: Numbers of a block; converted, they take 2 MB.
_BLOCK = 2**18
#: The rows of a block are a multiple of it. BLAS sums the rows that are left over of a few at a time in another order,
#: so that scores are the same bit for bit as with all rows at once.
_ROWS = 64


def row_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the rows of X in blocks, and where they are; without a copy, and at least one block.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)

    Yields
    ------
    rows : slice
    block : ndarray or CSR array of shape (n_rows, n_features)
    """
    size = max(_BLOCK * X.shape[0] // max(X.size, 1) // _ROWS, 1) * _ROWS
    for start in range(0, max(X.shape[0], 1), size):
        rows = slice(start, min(start + size, X.shape[0]))
        yield rows, rows_of(X, rows)


def narrowed(X: Any) -> Any:
    """Return a CSR array with places of 32 bits if they fit, so that products read less; anything else as it is.

    Parameters
    ----------
    X : object
        Features of any layout. The numbers of a CSR array are shared with the result, its places are not.
    """
    fits = sp.issparse(X) and max(*X.shape, X.nnz) <= np.iinfo(np.int32).max
    if not fits or X.indices.dtype == np.int32 == X.indptr.dtype:
        return X
    return type(X)((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


@singledispatch
def rows_of(X: Any, rows: slice) -> Any:
    """Return some rows without a copy; slicing a CSR array would copy its values."""
    if not sp.issparse(X):
        return X[rows]
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    block = sp.csr_array((rows.stop - rows.start, X.shape[1]), dtype=X.dtype)
    return _with_arrays(block, X.data[first:last], X.indices[first:last], X.indptr[rows.start : rows.stop + 1] - first)


@singledispatch
def map_rows(X: Any, function: Callable[..., Any], *columns: Any) -> Any:
    """Return a function of every row, computed where the rows are.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    function : callable
        Takes features of some rows, and those rows of the columns; returns an ndarray with an entry for every row.
    *columns : ndarray with n_samples rows
    """
    return function(X, *columns)


@singledispatch
def product(X: Any, columns: np.ndarray) -> np.ndarray:
    """Return ``X @ columns`` for an ndarray of shape (n_features,) or (n_features, n_columns)."""
    parts = [block @ columns for _, block in _converted(X)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@singledispatch
def sums_of_products(X: Any, columns: Any) -> Any:
    """Return ``X.T @ columns`` for an ndarray of shape (n_samples,) or (n_samples, n_columns), or a CSC array."""
    return reduce(add, (_transposed(block) @ columns[rows] for rows, block in _converted(X)))


@singledispatch
def squares(X: Any, weights: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    """Return the weighted sums of the squares of every feature; ndarray of shape (n_features,).

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    weights : ndarray of shape (n_samples,)
    centre : ndarray of shape (n_features,), optional
        Subtracted from the features before they are squared. The difference of two sums of squares would lose all
        digits where the features are far from zero.
    """
    if centre is not None and sp.issparse(X):
        return _squares_about(X, weights, centre)
    return reduce(add, (_transposed(_squared(block, centre)) @ weights[rows] for rows, block in _in_blocks(X)))


@singledispatch
def weighted_gram(X: Any, weights: np.ndarray, centre: np.ndarray | None = None) -> np.ndarray:
    """Return the weighted sums of the products of every two features; ndarray of shape (n_features, n_features).

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    weights : ndarray of shape (n_samples,)
        At least 0: the product of a table with itself takes BLAS half the time.
    centre : ndarray of shape (n_features,), optional
        Subtracted from the features before they are multiplied, as in `squares`.
    """
    if centre is not None and sp.issparse(X):
        return _gram_about(X, weights, centre)
    blocks = ((rows, block if centre is None else block - centre) for rows, block in row_blocks(X))
    return reduce(add, (_gram(_scaled(block, np.sqrt(weights[rows]))) for rows, block in blocks))


@singledispatch
def extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest value of every feature in float64; two ndarrays of shape (n_features,)."""
    ends = [[as_dense(end) for end in (block.min(axis=0), block.max(axis=0))] for _, block in row_blocks(X)]
    table = np.array(ends, dtype=np.float64).reshape(len(ends), 2, -1)
    return table[:, 0].min(axis=0), table[:, 1].max(axis=0)


@singledispatch
def extremes_by_group(X: Any, groups: Sequence[slice]) -> tuple[np.ndarray, np.ndarray]:
    """Return the `extremes` of the rows of every group; two ndarrays of shape (n_groups, n_features).

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    groups : sequence of slice
        Rows of every group, at least one.
    """
    low, high = map(np.stack, zip(*(extremes(rows_of(X, rows)) for rows in groups), strict=True))
    return low, high


@singledispatch
def products_by_group(X: Any, columns: np.ndarray, groups: Sequence[slice]) -> np.ndarray:
    """Return the `product` of the rows of every group with columns of its own, in the order of the rows.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    columns : ndarray of shape (n_groups, n_features) or (n_groups, n_features, n_columns)
    groups : sequence of slice
        Rows of every group; each row has one.
    """
    if len(groups) == 1:
        return product(X, columns[0])
    found = np.empty((X.shape[0], *columns.shape[2:]))
    for rows, own in zip(groups, columns, strict=True):
        found[rows] = product(rows_of(X, rows), own)
    return found


def products_by_code(X: Any, columns: np.ndarray, codes: Any) -> np.ndarray:
    """Return `products_by_group` of rows in any order, whose groups are numbers; codes of shape (n_samples,)."""
    return map_rows(X, partial(_products_by_code, columns=columns), codes)


@singledispatch
def group_sums(
    X: Any, functions: Sequence[Callable[..., np.ndarray]], groups: Sequence[slice], *columns: Any
) -> np.ndarray:
    """Return a sum over the rows of every group, computed where the rows are.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    functions : sequence of callable
        One for every group. Takes features of some of its rows, and those rows of the columns; returns the sum over
        these rows, an ndarray of the same shape for all groups.
    groups : sequence of slice
        Rows of every group; each row has one.
    *columns : ndarray or sparse array with n_samples rows, or what `kept` has returned

    Returns
    -------
    sums : ndarray of shape (n_groups, ...)
    """
    if len(groups) == 1:
        return functions[0](X, *columns)[None]
    parts = zip(functions, groups, strict=True)
    return np.stack([function(rows_of(X, rows), *(column[rows] for column in columns)) for function, rows in parts])


@singledispatch
def divided(X: Any, calls: Iterable[Callable[[], Any]]) -> Iterator[Any]:
    """Yield the results of calls that need no products with X; the processes that hold its rows divide them.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    calls : iterable of callable
        Each takes nothing. They are sent by pickle; where one cannot be pickled, this process makes all of them.

    Yields
    ------
    result : object
        In the order of the calls. Where only one process has rows of X, a call is made when its result is asked for.
    """
    return (call() for call in calls)


@singledispatch
def beside(X: Any, call: Callable[[], Any]) -> Callable[[], Any]:
    """Begin a call that asks for products with X, where another process can lead it; returns what waits for its result.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    call : callable
        Takes nothing. It is sent by pickle; one that cannot be pickled is not begun elsewhere.

    Returns
    -------
    result : callable
        Takes nothing, and returns the result of the call; here, where no other process has X, the call itself.
    """
    return call


@singledispatch
def kept(X: Any, column: np.ndarray) -> Any:
    """Return a column to be given to `group_sums` again and again; elsewhere than in memory, it stays with the rows.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    column : ndarray with n_samples rows
        It must not change afterwards.
    """
    return column


def sums_by_group(
    X: Any, function: Callable[[Any, np.ndarray], np.ndarray], columns: np.ndarray, groups: Sequence[slice]
) -> np.ndarray:
    """Return the same sum over the rows of every group, see `group_sums`.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_samples, n_features)
    function : callable
        `sums_of_products`, `squares` or `weighted_gram`: takes features and columns of the same rows.
    columns : ndarray of shape (n_samples,) or (n_samples, n_columns)
    groups : sequence of slice
        Rows of every group.

    Returns
    -------
    sums : ndarray of shape (n_groups, ...)
    """
    return group_sums(X, [function] * len(groups), groups, columns)


def as_dense(values: Any) -> np.ndarray:
    """Return an array of what may be sparse."""
    return values.toarray() if sp.issparse(values) else values


def _products_by_code(X: Any, codes: np.ndarray, columns: np.ndarray) -> np.ndarray:
    found = np.empty((X.shape[0], *columns.shape[2:]))
    for code in np.unique(codes):
        rows = np.flatnonzero(codes == code)
        found[rows] = product(X[rows], columns[code])
    return found


def _converted(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the rows in float64: all at once where they are that already, otherwise block by block."""
    if X.dtype == np.float64:
        yield slice(0, X.shape[0]), X
        return
    yield from _in_blocks(X)


def _in_blocks(X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the rows in float64, block by block, for what would take a second matrix with all of them at once."""
    for rows, block in row_blocks(X):
        yield rows, block.astype(np.float64, copy=False)


def _transposed(block: Any) -> Any:
    """Return the transpose without a copy."""
    if not sp.issparse(block):
        return block.T
    return _with_arrays(sp.csc_array(block.shape[::-1], dtype=block.dtype), block.data, block.indices, block.indptr)


def _with_arrays(matrix: Any, data: np.ndarray, indices: np.ndarray, indptr: np.ndarray) -> Any:
    """``matrix`` made of these arrays; the constructor would copy arrays that are small parts of larger ones."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def _squares_about(X: Any, weights: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """`squares` of the distances of CSR rows from a centre, without a copy that stores all zeros."""
    found, stored, lacking = (np.zeros(X.shape[1]) for _ in range(3))
    for rows, part in _in_blocks(X):
        block, by_row = _weighted_rows(part, weights[rows])
        distances, present = block.data - centre[block.indices], np.ones(block.nnz)
        table = sp.csr_array(block.shape)
        for sums, values in ((found, distances**2), (stored, present)):
            sums += _transposed(_with_arrays(table, values, block.indices, block.indptr)) @ by_row
        lacking += block.shape[0] - np.bincount(block.indices, minlength=X.shape[1])
    # a feature that is stored everywhere would otherwise have the rounding error of the sum of the weights
    return found + np.where(lacking > 0, np.maximum(weights.sum() - stored, 0.0), 0.0) * centre**2


def _gram_about(X: Any, weights: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """`weighted_gram` of the distances of CSR rows from a centre.

    Only a feature that is stored in every row of a block is moved. Other features vary as much as their distance from
    zero, so that they lose no digits when the centre is subtracted from their sums.
    """
    products, cross = np.zeros((2, centre.size, centre.size))
    for rows, part in _in_blocks(X):
        block, by_row = _weighted_rows(part, weights[rows])
        moved = np.where(np.bincount(block.indices, minlength=centre.size) == block.shape[0], centre, 0.0)
        values = block.data - moved[block.indices]
        block = _with_arrays(sp.csr_array(block.shape), values, block.indices, block.indptr)
        left = centre - moved
        products += _gram(_scaled(block, np.sqrt(by_row)))
        cross += np.outer(left, _transposed(block) @ by_row - by_row.sum() / 2 * left)
    return products - cross - cross.T


def _weighted_rows(block: Any, weights: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return the CSR rows of positive weight, in which no place is stored twice, and their weights."""
    counts = weights > 0
    found = block if counts.all() else block[counts]
    found = found if found.has_canonical_format else found.copy()
    found.sum_duplicates()
    return found, weights[counts]


def _squared(block: Any, centre: np.ndarray | None = None) -> Any:
    if not sp.issparse(block):
        return block**2 if centre is None else (block - centre) ** 2
    if not block.has_canonical_format:  # numbers at the same place are to be added first
        return block.multiply(block)
    return _with_arrays(sp.csr_array(block.shape, dtype=block.dtype), block.data**2, block.indices, block.indptr)


def _gram(block: Any) -> np.ndarray:
    return as_dense(block.T @ block)


def _scaled(block: Any, weights: np.ndarray) -> Any:
    return block.multiply(weights[:, None]).tocsr() if sp.issparse(block) else block * weights[:, None]
