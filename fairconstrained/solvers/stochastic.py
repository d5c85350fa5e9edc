"""Base of the stochastic solvers: epochs of mini-batches, a record of each, limits, and a state to go on from."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from fairconstrained.exceptions import StopTraining
from fairconstrained.problem import FullBatchView, Point, Problem, Start
from fairconstrained.solvers._base import (
    Callback,
    Recorder,
    Solver,
    SolverResult,
    named_multipliers,
    surrogate_result,
)
from fairconstrained.solvers._moreau_envelope import MoreauEnvelope
from fairconstrained.solvers._options import Count, NonNegative, Share
from fairconstrained.solvers.method import Method
from fairconstrained.solvers.source import Source
from fairconstrained.views import Exact, FullBatch, Stochastic

__all__ = ["Method", "SeparateBatches", "Source", "StochasticSolver", "Trained"]

#: Loss, and multiple of that of the start, above both of which training has diverged although the loss is finite.
_ABSURD = 1e6


@dataclass(frozen=True)
class _State:
    """How far training has come: ``names`` are those of the components, the generator is that after the epoch."""

    solver: str
    method: Method
    names: tuple[str, ...]
    fingerprint: int
    epoch: int = 0
    n_rows: int = 0
    seconds: float = 0.0
    generator: dict[str, Any] = field(default_factory=dict)
    best: np.ndarray | None = None
    least: float = np.inf
    records: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Trained:
    """How training ended.

    Attributes
    ----------
    z : ndarray of shape (n_variables,)
    method : Method
    start : Start
        To go on from.
    recorder : Recorder
    n_epochs, n_evaluations : int
    message : str
        Why it ended early, if the user should know.
    """

    z: np.ndarray
    method: Method
    start: Start
    recorder: Recorder
    n_epochs: int
    n_evaluations: int
    message: str = ""


@dataclass(frozen=True)
class StochasticSolver(Solver):
    r"""Methods on mini-batches; a subclass has `_method`, which makes the variables and the update rule.

    Parameters
    ----------
    max_epochs : int, default=20
        An epoch has as many steps as mini-batches make up the data.
    batch_size : int, default=8
        Rows of a mini-batch, about, which gives both the objective and the constraints (methods that draw these apart
        say so, see `SeparateBatches`). If there are no more rows than that, every step takes them as they are.
    max_time : float or None, default=None
        Seconds after which training ends.
    balance : float, default=1.0
        How much of a mini-batch the groups have in equal parts, in [0, 1]; of the rest they have their shares. Weights
        make up for it in the objective.
    select : {"last", "best"}, default="last"
        "best" returns the recorded iterate of least objective among those whose exact metrics are at most ``kappa``
        plus their granularity, and the method's own output where there is none.
    keep_on_interrupt : bool, default=False
        Whether Ctrl-C ends training and the best feasible iterate is kept, or the last one where there is none.
    smoothing : float, default=0.0
        :math:`\mu` of a Moreau envelope: above 0 the objective has a term :math:`\tfrac{\mu}{2} \|x - z\|^2` besides,
        which keeps the iterate x near a centre z. What is recorded is without it.
    averaging : float, default=0.5
        :math:`\beta`, by which share of the way to x the centre follows in every step, in [0, 1].

    Notes
    -----
    Training ends where a loss is not finite, or is above a million and a million times that of the start. Kept is the
    best feasible iterate or, where there is none, the last one before whose loss is at most 1 plus twice that of the
    start.
    """

    requires: ClassVar[tuple[type, ...]] = (FullBatch, Stochastic, Exact)
    iterations_option: ClassVar[str] = "max_epochs"
    takes_all_rows: ClassVar[bool] = False

    max_epochs: Count = 20
    batch_size: Count = 8
    max_time: NonNegative | None = None
    balance: Share = 1.0
    select: Literal["last", "best"] = "last"
    keep_on_interrupt: bool = False
    smoothing: NonNegative = 0.0
    averaging: Share = 0.5

    @abstractmethod
    def _method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        """The method at its start."""

    def new_method(self, problem: Problem, z: np.ndarray, rng: np.random.Generator) -> Method:
        """The method at its start, in a Moreau envelope if ``smoothing`` asks for one."""
        return self._in_envelope(self._method(problem, z, rng))

    def _in_envelope(self, method: Method) -> Method:
        if self.smoothing == 0 or isinstance(method, MoreauEnvelope):
            return method
        return MoreauEnvelope(method, self)

    def n_steps(self, problem: Problem) -> int:
        """Steps of an epoch."""
        return max(1, problem.data.n_samples // self.batch_size)

    def n_epochs(self, problem: Problem) -> int:
        """Epochs in all."""
        return self.max_epochs

    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Implement `Solver.solve`.

        An evaluation is a pass over as many rows as the data have, in mini-batches or at once. A ``start`` that has the
        state of an earlier run of this solver is gone on from as if that run had not ended.
        """
        trained = self.train(problem, start, random_state, callback)
        result = surrogate_result(problem, trained.z, trained.n_epochs, trained.n_evaluations, trained.recorder)
        return replace(
            result,
            multipliers=named_multipliers(problem.component_names, trained.method.multipliers),
            start=replace(trained.start, model_state=result.model_state),
            message=trained.message,
        )

    def known_state(self, problem: Problem, start: Start | None) -> _State | None:
        """Return the state in ``start`` of an earlier run of this solver with the same variables and comparisons."""
        state = None if start is None else start.solver_state
        n_variables = problem.n_params + sum(c.n_aux for c in problem.constraints)
        known = isinstance(state, _State) and (state.solver, state.names) == (self.name, problem.component_names)
        return state if known and state is not None and state.method.z.size == n_variables else None

    def train(
        self, problem: Problem, start: Start | None, rng: np.random.Generator, callback: Callback | None
    ) -> Trained:
        """Run the method until a limit is reached, a callback raises `StopTraining`, or training diverges."""
        state = copy.deepcopy(self.known_state(problem, start))
        if state is None:
            method = self.new_method(problem, problem.fair_start(start, rng), rng)
            state = _State(self.name, method, problem.component_names, problem.data.fingerprint)
        else:
            state.method.go_on(self, problem)
            state = replace(state, method=self._in_envelope(state.method))
        training = _Training(self, problem, state, rng, callback)
        try:
            # where training diverges, the message says so
            with np.errstate(over="ignore", invalid="ignore"):
                while training.goes_on:
                    training.run_epoch()
        except StopTraining as stop:
            training.return_to(stop.params)
        except KeyboardInterrupt:
            if not self.keep_on_interrupt:
                raise
            training.give_up("was interrupted, and the best model so far is kept.")
        return training.result()


