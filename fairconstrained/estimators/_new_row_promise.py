"""Bounds on estimates of the metrics on new rows, in place of the metrics of the training rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from typing_extensions import override

from fairconstrained.estimators._by_chance import noise_of
from fairconstrained.estimators._cross_fitted_gaps import fold_obstacle
from fairconstrained.estimators._margin_search import Trial, best_of, next_margins
from fairconstrained.estimators._new_row_estimates import NewRowEstimates
from fairconstrained.estimators.new_rows import TellsNewRows
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import CrossFittedSpan, Solver, SolverResult, Status, best_constant

__all__ = ["PromisesNewRows"]

#: Message where no fit has estimates within the bounds, but a constant score does.
_CONSTANT = (
    "no fit that was tried has an estimate for new rows within kappa, and the best constant score within it was taken: "
    " all rows have the same score.{} Loosen kappa, pass more rows, or give the model less freedom: {}."
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
        # estimates of folds of which one has a constant score say nothing
        expected = -np.inf if estimated.has_constant else self._beyond(problem, estimated)
        if self._beyond(problem, estimated, result) > max(expected, 0.0):
            other = self._solved_with_margins(solver, problem, starts, seed)
            found = (result, estimated), other
            result, estimated = min(found, key=lambda pair: self._beyond(problem, pair[1], pair[0]))
        return result, estimated

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
        if self._beyond(problem, estimated, result) <= 0:
            return result
        constant = best_constant(problem, result.model_state)
        if constant is None:
            return result
        message = _CONSTANT.format(noise_of(problem), self._less_freedom)
        return replace(result, model_state=constant, status=Status.MAX_ITER, message=message, multipliers=None)

    def _beyond(self, problem: Problem, estimated: NewRowEstimates, result: SolverResult | None = None) -> float:
        """By how much the estimates exceed ``kappa``, those for the model of a result if there is one."""
        if result is not None:
            estimated = estimated.about(problem, problem.scores(result.model_state), self._fold_units(problem))
        return max((estimated.beyond(c) for c in problem.constraints if c.bounds_metric), default=-np.inf)

    def _kept_on_new_rows(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int
    ) -> tuple[Problem, NewRowEstimates]:
        """The problem with the largest bounds that were tried whose estimates on new rows are within those asked for.

        Where no bounds are small enough, those whose estimates are nearest.
        """
        largest = np.array([np.inf if c.bounds_from_below else c.kappa for c in problem.constraints])
        trials: list[Trial] = []
        tried: list[tuple[Problem, NewRowEstimates]] = []
        margins: np.ndarray | None = np.zeros(largest.size)
        while margins is not None:
            stricter = problem.with_margins(margins)
            found = self._estimated(solver, stricter, starts, seed)
            starts = found.starts
            tried.append((stricter, found))
            excess = found.excess(problem) - problem.granularities
            trials.append(Trial(margins, excess, found.has_constant))
            bounds = zip(problem.constraints, excess, strict=True)
            if trials[-1].beyond > 0 and any(above > 0 and c.value_by_chance > c.kappa for c, above in bounds):
                break  # scores that depend on nothing are beyond the bound as well
            margins = next_margins(trials, largest)
        return tried[best_of(trials)]
