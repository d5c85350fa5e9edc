"""The rows that an estimator takes, checked before anything is computed from them."""

from __future__ import annotations

from functools import singledispatch
from operator import add
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import _check_sample_weight, _num_samples, check_consistent_length, validate_data

from fairconstrained.checks.inputs import as_targets, in_memory, refuse_masked, telling_columns
from fairconstrained.checks.messages import in_columns
from fairconstrained.features import NUMBERS, extremes, narrowed
from fairconstrained.tables import Table
from fairconstrained.tables.dask_table import as_rows

__all__ = ["check_squares", "checked_features", "checked_rows"]


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
    sample_weight = in_memory(sample_weight)
    refuse_masked(X=X, sample_weight=sample_weight)
    y = None if y is None else as_targets(y)  # scikit-learn says where there are none
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
    with telling_columns(X):
        return validate_data(estimator, X, y, **{"accept_sparse": "csr", "dtype": NUMBERS, **options})


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
        f"{name} has absolute values up to {largest.max():.3g}{in_columns(found, columns, np.ndim(values))}; the sum "
        f"of their squares overflows. Values up to {limit:.3g} are allowed. {remedy}."
    )
