"""Constrained fits of linear models in a span of a few directions that are named beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
import torch
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.exceptions import StopTraining
from fairconstrained.models import LinearModel
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers._augmented.warm_start import narrows_anew, start_of_parts
from fairconstrained.solvers._base import Callback, Solver, SolverResult, Status, StoppedBy, record_after, solver_state
from fairconstrained.solvers._directions import (
    MOST_FEATURES,
    Curvature,
    constraint_slopes,
    curvature_table,
    objective_slope,
    obstacle_to_shared_scores,
    pulled_back,
)
from fairconstrained.solvers._last_of_data import LastOfData
from fairconstrained.solvers._options import Count, NonNegative
from fairconstrained.solvers._polish import can_be_polished, polished
from fairconstrained.solvers._unconstrained import unconstrained
from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic
from fairconstrained.views import Exact, FullBatch, RowLosses

__all__ = ["Span"]

#: Lengths of directions, relative to the first one, below which they are left out; and of vectors that are to be kept.
_RANK, _KEPT_RANK = 1e-3, 1e-9
#: Numbers of features between which it suits: with fewer, there is nothing to choose.
_FEW, _MANY = 8, 1000
#: Outer iterations from a solution on other rows, which is near: on a9a, Bank and ACS income runs that kept the bounds
#: took at most nine, and others did not come nearer later.
_NEAR_ITER = 20
#: Curvatures at the unconstrained models.
_CURVATURES = LastOfData()


@dataclass(frozen=True)
class Span(Solver):
    r"""Augmented Lagrangian on a few combinations of the features, in which bounds move the unconstrained model.

    At a solution of :math:`\min_w f(X w) + \frac{\alpha}{2} \|w\|^2` subject to :math:`c_j(X w) \le 0`, with
    multipliers :math:`\lambda_j`, the first-order conditions around the unconstrained optimum :math:`w_0` with its
    Hessian H are

    .. math:: w \approx w_0 - H^{-1} X^T \sum_j \lambda_j \nabla c_j(s), \qquad s = X w.

    So, with the slopes :math:`\nabla c_j` of smooth surrogates at the present scores, the solution lies near the span
    of :math:`w_0`, the last solution, the Newton step :math:`H^{-1} \nabla f`, and the directions
    :math:`H^{-1} X^T \nabla c_j`, of which the leading singular vectors are taken; where there are few, every
    :math:`\nabla c_j` is split into the rows of every group and label first. With a basis B of the span,

    .. math:: \min_{b} f(X B b) + \frac{\alpha}{2} \|b\|^2 \quad \text{s.t.} \quad c_j(X B b) \le 0

    is the same problem with a few features :math:`X B`, which the augmented Lagrangian solves. With at most 2,000
    rows, a smooth and convex objective, and bounds on rates at known thresholds (not on ratios or predictive
    values), steps of `SequentialQuadratic` and a random search within the exact bounds take its place, and it
    follows where these steps do not settle. B is orthonormal, so that the penalty is the same. Without a penalty, B
    is orthonormal in the curvature, whatever the units of the features are. The next round takes the directions at
    the scores found. Under bounds that count up to 2,000 rows at levels, such as statistical parity, it also begins
    anew with the widest surrogate, so that the first one ends after one outer iteration. If no round keeps the
    bounds, all coefficients are chosen by the same methods, unless the start is the solution on other rows: fits to
    parts of the rows stay in the span of the fit to all rows.

    An evaluation costs as much as if X had ten columns, and ten coefficients cannot line up rows just below a
    threshold, so that bounds hold better on new rows. The promise for the training rows is the same as without a span.

    Takes linear scores of at most 5,000 features, shared by all groups.

    Parameters
    ----------
    max_iter : int, default=50
        Outer iterations of the augmented Lagrangian, in every round; the steps before them are at most 30.
    tol : float, default=5e-4
        Tolerance of the steps and of the augmented Lagrangian.
    max_directions : int, default=8
        Directions of the constraints at most.
    max_rounds : int, default=2
        Largest number of rounds, each of which has a span of its own.
    min_gain : float, default=1e-3
        Fraction of the objective that a round has to gain on the one before to be followed by another one. It is
        always followed by one where either of them has not kept the bounds.

    References
    ----------
    Nocedal, Wright (2006), Numerical Optimization, theorem 12.1 for the first-order conditions, and Algorithm 17.4.
    """

    name: ClassVar[str] = "span"
    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    projects: ClassVar[bool] = False
    keeps_metric: ClassVar[bool] = True
    is_resumable: ClassVar[bool] = True

    max_iter: Count = 50
    tol: NonNegative = 5e-4
    max_directions: Count = 8
    max_rounds: Count = 2
    min_gain: NonNegative = 1e-3

    @classmethod
    @override
    def obstacle(cls, problem: Problem) -> str:
        return obstacle_to_shared_scores(problem, MOST_FEATURES)

    @classmethod
    def suits(cls, problem: Problem) -> bool:
        """Whether there are more coefficients than the span has, not too many, and means over rows to bound."""
        if problem.domain is not None or cls.obstacle(problem):
            return False
        means = all(c.counts_rows or isinstance(c, RowLosses) for c in problem.constraints)
        return means and cls.suits_features(problem)

    @classmethod
    def suits_features(cls, problem: Problem, most: int = _MANY) -> bool:
        """Whether there are more features than a span has, but not too many."""
        return _FEW < problem.data.n_features <= most

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`; from the result for another ``kappa`` on, with its multipliers.

        Steps of `SequentialQuadratic` begin at the unconstrained model then.
        """
        begin = time.perf_counter()
        start = problem.unless_constant(None if start is None else start.on(problem.data))
        known = solver_state(start, _Known)
        is_of_other_rows = start is not None and start.is_of_other_rows
        max_iter = min(self.max_iter, _NEAR_ITER) if is_of_other_rows else self.max_iter
        inner = AugmentedLagrangian(max_iter=max_iter, tol=self.tol, verbose=self.verbose)
        quick = SequentialQuadratic(min(self.max_iter, SequentialQuadratic.max_iter), self.tol, verbose=self.verbose)
        free, n_evaluations = (known.free, 0) if known else unconstrained(problem)
        if not problem.component_names or problem.holds(problem.scores(free)):
            found = inner.solve(problem, None, random_state, callback)
            return replace(found, n_evaluations=found.n_evaluations + n_evaluations)
        if known is not None and start is not None:
            start = replace(start, solver_state=known.widest)
        directions = _Directions(problem, free, self.max_directions, random_state)
        watch, best = _Watch(callback, problem, begin, n_evaluations), None

        def solved(reduced: Problem, near: Start | None, basis: _Basis, run: AugmentedLagrangian) -> SolverResult:
            seen, by_steps = None if callback is None else watch.see, None
            if SequentialQuadratic.suits(reduced) and can_be_polished(reduced):
                watch.enter(basis, directions.n_evaluations)
                # next to the solution for another bound there may be a worse optimum than next to the unconstrained one
                here = free if near is None or known is not None else near.model_state
                found = quick.solve(reduced, Start(basis.reduce(here)), random_state, seen)
                by_steps = watch.leave(_polished(reduced, found, basis.reduce(free)))
                if by_steps.status.is_settled or watch.stopped_by:
                    return by_steps
                near, run = None, inner  # steps leave nothing that the augmented Lagrangian could go on with
            watch.enter(basis, directions.n_evaluations)
            found = watch.leave(run.solve(reduced, basis.reduced(near), random_state, seen))
            return by_steps if by_steps and found.status.is_infeasible and not by_steps.status.is_infeasible else found

        # another bound leaves the directions much as they were
        n_rounds = self.max_rounds if known is None else 1
        for _ in range(n_rounds):
            basis = directions.basis(start)
            reduced = basis.on(problem)
            is_opening = start is None and n_rounds > 1 and self._needs_only_the_widest(reduced)
            run = replace(inner, max_iter=1) if is_opening else inner
            previous, best = best, solved(reduced, start, basis, run)
            if previous is not None and best.status.is_infeasible and not previous.status.is_infeasible:
                best = previous
            if watch.stopped_by or not self._goes_on(previous, best):
                break
            start = best.start
        assert best is not None  # there is at least one round
        if best.status.is_infeasible and not (watch.stopped_by or known or is_of_other_rows):
            # all coefficients may keep what few directions do not; but on a path, a fit without a start comes before,
            # and a model of other rows that is to tell something of one in few directions has to be one of these
            whole = solved(problem, None, _Basis.whole(problem), inner)
            best = best if whole.status.is_infeasible else whole
        return self._concluded(problem, best, watch, free, watch.n_evaluations + directions.n_evaluations)

    @override
    def for_parts(self, problem: Problem) -> Self:
        """Implement `Solver.for_parts`: further rounds hardly change the metrics."""
        return replace(self, max_rounds=1)

    @override
    def start_of_parts(self, problem: Problem, result: SolverResult) -> Start | None:
        return start_of_parts(problem, result)

    @staticmethod
    def _needs_only_the_widest(reduced: Problem) -> bool:
        """Whether a round before another one needs no narrower surrogate than the widest.

        The next round begins there, and a random search makes up for what the first one might have found. It does not
        under bounds on ratios of decisions, where results were worse by up to 7 %.
        """
        are_ordered = all(c.decision_threshold is None for c in reduced.constraints)
        return are_ordered and narrows_anew(reduced) and can_be_polished(reduced)

    def _goes_on(self, previous: SolverResult | None, last: SolverResult) -> bool:
        """Whether the last round has gained enough for another one."""
        if previous is None or previous.status.is_infeasible or last.status.is_infeasible:
            return True
        return previous.objective - last.objective > self.min_gain * abs(previous.objective)

    @staticmethod
    def _concluded(
        problem: Problem, best: SolverResult, watch: _Watch, free: np.ndarray, n_evaluations: int
    ) -> SolverResult:
        """The result with the metrics of the model itself, which only rounding parts from those in the span."""
        state = best.model_state if watch.chosen is None else watch.chosen
        scores = problem.scores(state)
        measured, objective, status = problem.measured(scores), problem.objective_at(state, scores), best.status
        if measured.excess > 0 or watch.chosen is not None:
            status = Status.INFEASIBLE if measured.excess > 0 else Status.MAX_ITER
        start = cast(Start, best.start)
        # a shift of the unconstrained scores may be within bounds that no iterate keeps
        candidates = (*best.candidates, free) if status.is_infeasible else best.candidates
        return replace(
            best,
            model_state=state,
            candidates=candidates,
            status=status,
            n_iter=watch.n_iter,
            n_evaluations=n_evaluations + 1,
            objective=objective,
            constraint_values=measured.values,
            history=tuple(watch.history),
            stopped_by=watch.stopped_by,
            start=replace(start, model_state=state, solver_state=_Known(free, start.solver_state)),
        )


