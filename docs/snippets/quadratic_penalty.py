"""A solver of one's own: a quadratic penalty with rising weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize

from fairconstrained.constraints import StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Callback, Recorder, Solver, SolverResult, make_solver, surrogate_result
from fairconstrained.views import Exact, FullBatch


@dataclass(frozen=True)
class QuadraticPenalty(Solver):
    r"""Minimise :math:`f(z) + \frac{\rho}{2} \sum_j \max(c_j(z), 0)^2` for rising :math:`\rho`.

    Parameters
    ----------
    n_penalties : int, default=6
        Number of values of :math:`\rho`, each ten times the last one.
    penalty : float, default=1.0
        Its first value.
    """

    name: ClassVar[str] = "quadratic_penalty"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    iterations_option: ClassVar[str] = "n_penalties"

    n_penalties: int = 6
    penalty: float = 1.0

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Minimise the penalised objective by L-BFGS, for one value of the penalty after the other."""
        recorder = Recorder(callback, self.verbose)
        view = problem.view(FullBatch)
        z = problem.fair_start(start, random_state)

        def penalised(z: np.ndarray, rho: float) -> tuple[float, np.ndarray]:
            point = view.at(z)
            excess = np.maximum(point.constraints, 0)
            return point.objective + rho / 2 * float(excess @ excess), point.gradient(1.0, rho * excess)

        for step in range(self.n_penalties):
            rho = self.penalty * 10**step
            solution = minimize(penalised, z, args=(rho,), jac=True, method="L-BFGS-B")
            z = solution.x
            recorder.add(n_iter=step + 1, n_evaluations=view.n_evaluations, penalised=float(solution.fun), penalty=rho)
        return surrogate_result(problem, z, self.n_penalties, view.n_evaluations, recorder)


X, y, group = make_biased_classification(1500, random_state=0)
data = FairData.from_arrays(X, 2.0 * y - 1, group, labels=(0, 1))
constraint = StatisticalParity(kappa=0.1, surrogate="smoothstep", surrogate_width=0.5)
problem = Problem(
    model=LinearModel(X.shape[1], alpha=1e-4),
    objective=Logistic().bind(data),
    constraints=(constraint.bind(data),),
    data=data,
)
solver = make_solver("quadratic_penalty", {"n_penalties": 6}, problem)
result = solver.solve(problem, None, np.random.default_rng(0))
print(result.status, result.constraint_values)
# It solves its problem, which bounds the surrogate ...
assert result.surrogate_violation < 1e-4
# ... and its status says that the metric exceeds kappa.
assert result.status == "infeasible"
assert result.constraint_values["statistical_parity"] > 0.1
