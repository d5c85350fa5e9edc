"""Warnings and errors that belong to fairness rather than to scikit-learn."""

from sklearn.exceptions import ConvergenceWarning

__all__ = ["ConvergenceWarning", "FairnessWarning", "IncompatibleProblem", "StopTraining"]


class FairnessWarning(UserWarning):
    """Something the user asked for holds only vacuously, or not as they may believe."""


class IncompatibleProblem(ValueError):
    """A solver needs a view that a term of the problem does not offer."""


class StopTraining(Exception):
    """Raised by a callback to end the training of a stochastic solver; what has been learnt is kept."""
