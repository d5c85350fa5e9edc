"""Scorers that see the sensitive features, rules for choosing a model or an interval, and a bound for new data."""

from fairconstrained.model_selection._interval import IntervalSuggestion, suggest_interval
from fairconstrained.model_selection._scorers import (
    FairnessScorer,
    get_fairness_scorer,
    get_fairness_scorer_names,
    make_fairness_scorer,
    make_performance_scorer,
)
from fairconstrained.model_selection.selection import BestFeasible, best_feasible, pareto_front

__all__ = [
    "BestFeasible",
    "FairnessScorer",
    "IntervalSuggestion",
    "best_feasible",
    "get_fairness_scorer",
    "get_fairness_scorer_names",
    "make_fairness_scorer",
    "make_performance_scorer",
    "pareto_front",
    "suggest_interval",
]
