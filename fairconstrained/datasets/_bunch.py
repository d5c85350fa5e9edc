"""From a parsed table to the one Bunch layout that every dataset of this package returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import Bunch

from fairconstrained.checks.messages import shortened

__all__ = [
    "FETCHED",
    "RETURNS_BUNCH",
    "binary_target",
    "build_bunch",
    "categorical",
    "chosen_columns",
    "require_columns",
]

#: Documentation of what all functions have in common that return a Bunch.
RETURNS_BUNCH = """Parameters
----------
include_sensitive : bool, default=False
    Keep the sensitive columns in ``data`` too.
return_X_y : bool, default=False
    Return ``(data, target)`` instead of a Bunch; the groups are then left out.
as_frame : bool, default=True
    Return pandas objects; otherwise ``data`` is a float array in which a category is its position in ``categories``.

Returns
-------
bunch : Bunch
    sensitive_features : Series or ndarray of shape (n_samples,), or (n_samples, n_sensitive)
        Group of every row.
    feature_names, sensitive_names : list of str
        Names of the columns of ``data`` and of the sensitive features.
    target_names : ndarray of shape (2,)
        What 0 and 1 stand for.
    categories : dict
        Values of each categorical column of ``data``.
    frame : DataFrame or None
        ``data``, the sensitive columns and the label together when ``as_frame``.
    DESCR : str
        Description of the data.

(data, target) : tuple, if ``return_X_y``
"""
#: Documentation of what all functions have in common that download a Bunch.
FETCHED = """Parameters
----------
data_home : str or path-like, default=None
    Cache folder; by default that of scikit-learn.

Raises
------
ValueError
    If ``sensitive`` names anything else.
ConnectionError
    If the data are not in the cache and cannot be downloaded.
PermissionError
    If the cache folder cannot be written.
"""

_PADDING = " '"  # ARFF may quote a value and put a blank before it


def require_columns(table: pd.DataFrame, columns: Sequence[str], source: str) -> None:
    """Check that a raw table has the columns its parser reads.

    Raises ValueError if some are absent; the message names them and the expected ``source``.
    """
    missing = [name for name in columns if name not in table.columns]
    if missing:
        raise ValueError(f"This table is not {source}: it lacks the columns {missing}.")


def chosen_columns(sensitive: str | Sequence[str], allowed: Sequence[str] | None = None) -> list[str]:
    """Return the names of the sensitive features that the caller asked for.

    Raises ValueError if the choice is empty, repeats a name or holds a name that is not in ``allowed``; None, as long
    as the columns are not known, allows every name.
    """
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not names or len(set(names)) < len(names) or not set(names) <= set(names if allowed is None else allowed):
        known = "the columns" if allowed is None else shortened(allowed)
        raise ValueError(f"sensitive must be one or several of {known}, each once; got {sensitive!r}.")
    return names


def binary_target(column: pd.Series[Any], values: Mapping[str, int], name: str) -> pd.Series[int]:
    """A raw label column as 0/1 integers.

    Raises ValueError if a value is not a key of ``values``; the message lists the unknown ones.
    """
    text = column.astype(str).str.strip(_PADDING)
    unknown = sorted(set(text) - set(values))
    if unknown:
        raise ValueError(f"The label {name!r} has the values {unknown}; expected only {list(values)}.")
    return text.map(dict(values)).astype(np.int64).rename(name)


def categorical(column: pd.Series[Any], missing: str | None = None) -> pd.Series[Any]:
    """A text column with its observed values, sorted, as categories; ``missing`` replaces missing values."""
    text = column.astype(object)
    if missing is not None:
        text = text.where(column.notna(), missing)
    return text.astype(str).str.strip(_PADDING).astype("category")


def build_bunch(
    features: pd.DataFrame,
    target: pd.Series[Any],
    sensitive: pd.DataFrame,
    *,
    target_names: Sequence[str],
    descr: str,
    include_sensitive: bool = False,
    as_frame: bool = True,
    return_X_y: bool = False,
) -> Any:
    """Assemble the Bunch of one dataset, or return its data and target.

    Parameters
    ----------
    features : DataFrame of shape (n_samples, n_columns)
        Numeric and categorical columns, those that the groups come from included.
    target : Series of shape (n_samples,)
        Label 0 or 1.
    sensitive : DataFrame of shape (n_samples, n_sensitive)
        The groups. A column of ``features`` with the name of one of these leaves ``data`` unless
        ``include_sensitive``.
    target_names : sequence of str
        Meanings of the labels 0 and 1.
    descr : str
        Full description of the dataset.
    include_sensitive, as_frame, return_X_y : bool
        Arguments of the public loaders, see `RETURNS_BUNCH`.

    Returns
    -------
    bunch : Bunch, or the tuple (data, target) if ``return_X_y``
    """
    names = [str(name) for name in sensitive.columns]
    features, sensitive = features.reset_index(drop=True), sensitive.reset_index(drop=True)
    target = target.reset_index(drop=True)
    data = features if include_sensitive else features.drop(columns=names, errors="ignore")
    groups = sensitive.iloc[:, 0] if len(names) == 1 else sensitive
    frame = pd.concat([data, sensitive.drop(columns=names if include_sensitive else []), target], axis=1)
    bunch = Bunch(
        data=data if as_frame else _as_numbers(data),
        target=target if as_frame else target.to_numpy(),
        sensitive_features=groups if as_frame else _as_array(groups),
        feature_names=[str(name) for name in data.columns],
        target_names=np.array(target_names, dtype=object),
        sensitive_names=names,
        categories={
            str(name): column.cat.categories.tolist()
            for name, column in data.items()
            if isinstance(column.dtype, pd.CategoricalDtype)
        },
        frame=frame if as_frame else None,
        DESCR=descr,
    )
    return (bunch.data, bunch.target) if return_X_y else bunch


def _as_numbers(data: pd.DataFrame) -> np.ndarray:
    """Float array; a categorical column becomes the positions of its values among its categories."""
    columns = [
        column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column for _, column in data.items()
    ]
    return np.column_stack([column.to_numpy(dtype=np.float64) for column in columns])


def _as_array(groups: pd.Series[Any] | pd.DataFrame) -> np.ndarray:
    if isinstance(groups, pd.Series) and pd.api.types.is_numeric_dtype(groups.dtype):
        return groups.to_numpy()
    return groups.to_numpy(dtype=object)
