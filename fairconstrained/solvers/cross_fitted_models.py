"""Unconstrained linear models and the directions in which bounds move them, of all rows and without one fold each."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch

from fairconstrained.cells import effective_size
from fairconstrained.constraints import BoundConstraint
from fairconstrained.models import ClassModel, LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import (
    Curvature,
    constraint_slopes,
    curvature_table,
    obstacle_to_shared_scores,
    pulled_back,
)
from fairconstrained.solvers._newton_coordinates import has_convex_hessian
from fairconstrained.solvers._shrunken import shrunken_of_folds, unseen_scores
from fairconstrained.solvers._unconstrained import unconstrained_of_parts
from fairconstrained.views import RowLosses

__all__ = [
    "CrossFittedModels",
    "Shrunk",
    "cross_fitted_models",
    "fewest_in_cells",
    "has_few_in_cells",
    "has_few_rows",
    "is_of_linear_classes",
    "linear_model",
    "rows_by_fold",
    "sums_of_cells",
]

#: Directions of the constraints at most, and the lengths below which they are left out, as a share of the longest one.
_MOST, _RANK = 6, 1e-2
#: Rows of the smallest compared cell for each feature, below which they are few: models are shrunken then.
_FEW_ROWS = 8
#: Rows with a curvature for each feature, below which a direction is noise; the share of the rows that have one where
#: scores were halved, and how often they are at most.
_CURVED_ROWS, _CURVED_SHARE, _HALVED = 5, 0.5, 10
#: Rows for each feature below which directions are those at constant scores, and their ridge, in multiples of the
#: diagonal of the curvature; and rows of the smallest compared cell from which on. With fewer, a fold has too few to
#: measure such directions: of twelve problems with 100 rows and 60 features, three no longer kept their bound.
_TOLD_ROWS, _SHRINKAGE, _TOLD_CELL = 10, 1.0, 100


class CrossFittedModels(NamedTuple):
    """The unconstrained model and directions, as parameters in columns of ndarrays of shape (n_params, size).

    There is one ndarray for every part of the rows that has coefficients of its own: all rows, or every group.
    """

    #: Models fitted to all rows; of several classes, that of every class comes first.
    whole: list[np.ndarray]
    #: Models fitted to the rows that are not in a fold, for one fold after the other.
    by_fold: list[list[np.ndarray]]
    #: Number of evaluations that they took, in units of all rows.
    n_evaluations: int
    #: Where the models are shrunken, see `has_few_rows`.
    shrunken: Shrunk | None = None

    @property
    def narrowed(self) -> CrossFittedModels:
        """The unconstrained model and the sums of directions alone; these models where they are not shrunken."""
        if self.shrunken is None:
            return self
        sums = self.shrunken.sums
        return self._replace(
            whole=[own @ sums for own in self.whole], by_fold=[[own @ sums for own in each] for each in self.by_fold]
        )


class Shrunk(NamedTuple):
    """The unconstrained model without shrinkage, and what few rows can tell."""

    #: Scores of the unconstrained model, and of those that have not seen the row.
    seen: np.ndarray  # of shape (n_samples,)
    unseen: np.ndarray  # of shape (n_samples,)
    #: Unconstrained models without shrinkage, fitted without one fold after the other.
    by_fold: list[np.ndarray]  # each of shape (n_params,)
    #: Combinations of the columns of a model: the unconstrained model, and the directions in which all rows of a
    #: bounded quantity move together.
    sums: np.ndarray  # of shape (n_columns, n_narrow)


def cross_fitted_models(problem: Problem, folds: np.ndarray, rng: np.random.Generator) -> CrossFittedModels:
    """Fit the unconstrained model and the directions, to all rows and without one fold after the other."""
    data, columns, by_fold = problem.data, linear_model(problem).score_columns, rows_by_fold(folds)
    seen = (np.delete(np.arange(data.n_samples), unseen) for unseen in by_fold)
    (free, *found), n_evaluations = unconstrained_of_parts(problem, chain([None], seen))
    smooth, ridge, unshrunken = problem.without_constraints().with_easiest_objective(), None, None
    if has_few_rows(problem):
        unshrunken = problem.scores(free), unseen_scores(problem, by_fold, found), found
        free, found, ridge, more = shrunken_of_folds(smooth, [free, *found], by_fold)
        n_evaluations += more
    # Of so few rows, a model memorises the labels. Slopes at its scores would tell those of a fold: a regression
    # of the slopes of the other rows on their features finds the model again, which has seen the fold.
    has_few = effective_size(data.weights.numpy()) < _TOLD_ROWS * data.n_features
    is_told = unshrunken is None and has_few and fewest_in_cells(problem, np.inf) >= _TOLD_CELL

    def curved_at(params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = problem.scores(params)
        return _curved(smooth, np.full_like(scores, smooth.threshold) if is_told else scores)

    at, by_row = curved_at(free)
    slopes, of_folds = _slopes(problem, at), None
    if any(_bounds_losses(c) for c in problem.constraints):
        # Their slopes nearly cancel out over all rows: those of the other rows would tell a fold's.
        of_folds = [_slopes(problem, curved_at(each)[0]) for each in found]
    shrinkage = _SHRINKAGE if is_told else 0.0
    models_of_all = columns(free)
    (of_all, of_parts), lengths = _directions(
        problem, models_of_all, by_row, slopes, of_folds, by_fold, rng, ridge, shrinkage
    )
    whole = [np.hstack([own, of_all]) for own in models_of_all]
    models = [[np.hstack([own, moves]) for own in columns(each)] for each, moves in zip(found, of_parts, strict=True)]
    if unshrunken is None:
        return CrossFittedModels(whole, models, n_evaluations)
    sums = sums_of_cells(lengths, len(problem.component_names))
    return CrossFittedModels(whole, models, n_evaluations, Shrunk(*unshrunken, sums))


def has_few_rows(problem: Problem) -> bool:
    """Whether the smallest compared cell has so few rows for each feature that unconstrained models fit its noise.

    False also for bounds on counted rows alone, which few directions keep on new rows without it, and where there is no
    way to shrink the models: with coefficients for every group, and losses that are not convex.
    """
    if all(c.counts_rows for c in problem.constraints) or any(c.n_aux for c in problem.constraints):
        return False
    if obstacle_to_shared_scores(problem) or not has_convex_hessian(problem):
        return False
    return has_few_in_cells(problem)


def has_few_in_cells(problem: Problem, of_each_feature: int = _FEW_ROWS) -> bool:
    """Whether the smallest compared cell has fewer rows than so many for each feature."""
    return fewest_in_cells(problem, np.inf) < of_each_feature * problem.data.n_features


def fewest_in_cells(problem: Problem, without_cells: float) -> float:
    """Number of rows of the smallest compared cell; ``without_cells`` where the constraints compare none."""
    cells = [sizes for each in problem.constraints if (sizes := each.compared_cells()) is not None]
    return min((int(sizes.counts.min(initial=problem.data.n_samples)) for sizes in cells), default=without_cells)


def is_of_linear_classes(problem: Problem) -> bool:
    """Whether there are linear scores of several classes."""
    return isinstance(problem.model, ClassModel) and problem.model.is_linear


def linear_model(problem: Problem) -> Any:
    """The model, whose scores are linear: one score of every row, or one of every class."""
    return problem.model


def rows_by_fold(folds: np.ndarray) -> list[np.ndarray]:
    """Rows of one fold after the other."""
    return [np.flatnonzero(folds == fold) for fold in np.unique(folds)]


def _bounds_losses(constraint: BoundConstraint) -> bool:
    """Whether means of losses are bounded or compared, of which the slopes are residuals."""
    return constraint.is_fitted_loss or (isinstance(constraint, RowLosses) and not constraint.counts_rows)


def _slopes(problem: Problem, scores: np.ndarray) -> np.ndarray:
    """Slopes of the components of the constraints in columns; ndarray of shape (n_samples, n_slopes)."""
    return np.column_stack([slope.numpy() for slope in constraint_slopes(problem, scores)])


def _curved(smooth: Problem, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Scores at which the directions are those of many rows, and the curvature of the objective in every row there.

    A model that nearly separates the classes is sure of almost all rows. Its objective is curved and its decisions
    change in the few others only, and what these have in common is noise. Where fewer than five rows for each feature
    count, by :math:`(\sum_i h_i)^2 / \sum_i h_i^2` for the curvatures h (Kish's effective number of rows), the
    distances of its scores from the threshold are halved until half of the rows do.

    Parameters
    ----------
    smooth : Problem
        Problem without constraints.
    scores : ndarray
        Scores of the unconstrained model, shaped as training scores are.
    """
    data, at, by_row = smooth.data, scores, _curvatures(smooth, scores)
    if effective_size(by_row) < _CURVED_ROWS * data.n_features:
        half = _CURVED_SHARE * effective_size(data.weights.numpy())
        for _ in range(_HALVED):
            if effective_size(by_row) >= half:
                break
            at = (at + smooth.threshold) / 2
            by_row = _curvatures(smooth, at)
    return at, by_row


