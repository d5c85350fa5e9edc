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

from fairconstrained.checks.pickles import check_place, read_pickle, write_pickle
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
#: Parts of a progress bar in the order of importance: a narrow terminal cuts the end off.
_BAR = "{desc}{n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}] {bar}"


class TrainingCallback:
    """Callback that `fit` calls after every epoch; any function of one record serves as well.

    A record is a dict: ``n_iter`` (the epoch, or the number of trees), ``seconds``, ``objective``, the exact metric of
    every constraint by its name, ``multipliers``, and ``state``, from which training can go on. Networks also have
    ``n_evaluations`` and the parameters ``params``; boosted trees have a record for every 60th of the trees. Records of
    the searches of "cross_fitted_network" have no ``multipliers``, ``state`` and ``params``. A callback that raises
    `fairconstrained.exceptions.StopTraining` ends training; what has been learnt is kept, and no callback is told more.
    """

    def begin(self) -> Start | None:
        """Called before the first epoch of a fit.

        Returns
        -------
        start : Start or None
            State from which training goes on; None leaves the start as it is.
        """
        return None

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Called with every record."""

    def end(self) -> None:
        """Called when training is over, however it ended."""

    def for_part(self) -> TrainingCallback | None:
        """Return the callback of a fit to a part of the rows, as for an estimate on new rows; None for none."""
        return None


class ProgressBar(TrainingCallback):
    """The objective and the gaps of the last record, followed by a progress bar.

    What does not fit into the width of a terminal is cut off at the end: first the bar, then the time.

    Parameters
    ----------
    total : int, optional
        Largest ``n_iter`` of a record, where the bar is full. None: not known.
    kappas : dict from str to float or None, optional
        Bounds by the name of the bounded metric. Then the bar shows only the objective and these metrics, each with its
        bound, in place of all numbers of a record.
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
        self._bar = tqdm(total=self.total, unit=f" {self.unit}s", bar_format=_BAR, leave=False)
        return None

    @override
    def __call__(self, record: Mapping[str, Any]) -> None:
        self._bar.update(record["n_iter"] - self._bar.n)
        self._bar.set_description_str(", ".join(self._words(record)) + "; ")

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

    Fits to parts of the rows, which estimate gaps on new rows, have as many seconds each. The parameter ``max_time`` of
    `LossParityClassifier` also ends training within an epoch, and chooses a solver that trains a single network:
    "cross_fitted_network" has trained all of its small networks before its first record.

    Parameters
    ----------
    seconds : float
        Time from the start of training after which it ends, in seconds.
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

    @override
    def for_part(self) -> TimeLimit:
        return TimeLimit(self.seconds)


class HistoryCSV(TrainingCallback):
    """Write the numbers of every record to a file as soon as they are there.

    Parameters
    ----------
    path : str or path-like
        File, with columns separated by commas, which every fit writes anew.
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
    """Save the state of training, and go on from it if the file exists when `fit` begins.

    A fit that was cut off and is called again, with the same data and parameters, ends with the very model that it
    would have ended with (but ``early_stopping`` begins to count anew). There are three exceptions: boosted trees keep
    their trees and the best number of them so far, and find the multipliers of the bounds anew, so that the next trees
    are others; "augmented_lagrangian" keeps the parameters alone, see `resumable` for a whole state; and of
    "cross_fitted_network" nothing is saved. Give every fit a file of its own, and give none to the fits of a search, a
    path or a cross-validation: a file of a fit to other data is refused, which all targets, weights and groups and the
    features of about a thousand rows tell, to the last digit. The file is a pickle: open only your own.

    Parameters
    ----------
    path : str or path-like
        File of the state. It is kept after the fit.
    every : int, default=1
        Number of epochs between two savings (of boosted trees, it is saved where the number of trees is a multiple).
    resume : bool, default=True
        Whether to go on from the file. False begins anew, and overwrites the file.

    Raises
    ------
    ValueError
        If ``every`` is below 1. In `fit`: if there is no such folder, or the file is no checkpoint, or belongs to other
        data; for a network also if it belongs to a model of another size.
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
        check_place(path)
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
