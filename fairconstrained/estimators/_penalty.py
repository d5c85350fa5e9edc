"""Estimators with a weight on unfairness in place of a bound."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.estimators._base import BaseFairEstimator
from fairconstrained.estimators._outcome import Target
from fairconstrained.estimators.parameters import parameter, with_parameters

__all__ = ["WeighsUnfairness"]


@with_parameters
class WeighsUnfairness(BaseFairEstimator):
    r"""Estimators with a weight on unfairness, which bounds nothing.

    Parameters
    ----------
    weight : float, default=0.1
        The weight :math:`\lambda` of the penalty, at least 0, in units of the objective; 0 is the unconstrained fit by
        the same solver.

    Attributes
    ----------
    violation_ : float
        0: there is no bound to violate.
    """

    weight: float = parameter(0.1, [Interval(Real, 0, None, closed="left")], kw_only=False)

    _unconstrained: ClassVar[str] = "weight=0"

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
