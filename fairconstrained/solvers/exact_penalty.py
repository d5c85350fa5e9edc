"""An exact penalty for the worst constraint, minimised by linear programs in trust regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from typing_extensions import override

from fairconstrained.domains import Domain, Polyhedron
from fairconstrained.points import Point, largest_violation, objective_gradient
from fairconstrained.problem import Problem
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._feasibility import FromFeasible
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver, ended
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source

__all__ = ["ExactPenalty"]

#: Ratios of actual and predicted decrease from which on a step is taken, and the radius grows.
_TAKEN, _GOOD = 0.1, 0.75
#: Factors of the radius after a bad and after a good step.
_SHRINK, _GROW = 0.5, 2.0
#: Fraction of the possible reduction of the linearised violation that a step has to reach, or sigma grows.
_STEERED = 0.1
#: Factor of sigma.
_STEER = 10.0
#: Sigma above which the objective is lost in rounding errors.
_LARGEST = 1e10
#: Radius below which a linear program's rounding errors are as large as its steps.
_SMALLEST = 1e-9
#: Accuracy of the linear programs, the finest that HiGHS takes.
_LP_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True)
class ExactPenalty(IterativeSolver):
    r"""Exact penalty method with a first-order trust region.

    .. math:: \min_x \; \Phi(x) = f(x) + \sigma \max \{ \max_j c_j(x), 0 \}

    over the domain. A step s minimises the linearised composite model in a trust region, a linear program,

    .. math:: \ell(s) = f + \nabla f^\top s + \sigma \max \{ \max_j (c_j + \nabla c_j^\top s), 0 \}, \qquad
              \|s\|_\infty \le \Delta,

    and is taken if :math:`\Phi` decreases by at least a tenth of the decrease that the model predicts; otherwise the
    radius :math:`\Delta` is halved. It is doubled after very good steps. Where the constraints do not hold and the step
    reduces their linearised violation by less than a tenth of what is possible, :math:`\sigma` grows tenfold. If the
    model predicts no decrease and the violation cannot be reduced, the run continues from the last feasible iterate
    with the larger :math:`\sigma`.

    From a start that violates the constraints by more than ``precision``\ :sup:`2`, the violation is minimised first.
    If this ends at an infeasible stationary point, the run ends there, with the status "infeasible_stationary".

    The result is the last iterate with no constraint above ``precision``\ :sup:`2`. ``kappa`` bounds the *surrogate* up
    to that; the exact metric is reported. The functions should be smooth.

    Parameters
    ----------
    max_iter : int, default=1000
        Linear programs.
    sigma : float, default=1.0
        First :math:`\sigma`.
    radius : float, default=1.0
        First :math:`\Delta`.
    precision : float, default=1e-2
        Square root of the largest violation that counts as none.
    tol : float, default=1e-5
        Stop when the model predicts at most this decrease within a radius of 1 (criticality).

    Raises
    ------
    IncompatibleProblem
        From `solve`, for a domain that linear inequalities do not describe.

    References
    ----------
    Cartis, Gould, Toint (2011), On the evaluation complexity of composite function minimization with applications to
    nonconvex nonlinear programming, SIAM Journal on Optimization 21: Algorithms 2.1 and 3.1; as a baseline of Ma, Lin,
    Yang, arXiv:1908.01871.
    """

    name: ClassVar[str] = "exact_penalty"
    step_option: ClassVar[str] = "radius"

    max_iter: Count = 1000
    sigma: Positive = 1.0
    radius: Positive = 1.0
    precision: NonNegative = 1e-2
    tol: NonNegative = 1e-5

    @classmethod
    def accepts(cls, domain: Domain) -> bool:
        """Implement `Solver.accepts`; the linear programs need straight sides."""
        return domain.is_polyhedral

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _TrustRegion(self, z, _polyhedron(problem))


def _polyhedron(problem: Problem) -> Polyhedron:
    """The domain of the parameters; auxiliary variables are free."""
    n_aux = sum(constraint.n_aux for constraint in problem.constraints)
    n = problem.n_params
    everywhere = Polyhedron.box(-np.inf, np.inf, n)
    own = everywhere if problem.domain is None else problem.domain.polyhedron(n)
    free = sp.csr_array((own.A.shape[0], n_aux))
    return Polyhedron(
        sp.hstack([own.A[:, :n], free, own.A[:, n:]], format="csr"),
        own.b,
        np.insert(own.lower, n, np.full(n_aux, -np.inf)),
        np.insert(own.upper, n, np.full(n_aux, np.inf)),
    )


class _Model(NamedTuple):
    """The linearised functions around ``z``."""

    z: np.ndarray
    objective: float
    gradient: np.ndarray
    constraints: np.ndarray
    jacobian: np.ndarray

    @classmethod
    def of(cls, z: np.ndarray, point: Point) -> _Model:
        units = np.eye(point.constraints.size)
        jacobian = np.array([point.gradient(0.0, unit) for unit in units]).reshape(len(units), z.size)
        return cls(z, point.objective, objective_gradient(point), point.constraints, jacobian)

    def violation(self, z: np.ndarray) -> float:
        """The linearised violation."""
        return largest_violation(self.constraints + self.jacobian @ (z - self.z))

    def penalised(self, z: np.ndarray, weight: float, sigma: float) -> float:
        """``weight`` times the linearised objective, and ``sigma`` times the linearised violation."""
        return weight * (self.objective + float(self.gradient @ (z - self.z))) + sigma * self.violation(z)

    def minimise(self, polyhedron: Polyhedron, radius: float, weight: float, sigma: float) -> np.ndarray:
        """The minimiser of `penalised` in the trust region: a linear program in (z, further variables, violation)."""
        n, m, n_all = self.z.size, self.constraints.size, polyhedron.lower.size
        unit, nothing = sp.csr_array(np.ones((m, 1))), sp.csr_array((polyhedron.A.shape[0], 1))
        rows: list[Any] = [
            sp.hstack([sp.csr_array(self.jacobian), sp.csr_array((m, n_all - n)), -unit]),
            sp.hstack([polyhedron.A, nothing]),
        ]
        lower, upper = np.append(polyhedron.lower, 0.0), np.append(polyhedron.upper, np.inf)
        lower[:n] = np.minimum(np.maximum(lower[:n], self.z - radius), self.z)
        upper[:n] = np.maximum(np.minimum(upper[:n], self.z + radius), self.z)
        cost = np.concatenate([weight * self.gradient, np.zeros(n_all - n), [sigma]])
        found = linprog(
            cost,
            A_ub=sp.vstack(rows, format="csr"),
            b_ub=np.concatenate([self.jacobian @ self.z - self.constraints, polyhedron.b]),
            bounds=np.column_stack([lower, upper]),
            method="highs",
            options=_LP_OPTIONS,
        )
        return self.z if found.x is None else found.x[:n]


class _TrustRegion(FromFeasible):
    """The iterate with its model, sigma and the radius."""

    def __init__(self, options: ExactPenalty, z: np.ndarray, polyhedron: Polyhedron) -> None:
        super().__init__(options, z)
        self._polyhedron = polyhedron
        self._sigma, self._radius = options.sigma, options.radius
        self._is_critical = False
        #: The last feasible iterate.
        self._home: np.ndarray | None = None

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        super().begin(source, problem)
        if not self.is_stationary:
            self._move(self.z, source.at(self.z))

    @property
    @override
    def finished(self) -> bool:
        is_settled = self._is_critical or self.is_stationary
        return is_settled or self._radius < _SMALLEST or self._sigma > _LARGEST

    @override
    def step(self, source: Source, problem: Problem) -> None:
        """One linear program, and a step, a smaller radius, a larger sigma or an end."""
        target = self._target(problem, 1.0, self._sigma)
        promised = self._promised(target, 1.0, self._sigma)
        if promised <= self._options.tol * min(self._radius, 1.0):
            self._judge(source, problem)
            return
        if self._neglects_constraints(target, problem):
            self._sigma *= _STEER
            return
        point = source.at(target)
        now, then = (p.objective + self._sigma * largest_violation(p.constraints) for p in (self._model, point))
        ratio = (now - then) / promised
        if ratio >= _GOOD:
            self._radius *= _GROW
        elif not ratio >= _TAKEN:
            self._radius *= _SHRINK
        if ratio >= _TAKEN:
            self._move(target, point)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {"sigma": self._sigma, "radius": self._radius}

    @override
    def output(self) -> np.ndarray:
        """The last feasible iterate, or the stationary point of the violation."""
        return self.z if self._home is None or self.is_stationary else self._home

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        return super().conclude(ended(result, self._is_critical), problem)

    def _neglects_constraints(self, target: np.ndarray, problem: Problem) -> bool:
        """Whether a step hardly reduces a violation that could be reduced, linearised."""
        violation = largest_violation(self._model.constraints)
        reduction = violation - self._model.violation(target)
        if violation <= self._tolerance or reduction >= _STEERED * violation:
            return False
        return reduction < _STEERED * self._promised(self._target(problem, 0.0, 1.0), 0.0, 1.0)

    def _judge(self, source: Source, problem: Problem) -> None:
        """At a critical point: an end, or a larger sigma."""
        if largest_violation(self._model.constraints) <= self._tolerance:
            self._is_critical = True
            return
        if self._promised(self._target(problem, 0.0, 1.0), 0.0, 1.0) <= self._options.tol * min(self._radius, 1.0):
            self.is_stationary = self._home is None
            if self._home is not None:
                self._radius = self._options.radius
                self._move(self._home, source.at(self._home))
        self._sigma *= _STEER

    def _target(self, problem: Problem, weight: float, sigma: float) -> np.ndarray:
        return problem.project(self._model.minimise(self._polyhedron, self._radius, weight, sigma))

    def _promised(self, target: np.ndarray, weight: float, sigma: float) -> float:
        before, after = (self._model.penalised(z, weight, sigma) for z in (self.z, target))
        return before - after

    def _move(self, z: np.ndarray, point: Point) -> None:
        self.z = z
        if largest_violation(point.constraints) <= self._tolerance:
            self._home = z
        self._model = _Model.of(z, point)
