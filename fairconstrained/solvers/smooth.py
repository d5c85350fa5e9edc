"""Smooth functions of the points of a problem: scipy's L-BFGS, and its projected form where there is a domain."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from typing_extensions import override

from fairconstrained.domains import Domain
from fairconstrained.models import Coordinates
from fairconstrained.problem import FullBatchView, Point, Problem
from fairconstrained.solvers._quasi_newton import QuasiNewtonDescent
from fairconstrained.solvers._spectral import descend
from fairconstrained.solvers.resuming import Evaluate, saved_minima

__all__ = ["CoordinatesOfParams", "Stop", "minimise", "minimise_values"]

#: Status of scipy's L-BFGS-B when its iterations are used up. Otherwise it has reached the wanted slope, or rounding
#: (or a kink of the objective) leaves its line search nothing to gain.
_OUT_OF_ITERATIONS = 1
#: Fraction of the value that it has to gain in so many iterations, where the caller asks for no gain.
_GAIN = 1e-6, 10
#: A start that could grow by this fraction is inside its domain.
_INSIDE = 1e-3

Function = Callable[[Point], tuple[float, np.ndarray]]


class Stop(NamedTuple):
    """When a minimisation ends."""

    #: Iterations of L-BFGS.
    max_iter: int
    #: Largest entry of the gradient at which it ends.
    gtol: float
    #: Fraction of the value that has to be gained in ``patience`` iterations: near a kink, slopes stay large, and line
    #: searches are long.
    gain: float = 0.0
    patience: int = 50
    #: Evaluations for each of the ``max_iter`` iterations, on average, after which it ends.
    per_iteration: float = 2.0


@dataclass(frozen=True)
class CoordinatesOfParams(Coordinates):
    """Coordinates of the parameters, and the other variables as they are."""

    n_params: int
    own: Coordinates

    @override
    def to_params(self, u: np.ndarray) -> np.ndarray:
        return self._changed(u, self.own.to_params)

    @override
    def from_params(self, params: np.ndarray) -> np.ndarray:
        return self._changed(params, self.own.from_params)

    @override
    def pull(self, gradient: np.ndarray) -> np.ndarray:
        return self._changed(gradient, self.own.pull)

    def _changed(self, values: np.ndarray, through: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return np.concatenate([through(values[: self.n_params]), values[self.n_params :]])


def minimise(
    view: FullBatchView,
    function: Function,
    start: np.ndarray,
    stop: Stop,
    coordinates: Coordinates | None = None,
) -> tuple[np.ndarray, bool]:
    """Minimise a function of the points of ``view``; returns the minimiser, and whether more iterations are no use.

    ``coordinates`` are those of all variables in which L-BFGS works; None: the well-scaled ones of the problem.

    In a domain, L-BFGS may find a minimum inside it. Otherwise projected quasi-Newton steps look for one on its border,
    since the domain is no simple set in the coordinates of L-BFGS. They rescale the parameters where the domain lets
    them.
    """

    def evaluate(z: np.ndarray) -> tuple[float, np.ndarray]:
        return function(view.at(z))

    found, n_saved = minimise_values(view.problem, evaluate, start, stop, coordinates)
    view.n_evaluations += n_saved
    return found


def minimise_values(
    problem: Problem,
    evaluate: Evaluate,
    start: np.ndarray,
    stop: Stop,
    coordinates: Coordinates | None = None,
) -> tuple[tuple[np.ndarray, bool], int]:
    """Minimise a function of the variables of a problem, given by its values and gradients; see `minimise`.

    Also returns the number of evaluations that a checkpoint has saved.
    """
    saved = saved_minima()
    chosen = coordinates or CoordinatesOfParams(problem.n_params, problem.penalised_coordinates)

    def minimised(evaluate: Evaluate) -> tuple[np.ndarray, bool]:
        if problem.domain is None:
            return _minimise_freely(evaluate, start, stop, chosen)
        grown = (1 + _INSIDE) * start
        if np.array_equal(problem.project(grown), grown):
            found, settled = _minimise_freely(evaluate, start, stop, chosen)
            if np.array_equal(problem.project(found), found):
                return found, settled
        return _minimise_within(problem, problem.domain, evaluate, start, stop)

    if saved is None:
        return minimised(evaluate), 0
    kappas = {constraint.name: constraint.kappa for constraint in problem.constraints}
    return saved.minimised(kappas, evaluate, start, minimised)


def _minimise_within(
    problem: Problem, domain: Domain, evaluate: Evaluate, start: np.ndarray, stop: Stop
) -> tuple[np.ndarray, bool]:
    """Projected quasi-Newton steps, in units of the parameters in which features are of size one."""
    n_params = problem.n_params
    factors = np.ones_like(start)
    factors[:n_params] = problem.penalised_coordinates.factors(n_params)
    scaled = domain.scaled(factors[:n_params])
    if scaled is None:
        scaled, factors = domain, np.ones_like(start)

    def project(u: np.ndarray) -> np.ndarray:
        return np.concatenate([scaled.project(u[:n_params]), u[n_params:]])

    def value_and_gradient(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate(u / factors)
        return value, gradient / factors

    descent = QuasiNewtonDescent(value_and_gradient, start * factors, project)
    gain = (stop.gain, stop.patience) if stop.gain else _GAIN
    found, settled = descend(descent, stop.max_iter, stop.gtol, *gain)
    return problem.project(found / factors), settled


def _minimise_freely(
    evaluate: Evaluate, start: np.ndarray, stop: Stop, coordinates: Coordinates
) -> tuple[np.ndarray, bool]:
    """L-BFGS in some coordinates."""
    max_iter, gtol, gain, patience, per_iteration = stop
    # ftol=0: on flat objectives scipy's relative decrease stops far from where the gradient would
    options = {"maxiter": max_iter, "maxfun": int(per_iteration * max_iter), "maxcor": 20, "ftol": 0.0, "gtol": gtol}

    def value_and_gradient(u: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = evaluate(coordinates.to_params(u))
        return value, coordinates.pull(gradient)

    values: deque[float] = deque(maxlen=patience + 1)

    def stop_without_gain(intermediate_result: OptimizeResult) -> None:
        values.append(float(intermediate_result.fun))
        if len(values) > patience and values[0] - values[-1] < gain * abs(values[-1]):
            raise StopIteration

    begin = coordinates.from_params(start)
    result = minimize(
        value_and_gradient, begin, jac=True, method="L-BFGS-B", options=options, callback=stop_without_gain
    )
    return coordinates.to_params(result.x), result.status != _OUT_OF_ITERATIONS
