"""Estimates of bounded metrics on new rows, and what they say about a model and about its bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.estimators._standard_errors import standard_errors
from fairconstrained.problem import Problem, Start, are_all_equal

__all__ = ["CONSTANT_SCORE", "NewRowEstimates", "NewRowGap"]

#: How the estimate of a constant score is made.
CONSTANT_SCORE = "the constant score itself"
#: Largest optimism that is made up for, in multiples of ``kappa``: of two groups, and of more. From 2 on, no model is
#: within both bounds: that on rows seen and that on rows not seen. Beyond 1, equal groups are not, and the order of
#: more than two is hard to turn round: fits ended at reversed scores.
_MOST, _MOST_OF_MORE = 1.75, 1.0
#: Differences between two groups, in both directions.
_DIFFERENCES_OF_TWO = 2
#: Standard errors that a promised estimate is to be within its bound by, and the largest such margin, in multiples of
#: ``kappa``. Without, the metric in the population is beyond the bound in half of the draws.
_MARGIN, _LARGEST_MARGIN = 0.25, 0.5


class NewRowGap(NamedTuple):
    """Estimate of a bounded metric on new rows."""

    #: The metric on new rows; NaN where there is no estimate.
    estimate: float
    #: Standard error of the difference between the estimate and the metric in the population.
    standard_error: float
    #: How the estimate was made, or why there is none.
    how: str


@dataclass(frozen=True)
class NewRowEstimates:
    """Estimates for a problem, and where the fits on parts of the rows ended."""

    gaps: dict[str, NewRowGap]
    starts: tuple[Start, ...] = ()
    #: Corrections that the estimates contain, by the constraint's name, see `for_all_rows`.
    corrections: dict[str, float] = field(default_factory=dict)
    #: Optimism of the differences by the constraint's name, where the fit makes up for it; a constant score has none.
    optimism: dict[str, np.ndarray] = field(default_factory=dict)
    #: Standard errors of the metrics of the model of all rows, or of scores near its own by models that have not seen
    #: the row; empty where they are still to be computed.
    own_errors: dict[str, float] = field(default_factory=dict)
    #: Whether one of the models that the estimates are made of gives all rows the same score.
    has_constant: bool = False

    def made_up_for(self, problem: Problem, most: float | None = None, least: float = 0.0) -> Problem:
        """Return the problem with bounds on differences of rows not seen besides.

        At most ``most`` times ``kappa`` of it is made up for, and nothing of less than ``least`` times ``kappa``. None
        stands for what the bounds on rows seen leave room for: of two groups, losses that are as far apart as this part
        of the optimism, the other way round, are within all bounds; of more groups, equal losses are.
        """
        bounds: list[BoundConstraint] = []
        for constraint in problem.constraints:
            known = np.maximum(self.optimism.get(constraint.name, 0.0), 0.0)
            largest = float(np.max(known))
            possible = _MOST if np.size(known) <= _DIFFERENCES_OF_TWO else _MOST_OF_MORE
            bound = (possible if most is None else most) * constraint.kappa
            is_worth_it = largest > max(least * constraint.kappa, 0.0)  # kappa=None of a floor is minus infinity
            part = min(1.0, bound / largest) if is_worth_it else 0.0
            bounds.append(constraint.with_optimism(part * known) if part else constraint)
        is_same = all(new is old for new, old in zip(bounds, problem.constraints, strict=True))
        return problem if is_same else replace(problem, constraints=tuple(bounds))

    def about(self, problem: Problem, scores: np.ndarray, units: np.ndarray | None = None) -> NewRowEstimates:
        """The estimates as they are for the model with these scores of the training rows.

        Where rows are few, the model of all rows may be another one than those of the folds, such as one that accepts
        few people. Then the standard error is that of its own scores if it is larger, and the metric of the rows that
        it has seen is the better warning if it is clearly larger than the estimate. Of a mean loss it is so whenever it
        is larger.
        """
        gaps = dict(self.gaps)
        known = [each for each in problem.constraints if not np.isnan(gaps[each.name].estimate)]
        errors = self.own_errors or standard_errors(known, problem.data, scores, units)
        for constraint in known:
            value, gap = constraint.metric(scores), gaps[constraint.name]
            if are_all_equal(scores):  # models of folds that are not constant say nothing of it
                gaps[constraint.name] = NewRowGap(value, errors[constraint.name], CONSTANT_SCORE)
                continue
            if self.has_constant:  # nor they, if one is constant, of a model that is not
                how = f"the training rows, as a model of {gap.how} has a constant score"
                gaps[constraint.name] = NewRowGap(value, errors[constraint.name], how)
                continue
            differences, own = constraint.differences(scores), self.optimism.get(constraint.name)
            if differences is not None and own is not None:  # this model makes up for it, those of the folds do not
                gap = gap._replace(estimate=float((differences + own).max()))
            error = np.hypot(errors[constraint.name], self.corrections.get(constraint.name, 0.0))
            gap = gap._replace(standard_error=float(np.fmax(gap.standard_error, error)))
            beyond = constraint.excess(value) - constraint.excess(gap.estimate)
            noise = 0.0 if constraint.is_fitted_loss else 2 * gap.standard_error
            if beyond > noise + constraint.granularity:
                how = f"the training rows, as {gap.how} gives {gap.estimate:.3g}"
                gap = NewRowGap(value, gap.standard_error, how)
            gaps[constraint.name] = gap
        return replace(self, gaps=gaps)

    def excess(self, problem: Problem) -> np.ndarray:
        """Excess of every estimate with its margin over ``kappa``, where that bounds the metric; ndarray."""
        return np.array([self._excess(c) if c.bounds_metric else 0.0 for c in problem.constraints])

    def _excess(self, constraint: BoundConstraint) -> float:
        gap = self.gaps[constraint.name]
        margin = np.minimum(_MARGIN * gap.standard_error, _LARGEST_MARGIN * constraint.kappa)
        return constraint.excess(gap.estimate) + float(np.nan_to_num(margin))
