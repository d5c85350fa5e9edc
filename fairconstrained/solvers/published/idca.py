"""The inexact difference-of-convex algorithm, with subproblems solved by the switching subgradient method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._options import Count, NonNegative
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.published.switching_subgradient import SwitchingSteps
from fairconstrained.solvers.source import Source
from fairconstrained.views import DifferenceOfConvex, Exact

__all__ = ["IDCA"]


@dataclass(frozen=True)
class IDCA(IterativeSolver):
    """Inexact difference-of-convex algorithm (Algorithm 1), its subproblems by Algorithm 2.

    At every outer iterate the concave part of the objective and of every constraint is replaced by its tangent;
    the convex problem that results bounds the original from above, so a feasible point of it is feasible.

    ``kappa`` bounds the *surrogate*, as in the paper; the exact metric is reported as well and is often larger.

    Parameters
    ----------
    max_outer : int, default=100
        Outer iterations (the paper's K, up to 400).
    max_inner : int, default=150
        Switching subgradient iterations of every subproblem (T), one full-batch evaluation each.
    eps : float, default=1e-3
        Tolerance of the subproblems.

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

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Tangents(self, z)


class _Tangents(Method):
    """A step is the approximate solution of the convex problem around the iterate."""

    _n_feasible = 0

    @override
    def step(self, source: Source, problem: Problem) -> None:
        view, o = problem.view(DifferenceOfConvex), self._options
        tangents, steps = view.linearize(self.z), SwitchingSteps(self.z, lambda t: o.eps)
        for _ in range(o.max_inner):
            if steps.finished:
                break
            steps.advance(tangents, problem.project)
        self.z, self._n_feasible = steps.output(), steps.n_feasible
        source.count(view.n_evaluations * problem.data.n_samples)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {"n_feasible": self._n_feasible}
