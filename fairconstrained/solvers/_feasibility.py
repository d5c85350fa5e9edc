"""Where to begin if the start violates the constraints: the violation is minimised first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from typing_extensions import override

from fairconstrained.domains import Simplex
from fairconstrained.points import PointSource
from fairconstrained.problem import Problem
from fairconstrained.solvers._base import SolverResult, Status
from fairconstrained.solvers._curvature import suitable_proximity
from fairconstrained.solvers._proximal import Subproblem, proximal_solution
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source

__all__ = ["FromFeasible", "find_feasible"]

#: A point is stationary if its proximal step is no longer than this fraction of its largest variable or of 1, and
#: undoes no more than this fraction of its violation.
_STATIONARY = 1e-3

#: Accuracy of a proximal step, and a relative decrease of its value that fifty iterations have to reach: where scores
#: have kinks, as those of networks, gradients do not vanish.
_ACCURACY, _DECREASE = 1e-5, 1e-4
#: Factor by which the proximal term becomes smaller after every step, and the most steps.
_LENGTHENING, _MOST_STEPS = 1.5, 100

_MESSAGE = (
    "a stationary point of the violation was found, where the constraints do not hold: no small change of the "
    "parameters makes them hold. Try another start (random_state), looser bounds, or a larger domain."
)


def find_feasible(
    source: PointSource,
    start: np.ndarray,
    project: Callable[[np.ndarray], np.ndarray],
    tolerance: float,
    proximity: Callable[[], float],
) -> tuple[np.ndarray, bool]:
    r"""Minimise the largest constraint over the domain until it is at most ``tolerance``, by at most 100 steps.

    .. math:: x_{t+1} = \arg\min_y \; \max_j c_j(y) + \tfrac{r_t}{2} \|y - x_t\|^2, \qquad r_{t+1} = r_t / 1.5

    These proximal steps are solved accurately, so that a short step says that the point is nearly stationary. As they
    become longer, they come near a feasible point faster than any fixed rate. ``proximity`` gives the first r, and is
    asked for if a step is needed.

    Returns the variables, of shape (n_variables,), and whether they are a stationary point of the violation that is not
    feasible.

    References
    ----------
    Ma, Lin, Yang, arXiv:1908.01871, Remark 1, with a more accurate method than its subgradient steps. Rockafellar
    (1976), Monotone operators and the proximal point algorithm, theorem 2 for the rate with r that goes to zero.
    """
    z, violation = start, _largest(source, start)
    if not violation > tolerance:  # also where it is NaN
        return z, False
    r = proximity()
    for _ in range(_MOST_STEPS):
        subproblem = Subproblem(source, z, r)
        moved = proximal_solution(subproblem, z, project, Simplex(), 0.0, accuracy=_ACCURACY, ftol=_DECREASE).z
        length, before, z = float(np.linalg.norm(moved - z)), violation, moved
        violation = _largest(source, z)
        is_short = length <= _STATIONARY * max(float(np.abs(z).max(initial=0.0)), 1.0)
        if is_short and before - violation <= _STATIONARY * (violation - tolerance):
            return z, True
        if not violation > tolerance:
            break
        r /= _LENGTHENING
    return z, False


class FromFeasible(Method):
    """A method that begins where the constraints hold, or ends at a stationary point of their violation.

    Parameters
    ----------
    options : IterativeSolver
        Options with a ``precision``; constraints up to its square hold.
    z : ndarray of shape (n_variables,)
    """

    #: Whether the run ended at an infeasible stationary point of the violation.
    is_stationary = False

    def __init__(self, options: Any, z: np.ndarray) -> None:
        super().__init__(options, z)
        self._tolerance = options.precision**2

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        z, project = problem.project(self.z), problem.project
        proximity = partial(self._first_proximity, source, z, problem)
        self.z, self.is_stationary = find_feasible(source.view, z, project, self._tolerance, proximity)

    def _first_proximity(self, source: Source, z: np.ndarray, problem: Problem) -> float:
        """Factor of the first of the proximal steps that look for a feasible start."""
        return suitable_proximity(source.view, z, problem.project, source.rng)

    @property
    @override
    def finished(self) -> bool:
        return self.is_stationary

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        """The metric may hold at a stationary point of the surrogate's violation, and then the status says so."""
        if not self.is_stationary:
            return result
        status = Status.INFEASIBLE_STATIONARY if result.status.is_infeasible else result.status
        return replace(result, status=status, message=_MESSAGE)


def _largest(source: PointSource, z: np.ndarray) -> float:
    return float(source.at(z).constraints.max(initial=-np.inf))
