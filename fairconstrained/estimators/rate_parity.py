"""Classification under bounds on the groups' rates, which may be many and overlap."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.constraints import BoundConstraint, Constraint, GroupRates, RateGap
from fairconstrained.constraints.compared_groups import AUTO
from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.data import FairData
from fairconstrained.estimators._bounded import ANY_CONSTRAINT
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators._parity import CLASS_WEIGHT, objective_of
from fairconstrained.estimators._published import FollowsPaper
from fairconstrained.estimators._several_classes import TakesClasses
from fairconstrained.estimators._stationarity import TellsKKT
from fairconstrained.estimators.linear import ModuleScores
from fairconstrained.estimators.parameters import (
    HandlesSmallGroups,
    HasGroupModels,
    HasIntercept,
    Iterates,
    StartsWarm,
    parameter,
    with_parameters,
)
from fairconstrained.metrics.cell_means import RATE_NOTIONS, RATES
from fairconstrained.models import ParametricModel
from fairconstrained.objectives import Objective
from fairconstrained.problem import Problem
from fairconstrained.solvers import AdamLagrangian, SolverResult

__all__ = ["RateParityClassifier"]

#: Values of ``objective``.
_OBJECTIVES = ("logistic", "truncated_logistic", "hinge", "squared", "zero_one", "balanced_accuracy", "f1")


@with_parameters
class RateParityClassifier(
    TakesClasses,
    TellsKKT,
    ModuleScores,
    HasGroupModels,
    HasIntercept,
    HandlesSmallGroups,
    Iterates,
    StartsWarm,
    FollowsPaper,
):
    r"""Classifier with bounds on the gaps between the rates of groups.

    .. math:: \min_w \; f(h_w) + \frac{\alpha}{2} \|w\|^2
              \quad \text{s.t.} \quad |R_{g}(h_w) - R_{g'}(h_w)| \le \kappa \quad \text{for all groups } g, g',
              \qquad R_g = \frac{1}{|g|} \sum_{i \in g} r(h_w(x_i))

    for demographic parity, with the mean loss f of the rows and scores :math:`h_w` that are linear or those of a torch
    module. The rate r is the prediction itself, or a sigmoid, the smooth surrogate of the literature.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the gap that `fairconstrained.metrics.rate_gap` measures on the training data with this ``constraint``
        and ``rate``; in [0, 1], and any number of at least 0 for a hinge or a loss. With ``solver="auto"`` the fitted
        model keeps it, for the indicator up to the share of a group that one row stands for, or `fit` warns and
        ``status_`` is ``"infeasible"``. None: unconstrained, for comparison.
    constraint : str, Constraint or list of (str, Constraint), default="demographic_parity"
        Rates that are compared, and whose gap ``kappa`` bounds, by name:

        - "demographic_parity": the rates of all pairs of groups;
        - "equal_opportunity": those among the positive rows;
        - "equalized_odds": those among the positive rows, and those among the negative ones;
        - "intersectional": the rate of every group and that of all rows. For a hinge, which is a loss, only the excess
          of a group over all rows is bounded;
        - "predictive_equality", the false positive rates; "error_rate_parity" (or "accuracy_parity"), the shares of
          wrong predictions; "predictive_parity", the shares of positives among positive predictions;
        - "demographic_parity_ratio", "equal_opportunity_ratio", "equalized_odds_ratio", "predictive_equality_ratio",
          "error_rate_ratio", "accuracy_ratio", "predictive_parity_ratio": the smaller of two groups' rates is at least
          ``1 - kappa`` times the larger; the four-fifths rule is "demographic_parity_ratio" with ``kappa=0.2``;
        - "conditional_parity" (or "conditional"): the rates within each of the ``strata`` that are passed to `fit`;
        - "bounded_group_loss": every group's mean log loss is at most ``kappa``.

        Or a constraint of `fairconstrained.constraints`, or several of them with names, see `PartialParityClassifier`;
        then their own parameters count, and ``kappa``, ``rate``, ``agg`` and ``min_group_size`` are ignored.
    rate : {"indicator", "sigmoid", "hinge"}, default="indicator"
        The function r of a score s and a label y, -1 or +1: whether s is positive, so that ``kappa`` bounds the gap of
        the predictions themselves; :math:`1 / (1 + e^{-s})`, the smooth surrogate of the literature, for which `fit`
        warns where the predictions' own gap exceeds ``kappa``; or :math:`\max(1 - ys, 0)`.
    agg : {"max", "mean"}, default="max"
        "mean", only of "intersectional" with a hinge, bounds the mean over the groups, in one constraint.
    objective : str or Objective, default="logistic"
        Loss that is minimised: "logistic", "truncated_logistic", "hinge", "squared", "zero_one", "balanced_accuracy" or
        "f1", see `PartialParityClassifier`. "zero_one" with ``rate="indicator"`` is for accuracy.
    class_weight : dict, "balanced" or None, default=None
        Factors by class with which rows count in the objective, see `PartialParityClassifier`.
    truncation : float, default=0.5
        The ``a`` of the truncated logistic loss ``a log(1 + l / a)``.
    min_group_size : int or "auto", default="auto"
        Rows that every group (or its rows of a label that is compared) needs to take part. "auto": as many as it takes
        for no row to count more than ``max(kappa, 0.02)`` in the gap; the indicator needs these whatever is given.
    solver : str, default="auto"
        "auto" is as in `PartialParityClassifier` for linear scores ("cross_fitted", "span" or
        "augmented_lagrangian"). For modules it is "adam_lagrangian", except with an objective that mini-batches cannot
        estimate, such as "f1": then it is "augmented_lagrangian". Other solvers bound a surrogate of the indicator, or
        the smooth rates up to their own accuracy.
    solver_options : dict or "paper", optional
        Options of the solver, see its class in `fairconstrained.solvers`. "paper" is the paper's experiment with
        "plada", whose parameters are one set for linear scores and one for networks: in place of this estimator's own,
        ``rate="sigmoid"`` and ``alpha=0``.

    Attributes
    ----------
    group_rates_ : DataFrame
        One row for each group: ``n_samples``, its ``share`` of the weight, the mean of the rate on the training data
        (``rate``, or ``rate_positive`` and ``rate_negative`` among the rows of a label, or the name of another rate),
        ``gap``, its largest difference from another group or from all rows (one minus the least ratio where ratios are
        bounded, the rate itself for "bounded_group_loss"), and ``compared_as``, the name under which the constraint
        knows it, None for a group that it leaves out. For a list of constraints a dict of these.
    exact_gaps_ : dict
        The gap of the predictions themselves, by constraint, whatever the ``rate`` is.
    stationarity_ : float
        An :math:`\epsilon` with which the parameters are a nearly :math:`\epsilon`-KKT point, as
        `fairconstrained.solvers.kkt_conditions` defines it. With ``rate="sigmoid"`` or "hinge" that is about the
        problem itself; with "indicator" about the one with its surrogate as it stands before a solver narrows it.
        Only if ``compute_stationarity``.

    Notes
    -----
    ``sensitive_features`` may be a table of booleans with a column for every group, dense or sparse: groups may then
    overlap, and rows belong to none. See `fairconstrained.groups.threshold_groups`.

    References
    ----------
    "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
    eqs. 15 to 18; the solvers "plada", "ipp_conex", "ipp_ssg", "ssg" and "multiplier_model" are those of its
    experiments.

    Examples
    --------
    >>> from fairconstrained import RateParityClassifier
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(n_samples=2000, random_state=0)
    >>> model = RateParityClassifier(kappa=0.02).fit(X, y, sensitive_features=group)
    >>> model.constraint_values_["demographic_parity"] <= 0.02 + 0.01
    True
    """

    kappa: float | None = parameter(0.05, [Interval(Real, 0, None, closed="left"), None], kw_only=False)
    constraint: str | Constraint | Sequence[tuple[str, Constraint]] = parameter("demographic_parity", ANY_CONSTRAINT)
    rate: str = parameter("indicator", [StrOptions(set(RATES))])
    agg: str = parameter("max", [StrOptions({"max", "mean"})])
    objective: str | Objective = parameter("logistic", [StrOptions(set(_OBJECTIVES)), Objective])
    class_weight: Mapping[Hashable, float] | str | None = parameter(None, CLASS_WEIGHT)
    truncation: float = parameter(0.5, [Interval(Real, 0, None, closed="neither")])
    min_group_size: int | str = parameter(AUTO, [Interval(Integral, 0, None, closed="left"), StrOptions({AUTO})])

    _constraint_names = (*RATE_NOTIONS, *NAMED_RATES)
    _takes_overlapping_groups: ClassVar[bool] = True
    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = {"plada": {"rate": "sigmoid", "alpha": 0.0}}

    def _objective(self) -> Objective:
        return self._for_classes(objective_of(self))

    def _model(self, data: FairData) -> ParametricModel:
        if self.group_interactions and data.unions is not None:
            raise ValueError("group_interactions=True needs groups that do not overlap; set it to False.")
        return super()._model(data)

    def _auto_solver(self, problem: Problem) -> str:
        takes_all_rows = problem.model.is_linear or not problem.objective.is_mean
        return super()._auto_solver(problem) if takes_all_rows else AdamLagrangian.name

    def _constraint_named(self, name: str) -> Constraint:
        shared = {option: getattr(self, option) for option in ("kappa", "min_group_size", "small_groups")}
        if name in RATE_NOTIONS:
            return RateGap(constraint=name, rate=self.rate, agg=self.agg, **shared)
        if (self.rate, self.agg) != ("indicator", "max"):
            raise ValueError(
                f"constraint={name!r} has a rate of its own; leave rate='indicator' and agg='max', or give a "
                "GroupRates."
            )
        return GroupRates(**NAMED_RATES[name], **shared)

    def _constraints_choose_groups(self) -> bool:
        return isinstance(self.constraint, str)

    def _bound_constraints(self, data: FairData, target: Target, checked: bool = True) -> tuple[BoundConstraint, ...]:
        """Implement `BaseFairEstimator._bound_constraints`; where groups do not overlap, thresholds can be searched."""
        bound = super()._bound_constraints(data, target, checked)
        if data.unions is not None:
            return bound
        forms = [constraint.search_form() for constraint in self._constraints(target)]
        return tuple(
            known if form is None or known.compared_as else form.unchecked(data).renamed(known.name)
            for form, known in zip(forms, bound, strict=True)
        )

    def _report(self, problem: Problem, params: np.ndarray, result: SolverResult, target: Target) -> dict[str, float]:
        """Implement `BaseFairEstimator._report`; also the gaps of the predictions and the tables of the rates."""
        excess = super()._report(problem, params, result, target)
        data, scores = problem.data, problem.scores(params)
        self.exact_gaps_ = self._values_of_decisions(data, scores)
        self.group_rates_ = self._group_tables(data, scores)
        return excess
