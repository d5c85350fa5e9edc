"""Searches in spans of a few directions, one after the other, until one of them keeps the bounds on all rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import Recorder, SolverResult, Status
from fairconstrained.solvers._rescaling import best_rescaled
from fairconstrained.solvers._shifting import best_shifted
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan, evaluations_of
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic

__all__ = ["InSpan", "Kept", "Search", "SpanSearches", "completed"]

#: Fraction of the objective that an iterate next to the bounds may lose where another scale of its scores keeps them.
_LOSS = 1e-3


class InSpan(NamedTuple):
    """A solution in a span."""

    params: np.ndarray  # of shape (n_reduced,)
    #: Margins of the bounds on rows not seen.
    margins: np.ndarray  # of shape (n_constraints,)
    #: Whether the training rows are bounded as well.
    bounds_both: bool

    def problem_in(self, span: CrossFittedSpan, problem: Problem) -> Problem:
        """The problem of the solution, in a span, with the bounds of ``problem``, which has all rows, on its rows."""
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
        status = Status.MAX_ITER if found.has_diverged else Status.COMPLETED
    multipliers = found.multipliers if finished is found.model_state else None  # a search has no price
    return replace(found, model_state=state, objective=objective, status=status, multipliers=multipliers)


class Search(NamedTuple):
    """The end of a search in a span."""

    #: The problem in the span.
    problem: Problem
    #: Result for it.
    found: SolverResult
    #: Margins of its bounds on rows not seen.
    margins: np.ndarray  # of shape (n_constraints,)
    #: Whether it bounds the training rows as well.
    bounds_both: bool
    #: Whether the run may end with this search if its result keeps the bounds.
    may_be_last: bool
    #: Whether nothing is left to complete: the result is `completed` already, or must not be.
    is_completed: bool


class Kept(NamedTuple):
    """The result of searches in a span."""

    #: Result for the model of all rows; `SpanSearches.ended` adds counts and records.
    result: SolverResult
    #: The solution in the span.
    chosen: InSpan
    #: Objective on rows not seen; infinite where a callback has ended the training outside of the bounds.
    unseen: float


@dataclass
class SpanSearches:
    """Counts and records of searches in spans."""

    #: Problem of all parameters.
    problem: Problem
    recorder: Recorder
    #: Evaluations so far.
    n_evaluations: int
    #: Problems in spans that were solved so far.
    n_iter: int = 0

    def first_kept(self, span: CrossFittedSpan, searches: Iterable[Search]) -> Kept | None:
        """The first result within the bounds on the training rows, and on rows not seen; None if there is none.

        Where a callback ends the training before there is one, it is the last one.
        """
        problem, recorder = self.problem, self.recorder
        for reduced, found, margins, bounds_both, may_be_last, is_completed in searches:
            self.n_iter += 1
            self.n_evaluations += evaluations_of(problem, reduced, found.n_evaluations)
            params, solved = span.lift(found.model_state), reduced
            if not is_completed and problem.holds(problem.scores(params)):
                solved = span.tighter(problem, reduced, found.model_state)
                found = completed(solved, found)
                params = span.lift(found.model_state)
            counts = {"n_iter": self.n_iter, "n_evaluations": self.n_evaluations}
            measured, objective = recorder.add_measured(problem, params, **counts)
            is_kept = may_be_last and measured.excess <= 0
            if not is_kept and recorder.stop is None:
                continue
            if not is_kept:
                found = replace(found, status=Status.INFEASIBLE if measured.excess > 0 else Status.MAX_ITER)
            result = replace(
                found,
                model_state=params,
                objective=objective,
                constraint_values=measured.values,
                multipliers=span.of_both(found.multipliers),
                candidates=(),
            )
            chosen = InSpan(found.model_state, margins, bounds_both or solved is not reduced)
            return Kept(result, chosen, found.objective if is_kept else np.inf)
        return None

    def ended(self, result: SolverResult) -> SolverResult:
        """The result with the counts and records of all searches."""
        return replace(
            result,
            n_iter=self.n_iter,
            n_evaluations=self.n_evaluations,
            history=tuple(self.recorder.records),
            stopped_by=self.recorder.stopped_by,
        )
