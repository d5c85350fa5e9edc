"""Displays in the style of scikit-learn; matplotlib is imported when one is drawn.

Install it with ``pip install 'fairconstrained[plot]'``.
"""

from fairconstrained.plotting._pareto import ParetoFrontDisplay
from fairconstrained.plotting._roc import SubsetRoc, SubsetRocDisplay
from fairconstrained.plotting._score_curve import ScoreCurveDisplay
from fairconstrained.plotting._score_density import GroupDensity, ScoreDensityDisplay

__all__ = [
    "GroupDensity",
    "ParetoFrontDisplay",
    "ScoreCurveDisplay",
    "ScoreDensityDisplay",
    "SubsetRoc",
    "SubsetRocDisplay",
]
