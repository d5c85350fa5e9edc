"""Search in the few directions of shrunken models, for bounds on losses and AUCs of few rows for each feature."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Recorder, SolverResult, Status
from fairconstrained.solvers._rescaling import best_rescaled
from fairconstrained.solvers._shifting import best_shifted
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan, evaluations_of
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic
from fairconstrained.terms import Measured

__all__ = ["FewDirections", "InSpan", "completed", "cut_short"]

#: Rise of the objective on rows not seen, as a fraction, beyond which bounds are costly, and the fraction that more
#: directions have to save; less may be chance.
_COSTLY, _WORTH = 0.1, 0.1
#: Fraction of the objective that an iterate next to the bounds may lose where another scale of its scores keeps them.
_LOSS = 1e-3
#: Largest margin as a share of ``kappa``.
_MOST_MARGIN = 0.9


class InSpan(NamedTuple):
    """A solution in a span.

    Attributes
    ----------
    params : ndarray of shape (n_reduced,)
    margins : ndarray of shape (n_constraints,)
        Margins of the bounds on rows not seen.
    bounds_both : bool
        Whether the training rows are bounded as well.
    """

    params: np.ndarray
    margins: np.ndarray
    bounds_both: bool

    def problem_in(self, span: CrossFittedSpan, problem: Problem) -> Problem:
        """The problem of the solution, in a span and with the bounds of ``problem`` on the rows that it has seen."""
        return next(islice(span.with_margins(self.margins).problems(problem), int(self.bounds_both), None))

    def solved_again(self, part: Problem, tol: float) -> np.ndarray:
        """The solution of the problem of a part of the rows, from this one; this one where there is none."""
        found = SequentialQuadratic(tol=tol).solve(part, Start(self.params), np.random.default_rng(0))
        return self.params if found.status.is_infeasible else found.model_state


def completed(problem: Problem, found: SolverResult) -> SolverResult:
    """The result with the best shift and multiple of its scores, which may settle what rounding of counts has not."""
    finished = best_shifted(problem, found.model_state)
    state = best_rescaled(problem, [finished, *found.candidates])
    scores, status = problem.scores(state), found.status
    objective = problem.objective_at(state, scores)
    if status.is_infeasible and problem.holds(scores) and objective <= found.objective + _LOSS * abs(found.objective):
        status = Status.COMPLETED
    multipliers = found.multipliers if finished is found.model_state else None  # a search has no price
    return replace(found, model_state=state, objective=objective, status=status, multipliers=multipliers)


def cut_short(found: SolverResult, measured: Measured) -> SolverResult:
    """The result of a search in a span that is the last one, although it has not settled within the bounds."""
    return replace(found, status=Status.INFEASIBLE if measured.excess > 0 else Status.MAX_ITER)


@dataclass
class FewDirections:
    """A run of `CrossFitted` with shrunken models: in the sums of directions first, and in all where these cost much.

    Attributes
    ----------
    problem : Problem
    tol : float
    recorder : Recorder
    n_evaluations : int
        Evaluations so far.
    n_iter : int
        Problems in spans that were solved so far.
    chosen : InSpan or None
        Problem and solution of the result in its span.
    """

    problem: Problem
    tol: float
    recorder: Recorder
    n_evaluations: int
    n_iter: int = 0
    chosen: InSpan | None = None

    def solve(self, span: CrossFittedSpan, rng: np.random.Generator) -> SolverResult | None:
        """The result within the bounds on the training rows, and on rows not seen; None if there is none.

        Where a callback ends the training before there is one, it is the last one.
        """
        best, least = None, np.inf
        for own in span.from_narrow(self.problem):
            found, unseen, chosen = self._kept_in(own, rng, is_last=own is span)
            if best is None or unseen < least * (1 - _WORTH):
                best, least, self.chosen = found, unseen, chosen
            if self.recorder.stop is not None or least <= own.free_objective * (1 + _COSTLY):
                break
        return None if best is None else replace(best, stopped_by=self.recorder.stopped_by)

    def _kept_in(
        self, span: CrossFittedSpan, rng: np.random.Generator, is_last: bool
    ) -> tuple[SolverResult | None, float, InSpan | None]:
        """As `solve` in one span; also returns the objective on rows not seen, and the solution in the span."""
        problem = self.problem
        for reduced, margins, bounds_both in self._problems(span, rng):
            found = self._in_span(reduced, span.free, rng, is_last and not margins.any())
            params = span.lift(found.model_state)
            if found.status.is_settled and problem.holds(problem.scores(params)):
                found = completed(span.tighter(problem, reduced, found.model_state), found)
                params = span.lift(found.model_state)
            measured, objective = self._see(params, evaluations_of(problem, reduced, found.n_evaluations))
            is_kept = measured.excess <= 0 and found.status.is_settled
            if not is_kept and self.recorder.stop is not None:
                found = cut_short(found, measured)
            if is_kept or self.recorder.stop is not None:
                chosen = InSpan(found.model_state, margins, bounds_both)
                values, multipliers = measured.values, span.of_both(found.multipliers)
                kept = replace(found, constraint_values=values, multipliers=multipliers, candidates=())
                kept = replace(kept, model_state=params, objective=objective)
                return kept, found.objective if is_kept else np.inf, chosen
        return None, np.inf, None

    def _in_span(self, reduced: Problem, free: np.ndarray, rng: np.random.Generator, tries_all: bool) -> SolverResult:
        """Solve by few quadratic programs, and by iterations where these do not settle and nothing else follows."""
        found = SequentialQuadratic(tol=self.tol).solve(reduced, Start(free), rng)
        if found.status.is_settled or not tries_all:
            return found
        return AugmentedLagrangian(tol=self.tol).solve(reduced, None, rng)

    def _problems(self, span: CrossFittedSpan, rng: np.random.Generator) -> Iterator[tuple[Problem, np.ndarray, bool]]:
        """The problems of a span with margins for what b overfits, if there are any, and those without.

        Also yields the margins, and whether the training rows are bounded as well.
        """
        margins = self._optimism(span, rng)
        for own in [margins, np.zeros_like(margins)] if margins.any() else [margins]:
            for number, problem in enumerate(span.with_margins(own).problems(self.problem)):
                yield problem, own, number > 0

    def _optimism(self, span: CrossFittedSpan, rng: np.random.Generator) -> np.ndarray:
        """By how much larger metrics are on rows that b has not seen, by folds; ndarray of shape (n_constraints,)."""
        reduced, folds, quick = span.problem, span.folds, SequentialQuadratic(tol=self.tol)
        whole = quick.solve(reduced, Start(span.free), rng)
        if whole.status.is_infeasible:
            return np.zeros(len(reduced.constraints))
        scores, seen, numbers = np.empty(reduced.data.n_samples), [], np.unique(folds)
        for fold in numbers:
            rest = reduced.on(reduced.data.part(np.flatnonzero(folds != fold)))
            found = quick.solve(rest, Start(whole.model_state), rng).model_state
            scores[folds == fold] = reduced.scores(found)[folds == fold]
            own = rest.scores(found)
            seen.append([c.metric(own) for c in rest.constraints])
        unseen = np.array([c.metric(scores) for c in reduced.constraints])
        grown = np.sqrt(1 - 1 / numbers.size) * (unseen - np.mean(seen, axis=0))
        return np.clip(grown, 0.0, _MOST_MARGIN * np.array([c.kappa for c in reduced.constraints]))

    def _see(self, params: np.ndarray, n_evaluations: int) -> tuple[Measured, float]:
        """Record the end of a search in a span; returns what it measures on the training rows, and the objective."""
        self.n_iter, self.n_evaluations = self.n_iter + 1, self.n_evaluations + n_evaluations
        return self.recorder.add_measured(self.problem, params, n_iter=self.n_iter, n_evaluations=self.n_evaluations)
