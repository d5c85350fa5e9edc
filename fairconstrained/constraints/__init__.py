"""Constraints: one file per notion of fairness."""

from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._some_rows import on_some_rows
from fairconstrained.constraints.auc_gap import AUCGap
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.constraints.demographic_parity import DemographicParity
from fairconstrained.constraints.equal_opportunity import EqualOpportunity
from fairconstrained.constraints.equalized_odds import EqualizedOdds
from fairconstrained.constraints.group_auc import GroupAUC
from fairconstrained.constraints.group_rates import GroupRates
from fairconstrained.constraints.loss_parity import LossParity
from fairconstrained.constraints.minority_share import MinorityShare
from fairconstrained.constraints.pairwise_auc import PairwiseParity
from fairconstrained.constraints.parity_pair import ParityPair
from fairconstrained.constraints.quadratic_auc_gap import QuadraticAUCGap
from fairconstrained.constraints.rate_gap import RateGap
from fairconstrained.constraints.statistical_parity import StatisticalParity

__all__ = [
    "AUCGap",
    "BoundConstraint",
    "Constraint",
    "DemographicParity",
    "EqualOpportunity",
    "EqualizedOdds",
    "GroupAUC",
    "GroupRates",
    "LossParity",
    "MinorityShare",
    "PairwiseParity",
    "ParityPair",
    "QuadraticAUCGap",
    "RateGap",
    "StatisticalParity",
    "on_some_rows",
]
