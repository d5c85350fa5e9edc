"""Newton's method for a few coefficients under bounds on counted rows: one small quadratic program after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch
from typing_extensions import override

from fairconstrained.constraints import BoundConstraint
from fairconstrained.models import LinearModel
from fairconstrained.points import Point, largest_violation
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers._augmented.iterates import Iterate
from fairconstrained.solvers._augmented.warm_start import predicted, start_after
from fairconstrained.solvers._base import SolverResult, named_multipliers
from fairconstrained.solvers._newton_coordinates import has_convex_hessian, parameter_hessian
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._quadratic_program import ELASTIC, ProgramNotSolved, QuadraticProgram, largest_components
from fairconstrained.solvers.loop import IterativeSolver, ended
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured

__all__ = ["SequentialQuadratic", "varies_smoothly"]

#: Coefficients up to which the Hessian is cheap beside what is done for every row.
_MOST_PARAMS = 80
#: Share of ``tol`` that a step has to promise, and the fraction of the objective without bounds, where the next step is
#: much smaller.
_PROMISE, _FREE = 0.2, 1e-9
#: Share of the promise that a step has to keep, and of the violation that it may leave instead.
_KEPT, _LEFT = 0.1, 0.5
#: Violation that need not be halved: it is about the rounding of counts.
_SMALL = 1e-3
#: Violation up to which a step undoes twice as much.
_REST = 1e-4
#: Lengths of a step that are tried.
_LENGTHS = 0.5 ** np.arange(4)
#: How often bounds are made smaller that no step has kept.
_TIGHTENED = 2
#: Weight of the violation in the merit function: above the sum of the multipliers, and what is kept of the last one.
_ABOVE, _MEMORY = 1.2, 0.7
#: Fraction of the objective that an optimum leaves to be gained at most, by its multipliers and its room in the bounds.
_ROOM = 0.01
#: Rows from which on the steps follow one optimum.
_MANY_ROWS = 2_000
#: Change of the objective, as a fraction, up to which its Hessian serves again.
_BENT = 2e-3


@dataclass(frozen=True)
class SequentialQuadratic(IterativeSolver):
    r"""Sequential quadratic programming with counted values and smoothed slopes, for a few coefficients.

    At the coefficients w, with the gradient g and the Hessian H of the objective, a step p solves

    .. math::

        \min_{p, s} \; g^T p + \tfrac{1}{2} p^T H p + \tfrac{\eta}{2} s^2 \quad \text{s.t.} \quad
        c_j(w) + \nabla \tilde c_j(w)^T p \le s,

    where :math:`c_j` are the bounded quantities as counted, and :math:`\tilde c_j` the same with a smooth kernel in
    place of the step at the threshold, shifted so that both are equal at w. Ratios are differences of logarithms,
    without the factor that other methods need for a quadratic penalty. The slack s makes every program solvable.
    The step is halved until the merit function :math:`f + \mu \max_j (\tilde c_j)_+`, with :math:`\mu` above the sum of
    the multipliers, becomes smaller, or the violation halves. The kernel keeps its width: few coefficients need not
    see single rows, and the values are those counted anyway. Within the bounds, the run ends where a step promises too
    little, or was a whole one that promised less than ``tol``; it also ends where ``patience`` steps have not improved
    the merit as counted. Where no step has kept the bounds, they are made stricter by the excess, at most twice, and
    the run goes on. The Hessian serves for several steps where the objective changes little. A start that gives all
    rows the same score is ignored.

    It begins at the unconstrained optimum, which Newton steps find. A warm start from another ``kappa`` begins at its
    solution, or where the line through the last two solutions reaches the bounds, and one step without a gain then ends
    the run. The method of `AugmentedLagrangian` needs some ten times as many evaluations for objectives that are as
    good, and leaves its steps to this one along a path of bounds that count no rows.

    Takes linear scores of at most 80 coefficients, and bounds on counted rows without auxiliary variables.

    Parameters
    ----------
    max_iter : int, default=30
        Steps from the unconstrained optimum.
    tol : float, default=5e-4
        Fraction of the objective that counts as a gain; a step has to promise a fifth of it.
    patience : int, default=3
        Number of steps in a row without a gain after which the run ends.
    blur : float, default=0.1
        Width of the kernel in standard deviations of the scores.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, Algorithm 18.3, and eq. 17.22 for the merit function. Lawson, Hanson
    (1974), Solving Least Squares Problems, chapter 23: quadratic programs as nonnegative least squares.
    """

    name: ClassVar[str] = "sequential_quadratic"
    projects: ClassVar[bool] = False
    keeps_metric: ClassVar[bool] = True
    records_start: ClassVar[bool] = True

    max_iter: Count = 30
    tol: NonNegative = 5e-4
    patience: Count = 3
    blur: Positive = 0.1

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        if not isinstance(problem.model, LinearModel) or problem.n_params > _MOST_PARAMS:
            return f"linear scores of at most {_MOST_PARAMS} coefficients"
        if any(c.n_aux or not c.counts_rows for c in problem.constraints):
            return "bounds on counted rows"
        return ""

    @classmethod
    def suits(cls, problem: Problem) -> bool:
        """Whether it takes the problem, and the long steps from the unconstrained optimum lead to a good one."""
        return not cls.obstacle(problem) and not any(map(_leads_far, problem.constraints))

    @override
    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Steps(self, z)

    @override
    def first_method(self, problem: Problem, start: Start | None, rng: np.random.Generator) -> Method:
        start = problem.unless_constant(start)
        if start is None:
            return _Steps(self, problem.fair_start(None, rng), is_free=True)
        if start.previous is None:
            return _Steps(self, start.model_state, origin=start.model_state)
        params, last = predicted(start, partial(Iterate.at, problem))
        return _Steps(self, params, is_near=bool(start.multipliers), origin=last.params)


def _leads_far(constraint: BoundConstraint) -> bool:
    """Whether long steps may lead to bad optima, or to hardly any of the decisions that are compared.

    Logarithms are nearly straight only close by; or the metric has no value if all rows have the same decision.
    """
    if constraint.damping < 1:
        return True
    constant = np.full(constraint.data.n_samples, 1.0 + abs(constraint.decision_threshold or 0.0))
    return any(np.isnan(constraint.metric(scores)) for scores in (-constant, constant))


def varies_smoothly(problem: Problem) -> bool:
    """Whether steps lead from a solution to one nearby: bounds that count no rows, and a convex objective.

    Among few rows, there are other optima nearby.
    """
    if any(c.n_aux or c.counts_rows for c in problem.constraints):
        return False
    return problem.data.n_samples >= _MANY_ROWS and has_convex_hessian(problem)


class _Steps(Method):
    """The steps of `SequentialQuadratic`; ``is_free`` begins with those of the unconstrained problem.

    ``is_near`` is for a start that is a solution of nearly the same problem: within the bounds, it waits for one step.
    """

    holds_rows = True
    _point: Point
    #: The problem with the surrogates of the last step.
    _near: Problem

    def __init__(
        self,
        options: SequentialQuadratic,
        z: np.ndarray,
        is_free: bool = False,
        is_near: bool = False,
        origin: np.ndarray | None = None,
    ) -> None:
        super().__init__(options, z)
        self._is_near = is_near
        self._origin = origin
        self._is_free, self._is_settled, self._is_stuck, self._weight = is_free, False, False, 0.0
        self._best = Incumbent()
        # iterates outside of the bounds, with their objective and violation
        self._outside: list[tuple[np.ndarray, float, float]] = []
        # what is taken off the bounds, and how often
        self._margins, self._tightened = np.zeros(0), 0
        # objective and violation after the last gain, and the number of steps since
        self._reached: tuple[float, float] | None = None
        self._waited = 0
        self._named: dict[str, float] | None = None
        # of the last program, the sum of its multipliers: what a bound that is larger by one is worth
        self._price = 0.0
        # of the best iterate, this sum and the distance from its nearest bound
        self._best_price, self._room = 0.0, 0.0
        # of the last one, its excess, and whether the step to it was whole and promised little
        self._excess, self._is_short = -np.inf, False
        # the Hessian, and the objective where it was taken
        self._hessian: np.ndarray | None = None
        self._bent_at = np.inf

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        self._near = free = problem.without_constraints()
        self._point = FullBatchView(free).at(self.z)
        for _ in range(self._options.max_iter if self._is_free else 0):
            self.step(source, free)
            if self.finished:
                break
        self._near, self._margins = problem, np.zeros(len(problem.constraints))
        if self._is_free or not problem.constraints:
            self._multipliers = np.zeros(len(problem.component_names))
        self._is_settled, self._is_short = self._is_settled and not problem.constraints, False

    @override
    def step(self, source: Source, problem: Problem) -> None:
        scores = self._point.scores
        self._near = self._near.refined(scores, self._options.blur, self._margins if self._near.constraints else None)
        constraints = self._near.constraints
        terms, value = self._near.at_scores(torch.from_numpy(scores), np.empty(0)), self._point.objective
        components = self._near.undamped(terms.constraints)
        rows = largest_components(components)
        if self._hessian is None or abs(value - self._bent_at) > _BENT * abs(value):
            self._hessian, self._bent_at = parameter_hessian(problem, scores), value
        program = QuadraticProgram.at(self._near, self._point, terms, self._hessian, rows)
        try:
            step, multipliers = program.solved()
            slack = float(multipliers.sum()) / ELASTIC
            # means within reach: ask for no slack, nor for a rest of what curvature adds
            if slack <= _SMALL and not any(c.counts_rows for c in constraints):
                slack += min(largest_violation(program.values), _REST)
                step, multipliers = program._replace(values=program.values + slack).solved()
        except ProgramNotSolved:  # the status says that the run has not settled
            self._is_stuck = True
            return
        self._multipliers = np.zeros(components.size)
        self._multipliers[rows] = self._near.undamped(multipliers, rows)
        self._price = float(multipliers.sum())
        if self.z is self._best.z:  # those before the step are of another point, or there are none
            self._keep_multipliers()
        self._weight = max(_ABOVE * self._price, _MEMORY * self._weight)
        gain = program.gain(step, self._weight)
        least = _PROMISE * self._options.tol if constraints else _FREE
        self._is_settled, self._is_short = self._excess <= 0 and gain <= least * abs(value), False
        if not self._is_settled:
            view = FullBatchView(self._near)
            self._move(view, value, largest_violation(components), step, gain)
            source.count(view.n_evaluations * problem.data.n_samples)

    def _move(self, view: FullBatchView, value: float, before: float, step: np.ndarray, gain: float) -> None:
        """Go to the first good point on the way back from the end of the step, or to the last one tried.

        ``value`` and ``before`` are the objective and the violation at its beginning.
        """
        merit = self._merit(value, before)
        # shorter steps where the last ones were in vain: they may go to and fro
        for length in _LENGTHS * 0.5**self._waited:
            z = self.z + length * step
            there = view.at(z)
            violation = largest_violation(self._near.undamped(there.constraints))
            is_better = self._merit(there.objective, violation) <= merit - _KEPT * length * gain
            if is_better or (before > _SMALL and violation <= _LEFT * before):
                break
        # what a whole step leaves is much smaller than what it promised
        self._is_short = is_better and length == 1 and gain <= self._options.tol * abs(value)
        self.z, self._point = z, there

    def _keep_multipliers(self) -> None:
        """Keep the last multipliers as those of the best iterate."""
        self._named = named_multipliers(self._near.component_names, self._multipliers)
        self._best_price = self._price

    def _merit(self, objective: float, violation: float) -> float:
        return objective + self._weight * violation

    @property
    @override
    def finished(self) -> bool:
        patience = 1 if self._is_near and self._best.is_feasible else self._options.patience
        return self._is_settled or self._is_stuck or self._waited >= patience

    @override
    def point(self, source: Source, problem: Problem) -> Point:
        return self._point

    @override
    def observe(self, point: Point, measured: Measured) -> None:
        self._excess = measured.excess
        # in the units of the programs
        violations = measured.violations * [c.scale / c.damping for c in self._near.constraints]
        room = -float(violations.max()) if violations.size else 0.0
        if self._best.offer(self.z, point.objective, measured.excess):
            self._keep_multipliers()
            self._room = room
        if self._is_short and self._excess <= 0:
            self._is_settled = room * self._price <= self._options.tol * abs(point.objective)
        now = (point.objective, largest_violation(violations))
        if self._reached is None or self._merit(*now) < self._merit(*self._reached) - self._options.tol * abs(now[0]):
            self._reached, self._waited = now, 0
        else:
            self._waited += 1
        if measured.excess > 0:
            self._outside.append((self.z, *now))
        if self._waited >= self._options.patience and not self._best.is_feasible and self._tightened < _TIGHTENED:
            # steps go to and fro beyond the bounds
            self._margins += np.clip(measured.violations, 0.0, None)
            self._tightened, self._waited, self._reached = self._tightened + 1, 0, None

    @override
    def output(self) -> np.ndarray:
        return self._best.best_or(self.z)

    @override
    def named_multipliers(self, names: Sequence[str]) -> dict[str, float] | None:
        return self._named

    def _leaves(self, share: float) -> bool:
        """Whether the multipliers promise that share of the objective for the room that the best iterate has."""
        return bool(self._room * self._best_price > share * abs(self._best.objective))

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        is_over = self.finished and self._best.is_feasible and not self._is_stuck and not self._leaves(_ROOM)
        result, known = ended(result, is_over), self._multipliers
        start = Start(result.model_state) if known is None else start_after(problem, result.model_state, known)
        return replace(
            result,
            n_iter=max(result.n_iter, 1),
            candidates=self._promising(),
            start=replace(start, previous=self._origin),
            is_stationary=is_over and self._best.z is self.z and not self._leaves(self._options.tol),
        )

    def _promising(self) -> tuple[np.ndarray, ...]:
        """The iterate outside of the bounds that another scale of its scores may make the best one, if any may."""
        merits = [self._merit(objective, violation) for _, objective, violation in self._outside]
        if not merits or (self._best.is_feasible and min(merits) >= self._best.objective):
            return ()
        return (self._outside[int(np.argmin(merits))][0],)
