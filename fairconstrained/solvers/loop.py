"""The loop of all iterative solvers: records, callbacks, limits, interruption, and a state to go on from."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from fairconstrained.points import largest_violation
from fairconstrained.problem import Point, Problem, Start, StochasticView
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    Status,
    StoppedBy,
    solver_state,
    surrogate_result,
)
from fairconstrained.solvers._options import NonNegative
from fairconstrained.solvers.method import Incumbent, Method
from fairconstrained.solvers.resuming import keep_minima
from fairconstrained.solvers.source import Source
from fairconstrained.views import Exact, FullBatch

__all__ = ["IterativeSolver", "Loop", "State", "ended"]

#: Loss, and multiple of that of the start, above both of which a run has diverged although the loss is finite.
_ABSURD = 1e6


@dataclass(frozen=True)
class State:
    """How far a run has come, without data.

    ``names`` and ``kappas`` are those of the components and constraints, the generator is that after the iteration.
    """

    solver: str
    method: Method
    names: tuple[str, ...]
    kappas: tuple[float, ...]
    fingerprint: int
    epoch: int = 0
    n_rows: int = 0
    n_points: int = 0
    seconds: float = 0.0
    generator: dict[str, Any] = field(default_factory=dict)
    incumbent: Incumbent = field(default_factory=Incumbent)
    records: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class IterativeSolver(Solver):
    """A solver that repeats the steps of a `Method`; a subclass has `_method`, which makes it at its start.

    Parameters
    ----------
    max_time : float or None, default=None
        Seconds from the beginning of a run after which it takes no further step, also where it goes on from another.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends the run with the best iterate within ``kappa``, or with the last one if there is none.

    Notes
    -----
    A run ends if a loss is not finite, or is above a million and a million times that of the start. The result is then
    the best recorded iterate within ``kappa`` or, if there is none, the last earlier one whose loss is at most 1 plus
    twice that of the start. It has no multipliers, its status is not that of a run that has settled, and the run of
    another solver may follow it.
    """

    requires: ClassVar[tuple[type, ...]] = (FullBatch, Exact)
    #: Whether a new run with more iterations goes on where one with fewer has ended.
    continues: ClassVar[bool] = False
    #: Whether constraints get slopes wherever they are violated, see `Problem.with_restoring_slopes`.
    restores: ClassVar[bool] = False
    #: About how many iterations have a record; None: all.
    n_recorded: ClassVar[int | None] = None
    #: Whether the start has a record, too.
    records_start: ClassVar[bool] = False
    #: The option that a user should lower where a run diverges.
    step_option: ClassVar[str] = "the length of the solver's steps"

    max_time: NonNegative | None = field(default=None, kw_only=True)
    keep_on_interrupt: bool = field(default=False, kw_only=True)

    @abstractmethod
    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        """The method at its start."""

    def first_method(self, problem: Problem, start: Start | None, rng: np.random.Generator) -> Method:
        """The method at a start."""
        return self._method(problem, problem.fair_start(start, rng), rng)

    def take_step(self, method: Method, source: Source, problem: Problem) -> None:
        """One step of the method, with what the options ask for around it."""
        method.step(source, problem)

    def prepared(self, problem: Problem) -> Problem:
        """The problem as the method is to see it."""
        return problem.with_restoring_slopes() if self.restores else problem

    def new_source(self, view: StochasticView, rng: np.random.Generator) -> Source:
        """Where the steps of one iteration get their rows from; here all rows every time."""
        return Source(view, rng, None, 0.0)

    def n_epochs(self, problem: Problem) -> int:
        """Implement `Solver.n_epochs`; iterations of the loop."""
        return int(getattr(self, self.iterations_option))

    def n_steps(self, problem: Problem) -> int:
        """Steps of the method in an iteration of the loop."""
        return 1

    def record_every(self, problem: Problem) -> int:
        """Iterations from one record to the next."""
        return 1 if self.n_recorded is None else max(getattr(self, self.iterations_option) // self.n_recorded, 1)

    @property
    def returns_incumbent(self) -> bool:
        """Whether the best recorded iterate within ``kappa`` is the result, and not the method's own output."""
        return False

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`.

        An evaluation is a pass over as many rows as the data have, in mini-batches or at once. From a ``start`` that
        has the state of an earlier run of this solver, the run continues as if that run had not ended.
        """
        return Loop(self, self.prepared(problem), start, random_state, callback).run()

    def known_state(self, problem: Problem, start: Start | None) -> State | None:
        """Return the state in ``start`` of an earlier run of this solver with the same variables and comparisons."""
        state = solver_state(start, State)
        if state is None or (state.solver, state.names) != (self.name, problem.component_names):
            return None
        n_variables = problem.n_params + sum(c.n_aux for c in problem.constraints)
        fits = state.method.z.size == n_variables and (self.continues or state.kappas == _kappas(problem))
        return state if fits else None


class Loop:
    """One run of an iterative solver.

    Parameters
    ----------
    method : Method, optional
        Method at its start; None is the solver's own.
    """

    def __init__(
        self,
        solver: IterativeSolver,
        problem: Problem,
        start: Start | None,
        rng: np.random.Generator,
        callback: Callback | None,
        method: Method | None = None,
    ) -> None:
        self._solver, self._problem, self._rng = solver, problem, rng
        self._n_steps, self._n_epochs = solver.n_steps(problem), solver.n_epochs(problem)
        self._every = solver.record_every(problem)
        self._is_watched = callback is not None
        self._is_late, self._message, self._step, self._epoch = False, "", 0, 0
        self._stopped_by = StoppedBy.NOTHING
        self._has_diverged = False
        self._chosen: np.ndarray | None = None
        state = copy.deepcopy(solver.known_state(problem, start))
        self._is_new = state is None
        self._begin = now = time.perf_counter()
        self._deadline = np.inf if solver.max_time is None else now + solver.max_time
        if state is None:
            method = method or solver.first_method(problem, start, rng)
            fingerprint = problem.data.fingerprint
            state = State(solver.name, method, problem.component_names, _kappas(problem), fingerprint)
        else:
            state.method.go_on(solver, problem)
            self._begin -= state.seconds
            if state.generator:
                rng.bit_generator.state = state.generator
        self._state, self._safe = state, state.method.z
        self._recorder = Recorder(callback, solver.verbose, state.records)
        self._rows = StochasticView(problem)
        self._view = self._rows.whole
        best = state.incumbent.z
        if best is not None:  # of another kappa, or of other rows
            self._state = replace(state, incumbent=Incumbent())
            point = self._view.at(best)
            self._state.incumbent.offer(best, point.objective, problem.measured(point.scores).excess)
        self._first, self._view.n_evaluations = state.method.z, state.n_points

    def run(self) -> SolverResult:
        """Iterate until a limit is reached, a callback raises `StopTraining`, or the run diverges."""
        try:
            # where a run diverges, the message says so
            with np.errstate(over="ignore", invalid="ignore"):
                if self._is_new:
                    self._start()
                while self._goes_on:
                    self._iterate()
            self._stopped_by = self._recorder.stopped_by
            if not self._stopped_by and self._is_late and not self._state.method.finished:
                self._stopped_by = StoppedBy.MAX_TIME
        except KeyboardInterrupt:
            if not self._solver.keep_on_interrupt:
                raise
            self._stopped_by = StoppedBy.INTERRUPTION
            self._give_up("was interrupted, and the best model so far is kept.")
        stop = self._recorder.stop
        if stop is not None and stop.params is not None:
            self._chosen = np.concatenate([stop.params, self._state.method.z[stop.params.size :]])
        elif self._stopped_by:
            keep_minima()
        return self._result()

    def _start(self) -> None:
        """Begin a new run, and record the start if that is due."""
        method, source = self._state.method, self._solver.new_source(self._rows, self._rng)
        method.begin(source, self._problem)
        is_recorded = self._solver.records_start or method.finished
        point = method.point(source, self._problem) if is_recorded else None
        self._state = replace(self._state, n_rows=source.n_rows)
        if point is not None:
            self._record(point)

    @property
    def _goes_on(self) -> bool:
        """Whether another iteration is due."""
        is_ended = self._is_late or bool(self._message) or self._recorder.stop is not None
        is_over = is_ended or self._state.epoch >= self._n_epochs
        return not is_over and not self._state.method.finished

    def _iterate(self) -> None:
        """One iteration and, if it is due, its record."""
        method = self._state.method
        source = self._solver.new_source(self._rows, self._rng)
        method.begin_epoch()
        self._epoch = self._state.epoch + 1
        for step in range(1, self._n_steps + 1):
            self._step, last = step, method.z
            try:
                self._solver.take_step(method, source, self._problem)
                moved = self._problem.parametric.after_step(method.z)
                if moved is not method.z:
                    method.z = moved
            except FloatingPointError:
                self._diverge(last, "not finite")
                return
            if not np.isfinite(method.z @ method.z):
                self._diverge(last, "not finite")
                return
            self._is_late = time.perf_counter() > self._deadline
            if self._is_late or method.finished:
                break
        is_last = self._is_late or method.finished or self._epoch == self._n_epochs
        point = method.point(source, self._problem) if is_last or not self._epoch % self._every else None
        come = replace(self._state, epoch=self._epoch, n_rows=self._state.n_rows + source.n_rows)
        if point is None:
            self._state = come
        elif not np.isfinite(point.objective):
            self._diverge(self._safe, "not finite")
        elif point.objective > _ABSURD and point.objective > _ABSURD * self._first_objective:
            self._diverge(self._safe, f"{point.objective:.2g}, more than a million times that of the start")
        else:
            if self._is_sensible(point.objective):
                self._safe = method.z
            self._state = come
            self._record(point)

    @cached_property
    def _first_objective(self) -> float:
        return self._view.at(self._first).objective

    def _is_sensible(self, objective: float) -> bool:
        """Whether a model of that loss is worth keeping: not far above that of the start; never for NaN."""
        return objective <= 1 or objective <= 1 + 2 * self._first_objective

    def _diverge(self, last: np.ndarray, loss: str) -> None:
        """End at ``last``, or at the last record before if the loss makes no sense there."""
        self._has_diverged = True
        self._state.method.z = last if self._is_sensible(self._view.at(last).objective) else self._safe
        has_best = self._state.incumbent.is_feasible
        kept = "best model so far is" if has_best else "last parameters with a sensible loss are"
        advice = f"Standardise X or lower {self._solver.step_option}."
        self._give_up(f"met a loss that is {loss}; the {kept} kept. {advice}")

    def _give_up(self, why: str) -> None:
        """End here."""
        where = f"step {self._step} of epoch" if self._n_steps > 1 else "iteration"
        self._message = f"training stopped in {where} {self._epoch}: it {why}"

    def _record(self, point: Point) -> None:
        """Measure the iterate on all rows, and pass the record on together with the state."""
        method, problem = self._state.method, self._problem
        measured = problem.measured(point.scores)
        self._state.incumbent.offer(method.z, point.objective, measured.excess)
        method.observe(point, measured)
        seconds = time.perf_counter() - self._begin
        record = {
            "n_iter": self._state.epoch,
            "seconds": seconds,
            "n_evaluations": self._n_passes,
            "objective": point.objective,
            **measured.values,
            "surrogate_violation": largest_violation(point.constraints),
            "multipliers": None if method.multipliers is None else tuple(method.multipliers.tolist()),
            **method.numbers(point),
        }
        self._state = replace(
            self._state,
            n_points=self._view.n_evaluations,
            seconds=seconds,
            generator=dict(self._rng.bit_generator.state),
            records=(*self._state.records, record),
        )
        # the method's variables move on, so whoever watches gets a copy
        keeps_state = self._is_watched and not method.holds_rows
        kept = None
        if keeps_state:
            kept = replace(self._state, method=copy.deepcopy(method), incumbent=copy.copy(self._state.incumbent))
        params = method.z[: problem.n_params].copy()  # whoever watches may write into it
        state = Start(params, fingerprint=problem.data.fingerprint, solver_state=kept)
        self._recorder.add(params, state=state, **record)

    @property
    def _n_passes(self) -> int:
        return self._view.n_evaluations + int(np.ceil(self._state.n_rows / self._problem.data.n_samples))

    def _result(self) -> SolverResult:
        """The chosen iterate with what the method adds to it; after a divergence it adds nothing."""
        solver, problem, method = self._solver, self._problem, self._state.method
        z = method.z if self._has_diverged else method.output() if self._chosen is None else self._chosen
        if solver.returns_incumbent or self._message:
            z = self._state.incumbent.feasible_or(z)
        result = surrogate_result(problem, z, self._state.epoch, self._n_passes, self._recorder)
        start = Start(result.model_state)
        result = replace(result, start=start, message=self._message, stopped_by=self._stopped_by)
        if self._has_diverged:
            return replace(ended(result, is_optimal=False), has_diverged=True)
        multipliers = method.named_multipliers(problem.component_names)
        start = replace(start, solver_state=self._state if solver.continues else None)
        return method.conclude(replace(result, multipliers=multipliers, start=start), problem)


def _kappas(problem: Problem) -> tuple[float, ...]:
    return tuple(c.kappa for c in problem.constraints)


def ended(result: SolverResult, is_optimal: bool) -> SolverResult:
    """Return the result with the status of a method that has a stopping rule, where the constraints hold."""
    if result.status.is_infeasible:
        return result
    return replace(result, status=Status.OPTIMAL if is_optimal else Status.MAX_ITER)
