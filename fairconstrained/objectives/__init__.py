"""Objectives: scores and targets to one number."""

from fairconstrained.objectives._base import BoundObjective, Loss
from fairconstrained.objectives.losses import Hinge, Logistic, Squared, TruncatedLogistic, ZeroOne

__all__ = ["BoundObjective", "Hinge", "Logistic", "Loss", "Squared", "TruncatedLogistic", "ZeroOne"]
