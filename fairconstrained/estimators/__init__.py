"""Estimators: thin declarations of model, objective and constraint."""

from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators.baselines import PairwiseParityClassifier, RegularizedParityClassifier
from fairconstrained.estimators.partial_parity import PartialParityClassifier, PartialParityRegressor

__all__ = [
    "BaseFairEstimator",
    "PairwiseParityClassifier",
    "PartialParityClassifier",
    "PartialParityRegressor",
    "RegularizedParityClassifier",
]
