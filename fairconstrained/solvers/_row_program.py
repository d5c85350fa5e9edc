"""Convex programs whose terms are means of convex losses of the rows of a linear model, with their Newton systems."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import scipy.sparse as sp
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Loss, RoundedCorner
from fairconstrained.problem import Problem
from fairconstrained.solvers._directions import obstacle_to_shared_scores
from fairconstrained.views import RowLosses

__all__ = ["Factor", "Minimum", "RowProgram", "Values", "minimised", "obstacle_to_rows"]

#: Diagonal that is added to a scaled Hessian, and its factor where that is not enough to make it definite.
_RIDGE, _MORE = 1e-13, 100.0
#: Steps of a minimisation, halvings of a step, and the share of the promised decrease that a step has to bring.
_STEPS, _HALVINGS, _ARMIJO = 100, 40, 1e-4


def obstacle_to_rows(problem: Problem) -> str:
    """Need of the method that a problem does not meet; empty where there is none."""
    if linear := obstacle_to_shared_scores(problem):
        return linear
    terms = [_minimised_term(problem), *problem.constraints]
    if not all(isinstance(term, RowLosses) and _is_convex(term.row_loss) for term in terms):
        return "means of convex losses such as the log loss or the hinge, both minimised and bounded"
    if any(c.n_aux or _rows_of(c).data.min(initial=0.0) < 0 for c in problem.constraints):
        return "bounds on means of losses from above (rule='ceiling'); differences of losses are not convex"
    return ""


def _minimised_term(problem: Problem) -> Any:
    """The objective, or the means of which it is the largest."""
    means = problem.objective.largest_of
    return problem.objective if means is None else means


def _is_convex(loss: Loss) -> bool:
    return loss.is_smooth_and_convex or loss.has_corner


def _rows_of(term: Any) -> Any:
    """Weights of the rows in every component; CSR array of shape (n_components, n_samples)."""
    n_components = term.of_losses(np.zeros(term.data.n_samples), np.empty(0)).size
    rows = [sp.csr_array(term.row_weights(unit)[0][None, :]) for unit in np.eye(n_components)]
    return sp.csr_array(sp.vstack(rows)) if rows else sp.csr_array((0, term.data.n_samples))


class _Part(NamedTuple):
    """Terms of one loss."""

    loss: Loss
    #: Numbers of the bounded means of this loss.
    own: np.ndarray  # of int
    #: Weights of the rows in these means.
    rows: Any  # csr_array of shape (n_own, n_samples)


@dataclass(frozen=True, eq=False)
class RowProgram:
    r"""Minimise a combination of a mean loss, a penalty and a level, subject to bounds on other mean losses.

    .. math:: \min_{w, t} \; \phi \, \langle a, \ell(X w) \rangle + \pi(w) + \tau t \quad \text{s.t.} \quad
              \langle r_j, \ell(X w) \rangle + \theta \pi(w) - b_j - \tau t \le 0

    with the penalty :math:`\pi(w) = \frac{\alpha}{2} \|w\|^2` and :math:`a, r_j \ge 0`.
    """

    model: LinearModel
    data: FairData
    #: The first one has the loss of the objective.
    parts: tuple[_Part, ...]
    #: The weights a.
    base: np.ndarray  # of shape (n_samples,)
    #: The bounds b.
    limits: np.ndarray  # of shape (n_means,)
    #: Names of the bounded means.
    names: tuple[str, ...]
    #: The factor :math:`\phi`, 1 or 0.
    objective: float = 1.0
    #: Whether :math:`\tau` is 1 and the level t a variable; otherwise it is 0.
    has_level: bool = False
    #: The factor :math:`\theta`, 1 or 0.
    share: float = 0.0

    @classmethod
    def of(cls, problem: Problem) -> RowProgram:
        """Return the program of a problem in the method's form, see `obstacle_to_rows`."""
        data, minimised = problem.data, _minimised_term(problem)
        is_largest = minimised is not problem.objective
        terms: list[Any] = [minimised] if is_largest else list(problem.constraints)
        nothing = np.zeros(data.n_samples)
        constants = [term.of_losses(nothing, np.empty(0)) for term in terms]
        losses = [term.row_loss for term, values in zip(terms, constants, strict=True) for _ in values]
        rows = sp.csr_array(sp.vstack([sp.csr_array((0, data.n_samples)), *map(_rows_of, terms)]))
        parts = []
        for known in dict.fromkeys([minimised.row_loss, *losses]):
            own = np.flatnonzero([loss == known for loss in losses])
            parts.append(_Part(known, own, rows[own]))
        mean = data.weights.numpy() if is_largest else minimised.row_weights(np.ones(1))[0]
        return cls(
            cast(LinearModel, problem.model),
            data,
            tuple(parts),
            mean,
            -np.concatenate([np.empty(0), *constants]),
            tuple(name for term in terms for name in term.component_names),
            objective=0.0 if is_largest else 1.0,
            has_level=is_largest,
        )

    @property
    def n_means(self) -> int:
        """Number of bounded means."""
        return self.limits.size

    def at(self, params: np.ndarray, duals: Sequence[Tensor] | None = None) -> Values:
        """Values at some parameters; the duals are the slopes of the losses unless they are given."""
        return Values(self, params, duals)

    @property
    def has_corners(self) -> bool:
        """Whether some losses have corners, so that Newton steps need the program `rounded`."""
        return any(part.loss.has_corner for part in self.parts)

    def rounded(self, width: float) -> RowProgram:
        """Return the program with rounded corners, whose losses are nowhere below those of this one."""
        parts = [p._replace(loss=RoundedCorner(p.loss, width)) if p.loss.has_corner else p for p in self.parts]
        return replace(self, parts=tuple(parts))

    def levelled(self, alpha: float | None = None) -> RowProgram:
        """Return the program of the least level that the bounds can be exceeded by, with another penalty if given."""
        model = self.model if alpha is None else replace(self.model, alpha=alpha)
        return replace(self, model=model, objective=0.0, has_level=True, share=0.0)


