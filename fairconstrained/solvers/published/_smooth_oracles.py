"""Oracles of `IPC` for smooth functions, whose proximal subproblems are smooth and strongly convex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fairconstrained.domains import NonNegative, Simplex
from fairconstrained.points import ChangedPoint, Point, worst_gradient
from fairconstrained.solvers._proximal import Subproblem, proximal_solution

__all__ = ["augmented_lagrangian", "level_set"]

#: Accuracy of the solution of a level, as a fraction of the tolerance.
_OF_A_LEVEL = 0.1
#: Levels that a subproblem may take.
_LEVELS = 200

Project = Callable[[np.ndarray], np.ndarray]


def augmented_lagrangian(subproblem: Subproblem, center: np.ndarray, project: Project, tolerance: float) -> np.ndarray:
    r"""Solve a proximal subproblem by the augmented Lagrangian method, with spectral projected gradients inside.

    The search begins at the centre of the subproblem, and ends where no constraint is larger than the tolerance
    :math:`\hat\epsilon^2`.
    """
    accuracy = _accuracy(subproblem.at(center), center, tolerance)
    return proximal_solution(subproblem, center, project, NonNegative(), 1.0, accuracy=accuracy).z


def level_set(subproblem: Subproblem, center: np.ndarray, project: Project, tolerance: float) -> np.ndarray:
    r"""Solve a proximal subproblem by the level-set method.

    With the objective F and the constraints :math:`G_j` of the subproblem and

    .. math:: H(r) = \min_y \max \{ F(y) - r, \; G_1(y), \ldots, G_m(y) \},

    whose root is the optimum :math:`F^*`, the levels are :math:`r_0 = F(x_t)` and :math:`r_{k+1} = r_k + H(r_k)`. They
    come from above, since H falls no faster than r grows, so the solution of every level is feasible. The multipliers v
    of a level bound the optimum, :math:`F^* \ge r + H(r) / v_0`, which says when to stop: where the objective is within
    the tolerance :math:`\hat\epsilon^2` of it.

    References
    ----------
    Lin, Nadarajah, Soheili (2018), A level-set method for convex optimization with a feasible solution path, SIAM
    Journal on Optimization 28(4).
    """
    first, z = subproblem.at(center), center
    level, accuracy = first.objective, _accuracy(first, center, _OF_A_LEVEL * tolerance)
    for _ in range(_LEVELS):
        z, multipliers = proximal_solution(_Leveled(subproblem, level), z, project, Simplex(), 0.0, accuracy=accuracy)
        point = subproblem.at(z)
        height = max(point.objective - level, point.worst)
        if -height * (1 - multipliers[0]) <= tolerance * multipliers[0]:
            break
        level += height
    return z


def _accuracy(point: Point, center: np.ndarray, tolerance: float) -> float:
    """Return the accuracy of variables with which the constraints are as accurate as the tolerance."""
    steepness = max(float(np.linalg.norm(worst_gradient(point))), 1.0)
    return tolerance / (steepness * max(float(np.abs(center).max(initial=0.0)), 1.0))


class _Leveled:
    """Points whose first constraint is the objective less a level, and which have no objective."""

    def __init__(self, subproblem: Subproblem, level: float) -> None:
        self.proximity = subproblem.proximity
        self._subproblem, self._level = subproblem, level

    def at(self, z: np.ndarray) -> _LeveledPoint:
        """The point at ``z``."""
        return _LeveledPoint(self._subproblem.at(z), self._level)


class _LeveledPoint(ChangedPoint):
    def __init__(self, point: Point, level: float) -> None:
        super().__init__(point)
        self.objective = 0.0
        self.constraints = np.append(point.objective - level, point.constraints)

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of a combination, as in `Point.gradient`."""
        return self._point.gradient(float(multipliers[0]), multipliers[1:])
