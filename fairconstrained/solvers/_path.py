"""Warm starts of the augmented Lagrangian from one ``kappa`` to the next, along the path of solutions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fairconstrained.constraints import BoundConstraint
from fairconstrained.problem import Problem, Start
from fairconstrained.terms import Measured

__all__ = ["Iterate", "extrapolated", "resumed", "start_after", "without_idle_components"]

#: Longest step of an extrapolation, in multiples of the distance that it goes on from.
_LONGEST = 1.5


class Iterate(NamedTuple):
    """An assessed iterate; a search has found it where its multipliers are None."""

    params: np.ndarray
    objective: float
    measured: Measured
    multipliers: dict[str, float] | None

    @property
    def violations(self) -> np.ndarray:
        """Excess of the exact metrics over kappa; shape (n_constraints,)."""
        return self.measured.violations

    @property
    def excess(self) -> float:
        """Largest exact violation beyond the metric's granularity; -inf without constraints."""
        return self.measured.excess


def start_after(problem: Problem, params: np.ndarray, multipliers: np.ndarray, origin: Iterate | None = None) -> Start:
    """The start from ``params`` and the multipliers of all components, which a run from ``origin`` has come to."""
    ends = np.cumsum([len(c.component_names) for c in problem.constraints])
    return Start(
        params,
        tuple(c.components for c in problem.constraints),
        tuple(np.split(multipliers, ends[:-1])) if problem.constraints else (),
        previous=None if origin is None else origin.params,
        fingerprint=problem.data.fingerprint,
    )


def extrapolated(far: Iterate, near: Iterate, share: float = 1.0) -> np.ndarray | None:
    """Where the line from ``far`` through ``near`` may reach feasibility.

    Parameters
    ----------
    far, near : Iterate
        Measured for the same ``kappa``.
    share : float
        Share of the excess of ``near`` that the step is to undo, if excess is linear along the line.

    Returns
    -------
    params : ndarray of shape (n_params,) or None
        None where ``near`` is feasible, or no nearer to it than ``far``.
    """
    if not 0 < near.excess < far.excess:
        return None
    step = min(share * near.excess / (far.excess - near.excess), _LONGEST)
    return near.params + step * (near.params - far.params)


def without_idle_components(start: Start, constraints: Sequence[BoundConstraint]) -> Start:
    """``start`` without the components that have no multiplier, save those that every run begins with.

    Every run adds components. All of them kept along a path, they would make each fit dearer than the last.
    """
    if len(start.components) != len(constraints):
        return start
    components, multipliers = [], []
    for constraint, positions, known in zip(constraints, start.components, start.multipliers, strict=True):
        if positions.size:
            table = known.reshape(positions.size, -1)
            kept = table.any(axis=1) | np.isin(positions, constraint.components)
            positions, known = positions[kept], table[kept].ravel()
        components.append(positions)
        multipliers.append(known)
    return replace(start, components=tuple(components), multipliers=tuple(multipliers))


def resumed(problem: Problem, start: Start) -> tuple[Problem, np.ndarray | None]:
    """The problem with the components of ``start``, and their multipliers; None if those do not fit."""
    if len(start.components) != len(problem.constraints):
        return problem, None
    constraints = tuple(
        constraint.with_components(components) if components.size else constraint
        for constraint, components in zip(problem.constraints, start.components, strict=True)
    )
    problem = replace(problem, constraints=constraints)
    known = np.concatenate(start.multipliers)
    return problem, known.copy() if known.size == len(problem.component_names) else None
