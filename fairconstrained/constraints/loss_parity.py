"""Bounds on the gaps between the mean losses of groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np
import pandas as pd
from sklearn.utils._param_validation import StrOptions
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._row_functions import RowFunction, log_loss_of_classes
from fairconstrained.constraints.base import check_bound
from fairconstrained.constraints.compared_groups import ComparesGroups, table_of_groups
from fairconstrained.constraints.mean_gaps import BoundMeanGaps
from fairconstrained.data import FairData
from fairconstrained.metrics import loss_parity_gap
from fairconstrained.metrics.cell_means import LOSS_NOTIONS, ROW_LOSSES, Reference
from fairconstrained.metrics.rates import OVER_LABELS, AggregateLabels
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES

__all__ = ["LossParity"]

#: Excess of a gap over ``kappa`` that counts as met. Mean losses are continuous, and solvers settle them to this.
_TOLERANCE = 1e-9


@with_parameters
class LossParity(ComparesGroups):
    r"""Bound on the gaps between the mean losses of groups.

    .. math:: |L_g - L_{g'}| \le \kappa \quad \text{for all groups } g, g', \qquad
              L_g = \frac{1}{|g|} \sum_{i \in g} \ell(h(x_i), y_i)

    ("demographic_parity"); with the means over the positive rows only ("equal_opportunity"); or
    :math:`\max_{v \in \{+,-\}} |L_{g,v} - L_{g',v}| \le \kappa` ("equalized_odds"), with ``agg_labels="sum"`` the sum
    in place of the maximum. With ``reference="overall"`` the mean loss of all rows takes the place of :math:`L_{g'}`.

    With more than eight groups, pairwise gaps are bounded through auxiliary variables t,
    :math:`|L_g - t| \le \kappa / 2`, so that the number of components grows with that of the groups and not with its
    square. This is equivalent. "equalized_odds" has one t for each label; with ``agg_labels="sum"`` it has one for
    :math:`L_{g,+} + L_{g,-}` and one for :math:`L_{g,+} - L_{g,-}`.

    Parameters
    ----------
    kappa : float or None, default=0.005
        Bound on the gap, at least 0, in units of the loss. None is no bound: the gap is only reported.
    constraint : {"demographic_parity", "equal_opportunity", "equalized_odds"}, default="demographic_parity"
        Rows whose mean losses are compared, as above.
    loss : {"log_loss", "hinge", "absolute", "squared"}, default="log_loss"
        The loss :math:`\ell`; "squared" is half the square of the error.
    reference : {"pairwise", "overall"}, default="pairwise"
        Whether the mean loss of a group is compared with that of every other group, or with that of all rows.
    agg_labels : {"max", "sum"}, default="max"
        Whether "equalized_odds" bounds the larger of the gaps of the two labels, or their sum as in the paper.

    References
    ----------
    Kliachkin, Lepsova, Bareilles, Marecek, Benchmarking Stochastic Approximation Algorithms for Fairness-Constrained
    Training of Deep Neural Networks: Table 1 and eq. 4.
    """

    is_of_classes: ClassVar[bool] = True

    kappa: float | None = parameter(default=0.005, kw_only=False)
    constraint: str = parameter(default="demographic_parity", allowed=[StrOptions(set(LOSS_NOTIONS))])
    loss: str = parameter(default="log_loss", allowed=[StrOptions(set(ROW_LOSSES))])
    reference: Reference = parameter(default="pairwise", allowed=[StrOptions({"pairwise", "overall"})])
    agg_labels: AggregateLabels = parameter(default="max", allowed=[StrOptions(set(OVER_LABELS))])

    def _bind(self, data: FairData) -> BoundMeanGaps:
        """Implement `Constraint.bind`; also raises ValueError for cells that are too small, with their sizes."""
        kappa = check_bound(self.kappa)
        notion = LOSS_NOTIONS[self.constraint]._replace(reference=self.reference, agg_labels=self.agg_labels)
        function = RowFunction(ROW_LOSS_OBJECTIVES[self.loss], ROW_LOSSES[self.loss])
        if self._classes:
            numbers = tuple(map(float, range(len(self._classes))))
            notion = notion._replace(targets=notion.targets and numbers, names=tuple(map(str, self._classes)))
            function = log_loss_of_classes(len(self._classes))
        return BoundMeanGaps.of(self, data, kappa, "loss_parity", notion, function, _TOLERANCE)

    @override
    def for_classes(self, classes: Sequence[Hashable]) -> Constraint | None:
        """Return the bound on multinomial log losses; where labels are told apart, within every class."""
        if self.loss != "log_loss":
            return None
        if self.agg_labels != "max":
            raise ValueError(f"agg_labels={self.agg_labels!r} is for two classes; set it to 'max'.")
        return self._of_classes(classes)

    @override
    def group_table(self, data: FairData, scores: np.ndarray) -> pd.DataFrame:
        options = {"constraint": self.constraint, "loss": self.loss}
        options |= {"reference": self.reference, "agg_labels": self.agg_labels}
        return table_of_groups(loss_parity_gap, data, scores, self._classes, **options)
