"""Few coefficients under bounds on decisions: smooth decisions that become sharper, one nonlinear program for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, cast

import numpy as np
import torch
from scipy.linalg import solve_triangular

from fairconstrained.models import LinearModel
from fairconstrained.points import largest_violation
from fairconstrained.problem import Problem
from fairconstrained.solvers._minimised_within import minimised_within
from fairconstrained.solvers._newton_coordinates import parameter_hessian

__all__ = ["NARROW", "WIDE", "Sharpened", "sharpened"]

#: Widths of smooth decisions in standard deviations of the scores, in turn: those that lead from the unconstrained
#: model, and those that lead from a solution nearby. The last program has the values that are counted where it begins.
WIDE, NARROW = (1.0, 0.4, 0.15, 0.1), (0.15, 0.1)
#: Change of the objective at which a program ends.
_TOLERANCE = 1e-4
#: Violation of the smooth bounds up to which a program has come to its end.
_KEPT = 1e-3
#: Objective, as a share of that of scores of zero, from which on scores are of no use.
_USELESS = 0.995
#: How often the last program is repeated with tighter bounds, where those that are counted are exceeded.
_TIGHTENED = 2


class Sharpened(NamedTuple):
    """Where the programs ended."""

    params: np.ndarray  # of shape (n_params,)
    #: Objective at the end of the last program; infinite where its bounds are not kept there, or scores of zero are
    #: hardly worse.
    objective: float
    #: Passes over the rows.
    n_evaluations: int


def sharpened(problem: Problem, params: np.ndarray, widths: Sequence[float] = WIDE) -> Sharpened:
    r"""Minimise the objective within bounds on smooth decisions, which become sharper from one program to the next.

    With :math:`\sigma(s / h)` in place of the decision :math:`1[s > 0]`, a wide h tells of all rows how the bounds
    change, and not only of the few next to the threshold, whose labels are as often positive as negative. Therefore the
    way leads past local optima at which the counted bounds hold and almost all of the accuracy is lost.

    The problem has few linear coefficients, a smooth objective, and bounds on counted rows without auxiliary variables.
    The programs begin at ``params``; ``widths`` are `WIDE` or `NARROW`.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, chapter 18: sequential quadratic programming, here that of SciPy.
    Horowitz, A smoothed maximum score estimator for the binary response model, Econometrica 60(3), 1992: equation 2.
    """
    span = _Span.of(problem, np.linalg.cholesky(parameter_hessian(problem, problem.scores(params))))
    moved, n_evaluations, objective = span.root.T @ params, 0, np.inf
    margins = np.zeros(len(problem.constraints))
    for width in widths:
        smooth = span.smooth(moved, width, margins, is_exact=width == widths[-1])
        moved, objective, n_more = span.minimised(smooth, moved)
        n_evaluations += n_more
    for _ in range(_TIGHTENED):
        measured = problem.measured(span.features @ moved)
        if measured.excess <= 0:
            break
        margins += np.maximum(measured.violations, 0.0)
        there, reached, n_more = span.minimised(span.smooth(moved, widths[-1], margins, is_exact=True), moved)
        n_evaluations += n_more
        if not np.isfinite(reached):
            break
        moved, objective = there, reached
    return Sharpened(span.params(moved), objective, n_evaluations)


@dataclass(frozen=True, eq=False)
class _Span:
    """Coordinates in which the Hessian of the objective is about 1."""

    problem: Problem
    #: Lower triangular; the coordinates are ``root.T`` times the parameters.
    root: np.ndarray  # of shape (n_params, n_params)
    #: The scores are these times the coordinates.
    features: np.ndarray  # of shape (n_samples, n_params)
    #: Objective from which on scores are of no use.
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
        smooth = self.problem.refined(self.features @ moved, width, margins)
        return smooth if is_exact else replace(smooth, constraints=tuple(c.uncorrected() for c in smooth.constraints))

    def minimised(self, smooth: Problem, moved: np.ndarray) -> tuple[np.ndarray, float, int]:
        """The coordinates to which a program leads from others, the objective there, and the evaluations.

        It stays where it begins if it leads to useless scores; the objective is that of `Sharpened`.
        """
        (objective, *components), end, n_evaluations = minimised_within(
            partial(self._evaluated, smooth), moved, _TOLERANCE, otherwise=np.zeros_like(moved)
        )
        if not objective < self.useless:
            return moved, np.inf, n_evaluations
        is_kept = largest_violation(np.array(components)) <= _KEPT
        return end, float(objective) if is_kept else np.inf, n_evaluations

    def _evaluated(self, smooth: Problem, moved: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The objective and the undamped components of smooth bounds, and the gradients of both in rows."""
        features, root = self.features, self.root
        terms = smooth.at_scores(torch.from_numpy(features @ moved), np.empty(0))
        n_components = terms.constraints.size
        slopes = [terms.slopes(1.0, np.zeros(n_components))[0].numpy()]
        slopes += [slope.numpy() for slope, _ in terms.component_slopes(np.arange(n_components))]
        gradients = np.stack(slopes) @ features
        gradients[1:] = smooth.undamped(gradients[1:])
        penalty, gradient = cast(LinearModel, smooth.model).penalty(self.params(moved))
        gradients[0] += solve_triangular(root, gradient, lower=True)
        return np.append(terms.loss + penalty, smooth.undamped(terms.constraints)), gradients
