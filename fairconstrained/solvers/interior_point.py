"""Exact solutions of convex problems: means of convex losses of linear scores, under bounds on other such means."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    exact_result,
    named_multipliers,
)
from fairconstrained.solvers._options import Count, NonNegative
from fairconstrained.solvers._primal_dual import Iterate, followed, interior
from fairconstrained.solvers._row_program import Minimum, RowProgram, Values, minimised, obstacle_to_rows
from fairconstrained.views import Exact, FullBatch

__all__ = ["InteriorPoint"]

#: Coefficients up to which the Newton systems are solved as tables.
_MOST_PARAMS = 3000
#: Accuracy of the central path and of a minimisation, as fractions of ``tol``.
_PATH, _FREE = 1e-2, 1e-4
#: Share of the largest violation by which bounds have to be kept before the second part begins.
_INSIDE = 1e-2
#: Widths of rounded corners in units of the scores, and the share of the tolerance that is left to the last one.
_WIDTHS, _SHARP = 0.25 ** np.arange(1, 13), 0.25
#: Factor of the penalty with which the least bounds are looked for that any coefficients keep.
_LITTLE = 1e-6
#: Share of the largest multiplier below which one is rounding.
_NOUGHT = 1e-6
#: Objective below which a model is perfect up to rounding, and ``tol`` is no fraction of it.
_PERFECT = 1e-8


@dataclass(frozen=True)
class InteriorPoint(Solver):
    r"""Primal-dual interior point method for means of convex losses of linear scores, with the duality gap.

    It solves to optimality

    .. math:: \min_w f(w) + \frac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad L_j(w) \le \kappa_j
              \qquad \text{or} \qquad \min_w \max_j L_j(w) + \frac{\alpha}{2} \|w\|^2

    where f and :math:`L_j` are means over rows of convex losses, such as those of "bounded_group_loss": the log loss,
    the squared error, the hinge, the absolute error. Every iteration is a Newton step on the conditions of optimality
    with slacks, which costs about as much as one of the unconstrained fit; some ten are enough, and some forty for the
    last two losses. From its multipliers :math:`\lambda` follows a lower bound on the objective, the value of the dual

    .. math:: q(\lambda) = \min_w f(w) + \frac{\alpha}{2} \|w\|^2 + \sum_j \lambda_j (L_j(w) - \kappa_j)

    (for the largest loss, without f and :math:`\kappa` and with :math:`\sum_j \lambda_j = 1`), so that the distance to
    the optimum is known. If no coefficients keep the bounds, the method finds this out, and the message says by how
    much the bounds have to be raised. Of the models whose largest loss exceeds the least one by at most the share
    ``slack``, the result is the one of least mean loss.

    The corners of the hinge and of the absolute error are rounded, by less and less. The rounded losses are nowhere
    below these losses, so that bounds on them are kept. The lower bound is that of the losses themselves: lines through
    the corners, with the slopes that rows have in the solution, are nowhere above them.

    Takes linear scores of at most 3,000 coefficients, shared by all groups, and bounds on mean losses from above.

    Parameters
    ----------
    max_iter : int, default=200
        Largest number of Newton steps of each part.
    tol : float, default=1e-4
        Duality gap to end with, as a fraction of the objective.
    slack : float, default=0.0
        Share of the least largest loss that is given up for a lower mean loss. A value below half of ``tol`` has the
        effect of half of ``tol``.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, Algorithm 14.3 and section 19.2. Boyd, Vandenberghe (2004), Convex
    Optimization, sections 5.5.1 (the gap) and 11.7.
    """

    name: ClassVar[str] = "interior_point"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    projects: ClassVar[bool] = False
    keeps_metric: ClassVar[bool] = True
    is_final: ClassVar[bool] = True

    max_iter: Count = 200
    tol: NonNegative = 1e-4
    slack: NonNegative = 0.0

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        if (obstacle := obstacle_to_rows(problem)) or problem.n_params <= _MOST_PARAMS:
            return obstacle
        return f"at most {_MOST_PARAMS:,} coefficients, and there are {problem.n_params:,}"

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        run = _Run(self, problem, Recorder(callback, self.verbose))
        run.solve(problem.parametric.init(random_state) if start is None else start.model_state)
        return run.result()


@dataclass(eq=False)
class _Run:
    """One run of the solver."""

    solver: InteriorPoint
    problem: Problem
    recorder: Recorder
    #: The program, with the corners that losses may have.
    exact: RowProgram = field(init=False)
    #: The program with these corners rounded.
    program: RowProgram = field(init=False)
    #: The program at the best parameters so far.
    values: Values = field(init=False)
    multipliers: np.ndarray = field(init=False)  # of shape (n_means,)
    #: Lower bound on the objective; None where no dual value is known.
    lower: float | None = None
    #: Programs that were solved, with their levels and penalties.
    levels: list[tuple[RowProgram, float]] = field(default_factory=list)
    #: Amount by which the bounds would have to be raised for any coefficients to keep them.
    lacking: float = 0.0
    n_iter: int = 0
    n_evaluations: int = 0

    def __post_init__(self) -> None:
        self.exact = RowProgram.of(self.problem)
        self.multipliers = np.zeros(self.exact.n_means)

    @property
    def is_stopped(self) -> bool:
        """Whether a callback has ended the run."""
        return self.recorder.stop is not None

    def solve(self, params: np.ndarray) -> None:
        """Find the parameters, the multipliers and the lower bound."""
        self.values = self.exact.at(params)
        for width in _WIDTHS:
            self.program = self.exact.rounded(width)
            duals = self.values.duals if width < _WIDTHS[0] else None
            self.values = self.program.at(self.values.params, duals)
            self._solve_rounded()
            if self.is_stopped or not self.exact.has_corners or self._is_near():
                break
        if self.program.has_level and not self.is_stopped:
            self._lower_the_mean()

    def _solve_rounded(self) -> None:
        """Solve the program whose corners are rounded, from the solution of the one before."""
        program, has_multipliers = self.program, self.multipliers.any()
        if not (program.has_level or has_multipliers or self.lacking):
            self._minimise()
            if self.is_stopped or self.values.means.max(initial=-np.inf) <= 0:
                return
        if program.has_level or has_multipliers or self._finds_interior():
            self._conclude(self._follow(program, self.values, self.multipliers if has_multipliers else None))

    def _is_near(self) -> bool:
        """Whether rounded corners are sharp enough for the tolerance."""
        values, limit = self.values, _SHARP * self.solver.tol
        if self.lower is None:  # no coefficients keep the bounds, as far as is known
            excess = values.means - self.exact.at(values.params).means
            return bool(excess.max() <= limit * abs(values.mean))
        value = values.penalty + (values.means.max() if self.program.has_level else values.mean)
        return value - self.lower <= limit * abs(value)

    def _minimise(self) -> None:
        """Move to the least mean loss without bounds; its lower bound counts until there is another."""
        nothing = np.zeros(self.program.n_means)
        found = self._least(1.0, nothing)
        self.values, self.lower = found.values, found.lower
        self._record(Iterate(found.values, 0.0, nothing, nothing))

    def _least(self, objective: float, multipliers: np.ndarray) -> Minimum:
        """The minimum of a combination of the terms."""
        size = abs(self.values.value(objective, multipliers))
        found = minimised(self.values, objective, multipliers, _FREE * self.solver.tol * size)
        self.n_evaluations += found.n_evaluations
        return found

    def _lower_the_mean(self) -> None:
        """Minimise the mean loss among the models whose largest mean is the least one, but for ``slack``.

        The solution may be far away, so it is looked for with some of the wider corners first.
        """
        values, multipliers = self.values, None
        sharp = self.exact.at(values.params)
        slack = max(self.solver.slack, self.solver.tol / 2)
        levels = [*self.levels[:-1], (self.program, float(sharp.means.max()) + sharp.penalty)]
        for program, largest in levels[len(levels) // 2 :]:
            limits = self.exact.limits + largest + slack * abs(largest)
            second = replace(program, objective=1.0, has_level=False, share=1.0, limits=limits)
            at = self._follow(second, values, multipliers)
            values, multipliers = at.values, at.multipliers
        if at.worst <= 0 and values.mean + values.penalty < self.values.mean + self.values.penalty:
            self.values = values

    def _finds_interior(self) -> bool:
        """Move to parameters within the bounds; returns whether there are any."""
        wanted = -_INSIDE * float(self.values.means.max())
        if wanted > 0:
            self.lacking = 0.0
            return True
        for alpha in (None, _LITTLE * self.program.model.alpha):
            at = self._follow(self.program.levelled(alpha), self.values, wanted=wanted)
            if alpha is None or at.worst < 0:
                self.values = self.program.at(at.values.params, at.values.duals)
            if at.worst < 0 or self.is_stopped:
                self.lacking = 0.0
                return not self.is_stopped
        self.lacking, self.lower = at.worst, None
        return False

    def _follow(
        self, program: RowProgram, values: Values, multipliers: np.ndarray | None = None, wanted: float = -np.inf
    ) -> Iterate:
        """Follow the central path to the optimum, or until all means are low enough."""
        at, n_evaluations = followed(
            program,
            interior(program, values, multipliers),
            _PATH * self.solver.tol,
            self.solver.max_iter,
            lambda now: self.is_stopped or now.worst < wanted,
            self._record,
        )
        self.n_evaluations += n_evaluations
        return at

    def _conclude(self, at: Iterate) -> None:
        """Take an optimum, and the lower bound that its multipliers give."""
        self.values = at.values
        kept = np.where(at.multipliers > _NOUGHT * at.multipliers.max(), at.multipliers, 0.0)
        self.multipliers = kept / kept.sum() if self.program.has_level else kept
        self.lower = self._least(self.program.objective, self.multipliers).lower
        self.levels.append((self.program, at.level + self.values.penalty))

    def _record(self, at: Iterate) -> None:
        """Add a record; a callback may end the run."""
        self.n_iter += 1
        self.recorder.add(
            at.values.params,
            n_iter=self.n_iter,
            n_evaluations=self.n_evaluations,
            objective=at.values.mean + at.values.penalty,
            largest=float(at.values.means.max(initial=-np.inf)) if at.values.means.size else 0.0,
            complementarity=at.complementarity,
        )
        if self.recorder.stop is not None and self.recorder.stop.params is not None:
            self.values = self.program.at(self.recorder.stop.params)

    def result(self) -> SolverResult:
        """The result, with the metrics of the model itself."""
        result = exact_result(
            self.problem,
            self.values.params,
            self.n_evaluations,
            self.recorder,
            n_iter=self.n_iter,
            multipliers=None if self.lacking else named_multipliers(self.exact.names, self.multipliers),
            message=self._complaint(),
        )
        if result.status.is_infeasible:
            return result
        gap = None if self.lower is None else max(result.objective - self.lower, 0.0)
        share = self.solver.tol + (self.solver.slack if self.program.has_level else 0.0)
        is_optimal = gap is not None and gap <= share * max(abs(result.objective), _PERFECT)
        return replace(result, status=Status.OPTIMAL if is_optimal else Status.MAX_ITER, duality_gap=gap)

    def _complaint(self) -> str:
        """Return the message for bounds that no coefficients keep; empty otherwise."""
        if not self.lacking:
            return ""
        least = {c.name: c.kappa + self.lacking / c.scale for c in self.problem.constraints if c.component_names}
        bounds = ", ".join(f"{name} {bound:.6g}" for name, bound in least.items())
        return f"no coefficients keep the bound; the least that can be kept is {bounds}."
