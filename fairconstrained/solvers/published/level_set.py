"""The stochastic feasible level-set method: feasible iterates, without ever forming a pair of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from typing_extensions import override

from fairconstrained.models import LinearMoments
from fairconstrained.points import largest_violation
from fairconstrained.problem import FullBatchView, Point, Problem
from fairconstrained.solvers._base import SolverResult, Status
from fairconstrained.solvers._options import AtLeastOne, Count, NonNegative, NonNegativeInt, Positive
from fairconstrained.solvers.loop import IterativeSolver, ended
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.published._duals import LevelWeights
from fairconstrained.solvers.published.saddle_form import SaddleForm
from fairconstrained.solvers.published.saddle_steps import MirrorDescent
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured
from fairconstrained.views import Exact, FullBatch, SingleRows

__all__ = ["LevelMethod", "LevelSet", "LevelStep"]


@dataclass(frozen=True)
class LevelSet(IterativeSolver):
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

    In three points it is more careful than the paper, whose guarantees hold with some probability after an unknown
    number of steps:

    * Every :math:`x_k` is checked on all data, and the oracle continues, twice as long each time, until
      :math:`\mathcal{P}(r_k, x_k) < 0`: *all iterates are feasible for the surrogate*, and better than the level.
    * The level moves by :math:`\mathcal{P}(r_k, x_k) \ge H(r_k)` where U is below it, which is noise, and where
      U says to stop although :math:`\mathcal{P}` says that there is more to gain. Else ``theta = 1``,
      which is what the paper uses but its theory does not allow, could lead below :math:`f^*`, where nothing is
      feasible.
    * The dual step and the bound have the factor :math:`c_1` that the paper leaves out, see
      `fairconstrained.solvers.published.saddle_form.SaddleForm`.

    Constant scores are feasible where :math:`2 c_1 c_2^2 \le 1 + \kappa` (Lemma 2). Where they are not, no scores are:
    the two sides of an AUC gap add up to at least :math:`4 c_1 c_2^2`. The result is then the start and its status
    "infeasible". ``kappa`` bounds the *surrogate*; the exact metric is reported as well.

    Parameters
    ----------
    max_iter : int, default=30
        Levels (k).
    tol : float, default=5e-4
        Stops when neither :math:`U(r)` nor :math:`\mathcal{P}` is below ``-tol``; eps_opt of the paper.
    inner_iter : int, default=1000
        Steps of the oracle (T), of which there may be more.
    max_doublings : int, default=5
        Number of times that T may be doubled, in all. If that does not help, the method ends.
    step : float, default=0.3
        c of the step sizes ``c / sqrt(t + 1)``; the paper tries 0.01, 0.1 and 1.
    batch_size : int, default=100
        Rows of a mini-batch, drawn from all rows in proportion to their weight: it may miss a set.
    theta : float, default=1.0
        Divisor of the steps of the level, at least 1.
    radius : float, default=10.0
        Radius of the ball in which the coefficients of the standardised features, and a and b, are kept.
    restart : bool, default=False
        Whether the oracle restarts for every level, as published, from the start and with long steps. False continues
        from its last state.
    choose_within : {"surrogate", "metric"}, default="surrogate"
        Iterates of which the best one is the result: all, which keep the surrogate's bound (10), or only those whose
        exact gaps are at most kappa as well (2), as in the paper's experiments.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, Algorithms 1 and 2, eqs. 7-31, Lemmas 1-4 and section E.3.
    """

    name: ClassVar[str] = "level_set"
    requires: ClassVar[tuple[type, ...]] = (SingleRows, LinearMoments, FullBatch, Exact)
    projects: ClassVar[bool] = False
    step_option: ClassVar[str] = "step"

    max_iter: Count = 30
    tol: NonNegative = 5e-4
    inner_iter: Count = 1000
    max_doublings: NonNegativeInt = 5
    step: Positive = 0.3
    batch_size: Count = 100
    theta: AtLeastOne = 1.0
    radius: Positive = 10.0
    restart: bool = False
    choose_within: Literal["surrogate", "metric"] = "surrogate"

    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        return LevelMethod(self, z)


class LevelStep(NamedTuple):
    """Outcome of one level."""

    #: r and U(r).
    level: float
    upper_bound: float
    x: np.ndarray  # of shape (n_variables,)
    #: Parameters of a feasible point.
    params: np.ndarray  # of shape (n_params,)
    #: At ``params``, on all data; the violation is the largest component, not above 0.
    objective: float
    violation: float
    multipliers: np.ndarray  # of shape (n_components,)
    #: Number of steps of the oracle, in all.
    n_steps: int
    converged: bool = False

    def numbers(self) -> dict[str, Any]:
        """Return what a record has of it."""
        return {"level": self.level, "upper_bound": self.upper_bound, "n_steps": self.n_steps}