class Values:
    """Values of a program at parameters, and derivatives of their combinations.

    Attributes
    ----------
    params : ndarray of shape (n_params,)
    scores : Tensor of shape (n_samples,)
    mean : float
        The mean loss.
    penalty : float
    means : ndarray of shape (n_means,)
        Bounded means less their bounds, with the penalty where it belongs to them.
    duals : list of Tensor of shape (n_samples,)
        Slopes of the rows in the losses of every part, as variables of Newton steps; at a minimum those of the losses.
    """

    def __init__(self, program: RowProgram, params: np.ndarray, duals: Sequence[Tensor] | None = None) -> None:
        self._program, self.params = program, params
        self.scores, _ = program.model.forward(params, program.data)
        self.penalty, self._of_penalty = program.model.penalty(params)
        losses = [part.loss.of(self.scores, program.data.y).numpy() for part in program.parts]
        self.mean = float(program.base @ losses[0])
        self.means = program.share * self.penalty - program.limits
        for part, values in zip(program.parts, losses, strict=True):
            self.means[part.own] += part.rows @ values
        if duals is not None:
            self.duals = list(duals)

    @cached_property
    def duals(self) -> list[Tensor]:
        """Slopes of the losses, unless others are given."""
        return self._slopes

    @cached_property
    def _slopes(self) -> list[Tensor]:
        program = self._program
        return [part.loss.slope(self.scores, program.data.y) for part in program.parts]

    @cached_property
    def _curvatures(self) -> list[Tensor]:
        program, parts = self._program, zip(self._program.parts, self.duals, strict=True)
        return [part.loss.newton_curvature(self.scores, program.data.y, duals) for part, duals in parts]

    def moved(self, step: np.ndarray, length: float) -> Values:
        """Values after a part of a Newton step of the parameters, with that of the duals that goes with it."""
        program, moved = self._program, self._program.at(self.params + length * step)
        change, y = moved.scores - self.scores, program.data.y
        parts = zip(program.parts, self.duals, self._slopes, self._curvatures, strict=True)
        moved.duals = [
            part.loss.admissible(duals + length * (slopes - duals) + curvatures * change, y)
            for part, duals, slopes, curvatures in parts
        ]
        return moved

    def value(self, objective: float, multipliers: np.ndarray) -> float:
        """The combination of objective and means, with the penalty of the objective."""
        return objective * self.mean + self.penalty + float(multipliers @ self.means)

    def floor(self, objective: float, multipliers: np.ndarray) -> float:
        """The least value of the combination where the duals balance, also of the losses before rounding.

        They balance after a Newton step of full length: what they make of the rows has no slope in the parameters.
        """
        program = self._program
        parts = zip(program.parts, self.duals, self._weights(objective, multipliers), strict=True)
        floors = [w @ part.loss.floor(self.scores, program.data.y, duals).numpy() for part, duals, w in parts]
        penalty = (1 + program.share * multipliers.sum()) * self.penalty
        return float(sum(floors) + penalty - multipliers @ program.limits)

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of `value`; ndarray of shape (n_params,)."""
        slopes = sum(
            weights * own.numpy()
            for weights, own in zip(self._weights(objective, multipliers), self._slopes, strict=True)
        )
        pulled = self._program.model.gradients(self._program.data, np.asarray(slopes)[:, None])[:, 0]
        return pulled + (1 + self._program.share * multipliers.sum()) * self._of_penalty

    def hessian(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Second derivatives of `value`; ndarray of shape (n_params, n_params)."""
        program = self._program
        weights = sum(
            weights * own.numpy()
            for weights, own in zip(self._weights(objective, multipliers), self._curvatures, strict=True)
        )
        hessian = program.model.curvature(program.data, np.asarray(weights))
        features = np.arange(program.model.n_features)
        hessian[features, features] += program.model.alpha * (1 + program.share * multipliers.sum())
        return hessian

    def jacobian(self) -> np.ndarray:
        """Gradients of `means`; ndarray of shape (n_means, n_params)."""
        program = self._program
        jacobian = np.zeros((program.n_means, program.model.n_params))
        for part, slopes in zip(program.parts, self._slopes, strict=True):
            weighted = sp.csc_array(part.rows.multiply(slopes.numpy()[None, :]).T)
            jacobian[part.own] = program.model.gradients(program.data, weighted).T
        return jacobian + program.share * self._of_penalty

    def _weights(self, objective: float, multipliers: np.ndarray) -> list[np.ndarray]:
        """Weights of the rows for every loss."""
        program = self._program
        weights = [part.rows.T @ multipliers[part.own] for part in program.parts]
        weights[0] = weights[0] + objective * program.base
        return weights


