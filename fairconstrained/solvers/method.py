"""`Method`: the update rule of a stochastic solver, with its variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from fairconstrained.problem import Point, Problem
from fairconstrained.solvers.source import Source

if TYPE_CHECKING:
    from fairconstrained.solvers.stochastic import StochasticSolver

__all__ = ["Method"]


class Method(ABC):
    """An update rule with its variables, but without data: what can be saved and gone on from.

    Attributes
    ----------
    z : ndarray of shape (n_variables,)
        The iterate, never changed in place.
    """

    z: np.ndarray
    _options: Any

    @abstractmethod
    def step(self, source: Source, problem: Problem) -> None:
        """One update of ``z``; ``problem`` is there for its projection."""

    def go_on(self, solver: StochasticSolver, problem: Problem) -> None:
        """Called before the first epoch of a run that goes on from another one: the options are this run's."""
        self._options = solver

    def begin_epoch(self) -> None:  # noqa: B027 - most methods have nothing to do
        """Called before the first step of every epoch."""

    @property
    def multipliers(self) -> np.ndarray | None:
        """One for each component; None where the method has none."""
        return None

    def numbers(self, point: Point) -> dict[str, Any]:
        """Return the numbers that the method adds to a record, with ``point`` the iterate on all rows; here none."""
        return {}

    def output(self) -> np.ndarray:
        """The iterate that the method returns; here the last one."""
        return self.z
