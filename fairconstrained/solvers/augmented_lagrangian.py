"""Augmented Lagrangian with L-BFGS inside, tightened until the exact metric holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.objectives import Objective
from fairconstrained.problem import FullBatchView, Point, Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, Status
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._path import Iterate, extrapolated, resumed, start_after, without_idle_components
from fairconstrained.solvers._rescaling import best_rescaled, constant_scores
from fairconstrained.solvers.smooth import PER_ITERATION, minimise
from fairconstrained.views import Exact, FullBatch

__all__ = ["AugmentedLagrangian"]

#: Gradient norm at which constraints take over, and the fraction of the value that fifty iterations have to gain.
_COARSE = 1e-3, 1e-6
#: Gradient norm and gain for a solution that need not move any more.
_FINE = 1e-11, 0.0
#: L-BFGS iterations that an unconstrained minimisation may take.
_UNCONSTRAINED_ITER = 2000
#: Gain of the objective, relative to it, for which scores need not differ.
_NEGLIGIBLE = 1e-10
#: Iterations without coming nearer to feasibility after which a run begins anew, and is given up the second time.
_STALLS_BEFORE_RESTART = 5
#: Most iterations on a stricter problem to begin with.
_START_ITER = 12
#: `PER_ITERATION` as long as there is no feasible iterate: long line searches are not worth their evaluations then.
_PER_ITERATION_BEFORE = 1.5
#: Iterations that promise a better optimum without reaching it, after which a run ends.
_PROMISES = 12
#: Rounding of sums of shares.
_ROUNDING = 1e-9
#: Share of the excess over the bounds by which an iterate has to come nearer to count.
_NEARER = 0.1
#: Steps of the bisection between a feasible and an infeasible iterate.
_BISECTIONS = 4
#: How much of its excess a step from an infeasible iterate is to undo: more than all, so that bisection can land.
_OVERSHOOT = 2.0
#: Components per group for which ``penalty`` is meant: ten levels, from below and from above.
_COMPONENTS = 20
#: First penalty where a path narrows the surrogate anew, with the multipliers of the last run.
_PATH_PENALTY = 20.0
#: Rows from which on fewer are solved first, in multiples of ``coarse_rows``.
_MANY = 3
#: Infeasible iterates that are kept for another scale of their scores.
_CANDIDATES = 4


@dataclass(frozen=True)
class AugmentedLagrangian(Solver):
    r"""Augmented Lagrangian method whose surrogate follows the exact metric.

    Every outer iteration minimises, by L-BFGS (in a domain by projected gradients with spectral steps) over ``z =
    (params, aux)`` and from the last ``z``,

    .. math:: f(z) + \frac{1}{2 \rho} \sum_j \left( \max(\lambda_j + \rho c_j(z), 0)^2 - \lambda_j^2 \right),

    updates :math:`\lambda_j \leftarrow \max(\lambda_j + \rho c_j(z), 0)`, and then brings the surrogate closer
    to the metric (`Exact.refined`): it halves the surrogate's width until ``final_blur``, sets its values to the
    exact ones at the present scores, and adds the levels that the metric violates most. From then on it also moves
    the surrogate's tolerance by half of what the exact metric is away from ``kappa``, in either direction: a
    smoothed constraint errs on both sides. When that leaves the surrogate no tolerance at all, the width is halved
    again. A run that comes no nearer to feasibility starts once more from its nearest iterate, with wider surrogates.

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
        doubles whenever the violation has not halved, up to ``max_penalty``.
    warm_penalty, warm_patience, warm_inner_iter : float, int and int, default=100.0, 1 and 25
        What ``penalty``, ``patience`` and ``inner_iter`` are where multipliers are known from an earlier run, as in a
        warm start or after fewer rows.
    path_inner_iter, narrowing_inner_iter : int, default=8 and 17
        What ``inner_iter`` is in a warm start from another ``kappa``; the second where the surrogate is narrowed anew.
    max_penalty : float, default=1000.0
    first_blur, final_blur : float, default=0.1 and 0.02
        Blur of the surrogate in standard deviations of the scores.
    coarse_rows : int, default=50000
        Least number of rows to begin with, where there are many more. An evaluation on them counts in proportion.
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, Algorithm 17.4 and eq. 17.65 for the treatment of
    inequalities.
    """

    name: ClassVar[str] = "augmented_lagrangian"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    keeps_metric: ClassVar[bool] = True

    max_iter: Count = 50
    tol: NonNegative = 5e-4
    patience: Count = 3
    inner_iter: Count = 40
    penalty: Positive = 10.0
    warm_penalty: Positive = 100.0
    warm_patience: Count = 1
    warm_inner_iter: Count = 25
    path_inner_iter: Count = 8
    narrowing_inner_iter: Count = 17
    max_penalty: Positive = 1000.0
    first_blur: Positive = 0.1
    final_blur: Positive = 0.02
    coarse_rows: Count = 50_000

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        problem = problem.with_restoring_slopes()
        run = _Run(self, problem, Recorder(callback, self.verbose))
        n_samples = problem.data.n_samples
        follows = start is not None
        many = n_samples > _MANY * self.coarse_rows
        if start is None and many and problem.works_on_other_rows and not run.searches_first:
            size = max(self.coarse_rows, n_samples // 4)
            thinned = problem.on(problem.data.thinned(random_state, size))
            coarse = self.solve(thinned, None, random_state, callback)
            start = coarse.start
            run.n_evaluations = int(np.ceil(coarse.n_evaluations * thinned.data.n_samples / n_samples))
        if start is None or not problem.component_names or run.searches_first:
            run.minimise_freely(problem.parametric.init(random_state) if start is None else start.model_state)
            if start is not None:
                run.measure(start.model_state)
            elif not run.converged and not run.searches_first:
                self._begin_stricter(run, random_state, callback)
        elif follows:
            run.follow(start.on(problem.data))
        else:
            run.resume(start)
        for _ in range(self.max_iter if problem.constraints else 0):
            if run.converged or run.given_up:
                break
            run.refine()
            run.minimise_lagrangian()
        return run.result()

    def _begin_stricter(self, run: _Run, random_state: np.random.Generator, callback: Callback | None) -> None:
        """Go on from the solution of a stricter problem with fewer local optima, if there is one."""
        stricter = run.problem.stricter()
        if stricter is None:
            return
        start = Start(run.z[: stricter.n_params])
        # a start need not be settled, nor is it worth a second attempt where nothing holds
        found = replace(self, max_iter=min(self.max_iter, _START_ITER)).solve(stricter, start, random_state, callback)
        run.n_evaluations += found.n_evaluations
        if found.status is not Status.INFEASIBLE and found.start is not None:
            run.resume(found.start)


class _Run:
    """One run: the current iterate, multipliers and surrogate, and the best feasible iterate so far."""

    def __init__(self, options: AugmentedLagrangian, problem: Problem, recorder: Recorder) -> None:
        self.options, self.problem, self.recorder = options, problem, recorder
        self.granularity = np.array([c.granularity for c in problem.constraints])
        self.multipliers = np.zeros(len(problem.component_names))
        #: A search over thresholds has none, and zeros would say that the constraints cost nothing.
        self.has_multipliers = not (problem.constraints and self.searches_first)
        # More levels are more components for the same gap; together they should weigh no more than a few do.
        crowd = len(problem.component_names) / (_COMPONENTS * problem.data.n_groups)
        self.first_penalty = options.penalty / max(crowd, 1.0)
        self.penalty = self.first_penalty
        self.blur, self.final_blur = options.first_blur, options.final_blur
        #: Number by which the blur is divided after an iteration.
        self.narrowing = 2.0
        self.restarted = False
        self.margins = np.zeros(len(problem.constraints))
        self.surrogate_violation = np.inf
        self.n_iter = self.n_evaluations = self.nearest_iter = 0
        #: The least excess over the bounds since the run began, or began anew.
        self.least_excess = np.inf
        #: Least excess when it last became smaller by as much as counts.
        self.farthest = np.inf
        self.stalled = 0.0
        self.best: Iterate | None = None
        self.nearest: Iterate | None = None
        self.last: Iterate | None = None
        self.outside: list[Iterate] = []
        #: The solution for another kappa that this run began from, if any.
        self.origin: Iterate | None = None
        #: Where this run stood when its surrogate was widest.
        self.coarse: Start | None = None
        self.is_on_path = False
        self.converged = self.given_up = False
        self.settled = True
        self.scales = np.array([c.scale for c in problem.constraints])
        # A finer surrogate than this sees no more than a few rows at a time, and no slope.
        self.finest = 3 * float((self.granularity * self.scales).max(initial=0.0))

    @property
    def searches_first(self) -> bool:
        """Whether an exact search over the groups' thresholds may solve the problem, see `minimise_freely`."""
        return self.problem.objective.counts_errors and self.problem.has_group_shifts

    def minimise_freely(self, params: np.ndarray) -> None:
        """Minimise the objective alone; converged if that satisfies the constraints already."""
        precision = _COARSE if self.problem.constraints else _FINE
        for loss in self.problem.objective.loss.path():
            params = self._minimise_loss(loss, params, precision)
            if self.searches_first:
                # The scores of an easier loss, cut at the thresholds that count the fewest errors within the
                # constraints. The best classifier under a bound on positive rates has this form, a threshold
                # on P(y | x) for every group, so nothing else is tried where the search succeeds.
                self.start_from(self.problem.finish(params))
                self.converged = self.best is not None
                if self.converged:
                    return
        self.start_from(params)
        if self.best is not None and precision != _FINE:
            # Perhaps the optimum is fair as it is; only then is it worth computing precisely.
            self.best = None
            self.start_from(self._minimise_loss(loss, params, _FINE))
        elif self.best is None and self._constant_instead(params) is not None:
            self.start_from(self._minimise_loss(loss, params, _FINE))
        if self.best is None and self.last is not None:
            constant = self._constant_instead(self.last.params)
            if constant is not None:
                self._keep(constant)
        self.converged = self.best is not None and self.settled

    def _constant_instead(self, params: np.ndarray) -> Iterate | None:
        """Constant scores that are as good as those at ``params``, as with a penalty and features of tiny units."""
        constant, view = constant_scores(self.problem, params), FullBatchView(self.problem.without_constraints())
        if constant is None:
            return None
        given, other = view.at(params).objective, view.at(constant)
        self.n_evaluations += view.n_evaluations
        is_as_good = other.objective <= given + _NEGLIGIBLE * abs(given)
        return self._iterate(constant, other) if is_as_good else None

    def resume(self, start: Start) -> None:
        """Go on where a run on other rows ended."""
        self._adopt(start)
        self.start_from(start.model_state)

    def follow(self, start: Start) -> None:
        """Go on along the path of solutions, where a run for another ``kappa`` ended."""
        was_free = start.multipliers and not any(multipliers.any() for multipliers in start.multipliers)
        if any(c.counts_rows for c in self.problem.constraints) and (was_free or isinstance(start.solver_state, Start)):
            self._narrow_anew(start)
            return
        self._adopt(without_idle_components(start, self.problem.constraints))
        params, origin = start.model_state, None
        if self.multipliers.any():
            self.options = replace(self.options, inner_iter=self.options.path_inner_iter)
            self.is_on_path, origin = True, self.measure(params)
            if start.previous is not None:
                predicted = extrapolated(self.measure(start.previous), origin)
                params = params if predicted is None else predicted
        self.start_from(params)
        self.origin = origin

    def _narrow_anew(self, start: Start) -> None:
        """Begin where the surrogate of the last run was widest, or at a solution without multipliers."""
        coarse, options = start.solver_state if isinstance(start.solver_state, Start) else start, self.options
        self.is_on_path = True
        self._adopt(without_idle_components(coarse, self.problem.constraints))
        self.options = replace(options, patience=options.warm_patience, inner_iter=options.narrowing_inner_iter)
        self.penalty = _PATH_PENALTY if self.multipliers.any() else self.first_penalty
        self.blur, self.narrowing = options.first_blur, (options.first_blur / options.final_blur) ** 0.5
        if coarse is not start:
            self.measure(start.model_state)
        self.start_from(coarse.model_state)

    def _adopt(self, start: Start) -> None:
        """Take over components and multipliers, as far as they fit."""
        self.problem, known = resumed(self.problem, start)
        self.multipliers = np.zeros(len(self.problem.component_names)) if known is None else known
        if self.multipliers.any():
            warm = self.options
            self.blur, self.penalty = self.final_blur, warm.warm_penalty
            self.options = replace(warm, patience=warm.warm_patience, inner_iter=warm.warm_inner_iter)

    def start_from(self, params: np.ndarray) -> None:
        """Begin at ``params``."""
        self.z = self.problem.project(self.problem.start(params))
        point = FullBatchView(self.problem).at(self.z)
        self.n_evaluations += 1
        self._assess(point)

    def refine(self) -> None:
        """Bring the surrogates closer to the metrics around the current scores."""
        constraints = tuple(
            constraint.refined(self.scores, blur=self.blur, margin=margin)
            for constraint, margin in zip(self.problem.constraints, self.margins, strict=True)
        )
        multipliers, aux, first = [], [], 0
        for old, new in zip(self.problem.constraints, constraints, strict=True):
            # new components stand behind the old ones of their constraint
            count = len(old.component_names)
            added = np.zeros(len(new.component_names) - count)
            multipliers += [self.multipliers[first : first + count], added]
            aux.append(new.initial_aux(self.scores))
            first += count
        self.multipliers = np.concatenate(multipliers)
        self.z = np.concatenate([self.z[: self.problem.n_params], *aux])
        self.problem = replace(self.problem, constraints=constraints)

    def minimise_lagrangian(self) -> None:
        """One outer iteration."""
        view = FullBatchView(self.problem)
        multipliers, penalty = self.multipliers, self.penalty

        def lagrangian(point: Point) -> tuple[float, np.ndarray]:
            updated = np.maximum(multipliers + penalty * point.constraints, 0)
            value = point.objective + float(updated @ updated - multipliers @ multipliers) / (2 * penalty)
            return value, point.gradient(1.0, updated)

        per_iteration = _PER_ITERATION_BEFORE if self.best is None else PER_ITERATION
        self.z, _ = minimise(view, lagrangian, self.z, self.options.inner_iter, gtol=1e-6, per_iteration=per_iteration)
        point = view.at(self.z)
        self.n_evaluations += view.n_evaluations
        self.n_iter += 1
        self.has_multipliers = True
        self.multipliers = np.maximum(multipliers + penalty * point.constraints, 0)
        if self.blur >= self.options.first_blur:
            self.coarse = start_after(self.problem, self.z[: self.problem.n_params].copy(), self.multipliers)
        violation = max(float(point.constraints.max(initial=0.0)), 0.0)
        if violation > self.surrogate_violation / 2:
            self.penalty = min(2 * self.penalty, self.options.max_penalty)
        self.surrogate_violation = violation
        previous = self.best.objective if self.best else np.inf
        self._assess(point)
        self._count_stalls(previous, point.objective)
        self._tighten()

    def _count_stalls(self, previous: float, objective: float) -> None:
        """Converged if the best objective has settled; given up if feasibility does not come nearer.

        ``previous`` is the best objective before this iteration, ``objective`` the present one.
        """
        comes_nearer = self.best is None and self.nearest_iter == self.n_iter
        # Along a path, the first iterate still has the multipliers of another kappa.
        too_early = self.blur > self.final_blur or (self.origin is not None and self.n_iter == 1)
        if too_early or comes_nearer:
            self.stalled = 0.0
        elif self.best is None:
            # An iterate that is no better than what is to be had without any search gives no hope, and one that
            # the largest penalty has not brought nearer gives less.
            share = (
                2 / _STALLS_BEFORE_RESTART if self.penalty >= self.options.max_penalty else 1 / _STALLS_BEFORE_RESTART
            )
            self.stalled += self.options.patience * share if objective < self.least_rescaled_objective else 1.0
        elif self.best.objective < previous - self.options.tol * abs(previous):
            self.stalled = 0.0
        else:
            # An iterate that is better but not yet feasible may still become feasible. Along a path that was tried.
            promising = objective < self.best.objective - self.options.tol * abs(self.best.objective)
            waits = promising and not self.is_on_path
            self.stalled += self.options.patience / _PROMISES if waits else 1.0
        finished = self.stalled > self.options.patience - _ROUNDING
        self.converged = finished and self.best is not None
        self.given_up = finished and self.best is None and self.restarted

    @cached_property
    def least_rescaled_objective(self) -> float:
        """Return a number clearly below the objective of any feasible multiple of the nearest scores; or infinity."""
        assert self.nearest is not None  # every run assesses its start
        params = best_rescaled(self.problem, [self.nearest.params])
        point = FullBatchView(self.problem.without_constraints()).at(params)
        self.n_evaluations += 1
        is_feasible = self._iterate(params, point).excess <= 0
        return point.objective - self.options.tol * abs(point.objective) if is_feasible else np.inf

    def _tighten(self) -> None:
        """Set the next surrogate's blur and margins from how the exact metrics turned out."""
        if self.best is None and self.stalled > self.options.patience - _ROUNDING and not self.restarted:
            self._restart()
            return
        if self.blur > self.final_blur:
            self.blur = max(self.blur / self.narrowing, self.final_blur)
            return
        # What the surrogate itself is still violated by is for the multipliers to resolve, not for the margins, unless
        # nothing holds yet and a margin costs no more than what counts as settled.
        unresolved = self.surrogate_violation / self.scales
        resolved = (self.violations <= 0) | (self.violations > 2 * unresolved)
        if self.best is None and self.last is not None:
            resolved |= self.multipliers.sum() * self.violations <= self.options.tol * abs(self.last.objective)
        kappas = np.array([c.kappa for c in self.problem.constraints])
        self.margins = np.minimum(self.margins + resolved * self.violations / 2, kappas)
        if (self.margins >= kappas).any():
            # The surrogate has no tolerance left; only a finer one can do better, as far as there are rows to see.
            self.blur, self.margins = min(self.blur, max(self.blur / 2, self.finest)), self.margins / 2

    def _restart(self) -> None:
        """Begin again where feasibility was nearest, with surrogates that look further than a few rows."""
        assert self.nearest is not None  # every run assesses its start
        self.restarted, self.stalled = True, 0.0
        self.least_excess = self.farthest = np.inf
        self.z[: self.problem.n_params] = self.nearest.params
        self.scores = self.problem.scores(self.nearest.params)
        self.multipliers = np.zeros_like(self.multipliers)
        self.margins = np.zeros_like(self.margins)
        self.penalty, self.surrogate_violation = self.first_penalty, np.inf
        self.blur, self.final_blur = self.options.first_blur, self.options.first_blur / 2

    def _assess(self, point: Point) -> None:
        """Measure the exact metrics, and keep the iterate if it is the best one."""
        previous, self.scores = self.last, point.scores
        self.last = iterate = self._iterate(self.z[: self.problem.n_params].copy(), point)
        self.violations = iterate.violations
        self._keep(iterate)
        self._remember(iterate)
        if previous is not None and (previous.excess <= 0) != (iterate.excess <= 0):
            inside, outside = (previous, iterate) if previous.excess <= 0 else (iterate, previous)
            self._bisect_between(inside, outside)
        elif self.origin is not None:
            self._extrapolate_beyond(self.origin, iterate)
        if self.nearest is None or iterate.excess < self.nearest.excess:
            self.nearest = iterate
        self.least_excess = min(self.least_excess, iterate.excess)
        if self.least_excess <= (1 - _NEARER) * self.farthest:
            self.farthest, self.nearest_iter = self.least_excess, self.n_iter
        self.recorder.add(
            iterate.params,
            n_iter=self.n_iter,
            n_evaluations=self.n_evaluations,
            objective=point.objective,
            **iterate.values,
            surrogate_violation=self.surrogate_violation,
            blur=self.blur,
            penalty=self.penalty,
            n_components=self.multipliers.size,
        )

    def _iterate(self, params: np.ndarray, point: Point) -> Iterate:
        multipliers = self.multipliers if self.has_multipliers else None
        return Iterate.of(self.problem, params, point.objective, point.scores, multipliers)

    def _keep(self, iterate: Iterate) -> None:
        if iterate.excess <= 0 and (self.best is None or iterate.objective < self.best.objective):
            self.best = iterate

    def _remember(self, iterate: Iterate) -> None:
        """Keep the infeasible iterates of least objective, which a smaller multiple may make feasible."""
        if iterate.excess > 0:
            self.outside = sorted([*self.outside, iterate], key=lambda kept: kept.objective)[:_CANDIDATES]

    def _bisect_between(self, inside: Iterate, outside: Iterate) -> None:
        """Look for a better feasible point between a feasible and an infeasible iterate, by bisection."""
        if outside.objective >= inside.objective:
            return
        low, high = inside.params, outside.params
        for _ in range(_BISECTIONS):
            iterate = self.measure((low + high) / 2)
            low, high = (iterate.params, high) if iterate.excess <= 0 else (low, iterate.params)

    def _extrapolate_beyond(self, origin: Iterate, outside: Iterate) -> None:
        """Look for a feasible point on the line from the last solution, beyond an infeasible iterate."""
        params = extrapolated(origin, outside, _OVERSHOOT)
        if params is not None and (self.best is None or outside.objective < self.best.objective):
            inside = self.measure(self.problem.project(params))
            if inside.excess <= 0:
                self._bisect_between(inside, outside)

    def measure(self, params: np.ndarray) -> Iterate:
        """The iterate at ``params``, kept if it is the best one."""
        point = FullBatchView(self.problem.without_constraints()).at(params)
        self.n_evaluations += 1
        iterate = self._iterate(params, point)
        self._keep(iterate)
        return iterate

    def result(self) -> SolverResult:
        """The best feasible iterate, or the one nearest to feasibility."""
        iterate = self.best or self.nearest
        assert iterate is not None  # every run assesses its start
        start = start_after(self.problem, iterate.params, self.multipliers, self.origin)
        status = Status.OPTIMAL if self.converged else Status.MAX_ITER
        return SolverResult(
            model_state=iterate.params,
            status=status if self.best else Status.INFEASIBLE,
            n_iter=max(self.n_iter, 1),
            n_evaluations=self.n_evaluations,
            objective=iterate.objective,
            constraint_values=iterate.values,
            surrogate_violation=self.surrogate_violation,
            multipliers=iterate.multipliers,
            history=tuple(self.recorder.records),
            start=replace(start, solver_state=self.coarse),
            candidates=tuple(kept.params for kept in [*self.outside, self.nearest] if kept is not None),
        )

    def _minimise_loss(self, loss: Objective, params: np.ndarray, precision: tuple[float, float]) -> np.ndarray:
        """Minimise one loss of the objective's path without constraints."""
        view = FullBatchView(replace(self.problem.without_constraints(), objective=loss.bind(self.problem.data)))
        solution, self.settled = minimise(
            view, lambda p: (p.objective, p.gradient(1.0, np.empty(0))), params, _UNCONSTRAINED_ITER, *precision
        )
        self.n_evaluations += view.n_evaluations
        return solution
