"""Constraints as the user writes them."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from fairconstrained.checks.parameters import CheckedParameters, parameter, with_parameters
from fairconstrained.constraints._some_rows import compared_rows_only
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.surrogates import SURROGATES

__all__ = ["Constraint", "IntervalConstraint", "SmoothedConstraint"]

#: Width of "auto" surrogates before a solver refines them: that of the experiments of the partial fairness paper.
PAPER_WIDTH = 1.0


class Constraint(CheckedParameters, BaseEstimator, ABC):
    """Constraint as the user writes it: parameters only, no data and no multipliers.

    A new constraint is one file with a subclass of this, whose `_bind` returns the constraint on data, and one of
    `BoundConstraint`. Parameters are declared as in `fairconstrained.checks.parameters`, or by a constructor.
    """

    #: Whether the constraint is about scores of a classifier: those above zero are positive, and targets are -1 and 1.
    is_of_classes: ClassVar[bool] = False
    #: Names that the groups were compared under on other rows, by label, see `comparing`; None where there are none.
    compared_as: Mapping[str, str | None] | None = None

    def bind(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data, of which it compares the groups that are not ignored.

        Raises
        ------
        ValueError
            If a parameter is out of range, the constraint does not suit the targets or the groups of the data, a
            compared cell of rows is empty, or one row of it counts more than ``max(kappa, 0.02)`` in the metric, where
            the message gives the counts.
        """
        constraint = self.unchecked(data)
        constraint.check_resolution()
        return constraint

    def unchecked(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data whose cells may be too small for ``kappa``; see `bind`."""
        self._validate_params()
        constraint = self._bind(data.compared)
        return constraint if constraint.data is data else compared_rows_only(constraint, data)

    @abstractmethod
    def _bind(self, data: FairData) -> BoundConstraint:
        """Bind the constraint to data of which it compares all groups; raises ValueError for wrong parameters."""

    def comparing(self, names: Mapping[str, str | None] | None) -> Self:
        """Return the constraint with the compared groups of other rows, whatever the sizes of the groups are now.

        Parameters
        ----------
        names : mapping or None
            Names under which groups are compared, by label: one common name for those that are merged, and None for
            those that are left out. None in place of a mapping leaves it to the rows.
        """
        constraint = copy.copy(self)
        constraint.compared_as = names
        return constraint

    def of_all_groups(self) -> Self:
        """Return the constraint without limits to how small a group may be."""
        changed = self.comparing(None)
        limits = {"min_group_size": 0, "small_groups": "error"}
        for name in limits.keys() & self.get_params(deep=False).keys():
            setattr(changed, name, limits[name])
        return changed

    def for_classes(self, classes: Sequence[Hashable]) -> Constraint | None:
        """Return the constraint for more than two classes, on scores of all classes and targets that number them.

        None is the constraint on every class against the others, see `EveryClass`.
        """
        return None

    def of_labels(self, labels: Sequence[Hashable]) -> Self:
        """Return the constraint for a classifier of these labels, by which the user may have named rows."""
        return self

    @property
    def compares_within_strata(self) -> bool:
        """Whether the constraint compares groups within the strata that are passed to `fit`."""
        return False

    @property
    def bounds_from_below(self) -> bool:
        """Whether ``kappa`` is the least value that the metric may have, so that a larger one allows less."""
        return False

    @property
    def bounds_levels(self) -> bool:
        """Whether the metric is the largest level of a single group, which no model may bring near zero."""
        return False

    @property
    def limits_every_group(self) -> bool:
        """Whether ``kappa`` is a limit of every group by itself, so that a single group has one as well."""
        return self.bounds_from_below or self.bounds_levels

    def search_form(self) -> Constraint | None:
        """Return a constraint on the same gap of groups that do not overlap, whose thresholds can be searched exactly.

        None where there is no other.
        """
        return None

    def group_table(self, data: FairData, scores: np.ndarray) -> pd.DataFrame | None:
        """Return the means of all groups of the data, a line for each; None where groups have no means."""
        return None

    def value_of_decisions(self, data: FairData, scores: np.ndarray) -> float:
        """Return the metric of the decisions, also where ``kappa`` bounds a smooth surrogate of it."""
        return self.unchecked(data).value_of_decisions(scores)

    def in_units(self, offset: float, scale: float) -> Self:
        """Return the constraint on scores ``(s - offset) / scale``, for targets that the solver sees standardised.

        Raises
        ------
        ValueError
            If the constraint is about classes, whose scores have no such units.
        """
        if self.is_of_classes and (offset, scale) != (0.0, 1.0):
            raise ValueError(
                f"{type(self).__name__} is about the scores of a classifier, of which positive ones mean the positive "
                "class; a regressor takes constraints such as StatisticalParity and DemographicParity."
            )
        params, changed = self.get_params(deep=False), copy.copy(self)
        if "threshold" in params:
            changed.threshold = (params["threshold"] - offset) / scale
        if not isinstance(params.get("surrogate_width", "auto"), str):
            changed.surrogate_width = params["surrogate_width"] / scale
        return changed


@with_parameters
class SmoothedConstraint(Constraint):
    r"""Constraint whose metric counts rows or pairs, with a surrogate in place of the indicator.

    Parameters
    ----------
    surrogate : {"smoothstep", "logistic", "ramp"}, default="smoothstep"
        The function :math:`\sigma` that takes the place of the indicator in the surrogate of the metric.
    surrogate_width : float or "auto", default="auto"
        Width of :math:`\sigma` in units of the scores, positive. "auto" begins with 1 and lets the solver narrow it.
    """

    surrogate: str = parameter(default="smoothstep", allowed=[StrOptions(set(SURROGATES))])
    surrogate_width: float | str = parameter(
        default="auto", allowed=[Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})]
    )

    def _surrogate_options(self) -> dict[str, Any]:
        """Return the fields of `BoundSmoothed` that ``surrogate`` and ``surrogate_width`` stand for."""
        is_auto = self.surrogate_width == "auto"
        surrogate = SURROGATES[self.surrogate].with_width(PAPER_WIDTH if is_auto else float(self.surrogate_width))
        return {"surrogate": surrogate, "fixed_width": not is_auto}


@with_parameters
class IntervalConstraint(SmoothedConstraint):
    """Constraint on the ranks of an interval.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the metric, in [0, 1]. None is no bound: the metric is only reported.
    interval : pair of floats, list of pairs, or dict from group to either, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)``, a union of disjoint ones, or one of these for every group; 0 is the top
        of a group.
    """

    kappa: float | None = parameter(default=0.05, kw_only=False)
    interval: Any = parameter(default=(0.0, 1.0))
