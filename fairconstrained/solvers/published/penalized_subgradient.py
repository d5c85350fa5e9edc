"""Subgradient descent on the objective plus the gaps: the regularisation baseline of the partial fairness paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.source import Source

__all__ = ["PenalizedSubgradient"]


@dataclass(frozen=True)
class PenalizedSubgradient(IterativeSolver):
    r"""Subgradient descent with constant steps on a penalised objective.

    .. math:: \min_z \; f(z) + \lambda \sum_C r_C \max\left(0, \max_{j \in C} c_j(z)\right)

    over ``z = (params, aux)``, with the components :math:`c_j` of every constraint C. For constraints at ``kappa = 0``
    the penalty is the surrogate of the gap: the factor :math:`r_C` is :math:`2 / (\beta - \alpha)` for statistical
    parity, which compares every group with the level (eq. 114), and :math:`1 / (\beta - \alpha)` for demographic parity
    (eq. 119). For other bounds the penalty is the excess over them. No bound is guaranteed.

    Parameters
    ----------
    weight : float, default=1.0
        The weight :math:`\lambda` of the penalty, at least 0; 0 minimises the objective alone.
    step : float or sequence of floats, default=(5e-3, 2e-2, 5e-2)
        Length of the step relative to the subgradient. With several, there is one run for each, and the last iterate
        with the least penalised objective is the result. The paper's are 5e-4, 1e-3, 2e-3 and 5e-3, of which it takes
        the most accurate one on held-out data; constant steps need features on similar scales.
    max_iter : int, default=2000
        Iterations of every run, one full-batch evaluation each (the paper: 10000 and more, for its smaller steps).

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.4, eqs. 111-119.
    """

    name: ClassVar[str] = "penalized_subgradient"
    n_recorded: ClassVar[int] = 100  # of a run
    step_option: ClassVar[str] = "step"

    weight: NonNegative = 1.0
    step: Positive | Sequence[Positive] = (5e-3, 2e-2, 5e-2)
    max_iter: Count = 2000

    @property
    def steps(self) -> list[float]:
        """Lengths of the steps, one for each run."""
        return np.atleast_1d(np.asarray(self.step, dtype=float)).tolist()

    @override
    def n_epochs(self, problem: Problem) -> int:
        return len(self.steps) * self.max_iter

    @override
    def chosen_by(self, result: SolverResult) -> Self:
        """Implement `Solver.chosen_by`: one run in place of several; all of them where the first has not ended."""
        chosen = result.history[-1]["chosen_step"] if result.history else None
        return self if chosen is None else replace(self, step=chosen)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Runs(self, problem, z)


class _Runs(Method):
    """A run for each length of the steps, one after the other, all from the same start."""

    def __init__(self, options: PenalizedSubgradient, problem: Problem, z: np.ndarray) -> None:
        self._options, self.z, self._start = options, z, z
        self._run = self._t = 0
        self._best = Incumbent()
        #: Length of the steps of the run that ended with the least penalised objective so far; None before.
        self._chosen_step: float | None = None
        #: Numbers of the components of every constraint, which no iteration changes.
        self._sizes = [len(constraint.component_names) for constraint in problem.constraints]

    @override
    def step(self, source: Source, problem: Problem) -> None:
        steps = self._options.steps
        if self._t == self._options.max_iter:
            self._run, self._t, self.z = self._run + 1, 0, self._start
        point = source.view.at(self.z)
        multipliers = self._multipliers_of_worst(problem, point.constraints)
        self.z = problem.project(self.z - steps[self._run] * point.gradient(1.0, multipliers))
        self._t += 1
        if self._t == self._options.max_iter:
            self.point(source, problem)
            if self._best.offer(self.z, self._penalised, 0.0):
                self._chosen_step = steps[self._run]

    @override
    def point(self, source: Source, problem: Problem) -> Point:
        point = source.view.at(self.z)
        multipliers = self._multipliers_of_worst(problem, point.constraints)
        self._penalised = point.objective + float(multipliers @ point.constraints)
        return point

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        step = self._options.steps[self._run]
        return {"penalised_objective": self._penalised, "step": step, "chosen_step": self._chosen_step}

    @override
    def output(self) -> np.ndarray:
        """The last iterate of the run that ended with the least penalised objective."""
        return self._best.feasible_or(self.z)

    def _multipliers_of_worst(self, problem: Problem, values: np.ndarray) -> np.ndarray:
        """The weight times ``r_C`` at the largest component of every violated constraint: a subgradient of the gaps."""
        multipliers, first = np.zeros_like(values), 0
        for constraint, size in zip(problem.constraints, self._sizes, strict=True):
            components = values[first : first + size]
            if components.max(initial=0.0) > 0:
                multipliers[first + int(components.argmax())] = self._options.weight * constraint.penalty_factor
            first += size
        return multipliers
