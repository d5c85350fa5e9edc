"""Tables of rows that come block by block, from arrays, memory maps, or parquet files larger than memory."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse as sp

from fairconstrained.features import NUMBERS, rows_of
from fairconstrained.tables.table import Parts, Table, taken_rows

__all__ = ["array_table", "parquet_table"]

#: Kinds of types of numbers: booleans, integers and floats.
_KINDS = "biuf"
#: Numbers of a block of an array.
_BLOCK = 2**22


def array_table(X: Any, names: Sequence[str] | None = None, block_size: int | None = None) -> Table:
    """Return a table of an array that need not fit into memory, such as a memory map, without copying it.

    Parameters
    ----------
    X : ndarray, numpy.memmap or CSR array of shape (n_samples, n_features)
        Its numbers may be of any type, of which those without products become float64; sums are taken in float64.
    names : sequence of str, optional
        Names of the features, each once.
    block_size : int, optional
        Rows that are read at once, at least 1. None: so many that a block has four million numbers.

    Returns
    -------
    table : Table
        X for the estimators of the package that have linear scores or a network.

    Raises
    ------
    ValueError
        If X has not two dimensions, masks entries or holds no numbers, if the names are not one for every feature, or
        for a size of blocks below 1.
    """
    if not hasattr(X, "dtype") or len(X.shape) != 2:
        raise ValueError(f"a table needs an array of rows and features; got {type(X).__name__}.")
    if X.dtype.kind not in _KINDS:
        raise ValueError(f"a table needs numbers, and X has {X.dtype}. Encode categories, or choose numeric columns.")
    if isinstance(X, np.ma.MaskedArray):
        raise ValueError("a table needs an array without a mask. Fill masked entries, as X.filled(value) does.")
    if names is not None and (len(names) != X.shape[1] or len(set(names)) < len(names)):
        raise ValueError(f"names must be one for each of the {X.shape[1]} features, and differ; got {list(names)}.")
    if block_size is not None and not (isinstance(block_size, Integral) and block_size > 0):
        raise ValueError(f"block_size must be a number of rows of at least 1; got {block_size!r}.")
    X, dtype = sp.csr_array(X) if sp.issparse(X) else X, _common([X.dtype])
    size = int(block_size or max(_BLOCK // max(X.shape[1], 1), 1))
    spans = [slice(start, min(start + size, X.shape[0])) for start in range(0, X.shape[0], size)]
    readers = [partial(_rows_of_array, X, rows, dtype) for rows in spans]
    return Table(_Blocks(readers, [rows.stop - rows.start for rows in spans], X.shape[1], dtype, names))


def parquet_table(
    files: str | PathLike[str] | Sequence[str | PathLike[str]], columns: Sequence[str] | None = None
) -> Table:
    """Return a table of the rows of parquet files, of which one row group is in memory at a time.

    Parameters
    ----------
    files : path or sequence of paths
        Files with the same columns; their rows follow each other.
    columns : sequence of str, optional
        Names of the features. None: all columns but those of an index of pandas.

    Returns
    -------
    table : Table
        X for the estimators of the package that have linear scores or a network. Read the other columns, such as
        labels and groups, with ``pandas.read_parquet(file, columns=[...])``.

    Raises
    ------
    ValueError
        If no file is given, a file has not all columns, or one of them holds no numbers.

    Notes
    -----
    It needs pyarrow.
    """
    import pyarrow.parquet as pq

    paths = [files] if isinstance(files, (str, PathLike)) else list(files)
    readers: list[Callable[[], np.ndarray]] = []
    lengths: list[int] = []
    kinds: list[np.dtype] = []
    for path in paths:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        if columns is None:
            index = (schema.pandas_metadata or {}).get("index_columns", [])  # a range is no name
            columns = [name for name in schema.names if name not in index]
        columns = list(columns)
        missing = [name for name in columns if name not in schema.names]
        if missing:
            raise ValueError(f"the file {path} has no columns {missing}; it has {schema.names}.")
        kinds += [_number(schema.field(name), path) for name in columns]
        for number in range(file.num_row_groups):
            readers.append(partial(_row_group, path, number, tuple(columns)))
            lengths.append(file.metadata.row_group(number).num_rows)
    if columns is None:
        raise ValueError("there are no parquet files to read; pass at least one path.")
    return Table(_Blocks(readers, lengths, len(columns), _common(kinds), columns, reads_ahead=True))


class _Blocks(Parts):
    """Blocks of rows that are read when they are needed, and forgotten afterwards."""

    def __init__(
        self,
        readers: Sequence[Callable[[], Any]],
        lengths: Sequence[int],
        n_features: int,
        dtype: np.dtype,
        names: Sequence[str] | None,
        reads_ahead: bool = False,
    ) -> None:
        self.lengths, self.n_features, self.dtype = tuple(lengths), n_features, np.dtype(dtype)
        self.names = None if names is None else tuple(names)
        self._readers, self._reads_ahead = list(readers), reads_ahead

    def results(
        self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]], taken: Sequence[np.ndarray | None]
    ) -> Iterator[Any]:
        """Implement `Parts.results`; the next block is read while one is computed with."""
        wanted = self.with_rows(taken)
        for k, block in zip(wanted, self._read([self._readers[k] for k in wanted]), strict=True):
            yield function(taken_rows(block, taken[k]), *columns[k])

    def _read(self, readers: Sequence[Callable[[], Any]]) -> Iterator[Any]:
        if not self._reads_ahead:
            yield from (read() for read in readers)
            return
        with ThreadPoolExecutor(1) as pool:
            coming = [pool.submit(read) for read in readers[:1]]
            for read in (*readers[1:], None):
                block = coming.pop().result()
                if read is not None:
                    coming.append(pool.submit(read))
                yield block


def _rows_of_array(X: Any, rows: slice, dtype: np.dtype) -> Any:
    """Rows of an array; of a memory map a copy, whose pages are given back.

    Pages of a map that is copied on writing are kept: what was written is nowhere else.
    """
    block = rows_of(X, rows).astype(dtype, copy=False)
    pages = getattr(X, "_mmap", None)
    if pages is None or X.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return block
    block = np.array(block)
    pages.madvise(mmap.MADV_DONTNEED)
    return block


def _row_group(path: str | PathLike[str], number: int, columns: tuple[str, ...]) -> np.ndarray:
    """Rows of a row group; the numbers of a feature lie one after the other, as in the file."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        read = file.read_row_group(number, columns=list(columns))
    found = [read.column(name).to_numpy() for name in columns]
    block = np.empty((len(columns), read.num_rows), dtype=_common([column.dtype for column in found]))
    for row, column in zip(block, found, strict=True):
        row[:] = column
    return block.T


def _number(field: Any, path: Any) -> np.dtype:
    """Type of the numbers of a column."""
    try:
        kind = np.dtype(field.type.to_pandas_dtype())
    except NotImplementedError:
        kind = np.dtype(object)
    if kind.kind not in _KINDS:
        raise ValueError(
            f"column {field.name!r} of the file {path} holds {field.type} and no numbers. Encode it, or leave it out "
            "of columns."
        )
    return kind


def _common(kinds: Sequence[np.dtype]) -> np.dtype:
    """A type of numbers that holds all of them and that products are known for."""
    common = np.result_type(*kinds) if len(kinds) else np.dtype(np.float64)
    return common if common in NUMBERS else np.dtype(np.float64)
