"""The contract of a constraint as the user writes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from fairconstrained.constraints._compared_rows import compared_rows_only
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData

__all__ = ["Constraint"]


class Constraint(BaseEstimator, ABC):
    """Constraint as the user writes it: parameters only, no data and no multipliers.

    A new constraint is one file with a subclass of this, which says in `_bind` what it is on data, and one of
    `BoundConstraint`.
    """

    #: Whether it is about scores of a classifier: those above zero are positive, and targets are -1 and 1.
    is_of_classes: ClassVar[bool] = False

    def bind(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data, of which it compares the groups that are not ignored.

        Raises
        ------
        ValueError
            If a parameter is out of range, a compared cell of rows is empty, or one row of it counts more than
            ``max(kappa, 0.02)`` in the metric; the message gives the counts.
        """
        bound = self.unchecked(data)
        bound.check_resolution()
        return bound

    def unchecked(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data whose cells may be too small for ``kappa``; see `bind`."""
        bound = self._bind(data.compared)
        return bound if bound.data is data else compared_rows_only(bound, data)

    @abstractmethod
    def _bind(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data of which it compares all groups; raises ValueError for wrong parameters."""

    def in_units(self, offset: float, scale: float) -> Self:
        """Return the constraint on scores ``(s - offset) / scale``, for targets that the solver sees standardised.

        Raises
        ------
        ValueError
            If it is of classes, whose scores have no such units.
        """
        if self.is_of_classes and (offset, scale) != (0.0, 1.0):
            raise ValueError(
                f"{type(self).__name__} is about the scores of a classifier, of which positive ones mean the positive "
                "class; a regressor takes constraints such as StatisticalParity and DemographicParity."
            )
        params = self.get_params(deep=False)
        changed: dict[str, Any] = {}
        if "threshold" in params:
            changed["threshold"] = (params["threshold"] - offset) / scale
        if not isinstance(params.get("surrogate_width", "auto"), str):
            changed["surrogate_width"] = params["surrogate_width"] / scale
        return type(self)(**{**params, **changed})
