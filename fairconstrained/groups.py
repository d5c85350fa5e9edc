"""Sensitive features as groups: any column-like input becomes integer codes and readable labels."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["GroupEncoder"]

_MAX_KEYS = 2**62  # keys are 64-bit integers


class GroupEncoder:
    """Integer codes for sensitive features, in the sorted order of their observed values.

    Several columns become one group per *observed* combination, labelled by a tuple.

    Parameters
    ----------
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Strings, numbers, booleans or categories, without missing values.

    Attributes
    ----------
    codes : ndarray of shape (n_samples,)
        Group of every row, in ``0 .. n_groups - 1``.
    labels : tuple
        The value (or tuple of values) each code stands for.

    Raises
    ------
    ValueError
        If a value is missing or infinite, or the input has more than two dimensions.
    """

    def __init__(self, sensitive_features: Any) -> None:
        frame = _as_frame(sensitive_features)
        if frame.shape[1] == 1:
            codes, values = pd.factorize(frame.iloc[:, 0], sort=True)
            self.labels: tuple[Hashable, ...] = tuple(np.asarray(values).tolist())
        else:
            codes, self.labels = _combinations(frame)
        self.codes: np.ndarray = np.asarray(codes, dtype=np.int64)

    @staticmethod
    def encode(sensitive_features: Any, labels: tuple[Hashable, ...]) -> np.ndarray:
        """Codes of new rows among known ``labels``.

        Returns
        -------
        codes : ndarray of shape (n_samples,)

        Raises
        ------
        ValueError
            If a row belongs to a group that is not among ``labels``; the message names it.
        """
        seen = GroupEncoder(sensitive_features)
        position = {label: code for code, label in enumerate(labels)}
        unknown = [label for label in seen.labels if label not in position]
        if unknown:
            raise ValueError(
                f"sensitive_features contains groups that were not seen in fit: {unknown}. "
                f"Known groups: {list(labels)}."
            )
        return np.array([position[label] for label in seen.labels], dtype=np.int64)[seen.codes]


def _combinations(frame: pd.DataFrame) -> tuple[np.ndarray, tuple[Hashable, ...]]:
    """Codes and labels of the observed combinations of several columns, in lexicographic order.

    Only integers are compared: a row's key is the number whose digits are the ranks of its values, in the mixed
    radix of the columns' counts of values. Where the next digit would not fit, the keys give way to their ranks.

    Returns
    -------
    codes : ndarray of shape (n_samples,)
    labels : tuple of tuple
    """
    keys, n_keys = np.zeros(len(frame), dtype=np.int64), 1
    columns: list[tuple[np.ndarray, list[Hashable]]] = []
    for _, column in frame.items():
        ranks, values = _ranks(column)
        columns.append((ranks, values))
        if n_keys * len(values) > _MAX_KEYS:
            observed, keys = np.unique(keys, return_inverse=True)
            n_keys = len(observed)
        keys = keys * len(values) + ranks
        n_keys *= len(values)
    _, rows, codes = np.unique(keys, return_index=True, return_inverse=True)
    decoded = ([values[rank] for rank in ranks[rows].tolist()] for ranks, values in columns)
    return codes, tuple(zip(*decoded, strict=True))


def _ranks(column: pd.Series[Any]) -> tuple[np.ndarray, list[Hashable]]:
    """Rank of every value of a column among its sorted distinct ones, and these as Python scalars."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        # Combinations are ordered by the values alone, not by the order of the categories.
        column = column.astype(column.cat.categories.dtype)
    ranks, values = pd.factorize(column, sort=True)
    # A column of objects may hold NumPy scalars.
    return ranks, [value.item() if isinstance(value, np.generic) else value for value in values.tolist()]


def _as_frame(sensitive_features: Any) -> pd.DataFrame:
    if isinstance(sensitive_features, (pd.DataFrame, pd.Series)):
        frame = pd.DataFrame(sensitive_features)
    else:
        values = np.asarray(sensitive_features)
        if values.ndim not in (1, 2):
            raise ValueError(
                f"sensitive_features must be one column or a table of columns; got {values.ndim} dimensions."
            )
        frame = pd.DataFrame(values.reshape(values.shape[0], -1))
    if frame.shape[1] == 0:
        raise ValueError("sensitive_features has no columns; pass at least one column, or leave it out.")
    missing = int(frame.isna().any(axis=1).sum())
    if missing:
        raise ValueError(
            f"sensitive_features contains NaN or missing values in {missing} rows; drop those rows "
            "or give missing values a group of their own, e.g. the string 'unknown'."
        )
    numeric = frame.select_dtypes(include="number")
    if not np.isfinite(numeric.to_numpy(dtype=float)).all():
        raise ValueError("sensitive_features contains infinity; groups must be finite values.")
    return frame
