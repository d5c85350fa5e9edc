"""Bounds on the gaps between the positive rates of groups, which may overlap, or between smooth surrogates of them."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
from sklearn.utils._param_validation import StrOptions
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._decision_rates import BoundDecisionRates
from fairconstrained.constraints._row_functions import RATE_FUNCTIONS
from fairconstrained.constraints.base import check_bound, check_kappa
from fairconstrained.constraints.compared_groups import ComparesGroups, measured, table_of_groups
from fairconstrained.constraints.demographic_parity import DemographicParity
from fairconstrained.constraints.equal_opportunity import EqualOpportunity
from fairconstrained.constraints.mean_gaps import BoundMeanGaps
from fairconstrained.data import FairData
from fairconstrained.metrics import rate_gap
from fairconstrained.metrics.cell_means import RATE_NOTIONS, RATES, rate_notion

__all__ = ["RateGap"]

#: Constraints on the rates of groups that do not overlap, where a search for the groups' thresholds may solve the
#: problem. Equal rates among positives and negatives alike take more than thresholds.
_SEARCH_FORMS: dict[str, type[Constraint]] = {
    "demographic_parity": DemographicParity,
    "equal_opportunity": EqualOpportunity,
}


@with_parameters
class RateGap(ComparesGroups):
    r"""Bound on the gaps between the rates of groups.

    With the mean :math:`R_{g,v} = \frac{1}{|g, v|} \sum_{i \in g, y_i = v} r(h(x_i), y_i)` of the rate over the rows of
    group g and label v, :math:`R_g` over all rows of g and R over all rows:

    ====================  ====================================================================================
    constraint            bound
    ====================  ====================================================================================
    "demographic_parity"  :math:`|R_g - R_{g'}| \le \kappa` for all groups
    "equal_opportunity"   :math:`|R_{g,+} - R_{g',+}| \le \kappa`
    "equalized_odds"      :math:`|R_{g,v} - R_{g',v}| \le \kappa` for both labels v
    "intersectional"      :math:`|R_g - R| \le \kappa`; of a hinge, :math:`R_g - R \le \kappa`
    ====================  ====================================================================================

    Groups may overlap, see `fairconstrained.groups.Membership`. More than eight are compared pairwise through auxiliary
    variables, see `LossParity`.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the gap, in [0, 1]; for a hinge at least 0, in units of the hinge. None is no bound: the gap is only
        reported.
    constraint : str, default="demographic_parity"
        Gap that is bounded: "demographic_parity", "equal_opportunity", "equalized_odds" or "intersectional", as in the
        table above.
    rate : {"indicator", "sigmoid", "hinge"}, default="indicator"
        The function r of a score s and a label y: whether s is positive, :math:`1 / (1 + e^{-s})`, or
        :math:`\max(1 - ys, 0)`. The indicator is bounded exactly, up to its granularity.
    agg : {"max", "mean"}, default="max"
        "max" bounds the largest gap. "mean" bounds the mean of :math:`R_g - R` over the groups (eq. 18) and needs
        ``constraint="intersectional"`` with ``rate="hinge"``.
    min_group_size : int or "auto", default="auto"
        Least number of rows of every cell (a group, or its rows of a label that is compared) with which a group takes
        part. "auto": so many that no row counts more than ``max(kappa, 0.02)``. The indicator needs that many rows
        whatever is given here.

    References
    ----------
    "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
    eqs. 2, 15, 17 and 18.
    """

    is_of_classes: ClassVar[bool] = True

    kappa: float | None = parameter(default=0.05, kw_only=False)
    constraint: str = parameter(default="demographic_parity", allowed=[StrOptions(set(RATE_NOTIONS))])
    rate: str = parameter(default="indicator", allowed=[StrOptions(set(RATES))])
    agg: str = parameter(default="max", allowed=[StrOptions({"max", "mean"})])

    def _bind(self, data: FairData) -> BoundMeanGaps:
        """Implement `Constraint.bind`; also raises ValueError for cells that are too small, with their sizes."""
        notion = rate_notion(self.constraint, self.rate)
        if self.agg == "mean":
            if notion.reference != "excess":
                raise ValueError("agg='mean' is for constraint='intersectional' with rate='hinge'; set agg='max'.")
            notion = notion._replace(agg="mean")
        kappa = check_bound(self.kappa) if self.rate == "hinge" else check_kappa(self.kappa)
        function = RATE_FUNCTIONS[self.rate]
        bound_class = BoundDecisionRates if function.is_step else BoundMeanGaps
        return bound_class.of(self, data, kappa, self.constraint, notion, function)

    @override
    def search_form(self) -> Constraint | None:
        form = _SEARCH_FORMS.get(self.constraint)
        return None if form is None or self.rate != "indicator" or self.agg != "max" else form(self.kappa)

    @override
    def group_table(self, data: FairData, scores: np.ndarray) -> pd.DataFrame:
        return table_of_groups(rate_gap, data, scores, constraint=self.constraint, rate=self.rate)

    @override
    def value_of_decisions(self, data: FairData, scores: np.ndarray) -> float:
        return measured(rate_gap, data, scores, constraint=self.constraint, rate="indicator")