class LevelMethod(Method):
    """A step is a level.

    Parameters
    ----------
    z : ndarray of shape (n_variables,)
    proximity : float
        Factor of the oracle's proximal term.
    """

    holds_rows = True
    #: Whether there is no more to gain, or the oracle gives up.
    _is_over = False
    #: None where not even constant scores are feasible.
    _oracle: MirrorDescent | None = None

    def __init__(self, options: LevelSet, z: np.ndarray, proximity: float = 0.0) -> None:
        self._options, self.z, self._proximity = options, z, proximity
        self._best = Incumbent()

    @override
    def begin(self, source: Source, problem: Problem) -> None:
        o, view = self._options, source.view
        self._kappas = {c.name: c.kappa for c in problem.constraints}
        feasible = _feasible_point(view, self.z, source.rng)
        if feasible is None:
            self.z = problem.fair_start(None, np.random.default_rng(0))
            return
        self.z = self._start = feasible
        self._oracle = oracle = _start_saddle(view, feasible, source.rng, o, self._proximity)
        point = view.at(feasible)
        none = np.zeros(point.constraints.size)
        largest = float(point.constraints.max(initial=-np.inf))
        objective = point.objective
        self._begin_at(LevelStep(objective, np.inf, oracle.x, feasible, objective, largest, none, n_steps=0))
        self.observe(point, problem.measured(point.scores))

    def _begin_at(self, start: LevelStep) -> None:
        """Begin at a feasible point, whose objective is the first level."""
        self._level, self._length, self._is_over = start.objective, self._options.inner_iter, False
        # it may be what solved another problem
        self._found = self._first = self._last = start._replace(converged=False)

    @override
    def step(self, source: Source, problem: Problem) -> None:
        assert self._oracle is not None  # it is finished without
        before = self._oracle.n_steps
        self._found = self._next_level(self._oracle, source.view)
        self.z = self._found.params
        source.count((self._oracle.n_steps - before) * self._options.batch_size)

    @property
    @override
    def finished(self) -> bool:
        return self._oracle is None or self._is_over

    @property
    @override
    def multipliers(self) -> np.ndarray | None:
        return None if self._oracle is None else self._found.multipliers

    @override
    def observe(self, point: Point, measured: Measured) -> None:
        """Consider the iterate, which keeps the surrogate's bound, as the result."""
        keeps_metrics = all(measured.values[name] <= kappa for name, kappa in self._kappas.items())
        if self._options.choose_within == "surrogate" or keeps_metrics:
            self._best.offer(self.z, point.objective, 0.0)

    @override
    def numbers(self, point: Point) -> dict[str, Any]:
        return {} if self._oracle is None else self._found.numbers()

    @override
    def output(self) -> np.ndarray:
        return self._best.feasible_or(self._start if self._oracle else self.z)

    @override
    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        if self._oracle is None:
            return replace(result, status=Status.INFEASIBLE)
        is_any_taken = self._options.choose_within == "surrogate"
        return result if self._found.converged and not is_any_taken else ended(result, self._found.converged)

    def _next_level(self, oracle: MirrorDescent, view: FullBatchView) -> LevelStep:
        """Take the next level, and note whether there is no more to gain or the oracle gives up."""
        o = self._options
        if o.restart:
            oracle.restart(self._first.x)
        found, gap = self._run(oracle, view)
        while gap >= 0:
            if self._length >= o.inner_iter * 2**o.max_doublings:
                self._is_over = True
                return self._given_up(found)
            self._length *= 2
            found, gap = self._run(oracle, view)
        self._last, self._is_over = found, found.converged
        bound = found.upper_bound if gap <= found.upper_bound < -o.tol else gap
        self._level += bound / (2 * o.theta)
        return found

    def _run(self, oracle: MirrorDescent, view: FullBatchView) -> tuple[LevelStep, float]:
        """The mean of some more iterates, without those so far, which are worse; and P at it on all data."""
        level, tol, averages = self._level, self._options.tol, oracle.averages()
        oracle.run(level, self._length, averages)
        x = averages.x / averages.n_steps
        params = oracle.params(x)
        point: Point = view.at(params)
        violation = float(point.constraints.max(initial=-np.inf))
        gap = max(point.objective - level, violation) + oracle.proximal(x)
        bound = averages.upper_bound(oracle.dual)
        step = LevelStep(
            level=level,
            upper_bound=bound,
            x=x,
            params=params,
            objective=point.objective,
            violation=violation,
            multipliers=averages.multipliers,
            n_steps=oracle.n_steps,
            converged=-tol <= gap < 0 and bound >= -tol,
        )
        return step, gap

    def _given_up(self, found: LevelStep) -> LevelStep:
        """The last feasible point again. The oracle found none below the level; whether there is one, U says."""
        last = self._last
        return found._replace(
            x=last.x,
            params=last.params,
            objective=last.objective,
            violation=last.violation,
            converged=found.upper_bound >= -self._options.tol,
        )


def _feasible_point(view: FullBatchView, start: np.ndarray, rng: np.random.Generator) -> np.ndarray | None:
    """Variables at which the surrogates hold: the start, or else those with which the model begins, or None."""
    for z in (start, view.problem.fair_start(None, rng)):
        if largest_violation(view.at(z).constraints) <= 0:
            return z
    return None


def _start_saddle(
    view: FullBatchView, z: np.ndarray, rng: np.random.Generator, options: LevelSet, proximity: float
) -> MirrorDescent:
    """Mirror descent from a feasible point, with a and b at the mean scores of their sets."""
    problem, o = view.problem, options
    params, form = z[: problem.n_params], SaddleForm.of(problem)
    point = view.at(params)
    x = np.concatenate([problem.coordinates.from_params(params), form.best_ab(point.scores).ravel()])
    radius = max(o.radius, 2 * float(np.linalg.norm(x)))
    return MirrorDescent(
        problem, LevelWeights.of(form, point.objective), rng, x, o.batch_size, o.step, radius, proximity
    )
