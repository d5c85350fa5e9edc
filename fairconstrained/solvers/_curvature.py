"""How far from convex the functions of a problem are, from differences of gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from fairconstrained.points import PointSource
from fairconstrained.problem import FullBatchView, Problem

__all__ = ["extreme_curvatures", "largest_curvature", "modulus", "suitable_proximity", "weak_convexity"]

#: Constraints that are looked at in a point, the largest ones.
_CONSTRAINTS = 4
#: Variables up to which the whole Hessian takes no longer than the Lanczos method.
_FEW = 20
#: Accuracy of an eigenvalue, as a fraction of it.
_ACCURACY = 1e-3
#: Change of a gradient, as a fraction of it, that is rounding error.
_ROUNDING = 1e-6
#: Distance of the points of a difference, as a fraction of the largest variable or of 1.
_DISTANCE = 1e-4
#: Least modulus of weak convexity, as a fraction of the largest curvature.
_FLOOR = 0.1


def weak_convexity(problem: Problem, params: np.ndarray, *, n_points: int = 2, random_state: int = 0) -> float:
    r"""Estimate the modulus of weak convexity of a problem's objective and constraints.

    A function h is :math:`\rho`-weakly convex if :math:`h(z) + \frac{\rho}{2} \|z\|^2` is convex. The estimate is the
    largest negative curvature, in parameters and auxiliary variables, that is found at ``params`` and at random points
    around them. So it may be below the modulus. It serves `IPC`, `near_stationarity` and
    :func:`fairconstrained.theory.ipc_parameters`.

    Parameters
    ----------
    problem : Problem
        Smooth, with all terms offering `fairconstrained.views.FullBatch`.
    params : ndarray of shape (n_params,)
        Parameters in the domain.
    n_points : int, default=2
        Random points, normally distributed about ``params`` and projected onto the domain.
    random_state : int, default=0
        Seed of these points.

    Returns
    -------
    modulus : float
        Positive. Where the functions are (nearly) convex it is a tenth of the largest curvature, with which proximal
        subproblems are well-conditioned, and 1 where all functions are linear.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871, Assumption 1 A.
    """
    view, z = FullBatchView(problem), problem.start(params)
    return modulus(view, z, problem.project, np.random.default_rng(random_state), n_points)


def modulus(
    source: PointSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
    n_points: int = 2,
) -> float:
    """The modulus of `weak_convexity`: of the objective and of the four largest constraints, at and around a start."""
    found = _curvatures(source, start, project, rng, n_points)
    return float(max(-found.min(), _FLOOR * np.abs(found).max())) or 1.0


def largest_curvature(
    source: PointSource, start: np.ndarray, project: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> float:
    """Return the largest curvature, of either sign, where `modulus` looks for it; 1 for linear functions."""
    return float(np.abs(_curvatures(source, start, project, rng)).max()) or 1.0


def _curvatures(
    source: PointSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    rng: np.random.Generator,
    n_points: int = 2,
) -> np.ndarray:
    """Extreme curvatures at the start and at random points; ndarray of shape (n_functions, 2)."""
    points = [start, *(project(start + rng.normal(size=start.size)) for _ in range(n_points))]
    return np.array([extreme_curvatures(gradient, z, rng) for z in points for gradient in _gradients(source, z)])


def suitable_proximity(
    source: PointSource, start: np.ndarray, project: Callable[[np.ndarray], np.ndarray], rng: np.random.Generator
) -> float:
    """Weight of proximal terms that make the functions convex: twice the `modulus`, as in the paper's experiments."""
    return 2 * modulus(source, start, project, rng)


def extreme_curvatures(
    gradient: Callable[[np.ndarray], np.ndarray], z: np.ndarray, rng: np.random.Generator
) -> tuple[float, float]:
    """Smallest and largest eigenvalue of the Hessian at ``z``; zeros where the gradient hardly changes."""
    distance = _DISTANCE * max(float(np.abs(z).max(initial=0.0)), 1.0)

    def product(direction: np.ndarray) -> np.ndarray:
        step = distance / float(np.linalg.norm(direction)) * direction.ravel()
        return (gradient(z + step) - gradient(z - step)) * (float(np.linalg.norm(direction)) / (2 * distance))

    n = z.size
    begin = rng.normal(size=n)
    begin /= np.linalg.norm(begin)
    if np.linalg.norm(product(begin)) * distance <= _ROUNDING * np.linalg.norm(gradient(z)):
        return 0.0, 0.0
    if n <= _FEW:
        hessian = np.stack([product(unit) for unit in np.eye(n)])
        values = np.linalg.eigvalsh((hessian + hessian.T) / 2)
    else:
        operator = LinearOperator((n, n), matvec=product, dtype=float)
        try:
            values = eigsh(operator, k=2, which="BE", v0=begin, tol=_ACCURACY, return_eigenvectors=False)
        except ArpackNoConvergence as stopped:  # of functions with kinks, or of close eigenvalues
            values = np.append(stopped.eigenvalues, begin @ product(begin))
    return float(values.min()), float(values.max())


def _gradients(source: PointSource, z: np.ndarray) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """Gradients of the objective and of the largest constraints, as functions of the variables."""
    constraints = source.at(z).constraints
    objective, worst = np.zeros_like(constraints), np.argsort(-constraints, kind="stable")[:_CONSTRAINTS]
    for weight, multipliers in [(1.0, objective), *((0.0, unit) for unit in np.eye(constraints.size)[worst])]:

        def gradient(z: np.ndarray, weight: float = weight, multipliers: np.ndarray = multipliers) -> np.ndarray:
            return source.at(z).gradient(weight, multipliers)

        yield gradient
