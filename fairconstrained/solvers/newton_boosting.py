"""Newton boosting in the space of scores: trees along the slopes of a Lagrangian whose multipliers follow the gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
import torch
from scipy.special import expit
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.models.boosted_trees import BinnedRows, BoostedTrees, Ensemble, Growth, mean_of_unseen, unseen_rows
from fairconstrained.objectives import BoundLargestMean, BoundObjective
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    named_multipliers,
    solver_state,
)
from fairconstrained.solvers._decision_costs import costs_of, follow_costs
from fairconstrained.solvers._options import Count, Positive
from fairconstrained.solvers._pressure import STEP, Pressure, Pull
from fairconstrained.terms import Measured
from fairconstrained.views import Exact, FullBatch, RowLosses

__all__ = ["NewtonBoosting"]

#: Multiples of ``measure_every`` after which the response to the multipliers is estimated anew.
_OBSERVED = 4
#: Largest costs of a decision by constraints in multiples of those by the objective. With larger ones rows would be
#: fitted to the opposite of their labels, where small changes of multipliers turn the decisions of whole groups.
_MOST_COSTS = 0.9
#: How far the longest steps that constraints alone can cause lead over all trees, in standard deviations of the scores,
#: where shorter ones have ended on the way to the bounds.
_WAY = 16.0
#: Messages where the model is a constant, and where it is worse than one.
_NO_TREE = (
    "no tree could be grown, as no split leaves enough rows on both sides and gains enough, so that all scores are the "
    "same. Give it more rows, or lower min_child_samples or min_gain_to_split in lgbm_params."
)
_WORSE = "its objective is {:.4g}, and that of a constant score {:.4g}. Lower learning_rate, or loosen kappa."


@dataclass(frozen=True)
class NewtonBoosting(Solver, is_registered=False):
    r"""Newton boosting of a Lagrangian, whose result is the best prefix of the trees within the exact bounds.

    With the scores s of the trees so far, the next tree is fitted to a Newton step on

    .. math:: f(s) + \sum_j m_j c_j(s), \qquad m_j = \max(\lambda_j + \rho c_j(s), 0),

    that is, its leaves are :math:`-\eta \sum_i g_i / \sum_i h_i`, with the slopes g of this function in the scores and
    the curvature h of the objective (and the absolute slopes of the constraints over a length, so that these alone
    never move a score by more than it; bounds on mean losses from above have the curvature of these losses). So every
    objective and every constraint can be had that has slopes in scores.
    After every tree :math:`\lambda_j` moves by a share of :math:`\rho c_j(s)`.

    Every ``measure_every`` trees the exact metrics are measured, and the surrogates :math:`c_j` are set to them
    (`Exact.refined`): their width falls to .1 standard deviations of the scores, their values are corrected to the
    exact ones, and while a bound stays exceeded, theirs becomes stricter, by at most half of kappa. The weight
    :math:`\rho` follows from how much a tree changes the constraints, doubles where a violation does not fall and
    halves where it changes sign.

    With ``n_folds``, boosters grow side by side, each without the rows of one fold, or of four folds or more without
    those of two, and the model is the mean of them. Metrics, objective and multipliers are those of the scores that
    every row has from the one, or as a mean from the two, which have not seen it, and so are the bounds; slopes are
    those of each booster's own scores of all rows. The width of the surrogates falls to .3 standard deviations only, as
    trees memorise which rows are next to the threshold: boosters differ there, and their mean has a larger gap
    than each of them. Where decisions are compared and a bound is exceeded by more than a quarter of kappa in the
    second half of the trees, the surrogates become logistic functions of width one, which have slopes for all rows.

    An objective that is about decisions, such as the number of errors, gives way to the logistic loss of the cheaper
    decision of every row, weighted by what the other decision costs. Constraints on decisions change these costs, by
    at most .9 of them, beside the slopes of their surrogates: so rows far from the threshold move as well, and the gap
    of new rows follows.

    The result is the measured prefix of the trees of least objective among those whose *exact* metrics are at most
    ``kappa`` plus their granularity, or the one nearest to that. Where there is none, as few trees or a small
    :math:`\eta` end on the way to bounds that are far from the first scores, other trees are grown with longer steps
    along the constraints, and those nearer to the bounds count. Where there is none and losses of groups are bounded,
    trees are grown without constraints, whose prefixes may keep them, or be nearer if no decisions are bounded, and
    under one such bound others along the largest loss. The prefix of least objective of all, where that is another one,
    is the result's candidate: with few rows, trees may have learnt all they can before the multipliers have found their
    values, and a multiple or shift of its scores may be within the bounds at a lower objective.

    Parameters
    ----------
    n_trees : int, default=300
        Trees of a booster in all. A warm start with fewer trees, on the same rows, keeps them and adds the rest; one
        with as many begins again, from its multipliers.
    learning_rate : float, default=0.1
        Factor :math:`\eta` of a Newton step.
    measure_every : int, optional
        Trees after which the exact metrics are measured, which costs about as much as a tree. None: a 60th of all.
    patience : int, optional
        End when for so many trees no prefix within the bounds has been better than all before. The trees of the first
        half do not count: the multipliers find their values there. None: never.
    n_folds : int, optional
        Folds of the rows, at least 2, and number of boosters, of which each does not see one fold, or from 4 on two.
        None: one booster of all rows.

    References
    ----------
    Friedman (2001), Greedy function approximation: a gradient boosting machine, Annals of Statistics 29(5), Algorithm 1
    and section 4.3. Chen, Guestrin (2016), XGBoost, KDD, eq. 5 (leaves of a Newton step). Agarwal, Beygelzimer, Dudík,
    Langford, Wallach (2018), A reductions approach to fair classification, ICML, section 3.2 (costs of decisions).
    """

    name: ClassVar[str] = "newton_boosting"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    model: ClassVar[type] = BoostedTrees
    keeps_metric: ClassVar[bool] = True
    iterations_option: ClassVar[str] = "n_trees"

    n_trees: Count = 300
    learning_rate: Positive = 0.1
    measure_every: Count | None = None
    patience: Count | None = None
    n_folds: Count | None = None

    @override
    def n_epochs(self, problem: Problem) -> int:
        return self.n_trees

    @property
    def trees_per_measurement(self) -> int:
        """Trees after which the exact metrics are measured, as a number."""
        return self.measure_every or max(self.n_trees // 60, 1)

    @override
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        seed = int(random_state.integers(2**31 - 1))
        run = _Run(self, problem, start, seed, Recorder(callback, self.verbose))
        result = run.complete()
        if result.stopped_by:
            return result
        longer = _WAY / (self.learning_rate * self.n_trees)
        if result.status.is_infeasible and longer > STEP and not all(c.is_fitted_loss for c in problem.constraints):
            further = _Run(self, problem, None, seed, Recorder(None, 0), step=longer)
            found = further.complete()
            n_evaluations = result.n_evaluations + found.n_evaluations
            if further.merit < run.merit:
                # a multiple of the other scores may keep the bounds at a lower objective
                candidates = (*found.candidates, result.model_state, *result.candidates)
                run, result = further, replace(found, candidates=candidates)
            result = replace(result, n_evaluations=n_evaluations)
        # trees without a pull give up bounds on decisions, which those with one may all but keep
        may_be_nearer = all(c.decision_threshold is None for c in problem.constraints)
        for objective in _objectives_alone(problem) if result.status.is_infeasible else ():
            alone = _Run(self, problem, None, seed, Recorder(None, 0), alone=objective)
            result = _nearer(result, alone.complete(), is_nearer=may_be_nearer and alone.merit < run.merit)
            if not result.status.is_infeasible:
                break
            run = min(run, alone, key=lambda one: one.merit)
        return result

    def unseen_rows(self, data: FairData) -> list[np.ndarray]:
        """Numbers of the rows that each of the boosters does not see, ascending."""
        if self.n_folds is None:
            return [np.empty(0, dtype=int)]
        return unseen_rows(data.folds(self.n_folds), self.n_folds)


def _nearer(missed: SolverResult, found: SolverResult, is_nearer: bool) -> SolverResult:
    """Where no prefix keeps the bounds, the result of trees along an objective alone, if it keeps them or is nearer."""
    n_evaluations = missed.n_evaluations + found.n_evaluations
    if found.status.is_infeasible and not is_nearer:
        return replace(missed, n_evaluations=n_evaluations)
    assert missed.start is not None  # every run has one for the next
    start = replace(missed.start, model_state=found.model_state)
    # a multiple of the other scores may keep the bounds where these do not
    candidates = (missed.model_state, *missed.candidates) if found.status.is_infeasible else ()
    # the multipliers are those of other trees, so that the price of the bounds is not known
    unknown = replace(found, multipliers=None, start=start, candidates=candidates)
    return replace(unknown, n_evaluations=n_evaluations, history=missed.history)


def _objectives_alone(problem: Problem) -> Iterator[BoundObjective]:
    """Objectives whose trees may keep bounds that those with a pull miss: that of the problem, and its largest mean.

    Learning brings losses down, and the weights that a bound on them gives to groups can hinder it.
    """
    if not any(c.is_fitted_loss for c in problem.constraints):
        return
    yield problem.objective
    bound: Any = problem.constraints[0]
    if len(problem.constraints) == 1 and isinstance(bound, RowLosses):
        means = replace(cast(Any, bound), kappa=0.0)
        largest = BoundLargestMean(bound.row_loss, problem.data, means=means)
        if largest.smoothed().curvature(torch.zeros(problem.data.n_samples, dtype=torch.float64)).sum() > 0:
            yield largest


class _Grown(NamedTuple):
    """Numbers of trees and folds that a start was to have, for runs that go on from it."""

    #: Trees that every booster was to have.
    n_trees: int
    #: Option of the solver.
    n_folds: int | None
    #: The best prefix so far, where the start has all trees; None where it is the best one itself.
    best: Ensemble | None = None
    #: The prefix of least objective so far, whatever the bounds are; None where it is not known.
    least: Ensemble | None = None


@dataclass(frozen=True)
class _Prefix:
    """A number of trees, and what is known of them."""

    state: Ensemble
    #: Scores that it is judged by.
    scores: np.ndarray  # of shape (n_samples,)
    measured: Measured
    objective: float
    multipliers: dict[str, float]
    decides_alike: bool

    @property
    def merit(self) -> tuple[bool, float, float]:
        """Less is better: the excess over the bounds, then the objective.

        One decision for all rows keeps bounds on rates and says nothing of other models. Those that decide are better
        even beyond the bounds, as another threshold or multiple of their scores may be within.
        """
        return self.decides_alike, max(self.measured.excess, 0.0), self.objective


class _Step(NamedTuple):
    """The Newton step of a booster along the objective."""

    slopes: np.ndarray  # of shape (n_samples,)
    curvature: np.ndarray  # of shape (n_samples,)
    #: costs and above: costs of positive decisions and their probabilities, of an objective that has such costs.
    costs: np.ndarray | None = None  # of shape (n_samples,)
    above: np.ndarray | None = None  # of shape (n_samples,)

    def under(self, pull: Pull | None) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvature with those of the constraints."""
        slopes, curvature = self.slopes, self.curvature
        if pull is None:
            return slopes, curvature
        if self.costs is not None and self.above is not None:
            most = _MOST_COSTS * np.abs(self.costs)
            slopes, curvature = follow_costs(self.costs + pull.costs.clip(-most, most), self.above)
        return slopes + pull.slopes, curvature + pull.curvature


