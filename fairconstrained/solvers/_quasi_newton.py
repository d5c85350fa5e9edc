"""Projected quasi-Newton descent: fewer evaluations than by gradients alone, where a projection costs less than one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
from typing_extensions import override

from fairconstrained.solvers._spectral import SpectralDescent, descend

__all__ = ["QuasiNewtonDescent"]

#: Steps that the curvature is learnt from.
_MEMORY = 15
#: Least cosine of the angle between a step and the change of the gradient: below it, the function is not convex there.
_CONVEX = 1e-8
#: Iterations in which a quadratic model is minimised, and the share of the projected gradient that they may leave.
_INNER, _LEFT = 20, 0.05

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]


def _itself(z: np.ndarray) -> np.ndarray:
    return z


class QuasiNewtonDescent(SpectralDescent[np.ndarray]):
    r"""Steps to the minimiser of a quadratic model in the domain, whose Hessian is that of L-BFGS.

    With the last steps as the columns of S and the changes of the gradient that they made as those of Y, it is

    .. math:: B = \delta I - N M^{-1} N^T, \quad N = (\delta S, Y), \quad
              M = \begin{pmatrix} \delta S^T S & L \\ L^T & -D \end{pmatrix},

    with the diagonal D and the part L below it of :math:`S^T Y`, and :math:`\delta = y^T y / s^T y` of the last step.
    Spectral steps minimise the model, which cost no evaluation of the function.

    Parameters
    ----------
    function : callable
        Value and gradient of what is minimised.
    start, project
        See `SpectralDescent`.

    References
    ----------
    Schmidt, van den Berg, Friedlander, Murphy (2009), Optimizing costly functions with simple constraints: a
    limited-memory projected quasi-Newton algorithm, AISTATS. Nocedal, Wright (2006), Numerical Optimization, eq. 7.29.
    """

    def __init__(self, function: Function, start: np.ndarray, project: Callable[[np.ndarray], np.ndarray]) -> None:
        super().__init__(_itself, start, project, function)
        self._moves: deque[np.ndarray] = deque(maxlen=_MEMORY)
        self._changes: deque[np.ndarray] = deque(maxlen=_MEMORY)
        self._scale = 0.0
        self._low = self._inverse = np.empty((0, 0))

    @override
    def _target(self) -> np.ndarray:
        if not self._moves:
            return super()._target()
        here, slope = self.z, self.gradient

        def model(z: np.ndarray) -> tuple[float, np.ndarray]:
            step = z - here
            bent = self._scale * step - self._low @ (self._inverse @ (step @ self._low))
            return float(slope @ step + step @ bent / 2), slope + bent

        found, _ = descend(SpectralDescent(_itself, here, self._project, model), _INNER, _LEFT * self.slope())
        if slope @ (found - here) < 0:
            return found
        self._moves.clear()  # rounding has left no curvature that leads downwards
        self._changes.clear()
        return super()._target()

    @override
    def _learn(self, moved: np.ndarray, change: np.ndarray) -> None:
        super()._learn(moved, change)
        if moved @ change <= _CONVEX * np.linalg.norm(moved) * np.linalg.norm(change):
            return
        self._moves.append(moved)
        self._changes.append(change)
        self._scale = float(change @ change) / float(moved @ change)
        moves, changes = np.column_stack(self._moves), np.column_stack(self._changes)
        products = moves.T @ changes
        below = np.tril(products, -1)
        self._low = np.hstack([self._scale * moves, changes])
        self._inverse = np.linalg.inv(
            np.block([[self._scale * moves.T @ moves, below], [below.T, -np.diag(np.diag(products))]])
        )
