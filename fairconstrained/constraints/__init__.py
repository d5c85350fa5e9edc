"""Constraints: one file per notion of fairness."""

from fairconstrained.constraints._base import BoundConstraint, Constraint
from fairconstrained.constraints.demographic_parity import DemographicParity
from fairconstrained.constraints.statistical_parity import StatisticalParity

__all__ = ["BoundConstraint", "Constraint", "DemographicParity", "StatisticalParity"]
