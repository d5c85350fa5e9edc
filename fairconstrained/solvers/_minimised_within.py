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
    """Where a minimisation has ended, and the values there: of what is minimised, and of what is bounded."""

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

    ``evaluate`` returns the values of the functions at a point, and their gradients in rows. The programs end where the
    first function changes by no more than ``tolerance``. The end is the point ``otherwise`` where they lead to numbers
    that are not finite.
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
