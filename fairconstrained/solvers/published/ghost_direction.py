"""The subproblem of the stochastic ghost method, solved in as many variables as it has constraints."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

__all__ = ["ghost_direction", "least_violation"]

#: Relative accuracy of the dual, in units of the constraints.
_ACCURACY = 1e-12
_MAX_ITER = 200
#: Number by which the diagonal of the Hessian is raised, as a share of its largest possible trace.
_RAISE = 1e-12
#: Entries of d that move by less than this share of the fastest one count as still along a ray.
_STILL = 1e-15
#: A Newton step is good enough that leaves this share of the slope along it, or the second one of the opposite sign.
_LEFT, _ROUNDING = 0.5, 1e-9


def ghost_direction(
    gradient: np.ndarray,
    values: np.ndarray,
    jacobian: np.ndarray,
    tau: float = 1.0,
    beta: float = 10.0,
    rho: float = 0.8,
    share: float = 0.5,
) -> np.ndarray:
    r"""The direction of the ghost method.

    .. math:: \min_d \; g^\top d + \frac{\tau}{2} \|d\|^2 \quad \text{s.t.} \quad c + J d \le \kappa e, \quad
              \|d\|_\infty \le \beta,

    with :math:`\kappa = (1 - \lambda) \max_i (c_i)_+ + \lambda \min_{\|d\|_\infty \le \rho} \max_i (c_i + J_i d)_+`,
    for which it always has a solution. Given multipliers u of the first constraints, d is
    :math:`\mathrm{clip}(-(g + J^\top u) / \tau, -\beta, \beta)`; the dual function is concave, piecewise quadratic,
    and has one variable for each constraint. It is maximised by Newton's method, projected to :math:`u \ge 0`.
    ``gradient`` of shape (n,), ``values`` (m,) and ``jacobian`` (m, n) are g, c and J, and ``share`` is
    :math:`\lambda`; see `StochasticGhost` for the rest.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033, eq. 8; Facchinei and Kungurtsev, arXiv:2307.02943.
    """
    if not values.size:
        return np.clip(-gradient / tau, -beta, beta)
    kappa = (1 - share) * max(values.max(), 0.0) + share * least_violation(values, jacobian, rho)
    return _solve_dual(gradient, values - kappa, jacobian, tau, beta)


def least_violation(values: np.ndarray, jacobian: np.ndarray, rho: float) -> float:
    r"""``min max_i (c_i + J_i d)_+`` over :math:`\|d\|_\infty \le \rho`.

    Its dual is :math:`\max_v v^\top c - \rho \|J^\top v\|_1` over :math:`v \ge 0`, :math:`\sum_i v_i \le 1`, for one
    and two constraints a matter of sorting. Mostly even that is not needed: the shortest d with which the violated
    constraints hold is in the box, and the others hold with it too.
    """
    if _holds_nearby(values, jacobian, rho):
        return 0.0
    if values.size == 1:
        return max(0.0, float(values[0] - rho * np.abs(jacobian[0]).sum()))
    if values.size == 2:
        return max(0.0, _best_mixture(values, jacobian, rho))
    return _linear_program(values, jacobian, rho)


def _holds_nearby(values: np.ndarray, jacobian: np.ndarray, rho: float) -> bool:
    """Whether all constraints hold with the shortest d that solves the violated ones; False if it is not to be had."""
    violated = np.flatnonzero(values > 0)
    if not violated.size:
        return True
    rows = jacobian[violated]
    try:
        d = -np.linalg.solve(rows @ rows.T, values[violated]) @ rows
    except np.linalg.LinAlgError:
        return False
    # up to rounding, which the direction can make good: it has a larger box
    return bool(np.abs(d).max() <= rho and (values + jacobian @ d <= _ACCURACY * np.abs(values).max()).all())


def _best_mixture(values: np.ndarray, jacobian: np.ndarray, rho: float) -> float:
    """The maximum over ``v = (t, 1 - t)``: concave and piecewise linear in t, with a kink for every column."""
    difference, last = jacobian[0] - jacobian[1], jacobian[1]
    moving = difference != 0
    kinks = np.clip(-last[moving] / difference[moving], 0.0, 1.0)
    order = np.argsort(kinks)
    # The slope decreases by twice a column's weight at its kink; the first one without a positive slope is the top.
    weights = np.abs(difference[moving])[order]
    slope = values[0] - values[1] + rho * (weights.sum() - 2 * np.append(0.0, weights.cumsum()))
    k = int(np.argmax(slope <= 0)) if (slope <= 0).any() else slope.size
    candidates = np.append(0.0, np.append(kinks[order], 1.0))
    t = candidates[k] if k < slope.size else 1.0
    return float(values @ (t, 1 - t) - rho * np.abs(t * difference + last).sum())


def _linear_program(values: np.ndarray, jacobian: np.ndarray, rho: float) -> float:
    m, n = jacobian.shape
    cost = np.append(np.zeros(n), 1.0)
    found = linprog(
        cost,
        A_ub=np.hstack([jacobian, -np.ones((m, 1))]),
        b_ub=-values,
        bounds=[(-rho, rho)] * n + [(0, None)],
        method="highs",
    )
    # what its d attains: the linear program is solved to a tolerance, and a value below that would have no d
    return max(0.0, float((values + jacobian @ np.clip(found.x[:n], -rho, rho)).max()))


def _solve_dual(gradient: np.ndarray, values: np.ndarray, jacobian: np.ndarray, tau: float, beta: float) -> np.ndarray:
    dual = _Dual(gradient, values, jacobian, tau, beta)
    u = np.zeros(values.size)
    d = dual.direction(u)
    for _ in range(_MAX_ITER):
        slope = values + jacobian @ d
        free = (u > 0) | (slope > 0)
        scale = 1.0 + np.abs(values).max() + dual.length * np.linalg.norm(d)
        if np.abs(slope[free]).max(initial=0.0) <= _ACCURACY * scale:
            break
        step = dual.newton_step(u, d, slope, free)
        moved = dual.moved(u, step, slope)
        if np.array_equal(moved, u):
            break
        u, d = moved, dual.direction(moved)
    return d


class _Dual(NamedTuple):
    """The dual function of multipliers u, whose gradient is ``values + jacobian @ direction(u)``."""

    gradient: np.ndarray
    values: np.ndarray
    jacobian: np.ndarray
    tau: float
    beta: float

    @property
    def length(self) -> float:
        """Length of the Jacobian's rows taken together."""
        return float(np.linalg.norm(self.jacobian))

    def direction(self, u: np.ndarray) -> np.ndarray:
        """The d that minimises the Lagrangian."""
        return np.clip(-(self.gradient + u @ self.jacobian) / self.tau, -self.beta, self.beta)

    def newton_step(self, u: np.ndarray, d: np.ndarray, slope: np.ndarray, free: np.ndarray) -> np.ndarray:
        """An ascent direction that leads no multiplier below zero at once.

        Where d is clipped, or rows are alike, the Hessian is singular. Its diagonal is raised by so little that a step
        along what it maps to zero goes as far as the line search lets it.
        """
        inside = np.abs(d) < self.beta
        inside = self.jacobian if inside.all() else self.jacobian[:, inside]
        hessian = inside @ inside.T / self.tau
        hessian[np.diag_indices_from(hessian)] += _RAISE * self.length**2 / self.tau
        while True:
            step = np.zeros_like(u)
            step[free] = np.linalg.solve(hessian[np.ix_(free, free)], slope[free])
            blocked = (u == 0) & (step < 0)
            if not blocked.any():
                return step
            free = free & ~blocked

    def moved(self, u: np.ndarray, step: np.ndarray, slope: np.ndarray) -> np.ndarray:
        """The Newton step if it is good enough, else the maximum on its ray, as far as no multiplier is negative."""
        shrinks = step < 0
        ends = np.full(u.size, np.inf)
        ends[shrinks] = -u[shrinks] / step[shrinks]
        first = float(slope @ step)
        # not beyond the maximum, or the dual might have become smaller; where no entry of d enters or leaves the box on
        # the way this is the maximum, and nothing has to be sorted
        if ends.min() > 1 and -_ROUNDING * first <= self.slope(u + step) @ step <= _LEFT * first:
            return u + step
        length = min(self._line_search(u, step, first), ends.min())
        if length == np.inf:  # rounding made the constraints contradict each other
            return u
        return np.where(ends <= length, 0.0, u + length * step)

    def slope(self, u: np.ndarray) -> np.ndarray:
        """The gradient of the dual."""
        return self.values + self.jacobian @ self.direction(u)

    def _line_search(self, u: np.ndarray, step: np.ndarray, slope: float) -> float:
        """Where the slope of the dual along the ray, at first ``slope`` and decreasing, is zero.

        Every entry of d makes it fall at a rate of its own from where it enters the box to where it leaves it.
        """
        speed = -(step @ self.jacobian) / self.tau
        moving = np.abs(speed) > _STILL * np.abs(speed).max()
        if not moving.any():
            return np.inf
        speed, at = speed[moving], -(self.gradient + u @ self.jacobian)[moving] / self.tau
        middle, half = -at / speed, self.beta / np.abs(speed)
        kinks = np.maximum(np.concatenate([middle - half, middle + half]), 0.0)
        rates = self.tau * np.concatenate([speed**2, -(speed**2)])
        order = np.argsort(kinks)
        kinks, rate = kinks[order], np.cumsum(rates[order])
        falls = np.append(0.0, np.cumsum(np.diff(kinks) * rate[:-1]))
        k = int(np.searchsorted(falls, slope))  # the first kink where the slope is no longer positive
        if k == 0 or k == kinks.size:
            return float(kinks[min(k, kinks.size - 1)])
        return float(kinks[k] - (falls[k] - slope) / rate[k - 1])
