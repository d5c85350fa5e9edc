"""Estimators on Dask collections, whose partitions stay on their workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fairconstrained.checks.inputs import in_memory, is_dask, without_none
from fairconstrained.model_selection.delegation import DelegatesToFitted
from fairconstrained.tables import Table, dask_table
from fairconstrained.tables.dask_table import partitions_of, row_partitions, running

__all__ = ["DaskEstimator"]


class DaskEstimator(DelegatesToFitted):
    """Fits an estimator to Dask arrays or dataframes, without bringing their features to one machine.

    The partitions of X are computed once and stay on the workers that hold them, which compute products with their
    rows. Targets, groups, weights and scores of all rows are in the memory of the client. The fitted estimator is the
    one of a single process with all rows, up to rounding, and predicts anywhere.

    Where a worker is lost, Dask computes its partitions again on another one, and the fit goes on. Where the client is
    lost, a fit within `fairconstrained.callbacks.resumable` goes on when it is called again.

    Parameters
    ----------
    estimator : estimator
        Any estimator of the package with linear scores or a network.
    client : dask.distributed.Client, optional
        None: the current client. It is not saved with the estimator.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator, which knows nothing of Dask.
    classes_ : ndarray of shape (n_classes,)
        Classes of the fitted estimator; only of classifiers.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features; only if X has some.

    Notes
    -----
    It needs the extra ``dask``.

    scikit-learn's searches and cross-validation choose rows of Dask arrays, and not of dataframes: pass
    ``X.to_dask_array(lengths=True)``, and columns in memory.

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

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True, "strata": True}

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
            Labels or targets.
        sensitive_features, sample_weight, strata : dask collection or array-like, optional
            Columns as for `fit` of the estimator. Rows are matched by their position among all partitions, whatever
            their index is.

        Returns
        -------
        self : DaskEstimator

        Raises
        ------
        ValueError
            For invalid data, for X that is no Dask array or dataframe of two dimensions, and for partitions that
            differ in their columns.
        RuntimeError
            If there is no client, or it is closed.

        Warns
        -----
        FairnessWarning
            If X, y and other columns have the same row labels (index) in different orders; otherwise as for `fit` of
            the estimator.
        """
        given = without_none(sensitive_features=sensitive_features, sample_weight=sample_weight, strata=strata)
        rows, y, given = self._gathered(X, y, given)
        self.estimator_ = clone(self.estimator).fit(rows, y, **given)
        return self

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predictions, partition by partition.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
        sensitive_features : dask collection or array-like, optional
            Groups, in partitions as long as those of X, matched by position; only for models that predict by group.

        Returns
        -------
        predictions : dask array of shape (n_samples,)
            Computed when it is asked for; an ndarray if X is no Dask collection.

        Raises
        ------
        ValueError
            If X is a Dask collection other than an array or dataframe, or ``sensitive_features`` is then no Dask
            collection, or has another number of partitions.
        NotFittedError
            If `fit` has not been called.
        """
        return self._by_partition("predict", X, sensitive_features)

    @available_if(lambda self: hasattr(self.estimator, "decision_function"))
    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Scores, partition by partition, as `predict` takes and returns them."""
        return self._by_partition("decision_function", X, sensitive_features)

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Probabilities of all classes, partition by partition; as for `predict`, with shape (n_samples, n_classes)."""
        return self._by_partition("predict_proba", X, sensitive_features)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Score of the fitted estimator: accuracy of a classifier, coefficient of determination of a regressor.

        Parameters
        ----------
        X : dask array or dataframe, or array-like, of shape (n_samples, n_features)
        y : dask array or series, or array-like, of shape (n_samples,)
            Labels or targets.
        sample_weight, sensitive_features : dask collection or array-like, optional
            Columns in the order of the rows, as for `fit`; groups only for models that predict by group.

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        given = without_none(sample_weight=sample_weight, sensitive_features=sensitive_features)
        if is_dask(X):
            X, y, given = self._gathered(X, y, given)
        return self.estimator_.score(X, y, **given)

    def _gathered(self, X: Any, y: Any, given: dict[str, Any]) -> tuple[Table, Any, dict[str, Any]]:
        """Return a table of the partitions of X, and the columns in memory."""
        with running(self.client).as_current():
            y, given = in_memory(y), {name: in_memory(value) for name, value in given.items()}
        return dask_table(X, self.client), y, given

    def _by_partition(self, method: str, X: Any, sensitive_features: Any) -> Any:
        check_is_fitted(self)
        if not is_dask(X):
            return getattr(self.estimator_, method)(X, **without_none(sensitive_features=sensitive_features))
        import dask
        import dask.array as da

        parts = row_partitions(X)
        groups = [None] * len(parts) if sensitive_features is None else partitions_of(sensitive_features)
        if len(groups) != len(parts):
            raise ValueError(f"sensitive_features has {len(groups)} partitions and X has {len(parts)}; align them.")
        result = _Result.of(self.estimator_, method)
        ask = dask.delayed(result.of_rows, pure=False)
        blocks = [
            da.from_delayed(ask(part, own), (np.nan, *result.shape), dtype=result.dtype)
            for part, own in zip(parts, groups, strict=True)
        ]
        return da.concatenate(blocks)

    def __sklearn_clone__(self) -> Self:
        return type(self)(clone(self.estimator), self.client)  # a client cannot be copied

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"client": None}


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
        n_classes = 0 if classes is None else len(classes)
        has_columns = method == "predict_proba" or n_classes > 2
        return cls(estimator, method, (n_classes,) if has_columns else (), np.dtype(float))

    def of_rows(self, X: Any, sensitive_features: Any) -> np.ndarray:
        """Return the result for the rows of a partition."""
        if not X.shape[0]:
            return np.empty((0, *self.shape), dtype=self.dtype)
        return getattr(self.estimator, self.method)(X, **without_none(sensitive_features=sensitive_features))
