"""Online subgradient steps with a virtual queue for every constraint."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fairconstrained.points import Point, PointSource

__all__ = ["online_steps"]


def online_steps(
    source: Callable[[], PointSource],
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    n_iter: int,
) -> Iterator[tuple[np.ndarray, Point]]:
    r"""The iterates :math:`z_0, \dots, z_{K-1}`, each with the point at which the step from it is taken.

    With :math:`V = \sqrt K`, :math:`\alpha = K` and queues :math:`Q^i_0 = 0`,

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

    References
    ----------
    Yu, Neely, Wei (2017), Online convex optimization with stochastic constraints, NeurIPS; Ma, Lin, Yang,
    arXiv:1908.01871, Algorithm 3.
    """
    V, alpha = np.sqrt(n_iter), n_iter
    z, queues = start, np.zeros(0)
    for _ in range(n_iter):
        point = source().at(z)
        yield z, point
        queues = queues if queues.size else np.zeros_like(point.constraints)
        moved = project(z - point.gradient(V, queues) / (2 * alpha))
        change = np.array([point.gradient(0.0, unit) @ (moved - z) for unit in np.eye(queues.size)])
        z, queues = moved, np.maximum(queues + point.constraints + change, 0.0)
