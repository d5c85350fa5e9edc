"""Fits that go on where they were cut off: the minima that a fit has found so far, in a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.checks.pickles import check_place, read_pickle, write_pickle

if TYPE_CHECKING:
    from fairconstrained.problem import Problem
    from fairconstrained.solvers._base import Solver

__all__ = ["Evaluate", "Minimum", "SavedMinima", "begin_resumable", "keep_minima", "resumable", "saved_minima"]

#: Difference of two numbers, relative to them, up to which they are the same: sums of other processes, or in another
#: order, differ by rounding.
_ROUNDING = 1e-6
#: Options of solvers on which their results do not depend, other than by ending sooner.
_OF_NO_MATTER = ("verbose", "max_time", "keep_on_interrupt")

#: Value and gradient of a function, and how a minimisation of it ends: where, and whether more iterations are no use.
Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray]]
Found = tuple[np.ndarray, bool]


@dataclass(frozen=True)
class Minimum:
    """A minimisation, which is known by where it began, and what it has come to."""

    #: Bounds of the constraints that the function belongs to.
    kappas: dict[str, float]
    #: Where it began, the value of the function there, and its gradient.
    begin: np.ndarray  # of shape (n_variables,)
    value: float
    slope: np.ndarray  # of shape (n_variables,)
    #: Values and gradients in the order in which they were asked for; only until it is over.
    values: list[tuple[float, np.ndarray]] = field(default_factory=list)
    #: Where the function is least; None until it is over.
    end: np.ndarray | None = None  # of shape (n_variables,)
    #: Whether more iterations are no use.
    is_settled: bool = False
    #: How many it took; 0 until it is over.
    n_evaluations: int = 0
    #: Settings on which the end may depend, and the beginning need not.
    settings: str = ""

    def begins_as(self, other: Minimum) -> bool:
        """Whether both begin alike: at the same variables, with the same settings, bounds, value and gradient."""
        return (self.settings, self.kappas) == (other.settings, other.kappas) and all(
            one.shape == two.shape and np.linalg.norm(one - two) <= _ROUNDING * (least + np.linalg.norm(one))
            for one, two, least in (
                (self.begin, other.begin, 0.0),
                (np.array(self.value), np.array(other.value), 0.0),
                (self.slope, other.slope, abs(self.value)),
            )
        )


@dataclass
class SavedMinima:
    """The minima of a fit, one after the other, in a file.

    A fit is deterministic: up to where it was cut off, it meets the same minimisations again. Each of them is skipped
    that begins like the next one in the file, and the one that was under way is told the values that it knew.
    """

    path: Path
    #: Seconds between two savings.
    every: float
    #: Minima of the file.
    known: list[Minimum]
    #: Settings of the present run of a solver.
    settings: str = ""
    #: Whether a fit has ended before it was over, so that the file is kept as it is.
    is_stopped: bool = False
    _position: int = 0
    _saved_at: float = field(default_factory=time.monotonic)

    @property
    def is_used(self) -> bool:
        """Whether there was anything to minimise; not where another process leads the fit."""
        return self._position > 0

    def minimised(
        self, kappas: dict[str, float], evaluate: Evaluate, start: np.ndarray, minimise: Callable[[Evaluate], Found]
    ) -> tuple[Found, int]:
        """Return where a function is least, whether that is settled, and how many evaluations the file has saved.

        Parameters
        ----------
        evaluate : callable
            Value and gradient of the function.
        start : ndarray of shape (n_variables,)
            Where the minimisation begins.
        minimise : callable
            Minimises the function, which it is given.
        """
        if self.is_stopped:
            return minimise(evaluate), 0  # a fit that goes on does not meet what follows its stop
        begun = self._begun(Minimum(kappas, start, *evaluate(start), settings=self.settings))
        if not self.is_used:
            self.save()  # so that a file that cannot be written is an error at once
        self._position += 1
        if begun.end is not None:
            return (begun.end, begun.is_settled), begun.n_evaluations
        known = list(begun.values)
        told = iter(known)

        def watched(z: np.ndarray) -> tuple[float, np.ndarray]:
            if (found := next(told, None)) is not None:
                return found
            begun.values.append(evaluate(z))
            if time.monotonic() - self._saved_at >= self.every:
                self.save()
            return begun.values[-1]

        end, is_settled = minimise(watched)
        n_evaluations = len(begun.values)
        self.known[-1] = replace(begun, values=[], end=end, is_settled=is_settled, n_evaluations=n_evaluations)
        return (end, is_settled), len(known)

    def save(self) -> None:
        """Write the file; raises ValueError where it cannot be written."""
        try:
            write_pickle(self.path, self.known)
        except OSError as error:
            raise ValueError(
                f"the checkpoint {self.path} cannot be written: {error}. Pass a path in a folder that you may write to."
            ) from error
        self._saved_at = time.monotonic()

    def close(self) -> None:
        """Write the file for a fit that may go on, and remove it when all fits are over."""
        if not self.is_used:
            return
        if self.is_stopped:
            self.save()
        else:
            self.path.unlink(missing_ok=True)

    def _begun(self, new: Minimum) -> Minimum:
        """Return the next minimisation of the file if it begins alike, and otherwise the new one in its place."""
        if self._position < len(self.known):
            known = self.known[self._position]
            if known.begins_as(new):
                return known
            if self._position == 0:
                raise ValueError(
                    f"the checkpoint {self.path} is that of another fit, with other rows or parameters. Remove the "
                    "file, or pass another path."
                )
            del self.known[self._position :]
        self.known.append(new)
        return new


_SAVED: ContextVar[SavedMinima | None] = ContextVar("saved minima", default=None)


def saved_minima() -> SavedMinima | None:
    """Return the minima of the present fit; None if it is not to be saved."""
    return _SAVED.get()


@contextmanager
def resumable(path: str | PathLike[str], *, every: float = 60.0) -> Iterator[None]:
    """Save how far fits have come, and go on from there if they were cut off and are called again.

    The file has the coefficients of every minimisation of a fit so far, and of the one that is under way. A fit that is
    called again with the same rows, parameters and ``random_state`` passes quickly over them: one or two evaluations
    each, in place of up to hundreds. It ends with the very same model on the same machine; the rows may also come from
    another table or from other processes now. For `fairconstrained.distributed.fit` every process may enter it with the
    same path; the first one writes the file.

    The file has no rows. It belongs to a fit if value and gradient where that begins are the same up to a millionth, as
    sums in another order differ by rounding. Rows that differ by less, such as by the last digits of a file of text or
    by one row of millions, are taken for the same. The model then differs from that of a new fit by no more than two
    new fits to such rows do, whose objectives are the same up to ``tol``; the metrics are those of the present rows.

    When all fits are over, the file is removed. It is kept where an error ends them, and where ``max_time``, a
    `fairconstrained.callbacks.TimeLimit` or another callback that raises `fairconstrained.exceptions.StopTraining`
    without parameters has stopped one: its model serves meanwhile, and the same call goes on from there, with a new
    limit or with none. Fits after that one begin anew then. Remove the file if that is not wanted.

    Parameters
    ----------
    path : str or path-like
        A file for these fits alone. It is a pickle: open only your own.
    every : float, default=60.0
        Seconds between two savings; 0 saves after every evaluation.

    Raises
    ------
    ValueError
        If ``every`` is negative, there is no such folder, or the file is none of these; in `fit`, if it belongs to
        another fit or cannot be written, or if the solver does not save how far it has come.

    Notes
    -----
    For the solvers ``"cross_fitted"``, ``"span"``, ``"span_search"`` and ``"augmented_lagrangian"``: all that
    ``solver="auto"`` takes for linear scores under bounds on rates, ranks and AUCs. A network is saved after every
    epoch by ``callbacks=[Checkpoint(path)]``. Fits that joblib sends to other threads or processes are not in the file.

    Examples
    --------
    >>> from fairconstrained import PartialParityClassifier
    >>> from fairconstrained.callbacks import resumable
    >>> from fairconstrained.datasets import make_biased_classification
    >>> X, y, group = make_biased_classification(300, random_state=0)
    >>> model = PartialParityClassifier(0.05, constraint="demographic_parity", random_state=0)
    >>> with resumable("fit.checkpoint"):
    ...     model = model.fit(X, y, sensitive_features=group)
    """
    if not every >= 0:
        raise ValueError(f"every must be a number of seconds of at least 0, got {every!r}.")
    path = Path(path)
    check_place(path)
    known = read_pickle(path, list) if path.exists() else []
    if not all(isinstance(each, Minimum) for each in known):
        raise ValueError(f"{path} is not a checkpoint of fits: its list holds something else.")
    saved = SavedMinima(path, every, known)
    token = _SAVED.set(saved)
    try:
        yield
    except BaseException:
        saved.is_stopped = True
        raise
    finally:
        _SAVED.reset(token)
        saved.close()


def keep_minima() -> None:
    """Keep the file of the present fit, which is being stopped by a limit and may go on later."""
    if (saved := saved_minima()) is not None:
        saved.is_stopped = True


def begin_resumable(solver: Solver, problem: Problem) -> None:
    """Tell the minima that are to be saved, if there are any, the settings of a run of a solver.

    Raises ValueError if the solver does not say how far it has come.
    """
    saved = saved_minima()
    if saved is None:
        return
    if not solver.is_resumable:
        raise ValueError(
            f"solver {solver.name!r} does not save how far it has come. Fit without a checkpoint, or take a solver "
            "that does: 'cross_fitted', 'span', 'span_search' or 'augmented_lagrangian'. For a network, pass "
            "callbacks=[Checkpoint(path)] in place of it."
        )
    options = {each.name: getattr(solver, each.name) for each in fields(solver) if each.name not in _OF_NO_MATTER}
    # the penalty of any state but zero tells its weight
    penalty = problem.model.penalty_at(np.ones(problem.n_params))
    saved.settings = repr((solver.name, options, float(penalty)))
