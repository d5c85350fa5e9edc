"""scikit-learn compatible estimators trained under fairness constraints that hold for the reported metric."""

from fairconstrained._version import __version__
from fairconstrained.estimators import (
    AUCFairClassifier,
    CorrelationPenaltyClassifier,
    FairRanker,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    RegularizedParityClassifier,
)
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning, IncompatibleProblem

__all__ = [
    "AUCFairClassifier",
    "ConvergenceWarning",
    "CorrelationPenaltyClassifier",
    "FairRanker",
    "FairnessWarning",
    "IncompatibleProblem",
    "LossParityClassifier",
    "MinorityRateClassifier",
    "NeymanPearsonClassifier",
    "PairwiseParityClassifier",
    "PartialParityClassifier",
    "PartialParityRegressor",
    "RateParityClassifier",
    "RegularizedParityClassifier",
    "__version__",
]
