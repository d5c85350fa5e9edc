"""Rows of a report: labels, scores, decisions, groups and weights, validated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit

from fairconstrained.checks.inputs import as_table
from fairconstrained.groups import is_membership
from fairconstrained.metrics import PercentileIntervals
from fairconstrained.metrics.validation import (
    GroupedRows,
    check_binary_labels,
    check_groups,
    check_scores,
    check_threshold,
    check_true_labels,
)

__all__ = ["ReportRows", "ShownRows"]

# scikit-learn's log loss keeps this distance from 0 and 1 as well
_NEAREST = np.finfo(np.float64).eps


@dataclass(frozen=True, eq=False)
class ReportRows:
    """The rows of a report; build it with :meth:`of`.

    Parameters
    ----------
    y_true, y_pred : ndarray of int, of shape (n_samples,)
        1 for the positive label, 0 for the other.
    y_score : ndarray of float, of shape (n_samples,), or None
        Scores as given; None for a report of decisions.
    sensitive_features : DataFrame of shape (n_samples, n_features)
    sample_weight : ndarray of shape (n_samples,) or None
    grouped : GroupedRows
        Group and weight of every row.
    threshold : float
        Scores above it are positive decisions, unless decisions were given.
    interval : pair of floats, list of pairs, dict or None
        As given.
    labels : tuple of two str
        Names of the negative and the positive label.
    has_probabilities : bool
        Whether the scores are probabilities; they are log-odds otherwise.
    """

    y_true: np.ndarray
    y_pred: np.ndarray
    y_score: np.ndarray | None
    sensitive_features: pd.DataFrame
    sample_weight: np.ndarray | None
    grouped: GroupedRows
    threshold: float
    interval: Any
    labels: tuple[str, str]
    has_probabilities: bool

    @classmethod
    def of(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike | None,
        *,
        sensitive_features: Any,
        sample_weight: npt.ArrayLike | None = None,
        y_pred: npt.ArrayLike | None = None,
        threshold: float = 0.0,
        pos_label: Any = None,
        interval: Any = None,
        labels: tuple[str, str] | None = None,
        has_probabilities: bool | None = None,
    ) -> Self:
        """Validate; None for ``labels`` are those of ``y_true``, for ``has_probabilities`` the scores tell."""
        if y_score is None and y_pred is None:
            raise ValueError("a report needs y_score, or y_pred for a report of decisions without scores.")
        if np.size(y_true) == 0:
            raise ValueError("a report needs rows, and y_true is empty.")
        positive, names = check_true_labels(y_true, pos_label)
        threshold = check_threshold(threshold)
        scores = None if y_score is None else check_scores(y_score, positive)
        if has_probabilities is None:
            has_probabilities = scores is not None and _are_probabilities(scores, threshold)
        if y_pred is not None:
            known = check_binary_labels(y_true, y_pred, pos_label)
            positive, decisions, names = known.y_true, known.y_pred, known.names
        else:
            assert scores is not None
            decisions = scores > threshold
        frame = _features(sensitive_features)
        grouped = check_groups(frame, sample_weight, positive.size)
        if grouped.n_groups < 2:
            raise ValueError(f"a report compares groups, and there is only one: {grouped.labels[0]!r}.")
        if interval is not None:
            PercentileIntervals.parse(interval, grouped.labels)
        return cls(
            y_true=positive.astype(int),
            y_pred=decisions.astype(int),
            y_score=scores,
            sensitive_features=frame,
            sample_weight=None if sample_weight is None else grouped.weights,
            grouped=grouped,
            threshold=threshold,
            interval=interval,
            labels=labels or names,
            has_probabilities=has_probabilities,
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.y_true.size

    @property
    def sizes(self) -> np.ndarray:
        """Number of rows of every group."""
        return np.bincount(self.grouped.codes, minlength=self.grouped.n_groups)

    @property
    def log_odds(self) -> np.ndarray | None:
        """Log-odds of the positive label, what losses read."""
        if self.y_score is None or not self.has_probabilities:
            return self.y_score
        return np.asarray(logit(np.clip(self.y_score, _NEAREST, 1 - _NEAREST)))

    @property
    def probabilities(self) -> np.ndarray | None:
        """Probability of the positive label."""
        if self.y_score is None or self.has_probabilities:
            return self.y_score
        return np.asarray(expit(self.y_score))

    @property
    def signed_decisions(self) -> np.ndarray:
        """1 for a positive decision, -1 for the other: scores for metrics that compare scores with 0."""
        return 2.0 * self.y_pred - 1.0

    @property
    def score_name(self) -> str:
        """Name of an axis of the scores."""
        return "predicted probability" if self.has_probabilities else "score"

    @property
    def interval_of_codes(self) -> Any:
        """The interval with the codes of the groups for their names."""
        if not isinstance(self.interval, dict):
            return self.interval
        return {code: self.interval[label] for code, label in enumerate(self.grouped.labels)}

    def among(self, codes: npt.ArrayLike, names: dict[int, str]) -> ShownRows:
        """The rows of some groups, under other names: what a Display needs of a report."""
        kept = np.isin(self.grouped.codes, codes)
        named = pd.Series(self.grouped.codes[kept]).map(names).rename("group").to_frame()
        interval = self.interval
        if isinstance(interval, dict):
            interval = {names[code]: self.interval_of_codes[code] for code in names}
        return ShownRows(
            y_true=self.y_true[kept],
            y_score=None if self.y_score is None else self.y_score[kept],
            sensitive_features=named,
            sample_weight=None if self.sample_weight is None else self.sample_weight[kept],
            interval=interval,
            score_name=self.score_name,
        )


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Rows as ``from_report`` of the Displays reads them."""

    y_true: np.ndarray
    y_score: np.ndarray | None
    sensitive_features: pd.DataFrame
    sample_weight: np.ndarray | None
    interval: Any
    score_name: str


def _are_probabilities(scores: np.ndarray, threshold: float) -> bool:
    """Whether all scores are in [0, 1]; probabilities are not compared with 0, so that is an error."""
    if scores.min() < 0 or scores.max() > 1:
        return False
    if np.isin(scores, (0.0, 1.0)).all() and not scores.min() == scores.max() == 0:
        raise ValueError(
            "y_score holds nothing but 0 and 1, so these are decisions: pass them as y_pred, and y_score=None."
        )
    if threshold == 0:
        raise ValueError(
            "all of y_score is in [0, 1], so these are probabilities, and with threshold=0.0 nearly every decision "
            "would be positive. Pass threshold=0.5 (or where you decide), or log-odds instead of probabilities."
        )
    return True


def _features(sensitive_features: Any) -> pd.DataFrame:
    """The sensitive features as a table whose rows are numbered and whose columns have names."""
    table = as_table(sensitive_features)
    if is_membership(table):
        raise ValueError(
            "sensitive_features is a table of booleans, which says which groups a row belongs to. A report compares "
            "groups that do not overlap: pass one column, or strings instead of booleans to compare all combinations "
            "of the columns, e.g. sensitive_features.astype(str)."
        )
    frame = table.reset_index(drop=True)
    unnamed = isinstance(frame.columns, pd.RangeIndex) or None in list(frame.columns)
    names = (
        ["group"]
        if unnamed and frame.shape[1] == 1
        else [f"feature {name}" if isinstance(name, int) else str(name) for name in frame.columns]
    )
    return frame.set_axis(names, axis=1)
