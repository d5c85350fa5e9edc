"""Several classes as one question for each of them: this class, or any other."""

from __future__ import annotations

import numpy as np

__all__ = ["class_margins"]

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
    rows, best = np.arange(len(scores)), scores.argmax(axis=1)
    others = scores.copy()
    others[rows, best] = -np.inf
    largest = scores[rows, best]
    margins = scores - largest[:, None]
    margins[rows, best] = np.maximum(largest - others.max(axis=1), _TIE)
    return margins
