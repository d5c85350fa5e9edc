"""Estimators: thin declarations of model, objective and constraint."""

from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators.partial_parity import PartialParityClassifier, PartialParityRegressor

__all__ = ["BaseFairEstimator", "PartialParityClassifier", "PartialParityRegressor"]
