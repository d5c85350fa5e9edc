"""Rows of a part as they can be computed with, and what has to be known about them elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp
from pandas.api.types import infer_dtype
from sklearn.utils import check_array
from sklearn.utils.validation import _get_feature_names

from fairconstrained.checks.inputs import as_table, telling_columns
from fairconstrained.features import NUMBERS, narrowed
from fairconstrained.tables.table import Table

__all__ = ["Described", "checked_part", "joined_columns"]

#: Kinds of values, by the names that pandas infers, of which those of different parts are never equal.
_KINDS = {"string": "text", "integer": "numbers", "floating": "numbers", "boolean": "booleans"}


class Described(NamedTuple):
    """Rows of one part without their features."""

    n_rows: int
    n_features: int
    dtype: np.dtype
    #: Names of the features, if they have any.
    names: tuple[str, ...] | None
    #: Arguments of `fit` with an entry for every row, by name; a DataFrame each.
    columns: dict[str, pd.DataFrame]


def checked_part(X: Any, columns: dict[str, Any]) -> tuple[Any, Described]:
    """Features of a part as they can be computed with, and what there is to know about its rows.

    Parameters
    ----------
    X : ndarray, DataFrame, CSR array or Table of shape (n_rows, n_features)
        There may be no rows.
    columns : dict
        Arguments of `fit` with an entry for every row; those that are None are left out.

    Raises
    ------
    ValueError
        If there are no numbers, or columns of another length.
    """
    if isinstance(X, Table):
        names = X.names
    else:
        found = _get_feature_names(X)
        names = None if found is None else tuple(found)
        with telling_columns(X):
            X = check_array(
                X, accept_sparse="csr", dtype=NUMBERS, ensure_min_samples=0, ensure_all_finite=False, input_name="X"
            )
        X = narrowed(sp.csr_array(X)) if sp.issparse(X) else X
    given = {name: _frame(name, value) for name, value in columns.items() if value is not None}
    for name, frame in given.items():
        if len(frame) != X.shape[0]:
            raise ValueError(f"{name} has {len(frame)} rows and X has {X.shape[0]}; every row needs one.")
    return X, Described(X.shape[0], X.shape[1], X.dtype, names, given)


def joined_columns(parts: Sequence[Described], part: str) -> tuple[np.dtype, dict[str, Any]]:
    """Type of the numbers of all parts, and the columns of all rows.

    Parameters
    ----------
    part : str
        Word for a part in messages, such as "process".

    Raises
    ------
    ValueError
        If parts differ in their features or columns, or have no rows; the message says which.
    """
    first = parts[0]
    for number, other in enumerate(parts):
        if other.names != first.names:
            raise ValueError(
                f"the columns of X in {part} {number} are {_listed(other)}, and in {part} 0 {_listed(first)}; give all "
                "parts the same."
            )
        if other.n_features != first.n_features:
            raise ValueError(
                f"X has {other.n_features} columns in {part} {number} and {first.n_features} in {part} 0; give all "
                "parts the same."
            )
        if other.columns.keys() != first.columns.keys():
            raise ValueError(
                f"{part} {number} has {sorted(other.columns)} and {part} 0 has {sorted(first.columns)}; pass the same "
                "arguments everywhere."
            )
    if not sum(other.n_rows for other in parts):
        raise ValueError(f"no {part} has any rows.")
    dtype = np.result_type(*(other.dtype for other in parts))
    present = {number: other for number, other in enumerate(parts) if other.n_rows}
    columns = {name: {number: other.columns[name] for number, other in present.items()} for name in first.columns}
    return dtype, {name: _joined(name, frames, part) for name, frames in columns.items()}


def _frame(name: str, values: Any) -> pd.DataFrame:
    if sp.issparse(values):
        values = pd.DataFrame.sparse.from_spmatrix(values)  # type: ignore[attr-defined]
    if len(values) == 0:
        return pd.DataFrame(values)
    return as_table(values) if name == "sensitive_features" else pd.DataFrame(np.asarray(values))


def _joined(name: str, by_part: dict[int, pd.DataFrame], part: str) -> Any:
    """One column as an array, several as a DataFrame; so are groups, as an array of strings takes long to encode."""
    frames = list(by_part.values())
    first = frames[0].columns
    if all(frame.shape[1] == 1 for frame in frames):
        frames = [frame.set_axis(first, axis=1) for frame in frames]  # whatever its name is
    for frame in frames:
        if list(frame.columns) != list(first):
            raise ValueError(
                f"the columns of {name} are {list(frame.columns)} in one {part} and {list(first)} in another; give all "
                "parts the same."
            )
    for column in range(len(first)):
        _check_kinds(name, {number: frame.iloc[:, column] for number, frame in by_part.items()}, part)
    whole = pd.concat(frames, ignore_index=True)
    return whole.iloc[:, 0].to_numpy() if whole.shape[1] == 1 and name != "sensitive_features" else whole


def _check_kinds(name: str, by_part: dict[int, pd.Series], part: str) -> None:
    """Raise a ValueError if a column is text in one part and not in another: equal labels or groups would differ."""
    inferred = {number: infer_dtype(np.asarray(values)) for number, values in by_part.items()}
    places = {_KINDS[kind]: number for number, kind in inferred.items() if kind in _KINDS}
    if "text" in places and len(places) > 1:
        found = " and ".join(f"{kind} in {part} {number}" for kind, number in places.items())
        raise ValueError(f"{name} has {found}; give all parts values of one type.")


def _listed(part: Described) -> str:
    return "without names" if part.names is None else f"{list(part.names)}"
