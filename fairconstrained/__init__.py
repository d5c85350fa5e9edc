"""scikit-learn compatible estimators trained under fairness constraints that hold for the reported metric."""

from fairconstrained._version import __version__
from fairconstrained.estimators import PartialParityClassifier, PartialParityRegressor
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning, IncompatibleProblem

__all__ = [
    "ConvergenceWarning",
    "FairnessWarning",
    "IncompatibleProblem",
    "PartialParityClassifier",
    "PartialParityRegressor",
    "__version__",
]
