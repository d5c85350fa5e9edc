"""The switching subgradient method: on the objective where the constraints hold, on the constraints elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.points import objective_gradient, worst_gradient
from fairconstrained.problem import FullBatchView, PointSource, Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    surrogate_result,
)
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.views import Exact, FullBatch

__all__ = ["SSG", "SwitchingSubgradient", "switch"]


class Switched(NamedTuple):
    """Where `switch` ended: the nearly feasible iterate of least objective (the start if there was none)."""

    z: np.ndarray
    objective: float
    n_feasible: int


def switch(
    source: PointSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    tolerance: Callable[[int], float],
    n_iter: int,
    observe: Callable[[int, np.ndarray, float, float], None] = lambda t, z, objective, violation: None,
    rate: float | None = None,
) -> Switched:
    """Algorithms 2 and 3 of the partial fairness paper.

    Parameters
    ----------
    source : PointSource
        The problem (Algorithm 3) or a convex model of it (Algorithm 2).
    start : ndarray of shape (n_variables,)
    project : callable
        Projection onto the domain.
    tolerance : callable
        ``eps_t`` at iteration t: both the violation that counts as feasible and the step on the objective.
    n_iter : int
    observe : callable, optional
        Called with t, the iterate, the objective and the largest constraint value.
    rate : float, optional
        Factor of the objective's gradient in its step; None: the step is as long as for an excess of ``eps_t``.
    """
    z, best, n_feasible = start, Switched(start, np.inf, 0), 0
    for t in range(n_iter):
        point, eps = source.at(z), tolerance(t)
        violation = float(point.constraints.max(initial=-np.inf))
        observe(t, z, point.objective, violation)
        if violation <= eps:
            n_feasible += 1
            if point.objective < best.objective:
                best = Switched(z, point.objective, n_feasible)
            gradient, length = objective_gradient(point), eps
        else:
            gradient, length = worst_gradient(point), violation
        squared = float(gradient @ gradient)
        if squared == 0:
            break
        factor = length / squared if rate is None or violation > eps else rate
        z = project(z - factor * gradient)
    return best._replace(n_feasible=n_feasible)


@dataclass(frozen=True)
class SwitchingSubgradient(Solver):
    """Switching subgradient method on the surrogate problem itself (Algorithm 3).

    ``kappa`` bounds the *surrogate* here, as in the paper; the exact metric is reported beside it and is
    often larger. The method has no guarantee on problems that are not weakly convex.

    Parameters
    ----------
    max_iter : int, default=10000
        Iterations, one full-batch evaluation each.
    eps : float, default=1e-3
        Tolerance of the static schedule; the c of the diminishing one.
    schedule : {"static", "diminishing"}, default="static"
        ``eps_t = eps``, or ``eps_t = eps / (t + 1)``.
    learning_rate : float or None, default=None
        Factor of the objective's gradient in its step. None: the step is as long as for a constraint of ``eps_t``.
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, section G.7; Nesterov (2018), Lectures on Convex
    Optimization, eq. 3.2.24.
    """

    name: ClassVar[str] = "switching_subgradient"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)

    max_iter: Count = 10_000
    eps: NonNegative = 1e-3
    schedule: Literal["static", "diminishing"] = "static"
    learning_rate: Positive | None = None

    @classmethod
    def published(cls, problem: Problem) -> Mapping[str, Any]:
        """The iterations of the paper's figures 10 and 11."""
        return {"max_iter": 50_000}

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        schedules = {"static": lambda t: self.eps, "diminishing": lambda t: self.eps / (t + 1)}
        recorder = Recorder(callback, self.verbose)
        every = max(self.max_iter // 200, 1)

        def observe(t: int, z: np.ndarray, objective: float, violation: float) -> None:
            if t % every == 0:
                params = z[: problem.n_params]
                recorder.add(params, n_iter=t, n_evaluations=t, objective=objective, surrogate_violation=violation)

        view = FullBatchView(problem)
        found = switch(
            view,
            problem.fair_start(start, random_state),
            problem.project,
            schedules[self.schedule],
            self.max_iter,
            observe,
            self.learning_rate,
        )
        return surrogate_result(problem, found.z, self.max_iter, view.n_evaluations, recorder)


@dataclass(frozen=True)
class SSG(SwitchingSubgradient):
    r"""The single-loop switching subgradient method, with a fixed step on the objective.

    .. math:: x \leftarrow \Pi(x - \nu \nabla f(x)) \;\text{ where } g(x) = \max_j c_j(x) \le \epsilon_t, \qquad
              x \leftarrow \Pi \left( x - \frac{g(x)}{\|\zeta\|^2} \zeta \right) \text{ with } \zeta \in \partial
              g(x) \text{ elsewhere.}

    The result is the iterate of least objective among those of the first kind. ``kappa`` bounds the *surrogate* here,
    as in the paper; the exact metric is reported beside it.

    Parameters
    ----------
    max_iter : int, default=1000
        Iterations, one full-batch evaluation each.
    learning_rate : float, default=0.5
        :math:`\nu`.
    eps : float, default=1e-4
        :math:`\epsilon`.
    schedule : {"static", "diminishing"}, default="static"
        :math:`\epsilon_t = \epsilon`, or :math:`\epsilon / (t + 1)`.
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    Huang and Lin, Oracle Complexity of Single-Loop Switching Subgradient Methods for Non-Smooth Weakly Convex
    Functional Constrained Optimization, NeurIPS 2023; as a baseline of "A modified proximal-perturbed Lagrangian for
    non-convex non-smooth representatives of fairness constraints".
    """

    name: ClassVar[str] = "ssg"

    max_iter: Count = 1000
    eps: NonNegative = 1e-4
    learning_rate: Positive | None = 0.5
