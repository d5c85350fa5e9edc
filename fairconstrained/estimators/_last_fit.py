"""The last fit of a path, which stands for the next one where its bounds have moved nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fairconstrained.constraints import BoundConstraint
from fairconstrained.estimators._new_row_estimates import NewRowEstimates
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, Status

__all__ = ["LastFit"]


class LastFit(NamedTuple):
    """A fit to the same rows under other bounds.

    Attributes
    ----------
    problem : Problem
    result : SolverResult
    estimated : NewRowEstimates
    """

    problem: Problem
    result: SolverResult
    estimated: NewRowEstimates

    def under(self, problem: Problem) -> LastFit:
        """Return the fit as one under the bounds of ``problem``, for which nothing was evaluated."""
        return LastFit(problem, replace(self.result, n_iter=0, n_evaluations=0, history=()), self.estimated)

    def is_solution_of(self, problem: Problem, estimates: bool) -> bool:
        """Whether another fit, under the bounds of ``problem``, has nothing to find.

        An optimum without some bounds that keeps them is an optimum within them. So it is here for bounds that had no
        price, and are tighter in ``problem``. On new rows they have to hold by the estimates, as a fit may make up for
        these, or keep its bounds on rows not seen.

        Parameters
        ----------
        problem : Problem
        estimates : bool
            Whether a fit estimates the metrics on new rows.
        """
        before, bounds = self.problem.constraints, problem.constraints
        if self.result.status is not Status.OPTIMAL or [c.name for c in before] != [c.name for c in bounds]:
            return False
        scores, gaps = problem.scores(self.result.model_state), self.estimated.gaps

        def is_kept(last: BoundConstraint, bound: BoundConstraint) -> bool:
            if bound.kappa == last.kappa:
                return True
            is_free = last.excess(bound.kappa) < 0 and last.price(self.result.multipliers) == 0
            is_told = not estimates or (bound.name in gaps and bound.excess(gaps[bound.name].estimate) <= 0)
            return is_free and is_told and bound.exact(scores) <= 0

        return bool(bounds) and all(map(is_kept, before, bounds))
