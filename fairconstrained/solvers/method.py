"""`Method`: the update rule of an iterative solver, with its variables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._base import SolverResult, named_multipliers
from fairconstrained.solvers.source import Source
from fairconstrained.terms import Measured

if TYPE_CHECKING:
    from fairconstrained.solvers.loop import IterativeSolver

__all__ = ["Incumbent", "Method"]


class Incumbent:
    """The best iterate so far: of least objective among those within the bounds, or else the one nearest to them.

    Attributes
    ----------
    z : ndarray of shape (n_variables,), or None
        None before the first `offer`.
    objective : float
        There; infinite before the first `offer`.
    excess : float
        Largest excess over the bounds; at most 0 if all of them are kept.
    """

    def __init__(self) -> None:
        self.z: np.ndarray | None = None
        self.objective = self.excess = np.inf

    def offer(self, z: np.ndarray, objective: float, excess: float) -> bool:
        """Take ``z`` if it is better; returns whether it was."""
        is_better = self.z is None or (max(excess, 0.0), objective) < (max(self.excess, 0.0), self.objective)
        if is_better:
            self.z, self.objective, self.excess = z, objective, excess
        return is_better

    @property
    def is_feasible(self) -> bool:
        """Whether there is an iterate within the bounds."""
        return self.excess <= 0

    def best_or(self, other: np.ndarray) -> np.ndarray:
        """Return the best iterate, and ``other`` before the first `offer`."""
        return other if self.z is None else self.z

    def feasible_or(self, other: np.ndarray) -> np.ndarray:
        """Return the best iterate within the bounds, and ``other`` where there is none."""
        return self.best_or(other) if self.is_feasible else other


class Method(ABC):
    """An update rule with its variables, but without data: what can be saved and gone on from.

    Parameters
    ----------
    options : IterativeSolver
    z : ndarray of shape (n_variables,)
        Variables to begin at.

    Attributes
    ----------
    z : ndarray of shape (n_variables,)
        The iterate, never changed in place.
    center : ndarray of shape (n_variables,), or None
        The centre of a Moreau envelope, see `StochasticSolver`; never changed in place. None where there is none.
    """

    z: np.ndarray
    center: np.ndarray | None = None
    _multipliers: np.ndarray | None = None
    #: Whether it keeps rows of the data. Then no checkpoint has it, and a run goes on from the iterate alone.
    holds_rows: ClassVar[bool] = False

    def __init__(self, options: Any, z: np.ndarray) -> None:
        self._options, self.z = options, z

    def begin(self, source: Source, problem: Problem) -> None:  # noqa: B027 - most methods have nothing to do
        """Called before the first step of a new run."""

    def go_on(self, solver: IterativeSolver, problem: Problem) -> None:
        """Called before the first step of a run that goes on from another one: the options are this run's."""
        self._options = solver

    def begin_epoch(self) -> None:  # noqa: B027 - most methods have nothing to do
        """Called before the first step of every iteration of the loop."""

    @abstractmethod
    def step(self, source: Source, problem: Problem) -> None:
        """One update of ``z``.

        Parameters
        ----------
        source : Source
            Mini-batches, and all rows as ``source.view``.
        problem : Problem
            Problem that has the projection.
        """

    @property
    def finished(self) -> bool:
        """Whether further steps are no use; False in a method without a stopping rule."""
        return False

    @property
    def multipliers(self) -> np.ndarray | None:
        """One for each component; None where the method has none."""
        return self._multipliers

    def point(self, source: Source, problem: Problem) -> Point:
        """The iterate on all rows, for a record."""
        return source.at(self.z)

    def observe(self, point: Point, measured: Measured) -> None:  # noqa: B027 - most methods have nothing to do
        """Called with the iterate on all rows and its exact metrics, before its record."""

    def named_multipliers(self, names: Sequence[str]) -> dict[str, float] | None:
        """The multipliers that are not zero by the names of their components; None where the method has none."""
        return named_multipliers(names, self.multipliers)

    def numbers(self, point: Point) -> dict[str, Any]:
        """Return the numbers that the method adds to a record, with ``point`` the iterate on all rows; here none."""
        return {}

    def output(self) -> np.ndarray:
        """The iterate that the method returns; here the last one."""
        return self.z

    def conclude(self, result: SolverResult, problem: Problem) -> SolverResult:
        """Return the result with what only the method knows of it, such as whether it is optimal."""
        return result
