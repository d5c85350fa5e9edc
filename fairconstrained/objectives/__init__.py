"""Objectives: functions of scores and targets to minimise."""

from fairconstrained.objectives._base import BoundObjective, Objective, of_rows
from fairconstrained.objectives._loss import BoundLoss, ClassLoss, Loss
from fairconstrained.objectives.class_weights import ClassWeights
from fairconstrained.objectives.corners import Absolute, Hinge, RoundedCorner
from fairconstrained.objectives.correlation import CorrelationPenalty
from fairconstrained.objectives.cost_matrix import CostMatrix
from fairconstrained.objectives.decisions import DecisionLoss, sums_from
from fairconstrained.objectives.group_loss import GroupLoss
from fairconstrained.objectives.largest import BoundLargestMean, WeightedMeans
from fairconstrained.objectives.losses import (
    ROW_LOSS_OBJECTIVES,
    CorrectRate,
    DecisionRate,
    ErrorRate,
    Logistic,
    NegativeRate,
    PositiveRate,
    Scaled,
    Score,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.objectives.multinomial import MultinomialLogistic
from fairconstrained.objectives.pairwise import PAIR_LOSSES, PairwiseAUC
from fairconstrained.objectives.utility import F1, DecisionUtility, Utility

__all__ = [
    "F1",
    "PAIR_LOSSES",
    "ROW_LOSS_OBJECTIVES",
    "Absolute",
    "BoundLargestMean",
    "BoundLoss",
    "BoundObjective",
    "ClassLoss",
    "ClassWeights",
    "CorrectRate",
    "CorrelationPenalty",
    "CostMatrix",
    "DecisionLoss",
    "DecisionRate",
    "DecisionUtility",
    "ErrorRate",
    "GroupLoss",
    "Hinge",
    "Logistic",
    "Loss",
    "MultinomialLogistic",
    "NegativeRate",
    "Objective",
    "PairwiseAUC",
    "PositiveRate",
    "RoundedCorner",
    "Scaled",
    "Score",
    "Squared",
    "TruncatedLogistic",
    "Utility",
    "WeightedMeans",
    "ZeroOne",
    "of_rows",
    "sums_from",
]
