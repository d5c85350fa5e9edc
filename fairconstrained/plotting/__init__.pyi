from ._pareto import ParetoFrontDisplay as ParetoFrontDisplay
from ._roc import SubsetRoc as SubsetRoc
from ._roc import SubsetRocDisplay as SubsetRocDisplay
from ._score_curve import ScoreCurveDisplay as ScoreCurveDisplay
from ._score_density import GroupDensity as GroupDensity
from ._score_density import ScoreDensityDisplay as ScoreDensityDisplay
