"""The outcome of a fit: what an estimator keeps, the attributes that tell how it went, and the one place that warns."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from fairconstrained.checks.messages import warn_user
from fairconstrained.estimators._new_row_promise import PromisesNewRows
from fairconstrained.estimators._notices import notices
from fairconstrained.estimators._usefulness import Usefulness
from fairconstrained.estimators.grouping import NO_SMALL_GROUPS, SmallGroups
from fairconstrained.estimators.named_bounds import NamesBounds
from fairconstrained.models import Model
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import SolverResult, Status

__all__ = ["Fitted", "Target", "TellsOutcome"]


@dataclass(frozen=True)
class Target:
    """Targets in the units of the solver: ``y = offset + scale * values``; of two classes with their names by value."""

    values: np.ndarray
    offset: float = 0.0
    scale: float = 1.0
    names: Mapping[float, str] | None = None

    @classmethod
    def of_two(cls, codes: np.ndarray, classes: np.ndarray) -> Self:
        """Return -1 and 1 for the numbers of two classes."""
        return cls(2.0 * codes - 1, names=dict(zip((-1.0, 1.0), map(str, classes.tolist()), strict=False)))


@dataclass(frozen=True)
class Fitted:
    """State of a fitted estimator, for prediction and for a warm start; ``of_folds`` are where fits of folds ended."""

    model: Model
    labels: tuple
    start: Start
    offset: float
    scale: float
    small: SmallGroups = NO_SMALL_GROUPS
    of_folds: tuple[Start, ...] = ()


class TellsOutcome(NamesBounds, PromisesNewRows):
    """Estimators that report the outcome of a fit in the attributes that all of them have.

    Attributes
    ----------
    status_ : {"optimal", "completed", "max_iter", "infeasible", "infeasible_stationary", "unconstrained"}
        "optimal": feasible, and the objective has settled; "completed": feasible after the given number of iterations
        of a solver without a stopping rule, or after fewer where a callback or a limit has stopped it; "max_iter":
        feasible, but the objective has not settled, the run has diverged, or no iterate was feasible and the scores are
        a constant, or those of an iterate with another factor and constant; "infeasible": not within kappa;
        "infeasible_stationary": not within kappa, and the solver ("ipc", "exact_penalty" or "online_subgradient") ended
        at a point from which no small change reduces the violation; "unconstrained": a bound was asked for, but there
        is nothing to compare.
    constraint_values_ : dict
        *Exact* values of the bounded metrics on the training rows, by the constraint's name.
    granularity_ : dict
        Largest change of each of these values by a single row, by which they may exceed ``kappa``; at most
        ``max(kappa, 0.02)``.
    violation_ : float
        Largest excess of an exact value over its ``kappa``, at least 0; of an estimate with ``promise="new_rows"``.
    objective_ : float
        Objective with its penalty.
    multipliers_ : dict or None
        Multipliers of the surrogate's active components, in units of the objective per unit of ``kappa``. None where
        the method has no multipliers, such as ``solver="idca"`` or the exact search for ``objective="zero_one"``, or
        has diverged.
    prices_ : dict
        The price of fairness by constraint: by how much ``objective_`` would fall for one unit more of ``kappa``, to
        first order. NaN where ``multipliers_`` is None, so that the price is unknown.
    hints_ : list of str
        Advice in words and numbers, of which `fit` has warned; empty if there is none.
    solver_ : str
        Name of the solver of the fit, which ``solver="auto"`` has chosen.
    n_iter_, n_evaluations_ : int
        Outer iterations and full-batch evaluations.
    history_ : list of dict
        One record per iteration.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if the columns of the input have strings as names.
    """

    _fitted: Fitted

    @abstractmethod
    def _without_bound(self) -> Self:
        """Return this fitted model with the parameters of no bound."""

    @property
    def _bounded_rows(self) -> str:
        """The rows whose metrics ``kappa`` bounds, in words."""
        return "training rows"

    def _bounds_levels(self) -> bool:
        """Whether a bound is one on the levels of single groups, which no model may bring near zero."""
        return False

    def _usefulness(self, problem: Problem, scores: np.ndarray) -> Usefulness | None:
        """Return how much better the scores are than a constant; None where this has no measure."""
        return None

    def _report(self, problem: Problem, state: Any, result: SolverResult, target: Target) -> dict[str, float]:
        """Set the fitted attributes that tell how it went, all of them from the scores at ``state``.

        Returns what the bounded quantities exceed ``kappa`` by, for every constraint.
        """
        scores = problem.scores(state)
        excess = self._promised_excess(problem, scores)
        self.constraint_values_ = {c.name: c.metric(scores) for c in problem.constraints}
        self.granularity_ = {c.name: c.granularity for c in problem.constraints}
        if hasattr(self, "small_groups"):
            self.constraint_values_all_groups_ = self._values_over_all_groups(problem, scores, target)
        self._excess = excess
        self.violation_ = max([0.0, *excess.values()])
        self.status_ = self._judged(result.status, problem, scores).value
        self.n_iter_ = result.n_iter
        self.n_evaluations_ = result.n_evaluations
        unit = self._unit_of_objective(target)
        self.objective_ = problem.objective_at(state, scores) * unit
        self.multipliers_ = result.multipliers
        self.prices_ = {c.name: c.price(result.multipliers) * unit for c in problem.constraints}
        self.history_ = list(result.history)
        self.hints_: list[str] = []
        return excess

    def _unit_of_objective(self, target: Target) -> float:
        """Unit of the objective that a solver sees, in units of the user; here that of squared errors."""
        return target.scale**2

    def _judged(self, status: Status, problem: Problem, scores: np.ndarray) -> Status:
        """How the fit ended, from the exact values at the scores that are returned; ``status`` is the solver's word."""
        if self._lacks_bound(problem):
            return Status.UNCONSTRAINED
        if self.promise == "training":
            is_kept = problem.holds(scores)
        else:
            is_kept = not any(self._missed_on_new_rows(problem, self.new_row_gaps_))
        if is_kept:
            return Status.MAX_ITER if status.is_infeasible else status
        return status if status.is_infeasible else Status.INFEASIBLE

    def _values_over_all_groups(self, problem: Problem, scores: np.ndarray, target: Target) -> dict[str, float]:
        """``constraint_values_`` with the ignored groups compared as well; NaN where one of them has an empty cell."""
        if not self.ignored_groups_:
            return dict(self.constraint_values_)
        free = self._without_bound()
        free._compares_all_groups = True
        everything = free._bound_constraints(replace(problem.data, n_ignored=0), target, checked=False)
        return {bound.name: bound.metric_or_nan(scores) for bound in everything}

    def _warn(self, problem: Problem, scores: np.ndarray, result: SolverResult, excess: dict[str, float]) -> None:
        """The one place that warns."""
        for text, category in notices(self, problem, scores, result, excess):
            warn_user(text, category)

    def under_bounds_of(self, other: Self, excess: dict[str, float]) -> Self:
        """Stand in for ``other``, whose bounds are looser and whose objective is worse.

        Parameters
        ----------
        other : estimator
            Estimator that was fitted on the same rows. Its status and its prices are kept, except where that fit did
            not keep its bounds.
        excess : dict
            Excess of this model over the bounds of ``other``.

        Returns
        -------
        model : estimator
            A copy of this fitted model with the parameters of ``other``.
        """
        told = {*other.get_params(deep=False), "granularity_", "solver_", "n_iter_", "n_evaluations_", "history_"}
        if not Status(other.status_).is_infeasible:
            told |= {"status_", "multipliers_", "prices_"}
        model = copy.copy(self)
        model.multipliers_, model.prices_ = None, dict.fromkeys(excess, np.nan)
        model.__dict__ |= {name: value for name, value in vars(other).items() if name in told}
        model._excess, model.violation_ = excess, max([0.0, *excess.values()])
        return model
