"""Subgradient descent on the objective plus the gaps: the regularisation baseline of the partial fairness paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, surrogate_result
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.views import Exact, FullBatch

__all__ = ["PenalizedSubgradient"]

#: History records of one run.
_RECORDS = 100


@dataclass(frozen=True)
class PenalizedSubgradient(Solver):
    r"""Subgradient descent with constant steps on a penalised objective.

    .. math:: \min_z \; f(z) + \lambda \sum_C r_C \max\left(0, \max_{j \in C} c_j(z)\right)

    over ``z = (params, aux)``, with the components :math:`c_j` of every constraint C. For constraints at ``kappa = 0``
    the penalty is the surrogate of the gap: the factor :math:`r_C` is :math:`2 / (\beta - \alpha)` for statistical
    parity, which compares every group with the level (eq. 114), and :math:`1 / (\beta - \alpha)` for demographic parity
    (eq. 119). At other bounds it is what exceeds them. No bound is promised.

    Parameters
    ----------
    weight : float, default=1.0
        The weight :math:`\lambda` of the penalty, at least 0; 0 minimises the objective alone.
    step : float or sequence of floats, default=(5e-3, 2e-2, 5e-2)
        Length of the step relative to the subgradient. With several, each has a run of its own and the last iterate of
        least penalised objective is the result. The paper's are 5e-4, 1e-3, 2e-3 and 5e-3, of which it takes the most
        accurate one on held-out data; constant steps need features on similar scales.
    max_iter : int, default=2000
        Iterations for every step, one full-batch evaluation each (the paper: 10000 and more, for its smaller steps).
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.4, eqs. 111-119.
    """

    name: ClassVar[str] = "penalized_subgradient"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)

    weight: NonNegative = 1.0
    step: Positive | Sequence[Positive] = (5e-3, 2e-2, 5e-2)
    max_iter: Count = 2000

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        steps = np.atleast_1d(np.asarray(self.step, dtype=float))
        recorder = Recorder(callback, self.verbose)
        view = FullBatchView(problem)
        begin = problem.fair_start(start, random_state)
        runs = [self._descend(view, begin, step, run, recorder) for run, step in enumerate(steps.tolist())]
        z, _ = min(runs, key=lambda end: end[1])
        return surrogate_result(problem, z, steps.size * self.max_iter, view.n_evaluations, recorder)

    def _descend(
        self, view: FullBatchView, z: np.ndarray, step: float, run: int, recorder: Recorder
    ) -> tuple[np.ndarray, float]:
        """The last iterate of one run and its penalised objective."""
        problem, every = view.problem, max(self.max_iter // _RECORDS, 1)
        for t in range(self.max_iter + 1):
            point = view.at(z)
            multipliers = self.weight * _worst(problem, point.constraints)
            value = point.objective + float(multipliers @ point.constraints)
            if t % every == 0 or t == self.max_iter:
                done = run * self.max_iter + t
                recorder.add(n_iter=done, n_evaluations=view.n_evaluations, objective=value, step=step)
            if t < self.max_iter:
                z = problem.project(z - step * point.gradient(1.0, multipliers))
        return z, value


def _worst(problem: Problem, values: np.ndarray) -> np.ndarray:
    """``r_C`` at the largest component of every violated constraint, zero elsewhere: a subgradient of the gaps."""
    multipliers, first = np.zeros_like(values), 0
    for constraint in problem.constraints:
        components = values[first : first + len(constraint.component_names)]
        if components.max(initial=0.0) > 0:
            multipliers[first + int(components.argmax())] = constraint.penalty_factor
        first += components.size
    return multipliers
