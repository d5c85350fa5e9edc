"""Estimates of the bounded metrics on new rows after every fit, and bounds on these estimates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from tqdm import tqdm

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints import BoundConstraint
from fairconstrained.estimators._cross_fitted_gaps import fold_obstacle, for_all_rows, held_out_scores, optimism
from fairconstrained.estimators._posing import PosesProblem
from fairconstrained.estimators._standard_errors import standard_errors
from fairconstrained.estimators.shared_rows import SharedRows
from fairconstrained.features import beside
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import CrossFittedSpan, Solver, SolverResult, scores_without_folds
from fairconstrained.solvers.cross_fitted_span import fewest_in_cells
from fairconstrained.solvers.resuming import saved_minima

__all__ = ["NewRowGap", "TellsNewRows"]

#: Folds that "auto" stands for, by promise, where a solver has none of its own. Two take about as long as the fit; five
#: have more rows to fit on.
_FOLDS = {"training": 2, "new_rows": 5}
#: Folds of the steps by which linear scores find their optimism, which cost little.
_STEP_FOLDS = 20
#: Least and largest optimism that linear scores make up for, in multiples of ``kappa``. With 1 no gap is left on rows
#: seen; with more it comes back the other way round, which costs more than it brings.
_LEAST, _MOST_OF_STEPS = 0.05, 1.0
#: Rows of the smallest cell for each feature, beyond which linear scores have hardly any optimism.
_MANY_ROWS = 2000
#: Stricter bounds that are tried until the estimates on new rows are within ``kappa``.
_ROUNDS = 5
#: Largest optimism that is made up for, in multiples of ``kappa``. From 2 on, no model would be within both bounds:
#: that on rows seen and that on rows not seen.
_MOST = 1.75


class NewRowGap(NamedTuple):
    """Estimate of a bounded metric on new rows.

    Attributes
    ----------
    estimate : float
        The metric on new rows; NaN where there is no estimate.
    standard_error : float
        Standard error of the difference between the estimate and the metric in the population.
    how : str
        How the estimate was made, or why there is none.
    """

    estimate: float
    standard_error: float
    how: str


@dataclass(frozen=True)
class _Estimated:
    """Estimates for a problem, and where the fits on parts of the rows ended.

    Attributes
    ----------
    gaps : dict
    starts : tuple of Start
    corrections : dict
        Corrections that the estimates contain, by the constraint's name, see `for_all_rows`.
    optimism : dict
        Optimism of the differences by the constraint's name, where the fit makes up for it.
    own_errors : dict
        Standard errors of the metrics of the model of all rows, where they were computed before the estimates.
    """

    gaps: dict[str, NewRowGap]
    starts: tuple[Start, ...] = ()
    corrections: dict[str, float] = field(default_factory=dict)
    optimism: dict[str, np.ndarray] = field(default_factory=dict)
    own_errors: dict[str, float] = field(default_factory=dict)

    def made_up_for(self, problem: Problem, most: float | None = None) -> Problem:
        """Return the problem with bounds on differences of rows not seen besides.

        At most ``most`` times ``kappa`` of it is made up for. None stands for what the bounds on rows seen leave room
        for: with the same part of every difference, losses of the groups that are as far apart as the optimism, the
        other way round, are within all bounds.
        """
        if not self.optimism:
            return problem
        most = _MOST if most is None else most
        bounds: list[BoundConstraint] = []
        for constraint in problem.constraints:
            known = np.maximum(self.optimism.get(constraint.name, 0.0), 0.0)
            largest = float(np.max(known))
            part = min(1.0, most * constraint.kappa / largest) if largest else 0.0
            bounds.append(constraint.with_optimism(part * known) if part else constraint)
        return replace(problem, constraints=tuple(bounds))

    def about(self, problem: Problem, scores: np.ndarray, units: np.ndarray | None = None) -> _Estimated:
        """The estimates as they are for the model with these scores of the training rows.

        Where rows are few, the model of all rows may be another one than those of the folds, such as one that accepts
        few people. Then the standard error is that of its own scores if it is larger, and the metric of the rows that
        it has seen is the better warning if it is clearly larger than the estimate.
        """
        gaps = dict(self.gaps)
        known = [each for each in problem.constraints if not np.isnan(gaps[each.name].estimate)]
        errors = self.own_errors or standard_errors(known, problem.data, scores, units)
        for constraint in known:
            value, gap = constraint.metric(scores), gaps[constraint.name]
            differences, own = constraint.differences(scores), self.optimism.get(constraint.name)
            if differences is not None and own is not None:  # this model makes up for it, those of the folds do not
                gap = gap._replace(estimate=float((differences + own).max()))
            error = np.hypot(errors[constraint.name], self.corrections.get(constraint.name, 0.0))
            gap = gap._replace(standard_error=float(np.fmax(gap.standard_error, error)))
            beyond = constraint.excess(value) - constraint.excess(gap.estimate)
            if beyond > 2 * gap.standard_error + constraint.granularity:
                how = f"the training rows, as {gap.how} gives {gap.estimate:.3g}"
                gap = NewRowGap(value, gap.standard_error, how)
            gaps[constraint.name] = gap
        return replace(self, gaps=gaps)

    def excess(self, problem: Problem) -> np.ndarray:
        """Excess of every estimate over ``kappa``, where that bounds the metric; ndarray of shape (n_constraints,)."""
        return np.array([c.excess(self.gaps[c.name].estimate) if c.bounds_metric else 0.0 for c in problem.constraints])


@with_parameters
class BoundsNewRows:
    """Parameters of estimators that estimate the bounded metrics on new rows, and may bound these estimates.

    Parameters
    ----------
    promise : {"training", "new_rows"}, default="training"
        With "training", ``kappa`` bounds the metrics on the training rows; with "new_rows" their estimates on new rows,
        ``new_row_gaps_``. Then ``constraint_values_``, those of the training rows, may be larger or smaller, and a fit
        takes several fits of each fold: of linear scores these are fits without bounds, and a search in few directions
        follows.
    new_row_folds : int, "auto" or None, default="auto"
        Folds of the rows for ``new_row_gaps_``. "auto": the five of the solver "cross_fitted" with a smooth objective,
        which take a step each in place of a fit; elsewhere 2, or 5 with ``promise="new_rows"``. None: no estimate, no
        optimism that is made up for, and no advice in ``hints_``, as all take further fits.
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
        the row; with ``promise="training"`` it is corrected for that these models have seen fewer rows than this one.
        The standard error is that of the difference to the metric in the population. Empty where nothing is bounded.
    """

    new_row_gaps_: dict[str, NewRowGap]
    verbose: int
    #: Results that depend on the rows alone; of a path, those of all its fits.
    _shared: SharedRows = SharedRows(keeps=False)

    @abstractmethod
    def _solve_part(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        """Fit to a part of the rows, as the whole is fitted, but without telling anybody."""

    @abstractmethod
    def _solve_all(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        """Fit to all rows."""

    @abstractmethod
    def _solver_in_span(self, problem: Problem) -> Solver:
        """The solver of a problem whose few features are scores of linear models."""

    @property
    @abstractmethod
    def _has_few_features(self) -> bool:
        """Whether the features are already few and cross-fitted, as those of a head are."""

    def _makes_up_for_optimism(self, solver: Solver) -> bool:
        """Whether the fit is to keep differences within ``kappa`` on rows not seen as well, as fits to folds tell."""
        return False

    def _fold_units(self, problem: Problem) -> np.ndarray | None:
        """Numbers of what has to be in one fold, by row; None: the clusters of the data."""
        return None

    def _n_folds(self) -> int | None:
        return _FOLDS[self.promise] if self.new_row_folds == "auto" else self.new_row_folds  # type: ignore[return-value]

    def _solved_and_estimated(
        self, solver: Solver, problem: Problem, start: Start | None, of_folds: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, _Estimated]:
        """Fit to all rows as the promise asks for, and estimate the metrics on new rows."""
        if self.promise == "new_rows" and self._bounds_anything(problem):
            return self._solved_for_new_rows(solver, problem, of_folds, seed)
        rng = np.random.default_rng(seed)
        if not self._makes_up_for_optimism(solver):
            here = partial(self._estimated, solver, problem, of_folds, seed)
            tells_folds = self._may_tell_folds(solver, problem)
            estimate = here if tells_folds else self._begun(here, problem)
            result, found = self._solved_beyond_steps(solver, problem, start, rng)
            errors: dict[str, float] = {}
            if estimate is here:
                begin = None if of_folds else solver.start_of_parts(problem, result)
                states = solver.without_folds(problem, result) if tells_folds else None
                estimate = partial(here, states=states, begin=begin)
            else:  # another process may still be busy with it
                scores = problem.scores(result.model_state)
                errors = standard_errors(problem.constraints, problem.data, scores, self._fold_units(problem))
            return result, replace(estimate(), optimism=found, own_errors=errors)
        estimated = self._estimated(solver, problem, of_folds, seed)
        stricter = estimated.made_up_for(problem)
        result = self._solve_all(solver, stricter, start, rng)
        if result.status.is_infeasible and estimated.optimism:
            result = self._solve_all(solver, problem, result.start, rng)
        return result, estimated

    def _solved_beyond_steps(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> tuple[SolverResult, dict[str, np.ndarray]]:
        """Fit to all rows, and again with what steps to the fits without a fold show of its optimism, if they do."""
        result = self._solve_all(solver, problem, start, rng)
        has_optimism = solver.keeps_metric and not solver.bounds_unseen_rows
        if self._n_folds() is None or not has_optimism or result.status.is_infeasible:
            return result, {}
        found = _optimism_by_steps(problem, result.model_state)
        if not found:
            return result, {}
        stricter = _Estimated({}, optimism=found).made_up_for(problem, _MOST_OF_STEPS)
        again = self._solve_all(solver, stricter, result.start, rng)
        return (result if again.status.is_infeasible else again), found

    def _begun(self, estimate: Callable[[], _Estimated], problem: Problem) -> Callable[[], _Estimated]:
        """Begin with the estimates in another process, if one can lead them, and return what waits for them."""
        n_folds = self._n_folds()
        # where minima are saved, they are met in the same order again
        if n_folds is None or not self._bounds_anything(problem) or saved_minima() is not None:
            return estimate
        if fold_obstacle(problem, n_folds, self._fold_units(problem)):
            return estimate
        return beside(problem.data.X, estimate)

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
    ) -> _Estimated:
        """Estimate the metrics of a problem on new rows, by ``states`` of the model without one fold after the other.

        None are those of fits to the other rows, which begin at ``begin`` where they have no start of their own.
        """
        n_folds = self._n_folds() if states is None else len(states)
        if n_folds is None or not self._bounds_anything(problem):
            return _Estimated({})
        units = self._fold_units(problem)
        if obstacle := fold_obstacle(problem, n_folds, units):
            return _Estimated({c.name: NewRowGap(np.nan, np.nan, obstacle) for c in problem.constraints})
        silent = replace(solver, verbose=0)
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
            bar.update()
            return result.model_state, result.start or Start(result.model_state)

        with bar:
            # the rows of a promise for new rows are those of a span, which depends on the bound
            shared = self._shared if self.promise == "training" else SharedRows(keeps=False)
            held = held_out_scores(problem, n_folds, units, fit, starts, shared)
        errors = standard_errors(problem.constraints, problem.data, held.scores, units)
        gaps, corrections, found = {}, {}, {}
        makes_up = self.promise == "training" and self._makes_up_for_optimism(solver)
        for constraint, seen, differences in zip(problem.constraints, held.seen, held.differences, strict=True):
            own = optimism(constraint, held.scores, differences, n_folds) if makes_up else None
            if own is not None:
                found[constraint.name] = own
            estimate, correction = constraint.metric(held.scores), 0.0
            if self.promise == "training":  # otherwise a bound is chosen by the estimates, and chance favours them
                estimate, correction = for_all_rows(seen, estimate, n_folds)
            error = float(np.hypot(errors[constraint.name], correction))
            gaps[constraint.name] = NewRowGap(estimate, error, f"{n_folds}-fold cross-fitting")
            corrections[constraint.name] = correction
        return _Estimated(gaps, held.starts, corrections, found)

    def _gaps_of(self, problem: Problem, scores: np.ndarray, estimated: _Estimated) -> dict[str, NewRowGap]:
        """Return the estimates for the model with these scores of the training rows."""
        return estimated.about(problem, scores, self._fold_units(problem)).gaps if estimated.gaps else {}

    def _missed_on_new_rows(self, problem: Problem) -> Iterator[tuple[Any, NewRowGap]]:
        """Constraints with an estimate beyond ``kappa``, by two standard errors where no promise is made of it."""
        for constraint in problem.constraints:
            gap = self.new_row_gaps_.get(constraint.name)
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

    def _solved_for_new_rows(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int
    ) -> tuple[SolverResult, _Estimated]:
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
    ) -> tuple[SolverResult, _Estimated]:
        """The result with bounds on the training rows so small that the estimates are within those asked for."""
        stricter, estimated = self._kept_on_new_rows(solver, problem, starts, seed)
        return self._solve_all(solver, stricter, None, np.random.default_rng(seed)), estimated

    def _beyond(self, problem: Problem, estimated: _Estimated, result: SolverResult | None = None) -> float:
        """By how much estimates exceed what is allowed, the worse one for the model of a result if there is one."""
        if result is not None:
            estimated = estimated.about(problem, problem.scores(result.model_state), self._fold_units(problem))
        granularity = np.array([c.granularity for c in problem.constraints])
        return float((estimated.excess(problem) - granularity).max(initial=-np.inf))

    def _kept_on_new_rows(
        self, solver: Solver, problem: Problem, starts: Sequence[Start | None], seed: int
    ) -> tuple[Problem, _Estimated]:
        """The problem with bounds so small that the estimates on new rows are within those asked for, if there are any.

        An estimate changes by about as much as the bound: what it exceeds is taken off, and again.
        """
        margins = np.zeros(len(problem.constraints))
        tried: list[tuple[float, int, Problem, _Estimated]] = []
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


def _optimism_by_steps(problem: Problem, params: np.ndarray) -> dict[str, np.ndarray]:
    """Optimism of the differences at a solution by the constraint's name, of those that have any worth mentioning."""
    if fewest_in_cells(problem, 0) > _MANY_ROWS * problem.data.n_features or fold_obstacle(problem, _STEP_FOLDS):
        return {}
    unseen = scores_without_folds(problem, params, _STEP_FOLDS)
    if unseen is None:
        return {}
    seen, found = problem.scores(params), {}
    for constraint in problem.constraints:
        own = optimism(constraint, unseen, constraint.differences(seen), _STEP_FOLDS)
        if own is not None and constraint.kappa and own.max() > _LEAST * constraint.kappa:
            found[constraint.name] = own
    return found
