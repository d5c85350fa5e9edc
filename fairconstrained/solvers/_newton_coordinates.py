"""Coordinates in which a function of the coefficients of a linear model has a Hessian of about 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from scipy.linalg import cholesky, solve_triangular
from typing_extensions import override

from fairconstrained.models import Coordinates, LinearModel
from fairconstrained.problem import Problem
from fairconstrained.views import RowLosses

__all__ = [
    "NewtonCoordinates",
    "has_cheap_hessian",
    "has_convex_hessian",
    "has_convex_losses",
    "hessian",
    "hessian_at",
    "parameter_hessian",
]

#: Parameters, and multiply-adds of the Hessian, up to which it is worth its price.
_MOST, _WORK = 600, 2e10
#: Ridge of a Hessian in multiples of its diagonal, and of what that is made of, where most of it cancels out.
_RIDGE, _LEAST = 1e-4, 1e-9
#: Ridge of any Hessian in multiples of its trace, beyond what rounding may make negative.
_ROUNDING = 1e-12
#: Ridge of a Hessian in the parameters themselves, relative to its mean diagonal.
_PARAMETER_RIDGE = 1e-9


@dataclass(frozen=True, eq=False)
class NewtonCoordinates(Coordinates):
    """Coordinates ``root' u`` of well-scaled coordinates ``u``, in which a Hessian of ``root root'`` becomes 1.

    As the Hessian is that in well-scaled coordinates, the units of the features do not matter to it or its ridge.
    """

    scaled: Coordinates
    #: Lower triangular.
    root: np.ndarray  # of shape (n_variables, n_variables)

    @classmethod
    def of(cls, scaled: Coordinates, table: np.ndarray) -> NewtonCoordinates:
        """Coordinates that suit a Hessian in well-scaled coordinates, of shape (n_variables, n_variables)."""
        return cls(scaled, cholesky(table + _ROUNDING * np.trace(table) * np.eye(len(table)), lower=True))

    @override
    def to_params(self, u: np.ndarray) -> np.ndarray:
        return self.scaled.to_params(solve_triangular(self.root, u, lower=True, trans="T", check_finite=False))

    @override
    def from_params(self, params: np.ndarray) -> np.ndarray:
        return self.root.T @ self.scaled.from_params(params)

    @override
    def pull(self, gradient: np.ndarray) -> np.ndarray:
        return solve_triangular(self.root, self.scaled.pull(gradient), lower=True, check_finite=False)

    def pull_of_each(self, n_params: int) -> np.ndarray:
        """`pull` of every unit vector, in columns; ndarray of shape (n_params, n_params)."""
        return solve_triangular(self.root, _pulls(self.scaled, n_params), lower=True, check_finite=False)


def _pulls(scaled: Coordinates, n_params: int) -> np.ndarray:
    return np.column_stack([scaled.pull(unit) for unit in np.eye(n_params)])


def has_cheap_hessian(problem: Problem) -> bool:
    """Whether scores are linear, without a domain, and a Hessian is worth its price."""
    model = problem.model
    if not isinstance(model, LinearModel) or problem.domain is not None:
        return False
    work = problem.data.n_samples * model.n_params**2 / model.n_copies
    return model.n_params <= _MOST and work <= _WORK


def has_convex_losses(problem: Problem) -> bool:
    """Whether the objective is a mean of smooth convex losses of the rows, whose second derivatives are known."""
    objective = problem.objective
    return isinstance(objective, RowLosses) and objective.row_loss.is_smooth_and_convex


def has_convex_hessian(problem: Problem) -> bool:
    """Whether a problem `has_cheap_hessian` and `has_convex_losses`."""
    return has_convex_losses(problem) and has_cheap_hessian(problem)


def hessian_at(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """The `hessian` of the objective of a problem at some scores."""
    return hessian(problem, problem.objective.curvature(torch.from_numpy(scores)).numpy())


def hessian(problem: Problem, by_row: np.ndarray) -> np.ndarray:
    """Hessian of losses and penalty in the well-scaled coordinates of a problem that `has_cheap_hessian`.

    It is positive definite, as it has a small ridge. ``by_row`` has the second derivatives of the losses in the scores,
    at least 0.
    """
    table, pulls = _with_penalty(problem, by_row), _pulls(problem.penalised_coordinates, problem.n_params)
    scaled = pulls @ table @ pulls.T
    parts = pulls**2 @ table.diagonal()
    scaled[np.diag_indices_from(scaled)] += np.where(parts > 0, _RIDGE * scaled.diagonal() + _LEAST * parts, 1.0)
    return scaled


def parameter_hessian(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """Hessian of the objective with its penalty in the parameters, with a small ridge; shape (n_params, n_params)."""
    table = _with_penalty(problem, problem.objective.curvature(torch.from_numpy(scores)).numpy())
    table[np.diag_indices_from(table)] += _PARAMETER_RIDGE * table.diagonal().mean()
    return table


def _with_penalty(problem: Problem, by_row: np.ndarray) -> np.ndarray:
    """Hessian of losses and penalty in the parameters; ndarray of shape (n_params, n_params)."""
    model = cast(LinearModel, problem.model)
    table = model.curvature(problem.data, by_row)
    table[np.diag_indices_from(table)] += model.penalty(np.ones(model.n_params))[1]
    return table
