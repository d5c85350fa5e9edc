"""Validation of the metrics' input: labels, scores, groups and weights become plain arrays, or a readable error."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.utils import check_array, check_consistent_length, column_or_1d

from fairconstrained.checks.inputs import check_group_of_every_row, refuse_masked
from fairconstrained.checks.messages import is_number, shortened, shortened_table, warn_user
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.groups import Groups, Unions
from fairconstrained.metrics.cell_means import mean_by_cell

__all__ = [
    "NAN_INSTEAD",
    "BinaryLabels",
    "GroupedRows",
    "OnEmpty",
    "check_binary_labels",
    "check_cells",
    "check_groups",
    "check_labels",
    "check_option",
    "check_predictions",
    "check_scores",
    "check_threshold",
    "check_true_labels",
    "have_other_labels",
]

OnEmpty = Literal["raise", "nan"]
#: End of messages about empty cells, which scorers and certificates show as well, where NaN would be no answer.
NAN_INSTEAD = "Called by itself with on_empty='nan', the metric is NaN here."


@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The group and weight of every row."""

    groups: Groups
    #: Non-negative, with a positive sum in every group.
    weights: np.ndarray  # of shape (n_samples,)

    @property
    def codes(self) -> np.ndarray:
        """Group of every row, or part of groups that overlap; ndarray of int, of shape (n_samples,)."""
        return self.groups.codes

    @property
    def labels(self) -> tuple[Hashable, ...]:
        """The names of the groups."""
        return self.groups.names

    @property
    def unions(self) -> Unions | None:
        """The groups, if they overlap."""
        return self.groups.unions

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.labels)

    @property
    def n_parts(self) -> int:
        """Number of the parts that codes count."""
        return len(self.groups.labels)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, int]:
        """``(codes, weights, n_groups)``, the arguments every array function takes."""
        return self.codes, self.weights, self.n_groups

    @property
    def index(self) -> pd.Index:
        """The labels as an index; combinations of several columns stay tuples."""
        return pd.Index(self.labels, name="group", tupleize_cols=False)

    def gap(self, value: float, on_empty: OnEmpty = "raise") -> float:
        """Return a gap between the groups; of a single group it is NaN, with a warning unless NaN was asked for."""
        if self.n_groups > 1:
            return float(value)
        if on_empty != "nan":
            warn_user(
                f"The value is NaN: there is only one group, {shortened(self.labels).strip('[]')}, so there is nothing "
                "to compare. In a cross-validation, take folds in which every group has rows.",
                FairnessWarning,
            )
        return np.nan

    def means(self, values: np.ndarray, labels: np.ndarray | None = None) -> np.ndarray:
        """Return the weighted means of the rows' values in the groups; NaN where there are no rows.

        Parameters
        ----------
        values : ndarray of shape (n_samples,)
        labels : ndarray of bool, of shape (n_samples,), optional
            Label of every row; rows with and without it have means of their own.

        Returns
        -------
        means : ndarray of shape (1, n_groups), or (2, n_groups) with ``labels``
            The rows whose label is False come first.
        """
        cells = self.codes if labels is None else self.codes + self.n_parts * labels
        return mean_by_cell(values, cells, self.weights, (1 if labels is None else 2, self.n_parts), self.unions)

    def table(self, **columns: Any) -> pd.DataFrame:
        """Return one row per group: its number of rows, its weight, and the given columns."""
        sizes = {
            "n_samples": self.groups.sums(np.ones(self.codes.size)).astype(int),
            "weight": self.groups.sums(self.weights),
        }
        return pd.DataFrame(sizes | columns, index=self.index)


class BinaryLabels(NamedTuple):
    """Labels as booleans, True for the positive one, with the names to print for negative and positive."""

    y_true: np.ndarray
    y_pred: np.ndarray
    names: tuple[str, str]


