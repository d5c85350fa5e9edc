"""The objectives in plain numpy, restated from the formulas of the docstrings, with their slopes for a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

__all__ = ["LOSSES", "Objective", "of_classes", "of_pairs", "of_rows", "of_target", "pairs_of_labels", "truncated"]

#: Half the width over which the corner of the hinge is rounded, and the a of the truncated logistic losses.
_ROUNDED = 0.01

#: A loss and its slope, of margins (or, of "squared", of differences).
Function = Callable[[np.ndarray], np.ndarray]


def _hinge(margins: np.ndarray) -> np.ndarray:
    slack = 1 - margins
    rounded = np.clip(slack + _ROUNDED, 0, 2 * _ROUNDED) ** 2 / (4 * _ROUNDED)
    return rounded + np.maximum(slack - _ROUNDED, 0)


def _hinge_slope(margins: np.ndarray) -> np.ndarray:
    return -np.clip((1 - margins + _ROUNDED) / (2 * _ROUNDED), 0, 1)


def _logistic(margins: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -margins)


def _logistic_slope(margins: np.ndarray) -> np.ndarray:
    return -expit(-margins)


def truncated(a: float) -> tuple[Function, Function]:
    """``a log(1 + l / a)`` of the logistic loss l."""
    return (
        lambda margins: a * np.log1p(_logistic(margins) / a),
        lambda margins: _logistic_slope(margins) / (1 + _logistic(margins) / a),
    )


#: Convex losses of a margin, and their slopes.
LOSSES: dict[str, tuple[Function, Function]] = {
    "logistic": (_logistic, _logistic_slope),
    "hinge": (_hinge, _hinge_slope),
    "quadratic": (lambda margins: (1 - margins) ** 2 / 2, lambda margins: margins - 1),
    # of a margin y s with y = -1 or 1, (s - y)^2 = (y s - 1)^2
    "squared": (lambda margins: (1 - margins) ** 2 / 2, lambda margins: margins - 1),
}


@dataclass(frozen=True)
class Objective:
    """Objective without its penalty.

    Attributes
    ----------
    value, slope : callable
        Functions of the scores: a number, and its derivative with respect to every score.
    is_convex : bool
        Whether the best rescaling of scores can be found for certain.
    shifts : bool
        Whether it changes when all scores move alike.
    """

    value: Callable[[np.ndarray], float]
    slope: Callable[[np.ndarray], np.ndarray]
    is_convex: bool = True
    shifts: bool = True


def of_rows(loss: str, positive: np.ndarray, weights: np.ndarray, a: float = 0.5) -> Objective:
    """The weighted mean of the loss of every row."""
    y, shares = np.where(positive, 1.0, -1.0), weights / weights.sum()
    value, slope = truncated(a) if loss == "truncated_logistic" else LOSSES[loss]
    return Objective(
        lambda scores: float(shares @ value(y * scores)),
        lambda scores: shares * y * slope(y * scores),
        is_convex=loss != "truncated_logistic",
    )


def of_target(target: np.ndarray, weights: np.ndarray) -> Objective:
    """Half the weighted mean of squared differences."""
    shares = weights / weights.sum()
    return Objective(
        lambda scores: float(shares @ (scores - target) ** 2 / 2), lambda scores: shares * (scores - target)
    )


def pairs_of_labels(
    loss: str, positive: np.ndarray, weights: np.ndarray, interval: tuple[float, float] = (0.0, 1.0)
) -> Objective:
    """Mean loss of a positive's score minus a negative's, of the negatives at some false positive rates."""
    first, second = np.flatnonzero(positive), np.flatnonzero(~positive)
    own = weights[first] / weights[first].sum()
    function, slope_of = LOSSES[loss]

    def counted(scores: np.ndarray) -> np.ndarray:
        """The part of every negative's weight within the interval, ranks being false positive rates."""
        order = np.argsort(-scores[second], kind="stable")
        ends = np.append(0.0, np.cumsum(weights[second][order])) / weights[second].sum()
        inside = np.empty(second.size)
        inside[order] = np.diff(np.clip(ends, *interval))
        return inside / (interval[1] - interval[0])

    def value(scores: np.ndarray) -> float:
        return float(own @ function(scores[first][:, None] - scores[second]) @ counted(scores))

    def slope(scores: np.ndarray) -> np.ndarray:
        slopes = own[:, None] * slope_of(scores[first][:, None] - scores[second]) * counted(scores)
        result = np.zeros(scores.size)
        result[first], result[second] = slopes.sum(axis=1), -slopes.sum(axis=0)
        return result

    return Objective(value, slope, shifts=False)


def of_pairs(pairs: np.ndarray) -> Objective:
    """Mean logistic loss of the better document's score minus the worse one's."""
    first, second = pairs.T

    def slope(scores: np.ndarray) -> np.ndarray:
        slopes = _logistic_slope(scores[first] - scores[second]) / len(pairs)
        return np.bincount(first, slopes, scores.size) - np.bincount(second, slopes, scores.size)

    return Objective(lambda scores: float(_logistic(scores[first] - scores[second]).mean()), slope, shifts=False)


def of_classes(loss: str, codes: np.ndarray, weights: np.ndarray, classes: list[int], a: float) -> Objective:
    """Sum over classes of the mean loss of their margins; scores have a column for each class."""
    function, slope_of = truncated(a) if loss == "truncated_logistic" else LOSSES[loss]
    shares = {k: (codes == k) * weights / weights[codes == k].sum() for k in classes}

    def value(outputs: np.ndarray) -> float:
        total = 0.0
        for k, share in shares.items():
            margins = outputs[:, [k]] - np.delete(outputs, k, axis=1)
            total += float(share @ function(margins).sum(axis=1))
        return total

    def slope(outputs: np.ndarray) -> np.ndarray:
        result = np.zeros_like(outputs)
        for k, share in shares.items():
            others = np.delete(np.arange(outputs.shape[1]), k)
            slopes = share[:, None] * slope_of(outputs[:, [k]] - outputs[:, others])
            result[:, k] += slopes.sum(axis=1)
            result[:, others] -= slopes
        return result

    return Objective(value, slope, is_convex=loss != "truncated_logistic")
