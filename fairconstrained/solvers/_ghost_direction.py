"""The subproblem of the stochastic ghost method, solved in as many variables as it has constraints."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

__all__ = ["ghost_direction", "least_violation"]

#: Relative accuracy of the dual, in units of the constraints.
_ACCURACY = 1e-12
_MAX_ITER = 200


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

    Parameters
    ----------
    gradient : ndarray of shape (n,)
    values : ndarray of shape (m,)
    jacobian : ndarray of shape (m, n)
    tau, beta : float
        Positive.
    rho : float
        In (0, beta].
    share : float
        :math:`\lambda`, in (0, 1).

    Returns
    -------
    direction : ndarray of shape (n,)

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
    and two constraints a matter of sorting.
    """
    if values.size == 1:
        return max(0.0, float(values[0] - rho * np.abs(jacobian[0]).sum()))
    if values.size == 2:
        return max(0.0, _best_mixture(values, jacobian, rho))
    return _linear_program(values, jacobian, rho)


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
    return float(found.fun)


def _solve_dual(gradient: np.ndarray, values: np.ndarray, jacobian: np.ndarray, tau: float, beta: float) -> np.ndarray:
    multipliers = np.zeros(values.size)

    def direction(u: np.ndarray) -> np.ndarray:
        return np.clip(-(gradient + u @ jacobian) / tau, -beta, beta)

    def dual(u: np.ndarray, d: np.ndarray) -> float:
        return float(gradient @ d + tau / 2 * d @ d + u @ (values + jacobian @ d))

    d = direction(multipliers)
    value = dual(multipliers, d)
    scale = 1.0 + np.abs(values).max()
    for _ in range(_MAX_ITER):
        slope = values + jacobian @ d
        free = (multipliers > 0) | (slope > 0)
        if np.abs(slope[free]).max(initial=0.0) <= _ACCURACY * scale:
            break
        inside = jacobian[np.ix_(free, np.abs(d) < beta)]
        hessian = inside @ inside.T / tau
        hessian[np.diag_indices_from(hessian)] += 1e-13 * (np.trace(hessian) + 1e-300)
        step = np.zeros_like(multipliers)
        step[free] = np.linalg.lstsq(hessian, slope[free], rcond=None)[0]
        length, moved = 1.0, False
        while length > 1e-12:
            candidate = np.maximum(multipliers + length * step, 0.0)
            new = direction(candidate)
            gained = dual(candidate, new) - value
            if gained > 1e-4 * slope @ (candidate - multipliers) > 0:
                moved = True
                break
            length /= 2
        if not moved:
            break
        multipliers, d, value = candidate, new, value + gained
    return d
