"""Partial demographic parity (pDP): equal positive rates at one threshold within a percentile interval."""

from __future__ import annotations

from typing import ClassVar

from fairconstrained.checks.parameters import with_parameters
from fairconstrained.constraints._rate_parity import RateParity

__all__ = ["DemographicParity"]


@with_parameters
class DemographicParity(RateParity):
    r"""Bound on the partial demographic parity gap at one threshold.

    .. math:: \left| \mathrm{clip}(\bar F_{g}(\hat\theta)) - \mathrm{clip}(\bar F_{g'}(\hat\theta)) \right|
              \le \kappa (\beta - \alpha) \quad \text{for all groups } g, g'

    with :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`. On the interval (0, 1) this is demographic
    parity.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: Definition 4.3, Lemma 5.2, eq. 21; remark 5.3.
    """

    _name: ClassVar[str] = "demographic_parity"
    _targets: ClassVar[tuple[float, ...] | None] = None
