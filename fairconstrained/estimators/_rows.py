"""The rows that an estimator takes, checked before anything is computed from them."""

from __future__ import annotations

from functools import singledispatch
from operator import add
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_consistent_length, validate_data

from fairconstrained.checks.inputs import in_memory, refuse_masked
from fairconstrained.features import NUMBERS, extremes, narrowed
from fairconstrained.tables import Table
from fairconstrained.tables.dask_table import as_rows

__all__ = ["check_squares", "checked_features", "checked_rows"]

#: Names that a message lists.
_LISTED = 10


def checked_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, **options: Any
) -> tuple[Any, np.ndarray, np.ndarray | None]:
    """Features, targets and weights that a fit can compute with; features keep the type of their numbers.

    Parameters
    ----------
    estimator : estimator
        Estimator whose number of features is set, or compared with that of ``X``.
    X, y, sample_weight
        Rows, labels and weights as passed to `fit`.
    **options
        Arguments of `sklearn.utils.validation.validate_data`.

    Returns
    -------
    X : ndarray, CSR matrix or Table of shape (n_samples, n_features), or ndarray of another shape if ``allow_nd`` is an
        option
    y : ndarray of shape (n_samples,)
    sample_weight : ndarray of shape (n_samples,), or None if none are given

    Raises
    ------
    ValueError
        For invalid data, masked values, and values whose squares overflow.
    """
    y, sample_weight = in_memory(y), in_memory(sample_weight)
    refuse_masked(X=X, y=y, sample_weight=sample_weight)
    X, y = _validated(as_rows(X), estimator, y, options)
    X = narrowed(X)
    check_squares(X if X.ndim == 2 else X.reshape(-1), "X", getattr(estimator, "feature_names_in_", None))
    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        check_squares(sample_weight, "sample_weight")
    return X, y, sample_weight


def checked_features(estimator: Any, X: Any, **options: Any) -> Any:
    """Features of other rows, as `checked_rows` returns them."""
    refuse_masked(X=X)
    return _validated(as_rows(X), estimator, "no_validation", {"reset": False, **options})


@singledispatch
def _validated(X: Any, estimator: Any, y: Any, options: dict[str, Any]) -> Any:
    """Return X, and y unless that is "no_validation", as scikit-learn checks them."""
    try:
        return validate_data(estimator, X, y, **{"accept_sparse": "csr", "dtype": NUMBERS, **options})
    except TypeError as error:
        found = np.flatnonzero([pd.api.types.is_datetime64_any_dtype(kind) for kind in getattr(X, "dtypes", ())])
        if not found.size:
            raise
        raise ValueError(
            f"X has dates{_listed(found, X.columns, 2)}. Replace them by numbers, such as the days since one of them."
        ) from error
    except ValueError as error:
        if "could not convert string" not in str(error) or not isinstance(X, pd.DataFrame):
            raise
        found = np.flatnonzero([not pd.api.types.is_numeric_dtype(kind) for kind in X.dtypes])
        raise ValueError(
            f"X has text{_listed(found, X.columns, 2)}. Encode it, as with OneHotEncoder in a ColumnTransformer, or "
            "take FairBoostingClassifier, or FairHeadClassifier on a model that takes categories."
        ) from error


@_validated.register
def _(X: Table, estimator: Any, y: Any, options: dict[str, Any]) -> Any:
    reset = options.get("reset", True)
    if not isinstance(y, str):
        of_targets = {name: options[name] for name in ("multi_output", "y_numeric") if name in options}
        y = validate_data(estimator, y=y, **of_targets)
    # after the targets, as scikit-learn takes names away where there are none
    validate_data(estimator, X.without_rows(), skip_check_array=True, reset=reset)
    if not len(X):
        raise ValueError("X has no rows; pass a table with rows.")
    if missing := X.reduce_rows(_n_not_finite, add):
        raise ValueError(f"X has NaN or infinity in {missing:,} of its {len(X):,} rows. Fill them in, or drop them.")
    if isinstance(y, str):
        return X
    check_consistent_length(X, y)
    return X, y


def _n_not_finite(X: Any) -> int:
    """Number of rows with a number that is missing or infinite."""
    if sp.issparse(X):
        places = sp.csr_array((~np.isfinite(X.data), X.indices, X.indptr), shape=X.shape)
        return int((places.sum(axis=1) > 0).sum())
    return int((~np.isfinite(X)).any(axis=1).sum())


def check_squares(values: Any, name: str, columns: Any = None) -> None:
    """Raise ValueError unless the squares of all values have a finite sum; variances need it, and so do gradients.

    Parameters
    ----------
    values : ndarray of shape (n_samples,), or ndarray or CSR matrix of shape (n_samples, n_features)
    name : str
        Name of the argument, for the message.
    columns : sequence of str, optional
        Names of the columns.
    """
    largest = np.maximum(*map(np.abs, extremes(values)))
    limit = np.sqrt(np.finfo(np.float64).max / _num_samples(values))
    found = np.flatnonzero(largest > limit)
    if found.size == 0:
        return
    remedy = "Give weights of the order of 1" if name == "sample_weight" else "Standardise it, or drop what is invalid"
    raise ValueError(
        f"{name} has absolute values up to {largest.max():.3g}{_listed(found, columns, np.ndim(values))}; the sum of "
        f"their squares overflows. Values up to {limit:.3g} are allowed. {remedy}."
    )


def _listed(found: np.ndarray, columns: Any, ndim: int) -> str:
    """Which columns it is."""
    if ndim < 2:
        return ""
    names = found.tolist() if columns is None else np.asarray(columns)[found].tolist()
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f" in the column{'s' * (len(names) > 1)} {', '.join(map(repr, names[:_LISTED]))}{more}"
