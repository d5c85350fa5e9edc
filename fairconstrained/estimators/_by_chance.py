"""Values of a bounded metric that chance alone leads to, said in messages."""

from __future__ import annotations

from fairconstrained.problem import Problem

__all__ = ["noise_of"]

#: Addition to a message where the bound is smaller than what chance makes of the metric.
_BY_CHANCE = (
    " By chance alone, {0.name} of scores that do not depend on the group is {1:.3g} on average on these rows; smaller "
    "values are hard to reach without more rows."
)


def noise_of(problem: Problem) -> str:
    """Say where a bound is smaller than its metric is by chance, which more rows or a larger kappa would change."""
    values = ((constraint, constraint.value_by_chance) for constraint in problem.constraints)
    return "".join(_BY_CHANCE.format(*pair) for pair in values if pair[1] > pair[0].kappa)
