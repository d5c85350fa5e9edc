"""Heads: small models under constraints, fitted on the scores of any scikit-learn estimator."""

from fairconstrained.heads.cross_fitted import CrossFittedScores
from fairconstrained.heads.fair_head import FairHeadClassifier, FairHeadRegressor

__all__ = ["CrossFittedScores", "FairHeadClassifier", "FairHeadRegressor"]
