"""Projected gradient descent; the projection is a small convex quadratically constrained program."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.sparse as sp
from typing_extensions import override

from fairconstrained.models import LinearMoments
from fairconstrained.points import objective_gradient
from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._spectral import SpectralDescent
from fairconstrained.solvers.loop import IterativeSolver, ended
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.quadratics import Quadratics, parameter_quadratics
from fairconstrained.solvers.source import Source
from fairconstrained.views import ConvexQuadratic, Exact, FullBatch

__all__ = ["ProjectedGradient"]

#: Iterations after which a change of the best objective is judged.
_WINDOW = 10
#: Duality gap at which a projection is accepted.
_GAP = 1e-9
#: Entries of a factor below this fraction of the largest one are rounding errors.
_ROUNDING = 1e-13
#: Multipliers below this fraction of the largest one are those of slack components.
_INACTIVE = 1e-6


@dataclass(frozen=True)
class ProjectedGradient(IterativeSolver):
    r"""Projected gradient descent for convex quadratic constraints on a linear model.

    .. math:: w_{k+1} = \mathrm{Proj}(w_k - \eta_k \nabla f(w_k)), \qquad w_0 = 0

    onto :math:`\{w : \frac{1}{2} w^T H_j w + b_j^T w + c_j \le 0 \;\forall j\}`, where :math:`w` are the coefficients
    of the standardised features: so the units of the features do not matter. Those of the constraints come from the
    first two moments of X in cells of rows and are computed once. The projection is a second-order cone program for
    clarabel, solved only where the unprojected point is not feasible, in the basis that diagonalises the sum of the
    Hessians: that of two groups then has a single cone with a diagonal factor.

    Parameters
    ----------
    max_iter : int, default=1000
        Iterations (the paper's K).
    tol : float, default=1e-5
        Stop when ten iterations have not improved the best objective by this fraction.
    step : float or "spectral", default="spectral"
        A constant :math:`\eta_k`, or the spectral step of Barzilai and Borwein with a backtracking line search between
        :math:`w_k` and the projected point that looks back on ten objectives.

    Raises
    ------
    ImportError
        From `solve`, if there are constraints and clarabel is not installed.
    ValueError
        From `solve`, for a ``step`` that is neither positive nor "spectral".

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.3.2, eqs. 108-110. Birgin, Martínez, Raydan (2000), Nonmonotone
    spectral projected gradient methods on convex sets, algorithm SPG2.
    """

    name: ClassVar[str] = "projected_gradient"
    n_recorded: ClassVar[int] = 200
    requires: ClassVar[tuple[type, ...]] = (FullBatch, ConvexQuadratic, LinearMoments, Exact)
    projects: ClassVar[bool] = False
    step_option: ClassVar[str] = "step"

    max_iter: Count = 1000
    tol: NonNegative = 1e-5
    step: Positive | Literal["spectral"] = "spectral"

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Descent(self, z)


class _Descent(Method):
    """Spectral descent in the coordinates of the standardised features."""

    holds_rows = True

    _settled = False

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        self._coordinates = coordinates = problem.penalised_coordinates
        self._projection = _Projection(parameter_quadratics(problem, problem.constraints).within(coordinates))
        self._view = view = problem.without_constraints().view(FullBatch)
        step = self._options.step
        self._descent = SpectralDescent(
            lambda u: view.at(coordinates.to_params(u)),
            coordinates.from_params(self.z[: problem.n_params]),
            self._projection,
            lambda point: (point.objective, coordinates.pull(objective_gradient(point))),
            None if isinstance(step, str) else float(step),
        )
        self._length = self._descent.step
        self._best: deque[float] = deque([self._descent.least], maxlen=_WINDOW + 1)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        before, best = self._view.n_evaluations, self._best
        self._length = self._descent.step
        is_stationary = not self._descent.advance()
        best.append(self._descent.least)
        is_flat = len(best) > _WINDOW and best[0] - best[-1] <= self._options.tol * abs(best[-1])
        self._settled = is_stationary or is_flat
        self.z = self._coordinates.to_params(self._descent.z)
        source.count((self._view.n_evaluations - before) * problem.data.n_samples)

    @property
    @override
    def finished(self) -> bool:
        return self._settled

    @property
    @override
    def multipliers(self) -> np.ndarray:
        """Those of the last projection; an interior point method leaves tiny ones where a component is slack."""
        multipliers = self._projection.multipliers / self._length
        return np.where(multipliers > _INACTIVE * multipliers.max(initial=0.0), multipliers, 0.0)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {"step": self._descent.step, "n_projections": self._projection.n_solved}

    @override
    def output(self) -> np.ndarray:
        """The iterate of least objective; all of them are feasible up to the accuracy of the projections."""
        return self._coordinates.to_params(self._descent.best)

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        return ended(result, self._settled)


class _Projection:
    """Euclidean projection onto ``{w : quadratics <= 0}``, an empty intersection never being asked for.

    In the rotated coordinates ``u = V' w`` and with factors ``R_h' R_h = V' H_h V``, component j is
    ``(|R_h u|^2 + 2 b_j V u + 2 c_j) / 2``. One more variable r_h for every Hessian turns the constraints into
    ``|R_h u|^2 <= r_h``, a second-order cone, and ``r_h + 2 b_j V u + 2 c_j <= 0``, linear.
    """

    def __init__(self, quadratics: Quadratics) -> None:
        self.n_solved = 0
        #: Multipliers of the components at the last projection.
        self.multipliers = np.zeros(quadratics.c.size)
        self._which, self._c = quadratics.which, quadratics.c
        if not self._c.size:
            return
        self._clarabel = _import_clarabel()
        self._basis = np.linalg.eigh(quadratics.hessians.sum(axis=0))[1]
        self._b = quadratics.b @ self._basis
        self._factors = [_factor(self._basis.T @ hessian @ self._basis) for hessian in quadratics.hessians]
        self._solver = self._cone_program()

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """The projection of ``v``; sets ``multipliers``."""
        if not self._c.size:
            return v
        rotated = self._basis.T @ v
        squares = np.array([float(np.sum((factor @ rotated) ** 2)) for factor in self._factors])
        if (squares[self._which] / 2 + self._b @ rotated + self._c <= 0).all():
            self.multipliers = np.zeros(self._c.size)
            return v
        self.n_solved += 1
        self._solver.update(q=np.concatenate([-rotated, np.zeros(len(self._factors))]))
        solution = self._solver.solve()
        # The linear rows hold twice the component, and so half its multiplier.
        self.multipliers = 2 * np.array(solution.z)[: self._c.size]
        return self._basis @ np.array(solution.x)[: v.size]

    def _cone_program(self) -> Any:
        """Minimise ``|u|^2 / 2 + q u`` over (u, r) in the form ``A (u, r) + s = a, s in cones``; q comes later."""
        n_params, n_hessians = self._basis.shape[0], len(self._factors)
        unit = sp.csr_array(np.eye(n_hessians))
        blocks: list[Any] = [sp.hstack([sp.csr_array(2 * self._b), unit[self._which]])]
        right = [-2 * self._c]
        cones = [self._clarabel.NonnegativeConeT(self._c.size)]
        for h, factor in enumerate(self._factors):
            # (r + 1, r - 1, 2 R u) lies in the second-order cone exactly where |R u|^2 <= r
            r = -unit[[h]]
            nothing = sp.csr_array((1, n_params))
            blocks += [sp.hstack([nothing, r]), sp.hstack([nothing, r])]
            blocks.append(sp.hstack([-2 * factor, sp.csr_array((factor.shape[0], n_hessians))]))
            right.append(np.concatenate([[1.0, -1.0], np.zeros(factor.shape[0])]))
            cones.append(self._clarabel.SecondOrderConeT(2 + factor.shape[0]))
        settings = self._clarabel.DefaultSettings()
        settings.verbose = False
        # The projection's error is the square root of the gap.
        settings.tol_gap_abs = settings.tol_gap_rel = _GAP
        settings.presolve_enable = False  # the solver is used again with another q
        settings.direct_solve_method = "qdldl"  # one thread: the same bits in every run
        diagonal = np.append(np.ones(n_params), np.zeros(n_hessians))
        quadratic = sp.dia_array((diagonal[None], [0]), shape=(diagonal.size, diagonal.size))
        return self._clarabel.DefaultSolver(
            sp.csc_matrix(quadratic),
            np.zeros(n_params + n_hessians),
            sp.csc_matrix(sp.vstack(blocks)),
            np.concatenate(right),
            cones,
            settings,
        )


def _factor(hessian: np.ndarray) -> Any:
    """Sparse ``R`` with ``R' R = hessian``, as many rows as the rank."""
    values, vectors = np.linalg.eigh(hessian)
    kept = values > _ROUNDING * max(values[-1], 0.0)
    factor = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    factor[np.abs(factor) <= _ROUNDING * np.abs(factor).max(initial=0.0)] = 0.0
    return sp.csr_array(factor)


def _import_clarabel() -> ModuleType:
    try:
        import clarabel
    except ImportError as error:
        raise ImportError(
            "solver 'projected_gradient' projects by clarabel, which is not installed: "
            "pip install 'fairconstrained[baselines]'. Or choose solver='augmented_lagrangian'."
        ) from error
    return clarabel
