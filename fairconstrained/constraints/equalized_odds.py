"""Partial equalized odds (pEOD): equal true and false positive rates at one threshold within a percentile interval."""

from __future__ import annotations

from typing import ClassVar

from fairconstrained.checks.parameters import with_parameters
from fairconstrained.constraints._label_parity import LabelParity

__all__ = ["EqualizedOdds"]


@with_parameters
class EqualizedOdds(LabelParity):
    r"""Bound on the partial equalized odds gap at one threshold.

    .. math:: \left| \mathrm{clip}(\bar F_{g, c}(\hat\theta)) - \mathrm{clip}(\bar F_{g', c}(\hat\theta)) \right|
              \le \kappa (\beta - \alpha) \quad \text{for all groups } g, g' \text{ and labels } c

    with :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)` and
    :math:`\bar F_{g, c}` the ranks among the rows of group g with label c. On the interval (0, 1) this is equalized
    odds.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: eq. 56 with ``ranks="group_and_label"``, and Definition A.3, eq. 45, with
    ``ranks="group"``; these are two gaps.
    """

    _name: ClassVar[str] = "equalized_odds"
    _targets: ClassVar[tuple[float, ...] | None] = (1.0, -1.0)
