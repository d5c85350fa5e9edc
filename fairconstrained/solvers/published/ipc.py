"""The inexact proximally constrained method for weakly convex problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Point, Problem, StochasticView
from fairconstrained.solvers._base import SolverResult
from fairconstrained.solvers._curvature import suitable_proximity
from fairconstrained.solvers._feasibility import FromFeasible
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._proximal import Subproblem
from fairconstrained.solvers._stationarity import proximal_distance
from fairconstrained.solvers.loop import IterativeSolver, ended
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.published._online import OnlineSteps, control_parameters
from fairconstrained.solvers.published._smooth_oracles import augmented_lagrangian, level_set
from fairconstrained.solvers.published.proximal_point import switching
from fairconstrained.solvers.source import Source
from fairconstrained.views import Stochastic

__all__ = ["IPC"]


@dataclass(frozen=True)
class IPC(IterativeSolver):
    r"""Inexact proximally constrained method (Algorithm 1): a sequence of strongly convex subproblems,

    .. math:: x_{t+1} \approx \arg\min_{x \in \mathcal{X}} \; f(x) + \tfrac{\hat\rho}{2} \|x - x_t\|^2
              \quad \text{s.t.} \quad c_j(x) + \tfrac{\hat\rho}{2} \|x - x_t\|^2 \le 0 \;\; \forall j,

    for functions that are :math:`\rho`-weakly convex with :math:`\rho < \hat\rho`. An oracle solves them
    approximately:

    - "switching" (Algorithm 2): K steps :math:`z \leftarrow \Pi(z - \gamma_k \zeta)`, :math:`\gamma_k = 2 / ((\hat\rho
      - \rho) (k + 2))`, with the gradient of the objective where all constraints are at most :math:`\hat\epsilon^2`
      and that of the worst constraint elsewhere; then the mean of the iterates of the first kind, the k-th with the
      weight k + 1. A run from a feasible start stays feasible within :math:`\hat\epsilon^2`.
    - "online" (Algorithm 3): K steps with a virtual queue for every constraint, on all rows or on mini-batches, with a
      gradient for each constraint; then the mean of the iterates.
    - "augmented_lagrangian" and "level_set" (Remark 2), for smooth functions: these methods with spectral projected
      gradients for their subproblems, until the largest constraint of the subproblem is at most :math:`\hat\epsilon^2`,
      or until its objective is within :math:`\hat\epsilon^2` of the optimum. Both take far fewer passes than steps
      along subgradients.

    From a start that violates the constraints by more than :math:`\hat\epsilon^2`, the violation is minimised first. If
    this ends at an infeasible stationary point, the run ends there, with the status "infeasible_stationary".

    The result is the last :math:`x_t`, or one drawn at random, for which Theorem 1 holds: with enough steps, the square
    of its distance to the solution of its subproblem is at most :math:`\epsilon^2` in expectation. ``kappa`` bounds the
    surrogate up to :math:`\hat\epsilon^2`, as in the paper; the exact metric is reported.

    Parameters
    ----------
    max_iter : int, default=20
        Subproblems, T in the paper.
    inner_iter : int or None, default=None
        Steps for each, K in the paper, of "switching" and "online". None is :math:`\lceil 1 / \hat\epsilon^2 \rceil`,
        as in the paper's experiments. With far fewer, :math:`x_t` may never change with "switching": the first steps
        are long, :math:`1 / (\hat\rho - \rho)` times the gradient, and leave the feasible set.
    oracle : {"switching", "online", "augmented_lagrangian", "level_set"}, default="switching"
        Method that solves the subproblems, see above.
    online_V, online_alpha : default=1.0 and "auto"
        V and :math:`\alpha` of "online", see `fairconstrained.solvers.OnlineSubgradient`; "theory" takes the values of
        Algorithm 3, :math:`\sqrt K` and K.
    output : {"last", "random"}, default="last"
        Iterate :math:`x_t` that is the result. "random" draws R from 0, ..., T - 1 before the first step and ends with
        :math:`x_R`, so that it takes R subproblems only.
    precision : float, default=1e-2
        :math:`\hat\epsilon`; subproblems are solved to :math:`\hat\epsilon^2`.
    proximity : float or "auto", default="auto"
        :math:`\hat\rho`. "auto" is twice an estimate of :math:`\rho`, the largest negative curvature of the objective
        and the constraints at the start and at two random points; see `weak_convexity`.
    weak_convexity : float or None, default=None
        :math:`\rho`; None is half of ``proximity``.
    batch_size : int or None, default=None
        Rows of a mini-batch for the oracle "online"; None is all rows.
    stationarity_tol : float or None, default=None
        Stop, with the status "optimal", where :math:`x_t` is no farther than this from the solution of its subproblem.
        That distance (`near_stationarity`) is computed when a step is hardly longer than this. Only with
        ``output="last"``.

    Raises
    ------
    ValueError
        From `solve`, for a ``batch_size`` with another oracle than "online", for a ``stationarity_tol`` with a random
        output, or if not ``weak_convexity`` < ``proximity``.
    IncompatibleProblem
        From `solve`, if ``batch_size`` is given and a term has no view of mini-batches.

    Notes
    -----
    Errors in the paper: the K of Algorithm 2 and the proof of Theorem 2 have :math:`M^2 + \hat\rho D^2`, where the
    bound :math:`\|F'\| \le M + \hat\rho D` of the gradients needs :math:`\hat\rho^2 D^2`; Algorithm 1 draws R from
    0, ..., T, while the proof of Theorem 1 averages over 0, ..., T - 1, as here.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871: Algorithms 1 to 3, Theorem 1, Remarks 1 and 2, section A.5.
    """

    name: ClassVar[str] = "ipc"
    max_iter: Count = 20
    inner_iter: Count | None = None
    oracle: Literal["switching", "online", "augmented_lagrangian", "level_set"] = "switching"
    online_V: Positive | Literal["theory"] = 1.0
    online_alpha: Positive | Literal["theory", "auto"] = "auto"
    output: Literal["last", "random"] = "last"
    precision: Positive = 1e-2
    proximity: Positive | Literal["auto"] = "auto"
    weak_convexity: NonNegative | None = None
    batch_size: Count | None = None
    stationarity_tol: NonNegative | None = None

    @classmethod
    def published(cls, problem: Problem) -> Mapping[str, Any]:
        """The modulus that worked on the paper's three data sets (section A.5)."""
        return {"proximity": 10**-2.5}

    @override
    def new_source(self, view: StochasticView, rng: np.random.Generator) -> Source:
        return Source(view, rng, self.batch_size, 0.0)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        self._check(problem)
        # by a generator of its own, so that the iterates are those of output="last"
        drawn = None if self.output == "last" else int(rng.spawn(1)[0].integers(self.max_iter))
        return _Proximal(self, z, drawn)

    def _check(self, problem: Problem) -> None:
        if self.batch_size is not None:
            if self.oracle != "online":
                raise ValueError(
                    f"batch_size={self.batch_size} needs oracle='online'; oracle={self.oracle!r} takes all rows."
                )
            problem.check((Stochastic,), solver=self.name)
        if self.stationarity_tol is not None and self.output == "random":
            raise ValueError(
                f"stationarity_tol={self.stationarity_tol} needs output='last': output='random' ends at an iterate "
                "that is drawn before the first step. Set one of them."
            )

    @property
    def n_inner(self) -> int:
        """Steps for a subproblem."""
        return int(np.ceil(self.precision**-2 - 1e-6)) if self.inner_iter is None else self.inner_iter


