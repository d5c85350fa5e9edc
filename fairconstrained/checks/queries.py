"""Pairs of documents that a query orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["check_queries", "query_pairs", "rows_by_number"]


def check_queries(qid: Any, n_samples: int) -> np.ndarray:
    """Number of the query of every row, in any order; ndarray of shape (n_samples,).

    Raises ValueError if there are none, not one for each row, or some are missing.
    """
    if qid is None:
        raise ValueError("qid is missing: pass the query of every row, such as qid=np.repeat([0, 1], 50).")
    values = np.asarray(qid)
    if values.shape != (n_samples,):
        raise ValueError(f"qid must have one query for each of the {n_samples} rows; got shape {values.shape}.")
    missing = int(pd.isna(values).sum())
    if missing:
        raise ValueError(f"qid has NaN or missing values in {missing} of {n_samples} rows; name all queries.")
    return pd.factorize(values, sort=True)[0]


def rows_by_number(numbers: np.ndarray) -> list[np.ndarray]:
    """The rows that have each number, ascending, for an ndarray of shape (n_samples,)."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def query_pairs(y: np.ndarray, queries: np.ndarray) -> np.ndarray:
    """All pairs of rows of one query of which the first has the larger target.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
    queries : ndarray of shape (n_samples,)
        Integers, in any order.

    Returns
    -------
    pairs : ndarray of int, of shape (n_pairs, 2)
        Numbers of the rows, by query.
    """
    found = []
    for rows in rows_by_number(queries):
        targets = y[rows]
        first, second = np.nonzero(targets[:, None] > targets)
        found.append(np.stack([rows[first], rows[second]], axis=1))
    return np.concatenate(found) if found else np.empty((0, 2), dtype=np.int64)
