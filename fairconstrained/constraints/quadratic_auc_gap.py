"""The quadratic surrogate of the AUC fairness paper."""

from __future__ import annotations

from collections.abc import Hashable
from numbers import Real
from typing import Any

from sklearn.utils._param_validation import Interval
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints.auc_sets import AUCSets, both_ways
from fairconstrained.constraints.base import check_bound
from fairconstrained.constraints.quadratic_terms import BoundQuadratic, pair_terms, quadratic_components
from fairconstrained.data import FairData

__all__ = ["QuadraticAUCGap"]


@with_parameters
class QuadraticAUCGap(Constraint):
    r"""Bound on a *quadratic surrogate* of the difference of two AUCs.

    .. math:: E_{G_1, G_1'}\, \ell(s' - s) + E_{G_2, G_2'}\, \ell(s - s') \le 1 + \kappa, \qquad
              \ell(t) = c_1 (t - 1)^2,

    and the same with the two AUCs exchanged (eq. 6). It grows with the variance of the scores as much as with the
    difference of the AUCs, so a small ``kappa`` makes the scores smaller and implies no useful bound on the AUC gap.

    Parameters
    ----------
    kappa : float or None, default=1.0
        Bound on the *surrogate*, at least 0 (the paper uses up to 10). None is no bound.
    constraint, protected
        Sets of rows and protected group, as in `AUCGap`.
    c1 : float, default=0.5
        The factor :math:`c_1`, positive. Constant scores have the surrogate :math:`2 c_1 - 1`, so with ``c1 = 1`` and a
        ``kappa`` below 1 they are not feasible.

    References
    ----------
    Yao, Lin, Yang, arXiv:2212.12603, eqs. 4-6.
    """

    kappa: float | None = parameter(default=1.0, kw_only=False)
    constraint: Any = parameter(default="inter_group")
    protected: Hashable | None = parameter(default=None)
    c1: float = parameter(default=0.5, allowed=[Interval(Real, 0, None, closed="neither")])

    @override
    def _bind(self, data: FairData) -> BoundQuadratic:
        kappa = check_bound(self.kappa)
        sets = AUCSets.of(data, self.constraint, self.protected)
        bounded = self.kappa is not None
        components = quadratic_components(sets.differences if bounded else ())
        sides = sets.sides if bounded else ()
        return BoundQuadratic(
            data=data,
            kappa=kappa,
            sets=sets,
            terms=pair_terms(components, sets.mass, -1.0, self.c1, sets.cell_rows, sets.shares),
            sides=both_ways(sides),
            name=sets.name,
        )