class _Proximal(FromFeasible):
    """A step is the approximate solution of the subproblem around the iterate, by the oracle.

    It ends after so many iterations as are ``drawn``, if they are drawn at random.
    """

    def __init__(self, options: IPC, z: np.ndarray, drawn: int | None) -> None:
        super().__init__(options, z)
        self._left, self._length, self._distance = drawn, 0.0, np.inf

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        o, self.z = self._options, problem.project(self.z)
        self._set_moduli(source, problem)
        super().begin(source, problem)
        if o.oracle == "online" and not self.is_stationary:
            first = Subproblem(source.view, self.z, self._proximity)
            near = (first, self.z, problem.project, source.rng)
            self._controls = control_parameters(o.online_V, o.online_alpha, o.n_inner, *near)

    @override
    def _first_proximity(self, source: Source, z: np.ndarray, problem: Problem) -> float:
        return self._proximity

    def _set_moduli(self, source: Source, problem: Problem) -> None:
        """Set the factor of the proximal terms, and that of the weak convexity which they outweigh."""
        o, proximity = self._options, self._options.proximity
        if isinstance(proximity, str):
            proximity = suitable_proximity(source.view, self.z, problem.project, source.rng)
        modulus = proximity / 2 if o.weak_convexity is None else o.weak_convexity
        if not modulus < proximity:
            raise ValueError(f"weak_convexity must be below proximity, got {modulus:g} and {proximity:g}.")
        self._proximity, self._weak_convexity = proximity, modulus

    @property
    @override
    def finished(self) -> bool:
        return self.is_stationary or self._left == 0 or self._is_optimal

    @property
    def _is_optimal(self) -> bool:
        tol = self._options.stationarity_tol
        return tol is not None and self._distance <= tol

    @override
    def step(self, source: Source, problem: Problem) -> None:
        moved = self._solution(source, problem)
        self._length, self.z = float(np.linalg.norm(moved - self.z)), moved
        self._left = None if self._left is None else self._left - 1
        tol = self._options.stationarity_tol
        is_near = tol is not None and self._length <= 2 * tol
        near = (source.view, moved, problem.project, self._proximity)
        self._distance = proximal_distance(*near) if is_near else np.inf

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        known = {"distance": self._distance} if np.isfinite(self._distance) else {}
        return {"step": self._length} | known

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        has_rule = self._options.stationarity_tol is not None
        return super().conclude(ended(result, self._is_optimal) if has_rule else result, problem)

    def _solution(self, source: Source, problem: Problem) -> np.ndarray:
        """Return the point that the oracle finds for the subproblem around the iterate."""
        o, subproblem = self._options, Subproblem(source.view, self.z, self._proximity)
        if o.oracle == "online":
            return self._online(source, problem)
        if o.oracle == "switching":
            strong_convexity = self._proximity - self._weak_convexity

            def rate(k: int) -> float:
                return 2 / (strong_convexity * (k + 2))

            return switching(subproblem, self.z, problem.project, o.n_inner, rate, self._tolerance)
        solve = augmented_lagrangian if o.oracle == "augmented_lagrangian" else level_set
        return solve(subproblem, self.z, problem.project, self._tolerance)

    def _online(self, source: Source, problem: Problem) -> np.ndarray:
        steps, total = OnlineSteps(self.z, *self._controls), np.zeros_like(self.z)
        for _ in range(self._options.n_inner):
            total += steps.z
            steps.advance(Subproblem(source.batch(), self.z, self._proximity), problem.project)
        return total / self._options.n_inner
