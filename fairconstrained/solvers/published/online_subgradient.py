"""The online subgradient method with virtual queues, directly on the problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.points import largest_violation
from fairconstrained.problem import Point, Problem, StochasticView
from fairconstrained.solvers._feasibility import FromFeasible
from fairconstrained.solvers._options import Count, NonNegative, Positive
from fairconstrained.solvers.loop import IterativeSolver
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.published._online import OnlineSteps, control_parameters
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured
from fairconstrained.views import Stochastic

__all__ = ["OnlineSubgradient"]


@dataclass(frozen=True)
class OnlineSubgradient(IterativeSolver):
    r"""The method of Yu, Neely and Wei for online convex optimisation, on one problem that need not be convex.

    A single loop of the steps

    .. math::
        z_{k+1} = \Pi \Bigl( z_k - \tfrac{1}{2 \alpha} \Bigl( V \nabla f(z_k) + \sum_j Q^j_k \nabla c_j(z_k) \Bigr)
        \Bigr), \qquad Q^j_{k+1} = \max \bigl( Q^j_k + c_j(z_k) + \nabla c_j(z_k)^\top (z_{k+1} - z_k), 0 \bigr)

    on all rows or on mini-batches, with one gradient for every constraint in each. It has no guarantee for problems
    that are not convex.

    Its speed depends on the control parameters: :math:`V / (2 \alpha)` is the step on the objective, and the
    multipliers :math:`Q^j / V` move by :math:`1 / V` times the constraints. The theory for convex problems has
    :math:`V = \sqrt K` and :math:`\alpha = K`, which give so short steps that thousands of them hardly leave the start;
    the paper that compares with this method tunes both, which is advisable.

    From a start that violates the constraints by more than ``precision``\ :sup:`2`, the violation is minimised first.
    If this ends at an infeasible stationary point, the run ends there, with the status "infeasible_stationary".

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
        start and at two random points, an estimate; mini-batches may need a larger value.
    batch_size : int or None, default=None
        Rows of a mini-batch; None is all rows.
    precision : float, default=1e-2
        Square root of the largest value of a constraint that counts as kept.

    Raises
    ------
    IncompatibleProblem
        From `solve`, if ``batch_size`` is given and a term has no view of mini-batches.

    References
    ----------
    Yu, Neely, Wei (2017), Online convex optimization with stochastic constraints, NeurIPS; as a baseline of Ma, Lin,
    Yang, arXiv:1908.01871, sections 5 and A.5.
    """

    name: ClassVar[str] = "online_subgradient"
    n_recorded: ClassVar[int] = 200
    max_iter: Count = 10_000
    V: Positive | Literal["theory"] = 1.0
    alpha: Positive | Literal["theory", "auto"] = "auto"
    batch_size: Count | None = None
    precision: NonNegative = 1e-2

    @override
    def new_source(self, view: StochasticView, rng: np.random.Generator) -> Source:
        return Source(view, rng, self.batch_size, 0.0)

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        if self.batch_size is not None:
            problem.check((Stochastic,), solver=self.name)
        return _Online(self, z)


class _Online(FromFeasible):
    def __init__(self, options: OnlineSubgradient, z: np.ndarray) -> None:
        super().__init__(options, z)
        self._best = Incumbent()

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        super().begin(source, problem)
        if not self.is_stationary:
            o = self._options
            controls = (source.view, self.z, problem.project, source.rng)
            self._steps = OnlineSteps(self.z, *control_parameters(o.V, o.alpha, o.max_iter, *controls))

    @override
    def step(self, source: Source, problem: Problem) -> None:
        z, point = self.z, self._steps.advance(source.batch(), problem.project)
        self.z = self._steps.z
        if self._options.batch_size is None:
            self._consider(z, point)

    def _consider(self, z: np.ndarray, point: Point) -> None:
        if largest_violation(point.constraints) <= self._tolerance:
            self._best.offer(z, point.objective, 0.0)

    @override
    def observe(self, point: Point, measured: Measured) -> None:
        """A mini-batch does not say whether the constraints hold; here all rows are at hand."""
        if self._options.batch_size is not None:
            self._consider(self.z, point)

    @override
    def output(self) -> np.ndarray:
        """The iterate of least objective among those that nearly keep the constraints, or the last one."""
        return self._best.feasible_or(self.z)
