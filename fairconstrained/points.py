"""Points: the values of a problem at one ``z``, and gradients of their combinations."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from fairconstrained.models import ParametricModel, Pullback
from fairconstrained.terms import TermsPoint

__all__ = [
    "Anchor",
    "AnchoredPoint",
    "ChangedPoint",
    "KeptPoint",
    "ModelPoint",
    "Point",
    "PointSource",
    "largest_violation",
    "objective_gradient",
    "worst_gradient",
]


class Point(Protocol):
    """A problem's values at one ``z``."""

    @property
    def constraints(self) -> np.ndarray:
        """Constraint components; ndarray of shape (n_components,)."""

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


def largest_violation(constraints: np.ndarray) -> float:
    """The largest of the constraints, or zero if all hold."""
    return float(constraints.max(initial=0.0))


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


class ModelPoint:
    """The terms at the scores of a parametric model, with its penalty, and their gradients in the parameters.

    Parameters
    ----------
    model : ParametricModel
    params : ndarray of shape (n_params,)
    terms : TermsPoint
        The terms at the model's scores.
    pullback : callable
        Pullback of the model at ``params``, see `ParametricModel.forward`.
    """

    def __init__(self, model: ParametricModel, params: np.ndarray, terms: TermsPoint, pullback: Pullback) -> None:
        self._model, self._params, self._terms, self._pullback = model, params, terms, pullback

    @property
    def loss(self) -> float:
        """Loss without the penalty."""
        return self._terms.loss

    @property
    def constraints(self) -> np.ndarray:
        """Constraint components; ndarray of shape (n_components,)."""
        return self._terms.constraints

    @cached_property
    def objective(self) -> float:
        """Loss and penalty."""
        return self.loss + self._model.penalty(self._params)[0]

    @property
    def scores(self) -> np.ndarray:
        """Scores at this point; ndarray of shape (n_samples,)."""
        return self._terms.scores

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of a combination, as in `Point.gradient`."""
        gradient = self.loss_gradient(objective, multipliers)
        if objective:
            gradient[: self._params.size] += objective * self._model.penalty(self._params)[1]
        return gradient

    def loss_gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """`gradient` without the penalty, which is a function of the parameters and not of the scores."""
        d_scores, d_aux = self._terms.slopes(objective, multipliers)
        d_params = self._pullback(d_scores)
        return np.concatenate([d_params, d_aux]) if d_aux.size else d_params


class Anchor(NamedTuple):
    """A term of the objective that holds ``z`` near a centre: ``weight / 2 * |z - center|^2``.

    Attributes
    ----------
    center : ndarray of shape (n_variables,)
    weight : float
        Factor of the term, at least 0.
    """

    center: np.ndarray
    weight: float


class KeptPoint:
    """A point whose values are kept without what its gradient needs, some six numbers for every row.

    Parameters
    ----------
    source : PointSource
        Gives the point again where a gradient is asked for after all.
    z : ndarray of shape (n_variables,)
    """

    def __init__(self, source: PointSource, z: np.ndarray) -> None:
        point = source.at(z)
        self.objective, self.constraints, self.scores = point.objective, point.constraints, point.scores
        self._source, self._z = source, z.copy()

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of a combination, as in `Point.gradient`."""
        return self._source.at(self._z).gradient(objective, multipliers)


class ChangedPoint:
    """A point whose values are made of those of another one."""

    def __init__(self, point: Point) -> None:
        self._point, self.constraints = point, point.constraints

    @property
    def scores(self) -> np.ndarray:
        """Scores of all rows; ndarray of shape (n_samples,)."""
        return self._point.scores


class AnchoredPoint(ChangedPoint):
    """A point whose objective has an `Anchor` besides."""

    def __init__(self, point: Point, z: np.ndarray, anchor: Anchor) -> None:
        super().__init__(point)
        self._away, self._weight = z - anchor.center, anchor.weight

    @property
    def objective(self) -> float:
        """Objective with its penalty and the anchor."""
        return self._point.objective + self._weight / 2 * float(self._away @ self._away)

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        """Gradient of a combination, as in `Point.gradient`."""
        gradient = self._point.gradient(objective, multipliers)
        if objective:
            gradient += objective * self._weight * self._away
        return gradient
