"""The switching subgradient method: on the objective where the constraints hold, on the constraints elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.points import largest_violation, objective_gradient, worst_gradient
from fairconstrained.problem import PointSource, Problem
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.source import Source

__all__ = ["SSG", "SwitchingSteps", "SwitchingSubgradient"]


class SwitchingSteps(Method):
    """The steps of Algorithms 2 and 3 of the partial fairness paper.

    Parameters
    ----------
    start : ndarray of shape (n_variables,)
    tolerance : callable
        ``eps_t`` at iteration t: both the violation that counts as feasible and the step on the objective.
    rate : float, optional
        Factor of the objective's gradient in its step; None: the step is as long as for an excess of ``eps_t``.

    Attributes
    ----------
    best : Incumbent
        The nearly feasible iterate of least objective.
    n_feasible : int
        Nearly feasible iterates.
    """

    def __init__(self, start: np.ndarray, tolerance: Callable[[int], float], rate: float | None = None) -> None:
        self.z, self._start, self._tolerance, self._rate = start, start, tolerance, rate
        self.best, self.n_feasible = Incumbent(), 0
        self._t, self._is_stationary = 0, False

    def advance(self, points: PointSource, project: Callable[[np.ndarray], np.ndarray]) -> None:
        """One step on the points of the problem (Algorithm 3) or of a convex model of it (Algorithm 2)."""
        point, eps = points.at(self.z), self._tolerance(self._t)
        violation = largest_violation(point.constraints)
        if violation <= eps:
            self.n_feasible += 1
            self.best.offer(self.z, point.objective, 0.0)
            gradient, length = objective_gradient(point), eps
        else:
            gradient, length = worst_gradient(point), violation
        squared = float(gradient @ gradient)
        self._is_stationary = squared == 0
        if not self._is_stationary:
            factor = length / squared if self._rate is None or violation > eps else self._rate
            self.z = project(self.z - factor * gradient)
        self._t += 1

    @override
    def step(self, source: Source, problem: Problem) -> None:
        self.advance(source.view, problem.project)

    @property
    @override
    def finished(self) -> bool:
        return self._is_stationary

    @override
    def output(self) -> np.ndarray:
        """The nearly feasible iterate of least objective, or the start if there was none."""
        return self.best.feasible_or(self._start)


@dataclass(frozen=True)
class SwitchingSubgradient(IterativeSolver):
    """Switching subgradient method on the surrogate problem itself (Algorithm 3).

    ``kappa`` bounds the *surrogate* here, as in the paper; the exact metric is reported beside it and is
    often larger. The method has no guarantee on problems that are not weakly convex.

    Parameters
    ----------
    max_iter : int, default=10000
        Iterations, one full-batch evaluation each.
    eps : float, default=1e-3
        Tolerance of the static schedule, and the first tolerance of the diminishing one.
    schedule : {"static", "diminishing"}, default="static"
        ``eps_t = eps``, or ``eps_t = eps / (t + 1)``.
    learning_rate : float or None, default=None
        Factor of the objective's gradient in its step. None makes the step ``eps_t / |g|^2`` times the gradient g, as
        for a constraint with the value ``eps_t``.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530, section G.7; Nesterov (2018), Lectures on Convex
    Optimization, eq. 3.2.24.
    """

    name: ClassVar[str] = "switching_subgradient"
    n_recorded: ClassVar[int] = 200
    max_iter: Count = 10_000
    eps: NonNegative = 1e-3
    schedule: Literal["static", "diminishing"] = "static"
    learning_rate: Positive | None = None

    @classmethod
    def published(cls, problem: Problem) -> Mapping[str, Any]:
        """The iterations of the paper's figures 10 and 11."""
        return {"max_iter": 50_000}

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return SwitchingSteps(z, self.tolerance, self.learning_rate)

    def tolerance(self, t: int) -> float:
        """``eps_t``."""
        return self.eps if self.schedule == "static" else self.eps / (t + 1)


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
    learning_rate : float or None, default=0.5
        Step length :math:`\nu` on the objective. None is that of `SwitchingSubgradient`.
    eps : float, default=1e-4
        Tolerance :math:`\epsilon_t` of the static schedule, and the first one of the diminishing schedule.

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
