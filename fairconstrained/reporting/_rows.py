"""Rows of a report: labels, scores, decisions, groups and weights, validated once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit, softmax

from fairconstrained.checks.inputs import as_table, in_memory, warn_of_another_order
from fairconstrained.checks.messages import alike, shortened, warn_user
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.groups import GroupEncoder, Groups, is_membership
from fairconstrained.metrics import PercentileIntervals
from fairconstrained.metrics.classes import class_log_loss, class_margins
from fairconstrained.metrics.validation import GroupedRows, check_groups, check_threshold
from fairconstrained.reporting._encoding import decided, encoded
from fairconstrained.reporting._names import UNNAMED, GroupNames

__all__ = ["FEW", "ReportRows", "ShownRows"]

#: Groups of fewer rows than this are named as small.
FEW = 30
#: Largest number of small groups, and of values of a column, for which nobody is advised to cut numbers into bands.
_MANY = 10
#: Columns of numbers and of times, as `pandas.api.types.infer_dtype` names them.
_MEASURED = {"integer", "floating", "mixed-integer-float", "decimal", "date", "datetime", "datetime64", "timedelta64"}

# scikit-learn's log loss keeps this distance from 0 and 1 as well
_NEAREST = np.finfo(np.float64).eps
#: The number that a text such as "25-40", "<25" or "(25, 40]" begins with, and the side of it that is meant.
_NUMBER = re.compile(r"\s*[(\[]?\s*([<>≤≥]?)=?\s*(-?(?:inf|\d+(?:\.\d+)?))")
_SIDES = {"<": -1, "≤": -1, ">": 1}
#: Year and month, with which dates as text begin; `pandas.to_datetime` reads codes such as 1059 as dates as well.
_DATE = r"\d{4}-\d\d"


@dataclass(frozen=True, eq=False)
class ReportRows:
    """The rows of a report; build it with :meth:`of`."""

    #: y_true and y_pred: 1 for the positive label, 0 for the other; of more than two classes, their numbers.
    y_true: np.ndarray  # of int, of shape (n_samples,)
    y_pred: np.ndarray  # of int, of shape (n_samples,)
    #: Scores as given, of shape (n_samples, n_classes) for more than two classes; None for a report of decisions.
    y_score: np.ndarray | None  # of float, of shape (n_samples,)
    sensitive_features: pd.DataFrame  # of shape (n_samples, n_features)
    sample_weight: np.ndarray | None  # of shape (n_samples,)
    #: Group and weight of every row.
    grouped: GroupedRows
    #: Scores above it are positive decisions, unless decisions were given; NaN where it is not known.
    threshold: float
    #: Ranks that count, as the user gave them.
    interval: Any  # pair of floats, list of pairs, dict or None
    #: Names of the negative and the positive label, or of all classes.
    labels: tuple[str, ...]
    #: Whether the scores are probabilities.
    has_probabilities: bool
    #: The classes in sorted order, if there are more than two; empty otherwise.
    classes: tuple[Any, ...] = ()
    #: Probabilities of the positive label, where its score does not tell them.
    own_probabilities: np.ndarray | None = None  # of shape (n_samples,)
    #: Whether scores that are no probabilities are log-odds; points and the predictions of a regressor are not.
    are_log_odds: bool = True

    @classmethod
    def of(
        cls,
        y_true: npt.ArrayLike,
        y_score: npt.ArrayLike | None,
        *,
        sensitive_features: Any,
        sample_weight: npt.ArrayLike | None = None,
        y_pred: npt.ArrayLike | None = None,
        threshold: float | None = None,
        pos_label: Any = None,
        interval: Any = None,
        labels: tuple[str, str] | None = None,
        has_probabilities: bool | None = None,
        classes: Sequence[Any] | None = None,
        are_log_odds: bool | None = None,
    ) -> Self:
        """Validate; ``threshold`` and all that follow ``labels`` are inferred from the rows where they are None."""
        if y_score is None and y_pred is None:
            raise ValueError("a report needs y_score, or y_pred for a report of decisions without scores.")
        y_true, y_score, y_pred, sample_weight = map(in_memory, (y_true, y_score, y_pred, sample_weight))
        sensitive_features = in_memory(sensitive_features)
        given = {"y_score": y_score, "y_pred": y_pred, "sample_weight": sample_weight}
        warn_of_another_order(y_true=y_true, sensitive_features=sensitive_features, **given)
        if np.size(y_true) == 0:
            raise ValueError("a report needs rows, and y_true is empty.")
        threshold = None if threshold is None else check_threshold(threshold)
        answers = encoded(y_true, y_score, y_pred, threshold, pos_label, has_probabilities, classes, are_log_odds)
        frame = _features(sensitive_features)
        grouped = _in_order(check_groups(frame, sample_weight, answers.y_true.size), frame)
        if grouped.n_groups < 2:
            raise ValueError(
                f"a report compares groups, and there is only one: {grouped.labels[0]!r}. Pass a feature "
                "with at least two."
            )
        _warn_of_numbers(frame, grouped)
        for name, column in frame.items():
            _warn_of_spellings(f"column {name!r} of sensitive_features", "groups", column)
        _warn_of_spellings("y_true", "labels", pd.Series(np.ravel(y_true)))
        if interval is not None:
            PercentileIntervals.parse(interval, grouped.labels)
        rows = cls(
            sensitive_features=frame,
            sample_weight=None if sample_weight is None else grouped.weights,
            grouped=grouped,
            interval=interval,
            **answers._replace(labels=labels or answers.labels)._asdict(),
        )
        return rows if pos_label is None or not rows.classes else rows.by_class[pos_label]

    @cached_property
    def names(self) -> GroupNames:
        """Words for the groups."""
        return GroupNames(self.sensitive_features.columns.to_list(), self.grouped.labels)

    @cached_property
    def by_class(self) -> dict[Any, Self]:
        """The rows as those of two classes, by the one that is positive against all others; empty if there are two."""
        return {label: self._against_others(number) for number, label in enumerate(self.classes)}

    @property
    def own_label(self) -> Self:
        """The rows as those of two classes, of which each one's own is positive: right or wrong, with the same loss."""
        if not self.classes:
            return self
        scores = None
        if self.log_odds is not None:
            losses = np.maximum(class_log_loss(self.log_odds, self.y_true), np.finfo(float).tiny)
            scores = -(losses + np.log(-np.expm1(-losses)))
        return replace(
            self,
            y_true=np.ones_like(self.y_true),
            y_pred=(self.y_pred == self.y_true).astype(int),
            y_score=scores,
            labels=("wrong", "right"),
            classes=(),
            has_probabilities=False,
        )

    def _against_others(self, number: int) -> Self:
        """Return one class against all others; its score is the excess over the largest score of the others."""
        log_odds, probabilities = self.log_odds, self.probabilities
        return replace(
            self,
            y_true=(self.y_true == number).astype(int),
            y_pred=(self.y_pred == number).astype(int),
            y_score=None if log_odds is None else class_margins(log_odds)[:, number],
            own_probabilities=None if probabilities is None else probabilities[:, number],
            labels=(f"not {self.labels[number]}", self.labels[number]),
            classes=(),
            threshold=0.0,
            has_probabilities=False,
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
        """Log-odds of the positive label, what losses read; of several classes the scores that softmax reads.

        None where the scores tell none.
        """
        known = self.y_score if self.has_probabilities else self.own_probabilities
        if known is None:
            return self.y_score if self.are_log_odds else None
        inside = np.clip(known, _NEAREST, 1 - _NEAREST)
        return np.log(inside) if self.classes else np.asarray(logit(inside))

    @property
    def probabilities(self) -> np.ndarray | None:
        """Probability of the positive label, or of every class; None where the scores tell none."""
        if self.own_probabilities is not None:
            return self.own_probabilities
        if self.y_score is None or self.has_probabilities:
            return self.y_score
        if not self.are_log_odds:
            return None
        return np.asarray(softmax(self.y_score, axis=1) if self.classes else expit(self.y_score))

    @property
    def decisions_of_scores(self) -> np.ndarray | None:
        """Decisions that the scores alone would give, as `y_pred`; None where they give none."""
        if self.y_score is None or np.isnan(self.threshold):
            return None
        return decided(self.y_score, self.threshold)

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
        [UNNAMED]
        if unnamed and frame.shape[1] == 1
        else [f"feature {name}" if isinstance(name, int) else str(name) for name in frame.columns]
    )
    return frame.set_axis(names, axis=1).apply(_by_numbers)


