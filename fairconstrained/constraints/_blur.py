"""Width of smooth surrogates of a step, from the standard deviation of the scores."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from fairconstrained.objectives import DecisionRate
from fairconstrained.surrogates import Surrogate

__all__ = ["blurred", "is_constant", "within_reach"]

#: Share of the weight, as a multiple of the blur, that is within reach of a surrogate of decisions, and how many of
#: its standard deviations that is.
_SHARE, _REACH = 0.1, 2.0

Smooth = TypeVar("Smooth", DecisionRate, Surrogate)


def blurred(smooth: Smooth, scores: np.ndarray, weights: np.ndarray, blur: float) -> Smooth:
    """Return the surrogate whose width is ``blur`` standard deviations of the scores.

    Constant scores are fair whatever the width is, so they leave it as it is.

    Parameters
    ----------
    scores, weights : ndarray of shape (n_samples,)
        The weights sum to one.
    blur : float
        Positive.
    """
    return smooth if is_constant(scores, weights) else smooth.with_blur(blur * _deviation(scores, weights))


def within_reach(smooth: DecisionRate, scores: np.ndarray, weights: np.ndarray, blur: float) -> DecisionRate:
    """Return the surrogate of decisions that is `blurred`, and wider where too few scores are near the threshold of 0.

    Where the labels are separable, as with more features than rows, scores leave a gap around the threshold. Within it
    a narrow surrogate has no slope that would tell a solver which rows to move.
    """
    near = blurred(smooth, scores, weights, blur)
    distances = np.abs(scores)
    widest = _REACH * near.width * smooth.with_blur(1.0).width ** -1
    if weights[distances < widest].sum() > _SHARE * blur:
        return near  # without sorting the rows
    order = np.argsort(distances)
    first = min(int(np.searchsorted(np.cumsum(weights[order]), _SHARE * blur)), scores.size - 1)
    reaching = smooth.with_blur(float(distances[order][first]) / _REACH)
    return reaching if reaching.width > near.width else near


def is_constant(scores: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether scores differ by no more than rounding, whatever their unit."""
    return bool(_deviation(scores, weights) <= 1e-12 * np.abs(scores).max())


def _deviation(scores: np.ndarray, weights: np.ndarray) -> float:
    return float(np.sqrt(weights @ (scores - weights @ scores) ** 2))
