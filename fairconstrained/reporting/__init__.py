"""Comparison of the groups under a model, in tables and on one self-contained page."""

from fairconstrained.reporting._report import FairnessReport, fairness_report

__all__ = ["FairnessReport", "fairness_report"]
