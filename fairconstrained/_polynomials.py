"""Polynomials about another point."""

from __future__ import annotations

import numpy as np

__all__ = ["taylor_shifted"]


def taylor_shifted(coefficients: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Coefficients of ``q(x + shift)`` from those of ``q(x)``, by Horner's scheme.

    Parameters
    ----------
    coefficients : ndarray of shape (degree + 1, ...)
        The constant first.
    shift : ndarray
        Broadcasts with one coefficient.

    Returns
    -------
    shifted : ndarray of the shape of ``coefficients``
    """
    shifted = coefficients.copy(order="K")
    degree = len(shifted) - 1
    for start in range(degree):
        for m in reversed(range(start, degree)):
            shifted[m] += shift * shifted[m + 1]
    return shifted