def check_option(name: str, value: str, allowed: Collection[str]) -> None:
    """Raise a ValueError unless ``value`` is one of ``allowed``."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {sorted(allowed)}; got {value!r}.")


def check_threshold(threshold: Any) -> float:
    """A finite number; raises ValueError otherwise."""
    if not is_number(threshold):
        raise ValueError(f"threshold must be a finite number, in units of the scores; got {threshold!r}.")
    return float(threshold)


def check_groups(
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None,
    n_samples: int | None = None,
    overlapping: bool = False,
) -> GroupedRows:
    """Encode the groups and check the weights against ``n_samples`` rows; None: as many as have a group.

    With ``overlapping``, a table of booleans says which groups a row belongs to; otherwise its columns are combined.
    `GroupedRows` have been checked, for those who ask many times, and bring their own weights.
    """
    if isinstance(sensitive_features, GroupedRows):
        return sensitive_features
    groups = Groups.of(sensitive_features, overlapping)
    n_samples = groups.codes.size if n_samples is None else n_samples
    check_group_of_every_row(groups.codes.size, n_samples)
    if sample_weight is None:
        return GroupedRows(groups, np.ones(n_samples))
    refuse_masked(sample_weight=sample_weight)
    weights = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},); got {weights.shape}.")
    if weights.min() < 0:
        raise ValueError("sample_weight must not be negative.")
    rows = GroupedRows(groups, weights)
    if not rows.table()["weight"].all():
        raise ValueError(
            f"sample_weight sums to zero in a group; leave such a group out.\n{shortened_table(rows.table())}"
        )
    return rows


def check_scores(y_score: npt.ArrayLike, y_true: npt.ArrayLike | None = None) -> np.ndarray:
    """Return the scores, finite and float64, one for each row; ``y_true`` only has to have as many rows."""
    if _is_checked(y_score):
        scores = y_score
    else:
        refuse_masked(y_score=y_score)
        _refuse_strings(y_score, "y_score")
        scores = check_array(y_score, ensure_2d=False, dtype=np.float64, input_name="y_score")
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.ndim != 1:
        raise ValueError(
            f"y_score must have one score per row; got shape {scores.shape}. "
            "Pass the column of the positive class, e.g. predict_proba(X)[:, 1]."
        )
    check_consistent_length(y_true, scores)
    return scores


def check_labels(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Two columns of labels of the same length and kind, without missing values.

    Raises ValueError also if each column holds two labels, and not the same two, such as 1, 2 and 0, 1.
    """
    actual, predicted = _label_columns(y_true, y_pred)
    if have_other_labels(actual, predicted):
        raise ValueError(
            f"y_true holds the labels {sorted(set(_distinct(actual)))} and y_pred {sorted(set(_distinct(predicted)))}; "
            "write both in the same two labels. To compare one label with all others, pass it as pos_label."
        )
    return actual, predicted


