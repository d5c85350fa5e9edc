"""Fits for many values of kappa, their scores and gaps on held-out rows, and the choice of one of them."""

from fairconstrained.paths._fairness_path import fairness_path
from fairconstrained.paths._named_cv import AUCFairClassifierCV, PartialParityClassifierCV
from fairconstrained.paths._path_cv import FairnessPathCV
from fairconstrained.paths._result import FairnessPath

__all__ = ["AUCFairClassifierCV", "FairnessPath", "FairnessPathCV", "PartialParityClassifierCV", "fairness_path"]
