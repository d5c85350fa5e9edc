"""Subgradients that ``ipc`` takes to a nearly eps-stationary point of a non-smooth problem, against eps.

    min |x_1^2 - 1| + |x_2^2 - 4|   s.t.   x_1^2 + x_2^2 <= 3,   |x_1|, |x_2| <= 3

is 2-weakly convex. The solution of a proximal subproblem is known up to a root in one variable, the multiplier, so that
the distance to it is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.optimize import brentq
from torch import Tensor

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.domains import Box
from fairconstrained.models import LinearModel
from fairconstrained.objectives import BoundObjective, Logistic
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import IPC
from fairconstrained.views import FullBatch

__all__ = ["measure"]

_TARGETS = np.array([1.0, 4.0])
_BOUND = 3.0
_BOX = 3.0
#: More than the modulus of weak convexity, which is 2.
_PROXIMITY = 4.0
_STARTS = 5


@dataclass(frozen=True)
class _Distance(BoundObjective):
    """``sum |s_i^2 - b_i|``."""

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return (scores**2 - torch.from_numpy(_TARGETS)).abs().sum().reshape(1)


@dataclass(frozen=True)
class _Size(BoundConstraint, FullBatch):
    """``sum s_i^2 <= 3``."""

    data: FairData
    name: str = "size"
    kappa: float = _BOUND

    component_names = ("size",)
    granularity = 1e-2

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return (scores @ scores - self.kappa).reshape(1)

    def metric(self, scores: np.ndarray) -> float:
        return float(scores @ scores)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> _Size:
        return self


def _problem() -> Problem:
    data = FairData.from_arrays(np.eye(2), np.array([-1.0, 1.0]), np.zeros(2, dtype=int), (None,))
    objective = _Distance(Logistic(), data)
    return Problem(objective, (_Size(data),), data, model=LinearModel(2, fit_intercept=False), domain=Box(-_BOX, _BOX))


def _proximal_solution(x: np.ndarray) -> np.ndarray:
    """Solution of the subproblem at x, entry by entry for a multiplier, which is a root."""

    def at(multiplier: float) -> np.ndarray:
        return np.array([_entry(*pair, multiplier) for pair in zip(x, _TARGETS, strict=True)])

    def slack(multiplier: float) -> float:
        y = at(multiplier)
        return float(y @ y - _BOUND + _PROXIMITY / 2 * (y - x) @ (y - x))

    if slack(0.0) <= 0:
        return at(0.0)
    highest = 1.0
    while slack(highest) > 0:
        highest *= 2
    return at(brentq(slack, 0.0, highest, xtol=1e-14))


def _entry(x: float, target: float, multiplier: float) -> float:
    """Minimise ``|y^2 - b| + m y^2 + (1 + m) r (y - x)^2 / 2``, convex and piecewise quadratic, over the box."""
    pull = (1 + multiplier) * _PROXIMITY
    kinks = [np.sqrt(target), -np.sqrt(target), -_BOX, _BOX]
    stationary = [pull * x / (2 * sign + 2 * multiplier + pull) for sign in (1.0, -1.0)]
    candidates = np.clip([*kinks, *stationary], -_BOX, _BOX)
    values = np.abs(candidates**2 - target) + multiplier * candidates**2 + pull / 2 * (candidates - x) ** 2
    return float(candidates[values.argmin()])


class _Arrived(Exception):
    """Ends a run."""


def _n_subgradients(start: np.ndarray, eps: float) -> int:
    """Up to the first subproblem whose centre is nearly eps-stationary."""
    counts: list[int] = []

    def watch(record: Mapping[str, Any]) -> None:
        x = record["params"]
        if np.linalg.norm(x - _proximal_solution(x)) <= eps:
            counts.append(record["n_evaluations"])
            raise _Arrived

    solver = IPC(max_iter=2000, precision=eps / 2, proximity=_PROXIMITY)
    try:
        solver.solve(_problem(), Start(start), np.random.default_rng(0), watch)
    except _Arrived:
        return counts[0]
    return -1  # did not arrive: the table shows it


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Subgradients by eps, from five feasible starts."""
    grid = (0.2, 0.1) if quick else (0.3, 0.2, 0.1, 0.05, 0.03)
    starts = np.random.default_rng(0).uniform(-0.9, 0.9, size=(_STARTS, 2))
    rows = [(eps, start, _n_subgradients(x, eps)) for eps in grid for start, x in enumerate(starts)]
    frame = pd.DataFrame(rows, columns=["eps", "start", "n_subgradients"])
    slope = np.polyfit(np.log(frame.eps), np.log(frame.n_subgradients), 1)[0]
    return {"complexity": frame.assign(slope=slope)}
