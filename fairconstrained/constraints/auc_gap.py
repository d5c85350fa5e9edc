"""Bounds on the difference of two AUCs: group, inter-group, intra-group and background-subgroup fairness."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import StrOptions
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import SmoothedConstraint
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints._signed_gaps import BoundSignedGaps, SmoothGaps
from fairconstrained.constraints.auc_sets import AUCSets, both_ways, side_names
from fairconstrained.constraints.base import check_kappa
from fairconstrained.data import FairData
from fairconstrained.surrogates import SURROGATES
from fairconstrained.views import Stochastic

__all__ = ["AUCGap"]


@with_parameters
class AUCGap(SmoothedConstraint):
    r"""Bound on the difference of two AUCs.

    .. math:: \left| \mathrm{AUC}(G_1, G_1') - \mathrm{AUC}(G_2, G_2') \right| \le \kappa, \qquad
              \mathrm{AUC}(G, G') = P(s > s' \mid s \in G, s' \in G') + \tfrac{1}{2} P(s = s' \mid \cdot)

    Its surrogate has :math:`\sigma((s - s') / h)` in place of the indicator, and is summed over all pairs without
    forming them (`fairconstrained.pairwise.pair_table`).

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the exact difference, in [0, 1/2]. None is no bound: the metric is only reported.
    constraint : str, callable or sequence of four masks, default="inter_group"
        AUCs that are compared. With the protected group a and the other rows b, and their positives and negatives:

        ========================  ===========  ===========  ===========  ============
        name                      G1           G1'          G2           G2'
        ========================  ===========  ===========  ===========  ============
        "group_auc"               a            b            all          all
        "inter_group"             a+           b-           b+           a-
        "intra_group"             a+           a-           b+           b-
        "positive_equality"       a+           all+         all          all
        "negative_equality"       a-           all-         all          all
        "bpsn_bnsp"               all+         a-           a+           all-
        ========================  ===========  ===========  ===========  ============

        In place of a name, four boolean arrays with an entry for every row, which may overlap; or a function
        ``constraint(positive, groups)`` that returns such arrays. It is called with a boolean array and with the array
        of the rows' groups, both in the order of the rows that are given, without those of weight zero.
    protected : object or None, default=None
        The label of the group a; b are all others. None compares every pair of groups ("group_auc", "inter_group",
        "intra_group"), or takes each group as a, one after the other.
    surrogate : {"ramp", "smoothstep", "logistic"}, default="ramp"

    References
    ----------
    Yao, Lin, Yang, Stochastic Methods for AUC Optimization subject to AUC-based Fairness Constraints, AISTATS 2023:
    Definition 2 and eq. 2; Appendix A for the sets.
    """

    kappa: float | None = parameter(default=0.05, kw_only=False)
    constraint: Any = parameter(default="inter_group")
    protected: Hashable | None = parameter(default=None)
    surrogate: str = parameter(default="ramp", allowed=[StrOptions(set(SURROGATES))])

    @override
    def _bind(self, data: FairData) -> BoundAUCGap:
        sets = AUCSets.of(data, self.constraint, self.protected)
        return BoundAUCGap(
            data=data,
            kappa=check_kappa(self.kappa, most=0.5),
            **self._surrogate_options(),
            name=sets.name,
            sets=sets,
        )


@dataclass(frozen=True, eq=False)
class BoundAUCGap(BoundSignedGaps, Stochastic):
    """`AUCGap` on data. Components: the differences, then the same with the other sign.

    Given how many rows of every set a mini-batch has, they are independent draws from the sets, so that the mean over
    its pairs is unbiased; where a set has none of them, its AUC counts one half.
    """

    sets: AUCSets = field(kw_only=True)

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two sides of every component."""
        return side_names(self.name, both_ways(self.sets.sides))

    @property
    def granularity(self) -> float:
        """Weight of one pair of rows."""
        return self.sets.granularity

    @property
    @override
    def sees_cells_only(self) -> bool:
        return self.sets.are_named

    def compared_cells(self) -> CellSizes:
        """Sizes of the sets of rows."""
        return self.sets.sizes()

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, data=data, sets=self.sets.on(data))

    @override
    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.abs(self.sets.exact_with_weights(scores, weights)).max(axis=1, initial=0.0)

    def _exact_gaps(self, scores: np.ndarray) -> np.ndarray:
        return self.sets.exact(scores)

    def _smooth_gaps(self, scores: np.ndarray) -> SmoothGaps:
        return self.sets.smooth(self.surrogate.value, self.surrogate.width, scores)
