"""The online subgradient method with virtual queues, directly on the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.problem import FullBatchView, Problem, Start, StochasticView
from fairconstrained.solvers._base import Callback, Recorder, Solver, SolverResult, surrogate_result
from fairconstrained.solvers._curvature import suitable_proximity
from fairconstrained.solvers._feasibility import find_feasible, stationary_result
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.published._online import control_parameters, online_steps
from fairconstrained.solvers.source import Source
from fairconstrained.views import Exact, FullBatch, Stochastic

__all__ = ["OnlineSubgradient"]


@dataclass(frozen=True)
class OnlineSubgradient(Solver):
    r"""The method of Yu, Neely and Wei for online convex optimisation, on one problem that need not be convex.

    A single loop of the steps

    .. math::
        z_{k+1} = \Pi \Bigl( z_k - \tfrac{1}{2 \alpha} \Bigl( V \nabla f(z_k) + \sum_j Q^j_k \nabla c_j(z_k) \Bigr)
        \Bigr), \qquad Q^j_{k+1} = \max \bigl( Q^j_k + c_j(z_k) + \nabla c_j(z_k)^\top (z_{k+1} - z_k), 0 \bigr)

    on all rows or on mini-batches, with one gradient for every constraint in each. It has no guarantee for problems
    that are not convex.

    The control parameters decide how fast it is: :math:`V / (2 \alpha)` is the step on the objective, and the
    multipliers :math:`Q^j / V` move by :math:`1 / V` times the constraints. The theory for convex problems has
    :math:`V = \sqrt K` and :math:`\alpha = K`, steps so short that thousands of them hardly leave the start; the
    paper that compares with this method tunes both, as one should.

    From a start that violates the constraints by more than ``precision``\ :sup:`2`, the violation is minimised first.
    If that ends at an infeasible stationary point of it, the run ends there, with the status "infeasible_stationary".

    The result is the iterate of least objective among those with no constraint above ``precision``\ :sup:`2`, or the
    last one if there are none. With mini-batches, only the iterates of the history are considered, which are measured
    on all rows. ``kappa`` bounds the *surrogate*, as in the paper; the exact metric is reported.

    Parameters
    ----------
    max_iter : int, default=10000
        Steps, K in the theory.
    V : float or "theory", default=1.0
        Positive. "theory" is :math:`\sqrt K`.
    alpha : float, "theory" or "auto", default="auto"
        Positive. "theory" is K. "auto" is V times the largest curvature of the objective and the constraints at the
        start and at two random points, an estimate; mini-batches may want more.
    batch_size : int or None, default=None
        Rows of a mini-batch; None is all rows.
    precision : float, default=1e-2
    verbose : int, default=0
        Positive: print a line per recorded iteration.

    References
    ----------
    Yu, Neely, Wei (2017), Online convex optimization with stochastic constraints, NeurIPS; as a baseline of Ma, Lin,
    Yang, arXiv:1908.01871, sections 5 and A.5.
    """

    name: ClassVar[str] = "online_subgradient"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)

    max_iter: Count = 10_000
    V: Positive | Literal["theory"] = 1.0
    alpha: Positive | Literal["theory", "auto"] = "auto"
    batch_size: Count | None = None
    precision: NonNegative = 1e-2

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        if self.batch_size is not None:
            problem.check((Stochastic,), solver=self.name)
        recorder, view = Recorder(callback, self.verbose), FullBatchView(problem)
        source = Source(StochasticView(problem), random_state, self.batch_size, 0.0)
        z = problem.project(problem.fair_start(start, random_state))
        tolerance = self.precision**2
        begin = find_feasible(
            view, z, problem.project, tolerance, lambda: suitable_proximity(view, z, problem.project, random_state)
        )
        if begin.is_stationary:
            return stationary_result(problem, begin, view.n_evaluations, recorder)

        def n_evaluations() -> int:
            return view.n_evaluations + int(np.ceil(source.n_rows / problem.data.n_samples))

        every, best, least = max(self.max_iter // 200, 1), None, np.inf
        z, project = begin.z, problem.project
        controls = control_parameters(self.V, self.alpha, self.max_iter, view, z, project, random_state)
        for k, (z, point) in enumerate(online_steps(source.batch, begin.z, project, self.max_iter, *controls)):
            recorded = k % every == 0
            if self.batch_size is not None:
                if not recorded:
                    continue
                point = view.at(z)
            violation = float(point.constraints.max(initial=-np.inf))
            if violation <= tolerance and point.objective < least:
                best, least = z, point.objective
            if recorded:
                recorder.add(
                    z[: problem.n_params],
                    n_iter=k,
                    n_evaluations=n_evaluations(),
                    objective=point.objective,
                    surrogate_violation=violation,
                )
        return surrogate_result(problem, z if best is None else best, self.max_iter, n_evaluations(), recorder)
