"""The contract of a solver and of what it returns."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from enum import StrEnum
from types import NoneType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from fairconstrained.checks.docstrings import entries, inherited_documentation
from fairconstrained.checks.inputs import without_none
from fairconstrained.checks.messages import meant
from fairconstrained.data import FairData
from fairconstrained.domains import Domain
from fairconstrained.exceptions import StopTraining
from fairconstrained.models import ParametricModel
from fairconstrained.points import KeptPoint, largest_violation
from fairconstrained.problem import SOLVER_REQUIREMENTS, FullBatchView, Problem, Start
from fairconstrained.solvers._options import NonNegativeInt, check_options
from fairconstrained.terms import Measured

__all__ = [
    "SOLVERS",
    "Callback",
    "Recorder",
    "Solver",
    "SolverResult",
    "Status",
    "StoppedBy",
    "exact_result",
    "joined_history",
    "make_solver",
    "named_multipliers",
    "record_after",
    "seconds_of",
    "solver_class",
    "solver_state",
    "solver_with",
    "surrogate_result",
]

_State = TypeVar("_State")

#: A range of the scores below this share of what it was leaves nothing of a model, and the message where it is.
_ALMOST_NOTHING = 0.01
_NOTHING_LEFT = (
    "the bounds are kept by scores that are all but the same for all rows. Loosen them, or merge groups where groups "
    "are compared."
)

#: Called with one history record after every iteration, with the parameters ("params") and a `Start` to go on from
#: ("state") where a solver gives them.
Callback = Callable[[Mapping[str, Any]], None]


class Status(StrEnum):
    """How a solver ended; the values are what users read in ``status_``."""

    OPTIMAL = "optimal"
    #: All planned iterations of a method without a stopping rule.
    COMPLETED = "completed"
    MAX_ITER = "max_iter"
    INFEASIBLE = "infeasible"
    #: Fairness was asked for, but there is nothing to compare, so nothing is bounded.
    UNCONSTRAINED = "unconstrained"
    #: Infeasible at a stationary point of the violation, which no small change of the parameters reduces.
    INFEASIBLE_STATIONARY = "infeasible_stationary"

    @property
    def is_infeasible(self) -> bool:
        """Whether the constraints do not hold."""
        return self in (Status.INFEASIBLE, Status.INFEASIBLE_STATIONARY)

    @property
    def is_settled(self) -> bool:
        """Whether the constraints hold, and the method has nothing left to do."""
        return self in (Status.OPTIMAL, Status.COMPLETED)


class StoppedBy(StrEnum):
    """Reason for which a run ended before its own rule, or its number of iterations, said so."""

    NOTHING = ""
    CALLBACK = "a callback"
    MAX_TIME = "max_time"
    INTERRUPTION = "an interruption"

    @property
    def remedy(self) -> str:
        """How the run would have gone on, in words; empty where nothing stopped it."""
        if self is StoppedBy.NOTHING:
            return ""
        return "raise max_time" if self is StoppedBy.MAX_TIME else "let it train for longer"


@dataclass(frozen=True)
class SolverResult:
    """Result of a solver.

    Attributes
    ----------
    model_state : object
        State of the model, on which its scores depend; the parameters, an ndarray of shape (n_params,), if it is
        parametric.
    status : Status
    n_iter : int
        Outer iterations.
    n_evaluations : int
        Full-batch evaluations of value (and gradient).
    objective : float
        Objective with its penalty there.
    constraint_values : dict of str to float
        The *metric* of every constraint, by the constraint's name.
    surrogate_violation : float
        Largest surrogate component at the end; at most 0 when all hold.
    multipliers : dict of str to float, or None
        Multipliers of the surrogate components that are not zero, by the component's name; empty where no component
        binds. None where the method has no multipliers or has diverged, so that the price of a bound is not known.
    history : tuple of dict
        One record per iteration.
    start : Start or None
        Start of a next solve with another ``kappa`` or on other rows; None starts from ``model_state``.
    message : str
        Reason for an early end, if the user should know it.
    candidates : tuple of object
        Other states of the model whose scores may be worth rescaling into the bounds.
    aux : ndarray of shape (n_aux,), or None
        Auxiliary variables of the problem there; None: those that suit the scores, see `Problem.start`.
    is_stationary : bool
        Whether the run has ended within the bounds where no small change of the parameters improves the objective much,
        to first order.
    duality_gap : float or None
        Objective less a lower bound on its least value under the bounds, at least 0; None where there is no such bound.
    reach : float
        Range of the scores that had to give way to others within the bounds; NaN where none had to.
    stopped_by : StoppedBy
        Reason for which the run ended before it was over.
    has_diverged : bool
        Whether the run ended early because a loss was not finite or far above that of the start. The message says so,
        and another run may begin at ``start``.
    """

    model_state: Any
    status: Status
    n_iter: int
    n_evaluations: int
    objective: float
    constraint_values: dict[str, float]
    surrogate_violation: float
    multipliers: dict[str, float] | None
    history: tuple[dict[str, Any], ...]
    start: Start | None = None
    message: str = ""
    candidates: tuple[Any, ...] = ()
    aux: np.ndarray | None = None
    is_stationary: bool = False
    duality_gap: float | None = None
    reach: float = np.nan
    stopped_by: StoppedBy = StoppedBy.NOTHING
    has_diverged: bool = False

    def message_at(self, scores: np.ndarray) -> str:
        """Return the message with what is to be said of the scores at which a fit ends, which may be others."""
        nothing_left = np.ptp(scores) < _ALMOST_NOTHING * self.reach
        return f"{self.message} {_NOTHING_LEFT}".strip() if nothing_left else self.message

    def after(self, first: SolverResult) -> SolverResult:
        """Return this result with the counts and records of a run from which it went on."""
        before = {"n_iter": first.n_iter, "n_evaluations": first.n_evaluations}
        counts = {name: getattr(self, name) + count for name, count in before.items()}
        return replace(self, history=joined_history(first.history, self.history, **before), **counts)


def joined_history(
    first: Sequence[Mapping[str, Any]], later: Iterable[Mapping[str, Any]], **before: int
) -> tuple[dict[str, Any], ...]:
    """Return the records of two runs, where the seconds of the later ones, and counts, go on from those ``before``."""
    return (*map(dict, first), *(record_after(own, seconds=seconds_of(first), **before) for own in later))


def seconds_of(records: Sequence[Mapping[str, Any]]) -> float:
    """Return the seconds that some records took."""
    return float(records[-1].get("seconds", 0.0)) if records else 0.0


def record_after(record: Mapping[str, Any], **before: float) -> dict[str, Any]:
    """Return a history record whose numbers, where it has them, go on from those ``before``."""
    return {**record, **{name: record[name] + before[name] for name in record.keys() & before}}


@dataclass(frozen=True)
class Solver(ABC):
    """A method for constrained problems; its dataclass fields are its options, and it keeps no state.

    A new solver is one file with a subclass that has a ``name`` and the views it ``requires``. The annotation of a
    field says what its option may be, such as ``Positive`` or ``Literal["last", "best"]``; `check_options` holds every
    new solver to it. Its docstring has the options that are new or mean more; the bases document the others.

    Parameters
    ----------
    verbose : int, default=0
        If positive, the numbers of every history record are printed.
    """

    name: ClassVar[str]
    requires: ClassVar[tuple[type, ...]]
    #: The kind of model whose states it looks for.
    model: ClassVar[type] = ParametricModel
    #: Whether the solver keeps the parameters in the problem's domain, whatever that is; see `accepts`.
    projects: ClassVar[bool] = True
    #: Whether it takes many rows at a time, so that another thread may be worth while.
    takes_all_rows: ClassVar[bool] = True
    #: Whether it promises the metric itself, so that the result may be improved by what keeps the metric.
    keeps_metric: ClassVar[bool] = False
    #: Whether a result within the bounds is to stay as it is: what would improve it on the training rows, such as
    #: another multiple or shift of the scores, would undo what it promises for others.
    is_final: ClassVar[bool] = False
    #: Whether it keeps bounds on rows that its models have not seen, so that there is no optimism to make up for.
    bounds_unseen_rows: ClassVar[bool] = False
    #: Whether its time goes into minimisations that `resumable` saves.
    is_resumable: ClassVar[bool] = False
    #: The option that ``max_iter`` of an estimator sets.
    iterations_option: ClassVar[str] = "max_iter"
    #: Name of an iteration.
    unit: ClassVar[str] = "iteration"

    verbose: NonNegativeInt = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        check_options(self)

    def __init_subclass__(cls, is_registered: bool = True) -> None:
        super().__init_subclass__()
        cls.__doc__ = inherited_documentation(cls, _documented_defaults(cls))
        if is_registered and "name" in cls.__dict__:  # what only others inherit from has none
            SOLVERS[cls.name] = cls
            SOLVER_REQUIREMENTS[cls.name] = cls

    @classmethod
    def accepts(cls, domain: Domain) -> bool:
        """Whether the solver keeps the parameters in this domain."""
        return cls.projects

    @classmethod
    def obstacle(cls, problem: Problem) -> str:
        """Need of the solver that the problem does not meet, beside views and domain; empty where there is none."""
        return ""

    def n_epochs(self, problem: Problem) -> int | None:
        """Return the largest number of iterations, each of which has a record; None where it is not known."""
        return None

    @classmethod
    def published(cls, problem: Problem) -> Mapping[str, Any]:
        """Options with which a paper ran its method on such a problem, where they are not the defaults."""
        return {}

    @abstractmethod
    def solve(
        self,
        problem: Problem,
        start: Start | None,
        random_state: np.random.Generator,
        callback: Callback | None = None,
    ) -> SolverResult:
        """Minimise.

        Parameters
        ----------
        problem : Problem
            Offers the views in ``requires``.
        start : Start or None
            A warm start; None leaves the choice to the solver.
        random_state : numpy.random.Generator
        callback : callable, optional
            Called with every history record.

        Returns
        -------
        SolverResult
        """

    def start_of_parts(self, problem: Problem, result: SolverResult) -> Start | None:
        """Start of fits to a part of the rows, near to the result for all rows.

        None where a fit that begins there would know the other rows, as different starts lead to different models.
        """
        return None

    def for_parts(self, problem: Problem) -> Self:
        """Return the solver for fits to parts of the rows of a problem, which are only measured on the others.

        What an exact optimum gains does not matter there.
        """
        return self

    def chosen_by(self, result: SolverResult) -> Self:
        """Return the solver with those of its options among which the run of a result has chosen."""
        return self

    def tells_folds(self, problem: Problem) -> bool:
        """Whether `without_folds` may have states for a result of the problem."""
        return False

    def without_folds(self, problem: Problem, result: SolverResult) -> Sequence[Any] | None:
        """States of the model without one of the solver's own folds after the other, for the price of a few steps.

        Parameters
        ----------
        problem : Problem
        result : SolverResult
            Result of `solve` for the problem.

        Returns
        -------
        states : sequence of object, or None
            One for each of the folds ``problem.data.folds(len(states))``; None where other fits have to tell.
        """
        return None


#: Solvers by name; a subclass of `Solver` enters itself.
SOLVERS: dict[str, type[Solver]] = {}


def solver_class(name: str) -> type[Solver]:
    """The registered solver of that name; raises ValueError, listing the known ones, if there is none."""
    if name not in SOLVERS:
        raise ValueError(f"solver must be one of {['auto', *sorted(SOLVERS)]}, got {name!r}." + meant(name, SOLVERS))
    return SOLVERS[name]


def solver_with(name: str, options: Mapping[str, Any]) -> Solver:
    """The solver of that name; raises ValueError as `make_solver` does."""
    solver = solver_class(name)
    known = sorted(option.name for option in fields(solver))
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"solver {name!r} has no option {unknown}; its options are {known}.")
    return solver(**options)


def make_solver(name: str, options: Mapping[str, Any], problem: Problem) -> Solver:
    """The solver of that name, checked against the problem.

    Raises
    ------
    ValueError
        For an unknown name or option, where the message lists the known ones, and for a value that is not allowed.
    IncompatibleProblem
        If a term of the problem lacks a view that the solver needs, or the solver does not take the domain.
    """
    solver = solver_with(name, options)
    problem.check_solver(name)
    return solver


def solver_state(start: Start | None, kind: type[_State], data: FairData | None = None) -> _State | None:
    """Return what a solver has left in a start, if it is of that kind and was reached with the data that are given."""
    if start is None:
        return None
    state = (start if data is None else start.on(data)).solver_state
    return state if isinstance(state, kind) else None


def _documented_defaults(solver: type[Solver]) -> dict[str, Any]:
    """Defaults of the options that a class and its bases document, in this order."""
    docs = (kind.__doc__ or "" for kind in solver.__mro__ if issubclass(kind, Solver))
    names = dict.fromkeys(name for doc in docs for names, _ in entries(doc, "Parameters") for name in names)
    given = {name: getattr(solver, name) for name in names if hasattr(solver, name)}
    return {name: value.default if isinstance(value, Field) else value for name, value in given.items()}


class Recorder:
    """Collects the history and passes every record on.

    Attributes
    ----------
    stop : StopTraining or None
        Raised by the callback, if it has ended the training: a solver takes no further step then.
    """

    def __init__(self, callback: Callback | None, verbose: int, records: Iterable[dict[str, Any]] = ()) -> None:
        self.records: list[dict[str, Any]] = list(records)
        self._callback, self._verbose = callback, verbose
        self._began = time.perf_counter()
        self.stop: StopTraining | None = None

    @property
    def stopped_by(self) -> StoppedBy:
        """The callback where it has ended the training, otherwise nothing."""
        return StoppedBy.NOTHING if self.stop is None else StoppedBy.CALLBACK

    def add(self, params: np.ndarray | None = None, /, state: Any = None, **record: Any) -> None:
        """Append one record, with the seconds since the recorder was made if it has none.

        The callback also gets the parameters, and the state that a solver may go on from.
        """
        record.setdefault("seconds", time.perf_counter() - self._began)
        self.records.append(record)
        if self._verbose:
            others = (np.ndarray, tuple, NoneType)
            numbers = {name: value for name, value in record.items() if not isinstance(value, others)}
            print("  ".join(f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in numbers.items()))
        if self._callback is not None:
            try:
                self._callback(record | without_none(params=params, state=state))
            except StopTraining as stop:
                _check_chosen(stop, params)
                self.stop = stop

    def add_measured(self, problem: Problem, model_state: Any, **record: Any) -> tuple[Measured, float]:
        """Append a record with the metrics and the objective of a state, and return these."""
        scores = problem.scores(model_state)
        measured, objective = problem.measured(scores), problem.objective_at(model_state, scores)
        self.add(**record, objective=objective, **measured.values, excess=measured.excess)
        return measured, objective


def _check_chosen(stop: StopTraining, params: np.ndarray | None) -> None:
    """Raise ValueError if a callback has chosen parameters that are none of a record, whose ``params`` are given."""
    if stop.params is None:
        return
    if params is None:
        raise ValueError("StopTraining has parameters, but the records of this solver have none; raise it without.")
    if np.shape(stop.params) != params.shape:
        raise ValueError(
            f"StopTraining has parameters of shape {np.shape(stop.params)}, but those of the model have the shape "
            f"{params.shape}; give it the params of a record."
        )


def surrogate_result(
    problem: Problem, z: np.ndarray, n_iter: int, n_evaluations: int, recorder: Recorder
) -> SolverResult:
    """The result of a solver without multipliers that ends after some iterations on the surrogate problem."""
    point = KeptPoint(FullBatchView(problem), z)
    measured = problem.measured(point.scores)
    return SolverResult(
        model_state=z[: problem.n_params],
        status=Status.COMPLETED if measured.excess <= 0 else Status.INFEASIBLE,
        n_iter=n_iter,
        n_evaluations=n_evaluations + 1,
        objective=point.objective,
        constraint_values=measured.values,
        surrogate_violation=largest_violation(point.constraints),
        multipliers=None,
        history=tuple(recorder.records),
        aux=z[problem.n_params :],
    )


def exact_result(
    problem: Problem, params: np.ndarray, n_evaluations: int, recorder: Recorder, **others: Any
) -> SolverResult:
    """The result of a solver at some parameters, with the metrics of the model itself, and other attributes."""
    scores = problem.scores(params)
    measured = problem.measured(scores)
    return SolverResult(
        model_state=params,
        status=Status.COMPLETED if measured.excess <= 0 else Status.INFEASIBLE,
        n_evaluations=n_evaluations + 1,
        objective=problem.objective_at(params, scores),
        constraint_values=measured.values,
        surrogate_violation=largest_violation(measured.violations),
        history=tuple(recorder.records),
        stopped_by=recorder.stopped_by,
        **others,
    )


def named_multipliers(names: Iterable[str], multipliers: np.ndarray | None) -> dict[str, float] | None:
    """The positive multipliers by the names of their components; None where a method has none."""
    if multipliers is None:
        return None
    return {name: value for name, value in zip(names, multipliers.tolist(), strict=True) if value > 0}
