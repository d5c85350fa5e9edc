"""The inexact difference-of-convex algorithm with switching subgradient inside."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, surrogate_result
from fairconstrained.solvers._options import Count, NonNegative
from fairconstrained.solvers.published.switching_subgradient import switch
from fairconstrained.views import DifferenceOfConvex, Exact

__all__ = ["IDCA"]


@dataclass(frozen=True)
class IDCA(Solver):
    """Inexact difference-of-convex algorithm (Algorithm 1), its subproblems by Algorithm 2.

    At every outer iterate the concave part of the objective and of every constraint is replaced by its tangent;
    the convex problem that results bounds the original from above, so a feasible point of it is feasible.

    ``kappa`` bounds the *surrogate* here, as in the paper; the exact metric is reported beside it and is often
    larger.

    Parameters
    ----------
    max_outer : int, default=100
        Outer iterations (the paper's K, up to 400).
    max_inner : int, default=150
        Switching subgradient iterations of every subproblem (T), one full-batch evaluation each.
    eps : float, default=1e-3
        Tolerance of the subproblems.
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, section 6; section G.2.2 for the start and the
    parameters.
    """

    name: ClassVar[str] = "idca"
    requires: ClassVar[tuple[type, ...]] = (DifferenceOfConvex, Exact)
    iterations_option: ClassVar[str] = "max_outer"

    max_outer: Count = 100
    max_inner: Count = 150
    eps: NonNegative = 1e-3

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        recorder = Recorder(callback, self.verbose)
        view = problem.view(DifferenceOfConvex)
        z = problem.fair_start(start, random_state)
        for outer in range(self.max_outer):
            model = view.linearize(z)
            found = switch(model, z, problem.project, lambda t: self.eps, self.max_inner)
            z = found.z
            recorder.add(
                z[: problem.n_params],
                n_iter=outer + 1,
                n_evaluations=view.n_evaluations,
                objective=found.objective,  # of the convex model, which bounds the objective from above
                n_feasible=found.n_feasible,
            )
        return surrogate_result(problem, z, self.max_outer, view.n_evaluations, recorder)
