from ._from_scores import fairness_report as fairness_report
from ._report import FairnessReport as FairnessReport
