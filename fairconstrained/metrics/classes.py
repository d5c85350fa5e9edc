"""Several classes as one question for each of them: this class, or any other."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd
from scipy.special import logsumexp
from sklearn.utils import check_array, check_consistent_length

from fairconstrained.metrics.validation import have_other_labels

__all__ = [
    "about_class",
    "checked_class_scores",
    "class_log_loss",
    "class_margins",
    "class_questions",
    "over_classes",
]

_Metric = TypeVar("_Metric", bound=Callable[..., Any])

#: Margin of the class that is predicted where another class has the same score.
_TIE = float(np.finfo(float).tiny)


def class_margins(scores: np.ndarray) -> np.ndarray:
    r"""Excess of the score of every class over the largest score of the other classes.

    .. math:: m_k = s_k - \max_{j \ne k} s_j

    is positive where class k is predicted, and only there. Of classes with equal scores the first one is predicted, so
    its margin counts as positive.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)

    Returns
    -------
    margins : ndarray of shape (n_samples, n_classes)
    """
    by_class = np.ascontiguousarray(scores.T)  # numpy is slower where rows are short
    best = by_class.argmax(axis=0), np.arange(len(scores))
    largest, others = by_class[best], by_class.copy()
    others[best] = -np.inf
    margins = by_class - largest
    margins[best] = np.maximum(largest - others.max(axis=0), _TIE)
    return margins.T


def class_log_loss(scores: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    r"""Multinomial log loss :math:`\log \sum_k e^{s_k} - s_y` of every row.

    Parameters
    ----------
    scores : ndarray of shape (n_samples, n_classes)
    numbers : ndarray of shape (n_samples,)
        Number of the class of every row.

    Returns
    -------
    losses : ndarray of shape (n_samples,)
    """
    own = np.take_along_axis(scores, numbers.astype(int)[:, None], axis=1)[:, 0]
    return logsumexp(scores, axis=1) - own


def checked_class_scores(
    y_true: Any, y_score: Any, classes: Sequence[Any] | None = None
) -> tuple[np.ndarray, np.ndarray, list[Any]] | None:
    """Scores of more than two labels with the numbers of the true ones, and the labels; None for other scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
    y_score : array-like of shape (n_samples, n_labels)
        A column for every label, in sorted order.
    classes : sequence, default=None
        All labels, sorted, if some may have no rows; None: those of ``y_true``.

    Raises
    ------
    ValueError
        If there is another number of labels than there are columns.
    """
    if np.ndim(y_score) != 2 or np.shape(y_score)[1] <= 2:
        return None
    scores = check_array(y_score, dtype=np.float64, input_name="y_score")
    actual = _labels(y_true)
    check_consistent_length(actual, scores)
    labels, numbers = np.unique([] if actual is None else actual, return_inverse=True)
    if classes is not None and actual is not None:
        labels = np.asarray(classes)
        numbers = np.searchsorted(labels, actual)
    if labels.size != scores.shape[1]:
        raise ValueError(
            f"y_score has {scores.shape[1]} columns, and y_true {labels.size} labels; give one column for each label, "
            "in sorted order, as decision_function and predict_proba return them."
        )
    return scores, numbers, labels.tolist()


def over_classes(metric: _Metric, response: str) -> _Metric:
    """Let a metric of two labels take more of them: then it is the largest gap of a label against all others.

    Two labels, and any number of them with a ``pos_label``, go to the metric as they are.

    Parameters
    ----------
    metric : callable
        Takes true labels, and predicted ones or scores.
    response : {"predict", "decision_function", "predict_proba"}
        Meaning of the second argument, see `MetricInfo`. Of scores, the metric of a label gets the `class_margins`; of
        probabilities, the column of the label.
    """
    names = list(inspect.signature(metric).parameters)[:2]

    @functools.wraps(metric)
    def measured(*given: Any, **options: Any) -> Any:
        by_name = dict(zip(names, given, strict=False)) | {name: options[name] for name in names if name in options}
        if len(given) > 2 or len(by_name) < 2 or options.get("pos_label") is not None:
            return metric(*given, **options)
        questions = class_questions(response, *(by_name[name] for name in names))
        if not questions:
            return metric(*given, **options)
        others = {name: value for name, value in options.items() if name not in names}
        found = []
        for label, (actual, asked) in questions.items():
            with about_class(label):
                found.append(metric(actual, asked, **others))
        if not options.get("return_groups"):
            return float(np.max(found))
        values, tables = zip(*found, strict=True)
        return float(np.max(values)), pd.concat(tables, keys=list(questions), names=["class"])

    return cast(_Metric, measured)


#: For every label the two arguments of a metric of two labels; empty where there are no more than two.
_Questions = dict[Any, tuple[Any, np.ndarray]]


def class_questions(response: str, y_true: Any, y_pred: Any, classes: Sequence[Any] | None = None) -> _Questions:
    """Return for every one of several labels the arguments with which a metric asks: this label, or any other?

    Parameters
    ----------
    response : {"predict", "decision_function", "predict_proba"}
        Meaning of the second argument, see `over_classes`.
    y_true : array-like of shape (n_samples,) or None
        True labels.
    y_pred : array-like of shape (n_samples,), or (n_samples, n_labels) for scores and probabilities
    classes : sequence, default=None
        All labels, sorted, if some may have no rows; None: those of the rows.

    Returns
    -------
    questions : dict
        Whether the true label is this one, and the decision, margin or probability, by label. Empty for two labels.
    """
    return _SPLITS[response](y_true, y_pred, classes)


@contextmanager
def about_class(label: Any) -> Iterator[None]:
    """Say in errors about values which label was the positive one."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"class {label!r} against all others: {error}") from error


