"""Methods: a module for each, with

``run(setting: Setting) -> Outcome``
    Trains the network of `benchmarks.loss_parity.network` on ``setting.train``, for about ``setting.seconds`` if they
    are not None, and calls ``setting.record`` on the way; ``_loop.follow`` does both. What is reported is computed from
    the parameters by the benchmark, afterwards.
``LABEL`` : str
    Name in figures and tables.
``ENDS_ITSELF`` : bool, optional
    Whether there is no time limit.
``REQUIRES`` : tuple of str, optional
    Modules without which it is left out.
``PUBLISHED`` : dict from (data set, constraint) to dict from column to float, optional
    The paper's means and standard deviations, shown beside ours; see `published`.
``LIKE`` : str, optional
    The method of which it is another implementation; it is drawn in that one's colour, dashed.
``PLACE`` : int, optional
    Place among the others, see `benchmarks.loss_parity.discovery`.

Code that several methods share is in the files whose names begin with an underscore.
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

#: Rows of a mini-batch in the paper: of the objective, and of every group for the constraints.
BATCH = 8


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
    constraint : module
        One of the modules of `benchmarks.loss_parity.constraints`.
    kappa : float
    seed : int
    seconds : float or None
        Seconds of processor time that training may take.
    visits : list of Visit
    """

    train: Part
    constraint: ModuleType
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


def methods() -> dict[str, ModuleType]:
    """All methods by name."""
    return modules_of("methods")


def published(train: str, test: str, train_gap: float) -> dict[str, float]:
    """A line of the published table 3, and the mean gap on the training part.

    Parameters
    ----------
    train, test : str
        Ind, Sp, Ina, Sf and Wd of the part, each as "mean+-deviation", or "mean" where the deviation cannot be read.
    train_gap : float
    """
    found = {"train_gap": train_gap}
    for part, line in (("train", train), ("test", test)):
        for name, cell in zip(("Ind", "Sp", "Ina", "Sf", "Wd"), line.split(), strict=True):
            mean, _, deviation = cell.partition("+-")
            found[f"{part}_{name}"] = float(mean)
            if deviation:
                found[f"{part}_{name}_sd"] = float(deviation)
    return found
