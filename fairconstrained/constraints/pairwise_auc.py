"""Pairwise ranking parity under a quadratic surrogate: the in-processing baselines of the partial fairness paper."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

from sklearn.utils._param_validation import StrOptions

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints.auc_sets import AUCSets
from fairconstrained.constraints.base import check_bound
from fairconstrained.constraints.quadratic_terms import BoundQuadratic, Term, pair_terms
from fairconstrained.data import FairData

__all__ = ["PAIRWISE_TERMS", "PairwiseParity"]


#: The terms of each constraint's surrogate, ``E sigma(s' - s)``, for the groups k and h: from the positives and the
#: negatives of k, then those of h. A second term stands for one minus the probability that the first is compared with.
PAIRWISE_TERMS: dict[str, Callable[[Any, Any, Any, Any], list[Term]]] = {
    # eq. 102
    "group_auc": lambda k, k_, h, h_: [(h + h_, k + k_)],
    # eqs. 104 and 105: a positive of k above a negative of h, and a negative of k above a positive of h
    "inter_group": lambda k, k_, h, h_: [(h_, k), (h, k_)],
    # eqs. 106 and 107: a positive of k above a negative of k, and a negative of h above a positive of h
    "intra_group": lambda k, k_, h, h_: [(k_, k), (h, h_)],
}


@with_parameters
class PairwiseParity(Constraint):
    r"""Bound on a *quadratic surrogate* of a pairwise AUC gap.

    With :math:`\sigma(x) = (1 + x)^2 / 2` and the mean :math:`E_{a, b}` over all pairs of a row of cell a and one
    of cell b, for all ordered pairs of different groups :math:`k, h`:

    .. math::
        \begin{aligned}
        \text{group\_auc:} \quad & E_{k, h}\, \sigma(s - s') - \tfrac{1}{2} \le \kappa \\
        \text{inter\_group:} \quad & E_{k+, h-}\, \sigma(s - s') + E_{k-, h+}\, \sigma(s - s') - 1 \le \kappa \\
        \text{intra\_group:} \quad & E_{k+, k-}\, \sigma(s - s') + E_{h-, h+}\, \sigma(s - s') - 1 \le \kappa
        \end{aligned}

    No pairs are formed: :math:`E_{a, b}\, \sigma(s - s') = \frac{1}{2} \left( (1 + \bar s_a - \bar s_b)^2 + v_a + v_b
    \right)` with the means :math:`\bar s` and the variances :math:`v` of the scores in the cells. So the bound is on
    the variance of the scores as much as on the difference of the means, and it implies no useful bound on the AUC gap
    itself.

    Parameters
    ----------
    kappa : float or None, default=1.0
        Bound on the *surrogate* above, at least 0 and in units of squared scores (the paper uses up to 15), not on the
        exact AUC gap, which is reported as well. 0 allows constant scores only. None is no bound.
    constraint : {"group_auc", "inter_group", "intra_group"}, default="group_auc"
        AUC gap whose surrogate is bounded. "inter_group" and "intra_group" need two classes.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.3.1, eqs. 102-107 (``k`` and ``k'`` are taken to differ).
    """

    kappa: float | None = parameter(default=1.0, kw_only=False)
    constraint: str = parameter(default="group_auc", allowed=[StrOptions(set(PAIRWISE_TERMS))])

    def _bind(self, data: FairData) -> BoundQuadratic:
        """Implement `Constraint.bind`; also raises ValueError for other targets than -1 / +1 if labels are compared."""
        kappa = check_bound(self.kappa)
        terms = PAIRWISE_TERMS[self.constraint]
        sets = AUCSets.of(data, self.constraint, None)
        pairs = list(permutations(range(data.n_groups), 2)) if self.kappa is not None else []
        components = [terms(*sets.group_cells(k), *sets.group_cells(h)) for k, h in pairs]
        # every term is 1/2 where all scores are equal, and the bound is on what they exceed that by
        constant = -0.5 * len(components[0]) if components else 0.0
        return BoundQuadratic(
            data=data,
            kappa=kappa,
            sets=sets,
            terms=pair_terms(components, sets.mass, constant, rows=sets.cell_rows, shares=sets.shares),
            sides=tuple((str(data.labels[k]), str(data.labels[h])) for k, h in pairs),
            name=self.constraint,
        )
