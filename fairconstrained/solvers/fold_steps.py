"""Scores of rows by linear models that have not seen them, one Newton step away from the model of all rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from scipy.optimize import nnls

from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import Curvature, obstacle_to_shared_scores, pulled_back

__all__ = ["has_steps", "scores_without_folds"]

#: Features up to which there is a Hessian for every fold.
_MANY = 1000
#: Components less than this share of ``kappa`` below their bound, or so little, may be active.
_SLACK, _LEAST_SLACK = 0.05, 1e-6
#: Part of the objective up to which a step without bounds would lower it, where none is active: its slope is what the
#: solver has left of it then, and so are the multipliers that balance it.
_LEAST_DESCENT = 1e-6
#: By how much bounds yield, as a share of what their own slopes bring about, where they oppose each other.
_YIELD = 0.01
#: Ridge of the Hessians, for features that a part of the rows lacks.
_RIDGE = 1e-9


def scores_without_folds(problem: Problem, params: np.ndarray, n_folds: int) -> np.ndarray | None:
    r"""Scores of every row by the model without the row's fold, to first order.

    At a solution with active constraints c, their slopes A and multipliers :math:`\lambda`, the solution without the
    rows of a fold is a step :math:`\delta` away, with

    .. math:: \begin{pmatrix} H & A \\ A^T & -\epsilon D \end{pmatrix} \begin{pmatrix} \delta \\ \mu \end{pmatrix}
              = \begin{pmatrix} g_{\mathrm{all}} - g \\ c_{\mathrm{all}} - c \end{pmatrix},

    where the slope g of the Lagrangian, its Hessian H and the values c are those of the other rows at the solution for
    all rows, whose own are :math:`g_{\mathrm{all}}` and :math:`c_{\mathrm{all}}`, and D is the diagonal of
    :math:`A^T H^{-1} A`. Without the last block, bounds that oppose each other, as those of the losses of two groups do
    near the least bound that both can keep, would ask for very large steps. The multipliers are those that
    balance the slope of the objective best, in the units of its curvature. Where a search in few directions has ended
    before they balance it, they are smaller than those of a solution, as the influence of single rows is.

    Parameters
    ----------
    problem : Problem
    params : ndarray of shape (n_params,)
        The solution for all rows.
    n_folds : int
        Number of folds.

    Returns
    -------
    scores : ndarray of shape (n_samples,) or None
        None for other problems than those of means of smooth losses of one linear score, and where steps leave an
        active component of the other rows further from its value on all rows than it was before: slopes at the solution
        do not tell where so long a step leads.

    References
    ----------
    Nocedal, Wright, Numerical Optimization, 2006: equation 18.6, the step. Rad, Maleki, A scalable estimate of the
    out-of-sample prediction error via approximate leave-one-out cross-validation, Journal of the Royal Statistical
    Society B 82(4), 2020: steps from the fit to all rows in place of other fits.
    """
    if not has_steps(problem):
        return None
    scores = problem.scores(params)
    whole = _Rows.of(problem, scores)
    solution, folds = _solution(problem, whole, params, scores), problem.data.folds(n_folds)
    others = [np.flatnonzero(folds != fold) for fold in range(n_folds)]
    rests = [whole.at(rows) for rows in others]
    model: Any = problem.model
    aims, active = whole.values()[solution.active], solution.active
    missing = [aims - rest.values()[active] for rest in rests]
    steps = _steps(problem, whole, solution, others, rests, missing)
    moved = scores[:, None] + model.column_scores([steps], problem.data)
    if active.size:
        ends = (rest.values_at(moved[rows, fold]) for fold, (rows, rest) in enumerate(zip(others, rests, strict=True)))
        left = [aims - end[active] for end in ends]
        if not (np.abs(left).max(axis=0) <= np.abs(missing).max(axis=0)).all():  # also where they are NaN
            return None
    return moved[np.arange(scores.size), folds]


def has_steps(problem: Problem) -> bool:
    """Whether all terms are means of smooth losses of one linear score, of not too many features."""
    if problem.domain is not None or not problem.constraints or not problem.works_on_other_rows:
        return False
    losses = problem.row_losses
    smooth = losses is not None and all(loss.is_smooth_and_convex for loss in losses.losses)
    return smooth and not any(c.n_aux for c in problem.constraints) and not obstacle_to_shared_scores(problem, _MANY)


@dataclass(frozen=True)
class _Rows:
    """Terms on some rows, with the losses of these rows, their slopes and second derivatives, by term."""

    problem: Problem
    losses: list[np.ndarray]
    slopes: list[np.ndarray]
    curvatures: list[np.ndarray]

    @classmethod
    def of(cls, problem: Problem, scores: np.ndarray) -> Self:
        """All rows of a problem; terms need no features."""
        bare = problem.on(problem.data.without_features)
        at, y = torch.from_numpy(scores), problem.data.y
        terms: list[Any] = [bare.objective, *bare.constraints]
        losses = [term.row_loss for term in terms]
        functions = [(loss.of, loss.slope, loss.second_derivative) for loss in losses]
        found = [[function(at, y).numpy() for function in of_term] for of_term in functions]
        return cls(bare, *map(list, zip(*found, strict=True)))

    @property
    def size(self) -> int:
        """Number of components of the constraints."""
        return len(self.problem.component_names)

    def at(self, rows: np.ndarray) -> Self:
        """The terms on some of the rows."""
        tables = ([column[rows] for column in table] for table in (self.losses, self.slopes, self.curvatures))
        return type(self)(self.problem.on(self.problem.data.part(rows)), *tables)

    def values(self) -> np.ndarray:
        """Components of the constraints; ndarray of shape (n_components,)."""
        return self._components(self.losses[1:])

    def values_at(self, scores: np.ndarray) -> np.ndarray:
        """Components of the constraints at other scores of the rows; ndarray of shape (n_components,)."""
        terms: Any = self.problem.constraints
        y, at = self.problem.data.y, torch.from_numpy(scores)
        return self._components([c.row_loss.of(at, y).numpy() for c in terms])

    def _components(self, losses: Sequence[np.ndarray]) -> np.ndarray:
        terms: Any = self.problem.constraints
        return np.concatenate([c.of_losses(own, np.empty(0)) for c, own in zip(terms, losses, strict=True)])

    def slope(self, multipliers: np.ndarray) -> np.ndarray:
        """Slopes of the Lagrangian in the scores; ndarray of shape (n_samples,)."""
        return np.sum([w * own for w, own in zip(self._weights(multipliers), self.slopes, strict=True)], axis=0)

    def curvature(self, multipliers: np.ndarray) -> np.ndarray:
        """Second derivatives of the Lagrangian in the scores; ndarray of shape (n_samples,)."""
        return np.sum([w * own for w, own in zip(self._weights(multipliers), self.curvatures, strict=True)], axis=0)

    def _weights(self, multipliers: np.ndarray) -> list[np.ndarray]:
        """Weights of the rows in the Lagrangian, by term."""
        objective: Any = self.problem.objective
        constraints: Any = self.problem.constraints
        ends = np.cumsum([len(c.component_names) for c in constraints])[:-1]
        weights = [c.row_weights(own)[0] for c, own in zip(constraints, np.split(multipliers, ends), strict=True)]
        return [objective.row_weights(np.ones(1))[0], *weights]


class _Solution(NamedTuple):
    """Active components, multipliers of all components, and slopes of the active ones in the parameters."""

    active: np.ndarray
    multipliers: np.ndarray
    normals: np.ndarray


def _solution(problem: Problem, whole: _Rows, params: np.ndarray, scores: np.ndarray) -> _Solution:
    """The multipliers that balance the slope of the objective best, and the components that they are of."""
    model: Any = problem.model
    slack = np.repeat(
        [_SLACK * c.kappa * c.scale + _LEAST_SLACK for c in problem.constraints],
        [len(c.component_names) for c in problem.constraints],
    )
    active, none = np.flatnonzero(whole.values() > -slack), np.zeros(whole.size)
    free = whole.slope(none)
    slopes = [free, *(whole.slope(unit) - free for unit in np.eye(whole.size)[active])]
    gradients = pulled_back(model, problem.data, map(torch.from_numpy, slopes))
    gradients[:, 0] += model.penalty(params)[1]
    curvature = Curvature.of(model, model.curvature(problem.data, whole.curvature(none)))
    lengths = curvature.descents(gradients)
    descent = lengths[:, 0] @ lengths[:, 0] / 2
    is_bound = active.size and descent > _LEAST_DESCENT * abs(problem.objective_at(params, scores))
    found = nnls(lengths[:, 1:], -lengths[:, 0])[0] if is_bound else np.zeros(active.size)
    multipliers = none
    multipliers[active] = found
    return _Solution(active[found > 0], multipliers, gradients[:, 1:][:, found > 0])


def _steps(
    problem: Problem,
    whole: _Rows,
    solution: _Solution,
    others: Sequence[np.ndarray],
    rests: Sequence[_Rows],
    missing: Sequence[np.ndarray],
) -> np.ndarray:
    """Steps to the solutions without one fold after the other; ndarray of shape (n_params, n_folds).

    ``missing`` is what the active components of the other rows have to rise by, for one fold after the other.
    """
    model: Any = problem.model
    data, multipliers, n_folds = problem.data, solution.multipliers, len(rests)
    slopes = np.zeros((n_folds + 1, data.n_samples))
    slopes[0], by_row = whole.slope(multipliers), whole.curvature(multipliers)
    for own, rows, rest in zip(slopes[1:], others, rests, strict=True):
        own[rows] = rest.slope(multipliers)
    gradients = pulled_back(model, data, map(torch.from_numpy, slopes))
    parts = [np.delete(np.arange(data.n_samples), rows) for rows in others]
    hessians = [_hessian(model, data.at(rows), by_row[rows]) for rows in parts]
    total, size = np.sum(hessians, axis=0), model.n_params
    penalty = np.where(np.arange(size) < model.n_features, model.alpha, 0.0)
    system = np.zeros((size + solution.active.size, size + solution.active.size))
    system[:size, size:], system[size:, :size] = solution.normals, solution.normals.T
    reach = np.sum(solution.normals * np.linalg.solve(_ridged(total + np.diag(penalty)), solution.normals), axis=0)
    system[size:, size:] = -np.diag(_YIELD * np.abs(reach))
    steps = []
    for fold, rise in enumerate(missing):
        # folds have the same share of every group and label
        hessian = (total - hessians[fold]) * (n_folds / (n_folds - 1)) + np.diag(penalty)
        system[:size, :size] = _ridged(hessian)
        step = np.linalg.solve(system, np.append(gradients[:, 0] - gradients[:, fold + 1], rise))
        steps.append(step[:size])
    return np.column_stack(steps)


def _ridged(hessian: np.ndarray) -> np.ndarray:
    return hessian + np.diag(_RIDGE * (1 + np.abs(hessian.diagonal())))


def _hessian(model: Any, data: Any, by_row: np.ndarray) -> np.ndarray:
    """Hessian of a function with these second derivatives in the scores, of either sign."""
    table = model.curvature(data, np.maximum(by_row, 0.0))
    return table - model.curvature(data, np.maximum(-by_row, 0.0)) if (by_row < 0).any() else table
