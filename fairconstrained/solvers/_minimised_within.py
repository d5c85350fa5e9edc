"""`minimised_within`: a smooth function of a few numbers, minimised within bounds on others."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

__all__ = ["Minimised", "minimised_within"]

#: Most iterations; of the searches for few numbers, half take up to five, and the longest that was seen took 31.
_ITERATIONS = 40


class Minimised(NamedTuple):
    """Where a minimisation within bounds has ended.

    Attributes
    ----------
    values : ndarray of shape (1 + n_bounds,)
        The function that is minimised, and those that are bounded.
    point : ndarray of shape (n_numbers,)
    n_evaluations : int
    """

    values: np.ndarray
    point: np.ndarray
    n_evaluations: int


def minimised_within(
    evaluate: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
    start: np.ndarray,
    tolerance: float,
    otherwise: np.ndarray,
) -> Minimised:
    """Minimise the first of some functions where no other one is above zero, by SciPy's sequential quadratic programs.

    Parameters
    ----------
    evaluate : callable
        Takes a point; returns the values of the functions, of shape (1 + n_bounds,), and their gradients in rows.
    start : ndarray of shape (n_numbers,)
    tolerance : float
        Change of the first function at which to end.
    otherwise : ndarray of shape (n_numbers,)
        The end where the programs lead to none with finite numbers.

    Returns
    -------
    Minimised
    """

    @lru_cache(maxsize=1)  # values and gradients are asked for one after the other
    def at(point: bytes) -> tuple[np.ndarray, np.ndarray]:
        return evaluate(np.frombuffer(point))

    found = minimize(
        lambda z: at(z.tobytes())[0][0],
        start,
        jac=lambda z: at(z.tobytes())[1][0],
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda z: -at(z.tobytes())[0][1:], "jac": lambda z: -at(z.tobytes())[1][1:]}
        ],
        options={"maxiter": _ITERATIONS, "ftol": tolerance},
    )
    end = found.x if np.isfinite(found.x).all() else otherwise
    values, _ = at(end.tobytes())
    return Minimised(values, end, at.cache_info().misses)
