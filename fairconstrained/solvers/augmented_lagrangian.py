"""Augmented Lagrangian with L-BFGS inside, tightened until the exact metric holds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.exceptions import StopTraining
from fairconstrained.objectives import Objective
from fairconstrained.problem import FullBatchView, Point, Problem, Start
from fairconstrained.solvers._base import Callback, SolverResult, Status, named_multipliers
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._outer_iterations import FIRST_BLUR, Penalties, Progress, Surrogates
from fairconstrained.solvers._path import Iterate, extrapolated, resumed, start_after, without_idle_components
from fairconstrained.solvers._rescaling import best_rescaled, constant_scores
from fairconstrained.solvers.loop import IterativeSolver, Loop, ended
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.smooth import PER_ITERATION, minimise
from fairconstrained.solvers.source import Source

__all__ = ["AugmentedLagrangian"]

#: Gradient norm at which constraints take over, and the fraction of the value that fifty iterations have to gain.
_COARSE = 1e-3, 1e-6
#: Gradient norm and gain for a solution that need not move any more.
_FINE = 1e-11, 0.0
#: L-BFGS iterations that an unconstrained minimisation may take.
_UNCONSTRAINED_ITER = 2000
#: Gain of the objective, relative to it, for which scores need not differ.
_NEGLIGIBLE = 1e-10
#: Most iterations on a stricter problem to begin with.
_START_ITER = 12
#: `PER_ITERATION` as long as there is no feasible iterate: long line searches are not worth their evaluations then.
_PER_ITERATION_BEFORE = 1.5
#: Steps of the bisection between a feasible and an infeasible iterate.
_BISECTIONS = 4
#: How much of its excess a step from an infeasible iterate is to undo: more than all, so that bisection can land.
_OVERSHOOT = 2.0
#: Penalty, patience and L-BFGS iterations where multipliers are known, so that there is little left to find.
_WARM_PENALTY, _WARM_PATIENCE, _WARM_INNER_ITER = 100.0, 1, 25
#: L-BFGS iterations along a path, where the last solution is near, and where a path narrows the surrogate anew.
_PATH_INNER_ITER, _NARROWING_INNER_ITER = 8, 17
#: First penalty where a path narrows the surrogate anew, with the multipliers of the last run.
_PATH_PENALTY = 20.0
#: Rows from which on fewer are solved first, in multiples of ``coarse_rows``.
_MANY = 3
#: Infeasible iterates that are kept for another scale of their scores.
_CANDIDATES = 4


@dataclass(frozen=True)
class AugmentedLagrangian(IterativeSolver):
    r"""Augmented Lagrangian method whose surrogate follows the exact metric.

    Every outer iteration minimises, by L-BFGS (in a domain by projected gradients with spectral steps) over ``z =
    (params, aux)`` and from the last ``z``,

    .. math:: f(z) + \frac{1}{2 \rho} \sum_j \left( \max(\lambda_j + \rho c_j(z), 0)^2 - \lambda_j^2 \right),

    updates :math:`\lambda_j \leftarrow \max(\lambda_j + \rho c_j(z), 0)`, and then brings the surrogate closer
    to the metric (`Exact.refined`): it halves the surrogate's width down to .02 standard deviations
    of the scores, sets its values to the exact ones at the present scores, and adds the levels that the metric violates
    most. From then on it also moves the surrogate's tolerance by half of what the exact metric is away from ``kappa``,
    in either direction: a smoothed constraint errs on both sides. When that leaves the surrogate no tolerance at all,
    the width is halved again. A run that comes no nearer to feasibility starts once more from its nearest iterate, with
    wider surrogates.

    Between a feasible and an infeasible iterate of better objective, a few steps of bisection look for a better
    feasible point.

    The result is the best iterate whose *exact* metrics are at most ``kappa`` plus their granularity. If the
    unconstrained optimum is such a point, it is the result.

    Where a constraint has a stricter one with fewer local optima (`Problem.stricter`), as partial rates at one
    threshold have, a few iterations on that one come first.

    Of many rows, a quarter that stands for them is solved first, and so on down to ``coarse_rows``; all rows take over
    where these end, with their multipliers.

    A warm start from another ``kappa`` carries the multipliers over as well. Of metrics that count rows at thresholds
    it begins where the last run stood when its surrogate was widest, and narrows the surrogate in two steps: the optima
    of a narrow one are many, and the last one need not be near to the best for this ``kappa``. Of other metrics it
    begins where the line through the last two solutions reaches ``kappa``, and looks for feasible points on the lines
    from the last solution to its iterates.

    An objective that counts errors is first minimised by an exact search over the groups' thresholds on the scores
    of the logistic loss, where the model can move every group on its own; what follows is for the other cases.

    Parameters
    ----------
    max_iter : int, default=50
        Outer iterations.
    tol : float, default=5e-4
        Stop when ``patience`` iterations have not improved the best objective by this fraction.
    patience : int, default=3
    inner_iter : int, default=40
        L-BFGS iterations per outer iteration.
    penalty : float, default=10.0
        First :math:`\rho`, for up to 20 components per group and in inverse proportion to their number beyond. It
        doubles whenever the violation has not halved, up to 1000.
    coarse_rows : int, default=50000
        Least number of rows to begin with, where there are many more. An evaluation on them counts in proportion.
    max_time, keep_on_interrupt
        See `fairconstrained.solvers.IterativeSolver`.
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, Algorithm 17.4 and eq. 17.65 for the treatment of
    inequalities.
    """

    name: ClassVar[str] = "augmented_lagrangian"
    keeps_metric: ClassVar[bool] = True
    records_start: ClassVar[bool] = True

    max_iter: Count = 50
    tol: NonNegative = 5e-4
    patience: Count = 3
    inner_iter: Count = 40
    penalty: Positive = 10.0
    coarse_rows: Count = 50_000

    @override
    def prepared(self, problem: Problem) -> Problem:
        return problem.with_restoring_slopes()

    @override
    def n_epochs(self, problem: Problem) -> int:
        return self.max_iter if problem.constraints else 0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Run(self, problem, None, z[: problem.n_params], rng)

    @override
    def first_method(self, problem: Problem, start: Start | None, rng: np.random.Generator) -> Method:
        params = problem.parametric.init(rng) if start is None else start.model_state
        return _Run(self, problem, None if start is None else start.on(problem.data), params, rng)

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        n_samples = problem.data.n_samples
        has_many = n_samples > _MANY * self.coarse_rows and problem.works_on_other_rows
        if start is None and has_many and not _searches_first(problem):
            return self._solve_on_fewer_first(self.prepared(problem), random_state, callback)
        return super().solve(problem, start, random_state, callback)

    def _solve_on_fewer_first(
        self, problem: Problem, rng: np.random.Generator, callback: Callback | None
    ) -> SolverResult:
        """Go on from the solution on a quarter of the rows, with its multipliers."""
        data, begin, is_stopped = problem.data, time.perf_counter(), False

        def watched(record: Mapping[str, Any]) -> None:
            nonlocal is_stopped
            try:
                if callback is not None:
                    callback(record)
            except StopTraining:
                is_stopped = True
                raise

        fewer = problem.on(data.thinned(rng, max(self.coarse_rows, data.n_samples // 4)))
        coarse = self.solve(fewer, None, rng, watched)
        assert coarse.start is not None  # every run of this solver can be gone on from
        method = _Run(self, problem, coarse.start, coarse.start.model_state, rng, is_followed=False)
        method.n_rows = coarse.n_evaluations * fewer.data.n_samples
        spent = time.perf_counter() - begin
        left = None if self.max_time is None else max(self.max_time - spent, 0.0)
        # A callback that has ended the training on fewer rows is not asked again.
        rest = replace(self, max_time=0.0 if is_stopped else left)
        return Loop(rest, problem, coarse.start, rng, None if is_stopped else callback, method).run()


def _searches_first(problem: Problem) -> bool:
    """Whether an exact search over the groups' thresholds may solve the problem, see `_Run._minimise_freely`."""
    return problem.objective.counts_errors and problem.has_group_shifts


