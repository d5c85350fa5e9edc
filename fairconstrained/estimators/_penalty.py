"""Estimators with a weight on unfairness in place of a bound."""

from __future__ import annotations

from typing import Any

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._outcome import Target

__all__ = ["WeighsUnfairness"]


class WeighsUnfairness(BaseFairEstimator):
    """Estimators with ``weight`` among their parameters; 0 is the unconstrained fit."""

    weight: float

    def _asks_for_fairness(self) -> bool:
        return self.weight > 0

    def _bound_constraints(self, data: FairData, target: Target, checked: bool = True) -> tuple[BoundConstraint, ...]:
        """Implement `BaseFairEstimator._bound_constraints`; a weight promises nothing that few rows could miss."""
        return super()._bound_constraints(data, target, checked=False)

    def _bound_params(self, kappa: float | None) -> dict[str, Any]:
        """Implement `BaseFairEstimator._bound_params`; a weight bounds nothing."""
        if kappa is not None:
            raise ValueError(f"{type(self).__name__} has a weight in place of a bound, so there is no kappa to set.")
        return {"weight": 0.0}
