"""Coordinates in which an augmented Lagrangian of linear scores is well conditioned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import torch
from scipy.linalg import cholesky, solve_triangular
from typing_extensions import override

from fairconstrained.models import Coordinates, LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.solvers._directions import pulled_back
from fairconstrained.views import RowLosses

__all__ = ["Curvatures"]

#: Parameters, and multiply-adds of the Hessian of the objective, up to which it is worth its price.
_MOST, _WORK = 600, 2e10
#: Components whose slopes are taken, those nearest to their bounds, and how far from them they may be as a fraction.
_COMPONENTS, _NEAR = 64, 0.25
#: Weight of their slopes' squares: not all of them have to be kept from growing.
_WEIGHT = 1.0
#: Ridge of the Hessian relative to its mean diagonal, and curvature in auxiliary variables in units of the scores.
_RIDGE, _AUX = 1e-4, 1e-3


@dataclass(frozen=True, eq=False)
class _Rooted(Coordinates):
    """Coordinates ``u = root' z``, in which a quadratic function with the Hessian ``root root'`` has that of 1."""

    root: np.ndarray

    @override
    def to_params(self, u: np.ndarray) -> np.ndarray:
        return solve_triangular(self.root, u, lower=True, trans="T", check_finite=False)

    @override
    def from_params(self, params: np.ndarray) -> np.ndarray:
        return self.root.T @ params

    @override
    def pull(self, gradient: np.ndarray) -> np.ndarray:
        return solve_triangular(self.root, gradient, lower=True, check_finite=False)


class Curvatures:
    r"""Curvature of an augmented Lagrangian, that of its objective taken once.

    With the Hessian H of the objective at the first scores, and the slopes :math:`J_j` of the components near to their
    bounds,

    .. math:: H + \frac{\rho}{2} \sum_j J_j J_j^T,

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

        Shares of rows above a fixed threshold have many local optima, and long steps lead past good ones.
        """
        is_smooth = not any(c.counts_rows and not c.n_aux for c in problem.constraints)
        return bool(problem.constraints) and is_smooth and _is_cheap(problem)

    @staticmethod
    def suits_objective(problem: Problem) -> bool:
        """Whether there are linear scores of few enough coefficients, and a smooth and convex loss of the rows."""
        objective = problem.objective
        return isinstance(objective, RowLosses) and objective.row_loss.is_smooth_and_convex and _is_cheap(problem)

    @property
    def of_objective(self) -> Coordinates:
        """Coordinates that suit the objective alone."""
        return _Rooted(cholesky(self._hessian, lower=True, check_finite=False))

    @cached_property
    def _hessian(self) -> np.ndarray:
        problem, model = self._problem, cast(LinearModel, self._problem.model)
        curvature = problem.objective.curvature(torch.from_numpy(self._scores)).numpy()
        hessian = model.curvature(problem.data, curvature)
        diagonal = hessian.diagonal() + model.penalty(np.ones(model.n_params))[1]
        hessian[np.diag_indices(model.n_params)] = diagonal + _RIDGE * diagonal.mean()
        return hessian

    def coordinates(self, lagrangian: Lagrangian, z: np.ndarray) -> Coordinates:
        """Coordinates that suit the Lagrangian around ``z``, for all variables."""
        problem, n_params = lagrangian.problem, lagrangian.problem.n_params
        scores, aux = problem.scores(z[:n_params]), z[n_params:]
        point = problem.at_scores(torch.from_numpy(scores), aux)
        reach = lagrangian.multipliers / lagrangian.penalty + point.constraints
        near = [np.full(len(c.component_names), _NEAR * c.kappa * c.scale) for c in problem.constraints]
        reach += np.concatenate([np.empty(0), *near])
        nearest = np.argsort(-reach, kind="stable")[:_COMPONENTS]
        units = np.eye(reach.size)[nearest[reach[nearest] > 0]]
        slopes = [point.slopes(0.0, unit) for unit in units]
        pulled = pulled_back(cast(LinearModel, problem.model), problem.data, (own for own, _ in slopes))
        of_aux = np.column_stack([np.empty((aux.size, 0)), *(own for _, own in slopes)])
        table = np.zeros((z.size, z.size))
        table[:n_params, :n_params] = self._hessian
        table[range(n_params, z.size), range(n_params, z.size)] = _AUX / (scores.var() or 1.0)
        root = np.vstack([pulled, of_aux])
        table += _WEIGHT * lagrangian.penalty * (root @ root.T)
        return _Rooted(cholesky(table, lower=True, check_finite=False))


def _is_cheap(problem: Problem) -> bool:
    """Whether there are linear scores, and the Hessian of an objective is worth its price."""
    model = problem.model
    if not isinstance(model, LinearModel) or problem.domain is not None:
        return False
    work = problem.data.n_samples * model.n_params**2 / model.n_copies
    return model.n_params <= _MOST and work <= _WORK
