"""The best that is obvious: constant scores, and the scores of a model scaled and shifted, within the bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from benchmarks.trial.problem import ORDER, THRESHOLD, VALUES, Problem

__all__ = ["Candidate", "best_constant", "best_constant_accuracy", "best_rescaling", "feasible_constants"]

#: Scales up to which there is a best one; beyond, the data can be separated and there is none.
_LARGEST_SCALE = 1e4
#: How far inside an interval of thresholds a candidate stays, as a share of its length.
_INSIDE = 1e-6
_N_GRID = 25


@dataclass(frozen=True)
class Candidate:
    """Scores ``scale s + shift``, or constant ones of ``shift``, and the objective there."""

    objective: float
    scale: float
    shift: float


def _range(problem: Problem) -> tuple[float, float]:
    """Between which numbers constant scores are looked for."""
    if problem.target.dtype.kind == "f":
        return float(problem.target.min()), float(problem.target.max())
    return -30.0, 30.0


def _constant_values(problem: Problem) -> list[float]:
    """Constants worth a try: those of a fine grid, where their values matter, and either side of the threshold."""
    if not problem.has_intercept:
        return [0.0]
    low, high = _range(problem)
    values = {0.0, problem.threshold, low, high}
    step = 1e-9 * max(abs(problem.threshold), high - low)
    for bound in problem.bounds:
        values |= {bound.threshold, bound.threshold + step}
    if any(bound.depends_on == VALUES for bound in problem.bounds):
        values |= set(np.linspace(-6, 6, 481).tolist())
    if problem.objective is not None:
        for k in range(len(problem.constant_scores(0.0))):
            found = minimize_scalar(
                lambda c, k=k: problem.objective.value(problem.constant_scores(c)[k]),
                bounds=(low, high),
                method="bounded",
                options={"xatol": 1e-10 * (high - low)},
            )
            values.add(float(found.x))
    return sorted(values)


def feasible_constants(problem: Problem) -> list[np.ndarray]:
    """Constant scores within all bounds."""
    return [
        scores
        for value in _constant_values(problem)
        for scores in problem.constant_scores(value)
        if all(bound.holds(scores, slack=1e-12) for bound in problem.bounds)
    ]


def best_constant(problem: Problem, constants: Sequence[np.ndarray]) -> float:
    """The least objective of some constant scores; NaN if there are none or there is no objective."""
    if problem.objective is None or not constants:
        return np.nan
    return min(problem.objective.value(scores) for scores in constants)


def accuracy(problem: Problem, scores: np.ndarray) -> float:
    """Weighted share of the rows whose label is predicted."""
    hits = (scores > problem.threshold) == problem.rows.positive
    return float(np.average(hits, weights=problem.weights))


def best_constant_accuracy(problem: Problem, constants: Sequence[np.ndarray]) -> float:
    """The largest share of right predictions of some constant scores; NaN if there are none."""
    return max((accuracy(problem, scores) for scores in constants), default=np.nan)


class _Search:
    """The objective at ``scale s + shift``, in coordinates in which s has mean 0 and deviation 1."""

    def __init__(self, problem: Problem, scores: np.ndarray, penalty: float, limits: Sequence[float]) -> None:
        assert problem.objective is not None
        self.problem, self.scores, self.penalty, self.limits = problem, scores, penalty, limits
        self.objective = problem.objective
        self.shifts = problem.has_intercept and problem.direction is not None and self.objective.shifts
        #: What thresholds cut: of two classes, the difference of their scores.
        self.line = scores if scores.ndim == 1 else scores[:, -1]
        # without a shift the mean cannot be taken away
        self.middle = float(self.line.mean()) if self.shifts else 0.0
        self.unit = float(np.sqrt(np.mean((self.line - self.middle) ** 2)))

    def at(self, scale: float, shift: float) -> np.ndarray:
        return scale * self.scores if self.problem.direction is None else (
            scale * self.scores + shift * self.problem.direction
        )  # fmt: skip

    def value(self, scale: float, shift: float) -> float:
        return self.objective.value(self.at(scale, shift)) + scale**2 * self.penalty

    def is_feasible(self, scale: float, shift: float) -> bool:
        moved = self.at(scale, shift)
        return all(
            bound.kappa is None or bound.gap(moved) <= limit
            for bound, limit in zip(self.problem.bounds, self.limits, strict=True)
        )

    def candidate(self, scale: float, shift: float) -> list[Candidate]:
        """Candidates at a scale and a shift: one, or none if it breaks a bound."""
        if not np.isfinite([scale, shift]).all() or scale < 0 or not self.is_feasible(scale, shift):
            return []
        return [Candidate(self.value(scale, shift), scale, shift)]

    def free(self) -> tuple[float, float] | None:
        """The best scale and shift without bounds; None if no scale is large enough."""
        ones = np.ones_like(self.scores) if self.problem.direction is None else self.problem.direction

        def function(x: np.ndarray) -> tuple[float, np.ndarray]:
            scale, shift = self._plain(x)
            slopes = self.objective.slope(self.at(scale, shift))
            of_scale = float((slopes * self.scores).sum()) + 2 * scale * self.penalty
            of_shift = float((slopes * ones).sum())
            gradient = [(of_scale - self.middle * of_shift) / self.unit, of_shift]
            return self.value(scale, shift), np.array(gradient[: x.size])

        begin = np.array([self.unit, self.middle] if self.shifts else [self.unit])
        bounds = [(0.0, _LARGEST_SCALE * self.unit), (None, None)][: begin.size]
        x = begin
        for _ in range(3):  # again from where it stopped, with a fresh model of the curvature
            x = minimize(
                function, x, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-12}
            ).x
        return None if x[0] > 0.99 * _LARGEST_SCALE * self.unit else self._plain(x)

    def _plain(self, x: np.ndarray) -> tuple[float, float]:
        scale = float(x[0]) / self.unit
        return scale, (float(x[1]) - scale * self.middle if self.shifts else 0.0)

    def along(self, shift_at: Callable[[float], float]) -> float:
        """The best scale where the shift is a function of it."""
        found = minimize_scalar(
            lambda z: self.value(np.exp(z), shift_at(np.exp(z))), bounds=(-14, 9.2), method="bounded",
            options={"xatol": 1e-9},
        )  # fmt: skip
        return float(np.exp(found.x))


def best_rescaling(problem: Problem, scores: np.ndarray, penalty: float, limits: Sequence[float]) -> Candidate | None:
    """The best ``scale s + shift`` with a scale of at least 0 whose gaps do not exceed the limits.

    A gap of the order of the scores is the same for all of them. A gap at a threshold depends on which scores are above
    ``(threshold - shift) / scale`` only, and, the objective being convex, its least value is a quasi-convex function of
    this cut: the best feasible cut is the best of all or one of the nearest feasible ones on either side. For gaps that
    depend on the values, a grid is refined around its best feasible points.

    Returns
    -------
    candidate : Candidate or None
        None where the scores are constant, or there is no best scale.
    """
    search = _Search(problem, scores, penalty, limits)
    if search.unit <= 1e-12 * max(1.0, float(np.abs(search.line).max())):
        return None
    free = search.free()
    if free is None:
        return None
    found = [*search.candidate(*free), *search.candidate(1.0, 0.0)]
    kinds = {bound.depends_on for bound in problem.bounds if bound.kappa is not None}
    thresholds = {b.threshold for b in problem.bounds if b.kappa is not None and b.depends_on == THRESHOLD}
    if not search.candidate(*free):
        if kinds <= {ORDER, THRESHOLD} and len(thresholds) == 1:
            found += _by_cut(search, free, thresholds.pop())
        else:
            found += _by_grid(search, free)
    return min(found, key=lambda c: c.objective, default=None)


def _by_cut(search: _Search, free: tuple[float, float], threshold: float) -> list[Candidate]:
    """The nearest feasible cuts on either side of the best one, and the best scale for each."""
    problem, found = search.problem, []
    if problem.has_intercept and not search.shifts:  # a shift costs nothing: the cut stays where it is
        return search.candidate(free[0], threshold * (1 - free[0]))
    edges = np.unique(search.line)
    margin = np.ptp(edges)
    ends = np.concatenate([[edges[0] - margin], edges, [edges[-1] + margin]])
    best = (threshold - free[1]) / free[0] if free[0] > 0 else np.inf
    place = int(np.clip(np.searchsorted(ends, best, side="right") - 1, 0, ends.size - 2))

    def within(k: int) -> list[Candidate]:
        """The best in the interval of cuts from one score to the next."""
        low, high = ends[k], ends[k + 1]
        cut = float(np.clip(best, low + _INSIDE * (high - low), high - _INSIDE * (high - low)))
        if search.shifts:
            scale = search.along(lambda a: threshold - a * cut)
            return search.candidate(scale, threshold - scale * cut)
        return search.candidate(threshold / cut, 0.0) if cut * threshold > 0 else []

    for way in (range(place, -1, -1), range(place, ends.size - 1)):
        found += _first(within(k) for k in way)
    return found


def _first(tries: Iterable[list[Candidate]]) -> list[Candidate]:
    return next((found for found in tries if found), [])


def _by_grid(search: _Search, free: tuple[float, float]) -> list[Candidate]:
    """A grid around the best without bounds and the model itself, refined six times around its best points."""
    found: list[Candidate] = []
    shifts = search.problem.has_intercept and search.problem.direction is not None
    for scale, shift in ((1.0, 0.0), free):
        scale = max(scale, 1e-3)
        width_of_scale, width_of_shift = np.log(20.0), 3 * search.unit * scale
        for _ in range(7):
            tries = [
                Candidate(search.value(a, b), a, b)
                for a in scale * np.exp(np.linspace(-width_of_scale, width_of_scale, _N_GRID))
                for b in (shift + np.linspace(-width_of_shift, width_of_shift, _N_GRID) if shifts else [0.0])
            ]
            # the best first, so that few gaps have to be computed
            best = _first(search.candidate(c.scale, c.shift) for c in sorted(tries, key=lambda c: c.objective))
            if not best:
                break
            found += best
            scale, shift = best[0].scale, best[0].shift
            width_of_scale, width_of_shift = width_of_scale / 6, width_of_shift / 6
    return found
