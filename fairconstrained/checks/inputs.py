"""Columns as users pass them: sensitive features in any form become one kind of table, or a readable error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.utils import assert_all_finite, column_or_1d

from fairconstrained.checks.messages import in_columns, shortened, warn_user
from fairconstrained.exceptions import FairnessWarning

__all__ = [
    "as_numbers",
    "as_table",
    "as_targets",
    "check_group_of_every_row",
    "in_memory",
    "is_dask",
    "refuse_masked",
    "take_names",
    "telling_columns",
    "warn_of_another_order",
    "without_none",
]

_ALLOWED = "one column of groups or a table of columns: a list, an array, a Series or a DataFrame"
#: Advice for text among the features.
_ENCODE = (
    "Encode it, as with OneHotEncoder in a ColumnTransformer within a Pipeline, or pass a DataFrame with categories to "
    "FairBoostingClassifier, or to FairHeadClassifier on a model that takes them"
)
#: Kinds of columns, as pandas calls them, that are dates or durations.
_TIMES = {"date", "datetime", "datetime64", "period", "time", "timedelta", "timedelta64"}
#: Values of a list that are rows of their own, and no labels.
_NESTED = (list, tuple, dict, set, np.ndarray)


def as_table(sensitive_features: Any) -> Any:
    """Sensitive features as a DataFrame without missing values, or as they are if they are sparse.

    Values keep their types, also where those differ within a column.

    Parameters
    ----------
    sensitive_features : array-like, sparse matrix, or DataFrame or Series of any library, with one or two dimensions

    Returns
    -------
    table : DataFrame or sparse matrix of shape (n_samples, n_columns)

    Raises
    ------
    ValueError
        If it is something else, is empty, or has values that are missing or infinite.
    """
    sensitive_features = in_memory(sensitive_features)
    if sp.issparse(sensitive_features):
        return sensitive_features
    frame = _as_frame(sensitive_features)
    if frame.shape[1] == 0:
        raise ValueError("sensitive_features has no columns; pass at least one column, or leave it out.")
    if frame.shape[0] == 0:
        raise ValueError("sensitive_features is empty: it has no rows; pass the group of every row.")
    _refuse_missing(int(frame.isna().any(axis=1).sum()))
    numeric = frame.select_dtypes(include="number")
    if not np.isfinite(numeric.to_numpy(dtype=float)).all():
        raise ValueError("sensitive_features contains infinity; groups must be finite values.")
    return frame


def check_group_of_every_row(n_given: int, n_samples: int, name: str = "sensitive_features") -> None:
    """Raise ValueError if the sensitive features, an argument ``name``, have not ``n_samples`` but ``n_given`` rows."""
    if n_given != n_samples:
        raise ValueError(
            f"{name} has {n_given} row{'s' * (n_given != 1)} in place of {n_samples}. Pass the group of every row, and "
            "not the names of columns."
        )


def is_dask(values: Any) -> bool:
    """Whether values are a Dask collection, which is computed when it is asked for."""
    return hasattr(values, "__dask_graph__")


def in_memory(values: Any) -> Any:
    """Return a column of all rows, which may be a Dask collection, in memory."""
    return values.compute() if is_dask(values) else values


def refuse_masked(**columns: Any) -> None:
    """Raise a ValueError for masked arrays with masked values, whose mask scikit-learn would ignore."""
    for name, values in columns.items():
        masked = int(np.ma.getmaskarray(values).sum()) if isinstance(values, np.ma.MaskedArray) else 0
        if masked:
            raise ValueError(
                f"{name} is a masked array with {masked} masked values; fill them ({name}.filled(...)) or drop their "
                "rows."
            )


def as_targets(y: Any) -> np.ndarray:
    """Return the labels or targets of all rows, in memory and as one column.

    Raises ValueError if they are no column, or some are masked, missing or infinite. NumPy fails on text with missing
    values when it looks for the classes, and would take those among numbers for a class.
    """
    y = in_memory(y)
    refuse_masked(y=y)
    column = column_or_1d(y, warn=True)
    if missing := int(pd.isna(column).sum()):
        raise ValueError(f"y has NaN or missing values in {missing} of {column.size} rows; drop these rows.")
    assert_all_finite(column, input_name="y")
    return column


def as_numbers(y: Any, remedy: str) -> np.ndarray:
    """Return targets as an array of floats; raises ValueError for text and dates, with advice for text."""
    with telling_columns(y, "y", remedy):
        return np.asarray(y, dtype=np.float64)


def without_none(**values: Any) -> dict[str, Any]:
    """Return the arguments that are given: those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def take_names(estimator: Any, other: Any) -> None:
    """Set the attributes that tell the features, as far as another fitted estimator has them."""
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(other, name):
            setattr(estimator, name, getattr(other, name))


