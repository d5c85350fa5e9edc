"""Online subgradient steps with a virtual queue for every constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fairconstrained.points import Point, PointSource
from fairconstrained.solvers._curvature import largest_curvature

__all__ = ["control_parameters", "online_steps"]


def control_parameters(
    V: float | str,
    alpha: float | str,
    n_iter: int,
    source: PointSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
) -> tuple[float, float]:
    r"""Return V and alpha as numbers.

    Parameters
    ----------
    V : float or "theory"
        "theory" is the square root of K, as in Algorithm 3.
    alpha : float, "theory" or "auto"
        "theory" is K. "auto" is V times the largest curvature L of the objective and the constraints, an estimate at
        the start and at two random points, so that the step on the objective is 1 / (2 L).
    n_iter : int
        K.
    source, start, project, rng
        See `fairconstrained.solvers._curvature.modulus`; only for "auto".
    """
    weight = float(np.sqrt(n_iter)) if isinstance(V, str) else V
    if not isinstance(alpha, str):
        return weight, alpha
    return weight, n_iter if alpha == "theory" else weight * largest_curvature(source, start, project, rng)


def online_steps(
    source: Callable[[], PointSource],
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    n_iter: int,
    V: float,
    alpha: float,
) -> Iterator[tuple[np.ndarray, Point]]:
    r"""The iterates :math:`z_0, \dots, z_{K-1}`, each with the point at which the step from it is taken.

    With queues :math:`Q^i_0 = 0`,

    .. math::
        z_{k+1} &= \arg\min_z \Bigl( V \zeta_0 + \sum_i Q^i_k \zeta_i \Bigr)^\top (z - z_k) + \alpha \|z - z_k\|^2
        = \Pi \Bigl( z_k - \tfrac{1}{2 \alpha} \Bigl( V \zeta_0 + \sum_i Q^i_k \zeta_i \Bigr) \Bigr), \\
        Q^i_{k+1} &= \max \bigl( Q^i_k + \theta_i + \zeta_i^\top (z_{k+1} - z_k), 0 \bigr)

    with values :math:`\theta` and gradients :math:`\zeta` at :math:`z_k`: one gradient for every constraint.

    Parameters
    ----------
    source : callable
        The functions, or their estimates from a new mini-batch.
    start : ndarray of shape (n_variables,)
    project : callable
        Projection onto the domain.
    n_iter : int
        K.
    V, alpha : float
        Positive. The step on the objective is ``V / (2 alpha)`` times its gradient, and ``Q / V`` are multipliers that
        move by ``1 / V`` times the constraints. The theory for convex problems has the square root of K and K.

    References
    ----------
    Yu, Neely, Wei (2017), Online convex optimization with stochastic constraints, NeurIPS; Ma, Lin, Yang,
    arXiv:1908.01871, Algorithm 3.
    """
    z, queues = start, np.zeros(0)
    for _ in range(n_iter):
        point = source().at(z)
        yield z, point
        queues = queues if queues.size else np.zeros_like(point.constraints)
        moved = project(z - point.gradient(V, queues) / (2 * alpha))
        change = np.array([point.gradient(0.0, unit) @ (moved - z) for unit in np.eye(queues.size)])
        z, queues = moved, np.maximum(queues + point.constraints + change, 0.0)
