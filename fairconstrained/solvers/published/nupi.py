"""Multipliers by a proportional and integral controller, on mini-batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from typing_extensions import override

from fairconstrained.points import objective_gradient
from fairconstrained.problem import Problem
from fairconstrained.solvers._options import NonNegative, Positive, Share
from fairconstrained.solvers.gradient_descent import AdamDirection
from fairconstrained.solvers.stochastic import Method, SeparateBatches, Source

__all__ = ["NuPI"]


@dataclass(frozen=True)
class NuPI(SeparateBatches):
    r"""Adam on a Lagrangian whose multipliers follow the violations like a controller, :math:`\nu`\ PI.

    With a mini-batch :math:`\zeta_1` of the constraints and :math:`\xi_{-1} = 0`, step t first moves the multipliers,

    .. math::
        \xi_t = \nu \, \xi_{t-1} + (1 - \nu) \, c(x, \zeta_1), \qquad
        \lambda \leftarrow \mathrm{clip} \bigl( \lambda + \kappa_I \, c(x, \zeta_1)
            + \kappa_P \, (\xi_t - \xi_{t-1}), \; 0, \; M \bigr),

    and then x, by a step of Adam along :math:`\nabla f(x, \xi) + \lambda^\top \nabla c(x, \zeta_2)`. So a multiplier is
    the sum of the violations up to now, in units of :math:`1 / \kappa_I`, and a proportion :math:`\kappa_P` of the
    present one, which damps the oscillation of the sum about its limit. With :math:`\kappa_P = 0` it is gradient
    ascent. The mini-batches :math:`\xi, \zeta_1, \zeta_2` are independent of each other: on the same rows, the present
    violation times its gradient would be a penalty on the variance of mini-batches.

    ``kappa`` bounds the means only up to the noise of the mini-batches; the exact gap is reported.

    Parameters
    ----------
    learning_rate : float, default=0.001
        Learning rate of Adam.
    integral_gain : float, default=0.01
        Factor :math:`\kappa_I` of the violations.
    proportional_gain : float, default=1.0
        Factor :math:`\kappa_P` of the change of the averaged violations.
    memory : float, default=0.01
        :math:`\nu`, in [0, 1]: the share of the past violations in the average.
    max_multiplier : float, default=100.0
        Largest multiplier :math:`M`.

    References
    ----------
    Sohrabi, Ramirez, Zhang, Lacoste-Julien, Gallego-Posada, On PI controllers for updating Lagrange multipliers in
    constrained optimization, ICML 2024, arXiv:2406.04558, Algorithm 1 and eq. 15; defaults of the multipliers from the
    package ``humancompatible-train`` 0.4.2.
    """

    name: ClassVar[str] = "nupi"

    learning_rate: Positive = 0.001
    integral_gain: NonNegative = 0.01
    proportional_gain: NonNegative = 1.0
    memory: Share = 0.01
    max_multiplier: Positive = 100.0

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return _NuPI(self, z, len(problem.component_names))


class _NuPI(Method):
    _multipliers: np.ndarray

    def __init__(self, options: NuPI, z: np.ndarray, n_components: int) -> None:
        super().__init__(options, z)
        self._direction = AdamDirection(z.size)
        self.violation = self._multipliers = np.zeros(n_components)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        o = self._options
        objective, judge, point = source.separate_points(self.z)
        change = (1 - o.memory) * (judge.constraints - self.violation)
        self.violation = self.violation + change
        moved = self._multipliers + o.integral_gain * judge.constraints + o.proportional_gain * change
        self._multipliers = np.clip(moved, 0.0, o.max_multiplier)
        gradient = objective_gradient(objective) + point.gradient(0.0, self._multipliers)
        self.z = problem.project(self.z - o.learning_rate * self._direction.of(gradient))
