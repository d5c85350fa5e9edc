"""Quadratic programs of a few coefficients under linearised bounds, and the steps that solve them."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
import torch
from scipy.optimize import nnls

from fairconstrained.points import Point, largest_violation, objective_gradient
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers._directions import gradients_of_components
from fairconstrained.solvers._newton_coordinates import parameter_hessian
from fairconstrained.terms import TermsPoint

__all__ = ["ELASTIC", "ProgramNotSolved", "QuadraticProgram", "largest_components", "newton_step"]

#: Components that are linearised, the largest ones.
_MOST_COMPONENTS = 24
#: Weight of the square of what a program leaves of the violation; it is solvable for any bounds then.
ELASTIC = 1e4


class ProgramNotSolved(Exception):
    """A quadratic program takes too many iterations, or rounding leaves no finite solution."""


class QuadraticProgram(NamedTuple):
    """Quadratic program at an iterate, see `SequentialQuadratic`.

    Its components are those of the problem without their `BoundConstraint.damping`.
    """

    gradient: np.ndarray  # of shape (n_params,)
    hessian: np.ndarray  # of shape (n_params, n_params)
    #: The largest components.
    values: np.ndarray  # of shape (n_linearised,)
    slopes: np.ndarray  # of shape (n_linearised, n_params)

    @classmethod
    def at(cls, problem: Problem, point: Point, terms: TermsPoint, hessian: np.ndarray, rows: np.ndarray) -> Self:
        """The program at a point with these terms, of the components whose numbers are in ``rows``, ascending.

        The Hessian may be that of the objective at a point nearby.
        """
        damped = terms.constraints[rows], gradients_of_components(problem, terms, rows)
        return cls(objective_gradient(point), hessian, *(problem.undamped(values, rows) for values in damped))

    def solved(self) -> tuple[np.ndarray, np.ndarray]:
        """The step, of shape (n_params,), and the multipliers of shape (n_linearised,).

        With ``H = L L'`` and ``y = L' p + L^-1 g`` it asks for the shortest vector (y, s) within linear inequalities,
        which is a problem of nonnegative least squares.

        Raises ProgramNotSolved if it takes too many iterations, or rounding leaves no finite solution.
        """
        inverse = np.linalg.inv(np.linalg.cholesky(self.hessian))
        shift = inverse @ self.gradient
        y, multipliers = np.zeros_like(shift), np.zeros_like(self.values)
        if self.values.size:
            reduced = inverse @ self.slopes.T
            sides = np.vstack([-reduced, np.full(self.values.size, ELASTIC**-0.5), self.values - shift @ reduced])
            target = np.zeros(len(sides))
            target[-1] = 1.0
            try:
                weights, _ = nnls(sides, target)
            except RuntimeError as error:
                raise ProgramNotSolved(str(error)) from error
            residual = target - sides @ weights
            if not residual[-1] > np.finfo(float).tiny:
                raise ProgramNotSolved("The program is too far from what any step keeps.")
            y, multipliers = -residual[: y.size] / residual[-1], weights / residual[-1]
        return inverse.T @ (y - shift), multipliers

    def gain(self, step: np.ndarray, weight: float) -> float:
        """By how much the step makes the merit function smaller, with that weight of the violation."""
        change = self.gradient @ step + step @ self.hessian @ step / 2
        return float(
            weight * (largest_violation(self.values) - largest_violation(self.values + self.slopes @ step)) - change
        )


def largest_components(values: np.ndarray) -> np.ndarray:
    """Numbers of the components that a program linearises, ascending; ndarray of shape (n_linearised,)."""
    return np.sort(np.argsort(-values, kind="stable")[:_MOST_COMPONENTS])


def newton_step(problem: Problem, params: np.ndarray, blur: float) -> np.ndarray:
    """The step of the quadratic program at some coefficients, with bounds as counted and smooth slopes.

    It is for linear scores under bounds without auxiliary variables. ``blur`` is the width of the kernel in standard
    deviations of the scores. Raises `ProgramNotSolved` as `QuadraticProgram.solved`.
    """
    point = FullBatchView(problem.without_constraints()).at(params)
    near = problem.refined(point.scores, blur)
    terms = near.at_scores(torch.from_numpy(point.scores), np.empty(0))
    rows = largest_components(terms.constraints)
    return QuadraticProgram.at(near, point, terms, parameter_hessian(problem, point.scores), rows).solved()[0]
