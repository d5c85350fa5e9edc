"""Where the augmented Lagrangian begins without multipliers: the free optimum, or a stricter problem's solution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.models import Coordinates
from fairconstrained.objectives import Objective
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers._augmented.curved import Curvatures
from fairconstrained.solvers._augmented.iterates import Iterate
from fairconstrained.solvers._augmented.warm_start import resume
from fairconstrained.solvers._base import Status
from fairconstrained.solvers._newton_coordinates import has_convex_hessian
from fairconstrained.solvers._rescaling import constant_scores
from fairconstrained.solvers._shifting import best_shifted
from fairconstrained.solvers.smooth import Stop, minimise

if TYPE_CHECKING:
    from fairconstrained.solvers._augmented.outer_iterations import OuterIterations
    from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian

__all__ = ["begin_stricter", "minimise_freely", "searches_first"]

#: When an unconstrained minimisation ends, for constraints to take over.
_COARSE = Stop(max_iter=2000, gtol=1e-3, gain=1e-6)
#: When it ends with a solution that need not move any more.
_FINE = Stop(max_iter=2000, gtol=1e-11)
#: When it ends with such a solution in coordinates of curvature 1: within 5e-16 of the least objective.
_FINE_CURVED = Stop(max_iter=2000, gtol=3e-8)
#: Gain of the objective, relative to it, for which scores need not differ.
_NEGLIGIBLE = 1e-10
#: Most iterations on a stricter problem to begin with.
_STRICTER_ITER = 12


def searches_first(problem: Problem) -> bool:
    """Whether an exact search over the groups' thresholds may solve the problem, see `minimise_freely`."""
    return problem.objective.counts_errors and problem.has_group_shifts


def minimise_freely(run: OuterIterations, params: np.ndarray) -> None:
    """Minimise the objective alone; converged if that satisfies the constraints already."""
    iterates, problem = run.iterates, run.lagrangian.problem
    stop = _COARSE if problem.constraints else _FINE
    for loss in problem.objective.loss.path():
        params, is_settled = _minimise_loss(run, loss, params, stop)
        if searches_first(problem):
            # The scores of an easier loss, cut at the thresholds that count the fewest errors within the
            # constraints. The best classifier under a bound on positive rates has this form, a threshold
            # on P(y | x) for every group, so nothing else is tried where the search succeeds.
            run.begin_at(best_shifted(problem, params))
            run.is_converged = iterates.best is not None
            if run.is_converged:
                return
    run.begin_at(params)
    # Perhaps the optimum is fair as it is, or constant; only then is it worth computing precisely.
    is_fair = iterates.best is not None
    if stop != _FINE if is_fair else _constant_instead(run, params) is not None:
        iterates.best = None
        params, is_settled = _minimise_loss(run, loss, params, _FINE)
        run.begin_at(params)
    if iterates.best is None and iterates.last is not None:
        constant = _constant_instead(run, iterates.last.params)
        if constant is not None:
            iterates.keep(constant)
    run.is_converged = iterates.best is not None and is_settled


def _minimise_loss(run: OuterIterations, loss: Objective, params: np.ndarray, stop: Stop) -> tuple[np.ndarray, bool]:
    """Minimise one loss of the objective's path without constraints; also returns whether it is settled."""
    problem = run.lagrangian.problem.without_constraints()
    problem = replace(problem, objective=loss.bind(problem.data))
    view = FullBatchView(problem)

    def descended(params: np.ndarray, stop: Stop, coordinates: Coordinates | None = None) -> tuple[np.ndarray, bool]:
        return minimise(view, lambda p: (p.objective, p.gradient(1.0, np.empty(0))), params, stop, coordinates)

    if stop == _FINE and has_convex_hessian(problem):
        near, _ = descended(params, _COARSE, Curvatures(problem, problem.scores(params)).of_objective)
        found = descended(near, _FINE_CURVED, Curvatures(problem, problem.scores(near)).of_objective)
        view.n_evaluations += 2  # passes for the curvatures
    else:
        found = descended(params, stop)
    run.iterates.n_evaluations += view.n_evaluations
    return found


def _constant_instead(run: OuterIterations, params: np.ndarray) -> Iterate | None:
    """Constant scores that are as good as those at ``params``, as with a penalty and features of tiny units."""
    constant, iterates = constant_scores(run.lagrangian.problem, params), run.iterates
    if constant is None:
        return None
    given, other = iterates.unconstrained_point(params).objective, iterates.unconstrained_point(constant)
    is_as_good = other.objective <= given + _NEGLIGIBLE * abs(given)
    return iterates.measured(constant, other) if is_as_good else None


def begin_stricter(run: OuterIterations, options: AugmentedLagrangian, rng: np.random.Generator) -> None:
    """Go on from the solution of a stricter problem with fewer local optima, if there is one."""
    stricter = run.lagrangian.problem.stricter()
    if stricter is None:
        return
    start = Start(run.iterates.w[: stricter.n_params])
    # a start need not be settled, nor is it worth a second attempt where nothing holds
    found = replace(options, max_iter=min(options.max_iter, _STRICTER_ITER)).solve(stricter, start, rng)
    run.iterates.n_evaluations += found.n_evaluations
    if found.status is not Status.INFEASIBLE:
        assert found.start is not None  # every iterative run leaves one
        resume(run, found.start)
