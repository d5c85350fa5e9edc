"""Base of all estimators: the one `fit`, from rows to a fitted model."""

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import _fit_context, clone
from sklearn.utils.validation import _num_samples
from tqdm import tqdm
from typing_extensions import override

from fairconstrained.checks.inputs import in_memory, warn_of_another_order
from fairconstrained.checks.seeds import seed_of
from fairconstrained.data import FairData
from fairconstrained.estimators._by_chance import noise_of
from fairconstrained.estimators._last_fit import LastFit
from fairconstrained.estimators._other_rows import MeasuresOtherRows
from fairconstrained.estimators._outcome import Fitted, Target
from fairconstrained.estimators._published import PAPER, published_settings
from fairconstrained.estimators._usefulness import hints
from fairconstrained.estimators._watching import WatchesSolver
from fairconstrained.estimators.grouping import NO_SMALL_GROUPS, Stratified
from fairconstrained.estimators.parameters import CheckedParameters
from fairconstrained.estimators.remembers import RemembersRows
from fairconstrained.estimators.saving import SavedByParameters
from fairconstrained.estimators.threads import limited_threads
from fairconstrained.models import Model
from fairconstrained.problem import Problem, Start, are_all_equal
from fairconstrained.solvers import (
    AdamLagrangian,
    CrossFitted,
    Solver,
    SolverResult,
    Span,
    SpanSearch,
    Status,
    StoppedBy,
    beats_constants,
    best_rescaled,
    best_shifted,
    make_solver,
    no_worse_than_constants,
    ordered_within,
    polished,
    solver_class,
)
from fairconstrained.tables.dask_table import as_rows

#: Message where no iterate is within the bounds, but a multiple or a shift of one is.
_RESCUED = (
    "no iterate kept the bound, and the best constant, multiple or shift of its scores that does was taken, or a "
    "neighbour of it."
)
#: Message where this is the same score for all rows.
_CONSTANT = "no iterate kept the bound, and the best constant that does was taken: all rows have the same score."
_WORSE = "its scores were worse than a constant within the bound, which was taken: all rows have the same score."
#: Message where a random search has found scores within the bound.
_FOUND = "no iterate kept the bound; a search in random directions found scores that do, and these were taken."
#: Addition to these for a metric that did not exist until then, such as a ratio where nobody was accepted.
_UNDEFINED = " Of the other models {0.name} does not exist, as {0.why_undefined}."

#: Share of ``kappa`` by which bounds are stricter under which a run may keep those that it has missed.
_STRICTER = 0.5
#: Factors of the rows of one class in objectives whose solutions may keep bounds on decisions that a run has missed.
_FAVOURING = (8.0, 32.0)

__all__ = ["BaseFairEstimator"]


