"""How the groups fare under a model, as tables and as one page to hand to somebody else."""

from fairconstrained.reporting._report import FairnessReport, fairness_report

__all__ = ["FairnessReport", "fairness_report"]
