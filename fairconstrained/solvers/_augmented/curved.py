"""Coordinates in which an augmented Lagrangian of linear scores is well conditioned."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import torch

from fairconstrained.models import Coordinates
from fairconstrained.problem import Problem
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.solvers._directions import gradients_of_components
from fairconstrained.solvers._newton_coordinates import NewtonCoordinates, has_cheap_hessian, hessian_at
from fairconstrained.solvers.smooth import CoordinatesOfParams

__all__ = ["Curvatures"]

#: Rows from which on shares of rows above levels vary smoothly enough for steps that know the curvature.
_ROWS = 1000
#: Distance from its bound up to which the slopes of a component are taken, as a fraction of ``kappa``.
_NEAR = 0.25
#: Curvature that is added in auxiliary variables, in which the objective has none, in units of the scores.
_AUX = 1e-3


class Curvatures:
    r"""Curvature of an augmented Lagrangian, that of its objective taken once.

    With the Hessian H of the objective at the first scores, and the slopes :math:`J_j` of the components near to their
    bounds,

    .. math:: H + \rho \sum_j J_j J_j^T,

    which leaves out the curvature of the components (Gauss-Newton). L-BFGS learns that on the way.

    Parameters
    ----------
    problem : Problem
        Problem that `suits` accepts.
    scores : ndarray of shape (n_samples,)
        Scores at which the Hessian is taken.
    """

    def __init__(self, problem: Problem, scores: np.ndarray) -> None:
        self._problem, self._scores = problem, scores

    @staticmethod
    def suits(problem: Problem) -> bool:
        """Whether there are linear scores of few enough coefficients, and bounds on what varies smoothly.

        Shares of rows above a fixed threshold have many local optima, and long steps lead past good ones. Those above
        levels vary smoothly enough where there are many rows.
        """
        has_many = problem.data.n_samples >= _ROWS
        is_smooth = all(not c.counts_rows or (has_many and c.n_aux) for c in problem.constraints)
        return bool(problem.component_names) and is_smooth and has_cheap_hessian(problem)

    @property
    def of_objective(self) -> Coordinates:
        """Coordinates that suit the objective alone."""
        return NewtonCoordinates.of(self._problem.penalised_coordinates, self._hessian)

    @cached_property
    def _hessian(self) -> np.ndarray:
        return hessian_at(self._problem, self._scores)

    def coordinates(self, lagrangian: Lagrangian, z: np.ndarray) -> Coordinates:
        """Coordinates that suit the Lagrangian around ``z``, for all variables."""
        problem, n_params = lagrangian.problem, lagrangian.problem.n_params
        scores, aux = problem.scores(z[:n_params]), z[n_params:]
        point = problem.at_scores(torch.from_numpy(scores), aux)
        reach = lagrangian.multipliers / lagrangian.penalty + point.constraints
        near = [np.full(len(c.component_names), _NEAR * c.kappa * c.scale) for c in problem.constraints]
        reach += np.concatenate([np.empty(0), *near])
        scaled = CoordinatesOfParams(n_params, self._problem.penalised_coordinates)
        jacobian = gradients_of_components(problem, point, _distinct(problem, reach > 0), aux.size)
        steep = np.column_stack([np.empty((z.size, 0)), *(scaled.pull(gradient) for gradient in jacobian)])
        table = lagrangian.penalty * (steep @ steep.T)
        table[:n_params, :n_params] += self._hessian
        of_aux_alone = range(n_params, z.size)
        table[of_aux_alone, of_aux_alone] += _AUX / (scores.var() or 1.0)
        return NewtonCoordinates.of(scaled, table)


def _distinct(problem: Problem, is_near: np.ndarray) -> np.ndarray:
    """Numbers of components near their bounds, of two that move in opposite directions only one."""
    directions, first = [np.empty(0, dtype=int)], 0
    for constraint in problem.constraints:
        directions.append(first + constraint.directions)
        first += len(constraint.component_names)
    near = np.flatnonzero(is_near)
    _, kept = np.unique(np.concatenate(directions)[near], return_index=True)
    return np.sort(near[kept])
