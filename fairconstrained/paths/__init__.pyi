from ._fairness_path import fairness_path as fairness_path
from ._named_cv import AUCFairClassifierCV as AUCFairClassifierCV
from ._named_cv import PartialParityClassifierCV as PartialParityClassifierCV
from ._path_cv import FairnessPathCV as FairnessPathCV
from ._result import FairnessPath as FairnessPath
