"""Warnings and errors that belong to fairness rather than to scikit-learn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sklearn.exceptions import ConvergenceWarning

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "ConvergenceWarning",
    "CostlyBoundWarning",
    "FairnessWarning",
    "IncompatibleProblem",
    "NewRowsWarning",
    "StopTraining",
]


class FairnessWarning(UserWarning):
    """Something the user asked for holds only vacuously, or not as they may believe."""


class NewRowsWarning(FairnessWarning):
    """A bound is kept on the training rows, and by the estimate of the fit it is not kept on new ones."""


class CostlyBoundWarning(FairnessWarning):
    """A bound takes most of what a model has above always predicting the more frequent class, or the mean."""


class IncompatibleProblem(ValueError):
    """A solver needs a view that a term of the problem does not offer."""


class StopTraining(Exception):
    """Raised by a callback to end the training of an iterative solver; what has been learnt is kept.

    Parameters
    ----------
    params : ndarray of shape (n_params,), optional
        Parameters of an earlier record to end with; None is the last ones.
    """

    def __init__(self, params: np.ndarray | None = None) -> None:
        super().__init__()
        self.params = params
