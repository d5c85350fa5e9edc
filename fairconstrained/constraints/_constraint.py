"""Constraints as the user writes them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from fairconstrained.checks.docstrings import completed_documentation
from fairconstrained.constraints._compared_rows import compared_rows_only
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData

__all__ = ["Constraint"]

#: Parameters that several constraints have, with the documentation that they share.
_PARAMETERS = r"""Parameters
----------
kappa : float or None, default=0.05
    Bound on the metric, in [0, 1]. None is no bound: the metric is only reported.
interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
    Percentile interval ``[alpha, beta)``, a union of disjoint ones, or one of these for every group; 0 is the top of a
    group.
threshold : float, default=0.0
    The threshold :math:`\hat\theta`, in units of the scores.
surrogate : {"smoothstep", "logistic", "ramp"}, default="smoothstep"
surrogate_width : float or "auto", default="auto"
    Width of :math:`\sigma` in units of the scores. "auto" lets the solver narrow it.
min_group_size : int or "auto", default="auto"
    Rows that every cell (a group, or its rows of a label that is compared) needs to take part. "auto": as many as it
    takes for no row to count more than ``max(kappa, 0.02)``.
small_groups : {"error", "merge", "ignore"}, default="error"
    Treatment of groups with smaller cells: "error" raises ValueError, "merge" puts them together, as one group named
    "(small groups)", and "ignore" leaves them out of the constraint.
compared_as : mapping, optional
    Names under which groups are compared, whatever their sizes, by label: one common name for those that are merged,
    and None for those that are left out. It serves for other rows than those that told which groups are small.
"""


class Constraint(BaseEstimator, ABC):
    """Constraint as the user writes it: parameters only, no data and no multipliers.

    A new constraint is one file with a subclass of this, which says in `_bind` what it is on data, and one of
    `BoundConstraint`.
    """

    #: Whether it is about scores of a classifier: those above zero are positive, and targets are -1 and 1.
    is_of_classes: ClassVar[bool] = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        defaults = {name: known.default for name, known in inspect.signature(cls).parameters.items()}
        bases = [inspect.cleandoc(base.__doc__ or "") for base in cls.__mro__[1:] if issubclass(base, Constraint)]
        cls.__doc__ = completed_documentation(cls.__doc__, [*bases, _PARAMETERS], defaults)

    def bind(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data, of which it compares the groups that are not ignored.

        Raises
        ------
        ValueError
            If a parameter is out of range, a compared cell of rows is empty, or one row of it counts more than
            ``max(kappa, 0.02)`` in the metric; the message gives the counts.
        """
        constraint = self.unchecked(data)
        constraint.check_resolution()
        return constraint

    def unchecked(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data whose cells may be too small for ``kappa``; see `bind`."""
        constraint = self._bind(data.compared)
        return constraint if constraint.data is data else compared_rows_only(constraint, data)

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
