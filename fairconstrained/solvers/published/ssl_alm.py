"""Augmented Lagrangian methods on mini-batches, smoothed and plain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.points import objective_gradient
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import NonNegative, Positive
from fairconstrained.solvers.stochastic import Method, SeparateBatches, Source

__all__ = ["SSLALM", "StochasticALM"]


@dataclass(frozen=True)
class StochasticALM(SeparateBatches):
    r"""The augmented Lagrangian method on mini-batches: `SSLALM` without smoothing.

    Parameters
    ----------
    learning_rate : float, default=0.01
        Step length of the parameters and slacks, :math:`\tau` of `SSLALM`.
    dual_rate : float, default=0.05
        Step length of the multipliers, :math:`\eta` there.
    penalty : float, default=1.0
        Penalty :math:`\rho` of the augmented Lagrangian.
    max_multiplier : float, default=10.0
        :math:`M_y`: all multipliers become zero where their norm is not below it.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, section 4.2.
    """

    name: ClassVar[str] = "alm"

    learning_rate: Positive = 0.01
    dual_rate: NonNegative = 0.05
    penalty: NonNegative = 1.0
    max_multiplier: Positive = 10.0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _Lagrangian(self, z, len(problem.component_names))


@dataclass(frozen=True)
class SSLALM(StochasticALM):
    r"""The stochastic smoothed and linearised augmented Lagrangian method: `StochasticALM` in a Moreau envelope.

    Algorithm 2. The constraints are :math:`c(x) + s = 0` with slacks :math:`s \ge 0`. From a mini-batch :math:`\xi` of
    the objective and two of the constraints, :math:`\zeta_1` and :math:`\zeta_2`, all three independent of each other,

    .. math::
        y &\leftarrow y + \eta \, (c(x, \zeta_1) + s), \qquad y \leftarrow 0 \text{ if } |y| \ge M_y, \\
        G &= \nabla f(x, \xi) + \nabla c(x, \zeta_1)^\top \bigl( y + \rho \, (c(x, \zeta_2) + s) \bigr)
             + \mu (x - z), \\
        x &\leftarrow x - \tau G, \qquad s \leftarrow \max(s - \tau G_s, 0), \qquad z \leftarrow z + \beta (x - z),

    where :math:`G_s = y + \rho (c(x, \zeta_2) + s) + \mu (s - z_s)`, and z moves towards the x before the step.
    That the mini-batches are independent is what makes G unbiased.

    ``kappa`` bounds the means only up to the noise of the mini-batches, as in the paper; the exact gap is reported.

    Parameters
    ----------
    smoothing : float, default=2.0
        Weight :math:`\mu` of the Moreau envelope.
    averaging : float, default=0.5
        Share :math:`\beta` of the way to x by which the centre z follows, in [0, 1].

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, section 3.3, Algorithm 2; Huang, Zhang, Alacaoglu,
    arXiv:2504.07607.
    """

    name: ClassVar[str] = "ssl_alm"

    smoothing: NonNegative = 2.0


class _Lagrangian(Method):
    """The slacks are variables as x is, so a Moreau envelope is one of both: here is its part in the slacks."""

    _multipliers: np.ndarray

    def __init__(self, options: StochasticALM, z: np.ndarray, n_components: int) -> None:
        super().__init__(options, z)
        self._multipliers = self.slack = self.slack_center = np.zeros(n_components)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o, x, slack = self._options, self.z, self.slack
        objective, point, other = source.separate_points(x)
        y = self._multipliers + o.dual_rate * (point.constraints + slack)
        self._multipliers = y if y @ y < o.max_multiplier**2 else np.zeros_like(y)
        weights = self._multipliers + o.penalty * (other.constraints + slack)
        gradient = objective_gradient(objective)
        gradient += point.gradient(0.0, weights)
        gradient *= o.learning_rate
        self.z = problem.project(x - gradient)
        away = slack - self.slack_center
        self.slack = np.maximum(slack - o.learning_rate * (weights + o.smoothing * away), 0.0)
        self.slack_center = self.slack_center + o.averaging * away
