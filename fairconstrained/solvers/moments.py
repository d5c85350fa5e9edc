"""AUC optimisation from the moments of the features: a small convex program, however many rows there are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize

from fairconstrained.models import LinearMoments
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    named_multipliers,
    surrogate_result,
)
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.solvers.quadratics import Quadratics, cell_moments, parameter_quadratics
from fairconstrained.views import Exact, SaddleMoments

__all__ = ["MomentSolver", "QuadraticOptimum", "minimise_quadratic"]

#: Eigenvalues of the scaled objective below this fraction of the largest one are rounding errors.
_ROUNDING = 1e-11
#: Runs of L-BFGS-B, which also ends where rounding hides what a step has gained. Each begins where the last one ended.
_RUNS = 3
#: Multipliers below this fraction of the largest one are those of slack components.
_INACTIVE = 1e-9


@dataclass(frozen=True)
class MomentSolver(Solver):
    r"""Minimise a quadratic objective under quadratic constraints, all of them made of moments.

    With a linear model and a quadratic loss of pairs, the objective and the constraints are convex quadratic functions
    of the parameters, whose coefficients are the means and covariances of the features in the sets that are compared
    (`fairconstrained.pairwise.PairTerms`). One pass over the data finds these; what remains has no rows:

    .. math:: \min_w \; \tfrac{1}{2} w^T H_0 w + b_0^T w + \tfrac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad
              \tfrac{1}{2} w^T H_j w + b_j^T w + c_j \le 0 \;\; \forall j

    It is solved through its dual, which has one variable for every constraint component:
    the minimiser of the Lagrangian at multipliers :math:`\lambda` solves a linear system, and L-BFGS-B maximises its
    value over :math:`\lambda \ge 0`. Directions in which all scores are alike, such as the intercept, stay zero.

    Parameters
    ----------
    max_iter : int, default=500
        Iterations of L-BFGS-B.
    accuracy : float, default=1e-9
        Violation of a constraint, and slack of one whose multiplier is positive, at which the dual is solved.

    References
    ----------
    Not in the literature that the surrogate is from: Yao, Lin, Yang, arXiv:2212.12603, eq. 10, with its auxiliary
    variables eliminated.
    """

    name: ClassVar[str] = "moments"
    requires: ClassVar[tuple[type, ...]] = (SaddleMoments, LinearMoments, Exact)
    projects: ClassVar[bool] = False

    max_iter: Count = 500
    accuracy: Positive = 1e-9

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`; the start is not needed."""
        recorder, moments = Recorder(callback, self.verbose), cell_moments(problem)
        objective = parameter_quadratics(problem, [problem.objective], moments)
        constraints = parameter_quadratics(problem, problem.constraints, moments)
        penalty = problem.parametric.penalty(np.ones(problem.n_params))[1]  # the gradient of a diagonal quadratic form
        found = minimise_quadratic(objective, penalty, constraints, self.max_iter, self.accuracy)
        recorder.add(
            found.w, n_iter=found.n_iter, n_evaluations=1, objective=found.objective, violation=found.violation
        )
        result = surrogate_result(problem, found.w, found.n_iter, 0, recorder)
        status = Status.OPTIMAL if found.converged else Status.MAX_ITER
        return replace(
            result,
            status=status if result.status == Status.COMPLETED else result.status,
            multipliers=named_multipliers(problem.component_names, found.multipliers),
        )


class QuadraticOptimum(NamedTuple):
    """The minimiser of a convex quadratically constrained program.

    Attributes
    ----------
    w : ndarray of shape (n_params,)
    multipliers : ndarray of shape (n_components,)
    objective, violation : float
        Value of the objective, and the largest of the constraints.
    n_iter : int
        Number of iterations, at least 1: one linear system is solved in any case.
    converged : bool
    """

    w: np.ndarray
    multipliers: np.ndarray
    objective: float
    violation: float
    n_iter: int
    converged: bool


def minimise_quadratic(
    objective: Quadratics, penalty: np.ndarray, constraints: Quadratics, max_iter: int = 500, accuracy: float = 1e-9
) -> QuadraticOptimum:
    """Minimise a quadratic under quadratics, all convex, see `MomentSolver`.

    Parameters
    ----------
    objective : Quadratics
        One component. Where it is constant along a line, the constraints must be so too.
    penalty : ndarray of shape (n_params,)
        Diagonal that is added to its Hessian.
    constraints : Quadratics
        Functions that are at most zero at the optimum; there may be none.
    max_iter : int, default=500
        Iterations of L-BFGS-B.
    accuracy : float, default=1e-9
        Accuracy of the dual, see `MomentSolver`.

    Returns
    -------
    optimum : QuadraticOptimum
    """
    dual = _Dual(objective.hessians[objective.which[0]] + np.diag(penalty), objective.b[0], constraints)
    multipliers, n_iter, allowed = np.zeros(constraints.c.size), 0, 1e3 * accuracy
    for _ in range(_RUNS if constraints.c.size else 0):
        lowest = minimize(
            dual,
            multipliers,
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * constraints.c.size,
            options={"maxiter": max_iter - n_iter, "maxcor": 20, "ftol": 0.0, "gtol": accuracy},
        )
        multipliers, n_iter = lowest.x, n_iter + int(lowest.nit)
        if (-lowest.jac).max() <= allowed or n_iter >= max_iter:
            break
    multipliers = np.where(multipliers > _INACTIVE * multipliers.max(initial=0.0), multipliers, 0.0)
    u, values = dual.minimiser(multipliers)
    violation = float(values.max(initial=0.0))
    w = dual.basis @ u
    return QuadraticOptimum(
        w=w,
        multipliers=multipliers,
        objective=float(objective.values(w)[0] + penalty @ w**2 / 2),
        violation=violation,
        n_iter=max(1, n_iter),
        converged=not constraints.c.size or violation <= allowed,
    )


class _Dual:
    """Minus the dual function, ``-min_w L(w, multipliers)``, and its gradient.

    In the basis ``w = basis u`` the Hessian of the objective is the identity, so that the Lagrangian is strongly
    convex whatever the multipliers are.
    """

    def __init__(self, hessian: np.ndarray, b: np.ndarray, constraints: Quadratics) -> None:
        size = np.sqrt(np.maximum(np.diag(hessian), 0.0))
        scale = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
        values, vectors = eigh(hessian * scale * scale[:, None])
        kept = values > _ROUNDING * max(float(values[-1]), 0.0)
        self.basis = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
        self._b = b @ self.basis
        hessians = np.array([self.basis.T @ h @ self.basis for h in constraints.hessians])
        self._constraints = Quadratics(
            hessians.reshape(-1, self._b.size, self._b.size),
            constraints.which,
            constraints.b @ self.basis,
            constraints.c,
        )

    def __call__(self, multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        u, values = self.minimiser(multipliers)
        lagrangian = u @ u / 2 + self._b @ u + multipliers @ values
        return -float(lagrangian), -values

    def minimiser(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Minimiser of the Lagrangian, and the constraints there."""
        constraints, total = self._constraints, np.eye(self._b.size)
        weights = np.bincount(constraints.which, multipliers, minlength=len(constraints.hessians))
        for weight, hessian in zip(weights, constraints.hessians, strict=True):
            total += weight * hessian
        u = -cho_solve(cho_factor(total), self._b + multipliers @ constraints.b)
        return u, constraints.values(u)
