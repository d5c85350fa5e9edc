"""Points: the values of a problem at one ``z``, and gradients of their combinations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self, cast

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.models import Model, Pullback
from fairconstrained.objectives import BoundObjective, Loss
from fairconstrained.views import RowLosses

__all__ = [
    "Anchor",
    "AnchoredPoint",
    "Point",
    "PointSource",
    "RowLossPoint",
    "RowLossTerms",
    "ScorePoint",
    "objective_gradient",
    "worst_gradient",
]


class Posed(Protocol):
    """What points need of a `fairconstrained.problem.Problem`; see there."""

    @property
    def model(self) -> Model: ...
    @property
    def objective(self) -> BoundObjective: ...
    @property
    def constraints(self) -> tuple[BoundConstraint, ...]: ...
    @property
    def data(self) -> FairData: ...
    @property
    def n_params(self) -> int: ...
    @property
    def aux_slices(self) -> tuple[slice, ...]: ...


class Point(Protocol):
    """A problem's values at one ``z``."""

    constraints: np.ndarray

    @property
    def objective(self) -> float:
        """Objective with its penalty."""

    @property
    def scores(self) -> np.ndarray:
        """Scores of all rows; ndarray of shape (n_samples,)."""

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient in ``z`` of ``objective * f + multipliers @ constraints``; ndarray of shape (n_variables,)."""


def objective_gradient(point: Point) -> np.ndarray:
    """Gradient of the objective alone; ndarray of shape (n_variables,)."""
    return point.gradient(1.0, np.zeros_like(point.constraints))


def worst_gradient(point: Point) -> np.ndarray:
    """Gradient of the largest constraint, zero where there is none; ndarray of shape (n_variables,)."""
    chosen = np.zeros_like(point.constraints)
    if chosen.size:
        chosen[point.constraints.argmax()] = 1.0
    return point.gradient(0.0, chosen)


class PointSource(Protocol):
    """Anything that has points: a full-batch view, a mini-batch, a convex model of the problem."""

    def at(self, z: np.ndarray) -> Point:
        """The point at ``z``, an ndarray of shape (n_variables,)."""


class ScorePoint:
    """Values of some functions of (scores, aux), and gradients of their combinations."""

    def __init__(self, problem: Posed, z: np.ndarray, objective: str, constraint: str) -> None:
        """``objective`` and ``constraint`` name the method of the terms that is evaluated."""
        n_params = problem.n_params
        self._model, self._params = problem.model, z[:n_params]
        scores, self._pullback = problem.model.forward(self._params, problem.data)
        self._scores = scores.requires_grad_()
        self._aux = torch.from_numpy(z[n_params:].copy()).requires_grad_()
        with torch.enable_grad():
            self._f = getattr(problem.objective, objective)(self._scores, self._aux[:0])
            parts = [
                getattr(term, constraint)(self._scores, self._aux[part.start - n_params : part.stop - n_params])
                for term, part in zip(problem.constraints, problem.aux_slices, strict=True)
            ]
            self._c = torch.cat(parts) if parts else self._aux[:0]
        self.loss = self._f.item()
        self.objective = self.loss + problem.model.penalty(self._params)[0]
        self.constraints: np.ndarray = self._c.detach().numpy()

    @property
    def scores(self) -> np.ndarray:
        """Scores at this point; ndarray of shape (n_samples,)."""
        return self._scores.detach().numpy()

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """See `Point.gradient`."""
        gradient = self.loss_gradient(objective, multipliers)
        if objective:
            gradient[: self._params.size] += objective * self._model.penalty(self._params)[1]
        return gradient

    def loss_gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """`gradient` without the penalty, which is a function of the parameters and not of the scores."""
        combination = objective * self._f.sum() + torch.from_numpy(multipliers) @ self._c
        if not combination.requires_grad:  # constant, such as the concave part of a convex objective may be
            return np.zeros(self._params.size + self._aux.numel())
        d_scores, d_aux = torch.autograd.grad(
            combination, (self._scores, self._aux), retain_graph=True, materialize_grads=True
        )
        return np.concatenate([self._pullback(d_scores), d_aux.numpy()])


class RowLossTerms(NamedTuple):
    """Which losses of the rows the terms of a problem are linear in.

    Attributes
    ----------
    losses : tuple of Loss
        Each once, the objective's first.
    places : tuple of int
        Which of them is that of every constraint.
    """

    losses: tuple[Loss, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, losses: Sequence[Loss]) -> Self:
        """From the loss of every term, the objective's first."""
        distinct = tuple(dict.fromkeys(losses))
        return cls(distinct, tuple(distinct.index(loss) for loss in losses[1:]))


