"""Projected gradient descent; the projection is a small convex quadratically constrained program."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.models import LinearMoments
from fairconstrained.points import objective_gradient
from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._spectral import SpectralDescent
from fairconstrained.solvers.loop import IterativeSolver, ended
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.moments import minimise_quadratic
from fairconstrained.solvers.quadratics import Quadratics, parameter_quadratics
from fairconstrained.solvers.source import Source
from fairconstrained.views import ConvexQuadratic, Exact, FullBatch

__all__ = ["ProjectedGradient"]

#: Iterations after which a change of the best objective is judged.
_WINDOW = 10


@dataclass(frozen=True)
class ProjectedGradient(IterativeSolver):
    r"""Projected gradient descent for convex quadratic constraints on a linear model.

    .. math:: w_{k+1} = \mathrm{Proj}(w_k - \eta_k \nabla f(w_k)), \qquad w_0 = 0

    onto :math:`\{w : \frac{1}{2} w^T H_j w + b_j^T w + c_j \le 0 \;\forall j\}`, where :math:`w` are the coefficients
    of the standardised features: so the units of the features do not matter. Those of the constraints come from the
    first two moments of X in cells of rows and are computed once. The projection minimises a quadratic under
    quadratics, see `minimise_quadratic`; it is computed only where the unprojected point is not feasible.

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
        """Those of the last projection."""
        return self._projection.multipliers / self._length

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {"step": self._descent.step, "n_projections": self._projection.n_solved}

    @override
    def output(self) -> np.ndarray:
        """The iterate of least objective; all are feasible up to the accuracy of the projections that converged."""
        return self._coordinates.to_params(self._descent.best)

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        return ended(result, self._settled and not self._projection.has_missed)


class _Projection:
    """Euclidean projection onto ``{w : quadratics <= 0}``, an empty intersection never being asked for."""

    def __init__(self, quadratics: Quadratics) -> None:
        self.n_solved, self._quadratics = 0, quadratics
        #: Whether one of the projections did not converge, so that its point may be outside.
        self.has_missed = False
        #: Multipliers of the components at the last projection.
        self.multipliers = np.zeros(quadratics.c.size)

    def __call__(self, v: np.ndarray) -> np.ndarray:
        """The projection of ``v``; sets ``multipliers``."""
        if (self._quadratics.values(v) <= 0).all():
            self.multipliers = np.zeros(self._quadratics.c.size)
            return v
        self.n_solved += 1
        distance = Quadratics(np.eye(v.size)[None], np.zeros(1, dtype=int), -v[None], np.zeros(1))
        found = minimise_quadratic(distance, np.zeros(v.size), self._quadratics)
        self.multipliers, self.has_missed = found.multipliers, self.has_missed or not found.converged
        return found.w
