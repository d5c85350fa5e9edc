"""scikit-learn compatible estimators trained under fairness constraints that hold for the reported metric."""

from fairconstrained.certification import Certificate, CertifiedFairClassifier, certify, gap_interval
from fairconstrained.estimators import (
    AUCFairClassifier,
    CorrelationPenaltyClassifier,
    FairBoostingClassifier,
    FairBoostingRegressor,
    FairRanker,
    GroupLossClassifier,
    GroupLossRegressor,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    RegularizedParityClassifier,
)
from fairconstrained.estimators.saving import skops_trusted_types
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning, IncompatibleProblem
from fairconstrained.heads import FairHeadClassifier, FairHeadRegressor
from fairconstrained.paths import (
    AUCFairClassifierCV,
    FairnessPath,
    FairnessPathCV,
    PartialParityClassifierCV,
    fairness_path,
)
from fairconstrained.reporting import FairnessReport, fairness_report
from fairconstrained.version import __version__

__all__ = [
    "AUCFairClassifier",
    "AUCFairClassifierCV",
    "Certificate",
    "CertifiedFairClassifier",
    "ConvergenceWarning",
    "CorrelationPenaltyClassifier",
    "FairBoostingClassifier",
    "FairBoostingRegressor",
    "FairHeadClassifier",
    "FairHeadRegressor",
    "FairRanker",
    "FairnessPath",
    "FairnessPathCV",
    "FairnessReport",
    "FairnessWarning",
    "GroupLossClassifier",
    "GroupLossRegressor",
    "IncompatibleProblem",
    "LossParityClassifier",
    "MinorityRateClassifier",
    "NeymanPearsonClassifier",
    "PairwiseParityClassifier",
    "ParityPairClassifier",
    "PartialParityClassifier",
    "PartialParityClassifierCV",
    "PartialParityRegressor",
    "RateParityClassifier",
    "RegularizedParityClassifier",
    "__version__",
    "certify",
    "fairness_path",
    "fairness_report",
    "gap_interval",
    "skops_trusted_types",
]
