"""Directions of linear models in which what is bounded moves, per unit of the curvature of a loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import torch
from scipy.linalg import solve_triangular
from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem
from fairconstrained.surrogates import SURROGATES
from fairconstrained.terms import TermsPoint

__all__ = [
    "MOST_FEATURES",
    "Curvature",
    "constraint_slopes",
    "curvature_table",
    "objective_slope",
    "obstacle_to_linear_scores",
    "obstacle_to_many_features",
    "obstacle_to_shared_scores",
    "pulled_back",
    "smooth_point",
    "smooth_slopes",
]

#: Features up to which the curvature is a table.
MOST_FEATURES = 5000
#: Ridge of the curvature, in multiples of its diagonal, and of what that would be without centring.
_RIDGE, _LEAST = 1e-6, 1e-9
#: Multiply-adds that the curvature may take; more rows than that allows are represented by some of them.
_WORK = 2e10
#: Fewest and most slopes that are pulled back in one pass over the features; otherwise half as many as features.
_FEWEST, _AT_ONCE = 8, 16
#: Slopes up to which every one is split by groups and labels.
_MOST_SLOPES = 64


def obstacle_to_linear_scores(problem: Problem, most_features: int | None = None) -> str:
    """Say what a problem lacks, in an empty string if nothing: one linear score of every row, of so many features."""
    if not isinstance(problem.model, LinearModel):
        return "linear scores"
    return "" if most_features is None else obstacle_to_many_features(problem, most_features)


def obstacle_to_many_features(problem: Problem, most_features: int) -> str:
    """Say that there are more features than that, in an empty string if there are not."""
    n_features = problem.data.n_features
    return "" if n_features <= most_features else f"at most {most_features:,} features, and there are {n_features:,}"


def obstacle_to_shared_scores(problem: Problem, most_features: int | None = None) -> str:
    """Say what a problem lacks, as `obstacle_to_linear_scores` does; the scores are to be shared by all groups."""
    if not isinstance(problem.model, LinearModel) or problem.model.n_copies > 1:
        return "linear scores, shared by all groups"
    return obstacle_to_linear_scores(problem, most_features)


def smooth_point(problem: Problem, scores: np.ndarray) -> TermsPoint:
    """The smooth constraints at the scores where they are exact.

    The surrogate of a step is a logistic function of width 1. So the slopes of rates are the curvature of the logistic
    loss times a constant for every cell of rows, and the directions are regressions of the cells on the features.
    """
    blur = SURROGATES["logistic"].spread / (scores.std() or 1.0)
    logistic = tuple(c.with_logistic_slopes() for c in problem.constraints)
    near = replace(problem, constraints=logistic).refined(scores, blur)
    return near.at_scores(torch.from_numpy(scores.copy()), near.initial_aux(scores))


def smooth_slopes(problem: Problem, scores: np.ndarray) -> list[Tensor]:
    """Slopes of all components of `smooth_point` in the scores, each a Tensor of shape (n_samples,)."""
    point = smooth_point(problem, scores)
    return [slope for slope, _ in point.component_slopes(np.arange(point.constraints.size))]


def constraint_slopes(problem: Problem, scores: np.ndarray) -> Iterator[Tensor]:
    """Slopes of all components of the constraints in the scores, each of shape (n_samples,).

    Where there are few components, those of one in every group and label come by themselves, with zeros elsewhere. Of
    scores of several classes, the slopes in those of one class come after the other.
    """
    point = smooth_point(problem, scores)
    labels, numbers = np.unique(problem.data.y.numpy(), return_inverse=True)
    cells = torch.from_numpy(labels.size * problem.data.codes.astype(np.int64) + numbers)
    n_cells = labels.size * problem.data.n_groups
    for of_one, _ in point.component_slopes(np.arange(point.constraints.size)):
        slopes = of_one.reshape(len(scores), -1).T
        for slope in slopes:
            if point.constraints.size * len(slopes) * n_cells > _MOST_SLOPES:
                yield slope
                continue
            for cell in range(n_cells):
                yield torch.where(cells == cell, slope, 0.0)


def objective_slope(problem: Problem, scores: np.ndarray) -> Tensor:
    """Slope of the objective without its penalty in the scores; Tensor of shape (n_samples,)."""
    free = problem.without_constraints()
    return free.at_scores(torch.from_numpy(scores.copy()), np.empty(0)).slopes(1.0, np.empty(0))[0]


def pulled_back(model: LinearModel, data: FairData, slopes: Iterable[Tensor]) -> np.ndarray:
    """Gradients in the parameters of functions with these slopes in the scores; shape (n_params, n_slopes)."""
    size = min(_AT_ONCE, max(data.n_features // 2, _FEWEST))
    gradients, table, filled = [np.empty((model.n_params, 0))], np.empty((data.n_samples, size), order="F"), 0
    for slope in slopes:
        table[:, filled] = slope.numpy()
        filled = (filled + 1) % size
        if not filled:
            gradients.append(model.gradients(data, table))
    if filled:
        gradients.append(model.gradients(data, table[:, :filled]))
    return np.hstack(gradients)


def gradients_of_components(problem: Problem, point: TermsPoint, chosen: np.ndarray, n_aux: int = 0) -> np.ndarray:
    """Gradients of some components in all variables, in few passes over the features.

    ``point`` has the terms at the scores of the linear model, and ``chosen`` the numbers of the components, ascending.
    The result has the shape (n_chosen, n_params + n_aux).
    """
    slopes_of_aux = np.empty((chosen.size, n_aux))

    def slopes_of_scores() -> Iterator[Tensor]:
        for number, (of_scores, of_aux) in enumerate(point.component_slopes(chosen)):
            slopes_of_aux[number] = of_aux
            yield of_scores

    pulled = pulled_back(cast(LinearModel, problem.model), problem.data, slopes_of_scores())
    return np.hstack([pulled.T, slopes_of_aux])


def curvature_table(model: LinearModel, data: FairData, by_row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Hessian in the parameters of a function with these second derivatives in the scores; (n_params, n_params).

    Where there are many rows, some that ``rng`` draws stand for all.
    """
    size = max(int(_WORK / model.n_params**2), 5 * model.n_params)
    if size >= data.n_samples:
        return model.curvature(data, by_row)
    rows = np.sort(rng.choice(data.n_samples, size, replace=False))
    table = model.curvature(data.at(rows), by_row[rows] * (data.n_samples / size))
    # a rare category may be in none of these rows
    places = np.diag_indices(model.n_features)
    table[places] = np.maximum(table[places], model.squares(data, by_row))
    return table


