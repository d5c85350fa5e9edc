"""Gaps between groups in who is ranked above whom within a query."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array

from fairconstrained.checks.queries import check_queries, query_pairs
from fairconstrained.metrics.validation import check_groups, check_option, check_scores

__all__ = ["compared_cells", "kinds_of_pairs", "pair_accuracies", "pairwise_ranking_gap"]

#: Whether a better document of group a above a worse one of group b counts, by ``pairs``.
PAIRS = {"between": lambda a, b: a != b, "within": lambda a, b: a == b, "all": lambda a, b: np.full(a.shape, True)}


def compared_cells(pairs: str, cells: np.ndarray, n_groups: int) -> np.ndarray:
    """Return whether each cell ``better * n_groups + worse`` is compared; boolean, of the shape of ``cells``."""
    check_option("pairs", pairs, PAIRS)
    return PAIRS[pairs](cells // n_groups, cells % n_groups)


def kinds_of_pairs(found: np.ndarray, codes: np.ndarray, n_groups: int) -> tuple[np.ndarray, np.ndarray]:
    """The cells ``better * n_groups + worse`` that pairs are in, and for every pair which of them."""
    return np.unique(codes[found[:, 0]] * n_groups + codes[found[:, 1]], return_inverse=True)


def pair_accuracies(
    scores: np.ndarray, found: np.ndarray, kinds: tuple[np.ndarray, np.ndarray], labels: tuple[Hashable, ...]
) -> pd.DataFrame:
    """Number of pairs and share that is ranked right, by the groups of the better and of the worse document."""
    numbers, places = kinds
    counts = np.bincount(places, minlength=numbers.size)
    right = np.bincount(places, scores[found[:, 0]] > scores[found[:, 1]], minlength=numbers.size) / counts
    names = [(labels[n // len(labels)], labels[n % len(labels)]) for n in numbers.tolist()]
    index = pd.MultiIndex.from_tuples(names, names=["better", "worse"])
    return pd.DataFrame({"n_pairs": counts, "accuracy": right}, index=index)


def pairwise_ranking_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    qid: Any,
    sensitive_features: Any,
    pairs: Literal["between", "within", "all"] = "between",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Largest gap between the shares of pairs that are ranked right, by the groups of their two documents.

    .. math:: A_{a > b} = P(s_i > s_j \mid y_i > y_j, \; i \in a, \; j \in b, \text{ of one query})

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Relevance, as numbers; a larger one is better.
    y_score : array-like of shape (n_samples,)
        Scores of the documents. A pair of equal scores counts as ranked wrong.
    qid : array-like of shape (n_samples,)
        Query of every document.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every document.
    pairs : {"between", "within", "all"}, default="between"
        Pairs that are compared: of documents of different groups, of the same group, or all.
    return_groups : bool, default=False
        Whether to return the table as well.

    Returns
    -------
    gap : float
        Gap in [0, 1]. It is NaN for a single group, with a `FairnessWarning`, and where there are fewer than two kinds
        of pairs to compare.
    table : DataFrame
        One row for each group of the better document and group of the worse one that have pairs, whatever ``pairs``:
        ``n_pairs``, ``accuracy``. Only if ``return_groups``.

    Raises
    ------
    ValueError
        If scores are not finite, ``y_true`` holds no numbers, ``qid`` has missing values, lengths differ, or ``pairs``
        is unknown.

    References
    ----------
    .. [1] H. Narasimhan, A. Cotter, M. Gupta, S. Wang, "Pairwise Fairness for Ranking and Regression", AAAI 2020.

    Examples
    --------
    >>> from fairconstrained.metrics import pairwise_ranking_gap
    >>> groups = ["a", "b", "a", "b"]
    >>> pairwise_ranking_gap([1, 0, 0, 1], [2.0, 1.0, 4.0, 3.0], qid=[0, 0, 1, 1], sensitive_features=groups)
    1.0
    """
    scores = check_scores(y_score, y_true)
    relevance = check_array(y_true, ensure_2d=False, dtype=None, input_name="y_true")
    if relevance.dtype.kind not in "iufb":
        raise ValueError(f"y_true must hold numbers, the relevance of every document; got {relevance.dtype} values.")
    groups = check_groups(sensitive_features, None, scores.size)
    found, n_groups = query_pairs(relevance, check_queries(qid, scores.size)), len(groups.labels)
    kinds = kinds_of_pairs(found, groups.codes, n_groups)
    table = pair_accuracies(scores, found, kinds, groups.labels)
    compared = table["accuracy"].to_numpy()[compared_cells(pairs, kinds[0], n_groups)]
    gap = groups.gap(np.ptp(compared) if compared.size > 1 else np.nan)
    return (gap, table) if return_groups else gap
