"""The inexact proximally constrained method for weakly convex problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.problem import FullBatchView, Problem, Start, StochasticView
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
)
from fairconstrained.solvers._curvature import suitable_proximity
from fairconstrained.solvers._feasibility import find_feasible, stationary_result
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers._stationarity import proximal_distance
from fairconstrained.solvers.published._online import control_parameters, online_steps
from fairconstrained.solvers.published._smooth_oracles import augmented_lagrangian, level_set
from fairconstrained.solvers.published.proximal_point import Subproblem, proximal_steps, stepped_result, switching
from fairconstrained.solvers.source import Source
from fairconstrained.views import Exact, FullBatch, Stochastic

__all__ = ["IPC"]

#: Approximate solutions of subproblems, by their centres.
_Oracle = Callable[[np.ndarray], np.ndarray]


class _Moduli(NamedTuple):
    """Factors of the proximal terms and of the weak convexity that they outweigh."""

    proximity: float
    weak_convexity: float


@dataclass(frozen=True)
class IPC(Solver):
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
      gradients inside, until the largest constraint of the subproblem is at most :math:`\hat\epsilon^2`, or until its
      objective is within :math:`\hat\epsilon^2` of the optimum. Both take far fewer passes than steps along
      subgradients.

    From a start that violates the constraints by more than :math:`\hat\epsilon^2`, the violation is minimised first. If
    that ends at an infeasible stationary point of it, the run ends there, with the status "infeasible_stationary".

    The result is the last :math:`x_t`, or one drawn at random, about which Theorem 1 is: with enough steps, the square
    of its distance to the solution of its subproblem is at most :math:`\epsilon^2` in expectation. ``kappa`` bounds
    the surrogate up to :math:`\hat\epsilon^2`, as in the paper; the exact metric is reported.

    Parameters
    ----------
    max_iter : int, default=20
        Subproblems, T in the paper.
    inner_iter : int or None, default=None
        Steps for each, K in the paper, of "switching" and "online". None is :math:`\lceil 1 / \hat\epsilon^2 \rceil`,
        as in the paper's experiments. With far fewer, :math:`x_t` may never move by "switching": the first steps are
        long, :math:`1 / (\hat\rho - \rho)` times the gradient, and leave what is feasible.
    oracle : {"switching", "online", "augmented_lagrangian", "level_set"}, default="switching"
    online_V, online_alpha : default=1.0 and "auto"
        V and :math:`\alpha` of "online", see `fairconstrained.solvers.OnlineSubgradient`; "theory" is what Algorithm 3
        has, :math:`\sqrt K` and K.
    output : {"last", "random"}, default="last"
        Which :math:`x_t` is the result. "random" draws R from 0, ..., T - 1 before the first step and ends with
        :math:`x_R`, so that it takes R subproblems only.
    precision : float, default=1e-2
        :math:`\hat\epsilon`.
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
    verbose : int, default=0
        Positive: print a line per subproblem.

    Raises
    ------
    ValueError
        From `solve`, for a ``batch_size`` with another oracle than "online", for a ``stationarity_tol`` with a random
        output, or if not ``weak_convexity`` < ``proximity``.

    Notes
    -----
    Slips in the paper: the K of Algorithm 2 and the proof of Theorem 2 have :math:`M^2 + \hat\rho D^2`, where the
    bound :math:`\|F'\| \le M + \hat\rho D` of the gradients needs :math:`\hat\rho^2 D^2`; Algorithm 1 draws R from
    0, ..., T, while the proof of Theorem 1 averages over 0, ..., T - 1, as here.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871: Algorithms 1 to 3, Theorem 1, Remarks 1 and 2, section A.5.
    """

    name: ClassVar[str] = "ipc"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)

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
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        self._check(problem)
        # by a generator of its own, so that the iterates are those of output="last"
        drawn = None if self.output == "last" else int(random_state.spawn(1)[0].integers(self.max_iter))
        recorder, view = Recorder(callback, self.verbose), FullBatchView(problem)
        source = Source(StochasticView(problem), random_state, self.batch_size, 0.0)
        z = problem.project(problem.fair_start(start, random_state))
        moduli = self._moduli(view, z, problem, random_state)
        begin = find_feasible(view, z, problem.project, self.precision**2, lambda: moduli.proximity)
        if begin.is_stationary:
            return stationary_result(problem, begin, view.n_evaluations, recorder)
        # no step is as short as -1
        tol = -1.0 if self.stationarity_tol is None else self.stationarity_tol

        def certify(z: np.ndarray, step: float) -> float:
            return proximal_distance(view, z, problem.project, moduli.proximity) if step <= 2 * tol else np.inf

        def n_evaluations() -> int:
            return view.n_evaluations + int(np.ceil(source.n_rows / problem.data.n_samples))

        oracle = {
            "switching": lambda: self._switching(view, moduli),
            "online": lambda: self._online(source, view, begin.z, moduli, random_state),
            "augmented_lagrangian": lambda: self._smooth(augmented_lagrangian, view, moduli),
            "level_set": lambda: self._smooth(level_set, view, moduli),
        }[self.oracle]()
        n_iter = self.max_iter if drawn is None else drawn
        ended = proximal_steps(problem, begin.z, oracle, n_iter, recorder, view, n_evaluations, certify, tol)
        result = stepped_result(problem, ended, n_evaluations(), recorder)
        if self.stationarity_tol is None or result.status.is_infeasible:
            return result
        return replace(result, status=Status.OPTIMAL if ended.distance <= tol else Status.MAX_ITER)

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

    def _moduli(self, view: FullBatchView, z: np.ndarray, problem: Problem, rng: np.random.Generator) -> _Moduli:
        if isinstance(self.proximity, str):
            proximity = suitable_proximity(view, z, problem.project, rng)
        else:
            proximity = self.proximity
        modulus = proximity / 2 if self.weak_convexity is None else self.weak_convexity
        if not modulus < proximity:
            raise ValueError(f"weak_convexity must be below proximity, got {modulus:g} and {proximity:g}.")
        return _Moduli(proximity, modulus)

    @property
    def _n_steps(self) -> int:
        return int(np.ceil(self.precision**-2 - 1e-6)) if self.inner_iter is None else self.inner_iter

    def _switching(self, view: FullBatchView, moduli: _Moduli) -> _Oracle:
        def rate(k: int) -> float:
            return 2 / ((moduli.proximity - moduli.weak_convexity) * (k + 2))

        def solve(z: np.ndarray) -> np.ndarray:
            subproblem = Subproblem(view, z, moduli.proximity)
            return switching(subproblem, z, view.problem.project, self._n_steps, rate, self.precision**2)

        return solve

    def _online(
        self, source: Source, view: FullBatchView, start: np.ndarray, moduli: _Moduli, rng: np.random.Generator
    ) -> _Oracle:
        project, first = view.problem.project, Subproblem(view, start, moduli.proximity)
        controls = control_parameters(self.online_V, self.online_alpha, self._n_steps, first, start, project, rng)

        def solve(center: np.ndarray) -> np.ndarray:
            def subproblem() -> Subproblem:
                return Subproblem(source.batch(), center, moduli.proximity)

            iterates = (z for z, _ in online_steps(subproblem, center, project, self._n_steps, *controls))
            return sum(iterates, np.zeros_like(center)) / self._n_steps

        return solve

    def _smooth(self, method: Callable[..., np.ndarray], view: FullBatchView, moduli: _Moduli) -> _Oracle:
        def solve(z: np.ndarray) -> np.ndarray:
            return method(Subproblem(view, z, moduli.proximity), z, view.problem.project, self.precision**2)

        return solve
