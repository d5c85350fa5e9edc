"""Pairwise ranking parity under a quadratic surrogate: the in-processing baselines of the partial fairness paper."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints._base import BoundConstraint, Constraint
from fairconstrained.data import Cells, FairData
from fairconstrained.metrics._intervals import PercentileIntervals
from fairconstrained.metrics._ranks import pair_aucs
from fairconstrained.views import CellQuadratics, ConvexQuadratic, DifferenceOfConvex, FullBatch

__all__ = ["PAIRWISE_NOTIONS", "PairwiseParity"]

#: What the surrogate may exceed ``kappa`` by, relative to ``max(kappa, 1)``: the tolerance of section G.3.2.
TOLERANCE = 1e-6


class PairwiseNotion(NamedTuple):
    """A notion of ranking parity: equal chances of outranking.

    The cells are the groups or, if ``by_label``, the positives of all groups followed by their negatives.
    """

    by_label: bool
    #: From the codes of two groups and their number to the cells (a, b) of the terms ``E sigma(s_a - s_b)``.
    terms: Callable[[int, int, int], tuple[tuple[int, int], ...]]
    #: From ``P(s_a > s_b) + P(s_a = s_b) / 2`` of all cells to the gaps between them.
    gaps: Callable[[np.ndarray], np.ndarray]


def _inter_group_gaps(aucs: np.ndarray) -> np.ndarray:
    n_groups = len(aucs) // 2
    across = aucs[:n_groups, n_groups:]
    return np.abs(across - across.T)


def _intra_group_gaps(aucs: np.ndarray) -> np.ndarray:
    within = np.diagonal(aucs, offset=len(aucs) // 2)
    return np.abs(within[:, None] - within)


#: What ``notion`` may be. A second term stands for one minus the probability that the first is compared with.
PAIRWISE_NOTIONS: dict[str, PairwiseNotion] = {
    # eq. 102
    "group_auc": PairwiseNotion(False, lambda k, h, n: ((k, h),), lambda aucs: np.abs(aucs - 0.5)),
    # eqs. 104 and 105: a positive of k above a negative of h, and a negative of k above a positive of h
    "inter_group": PairwiseNotion(True, lambda k, h, n: ((k, n + h), (n + k, h)), _inter_group_gaps),
    # eqs. 106 and 107: a positive of k above a negative of k, and a negative of h above a positive of h
    "intra_group": PairwiseNotion(True, lambda k, h, n: ((k, n + k), (n + h, h)), _intra_group_gaps),
}


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

    No pairs are formed:
    :math:`E_{a, b}\, \sigma(s - s') = \frac{1}{2} \left( (1 + \bar s_a - \bar s_b)^2 + v_a + v_b \right)` with the
    means :math:`\bar s` and the variances :math:`v` of the scores in the cells. So the bound is on the spread of the
    scores as much as on the difference of the means, and it implies no useful bound on the AUC gap itself.

    Parameters
    ----------
    kappa : float or None, default=1.0
        Bound on the *surrogate* above, at least 0 and in units of squared scores (the paper uses up to 15), not on
        the exact AUC gap, which is reported beside it. 0 leaves constant scores only. None is no bound.
    notion : {"group_auc", "inter_group", "intra_group"}, default="group_auc"
        What the groups are compared by. The last two need binary targets -1 / +1.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: section G.3.1, eqs. 102-107 (``k`` and ``k'`` are taken to differ).
    """

    def __init__(self, kappa: float | None = 1.0, *, notion: str = "group_auc") -> None:
        self.kappa = kappa
        self.notion = notion

    def bind(self, data: FairData) -> BoundPairwiseParity:
        """See `Constraint.bind`; also raises ValueError for targets other than -1 / +1 where labels are compared."""
        kappa = _check_bound(self.kappa)
        if self.notion not in PAIRWISE_NOTIONS:
            raise ValueError(f"notion must be one of {sorted(PAIRWISE_NOTIONS)}, got {self.notion!r}.")
        cells = _cells(data, PAIRWISE_NOTIONS[self.notion].by_label, self.notion)
        return BoundPairwiseParity(data=data, kappa=kappa, notion=self.notion, name=self.notion, cells=cells)


