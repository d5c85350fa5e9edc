"""The last fit of a path, which stands for the next one where its bounds have moved nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from fairconstrained.constraints import BoundConstraint
from fairconstrained.estimators._new_row_estimates import NewRowEstimates, NewRowGap
from fairconstrained.problem import Problem
from fairconstrained.solvers import SolverResult, Status

__all__ = ["LastFit"]


class LastFit(NamedTuple):
    """A fit to the same rows under other bounds."""

    problem: Problem
    result: SolverResult
    estimated: NewRowEstimates
    #: The estimates for the model of the result, by constraint.
    gaps: Mapping[str, NewRowGap] = MappingProxyType({})

    def under(self, problem: Problem) -> LastFit:
        """Return the fit as one under the bounds of ``problem``, for which nothing was evaluated."""
        return self._replace(problem=problem, result=replace(self.result, n_iter=0, n_evaluations=0, history=()))

    def is_solution_of(self, problem: Problem, estimates: bool) -> bool:
        """Whether the result is that of a fit under the bounds of ``problem`` as well.

        It is optimal under looser bounds. Where it keeps the tighter bounds of ``problem``, and its own had no price
        (multipliers of zero), it is optimal under these, too. Where a fit estimates the metrics on new rows, the
        estimates must be within the bounds as well, since another fit would make up for what they exceed.

        Parameters
        ----------
        estimates : bool
            Whether a fit estimates the metrics on new rows.
        """
        before, bounds = self.problem.constraints, problem.constraints
        if self.result.status is not Status.OPTIMAL or [c.name for c in before] != [c.name for c in bounds]:
            return False
        scores, gaps = problem.scores(self.result.model_state), self.gaps

        def is_kept(last: BoundConstraint, bound: BoundConstraint) -> bool:
            if bound.kappa == last.kappa:
                return True
            had_no_price = last.excess(bound.kappa) < 0 and last.price(self.result.multipliers) == 0
            holds_on_new_rows = bound.name in gaps and bound.excess(gaps[bound.name].estimate) <= 0
            return had_no_price and (holds_on_new_rows or not estimates) and bound.exact(scores) <= 0

        return bool(bounds) and all(map(is_kept, before, bounds))
