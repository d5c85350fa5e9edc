"""Warm starts of the augmented Lagrangian: from another ``kappa``, along the path of solutions, or from other rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._augmented.curved import Curvatures
from fairconstrained.solvers._augmented.iterates import Iterate, extrapolated
from fairconstrained.solvers._base import SolverResult, solver_state
from fairconstrained.solvers._newton_coordinates import has_convex_hessian

if TYPE_CHECKING:
    from fairconstrained.solvers._augmented.outer_iterations import OuterIterations

__all__ = ["follow", "narrows_anew", "predicted", "resume", "start_after", "start_of_parts", "without_idle_components"]

#: Penalty, patience and L-BFGS iterations where multipliers are known, so that there is little left to find.
_PENALTY, _PATIENCE, _INNER_ITER = 100.0, 1, 25
#: L-BFGS iterations along a path, where the last solution is near, and where a path narrows the surrogate anew.
_PATH_INNER_ITER, _NARROWING_INNER_ITER = 8, 17
#: Rows from which on the optimum for another ``kappa`` is next to the last one, although rows are counted.
_MANY_ROWS = 2000
#: First penalty where a path narrows the surrogate anew, with the multipliers of the last run.
_NARROWING_PENALTY = 20.0


def resume(run: OuterIterations, start: Start) -> None:
    """Go on where a run on other rows ended."""
    _adopt(run, start)
    run.begin_at(start.model_state)


def follow(run: OuterIterations, start: Start) -> None:
    """Go on along the path of solutions, where a run for another ``kappa`` ended."""
    problem = run.lagrangian.problem
    constraints = problem.constraints
    was_free = start.multipliers and not any(multipliers.any() for multipliers in start.multipliers)
    widest = solver_state(start, Start)
    if narrows_anew(problem) and (was_free or widest is not None):
        _narrow_anew(run, start, widest or start)
        return
    _adopt(run, without_idle_components(start, constraints))
    params, origin = start.model_state, None
    if run.lagrangian.multipliers.any():
        run.inner_iter, run.is_on_path = _PATH_INNER_ITER, True
        params, origin = predicted(start, run.iterates.measure)
    run.begin_at(params)
    run.iterates.origin = origin


def narrows_anew(problem: Problem) -> bool:
    """Whether runs begin where the surrogate of the last one was widest: near to its end there may be a bad optimum."""
    has_many = problem.data.n_samples >= _MANY_ROWS
    return any(c.counts_rows for c in problem.constraints) and not (has_many and Curvatures.suits(problem))


def predicted(start: Start, measure: Callable[[np.ndarray], Iterate]) -> tuple[np.ndarray, Iterate]:
    """Parameters where the line through the last two solutions of a path reaches the bounds, and the last solution.

    The parameters are those of the last solution if there is no other one, or the line does not reach the bounds.
    ``measure`` is to measure parameters under the bounds of this run.
    """
    last = measure(start.model_state)
    found = None if start.previous is None else extrapolated(measure(start.previous), last)
    return last.params if found is None else found, last


def _narrow_anew(run: OuterIterations, start: Start, widest: Start) -> None:
    """Begin where the surrogate of the last run was widest, or at a solution without multipliers."""
    run.is_on_path, lagrangian = True, run.lagrangian
    _adopt(run, without_idle_components(widest, lagrangian.problem.constraints))
    run.progress.patience, run.inner_iter = _PATIENCE, _NARROWING_INNER_ITER
    lagrangian.penalty = _NARROWING_PENALTY if lagrangian.multipliers.any() else lagrangian.first
    run.surrogates.narrow_in_two_steps()
    if widest is not start:
        run.iterates.measure(start.model_state)
    run.begin_at(widest.model_state)


def _adopt(run: OuterIterations, start: Start) -> None:
    """Take over components and multipliers, as far as they fit."""
    lagrangian = run.lagrangian
    constraints, lagrangian.multipliers = start.continued(lagrangian.problem.constraints)
    lagrangian.problem = replace(lagrangian.problem, constraints=constraints)
    if lagrangian.multipliers.any():
        run.surrogates.start_narrow()
        lagrangian.penalty, run.progress.patience, run.inner_iter = _PENALTY, _PATIENCE, _INNER_ITER


def start_after(problem: Problem, params: np.ndarray, multipliers: np.ndarray, origin: Iterate | None = None) -> Start:
    """The start from ``params`` and the multipliers of all components, which a run from ``origin`` has come to."""
    ends = np.cumsum([len(c.component_names) for c in problem.constraints])
    return Start(
        params,
        tuple(c.components for c in problem.constraints),
        tuple(np.split(multipliers, ends[:-1])) if problem.constraints else (),
        previous=None if origin is None else origin.params,
        fingerprint=problem.data.fingerprint,
    )


def start_of_parts(problem: Problem, result: SolverResult) -> Start | None:
    """Return the result as a start on other rows, where the same solution is found from anywhere, nearly.

    So it is for convex losses of linear scores. Bounds on shares of rows above a fixed threshold have many local
    optima, of which the one found knows the rows that it was found on. Where no bound has a multiplier, a run that
    begins without bounds is faster.
    """
    start, has_thresholds = result.start, any(c.counts_rows and not c.n_aux for c in problem.constraints)
    if start is None or has_thresholds or not has_convex_hessian(problem):
        return None
    if not any(multipliers.any() for multipliers in start.multipliers):
        return None
    return replace(start, previous=None, fingerprint=None, solver_state=None)


def without_idle_components(start: Start, constraints: Sequence[BoundConstraint]) -> Start:
    """``start`` without the components that have no multiplier, save those that every run begins with.

    Every run adds components. All of them kept along a path, they would make each fit dearer than the last.
    """
    if len(start.components) != len(constraints):
        return start
    components, multipliers = [], []
    for constraint, positions, known in zip(constraints, start.components, start.multipliers, strict=True):
        if positions.size:
            table = known.reshape(positions.size, -1)
            kept = table.any(axis=1) | np.isin(positions, constraint.components)
            positions, known = positions[kept], table[kept].ravel()
        components.append(positions)
        multipliers.append(known)
    return replace(start, components=tuple(components), multipliers=tuple(multipliers))
