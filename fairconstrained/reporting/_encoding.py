"""Labels, decisions and scores of a report as numbers, of two classes or of several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairconstrained.checks.messages import shortened, warn_user
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics.classes import checked_class_scores
from fairconstrained.metrics.validation import check_binary_labels, check_labels, check_scores, check_true_labels

__all__ = ["Encoded", "decided", "encoded"]

#: Share of positive decisions from which on a threshold between 0 and 1 is none of scores that are above 1.
_NEARLY_ALL = 0.95


class Encoded(NamedTuple):
    """Labels, decisions and scores of the rows of a report; fields as of `ReportRows`."""

    y_true: np.ndarray
    y_pred: np.ndarray
    y_score: np.ndarray | None
    labels: tuple[str, ...]
    has_probabilities: bool
    classes: tuple[Any, ...] = ()
    threshold: float = 0.0
    are_log_odds: bool = True


def encoded(
    y_true: Any,
    y_score: Any,
    y_pred: Any,
    threshold: float | None,
    pos_label: Any,
    has_probabilities: bool | None,
    classes: Sequence[Any] | None,
    are_log_odds: bool | None,
) -> Encoded:
    """Validate and encode; one label of several is told from all others where scores are its own."""
    several = _several_classes(y_true, y_pred, classes)
    if several and pos_label is not None and pos_label not in several:
        raise ValueError(f"pos_label={pos_label!r} is not among the labels {shortened(several)}.")
    if several and (pos_label is None or np.ndim(y_score) == 2):
        return _of_classes(several, y_true, y_score, y_pred, has_probabilities)
    positive, names = check_true_labels(y_true, pos_label)
    scores = None if y_score is None else check_scores(y_score, positive)
    if has_probabilities is None:
        has_probabilities = scores is not None and _are_probabilities(scores, threshold)
    if are_log_odds is None:
        are_log_odds = scores is None or has_probabilities or not _are_points(scores, threshold)
    if threshold is None:
        threshold = 0.0 if are_log_odds else np.nan
    if y_pred is not None:
        known = check_binary_labels(y_true, y_pred, pos_label)
        positive, decisions, names = known.y_true, known.y_pred.astype(int), known.names
    else:
        assert scores is not None
        if np.isnan(threshold):
            raise ValueError(
                f"y_score goes from {scores.min():g} to {scores.max():g}, so these are neither probabilities nor, as "
                "a rule, log-odds: pass as threshold the score above which a decision is positive (0 says that they "
                "are log-odds), or the decisions as y_pred."
            )
        decisions = decided(scores, threshold)
        _warn_of_units(scores, decisions, threshold)
    return Encoded(
        positive.astype(int),
        decisions,
        scores,
        names,
        has_probabilities,
        threshold=threshold,
        are_log_odds=are_log_odds,
    )


def decided(scores: np.ndarray, threshold: float = 0.0) -> np.ndarray:
    """The class of the largest score, or whether the score of the positive one exceeds the threshold."""
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > threshold).astype(int)


def _several_classes(y_true: Any, y_pred: Any, classes: Sequence[Any] | None) -> tuple[Any, ...]:
    """The classes in sorted order, if there are more than two; empty otherwise."""
    if classes is not None:
        known = list(classes)
    else:
        columns = check_labels(y_true, y_true if y_pred is None else y_pred)
        known = np.unique(np.concatenate([pd.unique(column) for column in columns])).tolist()
    return tuple(known) if len(known) > 2 else ()


def _of_classes(
    classes: tuple[Any, ...], y_true: Any, y_score: Any, y_pred: Any, has_probabilities: bool | None
) -> Encoded:
    known = None if y_score is None else checked_class_scores(y_true, y_score, classes)
    if y_score is not None and known is None:
        raise ValueError(
            f"a report is about class labels: there are {len(classes)} labels, and y_score has no column for each of "
            "them. Pass the scores of all classes, in sorted order, or pos_label, the class that the scores speak for. "
            "In place of numbers, such as targets of a regression, pass whether they exceed a value, such as y > 100, "
            "and that value as threshold."
        )
    scores = None if known is None else known[0]
    if has_probabilities is None:
        has_probabilities = scores is not None and scores.min() >= 0 and np.allclose(scores.sum(axis=1), 1)
    if y_pred is not None:
        decisions = np.searchsorted(classes, y_pred)
    else:
        assert scores is not None
        decisions = decided(scores)
    return Encoded(
        np.searchsorted(classes, y_true), decisions, scores, tuple(map(str, classes)), has_probabilities, classes
    )


def _warn_of_units(scores: np.ndarray, decisions: np.ndarray, threshold: float) -> None:
    """Warn where the threshold seems to be in other units than the scores, such as 0.5 for percentages."""
    low, high = scores.min(), scores.max()
    is_one_of_probabilities = 0 < threshold < 1 and low >= 0 and high > 1
    are_probabilities = low >= 0 and high <= 1 and low < high
    if (is_one_of_probabilities and decisions.mean() > _NEARLY_ALL) or (are_probabilities and threshold >= 1):
        warn_user(
            f"y_score goes from {low:g} to {high:g}, and with threshold={threshold:g} {decisions.mean():.0%} of the "
            "decisions are positive. Give the threshold in the units of the scores, such as 0.5 for probabilities and "
            "50 for percentages.",
            FairnessWarning,
        )


def _are_points(scores: np.ndarray, threshold: float | None) -> bool:
    """Whether scores are neither probabilities nor log-odds, such as points from 0 to 100.

    A threshold of 0 says that they are log-odds.
    """
    return threshold != 0 and scores.min() >= 0 and scores.max() > 1


def _are_probabilities(scores: np.ndarray, threshold: float | None) -> bool:
    """Whether all scores are in [0, 1]; probabilities are not compared with 0, so that is an error."""
    if scores.min() < 0 or scores.max() > 1:
        return False
    if not scores.any():  # log-odds of a constant model, unless the threshold is one of probabilities
        return bool(threshold)
    if np.isin(scores, (0.0, 1.0)).all():
        raise ValueError(
            "y_score holds nothing but 0 and 1, so these are decisions: pass them as y_pred, and y_score=None."
        )
    if not threshold:
        raise ValueError(
            "all of y_score is in [0, 1], so these are probabilities, and nearly all of them exceed 0, the threshold "
            "of log-odds. Pass threshold=0.5 (or where you decide), or log-odds instead of probabilities."
        )
    return True