class BaseFairEstimator(CheckedParameters, RemembersRows, SavedByParameters, MeasuresOtherRows, WatchesSolver):
    """An estimator that minimises an objective subject to fairness constraints.

    A subclass defines *what* is solved by `_model`, `_objective`, `_constraints` and `_encode_target`, see
    `PosesProblem`; this class validates, solves and reports.
    """

    # Class-level requests: with metadata routing on, no set_fit_request or set_score_request is needed.
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sensitive_features": True, "strata": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sensitive_features": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"sensitive_features": True}

    _default_solver: ClassVar[str] = "augmented_lagrangian"
    #: Parameters of the papers' experiments by solver, see `published_settings`.
    _published: ClassVar[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})
    #: Whether the features are functions of another model's scores, as those of a head are. Then a search in the few
    #: directions that matter finds the best decisions, where decisions are what is bounded and counted.
    _on_scores: bool = False
    #: Whether the features tell the groups, too, as those of a head with ``use_groups=True`` do.
    _knows_groups: bool = False
    #: Whether `fit` only checks what does not depend on the features, see `check_columns`.
    _only_checks: bool = False
    #: For messages: the argument that asks for no fairness.
    _unconstrained: ClassVar[str] = "kappa=None"
    #: For messages: the parameter that limits how long the solver runs.
    _limit: ClassVar[str] = "max_iter"

    @override
    def forget_rows(self) -> Self:
        super().forget_rows()
        if "_fitted" in self.__dict__:  # where the fits of folds ended may hold a score for every row
            self._fitted = replace(self._fitted, of_folds=())
        return self

    @override
    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        return {"kappa": kappa}

    def _set_attributes(self, attributes: dict[str, Any]) -> None:
        """Set the fitted attributes of the model."""
        for name, value in attributes.items():
            setattr(self, name, value)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, strata: Any = None
    ) -> Self:
        """Fit the model under its constraints.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Features.
        y : array-like of shape (n_samples,)
            Target.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The group of every row; several columns make one group of every observed combination. Without it
            there is nothing to compare, nothing is bounded, and a `FairnessWarning` says so.
            `RateParityClassifier`, `LossParityClassifier` and `GroupLossClassifier` also take a table of booleans,
            dense or sparse, whose columns say which rows belong to a group; such groups may overlap.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.
        strata : array-like of shape (n_samples,) or (n_samples, n_columns), optional
            The stratum of every row, such as a job or a department, for constraints that compare groups within strata
            (``within="strata"``, "conditional_parity").

        Returns
        -------
        self : estimator
            Unchanged if an error or an interruption occurs.

        Raises
        ------
        ValueError
            For invalid data or parameters, for groups that are too small for ``kappa`` to be resolved, and for strata
            that no constraint asks for.

        Warns
        -----
        ConvergenceWarning
            If the metric (with ``promise="new_rows"`` its estimate for new rows) exceeds ``kappa`` by more than its
            granularity, if the solver stopped early or found nothing better within the bound than the same score for
            all rows, or if a network gets features that are not standardised.
        NewRowsWarning
            If the bound is kept on the training rows, but the estimate for new rows exceeds ``kappa`` by more than the
            granularity and two standard errors.
        CostlyBoundWarning
            If the bound takes most of the accuracy above that of always predicting the more frequent class, or of the
            R² of a regressor; see ``hints_``.
        FairnessWarning
            If nothing is bounded, as there are no two groups to compare, if columns have the same row labels (index) in
            different orders, if names of groups differ in blanks, capitals or type alone, or if smooth rates are within
            ``kappa`` and those of the decisions are not.
        """
        X, y, sensitive_features = as_rows(X), in_memory(y), in_memory(sensitive_features)
        sample_weight, strata = in_memory(sample_weight), in_memory(strata)
        given = {"sensitive_features": sensitive_features, "sample_weight": sample_weight, "strata": strata}
        if not self._on_scores:  # where rows are scored, they are compared with those of X
            warn_of_another_order(X=X, y=y, **given)
        return self._fit_or_leave(X, y, Stratified.joined(sensitive_features, strata), sample_weight)

    def _fit_or_leave(self, X: Any, y: Any, *columns: Any) -> Self:
        """Call `_fit` on a copy and become it: whatever goes wrong on the way, this estimator stays as it was.

        ``columns`` are those that `fit` takes beside X and y, which differ between estimators.
        """
        fitted = copy.copy(self)
        # no fitted attribute of an earlier fit stays
        fitted.__dict__ = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        if self._only_checks:
            fitted._bind_only(X, y, *columns)
            return self
        fitted._fit(X, y, *columns)
        fitted.__dict__.pop("_shared", None)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any, *columns: Any) -> None:
        """Set everything that `fit` leaves, from rows as the user gave them."""
        with published_settings(self):
            target, data, learnt = self._shared_rows.once("rows", lambda: self._taken(X, y, *columns))
            self.__dict__ |= learnt
            problem = self._problem(data, target)
            self._fit_problem(problem, target, data.n_samples)

    def check_columns(self, y: Any, **columns: Any) -> None:
        """Raise the errors of `fit` about parameters, targets and groups, for rows whose features are not known yet.

        Parameters
        ----------
        y : array-like of shape (n_samples,)
        **columns : dict
            Further arguments of `fit`.
        """
        checked = clone(self)
        checked._only_checks = True
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit itself will warn
            checked.fit(np.zeros((_num_samples(y), 1)), y, **columns)

    def _bind_only(self, X: Any, y: Any, *columns: Any) -> None:
        """Bind the constraints to rows, without a model."""
        with published_settings(self):
            target, data, learnt = self._taken(X, y, *columns)
            self.__dict__ |= learnt
            self._objective().bind(data)
            if not self._holds_vacuously(data):
                self._bound_constraints(data, target)
        if self.solver != "auto":
            solver_class(self.solver)

    def _taken(self, X: Any, y: Any, *columns: Any) -> tuple[Target, FairData, dict[str, Any]]:
        """The rows as the terms see them, and the attributes that an estimator with these parameters learns of them."""
        learner, own = copy.copy(self), self.get_params(deep=False)
        learner.__dict__ = dict(own)
        target, data = learner._take(X, y, *columns)
        return target, data, {name: value for name, value in vars(learner).items() if name not in own}

    def _take(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> tuple[Target, FairData]:
        """The rows as the terms see them; sets what is learnt of them."""
        X, y, sample_weight = self._checked_rows(X, y, sample_weight, multi_output=False)
        self._remember_rows(X)
        if sample_weight is not None and not sample_weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must be positive.")
        sample_weight = self._set_aside(X, y, sensitive_features, sample_weight)
        target = self._encode_target(y, sample_weight)
        self._small = self._small_groups(target, sensitive_features, sample_weight)
        return target, self._data(X, target, sensitive_features, sample_weight, self._small)

    def _fit_problem(self, problem: Problem, target: Target, n_rows: int) -> None:
        """Solve, set the fitted attributes and warn; threads share ``n_rows`` where the model uses them."""
        begin, seed = time.perf_counter(), seed_of(self.random_state)
        start, of_folds = self._warm_start(problem.model, problem.data.labels)
        solver = self._solver(problem)
        with limited_threads(n_rows if solver.takes_all_rows and problem.model.uses_threads else 1):
            fit = self._last_fit(solver, problem, start) or LastFit(
                problem, *self._solved_and_estimated(solver, problem, start, of_folds, seed)
            )
            result, estimated = fit.result, fit.estimated
            scores = problem.scores(result.model_state)
            self.new_row_gaps_ = self._gaps_of(problem, scores, estimated)
            self._shared_rows.remember(fit._replace(gaps=self.new_row_gaps_))
            self.solver_ = solver.name
            excess = self._adopt(problem, result, target, problem.data.labels)
            self._fitted = replace(self._fitted, of_folds=estimated.starts)
            self.hints_ = hints(self, problem, scores, np.random.default_rng(seed))
        for line in self._summary(problem, scores, time.perf_counter() - begin) if self.verbose else ():
            tqdm.write(line)
        self._warn(problem, scores, result, excess)

    def _last_fit(self, solver: Solver, problem: Problem, start: Start | None) -> LastFit | None:
        """Return the last fit of a path if it also solves this problem, else None."""
        last, estimates = self._shared_rows.last, self._n_folds() is not None
        is_promised = self.promise != "training" or (solver.bounds_unseen_rows and not estimates)
        if start is None or last is None or is_promised:  # bounds on rows not seen may move what these rows do not
            return None
        return last.under(problem) if last.is_solution_of(problem, estimates) else None

    @override
    def _solve_all(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        result = self._solve(solver, problem, start, rng)
        may_repeat = solver.keeps_metric and not result.stopped_by
        if start is not None and may_repeat and result.status.is_infeasible:
            result = self._solve(solver, problem, None, rng)  # a warm start may lead where no bound is kept
        completed = self._completed(solver, problem, result, rng)
        is_limited = bool(result.message or getattr(self, "callbacks", None) or getattr(solver, "max_time", None))
        may_run = solver.keeps_metric and problem.model.is_linear and not is_limited
        if result.status is Status.INFEASIBLE and may_run:
            found = self._under_stricter_bounds(solver, problem, completed, rng)
            return self._from_other_decisions(solver, problem, found, rng) if found is completed else found
        return completed

    @override
    def _or_constant(self, problem: Problem, stricter: Problem, result: SolverResult) -> SolverResult:
        if stricter is problem or result.status.is_infeasible:
            return result
        state = no_worse_than_constants(problem, result.model_state)
        return result if state is result.model_state else self._taking_constant(problem, result, state)

    def _taking_constant(self, problem: Problem, result: SolverResult, constant: Any) -> SolverResult:
        """The result with constant scores in place of worse ones, and a message that says so."""
        message = f"{_WORSE} {self._remedy(problem.data, result.stopped_by)}"
        return replace(result, model_state=constant, message=message, multipliers=None)

    @override
    def _solved_after(
        self, solver: Solver, problem: Problem, missed: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """Implement `TellsNewRows._solved_after`; a fit that was stopped does not begin again, and is completed."""
        if not missed.stopped_by:
            return self._solve_all(solver, problem, missed.start, rng).after(missed)
        if problem.holds(problem.scores(missed.model_state)):
            missed = replace(missed, status=Status.MAX_ITER)
        return self._completed(solver, problem, missed, rng)

    def _under_stricter_bounds(
        self, solver: Solver, problem: Problem, missed: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """The result of a run that has missed its bounds on gaps, or what one leads to that is to keep smaller ones.

        A run may lose its way, most of all where decisions are counted, and find it under other bounds. It need not
        keep these, only the bounds that were asked for. Bounds on counts by the order of the scores, such as
        statistical parity, stay as they are: under smaller ones such a run hardly ever finds what it has missed.
        """
        may_shrink = [
            c.bounds_metric and not (c.bounds_from_below or (c.counts_rows and c.ignores_shifts))
            for c in problem.constraints
        ]
        gaps = np.where(may_shrink, [c.kappa for c in problem.constraints], 0.0)
        if not gaps.any():
            return missed
        stricter = problem.with_margins(_STRICTER * gaps)
        found = self._run(solver, stricter, None, rng, None)
        if not found.status.is_infeasible:
            found = self._completed(solver, stricter, found, rng)
        if not problem.holds(problem.scores(found.model_state)):
            return missed
        state = best_rescaled(problem, [missed.model_state, found.model_state, *missed.candidates])
        status = Status.MAX_ITER if found.has_diverged else Status.COMPLETED
        found = replace(found, model_state=state, status=status, multipliers=None)
        return missed if state is missed.model_state else found.after(missed)

    def _from_other_decisions(
        self, solver: Solver, problem: Problem, missed: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """The result of a run that has missed its bounds on decisions, or the best one of runs that begin elsewhere.

        They begin at solutions that keep the bounds for an objective that favours one of the two decisions.
        """
        best = missed
        if not any(constraint.decision_threshold is not None for constraint in problem.constraints):
            return best
        for factor in _FAVOURING:
            for other in (problem.favouring_positives(1 / factor), problem.favouring_positives(factor)):
                if other is None:
                    return best
                near = self._completed(solver, other, self._run(solver, other, None, rng, None), rng)
                if not problem.holds(problem.scores(near.model_state)):
                    continue
                found = self._run(solver, problem, Start(near.model_state), rng, None)
                found = self._completed(solver, problem, found, rng)
                state = best_rescaled(problem, [best.model_state, found.model_state, near.model_state])
                if state is best.model_state:
                    continue
                if state is not found.model_state or found.status.is_infeasible:
                    found = replace(found, status=Status.COMPLETED, multipliers=None, message="", has_diverged=False)
                best = replace(found, model_state=state).after(best)
            if problem.holds(problem.scores(best.model_state)):
                return best
        return best

    @staticmethod
    def _is_poor(problem: Problem, state: Any) -> bool:
        """Whether decisions of linear scores miss a bound, or are worse than one decision for all without a need."""
        if not (problem.model.is_linear and problem.objective.counts_errors and problem.constraints):
            return False
        if not problem.holds(problem.scores(state)):
            return True
        return not (beats_constants(problem, state) or SpanSearch.has_smooth_sums(problem, state))

    @override
    def _solve_part(
        self, solver: Solver, problem: Problem, start: Start | None, rng: np.random.Generator
    ) -> SolverResult:
        result = self._run_part(solver, problem, start, rng)
        if start is not None and start.is_of_other_rows:
            # of what varies smoothly and is optimal, no multiple or shift that a search might find is worth its price
            counts = problem.objective.counts_errors or any(c.counts_rows for c in problem.constraints)
            if result.status.is_infeasible or (result.is_stationary and not counts):
                return result
        return self._completed(solver, problem, result, rng)

    def _completed(
        self, solver: Solver, problem: Problem, result: SolverResult, rng: np.random.Generator
    ) -> SolverResult:
        """The result with the best shift, and the best multiple where the solver is to keep the metric.

        Where that is poor, the solution for the easiest objective on the way to this one counts if it is better.
        """
        if result.status.is_infeasible or not solver.is_final:
            result = replace(result, model_state=best_shifted(problem, result.model_state))
            result = self._rescaled(problem, _searched_beside(problem, result)) if solver.keeps_metric else result
        if not solver.keeps_metric or not self._is_poor(problem, result.model_state):
            return result
        other = self._solve_part(solver, problem.with_easiest_objective(), None, rng)
        others = (result.model_state, *result.candidates)
        return self._rescaled(problem, replace(result, model_state=other.model_state, candidates=others))

    def _rescaled(self, problem: Problem, result: SolverResult) -> SolverResult:
        """The result with the best multiple and shift of its scores, or of those of another iterate."""
        states = [result.model_state, *result.candidates]
        state = best_rescaled(problem, states, result.is_stationary)
        rescued = result.status.is_infeasible and problem.holds(problem.scores(state))
        if rescued:  # the multipliers are those of another point, from which the bound was out of reach
            found = ordered_within(problem, state) if are_all_equal(problem.scores(state)) else None
            state = state if found is None else best_rescaled(problem, [found, state])
            state = best_rescaled(problem, [polished(problem, state, result.candidates)])
            is_constant = are_all_equal(problem.scores(state))
            message = _CONSTANT if is_constant else _RESCUED if found is None else _FOUND
            message += self._misses_of_nearest(problem, states)
            message += noise_of(problem) if is_constant else ""
            remedy = self._remedy(problem.data, result.stopped_by)
            return replace(result, model_state=state, message=f"{message} {remedy}", multipliers=None)
        return replace(result, model_state=state)

    def _misses_of_nearest(self, problem: Problem, states: Sequence[Any]) -> str:
        """Say which bounds the model that is nearest to them misses, and by how much; it tells how far to loosen."""
        nearest = min((problem.measured(problem.scores(state)) for state in states), key=lambda found: found.excess)
        sentences = []
        for constraint, violation in zip(problem.constraints, nearest.violations, strict=True):
            if np.isnan(nearest.values[constraint.name]):
                sentences.append(_UNDEFINED.format(constraint))
            elif violation > constraint.granularity:
                value = f"{constraint.name} is {constraint.at_excess(violation):.4g} on the {self._bounded_rows}"
                limit = f"kappa is {constraint.kappa:g}"
                if self.promise == "new_rows":  # it may be less than the kappa of the user
                    limit = f"{constraint.kappa:.4g} is allowed on these rows, so that the bound holds on new rows"
                sentences.append(f" Of the nearest other model, {value}, where {limit}.")
        return "".join(sentences)

    def _adopt(self, problem: Problem, result: SolverResult, target: Target, labels: tuple) -> dict[str, float]:
        """Set the fitted attributes; returns what `_report` returns."""
        state = result.model_state
        excess = self._report(problem, state, result, target)
        attributes = problem.model.attributes(state, target.offset, target.scale)
        self._set_attributes(attributes)
        self._model_attributes = tuple(attributes)
        start = replace(result.start or Start(state), model_state=state)
        small = self.__dict__.pop("_small", NO_SMALL_GROUPS)
        self._fitted = Fitted(problem.model.portable(), labels, start, target.offset, target.scale, small)
        return excess

    def _set_aside(
        self, X: Any, y: np.ndarray, sensitive_features: Any, sample_weight: np.ndarray | None
    ) -> np.ndarray | None:
        """The weights to fit with; rows that are not to be seen have none."""
        return sample_weight

    def _auto_solver(self, problem: Problem) -> str:
        """Name of the solver that "auto" stands for.

        A model with many coefficients keeps a bound by the training rows that it lines up just beyond a threshold, or
        whose losses it has memorised; new rows do neither. The first solver that suits has the fewest numbers to do so
        with. Dropout and batch normalisation need mini-batches.
        """
        if problem.model.differs_in_training and AdamLagrangian.name in problem.working_solvers():
            return AdamLagrangian.name
        if problem.constraints and self._asks_for_fairness():
            for solver in (CrossFitted, Span):
                if solver.suits(problem):
                    return solver.name
        return self._default_solver

    def _chosen_solver(self, problem: Problem) -> str:
        """Name of the solver that "auto" stands for, also on the scores of another model."""
        searches = self._on_scores and problem.constraints and not SpanSearch.obstacle(problem)
        return SpanSearch.name if searches else self._auto_solver(problem)

    def _group_argument(self, data: FairData) -> str:
        """The argument with which scores would differ between groups; empty where they do already, or cannot."""
        if self._on_scores:
            return "" if self._knows_groups else "use_groups=True"
        is_free = self.get_params(deep=False).get("group_interactions") is False and data.unions is None
        return "group_interactions=True" if is_free else ""

    def _cheaper_bound(self, data: FairData) -> str:
        """Advice for a bound that costs much."""
        argument = self._group_argument(data)
        if not argument:
            return "Loosen kappa."
        return f"If predictions may use the group, {argument} often costs less; otherwise raise kappa."

    def _freed(self, problem: Problem) -> Problem:
        """The problem of a model that a costly bound is compared with: the same without bounds."""
        return problem.without_constraints()

    def _longer(self, stopped_by: StoppedBy) -> str:
        """Advice for a fit that was over too soon, in words."""
        return stopped_by.remedy or f"raise {self._limit}"

    def _remedy(self, data: FairData, stopped_by: StoppedBy) -> str:
        """Advice for a bound that was not kept."""
        freedom = self._group_argument(data) or self._more_freedom
        return f"Loosen kappa, give the model more freedom ({freedom}), or {self._longer(stopped_by)}."

    @property
    def _more_freedom(self) -> str:
        """Advice for a model that has to fit its rows more closely."""
        return "a smaller alpha"

    @property
    @override
    def _less_freedom(self) -> str:
        """Advice where metrics of new rows are larger than those of the training rows."""
        if self._on_scores:
            return "group_estimator=None, or a larger alpha of the head"
        return "fewer features, a larger alpha, or a FairHeadClassifier"

    @property
    @override
    def _has_few_features(self) -> bool:
        return self._on_scores

    @override
    def _solver_in_span(self, problem: Problem) -> Solver:
        of_scores = copy.copy(self)
        of_scores._on_scores = True
        return of_scores._solver(problem)

    def __sklearn_clone__(self) -> Self:
        copied = super().__sklearn_clone__()
        if self._on_scores:
            copied._on_scores, copied._knows_groups = True, self._knows_groups
        return copied

    def _solver(self, problem: Problem, **special: Any) -> Solver:
        """The solver with the estimator's options, and with ``special`` ones as far as it has them."""
        name = self._chosen_solver(problem) if self.solver == "auto" else self.solver
        solver = solver_class(name)
        common = self._common_options(solver) | special
        known = {option.name for option in fields(solver)}
        options = {name: value for name, value in common.items() if name in known and value is not None}
        if self.solver_options == PAPER:
            return make_solver(name, {**solver.published(problem), **options}, problem)
        return make_solver(name, {**options, **(self.solver_options or {})}, problem)

    def _common_options(self, solver: type[Solver]) -> dict[str, Any]:
        """Options that solvers share, as far as they have them; None leaves a solver's own default."""
        return {solver.iterations_option: self.max_iter, "tol": self.tol, "verbose": self._solver_verbosity}

    def _warm_start(self, model: Model, labels: tuple) -> tuple[Start | None, tuple[Start, ...]]:
        """Where the last fit and those of its folds ended, if that is wanted and means the same now."""
        last = getattr(self, "_fitted", None)
        if not self.warm_start or last is None or (last.model.layout, last.labels) != (model.layout, labels):
            return None, ()
        return last.start, last.of_folds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _searched_beside(problem: Problem, result: SolverResult) -> SolverResult:
    """The result with a state of exact thresholds as a candidate, where steps along smooth errors led to a poor one."""
    is_poor = result.status.is_infeasible or not beats_constants(problem, result.model_state)
    if not (is_poor and problem.constraints) or SpanSearch.obstacle(problem):
        return result
    searched = SpanSearch().solve(problem, None, np.random.default_rng(0))
    return replace(result, candidates=(*result.candidates, searched.model_state))
