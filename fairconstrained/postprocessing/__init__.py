"""Post-processing: scores of a finished model, adjusted."""

from fairconstrained.postprocessing.score_shift import ScoreShiftPostprocessor

__all__ = ["ScoreShiftPostprocessor"]
