"""The iterates of the augmented Lagrangian: the present one, the best ones so far, and what lies between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fairconstrained.points import KeptPoint
from fairconstrained.problem import FullBatchView, Point, Problem
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.terms import Measured

__all__ = ["Iterate", "Iterates", "extrapolated"]

#: Longest step of an extrapolation, in multiples of the distance that it goes on from.
_LONGEST = 1.5
#: Steps of the bisection between a feasible and an infeasible iterate.
_BISECTIONS = 4
#: How much of its excess a step from an infeasible iterate is to undo: more than all, so that bisection can land.
_OVERSHOOT = 2.0
#: Infeasible iterates that are kept for another scale of their scores.
_CANDIDATES = 4


class Iterate(NamedTuple):
    """An assessed iterate; a search has found it where its multipliers are None."""

    params: np.ndarray
    objective: float
    measured: Measured
    multipliers: dict[str, float] | None

    @classmethod
    def at(cls, problem: Problem, params: np.ndarray) -> Iterate:
        """Assess parameters outside of a run."""
        scores = problem.scores(params)
        return cls(params, problem.objective_at(params, scores), problem.measured(scores), None)

    @property
    def violations(self) -> np.ndarray:
        """Excess of the exact metrics over kappa; shape (n_constraints,)."""
        return self.measured.violations

    @property
    def excess(self) -> float:
        """Largest exact violation beyond the metric's granularity; -inf without constraints."""
        return self.measured.excess


def extrapolated(far: Iterate, near: Iterate, share: float = 1.0) -> np.ndarray | None:
    """Where the line from ``far`` through ``near`` may reach feasibility, both measured for the same ``kappa``.

    ``share`` is that of the excess of ``near`` that the step is to undo, if excess is linear along the line. None where
    ``near`` is feasible, or no nearer to it than ``far``.
    """
    if not 0 < near.excess < far.excess:
        return None
    step = min(share * near.excess / (far.excess - near.excess), _LONGEST)
    return near.params + step * (near.params - far.params)


class Iterates:
    """The present iterate, and the iterates that were measured on the way to it.

    Parameters
    ----------
    lagrangian : Lagrangian
        Problem and multipliers that they belong to.
    params : ndarray of shape (n_params,)
        Parameters to begin at.

    Attributes
    ----------
    w : ndarray of shape (n_variables,)
        Present variables, of a problem whose refined constraints may have other auxiliary ones than those given.
    scores : ndarray of shape (n_samples,)
        Scores at which the next surrogates are to be close to the metric.
    point : Point
        Present iterate as it was assessed.
    best, nearest, last : Iterate or None
        Feasible iterate of least objective, the one nearest to feasibility, and the last one that was assessed.
    infeasible : list of Iterate
        Iterates of least objective, which a smaller multiple may make feasible.
    origin : Iterate or None
        Solution for another ``kappa`` that the run began from, if any.
    n_evaluations : int
        Evaluations that the loop does not know of yet.
    """

    scores: np.ndarray
    point: Point

    def __init__(self, lagrangian: Lagrangian, params: np.ndarray) -> None:
        self._lagrangian = lagrangian
        self.w = lagrangian.problem.start(params)
        self.best: Iterate | None = None
        self.nearest: Iterate | None = None
        self.last: Iterate | None = None
        self.origin: Iterate | None = None
        self.infeasible: list[Iterate] = []
        self.n_evaluations = 0

    @property
    def params(self) -> np.ndarray:
        """The present parameters."""
        return self.w[: self._lagrangian.problem.n_params]

    @property
    def end(self) -> Iterate:
        """The best feasible iterate, or the one nearest to feasibility; the present one of a run that has none yet."""
        return self.best or self.nearest or self.measure(self.params.copy())

    def moved_to(self, params: np.ndarray) -> Point:
        """Make ``params`` the present iterate; returns its point, for `assess`."""
        problem = self._lagrangian.problem
        self.w = problem.project(problem.start(params))
        self.n_evaluations += 1
        return KeptPoint(FullBatchView(problem), self.w)

    def return_to_nearest(self) -> None:
        """Go back to where feasibility was nearest."""
        assert self.nearest is not None  # every run assesses its start
        self.params[:] = self.nearest.params
        self.scores = self._lagrangian.problem.scores(self.nearest.params)

    def assess(self, point: Point) -> float:
        """Measure the exact metrics at the present iterate, and look for better feasible points; returns the excess."""
        self.point, self.scores = point, point.scores
        previous, iterate = self.last, self.measured(self.params.copy(), point)
        self.last = iterate
        self.keep(iterate)
        if iterate.excess > 0:
            self.infeasible = sorted([*self.infeasible, iterate], key=lambda kept: kept.objective)[:_CANDIDATES]
        if previous is not None and (previous.excess <= 0) != (iterate.excess <= 0):
            inside, outside = (previous, iterate) if previous.excess <= 0 else (iterate, previous)
            self._bisect_between(inside, outside)
        elif self.origin is not None:
            self._extrapolate_beyond(self.origin, iterate)
        if self.nearest is None or iterate.excess < self.nearest.excess:
            self.nearest = iterate
        return iterate.excess

    def measure(self, params: np.ndarray) -> Iterate:
        """The iterate at ``params``, kept if it is the best one."""
        iterate = self.measured(params, self.unconstrained_point(params))
        self.keep(iterate)
        return iterate

    def measured(self, params: np.ndarray, point: Point) -> Iterate:
        """The iterate at ``params``, where its point is known."""
        lagrangian = self._lagrangian
        measured = lagrangian.problem.measured(point.scores)
        return Iterate(params, point.objective, measured, lagrangian.named_multipliers)

    def keep(self, iterate: Iterate) -> None:
        """Take a feasible iterate for the best one if it is."""
        if iterate.excess <= 0 and (self.best is None or iterate.objective < self.best.objective):
            self.best = iterate

    def unconstrained_point(self, params: np.ndarray) -> Point:
        """The point at ``params`` of the objective alone."""
        self.n_evaluations += 1
        return KeptPoint(FullBatchView(self._lagrangian.problem.without_constraints()), params)

    def _bisect_between(self, inside: Iterate, outside: Iterate) -> None:
        """Look for a better feasible point between a feasible and an infeasible iterate, by bisection."""
        if outside.objective >= inside.objective:
            return
        low, high = inside.params, outside.params
        for _ in range(_BISECTIONS):
            iterate = self.measure((low + high) / 2)
            low, high = (iterate.params, high) if iterate.excess <= 0 else (low, iterate.params)

    def _extrapolate_beyond(self, origin: Iterate, outside: Iterate) -> None:
        """Look for a feasible point on the line from the last solution, beyond an infeasible iterate."""
        params = extrapolated(origin, outside, _OVERSHOOT)
        if params is not None and (self.best is None or outside.objective < self.best.objective):
            inside = self.measure(self._lagrangian.problem.project(params))
            if inside.excess <= 0:
                self._bisect_between(inside, outside)
