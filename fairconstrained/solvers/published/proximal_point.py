"""Inexact proximal point methods for weakly convex problems: convex subproblems, and two methods that solve them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.points import objective_gradient, worst_gradient
from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._proximal import Subproblem
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source

__all__ = ["IPPSSG", "IPPConEx", "switching"]


class ProximalSteps(Method):
    """Algorithm 1: from every point to the approximate solution of its subproblem."""

    _length = 0.0

    @override
    def step(self, source: Source, problem: Problem) -> None:
        subproblem = Subproblem(source.view, self.z, self._options.proximity)
        moved = self._options.solve_subproblem(subproblem, self.z, problem)
        self._length, self.z = float(np.linalg.norm(moved - self.z)), moved

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {"step": self._length}


def switching(
    subproblem: Subproblem,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    n_iter: int,
    rate: Callable[[int], float],
    tolerance: float,
) -> np.ndarray:
    r"""Algorithm 2: :math:`z \leftarrow \Pi(z - \gamma_k \zeta)` on the objective or on the worst constraint.

    Returns
    -------
    z : ndarray of shape (n_variables,)
        The mean of the iterates with no constraint above ``tolerance``, the k-th with the weight k + 1; if there are
        none, the iterate that violates the constraints least.
    """
    z, total, mean, nearest, least = start, 0.0, np.zeros_like(start), start, np.inf
    for k in range(n_iter):
        point = subproblem.at(z)
        if point.worst < least:
            nearest, least = z, point.worst
        if point.worst <= tolerance:
            total += k + 1
            mean += (k + 1) * z
            gradient = objective_gradient(point)
        else:
            gradient = worst_gradient(point)
        z = project(z - rate(k) * gradient)
    return mean / total if total else nearest


@dataclass(frozen=True)
class InexactProximalPoint(IterativeSolver):
    r"""Base of methods with a sequence of strongly convex subproblems,

    .. math:: x_{t+1} \approx \arg\min_x \; f(x) + \tfrac{\hat\rho}{2} \|x - x_t\|^2 \quad \text{s.t.} \quad
              c_j(x) + \tfrac{\hat\rho}{2} \|x - x_t\|^2 \le 0 \;\; \forall j.

    Parameters
    ----------
    max_iter : int, default=20
        Subproblems.
    inner_iter : int, default=100
        Evaluations for each.
    proximity : float, default=1.0
        :math:`\hat\rho`, larger than the modulus of weak convexity of the functions.
    """

    max_iter: Count = 20
    inner_iter: Count = 100
    proximity: Positive = 1.0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return ProximalSteps(self, z)

    @abstractmethod
    def solve_subproblem(self, subproblem: Subproblem, z: np.ndarray, problem: Problem) -> np.ndarray:
        """An approximate solution, looked for from the subproblem's centre z."""


@dataclass(frozen=True)
class IPPSSG(InexactProximalPoint):
    r"""Inexact proximal point method with subproblems solved by the switching subgradient method.

    A step of the inner method is :math:`z \leftarrow \Pi(z - \gamma_k \zeta)` with the gradient of the objective where
    all constraints are at most ``tolerance``, and that of the worst constraint elsewhere. The solution is the mean of
    the iterates of the first kind, the k-th with the weight k + 1.

    ``kappa`` bounds the surrogate up to ``tolerance``, as in the paper; the exact gap is reported.

    Parameters
    ----------
    learning_rate : float, default=0.5
        Largest :math:`\gamma_k`; otherwise :math:`\gamma_k = 2 / (\hat\rho (k + 2))`, where :math:`\hat\rho` stands
        for its difference to the modulus of weak convexity.
    tolerance : float, default=1e-4
        :math:`\hat\epsilon^2`, the value up to which a constraint counts as kept.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871, Algorithms 1 and 2; Huang and Lin, NeurIPS 2023, as a baseline of "A modified
    proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints".
    """

    name: ClassVar[str] = "ipp_ssg"

    learning_rate: Positive = 0.5
    tolerance: NonNegative = 1e-4

    @override
    def solve_subproblem(self, subproblem: Subproblem, z: np.ndarray, problem: Problem) -> np.ndarray:
        def rate(k: int) -> float:
            return min(self.learning_rate, 2 / (self.proximity * (k + 2)))

        return switching(subproblem, z, problem.project, self.inner_iter, rate, self.tolerance)


@dataclass(frozen=True)
class IPPConEx(InexactProximalPoint):
    r"""Inexact proximal point method with subproblems solved by the constraint extrapolation method.

    The method has one constraint, the largest of all. With its linear model :math:`\ell_k = c(x_{k-1}) + \langle \nabla
    c(x_{k-1}), x_k - x_{k-1} \rangle` in the subproblem, step k of the inner method extrapolates, moves the multiplier
    and then x,

    .. math::
        s = (1 + \theta_k) \ell_k - \theta_k \ell_{k-1}, \qquad y \leftarrow \max(y + s / \tau_k, 0), \qquad
        x \leftarrow \Pi \bigl( x - (\nabla f(x) + y \nabla c(x)) / \eta_k \bigr),

    with :math:`\theta_k = (k + t_0 + 1) / (k + t_0 + 2)`, :math:`\eta_k = \hat\rho (k + t_0 + 1) / 2` and
    :math:`\tau_k = \tau / (k + 1)`, where :math:`\hat\rho` stands for its difference to the modulus of weak convexity
    and :math:`t_0 \ge 0` is such that the first step length is ``learning_rate``. The solution is the mean of the
    iterates, the k-th with the weight :math:`k + t_0 + 2`.

    ``kappa`` bounds the surrogate in the limit, as in the paper; the exact gap is reported.

    Parameters
    ----------
    learning_rate : float, default=0.1
        Length :math:`1 / \eta_0` of the first step. A value above :math:`2 / \hat\rho` has the effect of
        :math:`2 / \hat\rho`, as :math:`t_0` is not negative.
    tau : float, default=20.0
        :math:`\tau`; the larger it is, the shorter are the steps of the multiplier.

    References
    ----------
    Boob, Deng, Lan (2023), Stochastic first-order methods for convex and nonconvex functional constrained optimization,
    Mathematical Programming 197: Algorithms 1 (ConEx) and 2; as a baseline of "A modified proximal-perturbed Lagrangian
    for non-convex non-smooth representatives of fairness constraints".
    """

    name: ClassVar[str] = "ipp_conex"

    learning_rate: Positive = 0.1
    tau: Positive = 20.0

    @override
    def solve_subproblem(self, subproblem: Subproblem, z: np.ndarray, problem: Problem) -> np.ndarray:
        t0 = max(2 / (self.proximity * self.learning_rate) - 1, 0.0)
        point = subproblem.at(z)
        line = last_line = point.worst
        y, total, mean = 0.0, 0.0, np.zeros_like(z)
        for k in range(self.inner_iter):
            theta = (k + t0 + 1) / (k + t0 + 2)
            y = max(y + ((1 + theta) * line - theta * last_line) * (k + 1) / self.tau, 0.0)
            slope = worst_gradient(point)
            gradient = objective_gradient(point) + y * slope
            moved = problem.project(z - gradient * 2 / (self.proximity * (k + t0 + 1)))
            last_line, line = line, point.worst + float(slope @ (moved - z))
            z = moved
            weight = k + t0 + 2
            total += weight
            mean += weight * z
            point = subproblem.at(z)
        return mean / total
