"""Objectives: scores and targets to one number."""

from fairconstrained.objectives._base import BoundLoss, BoundObjective, Loss, Objective
from fairconstrained.objectives.correlation import CorrelationPenalty
from fairconstrained.objectives.losses import Hinge, Logistic, Squared, TruncatedLogistic, ZeroOne
from fairconstrained.objectives.pairwise import PAIR_LOSSES, PairwiseAUC

__all__ = [
    "PAIR_LOSSES",
    "BoundLoss",
    "BoundObjective",
    "CorrelationPenalty",
    "Hinge",
    "Logistic",
    "Loss",
    "Objective",
    "PairwiseAUC",
    "Squared",
    "TruncatedLogistic",
    "ZeroOne",
]
