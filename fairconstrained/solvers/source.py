"""`Source`: where the steps of a stochastic method get their mini-batches from."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property

import numpy as np
import torch

from fairconstrained.points import Anchor, Point
from fairconstrained.problem import FullBatchView, Problem, StochasticView

__all__ = ["Source"]


class Source:
    """The rows of a problem, all or as mini-batches with replacement: a step may see again what an earlier one saw.

    `batch` gives the objective and the constraints from the same rows. `objective_batch` and `constraint_batch` draw
    them independently, so that products of the two are unbiased as well.

    Parameters
    ----------
    size : int or None
        About how many rows a mini-batch has; None is all of them.
    balance : float
        Part of a mini-batch that the groups have in equal numbers.
    constraint_size : int, optional
        About how many rows a mini-batch for the constraints has. None: ``size`` rows of every stratum.

    Attributes
    ----------
    n_rows : int
        Rows drawn so far.
    anchor : Anchor or None
        A term that the objective has besides, in the mini-batches from now on.
    rng : numpy.random.Generator
    """

    anchor: Anchor | None = None

    def __init__(
        self,
        view: StochasticView,
        rng: np.random.Generator,
        size: int | None,
        balance: float,
        constraint_size: int | None = None,
    ) -> None:
        self._view, self.rng, self._size, self._balance = view, rng, size, balance
        self._constraint_size = constraint_size
        self._batches: dict[Hashable, Iterator[FullBatchView]] = {}
        self._last: tuple[np.ndarray, Point] | None = None
        self.n_rows = 0

    @cached_property
    def _n_strata(self) -> int:
        return int(np.unique(self._view.problem.strata).size)

    @property
    def view(self) -> FullBatchView:
        """All rows; the evaluations of all sources of one `StochasticView` are counted together."""
        return self._view.whole

    def at(self, z: np.ndarray) -> Point:
        """The point of all rows at ``z``, which nobody may change in place; the last one is not computed again."""
        if self._last is None or self._last[0] is not z:
            self._last = z, self.view.at(z)
        return self._last[1]

    def count(self, n_rows: int) -> None:
        """Take rows into account that were seen by other means."""
        self.n_rows += n_rows

    def batch(self) -> FullBatchView:
        """A new mini-batch of the usual kind; the whole problem if that has no more rows, or for no size."""
        return self._at_most_all(self._size)

    def sample(self, size: int) -> FullBatchView:
        """A new mini-batch of about so many rows, in which the groups have their shares."""
        return self._counted(self._view.sample(self.rng, size))

    def objective_batch(self) -> FullBatchView:
        """The objective alone on a new mini-batch of the usual size, drawn from all rows whatever their groups are."""
        if self._size is None or self._size >= self._view.problem.data.n_samples:
            return self.all_objective_rows()
        return self.objective_rows(self._size)

    def constraint_batch(self) -> FullBatchView:
        """A new mini-batch for the constraints."""
        size = self._constraint_size
        if size is None and self._size is not None:
            size = self._size * self._n_strata
        return self._at_most_all(size)

    def separate_points(self, z: np.ndarray) -> Sequence[Point]:
        """The points at ``z`` of an `objective_batch` and of two `constraint_batch`, all three independent."""
        return FullBatchView.at_each([self.objective_batch(), self.constraint_batch(), self.constraint_batch()], z)

    def objective_rows(self, rows: int) -> FullBatchView:
        """The objective alone on a new mini-batch of exactly so many rows, drawn from all of them."""
        return self._next(("objective", rows), lambda: self._view.objective_batches(self.rng, rows))

    def even_batch(self, rows: int) -> FullBatchView:
        """A new mini-batch with so many rows of every stratum."""
        return self._balanced(rows * self._n_strata, 1.0)

    def all_rows(self) -> FullBatchView:
        """The problem itself."""
        return self._new(self._view.problem)

    def all_objective_rows(self) -> FullBatchView:
        """The problem without its constraints."""
        return self._new(self._view.problem.without_constraints())

    def part(self, batch: FullBatchView, rows: np.ndarray) -> FullBatchView:
        """Some rows of a mini-batch, by their numbers there, in ascending order."""
        problem = batch.problem
        weights = problem.data.weights[torch.from_numpy(rows)]
        return self._new(problem.on(problem.data.at(rows, weights / weights.sum())))

    def _at_most_all(self, size: int | None) -> FullBatchView:
        if size is None or size >= self._view.problem.data.n_samples:
            return self.all_rows()
        return self._balanced(size, self._balance)

    def _balanced(self, size: int, balance: float) -> FullBatchView:
        return self._next((size, balance), lambda: self._view.batches(self.rng, size, balance))

    def _next(self, kind: Hashable, begin: Callable[[], Iterator[FullBatchView]]) -> FullBatchView:
        """The next mini-batch of a kind, the first one if it has not begun."""
        if kind not in self._batches:
            self._batches[kind] = begin()
        return self._counted(next(self._batches[kind]))

    def _new(self, problem: Problem) -> FullBatchView:
        return self._counted(FullBatchView(problem))

    def _counted(self, batch: FullBatchView) -> FullBatchView:
        """A mini-batch that is handed out."""
        self.n_rows += batch.problem.data.n_samples
        batch.anchor = self.anchor
        return batch
