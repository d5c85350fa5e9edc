"""Partial group AUC fairness (pGAUC): no group is ranked above another within an interval of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.parameters import with_parameters
from fairconstrained.constraints._constraint import IntervalConstraint
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints._signed_gaps import BoundSignedGaps, SmoothGaps
from fairconstrained.constraints.base import check_kappa
from fairconstrained.data import FairData, Rows
from fairconstrained.kernels import Kernel
from fairconstrained.metrics.cell_aucs import centred_aucs_of_groups, pair_aucs
from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals
from fairconstrained.pairwise import interval_weights, pair_mean, pair_table
from fairconstrained.views import DifferenceOfConvex, Stochastic

__all__ = ["GroupAUC"]


@with_parameters
class GroupAUC(IntervalConstraint):
    r"""Bound on the partial group AUC gap.

    .. math:: \left| P\left(s > s' \mid g, g', \bar F_g(s) \in I, \bar F_{g'}(s') \in I\right) - \tfrac{1}{2} \right|
              \le \kappa \quad \text{for all groups } g, g'

    with the rank :math:`\bar F_g(\theta) = P(s > \theta \mid g)`. Pairs with equal scores count one half; in eq. 37 of
    the paper they count one. The surrogate is

    .. math:: \left| A_{g g'} - \tfrac{1}{2} \right| \le \kappa, \qquad A_{g g'} = \frac{1}{L_g L_{g'}}
              \sum_{i \in g} \sum_{j \in g'} u_i v_j \, \sigma(s_i - s_j),

    where :math:`u_i` and :math:`v_j` are the parts of the rows' weights whose ranks lie in the interval and
    :math:`L` is its length.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the metric, in [0, 1/2]. None is no bound: the metric is only reported.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: Appendix A, eqs. 37 and 49.
    """

    def _bind(self, data: FairData) -> BoundGroupAUC:
        """Implement `Constraint.bind`; the `Stochastic` view is there where the interval is the whole."""
        intervals = PercentileIntervals.parse(self.interval, data.labels)
        whole = intervals.length.min() > 1 - RANK_TOLERANCE
        return (BoundWholeGroupAUC if whole else BoundGroupAUC)(
            data=data,
            kappa=check_kappa(self.kappa, most=0.5),
            intervals=intervals,
            **self._surrogate_options(),
        )


class _Rows(NamedTuple):
    """Some rows of a group: their scores and the parts of their weights that count; shapes (n_rows,)."""

    scores: Tensor
    weights: Tensor


def _without_weightless(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows that have some weight, and their weights: the others only cost time."""
    rows = torch.nonzero(weights).squeeze(-1)
    return rows, weights[rows]


class _Sets(NamedTuple):
    """A group, and signed sets of its rows whose sum is its intervals.

    The indicator of ``[alpha, beta)`` is that of ``[0, beta)`` minus that of ``[0, alpha)`` (tops), and that of
    ``[alpha, 1)`` minus that of ``[beta, 1)`` (bottoms).
    """

    everyone: _Rows
    tops: list[tuple[int, _Rows]]
    bottoms: list[tuple[int, _Rows]]


@dataclass(frozen=True, eq=False)
class BoundGroupAUC(BoundSignedGaps, DifferenceOfConvex):
    """`GroupAUC` on data. Components: pairs of groups, then the same pairs in the other order.

    There is no `Stochastic` view on a part of the ranks: those in a mini-batch are not those in the data, so the
    mean over mini-batches is biased.
    """

    _of_data: ClassVar[tuple[str, ...]] = ("component_names", "_pairs", "_products_of_lengths", "_pieces", "_lengths")

    name: str = "group_auc"
    #: The ranks that count, for all groups or for each.
    intervals: PercentileIntervals = field(kw_only=True)

    @cached_property
    def component_names(self) -> tuple[str, ...]:
        """The two groups of every component."""
        labels, (first, second) = self.data.groups.labels, self._pairs
        pairs = [*zip(first, second, strict=True), *zip(second, first, strict=True)]
        return tuple(f"{self.name}[{labels[g]} over {labels[h]}]" for g, h in pairs)

    @property
    def granularity(self) -> float:
        """Largest share of a group's rows in the interval that one row stands for."""
        return float(self._cell_sizes.steps.max())

    @cached_property
    def _cell_sizes(self) -> CellSizes:
        return CellSizes.of_blocks((self.data.groups,), self.intervals.length)

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        r"""Convex part, tighter than that of Example D.7; see `minus`.

        Let :math:`T(a; b)` be the sum of the increasing :math:`\sigma` over the pairs of a row in the top ``a`` of
        g and a row in the bottom ``b`` of g'. It is a maximum over subsets of rows of fixed mass. So with the split
        :math:`\sigma = \sigma^+ - \sigma^-`, :math:`T(a; b)` plus the sum of :math:`\sigma^-` over *all* pairs is a
        maximum of convex functions, and therefore convex. For intervals :math:`[\alpha, \beta)` of g and
        :math:`[\alpha', \beta')` of g',

        .. math:: L_g L_{g'} A_{g g'} = T(\beta; 1 - \alpha') + T(\alpha; 1 - \beta') - T(\beta; 1 - \beta')
                  - T(\alpha; 1 - \alpha'),

        and for unions of intervals the sum of this over pairs of pieces. Terms with an empty set drop out.
        """
        correction = self.correction.expand(self._pairs[0].size)
        return self._part(scores, 1) + torch.cat([correction, -correction])

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The convex part that is subtracted, see `plus`: the terms of negative sign, and the bound."""
        return self._part(scores, -1) + (0.5 + torch.as_tensor(self._limits))

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the unordered pairs of different groups."""
        first, second = np.triu_indices(self.data.n_groups, 1)
        return first, second

    @cached_property
    def _products_of_lengths(self) -> np.ndarray:
        """Products of the lengths of the two groups of every pair; ndarray of shape (n_pairs,)."""
        first, second = self._pairs
        return self._lengths[first] * self._lengths[second]

    @cached_property
    def _pieces(self) -> list[list[tuple[float, float]]]:
        """The intervals of every group."""
        ends = np.stack([self.intervals.alpha, self.intervals.beta], axis=-1)
        table = np.broadcast_to(ends, (len(ends), self.data.n_groups, 2))
        return [[(alpha, beta) for alpha, beta in table[:, g].tolist() if alpha < beta] for g in range(table.shape[1])]

    @cached_property
    def _lengths(self) -> np.ndarray:
        return np.broadcast_to(self.intervals.length, self.data.n_groups)

    def _exact_gaps(self, scores: np.ndarray) -> np.ndarray:
        """Partial group AUCs of the pairs, minus 1/2."""
        data = self.data
        aucs = pair_aucs(scores, data.codes, data.weights.numpy(), data.n_groups, self.intervals)
        return aucs[self._pairs] - 0.5

    def _smooth_gaps(self, scores: np.ndarray) -> SmoothGaps:
        """Eq. 49 of every pair; since ``sigma(x) + sigma(-x) = 1``, one AUC serves both of its orders."""
        rows, weights = self._counted(scores)
        codes, n_groups = self.data.codes[rows], self.data.n_groups
        aucs, pull_table = pair_table(
            self.surrogate.value, scores[rows], weights, codes, n_groups, self.surrogate.width
        )
        lengths = self._products_of_lengths

        def pull(multipliers: np.ndarray) -> np.ndarray:
            factors, slopes = np.zeros((n_groups, n_groups)), np.zeros_like(scores)
            factors[self._pairs] = multipliers / lengths
            slopes[rows] = pull_table(factors)
            return slopes

        return aucs[self._pairs] / lengths - 0.5, pull

    def _part(self, scores: Tensor, sign: int) -> Tensor:
        """The terms ``T`` of one sign, made convex, for all pairs and then the same pairs in the other order."""
        first, second = self._pairs
        pairs = [*zip(first, second, strict=True), *zip(second, first, strict=True)]
        sets = [self._sets(scores, group) for group in range(self.data.n_groups)]
        parts = [scores[:0]]
        for g, h in pairs:
            terms = [(s * t, top, bottom) for s, top in sets[g].tops for t, bottom in sets[h].bottoms]
            chosen = [(top, bottom) for product, top, bottom in terms if product == sign]
            # both signs get as many sums of sigma^- as the one with more terms needs, so that they cancel
            n_convex = max(len(chosen), len(terms) - len(chosen))
            part = n_convex * self._sum(self.surrogate.minus, sets[g].everyone, sets[h].everyone)
            for top, bottom in chosen:
                part = part + self._sum(self.surrogate.value, top, bottom)
            parts.append((part / (self._lengths[g] * self._lengths[h])).reshape(1))
        return torch.cat(parts)

    def _sets(self, scores: Tensor, group: int) -> _Sets:
        ends = [(end, sign) for piece in self._pieces[group] for end, sign in zip(piece, (-1, 1), strict=True)]
        return _Sets(
            everyone=self._rows(scores, group, 0.0, 1.0),
            tops=[(sign, self._rows(scores, group, 0.0, end)) for end, sign in ends if end > 0],
            bottoms=[(-sign, self._rows(scores, group, end, 1.0)) for end, sign in ends if end < 1],
        )

    def _counted(self, scores: np.ndarray) -> tuple[Rows, np.ndarray]:
        """The rows at ranks in their group's interval, and the parts of their weights that count."""
        ends, given = (self.intervals.alpha, self.intervals.beta), torch.from_numpy(scores)
        rows, weights = _without_weightless(interval_weights(given, self.data.groups.weights, *ends, self.data.codes))
        return rows.numpy(), weights.numpy()

    def _rows(self, scores: Tensor, group: int, alpha: float, beta: float) -> _Rows:
        """The rows of a group at ranks in ``[alpha, beta)``."""
        members = self.data.slices[group]
        own, weights = scores[members], self.data.groups.weights[members]
        if (alpha, beta) == (0.0, 1.0):
            return _Rows(own, weights)
        rows, weights = _without_weightless(interval_weights(own, weights, alpha, beta))
        return _Rows(own[rows], weights)

    def _sum(self, kernel: Kernel, first: _Rows, second: _Rows) -> Tensor:
        """Weighted sum of ``kernel`` over all pairs of rows."""
        return pair_mean(kernel, first.scores, second.scores, first.weights, second.weights, self.surrogate.width)


@dataclass(frozen=True, eq=False)
class BoundWholeGroupAUC(BoundGroupAUC, Stochastic):
    """`GroupAUC` on the whole interval, where mini-batches are unbiased.

    Every row counts whatever its rank, and the rows of a mini-batch are drawn independently in the two groups of
    a pair: the mean over its pairs has the mean over all pairs as its expectation, and `values` is linear in it.
    """

    @override
    def _exact_gaps(self, scores: np.ndarray) -> np.ndarray:
        data = self.data
        return centred_aucs_of_groups(scores, data.codes, data.weights.numpy(), data.n_groups)[self._pairs]

    def _counted(self, scores: np.ndarray) -> tuple[Rows, np.ndarray]:
        """All rows: ranks are not needed."""
        return slice(None), self.data.groups.weights.numpy()