@contextmanager
def telling_columns(values: Any, name: str = "X", remedy: str = _ENCODE) -> Iterator[None]:
    """Within it, errors about text and dates where numbers are needed become a ValueError that names the columns.

    Dates and durations are errors even where NumPy can turn them into numbers, in a unit that nobody has chosen.

    Parameters
    ----------
    values : array-like or sparse matrix, or DataFrame or Series of any library
    name : str, default="X"
        Name of the argument, for the message.
    remedy : str, optional
        Advice where there is text.
    """
    try:
        _refuse_times(values)
        yield
    except TypeError as error:
        columns = _by_columns(values)
        found = np.flatnonzero([pd.api.types.infer_dtype(column) in _TIMES for _, column in columns.items()])
        if not found.size:
            raise
        raise ValueError(
            f"{name} has dates or durations{in_columns(found, columns.columns, getattr(values, 'ndim', 2))}. "
            "Replace them by numbers, such as numbers of days."
        ) from error
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        given = np.asarray(values, dtype=object)
        numbers = pd.DataFrame(given.reshape(len(given), -1)).apply(pd.to_numeric, errors="coerce")
        is_text = numbers.isna().to_numpy() & ~pd.isna(given).reshape(numbers.shape)
        found = np.flatnonzero(is_text.any(axis=0))
        if not found.size:
            raise
        raise ValueError(
            f"{name} has text{in_columns(found, getattr(values, 'columns', None), given.ndim)}. {remedy}."
        ) from error


def _refuse_times(values: Any) -> None:
    """Raise TypeError for a table or an array of nothing but dates or durations."""
    array = values if _column_names(values) is None else np.asarray(values[:1])
    if getattr(getattr(array, "dtype", None), "kind", "") in ("m", "M"):
        raise TypeError("dates and durations are no numbers")


def warn_of_another_order(**columns: Any) -> None:
    """Warn of columns with the row labels of the first that has any in another order: rows are matched by position."""
    found = ((name, getattr(values, "index", None)) for name, values in columns.items())
    labelled = [(name, index) for name, index in found if isinstance(index, pd.Index)]
    for name, other in labelled[1:]:
        first, index = labelled[0]
        if other.equals(index) or len(other) != len(index):
            continue
        if index.is_unique and other.is_unique and other.isin(index).all():
            warn_user(
                f"{first} and {name} have the same row labels (index) in another order, and rows are matched by their "
                f"position. Pass {name}.loc[{first}.index] to match them by their labels; if positions are right, give "
                "both the same index.",
                FairnessWarning,
            )


def _as_frame(features: Any) -> pd.DataFrame:
    if isinstance(features, (pd.DataFrame, pd.Series)):
        frame = pd.DataFrame(features)
    elif isinstance(features, Mapping):
        raise ValueError(
            f"sensitive_features is a {type(features).__name__} with the keys {shortened(features.keys())}; pass "
            "pd.DataFrame(sensitive_features) if it holds columns."
        )
    else:
        frame = _frame_of_columns(features)
    # A column of objects that are all booleans or numbers is one of booleans or numbers.
    return frame.infer_objects() if (frame.dtypes == "object").any() else frame


def _frame_of_columns(features: Any) -> pd.DataFrame:
    """Return a DataFrame of lists, arrays, and tables of other libraries, which are read column by column."""
    if not hasattr(features, "__array__"):
        return _frame_of_array(_array_of_list(features))
    if _column_names(features) is not None:
        return _by_columns(features)
    if isinstance(features, np.ma.MaskedArray) and features.dtype.names is None:
        mask = np.ma.getmaskarray(features)
        _refuse_missing(int(mask.reshape(len(mask), -1).any(axis=1).sum()) if mask.any() else 0)
    return _frame_of_array(np.asarray(features))


def _by_columns(values: Any) -> pd.DataFrame:
    """Return a table of any library, or an array, as a DataFrame whose columns keep their types."""
    if isinstance(values, pd.DataFrame):
        return values
    names = _column_names(values)
    if names is None:
        array = np.atleast_1d(np.asarray(values))
        return pd.DataFrame(array.reshape(len(array), -1))
    return pd.DataFrame({name: np.asarray(values[name]) for name in names}, index=range(len(values)))


def _column_names(values: Any) -> Any:
    """Names of the columns of a table of any library; None of what is no table."""
    return getattr(values, "column_names", getattr(values, "columns", None))


def _array_of_list(features: Any) -> np.ndarray:
    """An array of objects: one of strings would turn the numbers among them into strings."""
    values = np.asarray(features, dtype=object)
    if values.ndim == 1 and any(isinstance(value, _NESTED) for value in values):
        raise ValueError(
            "sensitive_features is ragged: some of its rows hold more values than others, or are no rows. Pass rows "
            "of the same length, or a Series for groups that are tuples."
        )
    return values


def _frame_of_array(values: np.ndarray) -> pd.DataFrame:
    if values.dtype.names is not None:
        raise ValueError(
            f"sensitive_features is a structured array with the fields {shortened(values.dtype.names)}; pass "
            "pd.DataFrame(sensitive_features), or one of its fields."
        )
    if values.ndim not in (1, 2):
        found = f"{values.ndim} dimensions" if values.ndim else f"{values.item()!r:.60} (0 dimensions)"
        raise ValueError(f"sensitive_features must be {_ALLOWED}; got {found}.")
    return pd.DataFrame(values)


def _refuse_missing(n_rows: int) -> None:
    if n_rows:
        raise ValueError(
            f"sensitive_features contains NaN or missing values in {n_rows} rows; drop those rows "
            "or give missing values a group of their own, e.g. the string 'unknown'."
        )
