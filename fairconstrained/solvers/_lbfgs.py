"""Smooth functions of the points of a problem: scipy's L-BFGS, and projected descent where there is a domain."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from fairconstrained.problem import FullBatchView, Point
from fairconstrained.solvers._spectral import descend

__all__ = ["minimise"]

#: What scipy's L-BFGS-B returns when its iterations are used up. Otherwise it has reached the wanted slope, or rounding
#: (or a kink of the objective) leaves its line search nothing to gain.
_OUT_OF_ITERATIONS = 1
#: Iterations of the projected descent for one of L-BFGS: it knows the curvature along its last step only.
_PROJECTED = 3


def minimise(
    view: FullBatchView,
    function: Callable[[Point], tuple[float, np.ndarray]],
    start: np.ndarray,
    max_iter: int,
    gtol: float,
) -> tuple[np.ndarray, bool]:
    """Minimise a function of the points of ``view``; returns the minimiser, and whether more iterations are no use.

    L-BFGS works in the well-scaled coordinates of the problem. In those a domain would be no simple set any more.
    """
    problem = view.problem
    if problem.domain is not None:
        return descend(view.at, start, problem.project, function, _PROJECTED * max_iter, gtol)
    # ftol=0: on flat objectives scipy's relative decrease stops far from where the gradient would
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "maxcor": 20, "ftol": 0.0, "gtol": gtol}
    n_params, coordinates = problem.n_params, problem.coordinates

    def moved(z: np.ndarray, through: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return np.concatenate([through(z[:n_params]), z[n_params:]])

    def value_and_gradient(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(view.at(moved(u, coordinates.to_params)))
        return value, moved(gradient, coordinates.pull)

    begin = moved(start, coordinates.from_params)
    result = minimize(value_and_gradient, begin, jac=True, method="L-BFGS-B", options=options)
    return moved(result.x, coordinates.to_params), result.status != _OUT_OF_ITERATIONS
