"""The stochastic switching subgradient method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.points import largest_violation, objective_gradient, worst_gradient
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import NonNegative, NonNegativeInt, Positive, Share
from fairconstrained.solvers.stochastic import Method, SeparateBatches, Source

__all__ = ["StochasticSwitching"]


@dataclass(frozen=True)
class StochasticSwitching(SeparateBatches):
    r"""A step on the objective where the constraints seem to hold, and on the worst of them otherwise (Algorithm 3).

    A mini-batch :math:`\zeta_1` of the constraints tells whether :math:`\max_i c_i(x, \zeta_1) \le \epsilon_k`; an
    independent one, :math:`\xi` of the objective or :math:`\zeta_2` of the constraints, gives the subgradient,

    .. math:: x \leftarrow x - \eta^f \nabla f(x, \xi) \quad \text{or} \quad
              x \leftarrow x - \eta^c \nabla c_i(x, \zeta_2).

    The tolerance :math:`\epsilon_k` is constant for some steps of every epoch and then shrinks.

    ``kappa`` bounds the means only up to the noise of the mini-batches, as in the paper; the exact gap is reported.

    Parameters
    ----------
    learning_rate : float, default=0.5
        Step length :math:`\eta^f` on the objective.
    constraint_rate : float, default=0.05
        Step length :math:`\eta^c` on a constraint.
    tolerance : float, default=1e-4
        :math:`\epsilon_k` at the beginning of every epoch.
    constant_steps : int, default=500
        Steps of every epoch before the tolerance shrinks.
    decay : float, default=0.97
        Factor by which it then shrinks with every step.
    burn_in : int, default=0
        Steps whose iterates are not returned (:math:`k_0`).
    output : {"random", "last"}, default="random"
        "random" is an iterate drawn with probabilities in proportion to the length of the step that followed it, as
        published. With ``select="best"`` the best feasible iterate that was recorded is the result instead, if there is
        one.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, section 3.4, Algorithm 3; Huang and Lin, Oracle
    Complexity of Single-Loop Switching Subgradient Methods for Non-Smooth Weakly Convex Functional Constrained
    Optimization, NeurIPS 2023.
    """

    name: ClassVar[str] = "stochastic_switching"

    learning_rate: Positive = 0.5
    constraint_rate: Positive = 0.05
    tolerance: NonNegative = 1e-4
    constant_steps: NonNegativeInt = 500
    decay: Share = 0.97
    burn_in: NonNegativeInt = 0
    output: Literal["random", "last"] = "random"

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Switching(self, z, rng.spawn(1)[0])


class _Switching(Method):
    """The returned iterate is drawn as the iterates pass by (a reservoir of one), so that none has to be stored."""

    def __init__(self, options: StochasticSwitching, z: np.ndarray, rng: np.random.Generator) -> None:
        self._options, self._rng = options, rng
        self.z = self.drawn = z
        self.tolerance, self.n_steps, self.epoch_steps, self.total = options.tolerance, 0, 0, 0.0

    @override
    def begin_epoch(self) -> None:
        self.tolerance, self.epoch_steps = self._options.tolerance, 0

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o, x = self._options, self.z
        if self.epoch_steps >= o.constant_steps:
            self.tolerance *= o.decay
        judge = source.constraint_batch().at(x)
        if largest_violation(judge.constraints) <= self.tolerance:
            rate, gradient = o.learning_rate, objective_gradient(source.objective_batch().at(x))
        else:
            rate = o.constraint_rate
            gradient = worst_gradient(source.constraint_batch().at(x))
        self.n_steps, self.epoch_steps = self.n_steps + 1, self.epoch_steps + 1
        if self.n_steps > o.burn_in:
            self.total += rate
            if self._rng.random() * self.total < rate:
                self.drawn = x
        self.z = problem.project(x - rate * gradient)

    @override
    def output(self) -> np.ndarray:
        return self.drawn if self._options.output == "random" and self.total else self.z
