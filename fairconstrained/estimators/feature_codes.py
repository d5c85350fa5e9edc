"""Features with missing values and categories, as numbers that trees can split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

__all__ = ["FROM_DTYPE", "FeatureCodes"]

#: Value of ``categorical_features`` for the columns of a DataFrame whose type is "category".
FROM_DTYPE = "from_dtype"


@dataclass(frozen=True)
class FeatureCodes:
    """Categories of the columns that have some, in the order of their codes."""

    #: Categories, an ndarray of shape (n_categories,), by the number of the column.
    categories: dict[int, np.ndarray]

    @classmethod
    def of(cls, X: Any, chosen: Any) -> Self:
        """The categories that occur in the columns of some rows.

        Parameters
        ----------
        X : DataFrame, array-like or sparse matrix of shape (n_samples, n_features)
        chosen : "from_dtype", sequence of str, int or bool, or None
            Which columns: those of the type "category", names, numbers, or a mask of all columns.

        Raises
        ------
        ValueError
            For a name or number that no column has, and for categories in a sparse matrix.
        """
        numbers = _columns(X, chosen)
        if not numbers:
            return cls({})
        if sp.issparse(X):
            raise ValueError("categorical_features needs a DataFrame or an array; X is sparse, and has numbers only.")
        frame = _as_frame(X)
        columns = {number: frame.iloc[:, number].astype("category").cat for number in numbers}
        return cls({n: cat.remove_unused_categories().cat.categories.to_numpy() for n, cat in columns.items()})

    def coded(self, X: Any) -> Any:
        """Rows whose categories are codes; NaN for those that are missing or were not there in `of`.

        Raises ValueError if there are strings in another column.
        """
        if sp.issparse(X):
            return X
        if not self.categories and not isinstance(X, pd.DataFrame):
            return X
        frame = _as_frame(X).copy(deep=False)
        for number, known in self.categories.items():
            if number >= frame.shape[1]:
                break  # the number of columns is wrong, which is found out later
            own = frame.iloc[:, number].astype("category").cat
            places = np.append(pd.Index(known).get_indexer(own.categories), -1).astype(float)  # the last one: missing
            places[places < 0] = np.nan
            frame[frame.columns[number]] = places[own.codes]
        _refuse_strings(frame)
        return frame


def _as_frame(X: Any) -> pd.DataFrame:
    if isinstance(X, pd.DataFrame):
        return X
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    return pd.DataFrame(np.asarray(X, dtype=object) if isinstance(X, list) else np.asarray(X))


def _columns(X: Any, chosen: Any) -> list[int]:
    """Numbers of the chosen columns."""
    if chosen is None:
        return []
    if isinstance(chosen, str):
        dtypes = _as_frame(X).dtypes if hasattr(X, "to_pandas") else getattr(X, "dtypes", ())
        return [i for i, dtype in enumerate(dtypes) if isinstance(dtype, pd.CategoricalDtype)]
    names = list(getattr(X, "columns", ()))
    n_columns = X.shape[1] if hasattr(X, "shape") else np.shape(X)[1]
    chosen = list(chosen)
    if chosen and all(isinstance(value, bool | np.bool_) for value in chosen):
        if len(chosen) != n_columns:
            raise ValueError(f"categorical_features is a mask of {len(chosen)} columns, and X has {n_columns}.")
        return np.flatnonzero(chosen).tolist()
    return sorted({_column(value, names, n_columns) for value in chosen})


def _column(value: Any, names: Sequence[Any], n_columns: int) -> int:
    if isinstance(value, str) and value in names:
        return names.index(value)
    if isinstance(value, int | np.integer) and 0 <= value < n_columns:
        return int(value)
    raise ValueError(
        f"categorical_features has {value!r}, which is neither the name nor the number of a column of X; it must be "
        f"{FROM_DTYPE!r}, None, or a sequence of names, numbers or booleans."
    )


def _refuse_strings(frame: pd.DataFrame) -> None:
    """Raise ValueError for columns that hold strings, with what to do about it."""
    found = [
        name
        for name, dtype in frame.dtypes.items()
        if not pd.api.types.is_numeric_dtype(dtype)
        and not isinstance(dtype, pd.CategoricalDtype)
        and pd.api.types.infer_dtype(frame[name], skipna=True) == "string"
    ]
    if found:
        raise ValueError(
            f"the columns {found} hold strings. Make them categories (X[name].astype('category')), or name them in "
            "categorical_features."
        )
