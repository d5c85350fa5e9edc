"""The objective at multiples and shifts of some scores, and where it is least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np
import torch
from scipy.optimize import minimize

from fairconstrained.cells import quotients
from fairconstrained.models import Rescaling
from fairconstrained.objectives import BoundObjective
from fairconstrained.problem import Problem
from fairconstrained.solvers._newton_coordinates import has_convex_losses
from fairconstrained.terms import Terms, TermsPoint
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["PlaneObjective"]

#: When a minimisation stops: well below the gain that is worth a change.
_PRECISELY = {"ftol": 1e-12, "gtol": 1e-9, "maxiter": 200}
#: Most Newton steps, halvings of each, and the promised gain, relative to the objective, of the last one, whose error
#: is about the square of that.
_STEPS, _HALVINGS, _LAST = 20, 5, 1e-6
#: Ridge of a Hessian in multiples of its trace.
_RIDGE = 1e-13


@dataclass(frozen=True, eq=False)
class PlaneObjective:
    r"""Objective with its penalty at the scores :math:`u z + c`, as a function of (u, c)."""

    problem: Problem
    rescaling: Rescaling
    #: The standardised scores z, times the signs of the rescaling.
    standard: np.ndarray  # of shape (n_samples,)
    #: centre and spread: mean and standard deviation with which they are standardised.
    centre: float
    spread: float
    #: Rows that stand for all, and their weights; None: every row that has a weight.
    representatives: tuple[np.ndarray, torch.Tensor] | None = None

    @cached_property
    def of_constants(self) -> PlaneObjective:
        """The objective of constant scores, which are those of u = 0.

        Where it is a mean over rows, those of one group and target have equal losses there, and one stands for all, as
        far as the objective has the same factor for all of them beside the weights of the data.
        """
        data, objective = self.problem.data, self.problem.objective
        if not (isinstance(objective, RowLosses) and isinstance(objective, Stochastic)):
            return self
        given = data.weights.numpy()
        factors = quotients(objective.row_weights(np.ones(1))[0], given).astype(np.float32)  # up to rounding
        # such rows stand together
        columns = (data.codes, data.y.numpy(), self.rescaling.signs, factors)
        starts = np.append(0, 1 + np.flatnonzero(np.any([column[1:] != column[:-1] for column in columns], axis=0)))
        weights = torch.from_numpy(np.add.reduceat(given, starts))
        return replace(self, standard=np.zeros_like(self.standard), representatives=(starts, weights))

    @cached_property
    def _kept(self) -> tuple[np.ndarray | slice, Terms]:
        """Numbers of the rows that count, if others may be left out, and the objective on these rows."""
        objective, data = self.problem.objective, self.problem.data
        if self.representatives is None:
            rows = np.flatnonzero(data.weights.numpy())
            weights = data.weights[rows]
        else:
            rows, weights = self.representatives
        if rows.size == data.n_samples or not isinstance(objective, Stochastic):
            return slice(None), Terms(objective, (), data)
        data = data.without_features.at(rows, weights)
        return rows, Terms(cast(BoundObjective, objective.on(data)), (), data)

    @cached_property
    def _signed(self) -> tuple[np.ndarray, np.ndarray]:
        """Standardised scores and signs of these rows; two ndarrays of shape (n_rows,)."""
        rows, _ = self._kept
        return self.standard[rows], self.rescaling.signs[rows]

    def of_scores(self, u: float, c: float) -> tuple[float, float]:
        """Factor and shift of the rescaling that gives the scores ``u z + c``."""
        factor = u / self.spread if self.spread else 0.0
        return factor, c - factor * self.centre

    def value(self, point: np.ndarray) -> float:
        """The objective at a point, an ndarray of shape (2,)."""
        return self._at(point).loss + self.rescaling.penalty(*self.of_scores(*point.tolist()))[0]

    def with_slopes(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """The objective, and its slopes of shape (2,)."""
        at_scores, (standard, signs) = self._at(point), self._signed
        by_row = signs * at_scores.slopes(1.0, np.empty(0))[0].numpy()
        slopes = np.array([by_row @ standard, by_row.sum()])
        penalty, per_factor, per_shift = self.rescaling.penalty(*self.of_scores(*point.tolist()))
        return at_scores.loss + penalty, slopes + self._moves.T @ (per_factor, per_shift)

    def least(self, start: np.ndarray, directions: np.ndarray, lowest: float = 0.0) -> np.ndarray:
        """Where the objective is least on a line through a point, or in the plane, with u of at least ``lowest``.

        ``directions`` of shape (n_directions, 2) lead to the other points; only the first one may change u, by one.
        """
        if not len(directions):
            return start
        found = self._by_newton(start, directions, lowest) if self.is_smooth else None
        if found is not None:
            return found

        def along(steps: np.ndarray) -> tuple[float, np.ndarray]:
            value, slopes = self.with_slopes(start + steps @ directions)
            return value, directions @ slopes

        bounds: list[tuple[float | None, None]] = [(None, None)] * len(directions)
        if directions[:, 0].any():
            bounds[0] = (lowest - start[0], None)
        at_start = np.zeros(len(directions))
        best = minimize(along, at_start, jac=True, method="L-BFGS-B", bounds=bounds, options=_PRECISELY)
        return start + best.x @ directions

    @cached_property
    def is_smooth(self) -> bool:
        """Whether the objective `has_convex_losses`, so that Newton steps lead to where it is least."""
        return has_convex_losses(self.problem)

    def _by_newton(self, start: np.ndarray, directions: np.ndarray, lowest: float) -> np.ndarray | None:
        """Newton's method; None where it does not settle, or the bound on u keeps it from the optimum of the plane."""
        point, (value, slopes) = start, self.with_slopes(start)
        for _ in range(_STEPS):
            curvature = directions @ self._curvature(point) @ directions.T
            curvature[np.diag_indices_from(curvature)] += _RIDGE * np.trace(curvature) or 1.0
            gradient = directions @ slopes
            step = -np.linalg.solve(curvature, gradient) @ directions
            longest = 1.0 if point[0] + step[0] >= lowest else (lowest - point[0]) / step[0]
            if longest <= 0:  # at the least u, and on a line that is where the objective is least
                return point if len(directions) == 1 else None
            gain = -float(slopes @ step) / 2
            if gain <= _LAST * abs(value) and longest == 1:
                return point + step
            for length in longest * 0.5 ** np.arange(_HALVINGS):
                trial = point + length * step
                there = self.with_slopes(trial)
                if there[0] <= value - length * gain / 2:
                    break
            else:
                return None
            point, (value, slopes) = trial, there
        return None

    def on_lines(self, free: np.ndarray, lines: np.ndarray, levels: np.ndarray) -> np.ndarray:
        """By how much the objective is about larger on lines in the plane than at its least; shape (n_lines,).

        It is taken as quadratic around ``free``, where it is least. The points of a line are those with
        ``line @ point == level``.
        """
        inverse = np.linalg.pinv(self._curvature(free), hermitian=True)
        squares = np.maximum(((lines @ inverse) * lines).sum(axis=1), np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # where no point of a line is near enough for the curvature to tell
            return (levels - lines @ free) ** 2 / (2 * squares)

    def _curvature(self, point: np.ndarray) -> np.ndarray:
        """Hessian of the objective at a point; ndarray of shape (2, 2)."""
        by_row = self._kept[1].objective.curvature(self._scores(point)).numpy()
        standard, _ = self._signed
        mixed = by_row @ standard
        of_loss = np.array([[(by_row * standard) @ standard, mixed], [mixed, by_row.sum()]])
        return of_loss + self._moves.T @ self._of_penalty @ self._moves

    @cached_property
    def _of_penalty(self) -> np.ndarray:
        """Hessian in factor and shift of the penalty, whose slopes are linear; ndarray of shape (2, 2)."""
        at_zero = np.array(self.rescaling.penalty(0.0, 0.0)[1:])
        return np.array([self.rescaling.penalty(*unit)[1:] - at_zero for unit in np.eye(2)])

    @cached_property
    def _moves(self) -> np.ndarray:
        """Derivatives of factor and shift, the rows, in u and c; ndarray of shape (2, 2)."""
        factor = 1 / self.spread if self.spread else 0.0
        return np.array([[factor, 0.0], [-factor * self.centre, 1.0]])

    def _at(self, point: np.ndarray) -> TermsPoint:
        """The terms at a multiple u and a shift c of the scores."""
        return self._kept[1].at_scores(self._scores(point), np.empty(0))

    def _scores(self, point: np.ndarray) -> torch.Tensor:
        (u, c), (standard, signs) = point.tolist(), self._signed
        return torch.from_numpy(signs * (u * standard + c))
