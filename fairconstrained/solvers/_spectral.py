"""Spectral projected gradient descent: no more than a projection is asked of the domain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

__all__ = ["SpectralDescent", "descend"]

#: Values that the line search looks back on.
_WINDOW = 10
#: Iterations after which a change of the least value is judged.
_PATIENCE = 50
#: Decrease that the line search asks for, as a fraction of the one that the slope promises.
_ARMIJO = 1e-4
#: Fraction of a step at which the line search has found that rounding, or a wrong slope, leaves nothing to gain.
_SHORTEST = 1e-10
#: Shortest and longest spectral step, in multiples of the first one.
_STEPS = 1e-20, 1e20

P = TypeVar("P")


class SpectralDescent(Generic[P]):
    """The current iterate and its point, the next step's length, and the iterate of least value so far.

    Parameters
    ----------
    at : callable
        The point at ``z``.
    start : ndarray of shape (n_variables,)
    project : callable
        Projection onto the domain.
    function : callable
        Value and gradient of what is minimised, from a point.
    step : float, optional
        A constant step length without line search. None: the spectral step of Barzilai and Borwein with a backtracking
        line search that looks back on ten values.

    References
    ----------
    Birgin, Martínez, Raydan (2000), Nonmonotone spectral projected gradient methods on convex sets, algorithm SPG2.
    """

    def __init__(
        self,
        at: Callable[[np.ndarray], P],
        start: np.ndarray,
        project: Callable[[np.ndarray], np.ndarray],
        function: Callable[[P], tuple[float, np.ndarray]],
        step: float | None = None,
    ) -> None:
        self._at, self._project, self._function = at, project, function
        self._is_spectral = step is None
        self.z = project(start)
        self.point = at(self.z)
        self.value, self.gradient = function(self.point)
        slope = float(np.abs(self.gradient).max(initial=0.0))
        # as far as the start is away from zero: gradients alone say nothing of the units of the variables
        self.step = step or ((float(np.abs(self.z).max()) or 1.0) / slope if slope > 0 else 1.0)
        self._steps = _STEPS[0] * self.step, _STEPS[1] * self.step
        self.best, self.least = self.z, self.value
        self._recent: deque[float] = deque([self.value], maxlen=_WINDOW)

    def advance(self) -> bool:
        """One iteration; False if the projected gradient has vanished, or if nothing is gained along it."""
        direction = self._target() - self.z
        slope = float(self.gradient @ direction)
        if slope >= 0 or np.abs(direction).max() <= 1e-12 * np.abs(self.z).max():
            return False
        before = self.gradient
        fraction = self._search(direction, slope)
        if fraction < _SHORTEST:
            return False
        self._learn(fraction * direction, self.gradient - before)
        self._recent.append(self.value)
        if self.value < self.least:
            self.best, self.least = self.z, self.value
        return True

    def _target(self) -> np.ndarray:
        """Where a whole step leads to."""
        return self._project(self.z - self.step * self.gradient)

    def _learn(self, moved: np.ndarray, change: np.ndarray) -> None:
        """Choose the length of the next step from the last one, and from how much it has changed the gradient."""
        if self._is_spectral:
            curvature = float(moved @ change)
            longest = np.inf if curvature <= 0 else float(moved @ moved) / curvature
            self.step = float(np.clip(longest, *self._steps))

    def slope(self) -> float:
        """Largest entry of the projected gradient; zero at a stationary point."""
        return float(np.abs(self._project(self.z - self.gradient) - self.z).max(initial=0.0))

    def _search(self, direction: np.ndarray, slope: float) -> float:
        """Go along ``direction``, by safeguarded quadratic interpolation; returns the fraction of it."""
        start, value, highest, fraction = self.z, self.value, max(self._recent), 1.0
        while True:
            self.z = start + fraction * direction
            self.point = self._at(self.z)
            self.value, self.gradient = self._function(self.point)
            enough = self.value <= highest + _ARMIJO * fraction * slope
            if enough or fraction < _SHORTEST or not self._is_spectral:
                return fraction
            rise = self.value - value - fraction * slope
            fraction = float(np.clip(-slope * fraction**2 / (2 * rise), fraction / 10, fraction / 2))


def descend(
    descent: SpectralDescent[Any], max_iter: int, gtol: float, ftol: float = 0.0, patience: int = _PATIENCE
) -> tuple[np.ndarray, bool]:
    """Minimise in a domain; returns the iterate of least value, and whether more iterations are no use.

    The search stops when no entry of the projected gradient is larger than ``gtol``, and when ``patience`` iterations
    have not lowered the least value by the fraction ``ftol`` of it.
    """
    before: deque[float] = deque(maxlen=patience)
    for _ in range(max_iter):
        idle = len(before) == patience and before[0] - descent.least < ftol * abs(descent.least)
        before.append(descent.least)
        if idle or descent.slope() <= gtol or not descent.advance():
            return descent.best, True
    return descent.best, False