def _curvatures(smooth: Problem, scores: np.ndarray) -> np.ndarray:
    """Curvature of the objective in every row, the mean over its scores; ndarray of shape (n_samples,)."""
    return smooth.objective.curvature(torch.from_numpy(scores)).numpy().reshape(len(scores), -1).mean(axis=1)


def sums_of_cells(lengths: np.ndarray, n_components: int) -> np.ndarray:
    """Columns of models, of which one sums the slopes of a component over the cells that it was split into.

    Parameters
    ----------
    lengths : ndarray of shape (n_directions, n_slopes)
        Slopes as combinations of the directions, component by component.

    Returns
    -------
    sums : ndarray of shape (1 + n_directions, n_narrow)
        The first column is the unconstrained model.
    """
    together = lengths.reshape(len(lengths), n_components, -1).sum(axis=2)
    combined, sizes, _ = np.linalg.svd(together, full_matrices=False)
    combined = combined[:, sizes > _RANK * sizes.max(initial=0.0)]
    sums = np.zeros((1 + len(lengths), 1 + combined.shape[1]))
    sums[0, 0], sums[1:, 1:] = 1.0, combined
    return sums


def _directions(
    problem: Problem,
    free: list[np.ndarray],
    by_row: np.ndarray,
    slopes: np.ndarray,
    of_folds: list[np.ndarray] | None,
    by_fold: list[np.ndarray],
    rng: np.random.Generator,
    ridge: np.ndarray | None,
    shrinkage: float,
) -> tuple[tuple[np.ndarray, list[np.ndarray]], np.ndarray]:
    """Directions of all rows, and of those that are not in a fold, for one fold after the other.

    Those without a fold are of the same slopes, or of slopes of their own, one ndarray for every fold. ``free`` are
    the unconstrained models of all rows, in the columns of one ndarray for every part with coefficients of its own. A
    direction that is a combination of those of a part and of other directions, in every part, is left out. Also returns
    the slopes as combinations of the directions, but for multiples of the unconstrained models; ndarray of shape
    (n_directions, n_slopes). The curvature has ``ridge``, and ``shrinkage`` times its own diagonal.
    """
    model, data = linear_model(problem).of_one_score, problem.data

    every_slopes, tables, pulled = [slopes, *(of_folds or ())], [], []
    for rows in by_fold:
        part = data.at(rows)  # one copy for all sums over these rows
        tables.append(curvature_table(model, part, by_row[rows], rng))
        pulled.append([pulled_back(model, part, _columns(own[rows])) for own in every_slopes])
    gradients, *gradients_of_folds = zip(*pulled, strict=True)
    ridges = np.diag(np.zeros(model.n_params) if ridge is None else ridge)
    curvature, gradient = (
        Curvature.of(model, reduce(np.add, tables) + ridges, shrinkage),
        reduce(np.add, gradients),
    )
    share = 1 - 1 / len(by_fold)  # of the rows, and so of the sums over them
    penalised_alike = replace(model, alpha=share * model.alpha)  # as their losses are sums over this share of the rows
    descents = curvature.descents(gradient)
    lengths_of_free = [curvature.lengths(own[: model.n_features]) for own in free]
    # Under a strong penalty the unconstrained model is nearly a combination of the directions. Then one of them adds
    # only the small difference to that combination, which is another one in every fold: its features, scaled to a
    # length of one, would mainly tell the folds.
    beside = np.vstack([descents - own @ np.linalg.lstsq(own, descents, rcond=None)[0] for own in lengths_of_free])
    _, sizes, right = np.linalg.svd(beside, full_matrices=False)
    kept = min(_MOST, int((sizes > _RANK * np.linalg.norm(descents, 2)).sum()))
    # the same combinations of slopes in every fold, so that a direction means the same there
    combined = right[:kept].T / sizes[:kept]
    found = []
    for number in range(len(by_fold)):
        of_parts = gradients_of_folds[number] if gradients_of_folds else gradients
        table, slope = (reduce(np.add, every[:number] + every[number + 1 :]) for every in (tables, of_parts))
        found.append(
            _coefficients(model, Curvature.of(penalised_alike, table + share * ridges, shrinkage), slope @ combined)
        )
    lengths = sizes[:kept, None] * right[:kept]
    return (_coefficients(model, curvature, gradient @ combined), found), lengths


def _columns(matrix: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)) for column in matrix.T]


def _coefficients(model: LinearModel, curvature: Curvature, gradients: np.ndarray) -> np.ndarray:
    """Parameters of ``H^-1`` times gradients, with the intercepts at which the features are centred."""
    coefficients = curvature.coefficients(curvature.descents(gradients))
    return np.vstack([coefficients, *([-curvature.centre @ coefficients] if model.fit_intercept else [])])
