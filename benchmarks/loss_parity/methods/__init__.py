"""Methods: a module for each, with

``run(setting: Setting) -> Outcome``
    Trains the network of `benchmarks.loss_parity.network` on ``setting.train``, for about ``setting.seconds`` if they
    are not None, and calls ``setting.record`` after as many iterations as mini-batches make up the data. What is
    reported is computed from the parameters by the benchmark, afterwards.
``LABEL`` : str
    For figures and tables.
``ENDS_ITSELF`` : bool, optional
    Whether there is no time limit.
``REQUIRES`` : tuple of str, optional
    Modules without which it is left out.
``PUBLISHED`` : dict from (data set, constraint) to dict from column to float, optional
    The paper's means, shown beside ours.
``LIKE`` : str, optional
    The method of which it is another implementation; it is drawn in that one's colour, dashed.
``PLACE`` : int, optional
    Among the others, see `benchmarks.loss_parity.discovery`.

What several methods share is in the files whose names begin with an underscore.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import numpy as np

from benchmarks.loss_parity.datasets import Part
from benchmarks.loss_parity.discovery import modules_of

__all__ = ["BATCH", "Outcome", "Setting", "Visit", "methods", "published"]

#: Rows of a mini-batch in the paper.
BATCH = 8


class Outcome(NamedTuple):
    """The parameters that a method returns, and how many iterations it took, NaN if that is not known."""

    params: np.ndarray
    iterations: float


class Visit(NamedTuple):
    """Where a method was after some seconds."""

    seconds: float
    iterations: float
    params: np.ndarray


@dataclass
class Setting:
    """What a method is given.

    Attributes
    ----------
    train : Part
        Standardised features, labels in {-1, 1} and the groups' names.
    constraint : module
        See `benchmarks.loss_parity.constraints`.
    kappa : float
    seed : int
    seconds : float or None
        Of wall-clock time that training may take.
    visits : list of Visit
    """

    train: Part
    constraint: ModuleType
    kappa: float
    seed: int
    seconds: float | None
    visits: list[Visit] = field(default_factory=list)
    begin: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begin

    def record(self, iterations: float, params: np.ndarray) -> None:
        """Remember where the method is."""
        self.visits.append(Visit(self.elapsed, iterations, params.copy()))


def methods() -> dict[str, ModuleType]:
    """All methods by name."""
    return modules_of("methods")


def published(test: tuple[float, float, float, float, float], train_gap: float) -> dict[str, float]:
    """A line of the published table: Ind, Sp, Ina, Sf and Wd on the test part, and the gap on the training part."""
    names = [f"test_{name}" for name in ("Ind", "Sp", "Ina", "Sf", "Wd")]
    return dict(zip(names, test, strict=True)) | {"train_gap": train_gap}