def _by_label(y_true: Any, y_pred: Any, classes: Sequence[Any] | None) -> _Questions:
    """Questions about predicted labels; ``y_true`` may be None."""
    found = [_labels(column) for column in (y_true, y_pred) if column is not None]
    columns = [column for column in found if column is not None]
    kinds = {(column.shape, column.dtype.kind in "biuf") for column in columns}
    if len(columns) < len(found) or len(kinds) > 1:
        return {}  # for the metric to complain about
    known = [pd.unique(column) for column in columns] if classes is None else [np.asarray(classes)]
    labels = np.unique(np.concatenate(known))
    if labels.size <= 2 or (classes is None and have_other_labels(columns[0], columns[-1])):
        return {}
    actual: list[Any] = [None] * labels.size if y_true is None else [columns[0] == label for label in labels]
    return {label: (of, columns[-1] == label) for label, of in zip(labels.tolist(), actual, strict=True)}


def _labels(column: Any) -> np.ndarray | None:
    """Labels as a vector, None where they are none: of another shape, missing or continuous."""
    values = np.asarray(column)
    if values.dtype.kind in "biu" and values.ndim == 1:
        return values
    if values.ndim != 1 or pd.isna(values).any():
        return None
    is_continuous = values.dtype.kind == "f" and not np.array_equal(values, np.floor(values))
    return None if is_continuous else values


def _by_column(
    y_true: Any, y_score: Any, classes: Sequence[Any] | None, of: Callable[[np.ndarray], np.ndarray]
) -> _Questions:
    """Questions about scores with a column for every label; ``y_true`` may be None."""
    if y_true is None and np.ndim(y_score) == 2 and np.shape(y_score)[1] > 2:
        scores = check_array(y_score, dtype=np.float64, input_name="y_score")
        return {number: (None, column) for number, column in enumerate(of(scores).T)}
    checked = None if y_true is None else checked_class_scores(y_true, y_score, classes)
    if checked is None:
        return {}
    scores, numbers, labels = checked
    return {label: (numbers == k, column) for k, (label, column) in enumerate(zip(labels, of(scores).T, strict=True))}


_SPLITS: dict[str, Callable[[Any, Any, Sequence[Any] | None], _Questions]] = {
    "predict": _by_label,
    "decision_function": functools.partial(_by_column, of=class_margins),
    "predict_proba": functools.partial(_by_column, of=np.asarray),
}
