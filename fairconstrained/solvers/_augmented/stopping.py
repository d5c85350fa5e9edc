"""When a run of the augmented Lagrangian stops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

__all__ = ["Progress"]

#: Iterations without coming nearer to feasibility after which a run begins anew, or is given up.
_STALLS_BEFORE_RESTART = 5
#: Iterations that promise a better optimum without reaching it, after which a run ends.
_PROMISES = 12
#: Rounding of sums of shares.
_ROUNDING = 1e-9
#: Share of the excess over the bounds by which an iterate has to come nearer to count.
_NEARER = 0.1


@dataclass
class Progress:
    """Whether to go on: iterations that have stalled, in shares of ``patience``."""

    patience: int
    #: Fraction of the best objective that counts as an improvement.
    tol: float
    #: How often the run has begun anew.
    n_restarts: int = 0
    _stalled: float = 0.0
    #: The least excess over the bounds, and what it was when it last became smaller by as much as counts.
    _least: float = np.inf
    _counted: float = np.inf
    _comes_nearer: bool = False

    @property
    def is_over(self) -> bool:
        """Whether as many iterations have stalled as there is patience for."""
        return self._stalled > self.patience - _ROUNDING

    def see(self, excess: float) -> None:
        """Note by how much an iterate exceeds the bounds."""
        self._least = min(self._least, excess)
        self._comes_nearer = self._least <= (1 - _NEARER) * self._counted
        if self._comes_nearer:
            self._counted = self._least

    def restart(self) -> None:
        """Begin to count anew."""
        self.n_restarts, self._stalled = self.n_restarts + 1, 0.0
        self._least = self._counted = np.inf

    def reset(self) -> None:
        """Count an iteration that comes too early to be judged."""
        self._stalled = 0.0

    def count_infeasible(self, is_hopeful: Callable[[], bool], is_pressed: bool) -> None:
        """Count an iteration before which no iterate was feasible, and which has not changed that.

        An iterate that is no better than what is to be had without any search gives no hope, and one that the largest
        penalty has not brought nearer gives less.
        """
        if self._comes_nearer:
            self._stalled = 0.0
            return
        share = 2 / _STALLS_BEFORE_RESTART if is_pressed else 1 / _STALLS_BEFORE_RESTART
        self._stalled += self.patience * share if is_hopeful() else 1.0

    def count_feasible(self, previous: float, best: float, objective: float, waits: bool) -> None:
        """Count an iteration that follows a feasible iterate, or is the first one.

        ``previous`` and ``best`` are the best objective before and after, and ``objective`` is that of the iteration,
        which may not be feasible. ``waits`` says whether an iterate that is better but not yet feasible may become so.
        """
        if best < previous - self.tol * abs(previous):
            self._stalled = 0.0
        else:
            is_promising = objective < best - self.tol * abs(best)
            self._stalled += self.patience / _PROMISES if waits and is_promising else 1.0