class _Run(Method):
    """One run: the iterate with its surrogate problem, and the best feasible iterate so far.

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
    """

    holds_rows = True

    def __init__(
        self,
        options: AugmentedLagrangian,
        problem: Problem,
        start: Start | None,
        params: np.ndarray,
        rng: np.random.Generator,
        is_followed: bool = True,
    ) -> None:
        self._options, self._problem, self._start, self._rng = options, problem, start, rng
        self._is_followed, self._searches = is_followed, _searches_first(problem)
        self._own = problem
        self._penalties = Penalties(problem, options.penalty)
        self._surrogates = Surrogates(problem.constraints)
        self._progress = Progress(options.patience, options.tol)
        self._inner_iter = options.inner_iter
        #: Variables of the refined problem, whose constraints may have other auxiliary ones.
        self._w = problem.start(params)
        self._aux = self._w[problem.n_params :]
        #: A search over thresholds has none, and zeros would say that the constraints cost nothing.
        self._has_multipliers = not (problem.constraints and self._searches)
        self.n_rows = self._n_evaluations = self._n_iter = 0
        self._best: Iterate | None = None
        self._nearest: Iterate | None = None
        self._last: Iterate | None = None
        self._outside: list[Iterate] = []
        #: The solution for another kappa that this run began from, if any.
        self._origin: Iterate | None = None
        #: Where this run stood when its surrogate was widest.
        self._coarse: Start | None = None
        self._is_on_path = self._is_converged = self._is_given_up = False
        self._is_settled = True

    # --- the contract of a method

    @property
    def z(self) -> np.ndarray:  # type: ignore[override]  # a variable elsewhere
        """The parameters, with the auxiliary variables of the problem as it was given."""
        return np.concatenate([self._w[: self._problem.n_params], self._aux])

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        start, params = self._start, self._w[: problem.n_params]
        source.count(self.n_rows)
        if start is None or not problem.component_names or self._searches:
            self._minimise_freely(params)
            if start is not None:
                self._measure(start.model_state)
            elif not self._is_converged and not self._searches:
                self._begin_stricter()
        elif self._is_followed:
            self._follow(start)
        else:
            self._resume(start)
        self._count(source)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        """One outer iteration: better surrogates, their minimisation, the multipliers, and what comes next."""
        self._refine()
        point = self._minimise_lagrangian()
        previous = self._best.objective if self._best else np.inf
        self._assess(point)
        self._count_stalls(previous, point.objective)
        self._tighten()
        self._count(source)

    @property
    @override
    def finished(self) -> bool:
        return self._is_converged or self._is_given_up

    @property
    @override
    def multipliers(self) -> np.ndarray | None:
        return self._penalties.multipliers if self._has_multipliers else None

    @override
    def point(self, source: Source, problem: Problem) -> Point:
        return self._point

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {
            "surrogate_violation": self._penalties.violation,
            "blur": self._surrogates.blur,
            "penalty": self._penalties.penalty,
            "n_components": self._penalties.multipliers.size,
        }

    @property
    def _end(self) -> Iterate:
        """The best feasible iterate, or the one nearest to feasibility."""
        iterate = self._best or self._nearest
        assert iterate is not None  # every run assesses its start
        return iterate

    @override
    def output(self) -> np.ndarray:
        return np.concatenate([self._end.params, self._aux])

    @override
    def named_multipliers(self, names: Sequence[str]) -> dict[str, float] | None:
        return self._end.multipliers

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        start = start_after(self._problem, result.model_state, self._penalties.multipliers, self._origin)
        candidates = tuple(kept.params for kept in [*self._outside, self._nearest] if kept is not None)
        return replace(
            ended(result, self._is_converged),
            n_iter=max(result.n_iter, 1),
            surrogate_violation=self._penalties.violation,
            start=replace(start, solver_state=self._coarse),
            candidates=candidates,
            aux=None,
        )

    def _count(self, source: Source) -> None:
        """Tell the loop how many rows were seen."""
        source.count(self._n_evaluations * self._problem.data.n_samples)
        self._n_evaluations = 0

    # --- where to begin

    def _minimise_freely(self, params: np.ndarray) -> None:
        """Minimise the objective alone; converged if that satisfies the constraints already."""
        precision = _COARSE if self._problem.constraints else _FINE
        for loss in self._problem.objective.loss.path():
            params = self._minimise_loss(loss, params, precision)
            if self._searches:
                # The scores of an easier loss, cut at the thresholds that count the fewest errors within the
                # constraints. The best classifier under a bound on positive rates has this form, a threshold
                # on P(y | x) for every group, so nothing else is tried where the search succeeds.
                self._start_from(self._problem.finish(params))
                self._is_converged = self._best is not None
                if self._is_converged:
                    return
        self._start_from(params)
        if self._best is not None and precision != _FINE:
            # Perhaps the optimum is fair as it is; only then is it worth computing precisely.
            self._best = None
            self._start_from(self._minimise_loss(loss, params, _FINE))
        elif self._best is None and self._constant_instead(params) is not None:
            self._start_from(self._minimise_loss(loss, params, _FINE))
        if self._best is None and self._last is not None:
            constant = self._constant_instead(self._last.params)
            if constant is not None:
                self._keep(constant)
        self._is_converged = self._best is not None and self._is_settled

    def _constant_instead(self, params: np.ndarray) -> Iterate | None:
        """Constant scores that are as good as those at ``params``, as with a penalty and features of tiny units."""
        constant, view = constant_scores(self._problem, params), FullBatchView(self._problem.without_constraints())
        if constant is None:
            return None
        given, other = view.at(params).objective, view.at(constant)
        self._n_evaluations += view.n_evaluations
        is_as_good = other.objective <= given + _NEGLIGIBLE * abs(given)
        return self._iterate(constant, other) if is_as_good else None

    def _begin_stricter(self) -> None:
        """Go on from the solution of a stricter problem with fewer local optima, if there is one."""
        stricter, options = self._problem.stricter(), self._options
        if stricter is None:
            return
        start = Start(self._w[: stricter.n_params])
        # a start need not be settled, nor is it worth a second attempt where nothing holds
        found = replace(options, max_iter=min(options.max_iter, _START_ITER)).solve(stricter, start, self._rng)
        self._n_evaluations += found.n_evaluations
        if found.status is not Status.INFEASIBLE and found.start is not None:
            self._resume(found.start)

    def _resume(self, start: Start) -> None:
        """Go on where a run on other rows ended."""
        self._adopt(start)
        self._start_from(start.model_state)

    def _follow(self, start: Start) -> None:
        """Go on along the path of solutions, where a run for another ``kappa`` ended."""
        was_free = start.multipliers and not any(multipliers.any() for multipliers in start.multipliers)
        counts_rows = any(c.counts_rows for c in self._problem.constraints)
        if counts_rows and (was_free or isinstance(start.solver_state, Start)):
            self._narrow_anew(start)
            return
        self._adopt(without_idle_components(start, self._problem.constraints))
        params, origin = start.model_state, None
        if self._penalties.multipliers.any():
            self._inner_iter = _PATH_INNER_ITER
            self._is_on_path, origin = True, self._measure(params)
            if start.previous is not None:
                predicted = extrapolated(self._measure(start.previous), origin)
                params = params if predicted is None else predicted
        self._start_from(params)
        self._origin = origin

    def _narrow_anew(self, start: Start) -> None:
        """Begin where the surrogate of the last run was widest, or at a solution without multipliers."""
        coarse = start.solver_state if isinstance(start.solver_state, Start) else start
        self._is_on_path = True
        self._adopt(without_idle_components(coarse, self._problem.constraints))
        penalties = self._penalties
        self._progress.patience, self._inner_iter = _WARM_PATIENCE, _NARROWING_INNER_ITER
        penalties.penalty = _PATH_PENALTY if penalties.multipliers.any() else penalties.first
        self._surrogates.narrow_in_two_steps()
        if coarse is not start:
            self._measure(start.model_state)
        self._start_from(coarse.model_state)

    def _adopt(self, start: Start) -> None:
        """Take over components and multipliers, as far as they fit."""
        self._problem, known = resumed(self._problem, start)
        size = len(self._problem.component_names)
        self._penalties.multipliers = np.zeros(size) if known is None else known
        if self._penalties.multipliers.any():
            self._surrogates.start_narrow()
            self._penalties.penalty = _WARM_PENALTY
            self._progress.patience, self._inner_iter = _WARM_PATIENCE, _WARM_INNER_ITER

    def _start_from(self, params: np.ndarray) -> None:
        """Begin at ``params``."""
        self._w = self._problem.project(self._problem.start(params))
        point = FullBatchView(self._problem).at(self._w)
        self._n_evaluations += 1
        self._assess(point)

    def _minimise_loss(self, loss: Objective, params: np.ndarray, precision: tuple[float, float]) -> np.ndarray:
        """Minimise one loss of the objective's path without constraints."""
        view = FullBatchView(replace(self._problem.without_constraints(), objective=loss.bind(self._problem.data)))
        solution, self._is_settled = minimise(
            view, lambda p: (p.objective, p.gradient(1.0, np.empty(0))), params, _UNCONSTRAINED_ITER, *precision
        )
        self._n_evaluations += view.n_evaluations
        return solution

    # --- an outer iteration

    def _refine(self) -> None:
        """Bring the surrogates closer to the metrics around the current scores."""
        constraints = self._surrogates.refined(self._problem.constraints, self._scores)
        multipliers, aux, first = [], [], 0
        for old, new in zip(self._problem.constraints, constraints, strict=True):
            # new components stand behind the old ones of their constraint
            count = len(old.component_names)
            added = np.zeros(len(new.component_names) - count)
            multipliers += [self._penalties.multipliers[first : first + count], added]
            aux.append(new.initial_aux(self._scores))
            first += count
        self._penalties.multipliers = np.concatenate(multipliers)
        self._w = np.concatenate([self._w[: self._problem.n_params], *aux])
        self._problem = replace(self._problem, constraints=constraints)

    def _minimise_lagrangian(self) -> Point:
        """Minimise the augmented Lagrangian, and update its multipliers."""
        view, penalties = FullBatchView(self._problem), self._penalties
        per_iteration = _PER_ITERATION_BEFORE if self._best is None else PER_ITERATION
        self._w, _ = minimise(
            view, penalties.lagrangian, self._w, self._inner_iter, gtol=1e-6, per_iteration=per_iteration
        )
        point = view.at(self._w)
        self._n_evaluations += view.n_evaluations
        self._n_iter += 1
        self._has_multipliers = True
        penalties.update(point.constraints)
        if self._surrogates.blur >= FIRST_BLUR:
            params = self._w[: self._problem.n_params].copy()
            self._coarse = start_after(self._problem, params, penalties.multipliers)
        return point

    def _count_stalls(self, previous: float, objective: float) -> None:
        """Converged if the best objective has settled; given up if feasibility does not come nearer.

        ``previous`` is the best objective before this iteration, ``objective`` the present one.
        """
        progress = self._progress
        # Along a path, the first iterate still has the multipliers of another kappa.
        if self._surrogates.is_narrowing or (self._origin is not None and self._n_iter == 1):
            progress.reset()
        elif self._best is None:
            progress.count_infeasible(lambda: objective < self._least_rescaled_objective, self._penalties.is_largest)
        else:
            # Along a path, an iterate that promises more was tried.
            progress.count_feasible(previous, self._best.objective, objective, waits=not self._is_on_path)
        self._is_converged = progress.is_over and self._best is not None
        self._is_given_up = progress.is_over and self._best is None and progress.restarted

    @cached_property
    def _least_rescaled_objective(self) -> float:
        """A number clearly below the objective of any feasible multiple of the nearest scores; or infinity."""
        assert self._nearest is not None  # every run assesses its start
        params = best_rescaled(self._problem, [self._nearest.params])
        point = FullBatchView(self._problem.without_constraints()).at(params)
        self._n_evaluations += 1
        is_feasible = self._problem.measured(point.scores).excess <= 0
        return point.objective - self._options.tol * abs(point.objective) if is_feasible else np.inf

    def _tighten(self) -> None:
        """Set the next surrogates, or begin anew where a run comes no nearer to feasibility."""
        if self._best is None and self._progress.is_over and not self._progress.restarted:
            self._restart()
            return
        assert self._last is not None  # it was assessed in this iteration
        penalties, violations = self._penalties, self._last.violations
        # If nothing holds yet, a margin may cost no more than what counts as settled.
        cost = penalties.multipliers.sum() * violations
        is_cheap = cost <= self._options.tol * abs(self._last.objective)
        self._surrogates.tighten(violations, penalties.violation, is_cheap & (self._best is None))

    def _restart(self) -> None:
        """Begin again where feasibility was nearest, with surrogates that look further than a few rows."""
        assert self._nearest is not None  # every run assesses its start
        self._progress.restart()
        self._w[: self._problem.n_params] = self._nearest.params
        self._scores = self._problem.scores(self._nearest.params)
        self._penalties.restart()
        self._surrogates.restart()

    # --- the iterates

    def _assess(self, point: Point) -> None:
        """Measure the exact metrics, and keep the iterate if it is the best one."""
        self._point, self._scores = point, point.scores
        previous, iterate = self._last, self._iterate(self._w[: self._problem.n_params].copy(), point)
        self._last = iterate
        self._keep(iterate)
        self._remember(iterate)
        if previous is not None and (previous.excess <= 0) != (iterate.excess <= 0):
            inside, outside = (previous, iterate) if previous.excess <= 0 else (iterate, previous)
            self._bisect_between(inside, outside)
        elif self._origin is not None:
            self._extrapolate_beyond(self._origin, iterate)
        if self._nearest is None or iterate.excess < self._nearest.excess:
            self._nearest = iterate
        self._progress.see(iterate.excess)

    def _iterate(self, params: np.ndarray, point: Point) -> Iterate:
        names = self._problem.component_names
        return Iterate(
            params,
            point.objective,
            self._problem.measured(point.scores),
            named_multipliers(names, self._penalties.multipliers if self._has_multipliers else None),
        )

    def _keep(self, iterate: Iterate) -> None:
        if iterate.excess <= 0 and (self._best is None or iterate.objective < self._best.objective):
            self._best = iterate

    def _remember(self, iterate: Iterate) -> None:
        """Keep the infeasible iterates of least objective, which a smaller multiple may make feasible."""
        if iterate.excess > 0:
            self._outside = sorted([*self._outside, iterate], key=lambda kept: kept.objective)[:_CANDIDATES]

    def _bisect_between(self, inside: Iterate, outside: Iterate) -> None:
        """Look for a better feasible point between a feasible and an infeasible iterate, by bisection."""
        if outside.objective >= inside.objective:
            return
        low, high = inside.params, outside.params
        for _ in range(_BISECTIONS):
            iterate = self._measure((low + high) / 2)
            low, high = (iterate.params, high) if iterate.excess <= 0 else (low, iterate.params)

    def _extrapolate_beyond(self, origin: Iterate, outside: Iterate) -> None:
        """Look for a feasible point on the line from the last solution, beyond an infeasible iterate."""
        params = extrapolated(origin, outside, _OVERSHOOT)
        if params is not None and (self._best is None or outside.objective < self._best.objective):
            inside = self._measure(self._problem.project(params))
            if inside.excess <= 0:
                self._bisect_between(inside, outside)

    def _measure(self, params: np.ndarray) -> Iterate:
        """The iterate at ``params``, kept if it is the best one."""
        point = FullBatchView(self._problem.without_constraints()).at(params)
        self._n_evaluations += 1
        iterate = self._iterate(params, point)
        self._keep(iterate)
        return iterate