class RowLossPoint:
    """The point of a problem whose terms are linear in losses of the rows."""

    def __init__(self, problem: Posed, z: np.ndarray, terms: RowLossTerms, forward: tuple[Tensor, Pullback]) -> None:
        n_params, y = problem.n_params, problem.data.y
        self._problem, self._terms, self._params = problem, terms, z[:n_params]
        self._scores, self._pullback = forward
        losses = [loss.of(self._scores, y).numpy() for loss in terms.losses]
        self.loss = float(cast(RowLosses, problem.objective).of_losses(losses[0], z[:0])[0])
        parts, first = [], n_params
        for term, place in zip(problem.constraints, terms.places, strict=True):
            end = first + term.n_aux
            parts.append(cast(RowLosses, term).of_losses(losses[place], z[first:end]))
            first = end
        self._sizes, self._n_other = [part.size for part in parts], z.size - first
        self.constraints: np.ndarray = parts[0] if len(parts) == 1 else np.concatenate([np.empty(0), *parts])

    @property
    def objective(self) -> float:
        """Loss and penalty."""
        return self.loss + self._problem.model.penalty(self._params)[0]

    @property
    def scores(self) -> np.ndarray:
        """Scores at this point; ndarray of shape (n_samples,)."""
        return self._scores.numpy()

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """See `Point.gradient`."""
        problem, losses = self._problem, self._terms.losses
        weights: list[np.ndarray | None] = [None] * len(losses)  # of those that the combination has
        if objective:
            weights[0] = cast(RowLosses, problem.objective).row_weights(np.array([objective]))[0]
        slopes_aux, first = [], 0
        for term, place, size in zip(problem.constraints, self._terms.places, self._sizes, strict=True):
            chosen = multipliers[first : first + size]
            first += size
            aux = np.zeros(term.n_aux)
            if chosen.any():
                own, aux = cast(RowLosses, term).row_weights(chosen)
                weights[place] = own if weights[place] is None else weights[place] + own
            if aux.size:
                slopes_aux.append(aux)
        if self._n_other:  # variables of constraints that this problem is without
            slopes_aux.append(np.zeros(self._n_other))
        gradient = self._pullback(self._slopes(weights))
        if objective:
            gradient += objective * problem.model.penalty(self._params)[1]
        return np.concatenate([gradient, *slopes_aux]) if slopes_aux else gradient

    def _slopes(self, weights: Sequence[np.ndarray | None]) -> Tensor:
        """Of the losses' sum with these weights of the rows; Tensor of shape (n_samples,)."""
        scores, y = self._scores, self._problem.data.y
        slopes = [
            loss.slope(scores, y) * torch.from_numpy(own)
            for loss, own in zip(self._terms.losses, weights, strict=True)
            if own is not None
        ]
        if not slopes:
            return torch.zeros_like(scores)
        return slopes[0] if len(slopes) == 1 else torch.stack(slopes).sum(dim=0)


class Anchor(NamedTuple):
    """A term of the objective that holds ``z`` near a centre: ``weight / 2 * |z - center|^2``.

    Attributes
    ----------
    center : ndarray of shape (n_variables,)
    weight : float
        At least 0.
    """

    center: np.ndarray
    weight: float


class AnchoredPoint:
    """A point whose objective has an `Anchor` besides."""

    def __init__(self, point: ScorePoint | RowLossPoint, z: np.ndarray, anchor: Anchor) -> None:
        self._point, self._away, self._weight = point, z - anchor.center, anchor.weight
        self.constraints = point.constraints

    @property
    def objective(self) -> float:
        """Objective with its penalty and the anchor."""
        return self._point.objective + self._weight / 2 * float(self._away @ self._away)

    @property
    def scores(self) -> np.ndarray:
        """See `Point.scores`."""
        return self._point.scores

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """See `Point.gradient`."""
        gradient = self._point.gradient(objective, multipliers)
        if objective:
            gradient += objective * self._weight * self._away
        return gradient
