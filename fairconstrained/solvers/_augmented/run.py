"""`Run`: the state of a run of the augmented Lagrangian, which its start and its outer iterations share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairconstrained.problem import Point, Start
from fairconstrained.solvers._augmented.curved import Curvatures
from fairconstrained.solvers._augmented.iterates import Iterates
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.solvers._augmented.stopping import Progress
from fairconstrained.solvers._augmented.tightening import Surrogates

if TYPE_CHECKING:
    from fairconstrained.solvers.augmented_lagrangian import AugmentedLagrangian

__all__ = ["Run"]

#: Iterations without a better objective after which a run ends that knows the curvature.
_PATIENCE = 1


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
    curvatures : Curvatures or None
        Curvature that the iterations know, if any.
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
    curvatures: Curvatures | None = None
    widest: Start | None = None

    def see_curvature(self) -> None:
        """Take the curvature at the present iterate into account, where it is worth while.

        Iterations end nearer to a minimiser then, so that fewer of them are as good.
        """
        problem = self.lagrangian.problem
        if not problem.constraints or not Curvatures.suits(problem):
            return
        self.curvatures = Curvatures(problem, self.iterates.scores)
        self.progress.patience = min(self.progress.patience, _PATIENCE)
        self.surrogates.hurry()

    def begin_at(self, params: np.ndarray) -> None:
        """Make ``params`` the present iterate, and measure it."""
        self.assess(self.iterates.moved_to(params))

    def assess(self, point: Point) -> None:
        """Measure the present iterate, whose point is known."""
        self.progress.see(self.iterates.assess(point))
