"""Unconstrained linear models of several parts of the rows, fitted at once: every pass over the features serves all."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch

from fairconstrained.objectives import BoundObjective
from fairconstrained.problem import Problem
from fairconstrained.solvers._linear_losses import LinearLosses
from fairconstrained.solvers._newton_coordinates import NewtonCoordinates, hessian
from fairconstrained.solvers.resuming import Evaluate, saved_minima
from fairconstrained.views import RowLosses

__all__ = ["fitted_at_once", "shares_of_part"]

#: Largest slope in coordinates of curvature 1 at which a model is finished, and most evaluations of it.
_GTOL, _ROUNDS = 1e-3, 200
#: Pairs of steps and slopes that are kept, the share of the promised gain that a step has to keep, and rounding.
_PAIRS, _KEPT, _ROUNDING = 20, 1e-4, 1e-14


def fitted_at_once(problem: Problem, parts: Iterable[np.ndarray | None]) -> tuple[list[np.ndarray], int]:
    r"""Minimise the objective over one part of the rows after the other, in turns that share products with X.

    L-BFGS from zero, in coordinates in which the curvature of the loss at scores of zero is 1. Labels have no part in
    that curvature, so that the model of a part knows nothing of the labels of other rows.

    `has_convex_hessian` is true of the problem, whose constraints are left out. A part has its rows, ascending, or is
    None for all rows. Returns the parameters of every part, and the number of values with gradients, each on all rows.

    References
    ----------
    Böhning, Multinomial logistic regression algorithm, Annals of the Institute of Statistical Mathematics 44 (1992):
    the curvature at zero bounds that of the logistic loss.
    """
    shares = [shares_of_part(problem, rows) for rows in parts]
    losses, pull = LinearLosses(problem, shares), _pull(problem)
    descents = [_Descent(np.zeros(problem.n_params)) for _ in shares]
    active = list(range(len(shares)))

    def evaluate(trials: np.ndarray) -> tuple[float, np.ndarray]:
        """Sum of the active losses, and these one after the other before their gradients, each at its own trial."""
        values, gradients = losses.at(pull.T @ trials.reshape(len(active), -1).T, active)
        return float(values.sum()), np.concatenate([values, (pull @ gradients).T.ravel()])

    def descended(evaluate: Evaluate) -> tuple[np.ndarray, bool]:
        nonlocal active
        for _ in range(_ROUNDS):
            active = [k for k, descent in enumerate(descents) if not descent.is_finished]
            if not active:
                break
            _, told = evaluate(np.concatenate([descents[k].trial for k in active]))
            slopes = told[len(active) :].reshape(len(active), -1)
            for k, value, slope in zip(active, told[: len(active)].tolist(), slopes, strict=True):
                descents[k].see(value, slope)
        return np.concatenate([descent.point for descent in descents]), True

    saved, start = saved_minima(), np.zeros(len(shares) * problem.n_params)
    points, _ = descended(evaluate) if saved is None else saved.minimised({}, evaluate, start, descended)[0]
    return list(points.reshape(len(shares), -1) @ pull), losses.n_evaluations


def shares_of_part(problem: Problem, rows: np.ndarray | None) -> np.ndarray:
    """Weights of all rows in the objective of a part, zero for the others; ndarray of shape (n_samples,)."""
    objective = problem.objective
    if rows is None:
        return cast(RowLosses, objective).row_weights(np.ones(1))[0]
    bare = problem.data.without_features
    shares = np.zeros(problem.data.n_samples)
    of_part = cast(BoundObjective, objective.on(bare.part(rows)))  # type: ignore[attr-defined]
    shares[rows] = cast(RowLosses, of_part).row_weights(np.ones(1))[0]
    return shares


def _pull(problem: Problem) -> np.ndarray:
    """Table from gradients to those in coordinates that suit the curvature at scores of zero.

    The curvature is that with every row's weight in the data. The transposed table leads from the coordinates to the
    parameters.
    """
    row_loss, data = cast(RowLosses, problem.objective).row_loss, problem.data
    unit = float(row_loss.curvature(torch.zeros(1, dtype=torch.float64), data.y[:1])[0])
    coordinates = NewtonCoordinates.of(problem.penalised_coordinates, hessian(problem, unit * data.weights.numpy()))
    return coordinates.pull_of_each(problem.n_params)


@dataclass
class _Descent:
    """L-BFGS that is told the value and the gradient at one trial after the other."""

    #: Where it wants to know them next.
    trial: np.ndarray  # of shape (n_params,)
    #: Best point so far.
    point: np.ndarray = field(init=False)  # of shape (n_params,)
    is_finished: bool = False
    _value: float = np.inf
    _gradient: np.ndarray = field(init=False)
    _step: np.ndarray = field(init=False)
    _pairs: deque[tuple[np.ndarray, np.ndarray]] = field(default_factory=lambda: deque(maxlen=_PAIRS))

    def __post_init__(self) -> None:
        self.point = self.trial
        self._gradient = self._step = np.zeros_like(self.trial)

    def see(self, value: float, gradient: np.ndarray) -> None:
        """Go on from the trial if it is good, or try a shorter step."""
        promised = float(self._gradient @ self._step)
        rounding = _ROUNDING * max(abs(value), 1.0)
        if not value <= self._value + _KEPT * promised + rounding:
            self._step = self._step / 2
            self.is_finished = -promised <= rounding
            self.trial = self.point + self._step
            return
        change = gradient - self._gradient
        if self._step @ change > 0:
            self._pairs.append((self._step, change))
        self.point, self._value, self._gradient = self.trial, value, gradient
        self.is_finished = float(np.abs(gradient).max()) <= _GTOL
        self._step = -self._scaled(gradient)
        self.trial = self.point + self._step

    def _scaled(self, gradient: np.ndarray) -> np.ndarray:
        """The inverse curvature times the gradient (Nocedal, Wright, Algorithm 7.4)."""
        direction, weights = gradient, []
        for step, change in reversed(self._pairs):
            weights.append(step @ direction / (step @ change))
            direction = direction - weights[-1] * change
        if self._pairs:
            step, change = self._pairs[-1]
            direction = direction * (step @ change) / (change @ change)
        for (step, change), weight in zip(self._pairs, reversed(weights), strict=True):
            direction = direction + (weight - change @ direction / (step @ change)) * step
        return direction