def _polished(problem: Problem, found: SolverResult, free: np.ndarray) -> SolverResult:
    """The result of steps after the random search that ends the runs of `AugmentedLagrangian` as well."""
    if found.status.is_infeasible:
        return found
    state = polished(problem, found.model_state, (free, *found.candidates))
    objective, start = problem.objective_at(state, problem.scores(state)), cast(Start, found.start)
    return replace(found, model_state=state, objective=objective, start=replace(start, model_state=state))


class _Known(NamedTuple):
    """Parameters of the unconstrained model, and the start of the last run with the widest surrogate, if any."""

    free: np.ndarray
    widest: Start | None


@dataclass(frozen=True, eq=False)
class _Basis:
    """A basis of a span of coefficients; intercepts are the same in it."""

    #: Orthonormal if there is a penalty.
    columns: np.ndarray  # of shape (n_features, size)
    #: ``inverse @ columns`` is the identity; elsewhere it projects such that the scores change least.
    inverse: np.ndarray  # of shape (size, n_features)

    @classmethod
    def whole(cls, problem: Problem) -> _Basis:
        """The basis of all coefficients."""
        every = np.eye(cast(LinearModel, problem.model).n_features)
        return cls(every, every)

    def on(self, problem: Problem) -> Problem:
        """Return the problem with the features of the span."""
        model, data = cast(LinearModel, problem.model).in_span(problem.data, self.columns)
        return replace(problem, data=data, model=model)

    def lift(self, params: np.ndarray) -> np.ndarray:
        """Parameters of the model from those in the span; ndarray of shape (n_params,)."""
        size = self.columns.shape[1]
        return np.concatenate([self.columns @ params[:size], params[size:]])

    def reduce(self, params: np.ndarray) -> np.ndarray:
        """The inverse of `lift`."""
        size = self.columns.shape[0]
        return np.concatenate([self.inverse @ params[:size], params[size:]])

    def reduced(self, start: Start | None) -> Start | None:
        """Return a start of the model as one in the span."""
        return None if start is None else _mapped(start, self.reduce)

    def lifted(self, result: SolverResult, data: FairData) -> SolverResult:
        """Return the result of a run in the span as one of the model."""
        start = replace(_mapped(cast(Start, result.start), self.lift), fingerprint=data.fingerprint)
        candidates = tuple(self.lift(params) for params in result.candidates)
        return replace(result, model_state=self.lift(result.model_state), start=start, candidates=candidates)


