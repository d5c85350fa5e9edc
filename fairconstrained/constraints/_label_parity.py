"""Parity of the rates among the rows of a label, whose ranks are those among such rows or in the whole group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from sklearn.utils._param_validation import StrOptions
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._rate_parity import (
    BoundRateParity,
    BoundThresholdParity,
    RateParity,
    distances_to_counted,
)
from fairconstrained.metrics.intervals import PercentileIntervals
from fairconstrained.metrics.label_ranks import RANKS, Ranks
from fairconstrained.pairwise import interval_weights

__all__ = ["BoundGroupRanks", "LabelParity"]

#: The score at a rank is the mean of the scores at ranks up to so far from it.
_REACH = 0.05


@with_parameters
class LabelParity(RateParity):
    r"""`RateParity` among the rows of a label: the common part of `EqualOpportunity` and `EqualizedOdds`.

    Parameters
    ----------
    ranks : {"group_and_label", "group"}, default="group_and_label"
        Whether the ranks are those among the rows of the group and label, or those in the whole group, with which

        .. math:: \left| P(s > \hat\theta \mid g, y = c, \bar F_g(s) \in I)
                  - P(s > \hat\theta \mid g', y = c, \bar F_{g'}(s) \in I) \right| \le \kappa

        for every label c that is compared. "group" is neither a difference of convex functions nor can it be estimated
        from mini-batches without bias, so solvers that need these do not accept it. If a group has no rows of a label
        at ranks in the interval, the gap is not defined, and the bound is not kept.
    """

    is_of_classes: ClassVar[bool] = True

    ranks: Ranks = parameter(default="group_and_label", allowed=[StrOptions(set(RANKS))])

    @property
    def _bound_class(self) -> Callable[..., BoundThresholdParity]:
        return _BOUND[self.ranks]


@dataclass(frozen=True, eq=False)
class BoundGroupRanks(BoundThresholdParity):
    r"""`LabelParity` with ranks in the whole group (eqs. 42 and 45).

    The rows of a label at ranks :math:`[\alpha, \beta)` of their group g are those at ranks
    :math:`[\bar F_{g,c}(t_\alpha), \bar F_{g,c}(t_\beta))` among the rows of g and the label c, where :math:`t_p` is
    the score at rank p of the group. So the surrogate is that of eqs. 50 and 56 with these ends, which depend on the
    scores. :math:`t_p` is the mean score at ranks next to p: differentiable almost everywhere, by all rows there.

    There is no `DifferenceOfConvex` view, since the length of these intervals divides, and no `Stochastic` one, since
    the ranks in a mini-batch are not those in the data.

    A gap that is not defined, because a group has no rows of a label at ranks that count, is compared with ``kappa`` as
    if it were 1; `metric` is NaN.
    """

    @property
    def scale(self) -> float:
        """Implement `BoundConstraint.scale`; the components are differences of rates within the interval."""
        return 1.0

    @override
    def exact(self, scores: np.ndarray) -> float:
        gap = self.metric(scores)
        return (1.0 if np.isnan(gap) else gap) - self.kappa

    @override
    def complaint(self, value: float, rows: str = "training rows") -> str:
        undefined = " A gap counts as 1 where a group has no rows of a label at the ranks of the interval."
        return super().complaint(value, rows) + (undefined if value >= 1 else "")

    @property
    @override
    def why_undefined(self) -> str:
        return "a group has no rows of a label at ranks in the interval: widen interval, or set ranks='group_and_label'"

    @cached_property
    def _is_positive(self) -> np.ndarray:
        return self.data.y.numpy() > 0

    def _intervals_at(self, scores: np.ndarray) -> list[PercentileIntervals]:
        rows = self.data.codes, self.data.weights.numpy(), self.data.n_groups
        counted = RANKS["group"](self.intervals, scores, self._is_positive, *rows)
        return [counted.intervals[target > 0] for target in self.targets or ()]

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Eqs. 50 and 56, every ordered pair as ``<= 0``; with restoring slopes, more where they are violated."""
        rates, alpha, beta = self._rates_and_ends(scores)
        first, second = self._pairs
        if not self.normalize:
            return rates[first] - rates[second] - self.allowed_gap
        parts = rates[:, None]
        shares = (parts.clamp(alpha, beta) - alpha).sum(dim=1) * (self.scale / (beta - alpha).sum(dim=1))
        excess = shares[first] - shares[second] - self.allowed_gap
        if not self.has_restoring_slopes or not (excess > 0).any():
            return excess
        down, up = distances_to_counted(rates, alpha, beta)
        return excess + torch.where(excess > 0, torch.minimum(down[first], up[second]), 0.0)

    def _rates_and_ends(self, scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rate of every cell, of shape (n_cells,), and both ends of its pieces, of shape (n_cells, n_pieces)."""
        table = self._smooth_table(scores) + self.correction
        n_pieces = len(self.intervals.alpha)
        alpha, beta = table[:, 1 : 1 + n_pieces], table[:, 1 + n_pieces :]
        # Less than one row at ranks that count is as good as one: there is no dividing by nothing.
        missing = (self._one_row - (beta - alpha).sum(dim=1)).clamp(min=0.0) / n_pieces
        return table[:, 0], alpha, beta + missing[:, None]

    def _smooth_table(self, scores: Tensor) -> Tensor:
        """Smooth share of every cell above the threshold and above its group's ends of the interval.

        Tensor of shape (n_cells, 1 + 2 n_pieces): the threshold, the upper ends, the lower ends.
        """
        ends = self._scores_at_ends(scores)
        shares = self._smooth_rates(scores, torch.cat([self._thresholds(), ends.flatten()]))
        groups = torch.arange(self.data.n_groups).repeat(len(self.blocks))
        own = 1 + groups[:, None] * ends.shape[1] + torch.arange(ends.shape[1])
        ranks = self._ranks_of_ends[groups]
        inner = (ranks > 0) & (ranks < 1)
        return torch.cat([shares[:, :1], torch.where(inner, shares.gather(1, own), ranks)], dim=1)

    def _scores_at_ends(self, scores: Tensor) -> Tensor:
        """Return the score at every end of the interval, 0 for ends 0 and 1; Tensor of shape (n_groups, 2 n_pieces)."""
        data, ranks = self.data, self._ranks_of_ends.numpy()
        columns = []
        for at in ranks.T:
            reach = np.minimum(_REACH, np.minimum(at, 1 - at))
            if not reach.any():
                columns.append(scores.new_zeros(data.n_groups))
                continue
            parts = interval_weights(scores, data.group_weights, (at - reach)[None], (at + reach)[None], data.codes)
            sums = torch.stack([parts[rows] @ scores[rows] for rows in data.slices])
            columns.append(sums / torch.from_numpy(np.where(reach > 0, 2 * reach, 1.0)))
        return torch.stack(columns, dim=1)

    @override
    def _corrected_at(self, scores: np.ndarray) -> Self:
        rates = self.exact_rates(scores, np.array([self.threshold]))
        ends = [np.concatenate([own.alpha, own.beta]).T for own in self._intervals_at(scores)]
        difference = (
            np.concatenate([rates, np.concatenate(ends)], axis=1) - self._smooth_table(torch.from_numpy(scores)).numpy()
        )
        # the ends that no row lies between are not known
        return self._changed(correction=torch.from_numpy(np.nan_to_num(difference, nan=0.0)))

    @cached_property
    def _ranks_of_ends(self) -> Tensor:
        """Ranks of the upper and of the lower ends of every group; Tensor of shape (n_groups, 2 n_pieces)."""
        ends = np.concatenate([self.intervals.alpha, self.intervals.beta]).T
        return torch.from_numpy(np.broadcast_to(ends, (self.data.n_groups, ends.shape[1])).copy())

    @cached_property
    def _one_row(self) -> Tensor:
        """Share of its cell that the heaviest row has; Tensor of shape (n_cells,)."""
        return torch.from_numpy(self._cell_sizes.shares)


_BOUND: dict[str, type[BoundThresholdParity]] = {"group_and_label": BoundRateParity, "group": BoundGroupRanks}
