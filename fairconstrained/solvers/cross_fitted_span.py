"""A constrained problem in a few directions, in which every row is seen by models that have not seen it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
import torch

from fairconstrained.constraints import on_some_rows
from fairconstrained.models import ClassModel, LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import (
    MOST_FEATURES,
    Curvature,
    constraint_slopes,
    curvature_table,
    obstacle_to_linear_scores,
    obstacle_to_shared_scores,
    pulled_back,
)
from fairconstrained.solvers._newton_coordinates import has_convex_hessian
from fairconstrained.solvers._of_data import LastOfData
from fairconstrained.solvers._shrunken import shrunken_of_folds, unseen_scores
from fairconstrained.solvers._unconstrained import smooth_without_constraints, unconstrained_of_parts
from fairconstrained.views import Stochastic

__all__ = [
    "CrossFittedModels",
    "CrossFittedSpan",
    "Shrunk",
    "evaluations_of",
    "fewest_in_cells",
    "has_few_in_cells",
    "has_few_rows",
    "is_of_linear_classes",
    "sums_of_cells",
]

#: Directions of the constraints at most, and their lengths relative to the first one below which they are left out.
_MOST, _RANK = 6, 1e-2
#: Rows of the smallest compared cell for each feature, below which models are shrunken.
_FEW_ROWS = 8
#: Rows with a curvature for each feature, below which a direction is noise; the share of the rows that have one where
#: scores were halved, and how often they are at most.
_CURVED_ROWS, _CURVED_SHARE, _HALVED = 5, 0.5, 10
#: Columns and cross-fitted features of the models.
_SPANNED = LastOfData()
#: End of the names of bounds that are those of the training rows.
_SEEN = " of training rows"


class CrossFittedModels(NamedTuple):
    """The unconstrained model and directions, as parameters in columns of ndarrays of shape (n_params, size).

    There is one ndarray for every part of the rows that has coefficients of its own: all rows, or every group.

    Attributes
    ----------
    whole : list of ndarray
        Models fitted to all rows; of several classes, that of every class comes first.
    by_fold : list of list of ndarray
        Models fitted to the rows that are not in a fold, for one fold after the other.
    n_evaluations : int
        Number of evaluations that they took, in units of all rows.
    shrunken : Shrunk or None
        Where the models are shrunken, see `has_few_rows`.
    """

    whole: list[np.ndarray]
    by_fold: list[list[np.ndarray]]
    n_evaluations: int
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
    """The unconstrained model without shrinkage, and what few rows can tell.

    Attributes
    ----------
    seen, unseen : ndarray of shape (n_samples,)
        Scores of the unconstrained model, and of those that have not seen the row.
    by_fold : list of ndarray of shape (n_params,)
        Unconstrained models without shrinkage, fitted without one fold after the other.
    sums : ndarray of shape (n_columns, n_narrow)
        Combinations of the columns of a model: the unconstrained model, and the directions in which all rows of a
        bounded quantity move together.
    """

    seen: np.ndarray
    unseen: np.ndarray
    by_fold: list[np.ndarray]
    sums: np.ndarray


@dataclass(frozen=True, eq=False)
class CrossFittedSpan:
    r"""The unconstrained linear model and the directions in which bounds move it, cross-fitted.

    With the unconstrained coefficients :math:`w_0`, their Hessian H and the slopes :math:`r_j` of the bounded
    quantities in the scores :math:`X w_0`, bounds lead to

    .. math:: w = b_0 w_0 + \sum_j b_j d_j, \qquad d_j = H^{-1} X^T r_j,

    to first order (see `Span`). If they are fitted on the rows that b is then chosen on, both :math:`w_0` and
    :math:`d_j` are overfitted to these rows, and a bound that is kept there is exceeded on new rows. Here the few
    numbers b are chosen with the features :math:`x_i^T w_0^{(k)}` and :math:`x_i^T d_j^{(k)}` of models that were
    fitted without the fold k of row i, as in stacking, and the coefficients of the result are those of all rows,
    combined by b.

    Attributes
    ----------
    problem : Problem
        Problem in b: the terms are those given, the features are the cross-fitted ones.
    features : ndarray of shape (n_samples, size)
        The cross-fitted features.
    columns : list of ndarray of shape (n_params, size)
        Parameters of the models of all rows that b combines, by part of the rows; their coefficients are orthonormal,
        so that the penalty of b is that of w.
    models : CrossFittedModels
    by_fold : list of list of ndarray
        Parameters of the models without a fold in place of those of all rows in ``columns``, for one fold after the
        other.
    folds : ndarray of int, of shape (n_samples,)

    References
    ----------
    Wolpert, Stacked generalization, Neural Networks 5(2), 1992. Chernozhukov et al., Double/debiased machine learning,
    The Econometrics Journal 21(1), 2018: definition 3.2, cross-fitting.
    """

    problem: Problem
    features: np.ndarray
    columns: list[np.ndarray]
    models: CrossFittedModels
    by_fold: list[list[np.ndarray]]
    folds: np.ndarray

    @staticmethod
    def obstacle(problem: Problem) -> str:
        """Say what the problem lacks, in an empty string if nothing: linear scores."""
        return "" if is_of_linear_classes(problem) else obstacle_to_linear_scores(problem, MOST_FEATURES)

    @classmethod
    def of(
        cls, problem: Problem, folds: np.ndarray, rng: np.random.Generator, known: CrossFittedModels | None = None
    ) -> CrossFittedSpan:
        """Fit the unconstrained model and the directions, to all rows and without one fold after the other.

        Parameters
        ----------
        problem : Problem
        folds : ndarray of int, of shape (n_samples,)
            Number of the fold of every row.
        rng : numpy.random.Generator
        known : CrossFittedModels, optional
            Models of the same rows and folds under another bound.
        """
        return cls._with_models(problem, folds, known or _cross_fitted(problem, folds, rng))

    @classmethod
    def _with_models(cls, problem: Problem, folds: np.ndarray, models: CrossFittedModels) -> CrossFittedSpan:
        (columns, *by_fold), features = _SPANNED.get(problem.data, (models,), lambda: _spanned(problem, folds, models))
        data, model = replace(problem.data, X=features), _linear(problem).with_features(features.shape[1])
        return cls(replace(problem, data=data, model=model), features, columns, models, by_fold, folds)

    def from_narrow(self, problem: Problem) -> Iterator[CrossFittedSpan]:
        """The span of the sums of directions alone, where models are shrunken and there are fewer, and this one."""
        narrowed = self.models.narrowed
        if narrowed.whole[0].shape[1] < self.models.whole[0].shape[1]:
            yield self._with_models(problem, self.folds, narrowed)
        yield self

    def without(self, fold: int, seen: np.ndarray) -> CrossFittedSpan:
        """Return the span of the rows that are not in a fold, whose models are those without the fold.

        The features of these rows are those of models that have seen the fold, of which the few numbers b learn little.

        Parameters
        ----------
        fold : int
        seen : ndarray of int
            The other rows, ascending.
        """
        problem = self.problem.on(self.problem.data.part(seen))
        return replace(self, problem=problem, features=self.features[seen], columns=self.by_fold[fold])

    def needs_no_move(self, problem: Problem) -> bool:
        """Whether the unconstrained model is within the bounds, on the rows of the problem and on rows not seen."""
        if self.models.shrunken is not None:
            return problem.holds(self.models.shrunken.seen) and self.problem.holds(self.models.shrunken.unseen)
        unseen = self.problem.holds(self.problem.scores(self.free))
        return unseen and problem.holds(problem.scores(self.lift(self.free)))

    @cached_property
    def free(self) -> np.ndarray:
        """The unconstrained model as parameters of `problem`; ndarray of shape (n_params,)."""
        tables = [table.copy() for table in _linear(self.problem).score_columns(np.zeros(self.problem.n_params))]
        for table, columns, models in zip(tables, self.columns, self.models.whole, strict=True):
            table[: columns.shape[1]] = np.linalg.lstsq(columns, models[:, : table.shape[1]], rcond=None)[0]
        return _joined(tables)

    @cached_property
    def free_objective(self) -> float:
        """Objective of the unconstrained models on rows that they have not seen."""
        return self.problem.objective_at(self.free, self.problem.scores(self.free))

    def with_margins(self, margins: np.ndarray) -> CrossFittedSpan:
        """Return the span with bounds on rows not seen that are stricter by margins; shape (n_constraints,)."""
        return replace(self, problem=self.problem.with_margins(margins))

    def problems(self, problem: Problem) -> Iterator[Problem]:
        """The problem in b, and if its solution does not do, the one whose bounds hold on training rows as well."""
        yield self.problem
        yield self._with_training_rows(problem)

    def tighter(self, problem: Problem, reduced: Problem, params: np.ndarray) -> Problem:
        """Return that of the `problems` in which a search near a solution of ``reduced`` will keep all bounds.

        Parameters
        ----------
        problem : Problem
            Problem of all parameters.
        reduced : Problem
            One of `problems`.
        params : ndarray of shape (n_reduced,)
            Parameters of it.
        """
        if reduced is not self.problem:
            return reduced
        seen = problem.measured(problem.scores(self.lift(params))).violations
        unseen = reduced.measured(reduced.scores(params)).violations
        return self._with_training_rows(problem) if (seen > unseen).any() else reduced

    def _with_training_rows(self, problem: Problem) -> Problem:
        """Return `problem` with the bounds for the scores of `lift` on the training rows as well.

        Every row comes twice, with the cross-fitted features and with those of the models of all rows; only the former
        count in the objective.
        """
        reduced, once = self.problem, self.problem.data
        weights = torch.stack([once.weights, torch.zeros_like(once.weights)], dim=1).ravel()
        features = np.stack([self.features, _linear(problem).column_scores(self.columns, problem.data)], axis=1)
        twice = once.at(np.repeat(np.arange(once.n_samples), 2), weights)
        twice = replace(twice, X=features.reshape(2 * once.n_samples, -1))
        unseen, seen = slice(0, None, 2), slice(1, None, 2)
        bounds = [on_some_rows(c, twice, unseen) for c in reduced.constraints]
        bounds += [on_some_rows(c.renamed(c.name + _SEEN), twice, seen) for c in problem.constraints]
        return replace(
            reduced, objective=cast(Stochastic, reduced.objective).on(twice), constraints=tuple(bounds), data=twice
        )

    def of_both(self, multipliers: Mapping[str, float] | None) -> dict[str, float] | None:
        """Sums of the multipliers of a bound on rows not seen and on training rows, which have the same ``kappa``."""
        if multipliers is None:
            return None
        sums: dict[str, float] = {}
        for name, multiplier in multipliers.items():
            seen = next((c.name for c in self.problem.constraints if name.startswith(c.name + _SEEN)), None)
            own = name if seen is None else seen + name[len(seen + _SEEN) :]
            sums[own] = sums.get(own, 0.0) + multiplier
        return sums

    def lift(self, params: np.ndarray) -> np.ndarray:
        """Parameters of the model of all rows from those of `problem`; ndarray of shape (n_params,)."""
        lifted = []
        for columns, table in zip(self.columns, _linear(self.problem).score_columns(params), strict=True):
            size = columns.shape[1]
            lifted.append(columns @ table[:size])
            lifted[-1][-1] += table[size:].sum(axis=0)  # the intercept, if there is one
        return _joined(lifted)


def is_of_linear_classes(problem: Problem) -> bool:
    """Whether there are linear scores of several classes."""
    return isinstance(problem.model, ClassModel) and problem.model.is_linear


def _linear(problem: Problem) -> Any:
    """The model, whose scores are linear: one score of every row, or one of every class."""
    return problem.model


def _joined(tables: list[np.ndarray]) -> np.ndarray:
    """Parameters of the model from those of its scores in columns, by part of the rows."""
    return np.concatenate([table.T.ravel() for table in tables])


def _by_fold(folds: np.ndarray) -> list[np.ndarray]:
    """Rows of one fold after the other."""
    return [np.flatnonzero(folds == fold) for fold in np.unique(folds)]


def has_few_rows(problem: Problem) -> bool:
    """Whether the smallest compared cell has so few rows for each feature that unconstrained models fit its noise.

    False also for bounds on counted rows alone, which few directions keep on new rows without it, and where there is no
    way to shrink the models: with coefficients for every group, and losses that are not convex.
    """
    if all(c.counts_rows for c in problem.constraints) or any(c.n_aux for c in problem.constraints):
        return False
    if obstacle_to_shared_scores(problem) or not has_convex_hessian(problem):
        return False
    return has_few_in_cells(problem, _FEW_ROWS)


def has_few_in_cells(problem: Problem, of_each_feature: int) -> bool:
    """Whether the smallest compared cell has fewer rows than so many for each feature."""
    return fewest_in_cells(problem, np.inf) < of_each_feature * problem.data.n_features


def fewest_in_cells(problem: Problem, without_cells: float) -> float:
    """Number of rows of the smallest compared cell; ``without_cells`` where the constraints compare none."""
    cells = [sizes for each in problem.constraints if (sizes := each.compared_cells()) is not None]
    return min((int(sizes.counts.min(initial=problem.data.n_samples)) for sizes in cells), default=without_cells)


def evaluations_of(problem: Problem, reduced: Problem, n_evaluations: int) -> int:
    """Return the number of evaluations of a problem that cost as much as so many of a reduced one."""
    share = reduced.n_params * reduced.data.n_samples / (problem.n_params * problem.data.n_samples)
    return int(np.ceil(n_evaluations * share))


def _cross_fitted(problem: Problem, folds: np.ndarray, rng: np.random.Generator) -> CrossFittedModels:
    data, columns, by_fold = problem.data, _linear(problem).score_columns, _by_fold(folds)
    seen = (np.delete(np.arange(data.n_samples), unseen) for unseen in by_fold)
    (free, *found), n_evaluations = unconstrained_of_parts(problem, chain([None], seen))
    smooth, ridge, unshrunken = smooth_without_constraints(problem), None, None
    if has_few_rows(problem):
        unshrunken = problem.scores(free), unseen_scores(problem, by_fold, found), found
        free, found, ridge, more = shrunken_of_folds(smooth, [free, *found], by_fold)
        n_evaluations += more
    at, by_row = _curved(smooth, problem.scores(free))
    slopes, of_folds = _slopes(problem, at), None
    if any(c.is_fitted_loss for c in problem.constraints):
        # They are residuals, which sum to about zero over all rows: those of the other rows would tell a fold's.
        of_folds = [_slopes(problem, _curved(smooth, problem.scores(each))[0]) for each in found]
    (of_all, of_parts), lengths = _directions(problem, by_row, slopes, of_folds, by_fold, rng, ridge)
    whole = [np.hstack([own, of_all]) for own in columns(free)]
    models = [[np.hstack([own, moves]) for own in columns(each)] for each, moves in zip(found, of_parts, strict=True)]
    if unshrunken is None:
        return CrossFittedModels(whole, models, n_evaluations)
    sums = sums_of_cells(lengths, len(problem.component_names))
    return CrossFittedModels(whole, models, n_evaluations, Shrunk(*unshrunken, sums))


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
    if _counting(by_row) < _CURVED_ROWS * data.n_features:
        half = _CURVED_SHARE * _counting(data.weights.numpy())
        for _ in range(_HALVED):
            if _counting(by_row) >= half:
                break
            at = (at + smooth.threshold) / 2
            by_row = _curvatures(smooth, at)
    return at, by_row


def _curvatures(smooth: Problem, scores: np.ndarray) -> np.ndarray:
    """Curvature of the objective in every row, the mean over its scores; ndarray of shape (n_samples,)."""
    return smooth.objective.curvature(torch.from_numpy(scores)).numpy().reshape(len(scores), -1).mean(axis=1)


def _counting(weights: np.ndarray) -> float:
    """Number of rows of equal weight that tell as much as rows with these weights."""
    return float(weights.sum() ** 2 / (weights @ weights))


def sums_of_cells(lengths: np.ndarray, n_components: int) -> np.ndarray:
    """Columns of models, of which one sums the slopes of a component over the cells that it was split into.

    Parameters
    ----------
    lengths : ndarray of shape (n_directions, n_slopes)
        Slopes as combinations of the directions, component by component.
    n_components : int

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
    by_row: np.ndarray,
    slopes: np.ndarray,
    of_folds: list[np.ndarray] | None,
    by_fold: list[np.ndarray],
    rng: np.random.Generator,
    ridge: np.ndarray | None,
) -> tuple[tuple[np.ndarray, list[np.ndarray]], np.ndarray]:
    """Directions of all rows, and of those that are not in a fold, for one fold after the other.

    Those without a fold are of the same slopes, or of slopes of their own, one ndarray for every fold. Also returns the
    slopes as combinations of the directions; ndarray of shape (n_directions, n_slopes).
    """
    model, data = _linear(problem).of_one_score, problem.data

    def hessian(rows: np.ndarray) -> np.ndarray:
        return curvature_table(model, data.at(rows), by_row[rows], rng)

    def pulled(rows: np.ndarray, slopes: np.ndarray = slopes) -> np.ndarray:
        return pulled_back(model, data.at(rows), _columns(slopes[rows]))

    tables, gradients = list(map(hessian, by_fold)), list(map(pulled, by_fold))
    own = np.zeros(model.n_params) if ridge is None else ridge
    curvature, gradient = Curvature.of(model, reduce(np.add, tables) + np.diag(own)), reduce(np.add, gradients)
    share = 1 - 1 / len(by_fold)  # of the rows, and so of the sums over them
    _, sizes, right = np.linalg.svd(curvature.descents(gradient), full_matrices=False)
    kept = min(_MOST, int((sizes > _RANK * sizes.max(initial=0.0)).sum()))
    # the same combinations of slopes in every fold, so that a direction means the same there
    combined = right[:kept].T / sizes[:kept]
    found = []
    for number in range(len(by_fold)):
        of_parts = gradients if of_folds is None else [pulled(rows, of_folds[number]) for rows in by_fold]
        table, slope = (reduce(np.add, every[:number] + every[number + 1 :]) for every in (tables, of_parts))
        found.append(_coefficients(model, Curvature.of(model, table + share * np.diag(own)), slope @ combined))
    lengths = sizes[:kept, None] * right[:kept]
    return (_coefficients(model, curvature, gradient @ combined), found), lengths


def _spanned(
    problem: Problem, folds: np.ndarray, models: CrossFittedModels
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """The models of all rows in orthonormal columns and those without a fold likewise; the cross-fitted features."""
    model, data = _linear(problem), problem.data
    # there may be fewer features than directions
    inverses = [np.linalg.pinv(np.linalg.qr(whole[: data.n_features])[1]) for whole in models.whole]
    tables = [
        [own @ inverse for own, inverse in zip(each, inverses, strict=True)] for each in (models.whole, *models.by_fold)
    ]
    features = np.empty((data.n_samples, tables[0][0].shape[1]))
    for unseen, own in zip(_by_fold(folds), tables[1:], strict=True):
        features[unseen] = model.column_scores(own, data.at(unseen))
    return tables, features


def _columns(matrix: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)) for column in matrix.T]


def _coefficients(model: LinearModel, curvature: Curvature, gradients: np.ndarray) -> np.ndarray:
    """Parameters of ``H^-1`` times gradients, with the intercepts at which the features are centred."""
    coefficients = curvature.coefficients(curvature.descents(gradients))
    return np.vstack([coefficients, *([-curvature.centre @ coefficients] if model.fit_intercept else [])])
