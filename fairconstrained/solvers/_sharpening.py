"""Few coefficients under bounds on decisions: smooth decisions that become sharper, one nonlinear program for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import numpy as np
import torch
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from fairconstrained.models import LinearModel
from fairconstrained.points import largest_violation
from fairconstrained.problem import Problem
from fairconstrained.solvers._newton_coordinates import parameter_hessian

__all__ = ["NARROW", "WIDE", "Sharpened", "sharpened"]

#: Widths of smooth decisions in standard deviations of the scores, in turn: those that lead from the unconstrained
#: model, and those that lead from a solution nearby. The last program has the values that are counted where it begins.
WIDE, NARROW = (1.0, 0.4, 0.15, 0.1), (0.15, 0.1)
#: Iterations of a program, and the change of the objective at which it ends.
_ITERATIONS, _TOLERANCE = 40, 1e-4
#: Violation of the smooth bounds up to which a program has come to its end.
_KEPT = 1e-3
#: Objective, as a share of that of scores of zero, from which on scores are of no use.
_USELESS = 0.995
#: How often the last program is repeated with tighter bounds, where those that are counted are exceeded.
_TIGHTENED = 2


class Sharpened(NamedTuple):
    """Where the programs ended.

    Attributes
    ----------
    params : ndarray of shape (n_params,)
    objective : float
        Objective at the end of the last program; infinite where its bounds are not kept there, or scores of zero are
        hardly worse.
    n_evaluations : int
        Passes over the rows.
    """

    params: np.ndarray
    objective: float
    n_evaluations: int


def sharpened(problem: Problem, params: np.ndarray, widths: Sequence[float] = WIDE) -> Sharpened:
    r"""Minimise the objective within bounds on smooth decisions, which become sharper from one program to the next.

    With :math:`\sigma(s / h)` in place of the decision :math:`1[s > 0]`, a wide h tells of all rows how the bounds
    change, and not only of the few next to the threshold, whose labels are as often positive as negative. Therefore the
    way leads past local optima at which the counted bounds hold and almost all of the accuracy is lost.

    Parameters
    ----------
    problem : Problem
        Few linear coefficients, a smooth objective, and bounds on counted rows without auxiliary variables.
    params : ndarray of shape (n_params,)
        Where to begin.
    widths : sequence of float
        `WIDE` or `NARROW`.

    Returns
    -------
    Sharpened

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, chapter 18: sequential quadratic programming, here that of SciPy.
    Horowitz, A smoothed maximum score estimator for the binary response model, Econometrica 60(3), 1992: equation 2.
    """
    span = _Span.of(problem, np.linalg.cholesky(parameter_hessian(problem, problem.scores(params))))
    moved, n_evaluations, objective = span.root.T @ params, 0, np.inf
    margins = np.zeros(len(problem.constraints))
    for width in widths:
        program = _Program(span.smooth(moved, width, margins, is_exact=width == widths[-1]), span)
        moved, objective = program.solved(moved)
        n_evaluations += program.n_evaluations
    for _ in range(_TIGHTENED):
        measured = problem.measured(span.features @ moved)
        if measured.excess <= 0:
            break
        margins += np.maximum(measured.violations, 0.0)
        program = _Program(span.smooth(moved, widths[-1], margins, is_exact=True), span)
        there, reached = program.solved(moved)
        n_evaluations += program.n_evaluations
        if not np.isfinite(reached):
            break
        moved, objective = there, reached
    return Sharpened(span.params(moved), objective, n_evaluations)


@dataclass(frozen=True, eq=False)
class _Span:
    """Coordinates in which the Hessian of the objective is about 1.

    Attributes
    ----------
    problem : Problem
    root : ndarray of shape (n_params, n_params)
        Lower triangular; the coordinates are ``root.T`` times the parameters.
    features : ndarray of shape (n_samples, n_params)
        The scores are these times the coordinates.
    useless : float
        Objective from which on scores are of no use.
    """

    problem: Problem
    root: np.ndarray
    features: np.ndarray
    useless: float

    @classmethod
    def of(cls, problem: Problem, root: np.ndarray) -> _Span:
        """Compute the features."""
        model, data = cast(LinearModel, problem.model), problem.data
        columns = solve_triangular(root, np.eye(len(root)), lower=True, trans="T")
        features = np.column_stack([model.training_scores(column, data) for column in columns.T])
        return cls(
            problem, root, features, _USELESS * problem.objective_at(np.zeros(len(root)), np.zeros(len(features)))
        )

    def params(self, moved: np.ndarray) -> np.ndarray:
        """Parameters at some coordinates."""
        return solve_triangular(self.root, moved, lower=True, trans="T")

    def smooth(self, moved: np.ndarray, width: float, margins: np.ndarray, is_exact: bool) -> Problem:
        """The problem with smooth bounds, which are exact at the given coordinates or nowhere."""
        scores, pairs = self.features @ moved, zip(self.problem.constraints, margins.tolist(), strict=True)
        smooth = [c.refined(scores, blur=width, margin=margin) for c, margin in pairs]
        return replace(self.problem, constraints=tuple(smooth if is_exact else (c.uncorrected() for c in smooth)))


@dataclass(eq=False)
class _Program:
    """Program with smooth bounds.

    Attributes
    ----------
    problem : Problem
    span : _Span
    n_evaluations : int
    """

    problem: Problem
    span: _Span
    n_evaluations: int = 0
    _last: tuple[bytes, tuple[np.ndarray, np.ndarray]] | None = None

    def solved(self, moved: np.ndarray) -> tuple[np.ndarray, float]:
        """The coordinates to which the program leads from others, and the objective there; see `Sharpened.objective`.

        It stays where it begins if it leads to useless scores.
        """
        bounds = {"type": "ineq", "fun": lambda u: -self._at(u)[0][1:], "jac": lambda u: -self._at(u)[1][1:]}
        found = minimize(
            lambda u: self._at(u)[0][0],
            moved,
            jac=lambda u: self._at(u)[1][0],
            method="SLSQP",
            constraints=[bounds],
            options={"maxiter": _ITERATIONS, "ftol": _TOLERANCE},
        )
        end = found.x if np.isfinite(found.x).all() else np.zeros_like(moved)
        objective, *components = self._at(end)[0]
        if not objective < self.span.useless:
            return moved, np.inf
        return end, float(objective) if largest_violation(np.array(components)) <= _KEPT else np.inf

    def _at(self, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The objective and the components of the bounds, and the gradients of both in rows."""
        key = moved.tobytes()
        if self._last is None or self._last[0] != key:
            self.n_evaluations += 1
            self._last = key, self._evaluated(moved)
        return self._last[1]

    def _evaluated(self, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        features, root = self.span.features, self.span.root
        terms = self.problem.at_scores(torch.from_numpy(features @ moved), np.empty(0))
        n_components = terms.constraints.size
        slopes = [terms.slopes(1.0, np.zeros(n_components))[0].numpy()]
        slopes += [slope.numpy() for slope, _ in terms.component_slopes(np.arange(n_components))]
        gradients = np.stack(slopes) @ features
        penalty, gradient = cast(LinearModel, self.problem.model).penalty(self.span.params(moved))
        gradients[0] += solve_triangular(root, gradient, lower=True)
        return np.append(terms.loss + penalty, terms.constraints), gradients
