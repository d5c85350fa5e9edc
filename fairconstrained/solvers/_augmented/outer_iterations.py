"""The outer iterations of the augmented Lagrangian: a start, and then better surrogates and multipliers in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from fairconstrained.points import KeptPoint
from fairconstrained.problem import FullBatchView, Point, Problem, Start
from fairconstrained.solvers._augmented.cold_start import begin_stricter, minimise_freely, searches_first
from fairconstrained.solvers._augmented.curved import Curvatures
from fairconstrained.solvers._augmented.iterates import Iterates
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.solvers._augmented.stopping import Progress
from fairconstrained.solvers._augmented.tightening import N_RESTARTS, Surrogates
from fairconstrained.solvers._augmented.warm_start import follow, resume, start_after
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._polish import polished
from fairconstrained.solvers._rescaling import best_rescaled
from fairconstrained.solvers.loop import ended
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.smooth import Stop, minimise
from fairconstrained.solvers.source import Source

if TYPE_CHECKING:
    from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian

__all__ = ["OuterIterations"]

#: Largest slope of the augmented Lagrangian at which a minimisation ends.
_GTOL = 1e-6
#: Evaluations for each iteration of L-BFGS as long as there is no feasible iterate: long line searches are not worth
#: theirs then.
_PER_ITERATION_BEFORE = 1.5
#: Share of ``tol`` that so many iterations of L-BFGS have to gain together: the next surrogates are others anyway.
#: From a feasible iterate on only, as the way to one may be flat.
_GAIN, _PATIENCE = 0.02, 2
#: Iterations of L-BFGS in coordinates that know the curvature, of which so many have to gain a fraction of the value.
_CURVED_ITER, _CURVED_PATIENCE, _CURVED_GAIN = 14, 3, 3e-4


class OuterIterations(Method):
    """A start, and then in every step better surrogates, their minimisation, the multipliers, and what comes next.

    Parameters
    ----------
    options : AugmentedLagrangian
    problem : Problem
    start : Start or None
        Start with multipliers, from another ``kappa`` or from fewer rows.
    params : ndarray of shape (n_params,)
        Parameters to begin at.
    rng : numpy.random.Generator
    is_followed : bool, default=True
        Whether the start is of another ``kappa``, so that there is a path to follow.

    Attributes
    ----------
    lagrangian : Lagrangian
    surrogates : Surrogates
    progress : Progress
    iterates : Iterates
    inner_iter : int
        L-BFGS iterations of an outer iteration.
    """

    holds_rows = True
    #: Whether it goes on from the multipliers for another ``kappa``.
    is_on_path = False
    #: Whether it is over with a feasible iterate, and without one.
    is_converged = is_given_up = False
    #: Start from where the run stood when its surrogate was widest.
    _widest: Start | None = None
    #: Parameters, problem and multipliers that the iterations begin with.
    _begun: tuple[np.ndarray, Problem, np.ndarray]
    #: The curvature, if the iterations know it.
    _curvatures: Curvatures | None = None

    def __init__(
        self,
        options: AugmentedLagrangian,
        problem: Problem,
        start: Start | None,
        params: np.ndarray,
        rng: np.random.Generator,
        is_followed: bool = True,
    ) -> None:
        self._options, self._start, self._rng, self._is_followed = options, start, rng, is_followed
        has_multipliers = not (problem.constraints and searches_first(problem))
        self.lagrangian = Lagrangian(problem, options.penalty, has_multipliers)
        self.surrogates = Surrogates(problem.constraints)
        self.progress = Progress(options.patience, options.tol)
        self.iterates = Iterates(self.lagrangian, params)
        self.inner_iter = options.inner_iter
        self._aux = self.iterates.w[problem.n_params :]
        self.n_rows = self._n_iter = 0

    @property
    def z(self) -> np.ndarray:
        """The parameters, with the auxiliary variables of the problem as it was given."""
        return np.concatenate([self.iterates.params, self._aux])

    @z.setter
    def z(self, value: np.ndarray) -> None:
        self.iterates.params[:] = value[: self.iterates.params.size]

    def begin_at(self, params: np.ndarray) -> None:
        """Make ``params`` the present iterate, and measure it."""
        self._assess(self.iterates.moved_to(params))

    def _assess(self, point: Point) -> None:
        """Measure the present iterate, whose point is known."""
        self.progress.see(self.iterates.assess(point))

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        start, iterates, params, lagrangian = self._start, self.iterates, self.iterates.params, self.lagrangian
        source.count(self.n_rows)
        searches = searches_first(problem)
        if start is None or not problem.component_names or searches:
            minimise_freely(self, params)
            if start is not None:
                iterates.measure(start.model_state)
            elif not self.is_converged and not searches:
                begin_stricter(self, self._options, self._rng)
        elif self._is_followed:
            follow(self, start)
        else:
            resume(self, start)
        if Curvatures.suits(lagrangian.problem):
            self._begun = iterates.params.copy(), lagrangian.problem, lagrangian.multipliers.copy()
            self._curvatures = Curvatures(lagrangian.problem, iterates.scores)
        self._count(source)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        self._refine()
        point = self._minimise_lagrangian()
        previous = self.iterates.best.objective if self.iterates.best else np.inf
        self._assess(point)
        self._judge(previous, point.objective)
        self._tighten()
        self._count(source)

    @property
    @override
    def finished(self) -> bool:
        return self.is_converged or self.is_given_up

    @property
    @override
    def multipliers(self) -> np.ndarray | None:
        return self.lagrangian.multipliers if self.lagrangian.is_known else None

    @override
    def point(self, source: Source, problem: Problem) -> Point:
        return self.iterates.point

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {
            "surrogate_violation": self.lagrangian.violation,
            "blur": self.surrogates.blur,
            "penalty": self.lagrangian.penalty,
            "n_components": self.lagrangian.multipliers.size,
        }

    @override
    def output(self) -> np.ndarray:
        iterates, params = self.iterates, self.iterates.end.params
        if iterates.best is not None:
            others = [kept.params for kept in iterates.infeasible]
            params = polished(self.lagrangian.problem, params, others)
        return np.concatenate([params, self._aux])

    @override
    def named_multipliers(self, names: Sequence[str]) -> dict[str, float] | None:
        return self.iterates.end.multipliers

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        iterates, lagrangian = self.iterates, self.lagrangian
        start = start_after(lagrangian.problem, result.model_state, lagrangian.multipliers, iterates.origin)
        candidates = tuple(kept.params for kept in [*iterates.infeasible, iterates.nearest] if kept is not None)
        return replace(
            ended(result, self.is_converged),
            n_iter=max(result.n_iter, 1),
            surrogate_violation=lagrangian.violation,
            start=replace(start, solver_state=self._widest),
            candidates=candidates,
            aux=None,
        )

    def _count(self, source: Source) -> None:
        """Tell the loop how many rows were seen."""
        iterates, data = self.iterates, self.lagrangian.problem.data
        source.count(iterates.n_evaluations * data.n_samples)
        iterates.n_evaluations = 0

    def _refine(self) -> None:
        """Bring the surrogates closer to the metrics around the current scores."""
        iterates, lagrangian = self.iterates, self.lagrangian
        constraints = self.surrogates.refined(lagrangian.problem.constraints, iterates.scores)
        lagrangian.replace_constraints(constraints)
        aux = [constraint.initial_aux(iterates.scores) for constraint in constraints]
        iterates.w = np.concatenate([iterates.params, *aux])

    def _minimise_lagrangian(self) -> Point:
        """Minimise the augmented Lagrangian, and update its multipliers."""
        iterates, lagrangian = self.iterates, self.lagrangian
        view = FullBatchView(lagrangian.problem)
        if self._curvatures is None:
            self._minimise_scaled(view)
        else:
            self._minimise_curved(view, self._curvatures)
        point = KeptPoint(view, iterates.w)
        iterates.n_evaluations += view.n_evaluations
        self._n_iter += 1
        lagrangian.update(point.constraints)
        if self.surrogates.is_widest:
            self._widest = start_after(lagrangian.problem, iterates.params.copy(), lagrangian.multipliers)
        return point

    def _minimise_scaled(self, view: FullBatchView) -> None:
        """Move to the minimiser, by L-BFGS in well-scaled coordinates."""
        iterates = self.iterates
        stop = Stop(self.inner_iter, _GTOL, per_iteration=_PER_ITERATION_BEFORE)
        if iterates.best is not None:
            stop = Stop(self.inner_iter, _GTOL, _GAIN * self._options.tol, _PATIENCE)
        iterates.w, _ = minimise(view, self.lagrangian.at, iterates.w, stop)

    def _minimise_curved(self, view: FullBatchView, curvatures: Curvatures) -> None:
        """Move to the minimiser, in coordinates that know the curvature, anew after some iterations on a long way."""
        iterates = self.iterates
        left, is_settled = _CURVED_ITER if self._n_iter else self.inner_iter, False
        while left > 0 and not is_settled:
            n_iter = min(left, _CURVED_ITER)
            coordinates = curvatures.coordinates(self.lagrangian, iterates.w)
            view.n_evaluations += 1  # their passes over the features
            stop = Stop(n_iter, _GTOL, _CURVED_GAIN, _CURVED_PATIENCE, _PER_ITERATION_BEFORE)
            iterates.w, is_settled = minimise(view, self.lagrangian.at, iterates.w, stop, coordinates)
            left -= n_iter

    def _judge(self, previous: float, objective: float) -> None:
        """Converged if the best objective has settled; given up if feasibility does not come nearer.

        ``previous`` is the best objective before this iteration, ``objective`` the present one.
        """
        progress, best = self.progress, self.iterates.best
        # Along a path, the first iterate still has the multipliers of another kappa.
        if self.surrogates.is_narrowing or (self.iterates.origin is not None and self._n_iter == 1):
            progress.reset()
        elif best is None:
            progress.count_infeasible(lambda: objective < self._least_rescaled_objective, self.lagrangian.is_largest)
        else:
            # Along a path, an iterate that promises more was tried.
            progress.count_feasible(previous, best.objective, objective, waits=not self.is_on_path)
        self.is_converged = progress.is_over and best is not None
        self.is_given_up = progress.is_over and best is None and progress.n_restarts == N_RESTARTS

    @cached_property
    def _least_rescaled_objective(self) -> float:
        """A number clearly below the objective of any feasible multiple of the nearest scores; or infinity."""
        iterates, problem = self.iterates, self.lagrangian.problem
        point = iterates.unconstrained_point(best_rescaled(problem, [iterates.end.params]))
        is_feasible = problem.measured(point.scores).excess <= 0
        return point.objective - self._options.tol * abs(point.objective) if is_feasible else np.inf

    def _begin_without_curvature(self) -> None:
        """Begin anew, by shorter steps, where those that know the curvature come no nearer to feasibility."""
        lagrangian, self._curvatures = self.lagrangian, None
        lagrangian.restart()
        params, lagrangian.problem, lagrangian.multipliers = self._begun
        self.surrogates = Surrogates(lagrangian.problem.constraints)
        self.progress = Progress(self._options.patience, self._options.tol)
        self.begin_at(params)

    def _tighten(self) -> None:
        """Set the next surrogates, or begin anew where a run comes no nearer to feasibility."""
        iterates, lagrangian = self.iterates, self.lagrangian
        assert iterates.last is not None  # it was assessed in this iteration
        if iterates.best is None and self.progress.is_over and self.progress.n_restarts < N_RESTARTS:
            if self._curvatures is not None and iterates.last.objective < self._least_rescaled_objective:
                self._begin_without_curvature()
                return
            # again where feasibility was nearest, with surrogates that look further than a few rows
            iterates.return_to_nearest()
            self.progress.restart()
            lagrangian.restart()
            self.surrogates.restart(self.progress.n_restarts)
            return
        violations = iterates.last.violations
        # If nothing as good holds yet, a margin may cost no more than what counts as settled.
        best, last, tol = iterates.best, iterates.last.objective, self._options.tol
        is_better = best is None or last < best.objective - tol * abs(best.objective)
        cost = lagrangian.multipliers.sum() * self.surrogates.scales * violations
        is_cheap = cost <= tol * abs(last)
        self.surrogates.tighten(violations, lagrangian.violation, is_cheap & is_better)
