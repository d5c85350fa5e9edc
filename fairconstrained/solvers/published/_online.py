"""Online subgradient steps with a virtual queue for every constraint."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairconstrained.points import Point, PointSource
from fairconstrained.solvers._curvature import largest_curvature

__all__ = ["OnlineSteps", "control_parameters"]


def control_parameters(
    V: float | str,
    alpha: float | str,
    n_iter: int,
    source: PointSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> tuple[float, float]:
    r"""Return V and alpha as numbers, for K steps.

    "theory" is the square root of K for V, and K for alpha, as in Algorithm 3. "auto" is V times the largest curvature
    L of the objective and the constraints, an estimate at the start and at two random points, so that the step on the
    objective is 1 / (2 L).
    """
    weight = float(np.sqrt(n_iter)) if isinstance(V, str) else V
    if not isinstance(alpha, str):
        return weight, alpha
    return weight, n_iter if alpha == "theory" else weight * largest_curvature(source, start, project, rng)


class OnlineSteps:
    r"""Online subgradient steps with virtual queues, :math:`Q^i_0 = 0`,

    .. math::
        z_{k+1} &= \arg\min_z \Bigl( V \zeta_0 + \sum_i Q^i_k \zeta_i \Bigr)^\top (z - z_k) + \alpha \|z - z_k\|^2
        = \Pi \Bigl( z_k - \tfrac{1}{2 \alpha} \Bigl( V \zeta_0 + \sum_i Q^i_k \zeta_i \Bigr) \Bigr), \\
        Q^i_{k+1} &= \max \bigl( Q^i_k + \theta_i + \zeta_i^\top (z_{k+1} - z_k), 0 \bigr)

    with values :math:`\theta` and gradients :math:`\zeta` at :math:`z_k`: one gradient for every constraint.

    Parameters
    ----------
    start : ndarray of shape (n_variables,)
    V, alpha : float
        Positive. The step on the objective is ``V / (2 alpha)`` times its gradient, and ``Q / V`` are multipliers that
        move by ``1 / V`` times the constraints. The theory for convex problems has the square root of K and K.

    References
    ----------
    Yu, Neely, Wei (2017), Online convex optimization with stochastic constraints, NeurIPS; Ma, Lin, Yang,
    arXiv:1908.01871, Algorithm 3.
    """

    def __init__(self, start: np.ndarray, V: float, alpha: float) -> None:
        self.z, self._V, self._alpha = start, V, alpha
        self._queues = np.zeros(0)

    def advance(self, points: PointSource, project: Callable[[np.ndarray], np.ndarray]) -> Point:
        """One step on the functions or on their estimates from a mini-batch; returns the point that it was taken at."""
        point = points.at(self.z)
        queues = self._queues if self._queues.size else np.zeros_like(point.constraints)
        moved = project(self.z - point.gradient(self._V, queues) / (2 * self._alpha))
        change = np.array([point.gradient(0.0, unit) @ (moved - self.z) for unit in np.eye(queues.size)])
        self._queues = np.maximum(queues + point.constraints + change, 0.0)
        self.z = moved
        return point
