"""Width of smooth surrogates of a step, from the standard deviation of the scores."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from fairconstrained.objectives import DecisionRate
from fairconstrained.surrogates import Surrogate

__all__ = ["blurred", "is_constant"]

Smooth = TypeVar("Smooth", DecisionRate, Surrogate)


def blurred(smooth: Smooth, scores: np.ndarray, weights: np.ndarray, blur: float) -> Smooth:
    """Return the surrogate whose width is ``blur`` standard deviations of the scores.

    Constant scores are fair whatever the width is, so they leave it as it is.

    Parameters
    ----------
    smooth : DecisionRate or Surrogate
    scores, weights : ndarray of shape (n_samples,)
        The weights sum to one.
    blur : float
        Positive.
    """
    return smooth if is_constant(scores, weights) else smooth.with_blur(blur * _deviation(scores, weights))


def is_constant(scores: np.ndarray, weights: np.ndarray) -> bool:
    """Return whether scores differ by no more than rounding, whatever their unit."""
    return bool(_deviation(scores, weights) <= 1e-12 * np.abs(scores).max())


def _deviation(scores: np.ndarray, weights: np.ndarray) -> float:
    return float(np.sqrt(weights @ (scores - weights @ scores) ** 2))
