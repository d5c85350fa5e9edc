"""Estimators on Dask collections, whose partitions stay on their workers."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted
from typing_extensions import override

from fairconstrained.distributed._gathering import Described, checked_part, joined_columns
from fairconstrained.tables import Parts, Table
from fairconstrained.tables.table import taken_rows

__all__ = ["DaskEstimator"]


class DaskEstimator(MetaEstimatorMixin, BaseEstimator):
    """Fits an estimator to Dask arrays or dataframes, without bringing their features to one machine.

    The partitions of X are computed once and stay on the workers that hold them, which compute products with their
    rows. Targets, groups, weights and scores of all rows are in the memory of the client. The fitted estimator is the
    one of a single process with all rows, up to rounding, and predicts anywhere.

    Where a worker is lost, Dask computes its partitions again on another one, and the fit goes on.

    Parameters
    ----------
    estimator : estimator
        Any estimator of the package with linear scores or a network.
    client : dask.distributed.Client, optional
        None: the current client.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, which knows nothing of Dask.

    Notes
    -----
    It needs the extra ``dask``.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> import dask.dataframe as dd
    >>> client = Client()                                                              # doctest: +SKIP
    >>> people = dd.read_parquet("people/*.parquet")                                   # doctest: +SKIP
    >>> model = DaskEstimator(PartialParityClassifier(0.02, constraint="demographic_parity"))  # doctest: +SKIP
    >>> model.fit(people[features], people["hired"], sensitive_features=people["sex"])         # doctest: +SKIP
    >>> model.predict(people[features])  # a Dask array                                # doctest: +SKIP
    """

    def __init__(self, estimator: Any, client: Any = None) -> None:
        self.estimator = estimator
        self.client = client

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, strata: Any = None
    ) -> Self:
        """Fit the estimator to all partitions.

        Parameters
        ----------
        X : dask array or dataframe of shape (n_samples, n_features)
            Numbers; blocks of an array may be sparse matrices. There may be empty partitions.
        y : dask array or series, or array-like, of shape (n_samples,)
        sensitive_features, sample_weight, strata : dask collection or array-like, optional
            Columns as for `fit` of the estimator, in the order of the rows of X.

        Returns
        -------
        self : DaskEstimator

        Raises
        ------
        ValueError
            For invalid data, and for partitions that differ in their columns.
        RuntimeError
            If there is no client, or it is closed.
        """
        client = self._client()
        columns = {"y": y, "sensitive_features": sensitive_features, "sample_weight": sample_weight, "strata": strata}
        columns = {name: _in_memory(client, column) for name, column in columns.items() if column is not None}
        table = _table(client, X)
        self.estimator_ = clone(self.estimator).fit(table, columns.pop("y"), **columns)
        return self

    def _client(self) -> Any:
        from dask.distributed import get_client

        try:
            client = get_client() if self.client is None else self.client
        except ValueError:
            raise RuntimeError("there is no Dask client; make one: client = dask.distributed.Client().") from None
        if client.status != "running":
            raise RuntimeError(f"the Dask client is {client.status}; pass one that is running, as client.")
        return client

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predictions, partition by partition.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
        sensitive_features : dask collection or array-like, optional
            Groups, in the same partitions as X; only for models that predict by group.

        Returns
        -------
        predictions : dask array of shape (n_samples,)
            Computed when it is asked for; an ndarray if X is no Dask collection.
        """
        return self._by_partition("predict", X, sensitive_features)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Scores, partition by partition, as `predict` takes and returns them."""
        return self._by_partition("decision_function", X, sensitive_features)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Probabilities of shape (n_samples, n_classes), partition by partition, as `predict` takes and returns them."""
        return self._by_partition("predict_proba", X, sensitive_features)

    def _by_partition(self, method: str, X: Any, sensitive_features: Any) -> Any:
        check_is_fitted(self, "estimator_")
        given = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        if not _is_dask(X):
            return getattr(self.estimator_, method)(X, **given)
        import dask
        import dask.array as da

        parts = _delayed_parts(X)
        groups = [None] * len(parts) if sensitive_features is None else _delayed_parts(sensitive_features)
        if len(groups) != len(parts):
            raise ValueError(f"sensitive_features has {len(groups)} partitions and X has {len(parts)}; align them.")
        result = _Result.of(self.estimator_, method)
        ask = dask.delayed(result.of_rows, pure=False)
        blocks = [
            da.from_delayed(ask(part, own), (np.nan, *result.shape), dtype=result.dtype)
            for part, own in zip(parts, groups, strict=True)
        ]
        return da.concatenate(blocks)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")


