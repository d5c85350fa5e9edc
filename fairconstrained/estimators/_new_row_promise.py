"""Bounds on estimates of the metrics on new rows, in place of the metrics of the training rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import override

from fairconstrained.estimators._by_chance import noise_of
from fairconstrained.estimators._cross_fitted_gaps import fold_obstacle
from fairconstrained.estimators._new_row_estimates import NewRowEstimates
from fairconstrained.estimators.new_rows import TellsNewRows
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import CrossFittedSpan, Solver, SolverResult, Status, best_constant

__all__ = ["PromisesNewRows"]

#: Stricter bounds that are tried until the estimates on new rows are within ``kappa``.
_ROUNDS = 5
#: Message where no fit has estimates within the bounds, but a constant score does.
_CONSTANT = (
    "no smaller bound in the fit brought the estimate for new rows within kappa, and the best constant score within it "
    "was taken: all rows have the same score.{} Loosen kappa, pass more rows, or give the model less freedom: {}."
)


class PromisesNewRows(TellsNewRows):
    """Estimators that bound their estimates of the metrics on new rows, if ``promise="new_rows"`` asks for it."""

    @abstractmethod
    def _solver_in_span(self, problem: Problem) -> Solver:
        """The solver of a problem whose few features are scores of linear models."""

    @property
    @abstractmethod
    def _has_few_features(self) -> bool:
        """Whether the features are already few and cross-fitted, as those of a head are."""

    @property
    @abstractmethod
    def _less_freedom(self) -> str:
        """Advice where metrics of new rows are larger than those of the training rows."""

    @override
    def _solved_and_estimated(
        self, solver: Solver, problem: Problem, start: Start | None, of_folds: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, NewRowEstimates]:
        if self.promise == "new_rows" and self._bounds_anything(problem):
            result, estimated = self._solved_for_new_rows(solver, problem, of_folds, seed)
            return self._or_constant_on_new_rows(problem, result, estimated), estimated
        return super()._solved_and_estimated(solver, problem, start, of_folds, seed)

    def _solved_for_new_rows(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, NewRowEstimates]:
        """The result with estimates within the bounds.

        Of a linear model, the few numbers that matter are chosen on cross-fitted features, see `CrossFittedSpan`; other
        models are fitted with smaller bounds on the training rows. So is a linear model, too, where the combination of
        these features is clearly further beyond the bounds with the models of all rows, which are other ones then.
        """
        n_folds, units, rng = self._n_folds(), self._fold_units(problem), np.random.default_rng(seed)
        if n_folds is None:
            raise ValueError(
                "promise='new_rows' bounds an estimate on new rows; set new_row_folds to a number of them."
            )
        if obstacle := fold_obstacle(problem, n_folds, units):
            raise ValueError(f"promise='new_rows' needs an estimate on new rows, but {obstacle}.")
        if self._has_few_features or CrossFittedSpan.obstacle(problem):
            return self._solved_with_margins(solver, problem, starts, seed)
        span = CrossFittedSpan.of(problem, problem.data.folds(n_folds, units), rng)
        in_span = self._solver_in_span(span.problem)
        stricter, estimated = self._kept_on_new_rows(in_span, span.problem, (), seed)
        result = self._solve_all(in_span, stricter, None, rng)
        result = replace(result, model_state=span.lift(result.model_state), start=None, candidates=())
        if self._beyond(problem, estimated, result) <= max(self._beyond(problem, estimated), 0.0):
            return result, estimated
        other = self._solved_with_margins(solver, problem, starts, seed)
        return min((result, estimated), other, key=lambda found: self._beyond(problem, found[1], found[0]))

    def _solved_with_margins(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, NewRowEstimates]:
        """The result with bounds on the training rows so small that the estimates are within those asked for."""
        stricter, estimated = self._kept_on_new_rows(solver, problem, starts, seed)
        return self._solve_all(solver, stricter, None, np.random.default_rng(seed)), estimated

    def _or_constant_on_new_rows(
        self, problem: Problem, result: SolverResult, estimated: NewRowEstimates
    ) -> SolverResult:
        """The result, or the best constant score where that keeps bounds which the estimates of the result miss."""
        if not any(self._missed_on_new_rows(problem, self._about(problem, estimated, result).gaps)):
            return result
        constant = best_constant(problem, result.model_state)
        if constant is None:
            return result
        message = _CONSTANT.format(noise_of(problem), self._less_freedom)
        return replace(result, model_state=constant, status=Status.MAX_ITER, message=message, multipliers=None)

    def _beyond(self, problem: Problem, estimated: NewRowEstimates, result: SolverResult | None = None) -> float:
        """By how much estimates exceed what is allowed, the worse one for the model of a result if there is one."""
        if result is not None:
            estimated = self._about(problem, estimated, result)
        return float((estimated.excess(problem) - problem.granularities).max(initial=-np.inf))

    def _about(self, problem: Problem, estimated: NewRowEstimates, result: SolverResult) -> NewRowEstimates:
        """The estimates for the model of a result."""
        return estimated.about(problem, problem.scores(result.model_state), self._fold_units(problem))

    def _kept_on_new_rows(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int
    ) -> tuple[Problem, NewRowEstimates]:
        """The problem with bounds so small that the estimates on new rows are within those asked for, if there are any.

        An estimate changes by about as much as the bound: what it exceeds is taken off, and again.
        """
        margins = np.zeros(len(problem.constraints))
        tried: list[tuple[float, int, Problem, NewRowEstimates]] = []
        for _ in range(_ROUNDS):
            stricter = problem.with_margins(margins)
            found = self._estimated(solver, stricter, starts, seed)
            excess, starts = found.excess(problem), found.starts
            tried.append((self._beyond(problem, found), len(tried), stricter, found))
            if tried[-1][0] <= 0:
                break
            margins = margins + np.maximum(excess, 0.0)
        *_, best, estimated = min(tried)
        return best, estimated
