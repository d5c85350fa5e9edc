"""Objectives: functions of scores and targets to minimise."""

from fairconstrained.objectives._base import BoundLoss, BoundObjective, Loss, Objective
from fairconstrained.objectives.correlation import CorrelationPenalty
from fairconstrained.objectives.group_loss import GroupLoss
from fairconstrained.objectives.largest import BoundLargestMean, WeightedMeans
from fairconstrained.objectives.losses import (
    ROW_LOSS_OBJECTIVES,
    Absolute,
    CorrectRate,
    DecisionRate,
    ErrorRate,
    Hinge,
    Logistic,
    NegativeRate,
    PositiveRate,
    Scaled,
    Score,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.objectives.pairwise import PAIR_LOSSES, PairwiseAUC

__all__ = [
    "PAIR_LOSSES",
    "ROW_LOSS_OBJECTIVES",
    "Absolute",
    "BoundLargestMean",
    "BoundLoss",
    "BoundObjective",
    "CorrectRate",
    "CorrelationPenalty",
    "DecisionRate",
    "ErrorRate",
    "GroupLoss",
    "Hinge",
    "Logistic",
    "Loss",
    "NegativeRate",
    "Objective",
    "PairwiseAUC",
    "PositiveRate",
    "Scaled",
    "Score",
    "Squared",
    "TruncatedLogistic",
    "WeightedMeans",
    "ZeroOne",
]
