"""Estimates of the bounded metrics on new rows after every fit, and what linear scores make up for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from tqdm import tqdm

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.estimators._cross_fitted_gaps import (
    SIZE_OF_ITS_OWN,
    HeldOutScores,
    fold_obstacle,
    for_all_rows,
    held_out_scores,
    optimism,
)
from fairconstrained.estimators._new_row_estimates import CONSTANT_SCORE, NewRowEstimates, NewRowGap
from fairconstrained.estimators._posing import PosesProblem
from fairconstrained.estimators._standard_errors import standard_errors
from fairconstrained.estimators.shared_rows import SharedRows
from fairconstrained.features import beside
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem, Start, are_all_equal
from fairconstrained.solvers import Solver, SolverResult, has_steps, scores_without_folds
from fairconstrained.solvers.cross_fitted_models import fewest_in_cells, has_few_in_cells
from fairconstrained.solvers.resuming import saved_minima

__all__ = ["TellsNewRows"]

#: Folds that "auto" stands for, by promise, where a solver has none of its own. Two take about as long as the fit; five
#: have more rows to fit on.
_FOLDS = {"training": 2, "new_rows": 5}
#: Folds that "auto" stands for where losses of groups are bounded, and rows are few for linear scores of so many
#: features: models of half of these rows are far worse than the model of all rows.
_FOLDS_OF_FEW = 5
#: Folds of the steps by which linear scores find their optimism, which cost little.
_STEP_FOLDS = 20
#: Least and largest optimism that linear scores make up for, in multiples of ``kappa``. With 1 no gap is left on rows
#: seen; with more it comes back the other way round, which costs more than it brings.
_LEAST, _MOST_OF_STEPS = 0.05, 1.0
#: Rows of the smallest cell for each feature, beyond which linear scores have hardly any optimism.
_MANY_ROWS = 2000


@with_parameters
class BoundsNewRows:
    """Parameters of estimators that estimate the bounded metrics on new rows, and may bound these estimates.

    Parameters
    ----------
    promise : {"training", "new_rows"}, default="training"
        With "training", ``kappa`` bounds the metrics on the training rows; with "new_rows" their estimates on new rows,
        ``new_row_gaps_``. Then ``constraint_values_``, those of the training rows, may be larger or smaller. The fit
        aims a quarter of a standard error of the estimate lower, but not below half of ``kappa``, and takes several
        fits of each fold: of linear scores these are fits without bounds, and a search in few directions follows.
        Where no fit has an estimate within ``kappa``, but a constant score has, that is taken, with a warning.
    new_row_folds : int, "auto" or None, default="auto"
        Number of folds for ``new_row_gaps_``, see :doc:`/guide/kappa`. "auto": 5 with the solvers "cross_fitted" and
        "cross_fitted_network", and 20 where losses of linear scores take one step for each in place of a fit; elsewhere
        2, or 5 with ``promise="new_rows"``, and where losses of groups are bounded and rows are few for the number of
        features. None saves the time of these fits: there is no estimate, fits do not make up for the optimism that it
        shows, and ``hints_`` has no advice.
    """

    promise: str = parameter("training", [StrOptions({"training", "new_rows"})])
    new_row_folds: int | str | None = parameter(
        "auto", [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"}), None]
    )


class TellsNewRows(BoundsNewRows, PosesProblem):
    """Estimators that fit to parts of the rows and measure on the others.

    Attributes
    ----------
    new_row_gaps_ : dict
        Estimates of the bounded metrics on new rows, by the constraint's name: named tuples (estimate, standard_error,
        how). The metric of all training rows, with scores by models that are fitted in the same way and have not seen
        the row; with ``promise="training"`` it is corrected, as these models have seen fewer rows than this one.
        The standard error is that of the difference to the metric in the population. Empty where nothing is bounded.
    """

    new_row_gaps_: dict[str, NewRowGap]
    verbose: int
    #: Results that do not depend on the bound; of a path, those of all its fits. Ask `_shared_rows` for them.
    _shared: SharedRows = SharedRows(keeps=False)

    @property
    def _shared_rows(self) -> SharedRows:
        """Results that fits share; none where the bound decides which groups are too small, and so the rows' order."""
        depends = getattr(self, "small_groups", "error") != "error"
        return SharedRows(keeps=False) if depends else self._shared

    @abstractmethod
    def _solve_part(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        """Fit to a part of the rows, as the whole is fitted, but without telling anybody.

        From a start for any data, which is the result for all rows, a fit that keeps the bounds nowhere ends where it
        is nearest to them. Constant scores, which keep them, would tell nothing of that result.
        """

    @abstractmethod
    def _solve_all(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        """Fit to all rows."""

    @abstractmethod
    def _solved_after(
        self, solver: Solver, problem: Problem, missed: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """Fit to all rows after a fit that has missed stricter bounds."""

    @abstractmethod
    def _or_constant(self, problem: Problem, stricter: Problem, result: SolverResult) -> SolverResult:
        """The result for stricter bounds, or constant scores if these keep the problem's own, and have a lower loss.

        Bounds that make up for an optimism leave constant scores out, which have none.
        """

    def _makes_up_for_optimism(self, solver: Solver) -> bool:
        """Whether the fit is to keep differences within ``kappa`` on rows not seen as well, as fits to folds tell."""
        return False

    def _fold_units(self, problem: Problem) -> np.ndarray | None:
        """Numbers of what has to be in one fold, by row; None: the clusters of the data."""
        return None

    def _for_part(self, solver: Solver, problem: Problem, share: float) -> Solver:
        """Return the solver for a share of the rows of a problem."""
        return solver.for_parts(problem)

    def _optimism_power(self) -> float:
        """Power of the number of rows by which the optimism of a model falls."""
        return SIZE_OF_ITS_OWN

    def _n_folds(self) -> int | None:
        return _FOLDS[self.promise] if self.new_row_folds == "auto" else self.new_row_folds  # type: ignore[return-value]

    def _folds_of_fits(self, problem: Problem) -> int | None:
        """Number of folds of an estimate that is made by fits; None: no estimate."""
        n_folds = self._n_folds()
        if n_folds is None or self.new_row_folds != "auto" or not isinstance(problem.model, LinearModel):
            return n_folds
        bounds_few = any(c.is_fitted_loss for c in problem.constraints) and has_few_in_cells(problem)
        takes_more = bounds_few and not fold_obstacle(problem, _FOLDS_OF_FEW, self._fold_units(problem))
        return max(n_folds, _FOLDS_OF_FEW) if takes_more else n_folds

    def _solved_and_estimated(
        self, solver: Solver, problem: Problem, start: Start | None, of_folds: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, NewRowEstimates]:
        """Fit to all rows as the promise asks for, and estimate the metrics on new rows."""
        if not self._makes_up_for_optimism(solver):
            return self._solved_then_estimated(solver, problem, start, of_folds, seed)
        rng = np.random.default_rng(seed)
        estimated = self._estimated(solver, problem, of_folds, seed)
        stricter = estimated.made_up_for(problem)
        result = self._solve_all(solver, stricter, start, rng)
        if result.status.is_infeasible and estimated.optimism:
            result = self._solved_after(solver, problem, result, rng)
        return self._or_constant(problem, stricter, result), estimated

    def _solved_then_estimated(
        self, solver: Solver, problem: Problem, start: Start | None, of_folds: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, NewRowEstimates]:
        """Fit to all rows, and then estimate: by steps from there if they tell, and otherwise by fits to parts.

        A second fit makes up for the optimism that they show of losses and AUCs by linear scores.
        """
        rng, may_step = np.random.default_rng(seed), self._may_step(solver, problem)
        here = partial(self._estimated, solver, problem, of_folds, seed)
        is_free = self.new_row_folds == "auto"
        is_later = self._may_tell_folds(solver, problem) or (may_step and is_free)
        estimate = here if is_later else self._begun(here, problem)
        result = self._solve_all(solver, problem, start, rng)
        steps = self._estimated_by_steps(problem, result) if may_step else None
        if steps is not None and is_free:
            estimated = steps
        elif estimate is here:
            estimated = self._estimated_after(solver, problem, result, of_folds, seed)
        else:
            # another process may still be busy with it
            errors = self._own_errors(problem, problem.scores(result.model_state))
            estimated = replace(estimate(), own_errors=errors)
        if steps is not None:
            estimated = replace(estimated, optimism=steps.optimism)
        stricter = estimated.made_up_for(problem, None if steps is None else _MOST_OF_STEPS, _LEAST)
        return self._solved_again(solver, problem, result, stricter, rng), estimated

    def _estimated_after(
        self, solver: Solver, problem: Problem, result: SolverResult, of_folds: Sequence[Start | None], seed: int
    ) -> NewRowEstimates:
        """Estimate by models without folds that the solver tells, or that are fitted from a start near the result.

        Models of the folds say nothing of a constant score, so that none are fitted: the estimate is its own metric.
        """
        scores, n_folds = problem.scores(result.model_state), self._n_folds_to_fit(problem)
        if n_folds is not None and are_all_equal(scores):
            return self._told_beside(problem, scores, scores, n_folds, CONSTANT_SCORE)
        states = solver.without_folds(problem, result) if self._may_tell_folds(solver, problem) else None
        begin = None if states is not None else solver.start_of_parts(problem, result)
        starts = of_folds if begin is None else ()  # the result for all rows under the same bounds is nearer
        return self._estimated(solver.chosen_by(result), problem, starts, seed, states, begin)

    def _own_errors(self, problem: Problem, scores: np.ndarray) -> dict[str, float]:
        """Standard errors of the metrics of scores of the rows, by constraint."""
        return standard_errors(problem.constraints, problem.data, scores, self._fold_units(problem))

    def _has_optimism(self, solver: Solver, problem: Problem) -> bool:
        """Whether linear scores are likely to have an optimism of losses and AUCs that a second fit can make up for."""
        if self._n_folds() is None or not solver.keeps_metric or solver.bounds_unseen_rows:
            return False
        is_linear, most = isinstance(problem.model, LinearModel), _MANY_ROWS * problem.data.n_features
        return is_linear and fewest_in_cells(problem, 0) <= most

    def _may_step(self, solver: Solver, problem: Problem) -> bool:
        """Whether steps to the fits without a fold may stand for these fits."""
        if not self._bounds_anything(problem) or not has_steps(problem):
            return False
        obstacle = fold_obstacle(problem, _STEP_FOLDS, self._fold_units(problem))
        return not obstacle and self._has_optimism(solver, problem)

    def _estimated_by_steps(self, problem: Problem, result: SolverResult) -> NewRowEstimates | None:
        """Estimates by steps from a result to the fits without a fold.

        None where the result keeps no bounds or is a constant score, or the steps lead away from the bounds.
        """
        params, scores = result.model_state, problem.scores(result.model_state)
        is_told = not result.status.is_infeasible and np.ptp(scores)
        unseen = scores_without_folds(problem, params, _STEP_FOLDS) if is_told else None
        if unseen is None:
            return None
        how = f"steps to the fits without one of {_STEP_FOLDS} folds"
        return self._told_beside(problem, scores, unseen, _STEP_FOLDS, how)

    def _told_beside(
        self, problem: Problem, scores: np.ndarray, unseen: np.ndarray, n_folds: int, how: str
    ) -> NewRowEstimates:
        """Estimates by scores ``unseen`` without one of ``n_folds`` folds, beside the ``scores`` of the fit itself."""
        seen = np.array([constraint.metric(scores) for constraint in problem.constraints])
        held = HeldOutScores(unseen, (), seen, [constraint.differences(scores) for constraint in problem.constraints])
        errors = self._own_errors(problem, unseen)  # losses of rows that a fit has seen vary less
        return replace(self._told_by(problem, held, n_folds, how, errors), own_errors=errors)

    def _solved_again(
        self, solver: Solver, problem: Problem, result: SolverResult, stricter: Problem, rng: np.random.Generator
    ) -> SolverResult:
        """The result, or that of the stricter problem, which makes up for an optimism, if it is another one."""
        if stricter is problem or result.status.is_infeasible or result.stopped_by:
            return result
        if stricter.holds(problem.scores(result.model_state)):
            return result
        again = self._solve_all(solver, stricter, result.start, rng).after(result)
        return result if again.status.is_infeasible else self._or_constant(problem, stricter, again)

    def _begun(self, estimate: Callable[[], NewRowEstimates], problem: Problem) -> Callable[[], NewRowEstimates]:
        """Begin with the estimates in another process, if one can lead them, and return what waits for them."""
        # where minima are saved, they are met in the same order again
        if self._n_folds_to_fit(problem) is None or saved_minima() is not None:
            return estimate
        return beside(problem.data.X, estimate)

    def _n_folds_to_fit(self, problem: Problem) -> int | None:
        """The number of folds if models without a fold can be fitted, else None."""
        n_folds = self._folds_of_fits(problem)
        if n_folds is None or not self._bounds_anything(problem):
            return None
        return None if fold_obstacle(problem, n_folds, self._fold_units(problem)) else n_folds

    def _may_tell_folds(self, solver: Solver, problem: Problem) -> bool:
        """Whether the solver may tell the models without a fold of its own, so that no other fits are needed."""
        is_free = self.new_row_folds == "auto" and self._n_folds() is not None and self._fold_units(problem) is None
        return is_free and self._bounds_anything(problem) and solver.tells_folds(problem)

    def _estimated(
        self,
        solver: Solver,
        problem: Problem,
        starts: Sequence[Start | None],
        seed: int,
        states: Sequence[Any] | None = None,
        begin: Start | None = None,
    ) -> NewRowEstimates:
        """Estimate the metrics of a problem on new rows, by ``states`` of the model without one fold after the other.

        None are those of fits to the other rows, which begin at ``begin`` where they have no start of their own.
        """
        n_folds = self._folds_of_fits(problem) if states is None else len(states)
        if n_folds is None or not self._bounds_anything(problem):
            return NewRowEstimates({})
        units = self._fold_units(problem)
        if obstacle := fold_obstacle(problem, n_folds, units):
            return NewRowEstimates({c.name: NewRowGap(np.nan, np.nan, obstacle) for c in problem.constraints})
        silent = self._for_part(replace(solver, verbose=0), problem, 1 - 1 / n_folds)
        bar = tqdm(
            total=n_folds,
            desc="estimate for new rows",
            unit=" folds",
            leave=False,
            disable=self.verbose != 1 or states is not None,
        )

        known = iter(states or ())

        def fit(part: Problem, start: Start | None) -> tuple[Any, Start]:
            if states is not None:
                state = next(known)
                return state, Start(state)
            result = self._solve_part(silent, part, start or begin, np.random.default_rng(seed))
            if start is not None and solver.keeps_metric and result.status.is_infeasible:  # as the fit to all rows
                result = self._solve_part(silent, part, None, np.random.default_rng(seed))
            bar.update()
            return result.model_state, result.start or Start(result.model_state)

        with bar:
            # the rows of a promise for new rows are those of a span, which depends on the bound
            shared = self._shared_rows if self.promise == "training" else SharedRows(keeps=False)
            # `NewRowEstimates.about` takes the training rows in place of folds of which one has a constant score
            ends_at_constant = self.promise == "training" and states is None
            held = held_out_scores(problem, n_folds, units, fit, starts, shared, ends_at_constant)
        # of means over rows, steps tell it or nothing does
        of_pairs = problem.row_losses is None and self._has_optimism(solver, problem)
        finds_optimism = self.promise == "training" and (self._makes_up_for_optimism(solver) or of_pairs)
        how, errors = f"{n_folds}-fold cross-fitting", self._own_errors(problem, held.scores)
        told = self._told_by(problem, held, n_folds, how, errors)
        return told if finds_optimism else replace(told, optimism={})

    def _told_by(
        self, problem: Problem, held: HeldOutScores, n_folds: int, how: str, errors: Mapping[str, float]
    ) -> NewRowEstimates:
        """The estimates and the optimism that scores by models without one of ``n_folds`` folds tell."""
        gaps, corrections, found, power = {}, {}, {}, self._optimism_power()
        for constraint, seen, differences in zip(problem.constraints, held.seen, held.differences, strict=True):
            own = optimism(constraint, held.scores, differences, n_folds)
            if own is not None and not held.has_constant:
                found[constraint.name] = own
            estimate, correction = constraint.metric(held.scores), 0.0
            if self.promise == "training":  # otherwise a bound is chosen by the estimates, and chance favours them
                estimate, correction = for_all_rows(seen, estimate, n_folds, power)
            error = float(np.hypot(errors[constraint.name], correction))
            gaps[constraint.name] = NewRowGap(estimate, error, how)
            corrections[constraint.name] = correction
        return NewRowEstimates(gaps, held.starts, corrections, found, has_constant=held.has_constant)

    def _gaps_of(self, problem: Problem, scores: np.ndarray, estimated: NewRowEstimates) -> dict[str, NewRowGap]:
        """Return the estimates for the model with these scores of the training rows."""
        return estimated.about(problem, scores, self._fold_units(problem)).gaps if estimated.gaps else {}

    def _missed_on_new_rows(self, problem: Problem, gaps: Mapping[str, NewRowGap]) -> Iterator[tuple[Any, NewRowGap]]:
        """Constraints whose estimate is beyond ``kappa``, by two standard errors where no promise is made of it."""
        for constraint in problem.constraints:
            gap = gaps.get(constraint.name)
            if gap is not None and constraint.bounds_metric:
                noise = 2 * gap.standard_error if self.promise == "training" else 0.0
                if constraint.excess(gap.estimate) > constraint.granularity + noise:
                    yield constraint, gap

    def _promised_excess(self, problem: Problem, scores: np.ndarray) -> dict[str, float]:
        """Excess over ``kappa`` of what it bounds, by constraint."""
        excess = {c.name: c.exact(scores) for c in problem.constraints}
        if self.promise == "training":
            return excess
        bounded = [c for c in problem.constraints if c.bounds_metric and c.name in self.new_row_gaps_]
        return excess | {c.name: c.excess(self.new_row_gaps_[c.name].estimate) for c in bounded}