@dataclass(frozen=True, eq=False)
class BoundPairwiseParity(BoundConstraint, FullBatch, DifferenceOfConvex, ConvexQuadratic):
    """See `PairwiseParity`. Components: ordered pairs of groups; none without a bound.

    There is no `Stochastic` view: products of two means of the same mini-batch are biased.

    Attributes
    ----------
    notion : str
    cells : Cells
    margin : float
        What the surrogate's tolerance falls short of ``kappa``.
    """

    bounds_metric: ClassVar[bool] = False

    data: FairData
    kappa: float
    notion: str
    cells: Cells
    margin: float = 0.0
    name: str = "pairwise_parity"

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two groups of every component."""
        labels = self.data.labels
        return tuple(f"{self.name}[{labels[k]} - {labels[h]}]" for k, h in self._pairs())

    @property
    def granularity(self) -> float:
        """Numerical tolerance: a surrogate that varies continuously has no grain."""
        return TOLERANCE * max(self.kappa, 1.0)

    def metric(self, scores: np.ndarray) -> float:
        """The exact AUC gap, ties one half."""
        everything = PercentileIntervals.parse((0.0, 1.0), ())
        weights = self.cells.weights.numpy()
        aucs = pair_aucs(scores, self.cells.codes.numpy(), weights, len(self.cells), everything)
        return float(PAIRWISE_NOTIONS[self.notion].gaps(aucs).max())

    def exact(self, scores: np.ndarray) -> float:
        """The *surrogate* minus kappa, which is what is promised here; -inf without a bound."""
        values = replace(self, margin=0.0).values(torch.from_numpy(scores), torch.empty(0)).numpy()
        return float(values.max(initial=-np.inf))

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """See `Exact.refined`; the bound is on this very surrogate, so only the margin changes."""
        return replace(self, margin=margin)

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Eqs. 102, 105 and 107, every ordered pair as ``<= 0``."""
        form = self._form
        means = torch.stack([form.shares[rows] @ scores[rows] for rows in form.slices])
        variances = torch.stack(
            [form.shares[rows] @ (scores[rows] - mean) ** 2 for rows, mean in zip(form.slices, means, strict=True)]
        )
        variance, product, linear, constant = (
            torch.from_numpy(table) for table in (form.variance, form.product, form.linear, form.constant)
        )
        return variance @ variances + (product @ means) @ means + linear @ means + constant

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Convex already."""
        return self.values(scores, aux)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Nothing."""
        return scores.new_zeros(len(self._pairs()))

    def quadratics(self) -> CellQuadratics:
        """See `ConvexQuadratic.quadratics`."""
        return self._form

    @cached_property
    def _form(self) -> CellQuadratics:
        """``E sigma(s_a - s_b) = (1 + 2 (m_a - m_b) + (m_a - m_b)^2 + v_a + v_b) / 2``, summed over the terms."""
        pairs, n_cells = self._pairs(), len(self.cells)
        variance, linear = np.zeros((2, len(pairs), n_cells))
        product = np.zeros((len(pairs), n_cells, n_cells))
        for j, (k, h) in enumerate(pairs):
            for a, b in PAIRWISE_NOTIONS[self.notion].terms(k, h, self.data.n_groups):
                difference = np.zeros(n_cells)
                difference[a], difference[b] = 1.0, -1.0
                variance[j] += np.abs(difference) / 2
                linear[j] += difference
                product[j] += np.outer(difference, difference) / 2
        # every term is 1/2 where all scores are equal, and the bound is on what they exceed that by
        constant = np.full(len(pairs), -(self.kappa - self.margin))
        return CellQuadratics(self.cells.slices, self.cells.weights, variance, product, linear, constant)

    def _pairs(self) -> list[tuple[int, int]]:
        """Codes of the ordered pairs of different groups that are bounded."""
        if np.isinf(self.kappa):
            return []
        groups = range(self.data.n_groups)
        return [(k, h) for k in groups for h in groups if k != h]


def _check_bound(kappa: Any) -> float:
    """``kappa`` as a float of at least 0, infinity for None; raises ValueError otherwise."""
    if kappa is None:
        return np.inf
    if (
        isinstance(kappa, bool)
        or not isinstance(kappa, (int, float, np.integer, np.floating))
        or not 0 <= kappa < np.inf
    ):
        raise ValueError(f"kappa must be a finite number of at least 0 or None (unconstrained), got {kappa!r}.")
    return float(kappa)


def _cells(data: FairData, by_label: bool, notion: str) -> Cells:
    """The groups, or the positives of all groups and then their negatives; raises ValueError for an empty cell."""
    if not by_label:
        return data.groups
    if not torch.isin(data.y, torch.tensor([-1.0, 1.0], dtype=data.y.dtype)).all():
        raise ValueError(f"notion={notion!r} compares positives with negatives and needs binary targets -1 / +1.")
    positives, negatives = data.groups_with_label(1.0), data.groups_with_label(-1.0)
    cells = Cells(
        positives.slices + negatives.slices, positives.weights + negatives.weights, positives.labels + negatives.labels
    )
    if min(cells.counts().values()) == 0:
        raise ValueError(
            f"notion={notion!r} compares the positives and the negatives of every group, but the rows by group and "
            f"target are {cells.counts()}. Merge groups, or use notion='group_auc'."
        )
    return cells
