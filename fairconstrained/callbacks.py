"""Callbacks that watch, stop and save the training of a solver."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

from tqdm import tqdm
from typing_extensions import override

from fairconstrained.checks.pickles import read_pickle, write_pickle
from fairconstrained.exceptions import StopTraining
from fairconstrained.problem import Start
from fairconstrained.solvers import Callback
from fairconstrained.solvers.resuming import resumable

__all__ = [
    "Checkpoint",
    "HistoryCSV",
    "ProgressBar",
    "StopTraining",
    "TimeLimit",
    "TrainingCallback",
    "resumable",
    "watching",
]

#: Entries of a record that are no numbers.
_NOT_NUMBERS = ("params", "state", "multipliers")


class TrainingCallback:
    """Callback that `fit` calls after every epoch; any function of one record serves as well.

    A record is a dict: ``n_iter`` (the epoch), ``seconds``, ``n_evaluations``, ``objective``, the exact metric of every
    constraint by its name, ``multipliers``, and the parameters ``params``. A callback that raises
    `fairconstrained.exceptions.StopTraining` ends training; what has been learnt is kept.
    """

    def begin(self) -> Start | None:
        """Called before the first epoch of a fit; may return a state to go on from."""
        return None

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Called with every record."""

    def end(self) -> None:
        """Called when training is over, however it ended."""


class ProgressBar(TrainingCallback):
    """A progress bar with an entry for every record, and the objective and the gaps beside it.

    Parameters
    ----------
    total : int, optional
        Records in all, at most.
    kappas : dict from str to float, optional
        Bounds by the name of the bounded metric. Of the numbers of a record only the objective and these metrics are
        shown then, with their bounds.
    unit : str, default="epoch"
        Name of the period between two records.
    """

    def __init__(
        self, total: int | None = None, *, kappas: Mapping[str, float | None] | None = None, unit: str = "epoch"
    ) -> None:
        self.total = total
        self.kappas = kappas
        self.unit = unit

    @override
    def begin(self) -> Start | None:
        self._bar = tqdm(total=self.total, unit=f" {self.unit}s", leave=False)
        return None

    @override
    def __call__(self, record: Mapping[str, Any]) -> None:
        self._bar.update(record["n_iter"] - self._bar.n)
        self._bar.set_postfix_str(", ".join(self._words(record)))

    def _words(self, record: Mapping[str, Any]) -> Iterator[str]:
        """The numbers that are shown, by name."""
        for name, value in record.items():
            is_shown = name != "seconds" if self.kappas is None else name == "objective" or name in self.kappas
            if isinstance(value, float) and is_shown:
                kappa = None if self.kappas is None else self.kappas.get(name)
                yield f"{name} {value:.4g}" + ("" if kappa is None else f" (kappa {kappa:g})")

    @override
    def end(self) -> None:
        self._bar.close()


class TimeLimit(TrainingCallback):
    """End training some seconds after it began, at the end of an epoch.

    ``max_time`` of an estimator also ends it within an epoch.

    Parameters
    ----------
    seconds : float
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    @override
    def begin(self) -> Start | None:
        self._end = time.perf_counter() + self.seconds
        return None

    @override
    def __call__(self, record: Mapping[str, Any]) -> None:
        if time.perf_counter() > self._end:
            raise StopTraining


class HistoryCSV(TrainingCallback):
    """Write the numbers of every record to a file as soon as they are there.

    Parameters
    ----------
    path : str or path-like
        Is written anew by every fit.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path

    @override
    def begin(self) -> Start | None:
        self._columns: list[str] = []
        Path(self.path).write_text("", encoding="utf-8")
        return None

    @override
    def __call__(self, record: Mapping[str, Any]) -> None:
        numbers = {name: value for name, value in record.items() if name not in _NOT_NUMBERS}
        with Path(self.path).open("a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, self._columns or list(numbers))
            if not self._columns:
                self._columns = list(numbers)
                writer.writeheader()
            writer.writerow(numbers)


class Checkpoint(TrainingCallback):
    """Save the state of training, and go on from it where the file is there when `fit` begins.

    A fit that was cut off and is called again, with the same data and parameters, ends with the very model that it
    would have ended with (but ``early_stopping`` begins to count anew). Which data they were is not in the file: give
    every fit a file of its own, and those of a search or a cross-validation none. The file is a pickle: open only your
    own.

    Parameters
    ----------
    path : str or path-like
    every : int, default=1
        Epochs between two savings.
    resume : bool, default=True
        False begins anew, and writes over a file that is there.

    Raises
    ------
    ValueError
        If ``every`` is below 1; in `fit`, if the file is no checkpoint, or that of a model of another size.
    """

    def __init__(self, path: str | PathLike[str], *, every: int = 1, resume: bool = True) -> None:
        if every < 1:
            raise ValueError(f"every must be at least 1, got {every!r}.")
        self.path = path
        self.every = every
        self.resume = resume

    @override
    def begin(self) -> Start | None:
        path = Path(self.path)
        if not self.resume or not path.exists():
            return None
        return read_pickle(path, Start)

    @override
    def __call__(self, record: Mapping[str, Any]) -> None:
        if record["n_iter"] % self.every or "state" not in record:
            return
        write_pickle(self.path, record["state"])


@contextmanager
def watching(
    callbacks: Sequence[Callback], start: Start | None, checked: Callable[[Start], Start]
) -> Iterator[tuple[Start | None, Callback | None]]:
    """Begin callbacks, and end them when the training is over.

    Parameters
    ----------
    callbacks : sequence of callable
    start : Start or None
        Where the training would start.
    checked : callable
        Takes a state that a callback would go on from, and returns it or raises ValueError.

    Yields
    ------
    start : Start or None
        Where the training is to start.
    call : callable or None
        Passes a record on to all callbacks; None if there are none.
    """
    with ExitStack() as at_end:
        for callback in callbacks:
            if isinstance(callback, TrainingCallback):
                known = callback.begin()
                at_end.callback(callback.end)
                start = start if known is None else checked(known)

        def call(record: Mapping[str, Any]) -> None:
            for callback in callbacks:
                callback(record)

        yield start, call if callbacks else None
