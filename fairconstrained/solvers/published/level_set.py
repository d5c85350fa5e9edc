"""The stochastic feasible level-set method: feasible iterates, without ever forming a pair of rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from fairconstrained.models import LinearMoments
from fairconstrained.problem import FullBatchView, Point, Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    named_multipliers,
    surrogate_result,
)
from fairconstrained.solvers._options import AtLeastOne, Count, NonNegative, NonNegativeInt, Positive
from fairconstrained.solvers.published._duals import LevelWeights
from fairconstrained.solvers.published.saddle_form import SaddleForm
from fairconstrained.solvers.published.saddle_steps import MirrorDescent
from fairconstrained.views import Exact, FullBatch, SingleRows

__all__ = [
    "Choice",
    "ChooseWithin",
    "LevelSet",
    "LevelStep",
    "Levels",
    "feasible_point",
    "infeasible_start",
    "start_saddle",
]

ChooseWithin = Literal["surrogate", "metric"]


@dataclass(frozen=True)
class LevelSet(Solver):
    r"""The stochastic feasible level-set method (Algorithm 1) for linear models.

    The constraints are quadratic losses of pairs. The objective is one too, or a convex loss of single rows such as
    the logistic loss (section 3).

    With the level-set function

    .. math:: H(r) = \min_x \mathcal{P}(r, x), \qquad
              \mathcal{P}(r, x) = \max \{ f_0(x) - r, \; f_1(x), \ldots, f_m(x) \}

    the optimum :math:`f^*` of :math:`\min f_0` s.t. :math:`f_j \le 0` is the root of H. From a level
    :math:`r_0 > f^*`, the objective at a feasible start, step k has stochastic mirror descent (Algorithm 2,
    `~fairconstrained.solvers.published.saddle_steps.MirrorDescent`) solve :math:`\min_x \mathcal{P}(r_k, x)`
    on mini-batches, which gives an iterate :math:`x_k` and a stochastic upper bound :math:`U(r_k)` of :math:`H(r_k)`
    (eq. 30), and sets :math:`r_{k+1} = r_k + U / (2 \theta)`. The loss of pairs is a saddle function of single rows
    (Lemma 1), so that rows come in any order and one at a time.

    Three points on which it is more careful than the paper, whose guarantees hold with some probability after a number
    of steps that nobody knows:

    * Every :math:`x_k` is checked on all data, and the oracle goes on, twice as long each time, until
      :math:`\mathcal{P}(r_k, x_k) < 0`: *all iterates are feasible for the surrogate*, and better than the level.
    * The level moves by :math:`\mathcal{P}(r_k, x_k) \ge H(r_k)` where U is below it, which is noise, and where
      U says to stop although :math:`\mathcal{P}` says that there is more to gain. Else ``theta = 1``,
      which is what the paper uses but its theory does not allow, could lead below :math:`f^*`, where nothing is
      feasible.
    * The dual step and the bound have the factor :math:`c_1` that the paper leaves out, see
      `fairconstrained.solvers.published.saddle_form.SaddleForm`.

    Constant scores are feasible where :math:`2 c_1 c_2^2 \le 1 + \kappa` (Lemma 2). Where they are not, no scores are:
    the two sides of an AUC gap add up to at least :math:`4 c_1 c_2^2`. The result is then the start and its status
    "infeasible". ``kappa`` bounds the *surrogate*; the exact metric is reported beside it.

    Parameters
    ----------
    max_iter : int, default=30
        Levels (k).
    tol : float, default=5e-4
        Stops when neither :math:`U(r)` nor :math:`\mathcal{P}` is below ``-tol``; eps_opt of the paper.
    inner_iter : int, default=1000
        Steps of the oracle (T), of which there may be more, see above.
    max_doublings : int, default=5
        How often T is doubled, in all. When that did not help, the method ends.
    step : float, default=0.3
        c of the step sizes ``c / sqrt(t + 1)``; the paper tries 0.01, 0.1 and 1.
    batch_size : int, default=100
        Rows of a mini-batch, drawn from all rows in proportion to their weight: it may miss a set.
    theta : float, default=1.0
        At least 1. Larger: smaller steps of the level.
    radius : float, default=10.0
        Of the ball in which the coefficients of the standardised features, and a and b, are kept.
    restart : bool, default=False
        Whether the oracle begins every level anew, as published, from the start and with long steps. False goes on from
        where it is.
    choose_within : {"surrogate", "metric"}, default="surrogate"
        Which iterates the result is the best of: all, which keep the surrogate's bound (10), or those whose exact gaps
        are at most kappa too (2), as in the paper's experiments.
    verbose : int, default=0
        Positive: print a line for every level.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, Algorithms 1 and 2, eqs. 7-31, Lemmas 1-4 and section E.3.
    """

    name: ClassVar[str] = "level_set"
    requires: ClassVar[tuple[type, ...]] = (SingleRows, LinearMoments, FullBatch, Exact)
    projects: ClassVar[bool] = False

    max_iter: Count = 30
    tol: NonNegative = 5e-4
    inner_iter: Count = 1000
    max_doublings: NonNegativeInt = 5
    step: Positive = 0.3
    batch_size: Count = 100
    theta: AtLeastOne = 1.0
    radius: Positive = 10.0
    restart: bool = False
    choose_within: ChooseWithin = "surrogate"

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`.

        An evaluation is a pass over as many rows as the data have, in mini-batches or at once.
        """
        recorder, view = Recorder(callback, self.verbose), FullBatchView(problem)
        params = feasible_point(view, start, random_state)
        if params is None:
            return infeasible_start(problem, recorder)
        oracle = start_saddle(problem, params, random_state, view, self.step, self.batch_size, self.radius)
        levels = Levels(oracle, view, self.tol, self.theta, self.inner_iter, self.max_doublings, self.restart)
        k, first = 0, levels.first(params)
        status, choice, found = Status.MAX_ITER, Choice(view, self.choose_within, first), first
        for k, found in enumerate(islice(levels.steps(first), self.max_iter), start=1):
            choice.see(found)
            recorder.add(found.params, n_iter=k, n_evaluations=levels.n_evaluations, **found.record())
            if found.converged:
                status = Status.OPTIMAL if choice.takes_all else Status.COMPLETED
        result = surrogate_result(problem, choice.best.params, k, levels.n_evaluations, recorder)
        return replace(
            result,
            status=status if result.status == Status.COMPLETED else result.status,
            multipliers=named_multipliers(problem.component_names, found.multipliers),
        )