@dataclass(frozen=True, eq=False)
class Curvature:
    r"""Curvature of objective and penalty in the coefficients of a linear model, at the best intercept.

    .. math:: H = X^T D X + \alpha I

    where D has the curvature of the objective in every score, for the logistic loss :math:`w_i p_i (1 - p_i)`, and the
    columns of X are centred by it if there is an intercept.
    """

    #: Lower triangular, ``H = root @ root.T``.
    root: np.ndarray  # of shape (n_features, n_features)
    #: Weighted means of the features, which are subtracted; zeros without an intercept.
    centre: np.ndarray  # of shape (n_features,)

    @classmethod
    def of(cls, model: LinearModel, table: np.ndarray, shrinkage: float = 0.0) -> Curvature:
        """Compute it from the table of all parameters, see `curvature_table`, and ``shrinkage`` times its diagonal."""
        width = model.n_features
        curvature, squares, centre = table[:width, :width].copy(), table.diagonal()[:width], np.zeros(width)
        if model.fit_intercept:
            centre = table[width, :width] / table[width, width]
            curvature -= table[width, width] * np.outer(centre, centre)
        # in units of the feature; the second part counts if it is constant
        ridge = (_RIDGE + shrinkage) * curvature.diagonal() + _LEAST * squares
        curvature[np.diag_indices(width)] += model.alpha + np.where(squares > 0, ridge, 1.0)
        return cls(np.linalg.cholesky(curvature), centre)

    def descents(self, gradients: np.ndarray) -> np.ndarray:
        """``root^-1`` times gradients at the best intercept, so that `coefficients` of them are ``H^-1`` times these.

        From the shape (n_params, n_vectors) to (n_features, n_vectors).
        """
        width = self.centre.size
        centred = gradients[:width] - np.outer(self.centre, gradients[width:].sum(axis=0))
        return solve_triangular(self.root, centred, lower=True)

    def lengths(self, coefficients: np.ndarray) -> np.ndarray:
        """``root.T @ coefficients``, whose norms are those of the moves of the scores; (n_features, n_vectors)."""
        return self.root.T @ coefficients

    def coefficients(self, lengths: np.ndarray) -> np.ndarray:
        """The inverse of `lengths`."""
        return solve_triangular(self.root, lengths, lower=True, trans="T")
