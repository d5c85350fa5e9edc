"""Scorers that see the sensitive features, and rules for choosing among candidates of a search."""

from fairconstrained.model_selection._scorers import (
    FairnessScorer,
    get_fairness_scorer,
    get_fairness_scorer_names,
    make_fairness_scorer,
    make_performance_scorer,
)
from fairconstrained.model_selection._selection import BestFeasible, best_feasible, pareto_front

__all__ = [
    "BestFeasible",
    "FairnessScorer",
    "best_feasible",
    "get_fairness_scorer",
    "get_fairness_scorer_names",
    "make_fairness_scorer",
    "make_performance_scorer",
    "pareto_front",
]