class LevelStep(NamedTuple):
    """Outcome of one level.

    Attributes
    ----------
    level, upper_bound : float
        r and U(r).
    x : ndarray of shape (n_variables,)
    params : ndarray of shape (n_params,)
        Those of a feasible point.
    objective, violation : float
        There, on all data; the violation is the largest component, not above 0.
    multipliers : ndarray of shape (n_components,)
    n_steps : int
        Of the oracle, in all.
    converged : bool
    """

    level: float
    upper_bound: float
    x: np.ndarray
    params: np.ndarray
    objective: float
    violation: float
    multipliers: np.ndarray
    n_steps: int
    converged: bool = False

    def record(self) -> dict[str, Any]:
        """Return the record that the history keeps."""
        return {
            "level": self.level,
            "upper_bound": self.upper_bound,
            "objective": self.objective,
            "surrogate_violation": self.violation,
            "n_steps": self.n_steps,
        }


class Choice:
    """The iterate of least objective among those that may be the result, or the start where none may.

    Parameters
    ----------
    view : FullBatchView
    within : {"surrogate", "metric"}
        See `LevelSet`.
    start : LevelStep
    """

    def __init__(self, view: FullBatchView, within: ChooseWithin, start: LevelStep) -> None:
        self._view, self._least = view, np.inf
        self.takes_all, self.best = within == "surrogate", start
        self.see(start)

    def see(self, found: LevelStep) -> None:
        """Take one more iterate into account, which keeps the surrogate's bound."""
        if found.objective < self._least and (self.takes_all or self._keeps_metrics(found)):
            self.best, self._least = found, found.objective

    def _keeps_metrics(self, found: LevelStep) -> bool:
        scores = self._view.at(found.params).scores
        return all(c.metric(scores) <= c.kappa for c in self._view.problem.constraints)


