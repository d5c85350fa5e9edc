"""The stochastic penalty-barrier method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.points import objective_gradient
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import Fraction, Positive
from fairconstrained.solvers.gradient_descent import AdamDirection
from fairconstrained.solvers.stochastic import Method, SeparateBatches, Source

__all__ = ["PenaltyBarrier"]


@dataclass(frozen=True)
class PenaltyBarrier(SeparateBatches):
    r"""Adam on a penalty-barrier function, whose multipliers and penalty parameters are averaged exponentially.

    Step t moves x by a step of Adam along the gradient of

    .. math::
        f(x) + \sum_i \lambda_i p_i \, \varphi \Bigl( \frac{c_i(x)}{p_i} \Bigr), \qquad
        \varphi(u) = \begin{cases} u + u^2 / 2 & u \ge -1/2, \\ -\tfrac14 \log(-2u) - \tfrac38 & u < -1/2, \end{cases}

    which is a penalty where a constraint is violated and a barrier where it holds, and then the multipliers
    :math:`\lambda` and the parameters p,

    .. math::
        \lambda_i \leftarrow \gamma \lambda_i + (1 - \gamma) \, \lambda_i \, \varphi'(c_i / p_i), \qquad
        p_i \leftarrow K p_i + (1 - K) \, \frac{p_i}{\delta_i}, \qquad
        \delta_i = \begin{cases} \varphi'(c_i) & \varphi'(c_i) < 1, \\ \delta \varphi'(c_i) & \text{else,} \end{cases}

    both clipped to their ranges. In epoch k (from 0) :math:`\gamma = 1 - 1 / (\sqrt k + 1 / (1 - \gamma_0))`, and K
    likewise, so that both change less and less.

    The values c are those of a mini-batch :math:`\zeta_2`; f and the gradients of the constraints are of other ones,
    :math:`\xi` and :math:`\zeta_1`, all independent of each other. On the same rows, as in the authors' package, the
    term :math:`u^2 / 2` would penalise the variance of mini-batches besides.

    ``kappa`` bounds the means only up to the noise of the mini-batches; the exact gap is reported. The publication has
    a Moreau envelope around the method, which is ``smoothing=2.0``.

    Parameters
    ----------
    learning_rate : float, default=0.001
        Learning rate of Adam.
    dual_memory : float, default=0.1
        :math:`\gamma_0`, between 0 and 1.
    penalty_memory : float, default=0.1
        :math:`K_0`, between 0 and 1.
    delta : float, default=1.0
        :math:`\delta`: above 1, parameters of violated constraints shrink faster.
    min_multiplier, max_multiplier : float, default=1e-9 and 100.0
        Range of :math:`\lambda`, which begins at the lower end.
    min_penalty, max_penalty : float, default=0.1 and 1.0
        Range of p, which begins at the upper end. A smaller parameter is a steeper penalty.

    References
    ----------
    Bosák, Kliachkin, Lepšová, Bareilles, Mareček, Stochastic Penalty-Barrier Methods for Constrained Machine Learning,
    arXiv:2605.18618, as the package ``humancompatible-train`` 0.4.2 has it (``PBM``), with its defaults; Ben-Tal and
    Zibulevsky, Penalty/barrier multiplier methods for convex programming problems, SIAM J. Optim. 7 (1997).
    """

    name: ClassVar[str] = "penalty_barrier"

    learning_rate: Positive = 0.001
    dual_memory: Fraction = 0.1
    penalty_memory: Fraction = 0.1
    delta: Positive = 1.0
    min_multiplier: Positive = 1e-9
    max_multiplier: Positive = 100.0
    min_penalty: Positive = 0.1
    max_penalty: Positive = 1.0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _PenaltyBarrier(self, z, len(problem.component_names))


class _PenaltyBarrier(Method):
    _multipliers: np.ndarray

    def __init__(self, options: PenaltyBarrier, z: np.ndarray, n_components: int) -> None:
        super().__init__(options, z)
        self._epoch, self._direction = -1, AdamDirection(z.size)
        self._multipliers = np.full(n_components, options.min_multiplier)
        self.penalties = np.full(n_components, options.max_penalty)

    @property
    def multipliers(self) -> np.ndarray:
        """Implement `Method.multipliers`; zero where they are at the lower end of their range."""
        return np.where(self._multipliers > self._options.min_multiplier, self._multipliers, 0.0)

    @override
    def begin_epoch(self) -> None:
        self._epoch += 1

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o, p = self._options, self.penalties
        objective, point, judge = source.separate_points(self.z)
        wanted = self._multipliers * _slope(judge.constraints / p)
        gradient = objective_gradient(objective) + point.gradient(0.0, wanted)
        self.z = problem.project(self.z - o.learning_rate * self._direction.of(gradient))
        gamma = self._memory(o.dual_memory)
        moved = gamma * self._multipliers + (1 - gamma) * wanted
        self._multipliers = np.clip(moved, o.min_multiplier, o.max_multiplier)
        slope, keep = _slope(judge.constraints), self._memory(o.penalty_memory)
        moved = keep * p + (1 - keep) * p / np.where(slope < 1, slope, o.delta * slope)
        self.penalties = np.clip(moved, o.min_penalty, o.max_penalty)

    def _memory(self, first: float) -> float:
        """Share of what was before in an average, which grows from ``first`` towards 1 with the epochs."""
        return 1 - 1 / (np.sqrt(max(self._epoch, 0)) + 1 / (1 - first))


def _slope(u: np.ndarray) -> np.ndarray:
    """Return the derivative of the penalty-barrier function, above zero everywhere."""
    return np.where(u >= -0.5, 1 + u, -0.25 / np.minimum(u, -0.5))
