from ._report import FairnessReport as FairnessReport
from ._report import fairness_report as fairness_report