@dataclass(eq=False)
class Levels:
    """The levels of Algorithm 1, one after the other.

    Attributes
    ----------
    oracle : MirrorDescent
    view : FullBatchView
        Of the same problem.
    tol, theta, inner_iter, max_doublings, restart
        See `LevelSet`.
    """

    oracle: MirrorDescent
    view: FullBatchView
    tol: float
    theta: float
    inner_iter: int
    max_doublings: int
    restart: bool

    @property
    def n_evaluations(self) -> int:
        """Passes over all data, in mini-batches or at once, rounded up."""
        rows = self.oracle.n_steps * self.oracle.batch_size
        return self.view.n_evaluations + int(np.ceil(rows / self.view.problem.data.n_samples))

    def first(self, params: np.ndarray) -> LevelStep:
        """The feasible point from which to start; its objective is the first level."""
        point = self.view.at(params)
        none = np.zeros(point.constraints.size)
        largest = float(point.constraints.max(initial=-np.inf))
        return LevelStep(point.objective, np.inf, self.oracle.x, params, point.objective, largest, none, 0)

    def steps(self, start: LevelStep) -> Iterator[LevelStep]:
        """Levels, from the objective at a feasible start, until there is no more to gain or the oracle gives up."""
        level, length = start.objective, self.inner_iter
        last = start._replace(converged=False)  # it may be what solved another problem
        while not last.converged:
            if self.restart:
                self.oracle.restart(start.x)
            found, gap = self._run(level, length)
            while gap >= 0:
                if length >= self.inner_iter * 2**self.max_doublings:
                    yield self._given_up(last, found)
                    return
                length *= 2
                found, gap = self._run(level, length)
            last = found
            yield last
            bound = last.upper_bound if gap <= last.upper_bound < -self.tol else gap
            level += bound / (2 * self.theta)

    def _run(self, level: float, length: int) -> tuple[LevelStep, float]:
        """The mean of some more iterates, without those so far, which are worse; and P at it on all data."""
        averages = self.oracle.averages()
        self.oracle.run(level, length, averages)
        x = averages.x / averages.n_steps
        params = self.oracle.params(x)
        point: Point = self.view.at(params)
        violation = float(point.constraints.max(initial=-np.inf))
        gap = max(point.objective - level, violation) + self.oracle.proximal(x)
        bound = averages.upper_bound(self.oracle.dual)
        step = LevelStep(
            level=level,
            upper_bound=bound,
            x=x,
            params=params,
            objective=point.objective,
            violation=violation,
            multipliers=averages.multipliers,
            n_steps=self.oracle.n_steps,
            converged=-self.tol <= gap < 0 and bound >= -self.tol,
        )
        return step, gap

    def _given_up(self, last: LevelStep, found: LevelStep) -> LevelStep:
        """The last feasible point again. The oracle found none below the level; whether there is one, U says."""
        return found._replace(
            x=last.x,
            params=last.params,
            objective=last.objective,
            violation=last.violation,
            converged=found.upper_bound >= -self.tol,
        )


def feasible_point(view: FullBatchView, start: Start | None, rng: np.random.Generator) -> np.ndarray | None:
    """Parameters at which the surrogates hold: the start's, or else those with which the model begins, or None."""
    n_params = view.problem.n_params
    for candidate in [start, None] if start is not None else [None]:
        params = view.problem.fair_start(candidate, rng)[:n_params]
        if view.at(params).constraints.max(initial=-np.inf) <= 0:
            return params
    return None


def infeasible_start(problem: Problem, recorder: Recorder) -> SolverResult:
    """Return the start where not even constant scores are feasible."""
    params = problem.fair_start(None, np.random.default_rng(0))[: problem.n_params]
    result = surrogate_result(problem, params, 0, 1, recorder)
    recorder.add(n_iter=0, n_evaluations=1, objective=result.objective, surrogate_violation=result.surrogate_violation)
    return replace(result, status=Status.INFEASIBLE, history=tuple(recorder.records))


def start_saddle(
    problem: Problem,
    params: np.ndarray,
    rng: np.random.Generator,
    view: FullBatchView,
    step: float,
    batch_size: int,
    radius: float,
    proximity: float = 0.0,
) -> MirrorDescent:
    """Mirror descent from a feasible point, with a and b at the mean scores of their sets."""
    form, point = SaddleForm.of(problem), view.at(params)
    x = np.concatenate([problem.coordinates.from_params(params), form.best_ab(point.scores).ravel()])
    dual = LevelWeights.of(form, point.objective)
    return MirrorDescent(problem, dual, rng, x, batch_size, step, max(radius, 2 * float(np.linalg.norm(x))), proximity)
