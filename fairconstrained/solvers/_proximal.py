"""Problems with proximal terms, and their accurate solution by the method of multipliers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from fairconstrained.domains import Domain
from fairconstrained.points import ChangedPoint, Point, PointSource, worst_gradient
from fairconstrained.solvers._spectral import SpectralDescent, descend

__all__ = ["ProximalPoint", "ProximalSolution", "Subproblem", "proximal_solution"]

#: Outer iterations, and descent steps of each, that a proximal subproblem may take.
_OUTER, _INNER = 60, 1000
#: How much stiffer the penalty is than the proximal term, along the gradient of the worst constraint.
_STIFFNESS = 10.0
#: Fraction of the last residual that an outer iteration has to reach; the penalty grows by its inverse otherwise.
_PROGRESS = 0.2


class Subproblem:
    """Points of the problem with the proximal terms."""

    def __init__(self, view: PointSource, center: np.ndarray, proximity: float) -> None:
        self.proximity = proximity
        self._view, self._center = view, center

    def at(self, z: np.ndarray) -> ProximalPoint:
        """The point at z."""
        return ProximalPoint(self._view.at(z), z - self._center, self.proximity)


class ProximalPoint(ChangedPoint):
    """A point with the proximal terms."""

    def __init__(self, point: Point, away: np.ndarray, proximity: float) -> None:
        super().__init__(point)
        self._slope = proximity * away
        self._term = proximity / 2 * float(away @ away)
        self.constraints = point.constraints + self._term

    @cached_property
    def objective(self) -> float:
        """Objective with the proximal term, which subgradient steps never ask for."""
        return self._point.objective + self._term

    @property
    def worst(self) -> float:
        """The largest constraint; -1 where there is none."""
        return float(self.constraints.max()) if self.constraints.size else -1.0

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of a combination, as in `Point.gradient`."""
        return self._point.gradient(objective, multipliers) + (objective + multipliers.sum()) * self._slope


class ProximalSource(PointSource, Protocol):
    """Points of functions that a proximal term has made strongly convex."""

    @property
    def proximity(self) -> float:
        """Factor of the proximal term."""


class ProximalSolution(NamedTuple):
    """Where `proximal_solution` ended, and the multipliers there."""

    z: np.ndarray
    multipliers: np.ndarray


def proximal_solution(
    subproblem: ProximalSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    dual: Domain,
    weight: float,
    level: float = 0.0,
    accuracy: float = 1e-8,
    ftol: float = 0.0,
) -> ProximalSolution:
    r"""Minimise ``weight F(y) + max_v v'(C(y) - level)`` over v in a dual set, for F and C with the proximal terms.

    The constraints ``C <= level`` have the dual set `NonNegative`, and the largest of C has the `Simplex`. This is the
    method of multipliers with them: with :math:`v = \Pi(\lambda + \rho (C(y) - \text{level}))`, the projection onto the
    dual set, minimise the smooth function

    .. math:: w F(y) + v^T (C(y) - \text{level}) - \tfrac{1}{2 \rho} \|v - \lambda\|^2

    by spectral projected gradients, then set :math:`\lambda \leftarrow v`. ``accuracy`` is that of y, as a fraction of
    its largest entry or of 1, about; ``ftol`` is that of `descend`.

    References
    ----------
    Rockafellar (1976), Augmented Lagrangians and applications of the proximal point algorithm in convex programming.
    """
    first = subproblem.at(start)
    gradient = worst_gradient(first)
    steepness = float(np.linalg.norm(gradient)) or 1.0
    accuracy *= max(float(np.abs(start).max(initial=0.0)), 1.0)
    z, last = start, np.inf
    smoothed = _Smoothed(
        dual, weight, level, np.zeros_like(first.constraints), _STIFFNESS * subproblem.proximity / steepness**2
    )
    for _ in range(_OUTER):
        descent = SpectralDescent(subproblem.at, z, project, smoothed)
        z, _ = descend(descent, _INNER, accuracy * subproblem.proximity, ftol)
        moved = smoothed.lifted(subproblem.at(z))
        residual = float(np.abs(moved - smoothed.multipliers).max(initial=0.0)) / smoothed.stiffness
        smoothed.multipliers = moved
        if residual <= accuracy * steepness:
            break
        if residual > _PROGRESS * last:
            smoothed.stiffness /= _PROGRESS
        last = residual
    return ProximalSolution(z, smoothed.multipliers)


@dataclass
class _Smoothed:
    """The function of points that is minimised between two updates of the multipliers."""

    dual: Domain
    weight: float
    level: float
    multipliers: np.ndarray
    stiffness: float

    def lifted(self, point: Point) -> np.ndarray:
        """The multipliers v."""
        return self.dual.project(self.multipliers + self.stiffness * (point.constraints - self.level))

    def __call__(self, point: Point) -> tuple[float, np.ndarray]:
        """Value and gradient."""
        v = self.lifted(point)
        away = v - self.multipliers
        value = self.weight * point.objective + float(v @ (point.constraints - self.level))
        return value - float(away @ away) / (2 * self.stiffness), point.gradient(self.weight, v)