@dataclass(frozen=True)
class SeparateBatches(StochasticSolver):
    r"""Methods that draw the rows of the objective and those of the constraints independently of each other.

    A mini-batch :math:`\xi` of the objective is drawn from all rows, whatever their groups are; a mini-batch
    :math:`\zeta` of the constraints has as many rows of every group. With the published ``batch_size=8`` and two groups
    these are 8 and 16 rows.

    Parameters
    ----------
    max_epochs, max_time, select, keep_on_interrupt, smoothing, averaging
        See `StochasticSolver`.
    batch_size : int, default=8
        Rows of a mini-batch of the objective.
    constraint_batch_size : int or None, default=None
        Rows of a mini-batch of the constraints, about, shared among the groups as ``balance`` says. None:
        ``batch_size`` rows of *every* group. If there are no more rows than that, all of them as they are.
    balance : float, default=1.0
        How much of a mini-batch of the constraints the groups have in equal parts, in [0, 1]; of the rest they have
        their shares.
    """

    constraint_batch_size: Count | None = None


class _Training:
    """One run of a stochastic solver."""

    def __init__(
        self,
        solver: StochasticSolver,
        problem: Problem,
        state: _State,
        rng: np.random.Generator,
        callback: Callback | None,
    ) -> None:
        self._solver, self._problem, self._state, self._rng = solver, problem, state, rng
        if state.generator:
            rng.bit_generator.state = state.generator
        self._recorder = Recorder(callback, solver.verbose, state.records)
        self._is_watched = callback is not None
        self._sampler, self._view = problem.view(Stochastic), FullBatchView(problem)
        if state.best is not None:  # of another kappa, or of other rows
            self._state = self._judged(replace(state, best=None, least=np.inf), state.best, self._view.at(state.best))
        self._begin = time.perf_counter() - state.seconds
        self._n_steps, self._n_epochs = solver.n_steps(problem), solver.n_epochs(problem)
        self._is_late, self._message, self._step, self._epoch = False, "", 0, 0
        self._has_diverged, self._first, self._safe = False, state.method.z, state.method.z
        self._chosen: np.ndarray | None = None

    @property
    def goes_on(self) -> bool:
        """Whether another epoch is due."""
        return not self._is_late and not self._message and self._state.epoch < self._n_epochs

    def run_epoch(self) -> None:
        """One epoch and its record."""
        method, limit = self._state.method, self._solver.max_time
        source = Source(self._sampler, self._rng, self._solver.batch_size, self._solver.balance)
        method.begin_epoch()
        self._epoch = self._state.epoch + 1
        for step in range(1, self._n_steps + 1):
            self._step, last = step, method.z
            method.step(source, self._problem)
            if not np.isfinite(method.z @ method.z):
                self._diverge(last, "not finite")
                return
            self._is_late = limit is not None and time.perf_counter() - self._begin > limit
            if self._is_late:
                break
        point = self._view.at(method.z)
        if not np.isfinite(point.objective):
            self._diverge(self._safe, "not finite")
            return
        if point.objective > _ABSURD * max(self._first_objective, 1.0):
            self._diverge(self._safe, f"{point.objective:.2g}, more than a million times that of the start")
            return
        if self._is_sensible(point.objective):
            self._safe = method.z
        self._record(point, source.n_rows)

    @cached_property
    def _first_objective(self) -> float:
        return self._view.at(self._first).objective

    def _is_sensible(self, objective: float) -> bool:
        """Whether a model of that loss is worth keeping: not far above that of the start; never for NaN."""
        return objective <= 1 or objective <= 1 + 2 * self._first_objective

    def _diverge(self, last: np.ndarray, loss: str) -> None:
        """End at ``last``, or at the last epoch's end before if the loss makes no sense there."""
        self._has_diverged = True
        self._state.method.z = last if self._is_sensible(self._view.at(last).objective) else self._safe
        kept = "last parameters with a sensible loss are" if self._state.best is None else "best model so far is"
        self.give_up(f"met a loss that is {loss}; the {kept} kept. Standardise X or lower learning_rate.")

    def return_to(self, params: np.ndarray | None) -> None:
        """End with earlier parameters, if there are any."""
        if params is not None:
            self._chosen = np.concatenate([params, self._state.method.z[params.size :]])

    def give_up(self, why: str) -> None:
        """End here."""
        self._message = f"training stopped in step {self._step} of epoch {self._epoch}: it {why}"

    def _record(self, point: Point, n_rows: int) -> None:
        """Measure the iterate on all rows, and pass the record on together with the state."""
        state, method, problem = self._state, self._state.method, self._problem
        state = self._judged(state, method.z, point)
        seconds = time.perf_counter() - self._begin
        record = {
            "n_iter": state.epoch + 1,
            "seconds": seconds,
            "n_evaluations": self._n_passes(state.n_rows + n_rows, state.epoch + 1),
            "objective": point.objective,
            **{c.name: c.metric(point.scores) for c in problem.constraints},
            "surrogate_violation": float(point.constraints.max(initial=0.0)),
            "multipliers": None if method.multipliers is None else tuple(method.multipliers.tolist()),
            **method.numbers(point),
        }
        self._state = replace(
            state,
            epoch=state.epoch + 1,
            n_rows=state.n_rows + n_rows,
            seconds=seconds,
            generator=dict(self._rng.bit_generator.state),
            records=(*state.records, record),
        )
        # the method's variables move on, so whoever watches gets a copy
        kept = replace(self._state, method=copy.deepcopy(method)) if self._is_watched else None
        params = method.z[: problem.n_params]
        self._recorder.add(params, state=Start(params, solver_state=kept), **record)

    def _judged(self, state: _State, z: np.ndarray, point: Point) -> _State:
        """``state`` with ``z`` as the best iterate, if it is feasible and better than the best one so far."""
        if point.objective < state.least and self._problem.holds(point.scores):
            return replace(state, best=z, least=point.objective)
        return state

    def _n_passes(self, n_rows: int, n_epochs: int) -> int:
        return n_epochs + int(np.ceil(n_rows / self._problem.data.n_samples))

    def result(self) -> Trained:
        """The chosen iterate. A run that has diverged is not gone on from, and its method's output means nothing."""
        best, method = self._state.best, self._state.method
        z = method.z if self._has_diverged else method.output() if self._chosen is None else self._chosen
        if best is not None and (self._solver.select == "best" or self._message):
            z = best
        start = Start(z[: self._problem.n_params], solver_state=None if self._has_diverged else self._state)
        n_epochs = self._state.epoch
        n_passes = self._n_passes(self._state.n_rows, n_epochs)
        return Trained(z, method, start, self._recorder, n_epochs, n_passes, self._message)
