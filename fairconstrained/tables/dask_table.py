"""Tables of Dask collections, whose partitions stay on their workers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.checks.inputs import is_dask
from fairconstrained.tables.described import Described, checked_part, joined_columns
from fairconstrained.tables.table import Parts, Table, taken_rows

__all__ = ["as_rows", "dask_table", "partitions_of", "row_partitions", "running"]


def dask_table(X: Any, client: Any = None) -> Table:
    """Return the rows of a Dask collection as a table: its partitions are computed once and stay on their workers.

    Where a worker is lost, Dask computes its partitions again on another one.

    Parameters
    ----------
    X : dask array or dataframe of shape (n_samples, n_features)
        Numbers; blocks of an array may be sparse matrices. There may be empty partitions.
    client : dask.distributed.Client, optional
        None: the current client.

    Returns
    -------
    table : Table
        X for the estimators of the package that have linear scores or a network, for
        `fairconstrained.fairness_path` and `fairconstrained.certify`.

    Raises
    ------
    ValueError
        If X is no Dask array or dataframe of two dimensions, or its partitions differ in their columns.
    RuntimeError
        If there is no client, or it is closed.

    Notes
    -----
    It needs the extra ``dask``.
    """
    import dask

    parts, client = row_partitions(X), running(client)
    check = dask.delayed(_checked, nout=2, pure=False)
    checked = [check(part) for part in parts]
    features = client.compute([part[0] for part in checked])
    described, labels = zip(*client.gather(client.compute([part[1] for part in checked])), strict=True)
    dtype, _ = joined_columns(described, "partition")
    return Table(_Partitions(client, features, described, dtype, _joined_labels(labels)))


def as_rows(X: Any) -> Any:
    """Return rows as estimators take them: a Dask collection as a table, everything else as it is."""
    return dask_table(X) if is_dask(X) else X


def row_partitions(X: Any) -> list[Any]:
    """Partitions of the features as delayed objects; raises ValueError if they are no table."""
    if _n_dims(X) != 2:
        raise ValueError(
            f"X has to be a Dask array or dataframe of two dimensions; got {type(X).__name__}. One column is "
            "X[['name']] of a dataframe or X[:, None] of an array, delayed rows become a dataframe by "
            "dask.dataframe.from_delayed, and rows in memory are for the estimator itself."
        )
    return partitions_of(X)


def _n_dims(values: Any) -> int | None:
    """Return the dimensions of a Dask array, series or dataframe; None for anything else."""
    n_dims = getattr(values, "ndim", None) if is_dask(values) else None
    return n_dims if isinstance(n_dims, int) else None  # a delayed object has every attribute


def partitions_of(X: Any) -> list[Any]:
    """Partitions of a Dask collection, each with all of its columns, as delayed objects."""
    if not _n_dims(X):
        raise ValueError(
            f"sensitive_features has to be a Dask collection in partitions, as X is; got {type(X).__name__}. Pass a "
            "column of the same dataframe, or dask.array.from_array."
        )
    if hasattr(X, "rechunk") and X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    if hasattr(X, "simplify"):
        return _parts_of_frame(X.simplify())  # reads the columns that are needed, and keeps the partitions
    return list(np.ravel(X.to_delayed(optimize_graph=False)))


def _parts_of_frame(frame: Any) -> list[Any]:
    """Partitions of a dataframe as delayed objects, in whose graph every task stands under its own key.

    ``dask.dataframe.from_delayed(..., verify_meta=False)`` files references under other keys. Where arrays are computed
    from them, the optimisation of the graph loses these.
    """
    from dask.delayed import Delayed
    from dask.highlevelgraph import HighLevelGraph

    # optimised by itself, a frame of few columns would join files, and not match the others
    parts = frame.to_delayed(optimize_graph=False)
    graph = {key: task if getattr(task, "key", key) == key else task.key for key, task in parts[0].dask.items()}
    layer = f"partitions-of-{parts[0].key}"
    shared = HighLevelGraph.from_collections(layer, graph)
    return [Delayed(part.key, shared, layer=layer) for part in parts]


def running(client: Any) -> Any:
    """Return the client, or the current one for None, if it can be asked; raises RuntimeError otherwise."""
    from dask.distributed import get_client

    try:
        client = get_client() if client is None else client
    except ValueError:
        raise RuntimeError("there is no Dask client; make one: client = dask.distributed.Client().") from None
    if client.status != "running":
        raise RuntimeError(f"the Dask client is {client.status}; pass one that is running, as client.")
    return client


class _Partitions(Parts):
    """Partitions on the workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    futures : sequence of Future
        Features of every partition, as `checked_part` returns them.
    """

    def __init__(
        self,
        client: Any,
        futures: Sequence[Any],
        described: Sequence[Described],
        dtype: np.dtype,
        index: pd.Index | None,
    ) -> None:
        self.index = index
        self.lengths = tuple(part.n_rows for part in described)
        self.n_features, self.dtype, self.names = described[0].n_features, dtype, described[0].names
        self._client, self._futures = client, list(futures)
        self._chosen: dict[int, Any] = {}

    @override
    def kept(self, part: int, values: np.ndarray) -> Any:
        # computed from the partition, so that both are on one worker, and again if that is lost
        return self._client.submit(_beside, self._futures[part], values, pure=False)

    @override
    def results(
        self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]], taken: Sequence[np.ndarray | None]
    ) -> Iterator[Any]:
        wanted = self.with_rows(taken)
        asked = [
            self._client.submit(_called, function, self._rows(k, taken[k]), *columns[k], pure=False) for k in wanted
        ]
        yield from self._client.gather(asked)

    def _rows(self, part: int, rows: np.ndarray | None) -> Any:
        """Rows of a partition on its worker, where a choice is kept as long as it is in use here."""
        if rows is None:
            return self._futures[part]
        if id(rows) not in self._chosen:
            self._chosen[id(rows)] = self._client.submit(taken_rows, self._futures[part], rows, pure=False)
            weakref.finalize(rows, self._chosen.pop, id(rows))
        return self._chosen[id(rows)]


def _checked(X: Any) -> tuple[Any, tuple[Described, pd.Index | None]]:
    """Return the features of a partition, and what is known of them beside the labels of its rows."""
    features, described = checked_part(X, {})
    return features, (described, getattr(X, "index", None))


def _joined_labels(labels: Sequence[pd.Index | None]) -> pd.Index | None:
    """Labels of the rows of all partitions; None if these are arrays."""
    known = [own for own in labels if own is not None and len(own)]  # without rows their type may be another
    return known[0].append(known[1:]) if known else None


def _beside(X: Any, values: np.ndarray) -> np.ndarray:
    return values


def _called(function: Callable[..., Any], X: Any, *columns: Any) -> Any:
    return function(X, *columns)
