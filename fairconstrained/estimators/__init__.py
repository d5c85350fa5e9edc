"""Estimators: thin declarations of model, objective and constraint."""

from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators.auc_fair import AUCFairClassifier
from fairconstrained.estimators.baselines import PairwiseParityClassifier, RegularizedParityClassifier
from fairconstrained.estimators.correlation import CorrelationPenaltyClassifier
from fairconstrained.estimators.fair_boosting import FairBoostingClassifier, FairBoostingRegressor
from fairconstrained.estimators.fair_ranker import FairRanker
from fairconstrained.estimators.group_loss import GroupLossClassifier, GroupLossRegressor
from fairconstrained.estimators.loss_parity import LossParityClassifier
from fairconstrained.estimators.minority_rate import MinorityRateClassifier
from fairconstrained.estimators.neyman_pearson import NeymanPearsonClassifier
from fairconstrained.estimators.parity_pair import ParityPairClassifier
from fairconstrained.estimators.partial_parity import PartialParityClassifier, PartialParityRegressor
from fairconstrained.estimators.rate_parity import RateParityClassifier

__all__ = [
    "AUCFairClassifier",
    "BaseFairEstimator",
    "CorrelationPenaltyClassifier",
    "FairBoostingClassifier",
    "FairBoostingRegressor",
    "FairRanker",
    "GroupLossClassifier",
    "GroupLossRegressor",
    "LossParityClassifier",
    "MinorityRateClassifier",
    "NeymanPearsonClassifier",
    "PairwiseParityClassifier",
    "ParityPairClassifier",
    "PartialParityClassifier",
    "PartialParityRegressor",
    "RateParityClassifier",
    "RegularizedParityClassifier",
]
