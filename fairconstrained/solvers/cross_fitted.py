"""Constrained fits of linear models by a few numbers that are chosen on rows which the models have not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple, cast

import numpy as np
from typing_extensions import override

from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    joined_history,
    record_after,
    seconds_of,
    solver_state,
)
from fairconstrained.solvers._directions import MOST_FEATURES
from fairconstrained.solvers._few_rows import FewDirections
from fairconstrained.solvers._newton_coordinates import has_convex_hessian
from fairconstrained.solvers._options import Count, NonNegative
from fairconstrained.solvers._quadratic_program import ProgramNotSolved, newton_step
from fairconstrained.solvers._rescaling import best_rescaled, constant_scores, least_of_constants
from fairconstrained.solvers._sharpening import NARROW, WIDE, sharpened
from fairconstrained.solvers._shifting import beats_constants, best_shifted
from fairconstrained.solvers._span_searches import InSpan, Search, SpanSearches, completed
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.cross_fitted_models import CrossFittedModels, Shrunk, fewest_in_cells, has_few_rows
from fairconstrained.solvers.cross_fitted_span import CrossFittedSpan
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic
from fairconstrained.solvers.span import Span
from fairconstrained.solvers.span_search import SpanSearch
from fairconstrained.views import Exact, FullBatch

__all__ = ["CrossFitted"]

#: Rows of every compared cell from which on it suits. With fewer, the gaps of the folds are so noisy that numbers
#: chosen by them are chosen by chance.
_ROWS = 100
#: Rows of every compared cell from which on it suits means and pairs, which vary less than counts at a threshold.
_ROWS_OF_MEANS = 50
#: Steps up to which a method has surely come to the optimum next to its start; and components of bounds that are few.
_SHORT, _MOST_BOUNDS = 12, 60
#: Fraction of the objective within smooth bounds by which that of counted ones may be larger.
_SHORTFALL = 0.01
#: Multiples of the unconstrained model that are looked at.
_MULTIPLES = 0.25 ** np.arange(3)


@dataclass(frozen=True)
class CrossFitted(Solver):
    r"""Moves the unconstrained model in a few directions, by as much as rows need that no model has seen.

    The coefficients are :math:`w = b_0 w_0 + \sum_j b_j d_j` with the unconstrained ones and the directions
    :math:`d_j` of `CrossFittedSpan`. The few numbers b solve the problem with cross-fitted features z, so that kappa
    bounds the metrics of rows which the models have not seen:

    .. math:: \min_b \; f(z b) + \frac{\alpha}{2} \|w\|^2 \quad \text{s.t.} \quad c_j(z b) \le 0, \; c_j(X w) \le 0.

    The second bounds are those of the training rows. They are left out first, and the result is final if it keeps them
    nevertheless. If no b keeps both, another solver takes the problem on the training rows alone: `Span`, or
    `AugmentedLagrangian` where groups have coefficients of their own or there are several classes.

    Few directions and the bounds on rows not seen cost some of the objective on the training rows, and less under a
    stronger penalty: with 2,000 generated rows of 40 features, it was 5 to 6 % above that of `AugmentedLagrangian` with
    ``alpha=0.1``, and 1 % with ``alpha=1``. A direction that the unconstrained model and the others make superfluous,
    as happens under a strong penalty, is left out.

    Where the unconstrained model nearly separates the classes, few rows have a curvature and a slope. If fewer than
    five rows for each feature have them, the directions are those at a half, a quarter, ... of its scores, until half
    of the rows have them.

    Where there are fewer than ten rows for each feature, the unconstrained model has memorised many labels. Then the
    directions are those at constant scores, which know none, with a ridge as large as the diagonal of the curvature.

    The methods for b are, in turn, `SequentialQuadratic` from the unconstrained model (not for ratios of rates, or
    rates among decisions); `SequentialQuadratic` from an optimum for smooth decisions, which become sharper step by
    step, unless the first method took few steps; and `AugmentedLagrangian`. The first that settles is the last, unless
    its objective is nearer to that of the best constant score than to that of a multiple of the unconstrained model.
    For ratios of rates and rates among decisions, it is also the last if it has followed smooth decisions from the
    unconstrained model, and its objective is at most 1 % above what these have promised. Where errors are counted, the
    method is `SpanSearch`.

    Where losses or AUCs are compared and the smallest cell has fewer than eight rows for each feature, the
    unconstrained models fit its noise, and so would b in many directions. There the models have the ridge with which
    they predict the left-out rows best, and b begins with one direction for each bounded quantity: its slope is split
    into the rows of every group and label only where that lowers the objective on rows not seen by more than a tenth.
    If b keeps bounds on the rows that it is chosen on by more than on those of a fold that it has not seen, they are
    made stricter by the difference, by at most nine tenths of kappa, where that can be kept. Bounds which the models
    without a ridge keep on both kinds of rows leave the unconstrained model as it is.

    Takes linear scores of at most 5,000 features. Where groups have coefficients of their own, b has
    numbers for each group; the directions are those of scores shared by all groups. With several classes, the scores of
    all of them are the features of each.

    Parameters
    ----------
    max_iter : int, default=50
        Outer iterations of the augmented Lagrangian in the span.
    tol : float, default=5e-4
        Tolerance of the augmented Lagrangian.
    n_folds : int, default=5
        Folds of the rows, without which the models are fitted one after the other.

    References
    ----------
    Wolpert, Stacked generalization, Neural Networks 5(2), 1992. Menon, Williamson, The cost of fairness in binary
    classification, FAT* 2018: proposition 4, for the direction of demographic parity.
    """

    name: ClassVar[str] = "cross_fitted"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    projects: ClassVar[bool] = False
    keeps_metric: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True
    is_final: ClassVar[bool] = True
    bounds_unseen_rows: ClassVar[bool] = True

    max_iter: Count = 50
    tol: NonNegative = 5e-4
    n_folds: Count = 5

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        if not problem.works_on_other_rows:
            return "terms that can be measured on a part of the rows"
        return CrossFittedSpan.obstacle(problem)

    @classmethod
    def suits(cls, problem: Problem) -> bool:
        """Whether a span suits, there are enough rows to choose by, and rows are counted at known thresholds.

        Or other means and AUCs are compared of so few rows for each feature that the models of all rows fit their
        noise, see `has_few_rows`.
        """
        if problem.domain is not None or cls.obstacle(problem) or any(c.n_aux for c in problem.constraints):
            return False
        fewest = fewest_in_cells(problem, 0)
        if all(c.counts_rows for c in problem.constraints):
            return fewest >= _ROWS and Span.suits_features(problem, MOST_FEATURES)
        bounds_metrics = all(c.bounds_metric for c in problem.constraints) and Span.suits_features(problem)
        return bounds_metrics and fewest >= _ROWS_OF_MEANS and has_few_rows(problem)

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`; from the result for another ``kappa`` it goes on with the models of the folds."""
        on_all_rows, recorder = self._on_all_rows(problem), Recorder(callback, self.verbose)
        if not problem.component_names:
            return on_all_rows.solve(problem, None, random_state, callback)
        known = solver_state(problem.unless_constant(start), _Known, problem.data)
        if known is not None and known.n_folds != self.n_folds:
            known = None
        models, near = (None, None) if known is None else (known.models, known.start)
        span = CrossFittedSpan.of(problem, problem.data.folds(self.n_folds), random_state, models)
        n_evaluations = 0 if known else span.models.n_evaluations
        if span.needs_no_move(problem):
            found = on_all_rows.solve(problem, None, random_state, callback)
            # shrunken models are not those of all rows
            no_margins = np.zeros(len(problem.constraints))
            chosen = InSpan(span.free, no_margins, False) if span.models.shrunken is None else None
            known = _Known(span.models, self.n_folds, None, chosen)  # for smaller bounds
            start = Start(found.model_state, fingerprint=problem.data.fingerprint, solver_state=known)
            return replace(found, n_evaluations=found.n_evaluations + n_evaluations, start=start)
        run = SpanSearches(problem, recorder, n_evaluations)
        if span.models.shrunken is None:
            kept = run.first_kept(span, self._searches(problem, span, near, random_state))
        else:
            kept = FewDirections(run, self.tol).solve(span, random_state)
        if kept is None:
            return self._on_all_rows_after(run, random_state, callback)
        params, here = kept.result.model_state, kept.result.start if span.models.shrunken is None else None
        if here is not None:
            here = replace(here, previous=None if near is None else near.model_state)
        known = _Known(span.models, self.n_folds, here, kept.chosen)
        start = Start(params, fingerprint=problem.data.fingerprint, solver_state=known)
        return replace(run.ended(kept.result), start=start)

    def _searches(
        self, problem: Problem, span: CrossFittedSpan, near: Start | None, rng: np.random.Generator
    ) -> Iterator[Search]:
        """Search in the span, and with bounds on the training rows as well if these can be kept at all."""
        no_margins = np.zeros(len(problem.constraints))
        for number, reduced in enumerate(span.problems(problem)):
            found, is_completed = self._in_span(reduced, span.free, near, rng)
            is_feasible = not found.status.is_infeasible
            yield Search(reduced, found, no_margins, number > 0, may_be_last=is_feasible, is_completed=is_completed)
            if found.status is Status.INFEASIBLE_STATIONARY:
                return  # more bounds will not be kept either
            assert found.start is not None  # every iterative run leaves one
            near = replace(found.start, previous=None)  # not on the way from another kappa

    def _on_all_rows_after(
        self, run: SpanSearches, rng: np.random.Generator, callback: Callback | None
    ) -> SolverResult:
        """The result of the solver for all rows, which goes on with the records and counts of searches in spans."""
        records, before = run.recorder.records, {"n_iter": run.n_iter, "n_evaluations": run.n_evaluations}
        seconds = seconds_of(records)
        told = None if callback is None else lambda record: callback(record_after(record, seconds=seconds, **before))
        found = self._on_all_rows(run.problem).solve(run.problem, None, rng, told)
        return replace(
            found,
            n_iter=found.n_iter + run.n_iter,
            n_evaluations=found.n_evaluations + run.n_evaluations,
            history=joined_history(records, found.history, **before),
        )

    @override
    def tells_folds(self, problem: Problem) -> bool:
        return has_convex_hessian(problem) or not SpanSearch.obstacle(problem)

    @override
    def without_folds(self, problem: Problem, result: SolverResult) -> list[np.ndarray] | None:
        r"""Implement `Solver.without_folds`, with the models of the folds and a step of the few numbers b.

        With the step :math:`p` of the quadratic program of `SequentialQuadratic` at b, and that of the problem without
        a fold :math:`p_{-k}`, the numbers without the fold are :math:`b + p_{-k} - p`, as p would be zero at the exact
        solution. Where rows are few, or errors are counted, a search from b on finds the solution without the fold.
        """
        known = solver_state(result.start, _Known)
        if known is None or result.status.is_infeasible:
            return None
        chosen = known.chosen
        if chosen is None:
            return cast(Shrunk, known.models.shrunken).by_fold
        folds = problem.data.folds(self.n_folds)
        whole = CrossFittedSpan.of(problem, folds, np.random.default_rng(0), known.models)
        span = next(own for own in whole.from_narrow(problem) if own.problem.n_params == chosen.params.size)
        try:
            move = self._move(chosen, chosen.problem_in(span, problem), span.models.shrunken is not None)
        except ProgramNotSolved:
            return None
        if move is None:
            return None
        # what other processes may be asked for has no rows of X
        bare = problem.on(problem.data.without_features)
        own = replace(span, problem=span.problem.on(span.problem.data))  # its bounds still held those with X
        without = partial(_numbers_without, span=own, problem=bare, chosen=chosen, move=move)
        calls = (
            partial(without, fold, span.features_without(problem, fold) if chosen.bounds_both else None)
            for fold in range(self.n_folds)
        )
        states = []
        for columns, numbers in zip(span.by_fold, problem.data.divided(calls), strict=True):
            if numbers is None:
                return None
            states.append(replace(span, columns=columns).lift(numbers))
        return states

    def _move(self, chosen: InSpan, whole: Problem, is_far: bool) -> Callable[[Problem], np.ndarray | None] | None:
        """A function from the problem of a part of the rows to its numbers, which begins at those of all rows."""
        b, blur = chosen.params, SequentialQuadratic.blur
        if not SpanSearch.obstacle(whole):
            return partial(_searched_near, params=b)
        if is_far:
            return partial(chosen.solved_again, tol=self.tol)
        if SequentialQuadratic.obstacle(whole) or not has_convex_hessian(whole):
            return None
        step = newton_step(whole, b, blur)
        return partial(_stepped, params=b, blur=blur, step=step)

    def _on_all_rows(self, problem: Problem) -> Solver:
        """The solver where nothing is chosen on rows that the models have not seen."""
        solver = AugmentedLagrangian if Span.obstacle(problem) else Span
        return solver(max_iter=self.max_iter, tol=self.tol, verbose=self.verbose)

    def _in_span(
        self, reduced: Problem, free: np.ndarray, start: Start | None, rng: np.random.Generator
    ) -> tuple[SolverResult, bool]:
        """Solve with the features of the span: by exact thresholds where errors are counted.

        Otherwise by the first of the `_attempts` that settles, unless it loses most of what the unconstrained model
        ``free`` is worth. The result is `completed` where that is needed to settle it; also returns whether nothing is
        left to complete.
        """
        if not SpanSearch.obstacle(reduced):
            # the unconstrained model in the span is that of all problems, whatever else these bound
            start = None if start is None else replace(start, fingerprint=None)
            found = SpanSearch().solve(reduced, start, rng)
            if found.is_stationary or beats_constants(reduced, found.model_state, free):
                return found, True
            return self._or_of_easier(reduced, free, found, rng), True
        results: list[tuple[SolverResult, bool]] = []
        goals: list[float] = []  # of attempts that have one
        for attempt in self._attempts(reduced, free, start, rng):
            results.append(attempt.settled(reduced))
            goals += [] if attempt.goal is None else [attempt.goal]
            least = min((one.objective for one, _ in results if one.status.is_settled), default=np.inf)
            # bounds next to which there is hardly a model have bad optima
            if attempt.is_last and _is_far_from_constants(reduced, free, least):
                break
        found, is_completed = min(results, key=lambda pair: (pair[0].status.is_infeasible, pair[0].objective))
        if found.status.is_infeasible and goals and min(goals) == np.inf:
            found = replace(found, status=Status.INFEASIBLE_STATIONARY)
        if found.status is Status.MAX_ITER and any(one.status.is_settled for one, _ in results):
            found = _as_completed(found)  # it is better than one that has settled
        return replace(found, n_evaluations=sum(one.n_evaluations for one, _ in results)), is_completed

    def _or_of_easier(
        self, reduced: Problem, free: np.ndarray, found: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """The result of a search by counts, or what the easiest objective on the way to counts leads to, if better.

        Where even that keeps the bounds nowhere near, neither does.
        """
        other, _ = self._in_span(reduced.with_easiest_objective(), free, None, rng)
        if other.status is Status.INFEASIBLE_STATIONARY:
            return replace(found, status=other.status)
        state = best_rescaled(reduced, [best_shifted(reduced, other.model_state), found.model_state])
        scores = reduced.scores(state)
        return replace(
            found,
            model_state=state,
            objective=reduced.objective_at(state, scores),
            status=Status.COMPLETED if reduced.holds(scores) else found.status,
            n_evaluations=found.n_evaluations + other.n_evaluations,
        )

    def _attempts(
        self, reduced: Problem, free: np.ndarray, start: Start | None, rng: np.random.Generator
    ) -> Iterator[_Attempt]:
        """Solve by one method for few coefficients after the other."""
        if not SequentialQuadratic.obstacle(reduced):
            quick = SequentialQuadratic(tol=self.tol)
            leads_far = not SequentialQuadratic.suits(reduced)
            if not leads_far:
                found = quick.solve(reduced, start or Start(free), rng)
                yield _Attempt(found, is_last=found.n_iter <= _SHORT)
            ways = [(free, WIDE)] if start is None else [(start.model_state, NARROW), (free, WIDE)]
            for begin, widths in ways if len(reduced.component_names) <= _MOST_BOUNDS else []:
                sharp = sharpened(reduced, begin, widths)
                found = quick.solve(reduced, Start(sharp.params), rng)
                n_evaluations = found.n_evaluations + sharp.n_evaluations
                # steps that have settled within the bounds are better than where they began
                candidates = found.candidates if found.status.is_settled else (sharp.params, *found.candidates)
                attempt = _Attempt(replace(found, n_evaluations=n_evaluations, candidates=candidates), sharp.objective)
                yield attempt
                # under such bounds, what follows hardly ever finds a better optimum, by ten times the evaluations
                if begin is free and leads_far and found.status.is_settled and attempt.reaches_goal(found):
                    return
        for begin_at in (None,) if start is None else (start, None):
            found = AugmentedLagrangian(max_iter=self.max_iter, tol=self.tol).solve(reduced, begin_at, rng)
            # what only a shift has brought within the bounds may have begun too far away
            yield _Attempt(found, is_last=found.status.is_settled)


class _Attempt(NamedTuple):
    """Result of a method for few coefficients."""

    found: SolverResult
    #: Objective within bounds on smooth decisions, infinite where there is none; None where it is not known.
    goal: float | None = None
    #: Whether it is the last attempt if it settles: a method that took many steps may have missed a better optimum.
    is_last: bool = True

    def settled(self, problem: Problem) -> tuple[SolverResult, bool]:
        """The result, and whether it is `completed`, which it is unless the method has settled.

        It has settled as well where the goal is reached within the bounds.
        """
        if self.found.status.is_settled:
            return self.found, False
        result = completed(problem, self.found)
        settles = self.reaches_goal(result) and problem.holds(problem.scores(result.model_state))
        return (_as_completed(result) if settles else result), True

    def reaches_goal(self, result: SolverResult) -> bool:
        """Whether the objective of a result is hardly above a goal that there is."""
        goal = np.inf if self.goal is None else self.goal
        return bool(np.isfinite(goal) and result.objective <= goal + _SHORTFALL * abs(goal))


def _searched_near(part: Problem, params: np.ndarray) -> np.ndarray | None:
    """The numbers b without a fold, by a search near those of all rows; the same whichever folds were before it."""
    return SpanSearch().solved_near(part, params=params, random_state=np.random.default_rng(0))


def _stepped(part: Problem, params: np.ndarray, blur: float, step: np.ndarray) -> np.ndarray:
    """The numbers b without a fold, by the steps with it and without it."""
    return params + newton_step(part, params, blur) - step


def _numbers_without(
    fold: int,
    features: np.ndarray | None,
    *,
    span: CrossFittedSpan,
    problem: Problem,
    chosen: InSpan,
    move: Callable[[Problem], np.ndarray | None],
) -> np.ndarray | None:
    """The numbers b without a fold; None where there are none.

    ``features`` are those of the span without the fold, where the training rows are bounded as well.
    """
    seen = np.flatnonzero(span.folds != fold)
    rest = problem if features is None else problem.on(problem.data.part(seen))
    try:
        return move(chosen.problem_in(span.without(fold, seen, features), rest))
    except ProgramNotSolved:
        return None


def _as_completed(found: SolverResult) -> SolverResult:
    """The result as that of a method that has settled, however its own method ended."""
    return replace(found, status=Status.COMPLETED, message="", has_diverged=False)


def _is_far_from_constants(problem: Problem, free: np.ndarray, objective: float) -> bool:
    """Whether an objective is nearer to that of the unconstrained model than to that of the best constant score.

    True where that is not known, unless the objective is infinite. Where features are many, the model is overfitted,
    and a multiple of its scores is better on rows it has not seen.
    """
    constant = constant_scores(problem, free)
    if constant is None or objective == np.inf:
        return objective < np.inf
    multiples = min(problem.objective_at(state, problem.scores(state)) for state in np.outer(_MULTIPLES, free))
    # the best one within the bounds, for which they have to be measured, is no better than that without bounds
    if objective <= (multiples + least_of_constants(problem, free)) / 2:
        return True
    best = best_rescaled(problem, [constant])
    return bool(objective <= (multiples + problem.objective_at(best, problem.scores(best))) / 2)


class _Known(NamedTuple):
    """Models of a span, the number of its folds, and where the solution in it ended.

    ``chosen`` is the result in the span, None where models are shrunken and that of the result is not.
    """

    models: CrossFittedModels
    n_folds: int
    start: Start | None
    chosen: InSpan | None
