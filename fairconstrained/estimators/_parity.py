"""Constraints and objectives of the partial parity estimators, by name."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.class_weight import compute_class_weight

from fairconstrained.constraints import (
    Constraint,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    StatisticalParity,
)
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._bounded import ANY_CONSTRAINT, TakesConstraint
from fairconstrained.estimators._stationarity import TellsKKT
from fairconstrained.estimators.linear import ModuleScores
from fairconstrained.estimators.parameters import (
    ChoosesSolver,
    HandlesSmallGroups,
    HasGroupModels,
    HasIntercept,
    HasThreshold,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.objectives import (
    F1,
    PAIR_LOSSES,
    ClassWeights,
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
    "CLASS_WEIGHT",
    "LABEL_FREE_PARITIES",
    "OBJECTIVES",
    "PARITIES",
    "ChoosesObjective",
    "OnRanks",
    "PartialParity",
    "UnderOneKappa",
    "objective_of",
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
#: Values of ``objective``: from the estimator to the objective.
OBJECTIVES: dict[str, Callable[[Any], Objective]] = {
    "logistic": lambda estimator: Logistic(),
    "truncated_logistic": lambda estimator: TruncatedLogistic(estimator.truncation),
    "hinge": lambda estimator: Hinge(),
    "squared": lambda estimator: Squared(),
    "zero_one": lambda estimator: ZeroOne(),
    "balanced_accuracy": lambda estimator: ZeroOne().weighing_classes(ClassWeights(balanced=True)),
    "f1": lambda estimator: F1(),
    "auc": lambda estimator: PairwiseAUC(estimator.auc_loss, estimator.auc_interval),
}


#: Allowed values of ``class_weight``.
CLASS_WEIGHT = [dict, StrOptions({"balanced"}), None]


def objective_of(estimator: Any) -> Objective:
    """Return the objective of a classifier that chooses one: by name or as it is, with the weights of the classes."""
    named = OBJECTIVES[estimator.objective](estimator) if isinstance(estimator.objective, str) else estimator.objective
    if estimator.class_weight is None:
        return named
    classes = _class_weights(estimator.class_weight, estimator.classes_)
    return named if classes.is_even else named.weighing_classes(classes)


def _class_weights(class_weight: Mapping[Hashable, float] | str | None, classes: np.ndarray) -> ClassWeights:
    """The weights of the classes of a fit; raises ValueError for those of other classes, or negative ones."""
    if isinstance(class_weight, str):
        return ClassWeights((1.0,) * classes.size, balanced=True)
    factors = compute_class_weight(class_weight, classes=classes, y=classes)
    if not (factors.min() > 0 and np.isfinite(factors).all()):
        raise ValueError(f"class_weight must be positive and finite for all classes, got {class_weight!r}.")
    return ClassWeights(tuple(factors.tolist()))


@with_parameters
class ChoosesObjective(BaseFairEstimator):
    """Classifiers that leave the choice of the objective to the user.

    Parameters
    ----------
    objective : str or Objective, default="logistic"
        Loss that is minimised: "logistic", "truncated_logistic", "hinge", "squared", "zero_one", "balanced_accuracy",
        "f1" or "auc". "zero_one" is a smoothed error rate, followed by an exact choice of the intercepts; it trades
        calibrated probabilities for accuracy. "balanced_accuracy" is the mean of the error rates of both classes, and
        "f1" minus the F1 score of the positive class, in the same way. "auc" is the mean loss of the differences
        between the scores of positives and negatives; as these do not depend on the intercept, one shift of all scores
        is then chosen for the least training error within the bounds. Or an objective of `fairconstrained.objectives`,
        such as ``CostMatrix([[0, 1], [5, 0]])`` or a `~fairconstrained.objectives.DecisionUtility`.
    class_weight : dict, "balanced" or None, default=None
        Factors by class with which rows count in the *objective*; only their ratio matters. "balanced": both classes
        weigh alike in total. Rates and metrics that constraints bound are those of the rows as they are, unlike with
        ``sample_weight``. With ``objective="auc"`` it matters in the choice of the shift only.
    truncation : float, default=0.5
        The ``a`` of the truncated logistic loss ``a log(1 + l / a)``.
    auc_loss : {"logistic", "hinge", "quadratic"}, default="logistic"
        Loss of a pair for ``objective="auc"``: ``log(1 + exp(-x))``, ``max(1 - x, 0)`` or ``(1 - x)^2 / 2``.
    auc_interval : pair of floats, default=(0.0, 1.0)
        False positive rates over which ``objective="auc"`` computes the area: (0, 0.1) uses only the tenth of the
        negatives that have the highest scores.
    """

    objective: str | Objective = parameter("logistic", [StrOptions(set(OBJECTIVES)), Objective])
    class_weight: Mapping[Hashable, float] | str | None = parameter(None, CLASS_WEIGHT)
    truncation: float = parameter(0.5, [Interval(Real, 0, None, closed="neither")])
    auc_loss: str = parameter("logistic", [StrOptions(set(PAIR_LOSSES))])
    auc_interval: Any = parameter((0.0, 1.0), check=one_interval)

    def _objective(self) -> Objective:
        return objective_of(self)


@with_parameters
class OnRanks:
    """Parameters of estimators that compare the ranks of groups.

    Parameters
    ----------
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Interval ``[alpha, beta)`` of ranks within a group, 0 being the top: (0, 0.2) compares the 20 % of every group
        that have the highest scores. A list is a union of disjoint intervals; a dict has an interval, or a union, for
        every group.
    normalize : bool, default=True
        Whether the gap is divided by the length of the interval. False bounds the rank gap ``|F_g - F_g'|`` itself, by
        ``kappa``, wherever one of the two ranks lies in the interval. Not used by "group_auc".
    surrogate : {"smoothstep", "logistic", "ramp"}, default="smoothstep"
        Smooth function in place of the indicator in the solver.
    surrogate_width : float or "auto", default="auto"
        Width of the surrogate in units of the score. "auto": the default solver chooses and narrows it; 1, as in the
        paper, for the others.
    n_levels : int or "auto", default="auto"
        Number of ranks p at which statistical parity is imposed at first; "auto" is 10. The default solver adds more.
    """

    interval: Any = parameter((0.0, 1.0))
    normalize: bool = parameter(True, ["boolean"])
    surrogate: str = parameter("smoothstep", [StrOptions(set(SURROGATES))])
    surrogate_width: float | str = parameter("auto", [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})])
    n_levels: int | str = parameter("auto", [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})])


@with_parameters
class PartialParity(
    TakesConstraint,
    TellsKKT,
    ModuleScores,
    OnRanks,
    HasThreshold,
    HasGroupModels,
    HasIntercept,
    HandlesSmallGroups,
    Iterates,
    ChoosesSolver,
):
    """The parameters and constraints that classifier and regressor share.

    Parameters
    ----------
    solver : str, default="auto"
        "auto" takes the first of these solvers that suits the problem. "cross_fitted" takes linear scores of 9 to 5,000
        features and constraints on rates of decisions whose compared cells all have 100 rows or more, or of 9 to 1,000
        features and constraints on losses and AUCs if the smallest cell has 50 rows and more, but fewer than eight for
        each feature. "span" takes linear scores of 9 to 1,000 features, if all groups share the coefficients, and any
        constraints but those on AUCs. "augmented_lagrangian" takes the rest, but "adam_lagrangian" takes modules with
        dropout or batch normalisation, which need mini-batches. These four bound the reported metric, and so does
        "proxy_lagrangian". "idca", "switching_subgradient" and "stochastic_idca" (mini-batches) follow the paper and
        bound its surrogate; "penalized_subgradient" has no bound.
    max_iter : int or None, default=None
        Outer iterations of the solver; None is the solver's own default: 50 for "cross_fitted", "span" and
        "augmented_lagrangian", 100 for "idca", 20 for "stochastic_idca", 10000 for "switching_subgradient".
    """

    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("statistical_parity", ANY_CONSTRAINT)

    _constraint_names = tuple(PARITIES)

    def _constraint_named(self, name: str) -> Constraint:
        notion = PARITIES[name]
        return notion(**{option: getattr(self, option) for option in notion().get_params()})


@with_parameters
class UnderOneKappa(StartsWarm):
    """Parameters of estimators that are fitted under the one kappa that the user gives.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the gap *measured on the training data* by the function of `fairconstrained.metrics` for
        ``constraint``, in [0, 1], or [0, 1/2] for "group_auc". With ``solver="auto"`` the fitted model keeps it up to
        the metric's granularity, or `fit` warns and ``status_`` is ``"infeasible"``. None: unconstrained, for
        comparison.
    """

    kappa: float | None = parameter(0.05, [Interval(Real, 0, 1, closed="both"), None], kw_only=False)