def _warn_of_numbers(frame: pd.DataFrame, grouped: GroupedRows) -> None:
    """Warn where numbers or times have so many values that most of their groups can only be small."""
    n_small = np.count_nonzero(np.bincount(grouped.codes) < FEW)
    if n_small <= _MANY:
        return
    measured = [name for name, column in frame.items() if column.nunique() > _MANY and _is_measured(column)]
    if measured:
        warn_user(
            f"sensitive_features has {grouped.n_groups:,} groups, {n_small:,} of them with fewer than {FEW} rows, as "
            f"every value of {shortened(measured).strip('[]')} is a group. Cut numbers into bands first, for example "
            "with pandas.cut, and write the year or the decade in place of dates.",
            FairnessWarning,
        )


def _is_measured(column: pd.Series[Any]) -> bool:
    """Whether a column holds numbers or times, which in a file may be dates as text."""
    if pd.api.types.infer_dtype(column, skipna=False) in _MEASURED:
        return True
    values = pd.Series(column.unique().tolist())  # `_by_numbers` has made a categorical column of dates as text
    if pd.api.types.infer_dtype(values, skipna=False) != "string" or not values.str.match(_DATE).all():
        return False
    # in UTC, as times with several offsets, such as those of summer and winter, are an error without it
    return bool(pd.to_datetime(values, format="ISO8601", errors="coerce", utc=True).notna().all())


def _warn_of_spellings(where: str, kind: str, column: pd.Series[Any]) -> None:
    """Warn where values look alike and count as different groups or labels."""
    if message := alike(where, kind, column.unique().tolist()):
        warn_user(message, FairnessWarning)


def _in_order(grouped: GroupedRows, frame: pd.DataFrame) -> GroupedRows:
    """Sort combinations by their first column, then by the second one and so on; see `_by_numbers`."""
    first = np.unique(grouped.codes, return_index=True)[1]
    places = [GroupEncoder(frame.iloc[:, [column]]).codes[first] for column in range(frame.shape[1])]
    order = np.lexsort(places[::-1])  # by which the last of its keys comes first
    groups = Groups(np.argsort(order)[grouped.codes], tuple(grouped.labels[code] for code in order))
    return replace(grouped, groups=groups)


def _by_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Order texts by the numbers they begin with, as ages "25-40" before "100+"; other columns stay as they are."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column  # has an order of its own
    if pd.api.types.infer_dtype(column, skipna=False) != "string":
        return column
    values = column.unique().tolist()
    if not any(map(_NUMBER.match, values)):
        return column
    return column.astype(pd.CategoricalDtype(sorted(values, key=_place)))


def _place(text: str) -> tuple[float, int, str]:
    """Return the key that orders a text by the number it begins with; texts without one come last."""
    found = _NUMBER.match(text)
    if found is None:
        return np.inf, 0, text
    sign, number = found.groups()
    return float(number), _SIDES.get(sign, 0), text