def _mapped(start: Start, through: Callable[[np.ndarray], np.ndarray]) -> Start:
    """A start, and those in it, with other parameters, for any data."""
    widest = solver_state(start, Start)
    return replace(
        start,
        model_state=through(start.model_state),
        previous=None if start.previous is None else through(start.previous),
        fingerprint=None,
        solver_state=None if widest is None else _mapped(widest, through),
    )


class _Directions:
    """Directions in which a linear model has to be moved, at one model after the other.

    Parameters
    ----------
    problem : Problem
    free : ndarray of shape (n_params,)
        The unconstrained model, at which the curvature is taken.
    most : int
        Directions of the constraints at most.
    rng : numpy.random.Generator

    Attributes
    ----------
    n_evaluations : int
        Passes over the features so far, as evaluations.
    """

    def __init__(self, problem: Problem, free: np.ndarray, most: int, rng: np.random.Generator) -> None:
        self._problem, self._free, self._most = problem, free, most
        self._model = cast(LinearModel, problem.model)
        self.n_evaluations = 1  # for the curvature, whether or not it is known
        seed = int(rng.integers(2**31))  # drawn in any case, so that a path does not depend on what is known
        self._curvature = _CURVATURES.get(problem.data, (free,), lambda: self._curvature_at_free(seed))

    def _curvature_at_free(self, seed: int) -> Curvature:
        """The curvature at the unconstrained model, of some rows where there are very many."""
        scores = torch.from_numpy(self._problem.scores(self._free))
        by_row = self._problem.with_easiest_objective().objective.curvature(scores).numpy()
        table = curvature_table(self._model, self._problem.data, by_row, np.random.default_rng(seed))
        return Curvature.of(self._model, table)

    def basis(self, start: Start | None) -> _Basis:
        """Basis of the span at a start, which keeps all models of the start; at the unconstrained model for None."""
        here = self._free if start is None else start.model_state
        width, curvature = self._model.n_features, self._curvature
        kept = np.column_stack([params[:width] for params in (self._free, *_models_of(start))])
        newton, moves = self._slopes_at(here)
        own = _leading(np.column_stack([curvature.lengths(kept), newton]), width, _KEPT_RANK)
        others = _leading(moves - own @ (own.T @ moves), self._most, _RANK)
        lengths = np.hstack([own, others])
        columns = curvature.coefficients(lengths)
        if not self._model.alpha:  # no penalty prefers one basis, so take one that does not depend on units
            return _Basis(columns, lengths.T @ curvature.root.T)
        columns, _ = np.linalg.qr(columns)
        lengths = curvature.lengths(columns)
        # The singular vectors make the features of the span uncorrelated, as rows count in the curvature.
        left, sizes, right = np.linalg.svd(lengths, full_matrices=False)
        return _Basis(columns @ right.T, (left / sizes).T @ curvature.root.T)

    def _slopes_at(self, params: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Newton step of the objective, and directions of the constraints, in the units of `Curvature.lengths`."""
        problem, scores = self._problem, self._problem.scores(params)
        slopes = chain([objective_slope(problem, scores)], constraint_slopes(problem, scores))
        gradients = pulled_back(self._model, problem.data, slopes)
        gradients[:, 0] += self._model.penalty(params)[1]
        self.n_evaluations += 2
        descents = self._curvature.descents(gradients)
        return descents[:, 0], descents[:, 1:]


def _models_of(start: Start | None) -> list[np.ndarray]:
    """Parameters of a start and of those in it."""
    if start is None:
        return []
    previous = [] if start.previous is None else [start.previous]
    return [start.model_state, *previous, *_models_of(solver_state(start, Start))]


def _leading(vectors: np.ndarray, most: int, rank: float) -> np.ndarray:
    """The leading left singular vectors, at most so many, without those of small singular values."""
    left, sizes, _ = np.linalg.svd(vectors, full_matrices=False)
    return left[:, : min(most, int((sizes > rank * sizes.max(initial=0.0)).sum()))]


class _Watch:
    """Records of several runs as those of one, with the parameters of the model.

    Attributes
    ----------
    history : list of dict
    n_iter, n_evaluations : int
        Iterations of the runs that have ended, and evaluations before and in these, in units of the model.
    stopped_by : StoppedBy
        Reason for which the last run ended before it was over.
    chosen : ndarray of shape (n_params,), or None
        Parameters that the callback has chosen, if any.
    """

    def __init__(self, callback: Callback | None, problem: Problem, begin: float, n_evaluations: int) -> None:
        self._callback, self._problem, self._begin = callback, problem, begin
        self.history: list[dict[str, Any]] = []
        self.n_iter, self.n_evaluations, self.stopped_by = 0, n_evaluations, StoppedBy.NOTHING
        self.chosen: np.ndarray | None = None

    def enter(self, basis: _Basis, n_others: int) -> None:
        """Begin with a run in a span, after some evaluations beside those of the runs."""
        self._basis, self._others = basis, n_others
        self._seconds = time.perf_counter() - self._begin

    def _evaluations(self, count: int) -> int:
        """Return evaluations in the span in units of those of the model: they count in proportion to the features."""
        size = self._basis.columns.shape[1] + self._problem.n_params - self._basis.columns.shape[0]
        return int(np.ceil(count * size / self._problem.n_params))

    def see(self, record: Mapping[str, Any]) -> None:
        """Pass a record of the run on, as one of the model."""
        assert self._callback is not None  # otherwise nothing calls this
        told = self._told(record)
        if "params" in told:
            told["params"] = self._basis.lift(told["params"])
            told["state"] = Start(told["params"])
        try:
            self._callback(told)
        except StopTraining as stop:
            self.chosen = stop.params
            raise StopTraining from stop

    def leave(self, found: SolverResult) -> SolverResult:
        """Take note of the records of the run, which has ended; returns its result as one of the model."""
        self.history += map(self._told, found.history)
        self.n_iter += found.n_iter
        self.stopped_by = found.stopped_by
        self.n_evaluations += self._evaluations(found.n_evaluations)
        return self._basis.lifted(found, self._problem.data)

    def _told(self, record: Mapping[str, Any]) -> dict[str, Any]:
        in_units = {**record, "n_evaluations": self._evaluations(record["n_evaluations"])}
        # evaluations for the directions between two runs count as well
        n_evaluations = self.n_evaluations + self._others
        return record_after(in_units, n_iter=self.n_iter, n_evaluations=n_evaluations, seconds=self._seconds)