class Factor:
    """Cholesky factor of a symmetric matrix, made definite where rounding or a flat direction leaves it singular."""

    def __init__(self, matrix: np.ndarray) -> None:
        diagonal = np.diag(matrix)
        self._scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        scaled, ridge = matrix * np.outer(self._scale, self._scale), _RIDGE
        while True:
            try:
                self._factor = cho_factor(scaled + ridge * np.eye(len(scaled)), check_finite=False)
                return
            except LinAlgError:
                ridge *= _MORE

    def solve(self, right: np.ndarray) -> np.ndarray:
        """Solution for one or several right-hand sides, of shape (size,) or (size, n_sides)."""
        scale = self._scale if right.ndim == 1 else self._scale[:, None]
        return scale * cho_solve(self._factor, scale * right, check_finite=False)


class Minimum(NamedTuple):
    """Where a combination of the terms is least."""

    values: Values
    #: Number that the combination exceeds everywhere, up to rounding.
    lower: float
    #: Evaluations that it took.
    n_evaluations: int


def minimised(start: Values, objective: float, multipliers: np.ndarray, accuracy: float) -> Minimum:
    """Minimise a combination of the terms by Newton's method.

    Parameters
    ----------
    multipliers : ndarray of shape (n_means,)
    accuracy : float
        Promised decrease of a step below which none is taken.
    """
    values, n_evaluations = start, 1
    for _ in range(_STEPS):
        gradient = values.gradient(objective, multipliers)
        step = -Factor(values.hessian(objective, multipliers)).solve(gradient)
        promised = -float(gradient @ step)
        if promised <= accuracy:
            break
        moved, taken = _searched(values, step, objective, multipliers, promised)
        n_evaluations += taken
        if moved is None:
            break
        values = moved
    # the promise is twice the decrease of a quadratic function
    lower = values.moved(step, 1.0).floor(objective, multipliers) - max(promised, 0.0)
    return Minimum(values, lower, n_evaluations + 1)


def _searched(
    values: Values, step: np.ndarray, objective: float, multipliers: np.ndarray, promised: float
) -> tuple[Values | None, int]:
    """The point after a step that is halved until it brings what it promises; None where rounding is in the way."""
    before, length = values.value(objective, multipliers), 1.0
    for taken in range(1, _HALVINGS + 1):
        moved = values.moved(step, length)
        if moved.value(objective, multipliers) <= before - _ARMIJO * length * promised:
            return moved, taken
        length /= 2
    return None, taken
