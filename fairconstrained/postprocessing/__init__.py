"""Post-processing: scores of a finished model, or its thresholds, adjusted."""

from fairconstrained.postprocessing.group_threshold import GroupThresholdClassifier
from fairconstrained.postprocessing.score_shift import ScoreShiftPostprocessor

__all__ = ["GroupThresholdClassifier", "ScoreShiftPostprocessor"]
