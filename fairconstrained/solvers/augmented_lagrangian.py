"""Augmented Lagrangian with L-BFGS subproblems, tightened until the exact metric is within its bound."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._augmented.cold_start import searches_first
from fairconstrained.solvers._augmented.outer_iterations import OuterIterations
from fairconstrained.solvers._augmented.warm_start import start_of_parts
from fairconstrained.solvers._base import Callback, SolverResult
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver, Loop
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic, varies_smoothly

__all__ = ["AugmentedLagrangian"]

#: Rows from which on fewer are solved first, in multiples of ``coarse_rows``.
_MANY = 3
#: Tolerance of fits to parts of the rows, in multiples of that for all rows.
_TOLERANCE_OF_PARTS = 4


@dataclass(frozen=True)
class AugmentedLagrangian(IterativeSolver):
    r"""Augmented Lagrangian method whose surrogate follows the exact metric.

    Every outer iteration minimises, by L-BFGS (in a domain by projected quasi-Newton steps) over ``z = (params,
    aux)`` and from the last ``z``,

    .. math:: f(z) + \frac{1}{2 \rho} \sum_j \left( \max(\lambda_j + \rho c_j(z), 0)^2 - \lambda_j^2 \right),

    updates :math:`\lambda_j \leftarrow \max(\lambda_j + \rho c_j(z), 0)`, and then brings the surrogate closer to the
    metric (`Exact.refined`): it halves the surrogate's width down to .02 standard deviations of the scores (around a
    threshold that no scores are near to, as far as is needed to reach some), sets its values to the exact ones at the
    present scores, and adds the levels that the metric violates most. From then on it also changes the surrogate's
    allowed gap by half of the difference between the exact metric and ``kappa``, in either direction, because a
    surrogate may be above or below the metric. When the allowed gap would become zero, the width is halved again. A run
    that comes no nearer to feasibility restarts from its nearest iterate, with wider surrogates, and once more with
    still wider ones, which keep their own values until an iterate is feasible. Once one is, L-BFGS ends where two of
    its iterations gain less than a fiftieth of ``tol``, as the next surrogates are others anyway.

    Where scores are linear, with at most 600 coefficients, and bounds vary smoothly (all but counted rows at a fixed
    threshold, or at levels among fewer than 1,000 rows), L-BFGS works in coordinates in which the objective and the
    squares of the components near their bounds have a Hessian of about 1 (Gauss-Newton). It comes nearer to the
    minimiser in fewer evaluations, and ends where three of its iterations gain little. If a run comes no nearer to
    feasibility in this way, it begins anew without.

    Between a feasible iterate and an infeasible one with a better objective, a few steps of bisection search for a
    better feasible point.

    The result is the best iterate whose *exact* metrics are at most ``kappa`` plus their granularity. If the
    unconstrained optimum is such a point, it is the result. Where rows are counted, of up to 2,000 rows and 16
    coefficients of a convex objective, a random search around it looks for a better one: its steps, and the way from
    there to the unconstrained optimum as far as the exact bounds allow. The steps are the same in every fit.

    If there is a stricter constraint with fewer local optima (`Problem.stricter`), as for partial rates at one
    threshold, the run begins with a few iterations on that one.

    With many rows, the problem is first solved on a sample of a quarter of them, which is solved in the same way, down
    to ``coarse_rows``; the run on all rows then starts from the solution and its multipliers.

    A start that gives all rows the same score is ignored, unless it is a checkpoint of this solver.

    A warm start from another ``kappa`` takes over the multipliers as well. For metrics that count rows at fixed
    thresholds, or at levels among fewer than 2,000 rows, it starts from the state of the last run with the widest
    surrogate, and narrows the surrogate in two steps: a narrow surrogate has many local optima, and the last one need
    not be near the best one for this ``kappa``. For other metrics it starts where the line through the last two
    solutions reaches ``kappa``, and searches for feasible points on the lines from the last solution to its iterates.
    Where nothing is counted, as in gaps between AUCs or means, the objective is convex and its Hessian is cheap, and
    there are 2,000 rows or more, it takes steps of `SequentialQuadratic`: mostly two or three are enough, and where
    they do not settle, outer iterations follow.

    If the objective counts errors and the model can shift the scores of every group separately, the run begins with an
    exact search over the groups' thresholds on the scores of the logistic loss; the iterations are for all other cases.

    Parameters
    ----------
    max_iter : int, default=50
        Outer iterations.
    tol : float, default=5e-4
        Stop when ``patience`` iterations have not improved the best objective by this fraction.
    patience : int, default=3
        Number of outer iterations in a row without such an improvement, see ``tol``.
    inner_iter : int, default=40
        L-BFGS iterations per outer iteration.
    penalty : float, default=10.0
        First :math:`\rho`, for up to 20 components per group and in inverse proportion to their number beyond. It
        doubles whenever the violation has not halved, up to 1000.
    coarse_rows : int, default=20000
        Least number of rows to begin with, if there are many more. An evaluation on them counts in proportion.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, Algorithm 17.4 and eq. 17.65 for the treatment of
    inequalities.
    """

    name: ClassVar[str] = "augmented_lagrangian"
    restores: ClassVar[bool] = True
    keeps_metric: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True
    records_start: ClassVar[bool] = True

    max_iter: Count = 50
    tol: NonNegative = 5e-4
    patience: Count = 3
    inner_iter: Count = 40
    penalty: Positive = 10.0
    coarse_rows: Count = 20_000

    @override
    def n_epochs(self, problem: Problem) -> int:
        return self.max_iter if problem.constraints else 0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return OuterIterations(self, problem, None, z[: problem.n_params], rng)

    @override
    def first_method(self, problem: Problem, start: Start | None, rng: np.random.Generator) -> Method:
        known = None if start is None else start.on(problem.data)
        params = problem.parametric.init(rng) if known is None else known.model_state
        return OuterIterations(self, problem, known, params, rng)

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        n_samples = problem.data.n_samples
        if self.known_state(problem, start) is None:
            start = problem.unless_constant(start)
        has_many = n_samples > _MANY * self.coarse_rows and problem.works_on_other_rows
        if start is None and has_many and not searches_first(problem):
            return self._solve_on_fewer_first(self.prepared(problem), random_state, callback)
        known = None if start is None else start.on(problem.data)
        if known is not None and known.components and varies_smoothly(problem):
            return self._follow(self.prepared(problem), known, random_state, callback)
        return super().solve(problem, start, random_state, callback)

    @override
    def for_parts(self, problem: Problem) -> Self:
        """Implement `Solver.for_parts`, with a larger tolerance."""
        return replace(self, tol=_TOLERANCE_OF_PARTS * self.tol)

    @override
    def start_of_parts(self, problem: Problem, result: SolverResult) -> Start | None:
        return start_of_parts(problem, result)

    def _follow(
        self, problem: Problem, start: Start, rng: np.random.Generator, callback: Callback | None
    ) -> SolverResult:
        """Take Newton steps from the solution for another ``kappa``, and iterations where these do not settle."""
        begin = time.perf_counter()
        steps = SequentialQuadratic(
            tol=self.tol, verbose=self.verbose, max_time=self.max_time, keep_on_interrupt=self.keep_on_interrupt
        )
        found = Loop(steps, problem, start, rng, callback).run()
        if found.is_stationary or found.stopped_by:
            return found
        method = OuterIterations(self, problem, start, start.model_state, rng)
        method.n_rows = found.n_evaluations * problem.data.n_samples
        return Loop(self._within_time(begin), problem, start, rng, callback, method).run()

    def _within_time(self, begin: float) -> AugmentedLagrangian:
        """Return this solver with the time that is left since ``begin``."""
        spent = time.perf_counter() - begin
        return replace(self, max_time=None if self.max_time is None else max(self.max_time - spent, 0.0))

    def _solve_on_fewer_first(
        self, problem: Problem, rng: np.random.Generator, callback: Callback | None
    ) -> SolverResult:
        """Go on from the solution on a quarter of the rows, with its multipliers."""
        data, begin = problem.data, time.perf_counter()
        fewer = problem.on(data.thinned(rng, max(self.coarse_rows, data.n_samples // 4)))
        coarse = self.solve(fewer, None, rng, callback)
        n_rows = coarse.n_evaluations * fewer.data.n_samples
        del fewer  # a copy of a quarter of the rows
        assert coarse.start is not None  # every iterative run leaves one
        method = OuterIterations(self, problem, coarse.start, coarse.start.model_state, rng, is_followed=False)
        method.n_rows = n_rows
        if coarse.stopped_by:  # a callback that has ended the training on fewer rows is not asked again
            measured = Loop(replace(self, max_time=0.0), problem, coarse.start, rng, None, method).run()
            return replace(measured, stopped_by=coarse.stopped_by, message=coarse.message)
        return Loop(self._within_time(begin), problem, coarse.start, rng, callback, method).run()
