"""The warnings that a fit ends with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fairconstrained.checks.messages import (
    PASS_GROUPS,
    TWO_LARGE_GROUPS,
    compares_nothing,
    nothing_to_compare,
    shortened,
)
from fairconstrained.estimators._usefulness import costly_bound
from fairconstrained.estimators.grouping import alike_groups
from fairconstrained.exceptions import ConvergenceWarning, CostlyBoundWarning, FairnessWarning, NewRowsWarning
from fairconstrained.features import extremes
from fairconstrained.problem import Problem, are_all_equal
from fairconstrained.solvers import SolverResult, Status, StoppedBy

__all__ = ["notices"]

_SCALE = "Put sklearn.preprocessing.StandardScaler before it in a pipeline."
#: A warning: its text and its category.
Notice = tuple[str, type[Warning]]


def notices(
    estimator: Any, problem: Problem, scores: np.ndarray, result: SolverResult, excess: dict[str, float]
) -> Iterator[Notice]:
    """Everything that a user should know about a fitted model.

    Parameters
    ----------
    estimator : BaseFairEstimator
        Fitted.
    problem : Problem
    scores : ndarray of shape (n_samples,)
        Scores of the fitted model, in the order of the data.
    result : SolverResult
        Result of the solver.
    excess : dict
        Excess of every constraint's bounded quantity over ``kappa``.
    """
    groups = getattr(estimator, "groups_", np.empty(0))  # bounds on the errors of classes need none
    looking_alike = alike_groups(groups, estimator._fitted.small, estimator._group_columns)
    yield from ((message, FairnessWarning) for message in looking_alike)
    message = result.message_at(scores)
    if message:
        yield f"solver {estimator.solver_!r}: {message}", ConvergenceWarning
    unscaled, tiny = problem.model.unscaled_columns(problem.data), problem.model.tiny_columns(problem.data)
    if unscaled.size:
        yield _unscaled(estimator, unscaled), ConvergenceWarning
    if tiny.size:
        yield _tiny(estimator, tiny, problem.model.least_size), ConvergenceWarning
    is_explained = bool(message or result.stopped_by or unscaled.size or tiny.size)
    if not is_explained and _is_constant_for_bound(estimator, problem, scores):
        yield _constant(estimator, problem), ConvergenceWarning
    if estimator._lacks_bound(problem):
        yield _nothing_bounded(estimator), FairnessWarning
    else:
        yield from ((compares_nothing(*idle), FairnessWarning) for idle in estimator._idle)
    if Status(estimator.status_).is_infeasible and estimator.promise == "training":
        yield from _bounds_not_kept(estimator, problem, result.stopped_by, excess)
    elif estimator.status_ == Status.MAX_ITER.value and not message:
        yield _not_settled(estimator, result.stopped_by), ConvergenceWarning
    yield from _decisions_apart(estimator, problem, scores)
    if estimator.promise == "new_rows" or problem.holds(scores):
        yield from _exceeding_on_new_rows(estimator, problem)
    if not Status(estimator.status_).is_infeasible:
        yield from ((caveat, FairnessWarning) for caveat in estimator._caveats(problem, scores))
    if estimator.hints_:
        yield costly_bound(estimator, problem, scores), CostlyBoundWarning


def _unscaled(estimator: Any, columns: np.ndarray) -> str:
    """Return the warning for features whose values are too large for a network."""
    return (
        f"The values of the features {_named(estimator, columns)} of X are so large (with a root mean square "
        f"above 10) that the network learns little from the others. {_SCALE}"
    )


def _tiny(estimator: Any, columns: np.ndarray, least: float) -> str:
    """Return the warning for features whose values are too small for a network, or beside a penalty."""
    return (
        f"The values of the features {_named(estimator, columns)} of X are so small (none is above {least:g}) that the "
        f"model learns next to nothing from them. {_SCALE}"
    )


def _named(estimator: Any, columns: np.ndarray) -> str:
    names = np.asarray(getattr(estimator, "feature_names_in_", np.arange(estimator.n_features_in_)))
    return shortened(names[columns].tolist())


def _not_settled(estimator: Any, stopped_by: StoppedBy) -> str:
    """Return the warning for an objective that would still fall."""
    end = f"was stopped by {stopped_by}" if stopped_by else f"stopped at {estimator._limit}"
    longer = estimator._longer(stopped_by)
    advice = longer[0].upper() + longer[1:] + (" or tol" if "tol" in estimator.get_params(deep=False) else "")
    return f"Solver {estimator.solver_!r} kept the bound but {end} before its objective settled. {advice}."


def _is_constant_for_bound(estimator: Any, problem: Problem, scores: np.ndarray) -> bool:
    """Whether all rows have the same score, of which the solver does not say that it is the optimum."""
    is_bounded = any(np.isfinite(constraint.kappa) for constraint in problem.constraints)
    if Status(estimator.status_) is not Status.COMPLETED or not (is_bounded and are_all_equal(scores)):
        return False
    # linear scores of features that do not vary are the same without a bound
    return not problem.model.is_linear or bool(np.any(np.subtract(*extremes(problem.data.X))))


def _constant(estimator: Any, problem: Problem) -> str:
    """Return the warning for scores that keep the bound only because they are all the same."""
    return (
        f"Solver {estimator.solver_!r} found nothing better within the bound than the same score for all rows. "
        f"{estimator._remedy(problem.data, StoppedBy.NOTHING)}"
    )


def _nothing_bounded(estimator: Any) -> str:
    """Return the warning for fairness that is asked for where there is nothing to compare."""
    ignored = list(getattr(estimator, "ignored_groups_", ()))
    if ignored:
        merge = "Set small_groups='merge', or merge groups yourself"
        advice = merge if len(estimator.groups_) > 2 else "Pass more rows"
        return (
            f"small_groups='ignore' leaves fewer than two groups to compare (it left out {shortened(ignored)}), so "
            f"nothing is bounded and the unconstrained model was fitted. {advice}, or raise kappa."
        )
    merged = [*estimator._fitted.small.merged, *(label for _, small in estimator._idle for label in small)]
    if merged:
        return (
            f"small_groups='merge' leaves a single group (it put {shortened(list(dict.fromkeys(merged)))} together), "
            f"so nothing is bounded and the unconstrained model was fitted. {TWO_LARGE_GROUPS}"
        )
    if estimator._bounds_nothing():
        return (
            "constraint=[] names no constraint, so nothing is bounded and the unconstrained model was fitted. Give at "
            f"least one (name, constraint) pair, or the name of a constraint and {estimator._unconstrained}."
        )
    return nothing_to_compare(
        estimator.groups_,
        "Nothing is bounded, and the unconstrained model was fitted.",
        f"{PASS_GROUPS}, or set {estimator._unconstrained}.",
    )


def _bounds_not_kept(
    estimator: Any, problem: Problem, stopped_by: StoppedBy, excess: dict[str, float]
) -> Iterator[Notice]:
    solver = estimator.solver_
    for constraint in problem.constraints:
        if excess[constraint.name] > constraint.granularity:
            advice = (
                estimator._remedy(problem.data, stopped_by)
                if solver == estimator._auto_solver(problem) or not constraint.bounds_metric
                else f"Solver {solver!r} bounds a surrogate of the metric; solver='auto' bounds the metric."
            )
            complaint = constraint.complaint(constraint.at_excess(excess[constraint.name]), estimator._bounded_rows)
            yield f"{complaint} {advice}", ConvergenceWarning


def _exceeding_on_new_rows(estimator: Any, problem: Problem) -> Iterator[Notice]:
    for constraint, gap in estimator._missed_on_new_rows(problem, estimator.new_row_gaps_):
        complaint = (
            f"{constraint.name} is {gap.estimate:.3g} (standard error {gap.standard_error:.2g}) by an estimate for new "
            f"rows, {gap.how}, and {constraint.is_beyond} kappa={constraint.kappa:g}."
        )
        freedom = f"give the model less freedom: {estimator._less_freedom}"
        if estimator.promise == "training":
            yield f"{complaint} Set promise='new_rows', or {freedom}.", NewRowsWarning
        else:
            yield f"{complaint} No smaller bound in the fit kept it. Loosen kappa, or {freedom}.", ConvergenceWarning


def _decisions_apart(estimator: Any, problem: Problem, scores: np.ndarray) -> Iterator[Notice]:
    """Return the warning for smooth rates within ``kappa`` where those of the decisions are not."""
    for constraint in problem.constraints:
        decided, sizes = constraint.of_decisions(scores), constraint.compared_cells()
        if decided is None or sizes is None:
            continue
        if decided > constraint.kappa + sizes.steps.max():
            yield constraint.complaint_about_decisions(decided, estimator._bounded_rows), FairnessWarning
