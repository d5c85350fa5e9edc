"""A constrained problem in a few directions, in which every row is seen by models that have not seen it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import torch

from fairconstrained.constraints import on_some_rows
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import MOST_FEATURES, obstacle_to_linear_scores, obstacle_to_many_features
from fairconstrained.solvers._last_of_data import LastOfData
from fairconstrained.solvers.cross_fitted_models import (
    CrossFittedModels,
    cross_fitted_models,
    is_of_linear_classes,
    linear_model,
    rows_by_fold,
)
from fairconstrained.views import Stochastic

__all__ = ["CrossFittedSpan", "evaluations_of"]

#: Columns and cross-fitted features of the models.
_SPANNED = LastOfData()
#: End of the names of bounds that are those of the training rows.
_SEEN = " of training rows"


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
    rows : ndarray of int, or None
        Rows of the problem of all parameters that it is of, ascending; None: all of them.

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
    rows: np.ndarray | None = None

    @staticmethod
    def obstacle(problem: Problem) -> str:
        """Say what the problem lacks, in an empty string if nothing: linear scores, of not too many features."""
        if is_of_linear_classes(problem):
            return obstacle_to_many_features(problem, MOST_FEATURES)
        return obstacle_to_linear_scores(problem, MOST_FEATURES)

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
        return cls._with_models(problem, folds, known or cross_fitted_models(problem, folds, rng))

    @classmethod
    def _with_models(cls, problem: Problem, folds: np.ndarray, models: CrossFittedModels) -> CrossFittedSpan:
        (columns, *by_fold), features = _SPANNED.get(problem.data, (models,), lambda: _spanned(problem, folds, models))
        data, model = replace(problem.data, X=features), linear_model(problem).with_features(features.shape[1])
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
        return replace(self, problem=problem, features=self.features[seen], columns=self.by_fold[fold], rows=seen)

    def needs_no_move(self, problem: Problem) -> bool:
        """Whether the unconstrained model is within the bounds, on the rows of the problem and on rows not seen."""
        if self.models.shrunken is not None:
            return problem.holds(self.models.shrunken.seen) and self.problem.holds(self.models.shrunken.unseen)
        unseen = self.problem.holds(self.problem.scores(self.free))
        return unseen and problem.holds(problem.scores(self.lift(self.free)))

    @cached_property
    def free(self) -> np.ndarray:
        """The unconstrained model as parameters of `problem`; ndarray of shape (n_params,)."""
        tables = [table.copy() for table in linear_model(self.problem).score_columns(np.zeros(self.problem.n_params))]
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
        """The problem in b, and if its solution does not do, the one whose bounds hold on training rows as well.

        ``problem`` is that of all parameters and all rows.
        """
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
        of_training = linear_model(problem).column_scores(self.columns, problem.data)
        if self.rows is not None:  # of few columns, products with all rows take less time than a copy of some rows
            of_training = of_training[self.rows]
            problem = problem.on(problem.data.without_features.part(self.rows))
        features = np.stack([self.features, of_training], axis=1)
        # repeating features, which are replaced, would take longer than all else
        twice = once.without_features.at(np.repeat(np.arange(once.n_samples), 2), weights)
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
        for columns, table in zip(self.columns, linear_model(self.problem).score_columns(params), strict=True):
            size = columns.shape[1]
            lifted.append(columns @ table[:size])
            lifted[-1][-1] += table[size:].sum(axis=0)  # the intercept, if there is one
        return _joined(lifted)


def _joined(tables: list[np.ndarray]) -> np.ndarray:
    """Parameters of the model from those of its scores in columns, by part of the rows."""
    return np.concatenate([table.T.ravel() for table in tables])


def evaluations_of(problem: Problem, reduced: Problem, n_evaluations: int) -> int:
    """Return the number of evaluations of a problem that cost as much as so many of a reduced one."""
    share = reduced.n_params * reduced.data.n_samples / (problem.n_params * problem.data.n_samples)
    return int(np.ceil(n_evaluations * share))


def _spanned(
    problem: Problem, folds: np.ndarray, models: CrossFittedModels
) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """The models of all rows in orthonormal columns and those without a fold likewise; the cross-fitted features."""
    model, data = linear_model(problem), problem.data
    # there may be fewer features than directions
    inverses = [np.linalg.pinv(np.linalg.qr(whole[: data.n_features])[1]) for whole in models.whole]
    tables = [
        [own @ inverse for own, inverse in zip(each, inverses, strict=True)] for each in (models.whole, *models.by_fold)
    ]
    features = np.empty((data.n_samples, tables[0][0].shape[1]))
    for unseen, own in zip(rows_by_fold(folds), tables[1:], strict=True):
        features[unseen] = model.column_scores(own, data.at(unseen))
    return tables, features