class _Partitions(Parts):
    """Partitions on the workers of a Dask cluster.

    Parameters
    ----------
    client : dask.distributed.Client
    futures : sequence of Future
        Features of every partition, as `checked_part` returns them.
    described : sequence of Described
    dtype : numpy.dtype
    """

    def __init__(self, client: Any, futures: Sequence[Any], described: Sequence[Described], dtype: np.dtype) -> None:
        self.lengths = tuple(part.n_rows for part in described)
        self.n_features, self.dtype, self.names = described[0].n_features, dtype, described[0].names
        self._client, self._futures = client, list(futures)
        self._chosen: dict[int, Any] = {}

    @override
    def results(
        self, function: Callable[..., Any], columns: Sequence[tuple[Any, ...]], taken: Sequence[np.ndarray | None]
    ) -> Iterator[Any]:
        wanted = [k for k, length in enumerate(self.lengths) if (length if taken[k] is None else len(taken[k]))]
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


@dataclass(frozen=True)
class _Result:
    """Result of a method of a fitted estimator for the rows of a partition, of which there may be none."""

    estimator: Any
    method: str
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, estimator: Any, method: str) -> Self:
        """Shape of the result for a row, and its type."""
        classes = getattr(estimator, "classes_", None)
        if method == "predict":
            return cls(estimator, method, (), np.dtype(float) if classes is None else classes.dtype)
        has_columns = classes is not None and (method == "predict_proba" or len(classes) > 2)
        return cls(estimator, method, (len(classes),) if has_columns else (), np.dtype(float))

    def of_rows(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the result for the rows of a partition."""
        if not X.shape[0]:
            return np.empty((0, *self.shape), dtype=self.dtype)
        given = {} if sensitive_features is None else {"sensitive_features": sensitive_features}
        return getattr(self.estimator, self.method)(X, **given)


def _called(function: Callable[..., Any], X: Any, *columns: Any) -> Any:
    return function(X, *columns)


def _is_dask(values: Any) -> bool:
    from dask.base import is_dask_collection

    return is_dask_collection(values)


def _in_memory(client: Any, column: Any) -> Any:
    """Return a column of all rows, which may be a Dask collection."""
    return client.compute(column).result() if _is_dask(column) else column


def _delayed_parts(X: Any) -> list[Any]:
    """Partitions of a Dask collection, each with all of its columns."""
    if not _is_dask(X):
        raise ValueError(f"sensitive_features has to be a Dask collection, as X is; got {type(X).__name__}.")
    if hasattr(X, "rechunk") and X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return list(np.ravel(X.to_delayed()))


def _table(client: Any, X: Any) -> Table:
    """Partitions of X, computed and checked on the workers, as a table."""
    if not _is_dask(X):
        raise ValueError(
            f"X has to be a Dask array or dataframe; got {type(X).__name__}. Fit the estimator itself to rows in memory."
        )
    import dask

    check = dask.delayed(checked_part, nout=2, pure=False)
    checked = [check(part, {}) for part in _delayed_parts(X)]
    features = client.compute([part[0] for part in checked])
    described = client.gather(client.compute([part[1] for part in checked]))
    dtype, _ = joined_columns(described, "partition")
    return Table(_Partitions(client, features, described, dtype))
