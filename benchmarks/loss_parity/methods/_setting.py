"""Rows and time that a method is given, and the loop that all methods with a time limit share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from benchmarks.loss_parity.constraints import Constraint
from benchmarks.loss_parity.datasets import Part

#: Rows of a mini-batch in the paper: of the objective, and of every group for the constraints.
BATCH = 8
#: Records of a run: the first ones close together, and then as far from each other as these many in the whole time.
EARLY, EVEN = 25, 30


class Outcome(NamedTuple):
    """The parameters that a method returns, and how many iterations it took, NaN if that is not known."""

    params: np.ndarray
    iterations: float


class Visit(NamedTuple):
    """Where a method was after some seconds of processor time."""

    seconds: float
    iterations: float
    params: np.ndarray


@dataclass
class Setting:
    """Everything that a method is given.

    Attributes
    ----------
    train : Part
        Standardised features, labels in {-1, 1} and the groups' names.
    constraint : Constraint
    kappa : float
    seed : int
    seconds : float or None
        Seconds of processor time that training may take.
    visits : list of Visit
    """

    train: Part
    constraint: Constraint
    kappa: float
    seed: int
    seconds: float | None
    visits: list[Visit] = field(default_factory=list)
    begin: float = field(default_factory=time.process_time)

    @property
    def elapsed(self) -> float:
        """Seconds of processor time since the beginning."""
        return time.process_time() - self.begin

    def record(self, iterations: float, params: np.ndarray) -> None:
        """Remember where the method is."""
        self.visits.append(Visit(self.elapsed, iterations, params.copy()))

    def follow(self, steps: Iterator[None], where: Callable[[], np.ndarray]) -> int:
        """Take steps until the time is over, with records on the way; returns how many there were.

        Parameters
        ----------
        steps : iterator
            Takes a step of the method whenever it is asked for the next item.
        where : callable
            Returns the parameters as they are.
        """
        assert self.seconds is not None  # these methods have no other end
        due = iter(record_times(self.seconds)[:-1])  # the last one is what the run returns
        following, iterations = next(due), 0
        for iterations, _ in enumerate(steps, start=1):
            elapsed = self.elapsed
            if elapsed >= self.seconds:
                break
            if elapsed >= following:
                self.record(iterations, where())
                following = next((time for time in due if time > elapsed), np.inf)
        return iterations


def record_times(seconds: float) -> np.ndarray:
    """When a run has records, ascending, in seconds of training."""
    early, even = np.geomspace(seconds / 300, seconds, EARLY), np.linspace(0, seconds, EVEN + 1)[1:]
    return np.unique(np.concatenate([early, even]).round(6))
