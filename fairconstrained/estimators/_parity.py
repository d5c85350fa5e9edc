"""What the partial parity estimators share: their constraints and objectives by name."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import (
    Constraint,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    StatisticalParity,
)
from fairconstrained.estimators._bounded import TakesConstraint
from fairconstrained.estimators._stationarity import TellsKKT
from fairconstrained.estimators.linear import ModuleScores
from fairconstrained.objectives import (
    PAIR_LOSSES,
    Hinge,
    Logistic,
    Objective,
    PairwiseAUC,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.objectives.pairwise import one_interval
from fairconstrained.surrogates import SURROGATES

__all__ = [
    "LABEL_FREE_PARITIES",
    "OBJECTIVES",
    "OBJECTIVE_CHECKS",
    "OBJECTIVE_PARAMETERS",
    "PARITIES",
    "PARITY_PARAMETERS",
    "PartialParity",
]

#: Constraints by the names that ``constraint`` may be.
PARITIES: dict[str, type[Constraint]] = {
    "statistical_parity": StatisticalParity,
    "demographic_parity": DemographicParity,
    "group_auc": GroupAUC,
    "equal_opportunity": EqualOpportunity,
    "equalized_odds": EqualizedOdds,
}
#: Those that do not ask for labels.
LABEL_FREE_PARITIES = ("statistical_parity", "demographic_parity", "group_auc")
#: What ``objective`` may be: from the estimator to the objective.
OBJECTIVES: dict[str, Callable[[Any], Objective]] = {
    "logistic": lambda estimator: Logistic(),
    "truncated_logistic": lambda estimator: TruncatedLogistic(estimator.truncation),
    "hinge": lambda estimator: Hinge(),
    "squared": lambda estimator: Squared(),
    "zero_one": lambda estimator: ZeroOne(),
    "auc": lambda estimator: PairwiseAUC(estimator.auc_loss, estimator.auc_interval),
}


#: What the parameters that describe the objective and the parity may be.
OBJECTIVE_PARAMETERS: dict[str, list[Any]] = {
    "objective": [StrOptions(set(OBJECTIVES))],
    "truncation": [Interval(Real, 0, None, closed="neither")],
    "auc_loss": [StrOptions(set(PAIR_LOSSES))],
}
#: What is more than a type about them.
OBJECTIVE_CHECKS: dict[str, Callable[[Any, str], object]] = {"auc_interval": one_interval}
PARITY_PARAMETERS: dict[str, list[Any]] = {
    "normalize": ["boolean"],
    "threshold": [Interval(Real, None, None, closed="neither")],
    "surrogate": [StrOptions(set(SURROGATES))],
    "surrogate_width": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
    "n_levels": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
}


class PartialParity(TakesConstraint, TellsKKT, ModuleScores):
    """The constraints that both estimators share."""

    _constraint_names = tuple(PARITIES)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ModuleScores._parameter_constraints,
        **TakesConstraint._parameter_constraints,
        **TellsKKT._parameter_constraints,
        **PARITY_PARAMETERS,
        "small_groups": [StrOptions({"error", "merge", "ignore"})],
    }

    def _constraint_named(self, name: str) -> Constraint:
        notion = PARITIES[name]
        return notion(**{option: getattr(self, option) for option in notion().get_params()})
