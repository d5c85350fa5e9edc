"""Multipliers of the augmented Lagrangian, and the penalty."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.points import largest_violation
from fairconstrained.problem import Point, Problem
from fairconstrained.solvers._base import named_multipliers

__all__ = ["Lagrangian"]

#: Components per group for which the first penalty is meant: ten levels, from below and from above.
_COMPONENTS = 20
#: Largest penalty: above it, L-BFGS sees little but the constraints.
_MAX_PENALTY = 1000.0


class Lagrangian:
    """The problem with its present surrogates, the multipliers of all components, and the weight of their squares.

    Parameters
    ----------
    penalty : float
        First penalty, for up to 20 components per group.
    is_known : bool
        Whether the multipliers are known to be zero; a search over thresholds has none.

    Attributes
    ----------
    problem : Problem
    multipliers : ndarray of shape (n_components,)
    penalty, first : float
        Present penalty, and the first one.
    violation : float
        Largest component after the last update, at least 0.
    is_known : bool
        Whether there are multipliers: zeros would say that the constraints cost nothing.
    """

    def __init__(self, problem: Problem, penalty: float, is_known: bool) -> None:
        self.problem, self.is_known = problem, is_known
        n_components = len(problem.component_names)
        # More levels are more components for the same gap; together they should weigh no more than a few do.
        crowd = n_components / (_COMPONENTS * problem.data.n_groups)
        self.first = self.penalty = penalty / max(crowd, 1.0)
        self.multipliers, self.violation = np.zeros(n_components), np.inf

    def at(self, point: Point) -> tuple[float, np.ndarray]:
        """Value and gradient of the augmented Lagrangian."""
        multipliers, penalty = self.multipliers, self.penalty
        updated = np.maximum(multipliers + penalty * point.constraints, 0)
        value = point.objective + float(updated @ updated - multipliers @ multipliers) / (2 * penalty)
        return value, point.gradient(1.0, updated)

    def update(self, constraints: np.ndarray) -> None:
        """Move the multipliers, and double the penalty where the violation has not halved."""
        self.multipliers, self.is_known = np.maximum(self.multipliers + self.penalty * constraints, 0), True
        violation = largest_violation(constraints)
        if violation > self.violation / 2:
            self.penalty = min(2 * self.penalty, _MAX_PENALTY)
        self.violation = violation

    @property
    def is_largest(self) -> bool:
        """Whether the penalty grows no more."""
        return self.penalty >= _MAX_PENALTY

    @property
    def named_multipliers(self) -> dict[str, float] | None:
        """The multipliers that are not zero, by the names of their components; None where there are none."""
        return named_multipliers(self.problem.component_names, self.multipliers if self.is_known else None)

    def replace_constraints(self, constraints: tuple[BoundConstraint, ...]) -> None:
        """Take constraints with further components, which stand behind the old ones of their constraint."""
        parts, first = [], 0
        for old, new in zip(self.problem.constraints, constraints, strict=True):
            count = len(old.component_names)
            parts += [self.multipliers[first : first + count], np.zeros(len(new.component_names) - count)]
            first += count
        self.multipliers = np.concatenate(parts)
        self.problem = replace(self.problem, constraints=constraints)

    def restart(self) -> None:
        """Forget the multipliers."""
        self.multipliers = np.zeros_like(self.multipliers)
        self.penalty, self.violation = self.first, np.inf
