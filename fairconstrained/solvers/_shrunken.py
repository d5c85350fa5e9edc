"""Unconstrained linear models of parts of the rows, with the ridge that predicts the left-out rows best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import Curvature
from fairconstrained.solvers._fitted_at_once import shares_of_part
from fairconstrained.solvers._linear_losses import LinearLosses

__all__ = ["Shrunken", "shrunken_of_folds", "unseen_scores"]

#: Ridges that are tried, in multiples of the curvature of every coefficient at scores of zero.
_RIDGES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
#: Newton steps of a model at most, the gain that one has to promise, and how often it is halved.
_STEPS, _GAIN, _HALVED = 20, 1e-7, 10
#: Ridge of every Hessian, for features that a part of the rows lacks.
_LEAST = 1e-9


class Shrunken(NamedTuple):
    """Models with a ridge."""

    #: Model of all rows.
    whole: np.ndarray  # of shape (n_params,)
    #: Models of the rows that are not in a fold, for one fold after the other.
    by_fold: list[np.ndarray]  # of shape (n_params,)
    #: Weights of the squares of the parameters in their objective, beside the penalty of the problem.
    ridge: np.ndarray  # of shape (n_params,)
    #: In units of all rows.
    n_evaluations: int


def shrunken_of_folds(problem: Problem, free: Sequence[np.ndarray], by_fold: Sequence[np.ndarray]) -> Shrunken:
    r"""Fit the models with the ridge of which those without a fold have the least loss in it.

    .. math:: \min_w \; f(X w) + \frac{\alpha}{2} \|w\|^2 + \frac{t}{2} \sum_j h_j w_j^2

    where :math:`h_j` is the curvature of the objective in a coefficient at scores of zero, so that the units of the
    features do not matter. From t = 0 on, larger ones of a grid are tried as long as the loss of the rows that the
    models have not seen falls.

    The problem has no constraints and scores shared by all groups, and it `has_convex_hessian`. ``free`` are the models
    without a ridge: that of all rows, and those without one fold after the other, whose rows are in ``by_fold``.
    """
    model: Any = problem.model
    rows = np.arange(problem.data.n_samples)
    shares = [shares_of_part(problem, None), *(shares_of_part(problem, np.delete(rows, own)) for own in by_fold)]
    losses = LinearLosses(problem, shares)
    unit = np.append(_units(problem, shares[0]), np.zeros(model.n_params - model.n_features))
    params, found = list(free), (list(free), 0 * unit)
    least = _left_out_loss(problem, shares[0], by_fold, params[1:])
    for strength in _RIDGES:
        ridge = strength * unit
        params = [
            _minimum(problem, losses, number, own, ridge, begin)
            for number, (own, begin) in enumerate(zip(shares, params, strict=True))
        ]
        loss = _left_out_loss(problem, shares[0], by_fold, params[1:])
        if loss >= least:
            break
        found, least = (params, ridge), loss
    (whole, *rest), ridge = found
    # values with gradients of all models, each on its part of the rows
    return Shrunken(whole, rest, ridge, int(np.ceil(losses.n_evaluations / len(shares))))


def _units(problem: Problem, shares: np.ndarray) -> np.ndarray:
    """Curvature of the objective in every coefficient at scores of zero; ndarray of shape (n_features,)."""
    objective: Any = problem.objective
    model: Any = problem.model
    zeros = torch.zeros(problem.data.n_samples, dtype=torch.float64)
    by_row = shares * objective.row_loss.second_derivative(zeros, problem.data.y).numpy()
    root = Curvature.of(model, model.curvature(problem.data, by_row)).root
    return np.einsum("ij,ij->i", root, root)


def _minimum(
    problem: Problem, losses: LinearLosses, number: int, shares: np.ndarray, ridge: np.ndarray, params: np.ndarray
) -> np.ndarray:
    """Newton's method from ``params`` for one of the parts."""
    model: Any = problem.model
    objective: Any = problem.objective
    value, gradient = _at(losses, number, ridge, params)
    for _ in range(_STEPS):
        scores = torch.from_numpy(problem.scores(params))
        by_row = shares * objective.row_loss.second_derivative(scores, problem.data.y).numpy()
        table = model.curvature(problem.data, by_row)
        diagonal = ridge + model.penalty(np.ones(model.n_params))[1]
        table[np.diag_indices(model.n_params)] += diagonal + _LEAST * (1 + table.diagonal())
        step = -np.linalg.solve(table, gradient)
        if -gradient @ step <= _GAIN:
            break
        for length in 0.5 ** np.arange(_HALVED):
            other, slope = _at(losses, number, ridge, params + length * step)
            if other < value:
                break
        else:
            break
        params, value, gradient = params + length * step, other, slope
    return params


def _at(losses: LinearLosses, number: int, ridge: np.ndarray, params: np.ndarray) -> tuple[float, np.ndarray]:
    """Objective of a part with the ridge, and its gradient."""
    values, gradients = losses.at(params[:, None], [number])
    return float(values[0] + params @ (ridge * params) / 2), gradients[:, 0] + ridge * params


def unseen_scores(problem: Problem, by_fold: Sequence[np.ndarray], params: Sequence[np.ndarray]) -> np.ndarray:
    """Scores of every row by the model without its fold; ndarray of shape (n_samples,)."""
    scores = np.empty(problem.data.n_samples)
    for rows, own in zip(by_fold, params, strict=True):
        scores[rows] = problem.scores(own)[rows]
    return scores


def _left_out_loss(
    problem: Problem, shares: np.ndarray, by_fold: Sequence[np.ndarray], params: Sequence[np.ndarray]
) -> float:
    """Mean loss of all rows by the models that have not seen them."""
    objective: Any = problem.objective
    scores = torch.from_numpy(unseen_scores(problem, by_fold, params))
    return float(shares @ objective.row_loss.of(scores, problem.data.y).numpy())
