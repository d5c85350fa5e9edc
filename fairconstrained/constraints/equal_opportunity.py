"""Partial equal opportunity (pEOP): equal true positive rates at one threshold within a percentile interval."""

from __future__ import annotations

from typing import ClassVar

from fairconstrained.checks.parameters import with_parameters
from fairconstrained.constraints._label_parity import LabelParity

__all__ = ["EqualOpportunity"]


@with_parameters
class EqualOpportunity(LabelParity):
    r"""Bound on the partial equal opportunity gap at one threshold.

    .. math:: \left| \mathrm{clip}(\bar F_{g, +}(\hat\theta)) - \mathrm{clip}(\bar F_{g', +}(\hat\theta)) \right|
              \le \kappa (\beta - \alpha) \quad \text{for all groups } g, g'

    with :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)` and
    :math:`\bar F_{g, +}` the ranks among the positives of group g. On the interval (0, 1) this is equal opportunity.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: eq. 50 with ``ranks="group_and_label"``, and Definition A.2, eq. 42, with
    ``ranks="group"``; these are two gaps.
    """

    _name: ClassVar[str] = "equal_opportunity"
    _targets: ClassVar[tuple[float, ...] | None] = (1.0,)
