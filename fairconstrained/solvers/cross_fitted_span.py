"""A constrained problem in a few directions, in which every row is seen by models that have not seen it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch

from fairconstrained.data import FairData
from fairconstrained.models import ClassModel, LinearModel
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import Curvature, constraint_slopes, curvature_table, pulled_back
from fairconstrained.solvers.span import Span, smooth_without_constraints, unconstrained

__all__ = ["CrossFittedModels", "CrossFittedSpan", "is_of_linear_classes"]

#: Directions of the constraints at most, and their lengths relative to the first one below which they are left out.
_MOST, _RANK = 6, 1e-2


class CrossFittedModels(NamedTuple):
    """The unconstrained model and directions, as parameters in columns of ndarrays of shape (n_params, size).

    Attributes
    ----------
    whole : ndarray
        Models fitted to all rows; of several classes, that of every class comes first.
    by_fold : list of ndarray
        Models fitted to the rows that are not in a fold, for one fold after the other.
    n_evaluations : int
        Number of evaluations that they took, in units of all rows.
    """

    whole: np.ndarray
    by_fold: list[np.ndarray]
    n_evaluations: int


@dataclass(frozen=True, eq=False)
class CrossFittedSpan:
    r"""The unconstrained linear model and the directions in which bounds move it, cross-fitted.

    With the unconstrained coefficients :math:`w_0`, their Hessian H and the slopes :math:`r_j` of the bounded
    quantities in the scores :math:`X w_0`, bounds lead to

    .. math:: w = b_0 w_0 + \sum_j b_j d_j, \qquad d_j = H^{-1} X^T r_j,

    to first order (see `Span`). Fitted on the rows that b is then chosen on, both :math:`w_0` and :math:`d_j` know the
    rows by heart: a bound is kept there by less than it takes on new rows. Here the few numbers b are chosen with the
    features :math:`x_i^T w_0^{(k)}` and :math:`x_i^T d_j^{(k)}` of models that were fitted without the fold k of row i,
    as in stacking, and the coefficients of the result are those of all rows, combined by b.

    Attributes
    ----------
    problem : Problem
        Problem in b: the terms are those given, the features are the cross-fitted ones.
    columns : ndarray of shape (n_params, size)
        Parameters of the models of all rows that b combines; their coefficients are orthonormal, so that the penalty of
        b is that of w.
    models : CrossFittedModels

    References
    ----------
    Wolpert, Stacked generalization, Neural Networks 5(2), 1992. Chernozhukov et al., Double/debiased machine learning,
    The Econometrics Journal 21(1), 2018: definition 3.2, cross-fitting.
    """

    problem: Problem
    columns: np.ndarray
    models: CrossFittedModels

    @staticmethod
    def obstacle(problem: Problem) -> str:
        """Say what the problem lacks, in an empty string if nothing: linear scores shared by all groups."""
        return "" if is_of_linear_classes(problem) else Span.obstacle(problem)

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
        model, data = _linear(problem).of_one_score, problem.data
        models = known or _cross_fitted(problem, folds, rng)
        features = np.empty((data.n_samples, models.whole.shape[1]))
        for fold, own in zip(np.unique(folds), models.by_fold, strict=True):
            unseen = np.flatnonzero(folds == fold)
            rest = data.at(unseen)
            features[unseen] = np.column_stack([model.training_scores(params, rest) for params in own.T])
        _, triangle = np.linalg.qr(models.whole[: model.n_features])
        inverse = np.linalg.pinv(triangle)  # there may be fewer features than directions
        features, columns = features @ inverse, models.whole @ inverse
        reduced = _linear(problem).with_features(columns.shape[1])
        return cls(replace(problem, data=replace(data, X=features), model=reduced), columns, models)

    def needs_no_move(self, problem: Problem) -> bool:
        """Whether the unconstrained model is within the bounds, on the rows of the problem and on rows not seen."""
        free = _linear(self.problem).score_columns(np.zeros(self.problem.n_params)).copy()
        whole = self.models.whole[:, : free.shape[1]]
        free[: self.columns.shape[1]] = np.linalg.lstsq(self.columns, whole, rcond=None)[0]
        unseen = self.problem.holds(self.problem.scores(free.T.ravel()))
        return unseen and problem.holds(problem.scores(whole.T.ravel()))

    def lift(self, params: np.ndarray) -> np.ndarray:
        """Parameters of the model of all rows from those of `problem`; ndarray of shape (n_params,)."""
        table, size = _linear(self.problem).score_columns(params), self.columns.shape[1]
        lifted = self.columns @ table[:size]
        lifted[-1] += table[size:].sum(axis=0)  # the intercept, if there is one
        return lifted.T.ravel()


def is_of_linear_classes(problem: Problem) -> bool:
    """Whether there are linear scores of several classes."""
    return isinstance(problem.model, ClassModel) and problem.model.is_linear


def _linear(problem: Problem) -> Any:
    """The model, whose scores are linear: one score of every row, or one of every class."""
    return problem.model


def _cross_fitted(problem: Problem, folds: np.ndarray, rng: np.random.Generator) -> CrossFittedModels:
    model, data = _linear(problem).of_one_score, problem.data
    free, n_evaluations = unconstrained(problem)
    scores = problem.scores(free)
    curvatures = smooth_without_constraints(problem).objective.curvature(torch.from_numpy(scores)).numpy()
    by_row = curvatures.reshape(len(scores), -1).mean(axis=1)
    slopes = np.column_stack([slope.numpy() for slope in constraint_slopes(problem, scores)])
    rows = [np.flatnonzero(folds == fold) for fold in np.unique(folds)]
    tables = [curvature_table(model, data.at(unseen), by_row[unseen], rng) for unseen in rows]
    curvature = Curvature.of(model, reduce(np.add, tables))
    lengths = curvature.descents(pulled_back(model, data, _columns(slopes)))
    _, sizes, right = np.linalg.svd(lengths, full_matrices=False)
    kept = min(_MOST, int((sizes > _RANK * sizes.max(initial=0.0)).sum()))
    # the same combinations of slopes in every fold, so that a direction means the same there
    slopes = slopes @ (right[:kept].T / sizes[:kept])
    columns = _linear(problem).score_columns

    def without(number: int) -> tuple[np.ndarray, int]:
        """The models fitted to the rows that are not in a fold, and the number of evaluations in units of all rows."""
        seen = np.delete(np.arange(data.n_samples), rows[number])
        part = data.part(seen)
        own, n_own = unconstrained(problem.on(part))
        of_part = Curvature.of(model, reduce(np.add, tables[:number] + tables[number + 1 :]))
        found = np.hstack([columns(own), _directions(model, part, of_part, slopes[seen])])
        return found, int(np.ceil(n_own * part.n_samples / data.n_samples))

    by_fold, counts = zip(*map(without, range(len(rows))), strict=True)
    whole = np.hstack([columns(free), _directions(model, data, curvature, slopes)])
    return CrossFittedModels(whole, list(by_fold), n_evaluations + sum(counts))


def _columns(matrix: np.ndarray) -> list[torch.Tensor]:
    return [torch.from_numpy(np.ascontiguousarray(column)) for column in matrix.T]


def _directions(model: LinearModel, data: FairData, curvature: Curvature, slopes: np.ndarray) -> np.ndarray:
    """Parameters of ``H^-1 X' slopes`` with the intercepts at which the features are centred."""
    coefficients = curvature.coefficients(curvature.descents(pulled_back(model, data, _columns(slopes))))
    return np.vstack([coefficients, *([-curvature.centre @ coefficients] if model.fit_intercept else [])])
