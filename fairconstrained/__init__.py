"""scikit-learn compatible estimators trained under fairness constraints that hold for the reported metric."""

from fairconstrained._version import __version__
from fairconstrained.certification import Certificate, certify, gap_interval
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
from fairconstrained.paths import (
    AUCFairClassifierCV,
    FairnessPath,
    FairnessPathCV,
    PartialParityClassifierCV,
    fairness_path,
)

__all__ = [
    "AUCFairClassifier",
    "AUCFairClassifierCV",
    "Certificate",
    "ConvergenceWarning",
    "CorrelationPenaltyClassifier",
    "FairRanker",
    "FairnessPath",
    "FairnessPathCV",
    "FairnessWarning",
    "IncompatibleProblem",
    "LossParityClassifier",
    "MinorityRateClassifier",
    "NeymanPearsonClassifier",
    "PairwiseParityClassifier",
    "PartialParityClassifier",
    "PartialParityClassifierCV",
    "PartialParityRegressor",
    "RateParityClassifier",
    "RegularizedParityClassifier",
    "__version__",
    "certify",
    "fairness_path",
    "gap_interval",
]