@dataclass
class _Run:
    """One run of the solver; where trees follow an objective ``alone``, constraints judge them and do not pull.

    ``step`` is the longest step that constraints alone can cause, in standard deviations of the scores. ``best`` is
    the best prefix within the bounds, or the one nearest to them, and ``least`` that of least objective.
    """

    solver: NewtonBoosting
    problem: Problem
    start: Start | None
    seed: int
    recorder: Recorder
    alone: BoundObjective | None = None
    step: float = STEP
    n_grown: int = 0
    measured_at: int = -1
    best: _Prefix | None = None
    least: _Prefix | None = None
    improved_at: int = 0
    is_stuck: bool = False
    of_constant: float = np.inf

    def __post_init__(self) -> None:
        data, solver = self.problem.data, self.solver
        self.model = cast(BoostedTrees, self.problem.model)
        # Trees follow the slopes of this; the kinked objective itself is what prefixes are judged by.
        objective = self.alone or self.problem.objective
        self.free = replace(self.problem.without_constraints(), objective=objective.smoothed())
        start = None if self.start is None else self.start.on(data)
        unseen = solver.unseen_rows(data)
        kept = self._kept(start)
        first = Ensemble(constant=best_constant(self.free)) if kept is None else kept
        begin = first.split(len(unseen))
        self.n_before = begin[0].n_trees
        self.n_planned = solver.n_trees - self.n_before
        self.every = replace(solver, n_trees=max(self.n_planned, 1)).trees_per_measurement
        self.decisions = objective.decisions if objective.counts_errors else None
        self.pressure = Pressure(
            self.problem,
            start,
            max(self.n_planned, 1),
            self.n_before,
            for_unseen_rows=solver.n_folds is not None,
            has_costs=self.decisions is not None,
            step=self.step,
        )
        rows = self.model.binned(data, learning_rate=solver.learning_rate, seed=self.seed)
        self.boosters = [Growth(rows, *each) for each in zip(unseen, begin, strict=True)]
        earlier = None if kept is None or start is None else start.solver_state
        if earlier is not None:
            self.best, self.least = (self._earlier(rows, state) for state in (earlier.best, earlier.least))

    def complete(self) -> SolverResult:
        """Grow all trees that are planned, as far as there are some to grow."""
        while self.goes_on and self.grow():
            pass
        self.measure()
        return self.result()

    def _kept(self, start: Start | None) -> Ensemble | None:
        """The trees of a start that was to have fewer than there are to be; None if it was not, or has other folds.

        A record of a run was not to have any number, and has as many at most.
        """
        known = solver_state(start, _Grown)
        if start is None or known is None or known.n_trees >= self.solver.n_trees:
            return None
        if known.n_folds != self.solver.n_folds:
            return None
        n_trees = start.model_state.n_trees // (known.n_folds or 1)
        return start.model_state if n_trees <= self.solver.n_trees else None

    @property
    def merit(self) -> tuple[bool, float, float]:
        """That of the best prefix; less is better."""
        assert self.best is not None  # the start is measured
        return self.best.merit

    @property
    def scores(self) -> np.ndarray:
        """Scores that the bounds are about: those by boosters that have not seen the row, if there are folds."""
        return self._judged([booster.scores for booster in self.boosters])

    def _judged(self, each: Sequence[np.ndarray]) -> np.ndarray:
        """Scores that the bounds are about, from those of every booster."""
        if self.solver.n_folds is None:
            return each[0]
        unseen = [booster.unseen for booster in self.boosters]
        return mean_of_unseen(unseen, (own[rows] for own, rows in zip(each, unseen, strict=True)))

    @property
    def goes_on(self) -> bool:
        """Whether a tree is to be grown; measures when it is time to."""
        if self.n_grown % self.every == 0:
            self.measure()
        patience = self.solver.patience
        begin = max(self.improved_at, self.n_planned // 2)
        is_late = patience is not None and self.n_grown - begin >= patience
        return self.n_grown < self.n_planned and not is_late and self.recorder.stop is None

    def grow(self) -> bool:
        """Add a tree to every booster; returns whether there was one to add."""
        boosters, n_rows = self.boosters, self.problem.data.n_samples
        own = [self._of_own(booster.scores) for booster in boosters]
        pulls: list[Pull | None] = [None] * len(boosters)
        if self.alone is None and self.problem.constraints:
            force = float(np.abs(own[0].slopes).sum())
            pulls = [*self.pressure.pull(self.scores, [booster.scores for booster in boosters], force)]
        before = boosters[0].scores
        grown = []
        for booster, step, pull in zip(boosters, own, pulls, strict=True):
            slopes, curvature = step.under(pull)
            # LightGBM's limits are for sums over rows, ours are means
            grown.append(booster.grow(n_rows * slopes, n_rows * curvature))
        if not all(grown):
            for booster in compress(boosters, grown):
                booster.undo()
            self.is_stuck = True
            return False
        self.n_grown += 1
        is_due = (self.n_grown - 1) % (_OBSERVED * self.every) == 0 or self.pressure.begins_late
        if self.problem.constraints and is_due:
            self.pressure.observe(boosters[0].scores - before, own[0].curvature)
        return True

    def _of_own(self, scores: np.ndarray) -> _Step:
        """The step along the objective alone, from the scores of a booster."""
        if self.decisions is None:
            return _Step(*self._of_objective(scores))
        costs = costs_of(self.decisions, scores > self.problem.threshold)
        above = expit(scores - self.problem.threshold)
        return _Step(*follow_costs(costs, above), costs, above)

    def _of_objective(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes and curvature of the objective in the scores."""
        at = torch.from_numpy(scores.copy())
        slopes = self.free.at_scores(at, np.empty(0)).slopes(1.0, np.empty(0))[0].numpy()
        return slopes, self.free.objective.curvature(at).numpy()

    def measure(self) -> None:
        """Measure the exact metrics, offer the prefix, bring the surrogates to the metrics, and add a record."""
        if self.measured_at == self.n_grown:
            return
        self.measured_at = self.n_grown
        scores = self.scores
        measured = self.problem.measured(scores)
        state = Ensemble.mean([booster.state() for booster in self.boosters])
        prefix = self._prefix(state, scores, measured)
        if not state.n_trees and measured.excess <= 0:  # beyond the bounds it is nothing to compare with
            self.of_constant = prefix.objective
        # Constant scores are within most bounds; they are for the search that follows where no tree is.
        if prefix.state.n_trees or self.best is None:
            is_first = self.best is None or not self.best.state.n_trees
            if self.best is None or is_first or prefix.merit < self.best.merit:
                self.best, self.improved_at = prefix, self.n_grown
            if prefix.state.n_trees and (self.least is None or prefix.objective < self.least.objective):
                self.least = prefix
        if self.problem.constraints:
            self.pressure.refine(scores, measured.violations)
        assert self.best is not None  # every prefix is offered
        # whatever run begins there goes on from these trees
        least = None if self.least is None else self.least.state
        known = _Grown(0, self.solver.n_folds, self.best.state, least)
        self.recorder.add(
            state=Start(state, fingerprint=self.problem.data.fingerprint, solver_state=known),
            n_iter=self.n_before + self.n_grown,
            objective=prefix.objective,
            **measured.values,
            violation=self.pressure.worst,
            blur=self.pressure.blur,
            multipliers=prefix.multipliers,
        )

    def _earlier(self, rows: BinnedRows, state: Ensemble | None) -> _Prefix | None:
        """A prefix of an earlier run; None where there is none with trees."""
        if state is None or not state.n_trees:
            return None
        scores = self._judged([rows.scores(own) for own in state.split(len(self.boosters))])
        return self._prefix(state, scores, self.problem.measured(scores))

    def _prefix(self, state: Ensemble, scores: np.ndarray, measured: Measured) -> _Prefix:
        """A number of trees with what is known of them, and the present multipliers."""
        objective = self.problem.loss_at(scores.copy())
        multipliers = named_multipliers(self.pressure.names, self.pressure.mean) or {}
        return _Prefix(state, scores, measured, objective, multipliers, self._decides_alike(scores))

    def _decides_alike(self, scores: np.ndarray) -> bool:
        """Whether all rows get the same decision, where decisions are bounded."""
        positive = scores > self.problem.threshold
        on_decisions = any(c.decision_threshold is not None for c in self.problem.constraints)
        return on_decisions and bool(positive.all() or not positive.any())

    def result(self) -> SolverResult:
        """The best prefix, with multipliers for a next run."""
        best = self.best
        assert best is not None  # the start is measured
        is_within = best.measured.excess <= 0 and (best.state.n_trees > 0 or not self.n_grown)
        others = [each for each in (self.least,) if each and each.state.n_trees != best.state.n_trees]
        for prefix in (best, *others):
            self.model.remember(prefix.state, self.problem.data, prefix.scores)
        components, multipliers = self.pressure.components()
        return SolverResult(
            model_state=best.state,
            status=Status.COMPLETED if is_within else Status.INFEASIBLE,
            n_iter=self.n_grown,
            n_evaluations=len(self.boosters) * self.n_grown + len(self.recorder.records),
            objective=best.objective,
            constraint_values=best.measured.values,
            surrogate_violation=self.pressure.worst,
            multipliers=best.multipliers,
            message=self._message(best),
            history=tuple(self.recorder.records),
            stopped_by=self.recorder.stopped_by,
            candidates=tuple(prefix.state for prefix in others),
            start=Start(
                best.state,
                components,
                multipliers,
                fingerprint=self.problem.data.fingerprint,
                solver_state=_Grown(self.solver.n_trees, self.solver.n_folds),
            ),
        )

    def _message(self, best: _Prefix) -> str:
        """The complaint about trees that are no use; empty if there is none."""
        if self.is_stuck and not best.state.n_trees:
            return _NO_TREE
        return _WORSE.format(best.objective, self.of_constant) if best.objective > self.of_constant else ""


def best_constant(problem: Problem) -> float:
    """The constant score of least objective, by Newton steps; zero where all constants have the same one.

    A smooth count of errors is least at a constant so far from the threshold that it has no slopes there; the easier
    objective before it has one that trees can go on from.
    """
    free, n_rows = problem.without_constraints(), problem.data.n_samples
    if problem.objective.counts_errors:
        free = free.with_easiest_objective()
    constant = 0.0
    for _ in range(50):
        at = torch.full((n_rows,), constant, dtype=torch.float64)
        slope = float(free.at_scores(at.clone(), np.empty(0)).slopes(1.0, np.empty(0))[0].sum())
        step = -slope / float(free.objective.curvature(at).sum())
        constant += float(np.clip(step, -1.0, 1.0))
        if abs(step) < 1e-10:
            break
    return constant
