"""The two-variable example of the paper: ``min x'Ax / 2`` s.t. ``x'Bx / 2 - 10 <= 0`` in the l1 ball of radius 1.

A = diag(10, -1) and B = diag(50, -5). The solutions are (0, 1) and (0, -1), with the value -1/2; the modulus of weak
convexity is 5.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.domains import L1Ball
from fairconstrained.models import LinearModel
from fairconstrained.objectives import BoundObjective, Squared
from fairconstrained.problem import Problem, Start
from fairconstrained.views import FullBatch

__all__ = ["SimpleExample"]

_A, _B = (10.0, -1.0), (50.0, -5.0)
_BOUND = 10.0


def _form(curvatures: tuple[float, ...], scores: Tensor) -> Tensor:
    return (torch.tensor(curvatures, dtype=torch.float64) * scores**2).sum() / 2


@dataclass(frozen=True)
class _Objective(BoundObjective):
    """``x'Ax / 2``."""

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return _form(_A, scores).reshape(1)


@dataclass(frozen=True)
class _Bound(BoundConstraint, FullBatch):
    """``x'Bx / 2 <= 10``."""

    data: FairData
    margin: float = 0.0
    name: str = "form"
    kappa: float = _BOUND

    component_names = ("form",)
    granularity = 1e-6

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return (_form(_B, scores) - self.kappa + self.margin).reshape(1)

    def metric(self, scores: np.ndarray) -> float:
        return float(_form(_B, torch.from_numpy(scores)))

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> _Bound:
        return _Bound(self.data, margin)


@dataclass(frozen=True)
class SimpleExample:
    """The example as a case of the benchmark, see `benchmarks.weakly_convex.cases.Case`."""

    name: str = "simple example"
    proximity: float = 10.0

    def options(self, published: dict[str, float]) -> dict[str, float]:
        """Options of a method with the proximal parameter of this example, twice the modulus of weak convexity."""
        return published | ({"proximity": self.proximity} if "proximity" in published else {})

    def problem(self) -> Problem:
        """The scores are the variables: a linear model without intercept on the identity."""
        data = FairData.from_arrays(np.eye(2), np.array([-1.0, 1.0]), np.zeros(2, dtype=int), (None,))
        objective = _Objective(Squared(), data)
        return Problem(objective, (_Bound(data),), data, model=LinearModel(2, fit_intercept=False), domain=L1Ball(1.0))

    @staticmethod
    def start(problem: Problem) -> Start:
        """The paper's."""
        return Start(np.array([0.0, 0.5]))
