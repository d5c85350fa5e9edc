"""`Run`: the state of a run of the augmented Lagrangian, which its start and its outer iterations share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.problem import Point, Start
from fairconstrained.solvers._augmented.iterates import Iterates
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.solvers._augmented.stopping import Progress
from fairconstrained.solvers._augmented.tightening import Surrogates

if TYPE_CHECKING:
    from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian

__all__ = ["Run"]


@dataclass(eq=False)
class Run:
    """State of a run: one part each for the multipliers, the surrogates, the iterates, and when to stop.

    Attributes
    ----------
    options : AugmentedLagrangian
    lagrangian : Lagrangian
    surrogates : Surrogates
    progress : Progress
    iterates : Iterates
    inner_iter : int
        L-BFGS iterations of an outer iteration.
    is_on_path : bool
        Whether it goes on from the multipliers for another ``kappa``.
    is_converged, is_given_up : bool
        Whether it is over with a feasible iterate, and without one.
    widest : Start or None
        Start from where the run stood when its surrogate was widest.
    """

    options: AugmentedLagrangian
    lagrangian: Lagrangian
    surrogates: Surrogates
    progress: Progress
    iterates: Iterates
    inner_iter: int
    is_on_path: bool = False
    is_converged: bool = False
    is_given_up: bool = False
    widest: Start | None = None

    def begin_at(self, params: np.ndarray) -> None:
        """Make ``params`` the present iterate, and measure it."""
        self.assess(self.iterates.moved_to(params))

    def assess(self, point: Point) -> None:
        """Measure the present iterate, whose point is known."""
        self.progress.see(self.iterates.assess(point))