def _label_columns(y_true: npt.ArrayLike, y_pred: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    actual, predicted = _label_column(y_true, "y_true"), _label_column(y_pred, "y_pred")
    check_consistent_length(actual, predicted)
    if actual.size == 0:
        raise ValueError("y_true and y_pred are empty; a metric needs at least one row.")
    if (actual.dtype.kind in "biuf") != (predicted.dtype.kind in "biuf"):
        raise ValueError("y_true and y_pred must both be numbers or both be other labels, such as strings.")
    return actual, predicted


def have_other_labels(actual: np.ndarray, predicted: np.ndarray) -> bool:
    """Whether two columns hold two labels each, and not the same two: one of them is written in another way."""
    labels = set(_distinct(actual)), set(_distinct(predicted))
    return len(labels[0]) == len(labels[1]) == 2 and labels[0] != labels[1]


def check_binary_labels(y_true: npt.ArrayLike, y_pred: npt.ArrayLike, pos_label: Any = None) -> BinaryLabels:
    """Tell the positive label from the negative one, in any encoding.

    Raises ValueError if there are more than two labels and no ``pos_label``, it is not one of them, or a single label
    leaves open whether it is the positive one.
    """
    actual, predicted = (check_labels if pos_label is None else _label_columns)(y_true, y_pred)
    positive, names = _name_labels("y_true and y_pred", [*_distinct(actual), *_distinct(predicted)], pos_label)
    return BinaryLabels(actual == positive, predicted == positive, names)


def check_predictions(y_true: npt.ArrayLike | None, y_pred: npt.ArrayLike, pos_label: Any = None) -> BinaryLabels:
    """`check_binary_labels` where only the predictions count, so that ``y_true`` may be None."""
    predicted = _label_column(y_pred, "y_pred")
    return check_binary_labels(predicted if y_true is None else y_true, predicted, pos_label)


def check_true_labels(y_true: npt.ArrayLike | None, pos_label: Any = None) -> tuple[np.ndarray, tuple[str, str]]:
    """`check_binary_labels` where there are no predictions.

    Returns
    -------
    positive : ndarray of bool, of shape (n_samples,)
    names : tuple of two str
        Negative and positive label, for messages.
    """
    if y_true is None:
        raise ValueError("y_true must be given: this metric compares rows of equal label.")
    actual = _label_column(y_true, "y_true")
    positive, names = _name_labels("y_true", _distinct(actual), pos_label)
    return actual == positive, names


def check_cells(
    rates: np.ndarray, condition: np.ndarray, rows: GroupedRows, names: tuple[str, str], on_empty: OnEmpty
) -> None:
    """Raise on cells of group and condition without rows, printing the counts of all cells.

    Parameters
    ----------
    rates : ndarray
        Rates of the cells that are compared, in any shape; NaN in empty ones.
    condition : ndarray of bool, of shape (n_samples,)
    names : tuple of two str
        Headings of the counts of ``condition`` false and true.
    """
    check_option("on_empty", on_empty, ("raise", "nan"))
    if on_empty == "nan" or rows.n_groups == 1 or not np.isnan(rates).any():
        return
    there = rows.weights > 0
    counts = np.stack([rows.groups.sums(there & (condition == value)) for value in (False, True)], axis=1).astype(int)
    table = pd.DataFrame(counts, index=rows.index, columns=list(names))
    raise ValueError(
        "a cell that the metric compares has no rows (of positive weight). Merge small groups, or use more data. "
        f"{NAN_INSTEAD} Rows per cell:\n{shortened_table(table)}"
    )


def _is_checked(scores: Any) -> TypeGuard[np.ndarray]:
    """Whether there is nothing that `check_array` could find; it takes longer than many a metric."""
    return (
        type(scores) is np.ndarray
        and (scores.dtype, scores.ndim) == (np.float64, 1)
        and scores.size > 0
        and bool(np.isfinite(scores).all())
    )


def _refuse_strings(values: Any, name: str) -> None:
    """Raise a ValueError for strings, which scikit-learn would read as numbers where it can."""
    entries = np.asarray(values).ravel()
    if entries.dtype.kind not in "USO":
        return
    text = next((entry for entry in entries if isinstance(entry, (str, bytes))), None)
    if text is not None:
        raise ValueError(
            f"{name} holds strings such as {str(text)!r}; a score is a number, e.g. of decision_function(X) or "
            "predict_proba(X)[:, 1]. Metrics of labels take them as y_pred."
        )


def _label_column(labels: npt.ArrayLike, name: str) -> np.ndarray:
    if type(labels) is np.ndarray and labels.ndim == 1 and labels.dtype.kind in "biu":
        return labels
    refuse_masked(**{name: labels})
    column = pd.Series(column_or_1d(labels)).infer_objects()
    if column.isna().any():
        missing = f"{column.isna().sum()} of {column.size} rows"
        raise ValueError(f"{name} contains NaN or missing values in {missing}; drop these rows.")
    values = column.to_numpy()
    if values.dtype.kind == "f" and not np.array_equal(values, np.floor(values)):
        raise ValueError(f"{name} holds continuous values; pass labels, such as whether they exceed a threshold.")
    return values


def _distinct(labels: np.ndarray) -> list[Any]:
    if labels.dtype.kind in "biu" and labels.size:  # two labels are found faster than any number of them
        ends = labels.min(), labels.max()
        if np.all((labels == ends[0]) | (labels == ends[1])):
            return [ends[0].item(), ends[1].item()]
    return pd.unique(labels).tolist()


def _name_labels(what: str, labels: list[Any], pos_label: Any) -> tuple[Any, tuple[str, str]]:
    """The positive label, of more than two the one given, and the names to print for the negative and the positive."""
    observed = list(dict.fromkeys(labels))
    if len(observed) > 2 and pos_label is None:
        raise ValueError(
            f"{what} must hold two labels; got {len(observed)}: {observed[:5]}"
            f"{' ...' if len(observed) > 5 else ''}. To compare one of them with all others, pass it as pos_label, or "
            "whether the label is this one."
        )
    positive = _positive_label(observed, pos_label)
    others = [label for label in observed if label != positive]
    return positive, (f"{others[0]}" if len(others) == 1 else f"not {positive}", f"{positive}")


def _positive_label(observed: list[Any], pos_label: Any) -> Any:
    if pos_label is not None:
        if len(observed) > 1 and pos_label not in observed:
            raise ValueError(f"pos_label={pos_label!r} is not among the labels {observed}.")
        return pos_label
    if len(observed) == 2:
        return max(observed)
    if observed[0] in (0, 1, -1):
        return 1
    raise ValueError(f"the only label is {observed[0]!r}; pass pos_label to say which label is the positive one.")
