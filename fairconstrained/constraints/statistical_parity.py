"""Partial statistical parity (pSP): equal score distributions within a percentile interval."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints._base import Constraint, check_kappa, check_resolution
from fairconstrained.constraints._offsets import shared_offset
from fairconstrained.constraints._rates import BoundParity, make_surrogate, single_interval
from fairconstrained.data import FairData
from fairconstrained.metrics._ranks import gaps_by_threshold, rank_table, worst_gap

__all__ = ["StatisticalParity"]

#: Levels of ``n_levels="auto"``, the paper's number; the solver adds more where they are needed.
AUTO_LEVELS = 10
#: Cuts that one refinement adds at most, the worst ones.
MAX_CUTS = 4


class StatisticalParity(Constraint):
    r"""Bound on the partial statistical parity gap.

    .. math:: \max_\theta \left| \mathrm{clip}(\bar F_g(\theta)) - \mathrm{clip}(\bar F_{g'}(\theta)) \right|
              \le \kappa (\beta - \alpha) \quad \text{for all groups } g, g'

    with :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`. Its surrogate takes auxiliary thresholds
    :math:`\theta_p` for levels :math:`p \in [\alpha, \beta - \kappa (\beta - \alpha))`:

    .. math:: p \le \frac{1}{n_g} \sum_{i \in g} \sigma(h_i - \theta_p) \le p + \kappa (\beta - \alpha).

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the metric, in [0, 1]. None is no bound: the metric is only reported.
    interval : pair of floats, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)``; 0 is the top of a group.
    normalize : bool, default=True
        False bounds the rank gap instead: :math:`|\bar F_g(\theta) - \bar F_{g'}(\theta)| \le \kappa` wherever
        one of the two ranks lies in the interval.
    surrogate : {"logistic", "ramp", "smoothstep"}, default="logistic"
    surrogate_width : float or "auto", default="auto"
        Width of :math:`\sigma` in units of the scores. "auto" lets the solver narrow it.
    n_levels : int or "auto", default="auto"
        Number of levels to begin with.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: Definition 4.2, Lemma 5.1, eq. 15.
    """

    def __init__(
        self,
        kappa: float | None = 0.05,
        *,
        interval: Any = (0.0, 1.0),
        normalize: bool = True,
        surrogate: str = "logistic",
        surrogate_width: float | str = "auto",
        n_levels: int | str = "auto",
    ) -> None:
        self.kappa = kappa
        self.interval = interval
        self.normalize = normalize
        self.surrogate = surrogate
        self.surrogate_width = surrogate_width
        self.n_levels = n_levels

    def bind(self, data: FairData) -> BoundStatisticalParity:
        """See `Constraint.bind`."""
        kappa = check_kappa(self.kappa)
        alpha, beta = single_interval(self.interval)
        n_levels = AUTO_LEVELS if self.n_levels == "auto" else self.n_levels
        if isinstance(n_levels, str) or n_levels < 1:
            raise ValueError(f"n_levels must be 'auto' or a positive integer, got {self.n_levels!r}.")
        scale = beta - alpha if self.normalize else 1.0
        check_resolution(data, self.kappa, scale, "statistical parity")
        # Lemma 5.1. For rank gaps a pair also counts when only its larger rank has reached the interval.
        lowest = alpha if self.normalize else max(0.0, alpha - kappa)
        highest = beta - kappa * scale if self.normalize else min(beta, 1 - kappa)
        steps = (np.arange(n_levels) + 0.5) / n_levels
        return BoundStatisticalParity(
            data=data,
            kappa=kappa,
            interval=(alpha, beta),
            normalize=self.normalize,
            surrogate=make_surrogate(self.surrogate, self.surrogate_width),
            fixed_width=self.surrogate_width != "auto",
            name="statistical_parity",
            levels=lowest + steps * (highest - lowest) if highest > lowest else np.empty(0),
        )


@dataclass(frozen=True, eq=False)
class BoundStatisticalParity(BoundParity):
    """See `StatisticalParity`. Components: levels x groups x (lower, upper), levels first."""

    levels: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def component_names(self) -> tuple[str, ...]:
        """Level, group and side of every component."""
        return tuple(
            f"{self.name}[p={level:.4g}, {label}, {side}]"
            for level in self.levels
            for label in self.data.labels
            for side in ("lower", "upper")
        )

    @property
    def n_aux(self) -> int:
        """One threshold per level."""
        return self.levels.size

    def metric(self, scores: np.ndarray) -> float:
        """Partial statistical parity gap."""
        data = self.data
        weights = data.weights.numpy()
        return worst_gap(scores, data.codes, weights, data.n_groups, self.intervals, self.normalize).gap

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """Thresholds at which the middle of the groups' ranks is in the middle of what the level allows."""
        thresholds, ranks = self._rank_table(scores)
        middle = (ranks.min(axis=1) + ranks.max(axis=1)) / 2
        target = self.levels + self.kappa * self.scale / 2
        # Ranks hold from a score up to the next higher one; in between, no row is on the threshold. The first row
        # of the table, above which there is nothing, and the last one, -inf, are no thresholds between rows.
        row = np.searchsorted(middle, target).clip(min=1, max=max(thresholds.size - 2, 1))
        return (thresholds[row] + thresholds[row - 1]) / 2 if thresholds.size > 2 else np.full(row.shape, thresholds[0])

    def fair_aux(self) -> np.ndarray:
        """``-width sigma^-1(p + slack/2)``, the start of section G.2.2 for any surrogate, by bisection."""
        target = torch.from_numpy(self.levels + self.slack / 2)
        low, high = torch.full_like(target, -50.0), torch.full_like(target, 50.0)
        for _ in range(60):
            middle = (low + high) / 2
            above = self.surrogate.value(middle) > target
            high, low = torch.where(above, middle, high), torch.where(above, low, middle)
        return -self.surrogate.width * low.numpy()

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Eq. 15, both sides as ``<= 0``."""
        rates = self.rates(scores, aux)
        lower, upper = self._bounds()
        return _by_level(lower - rates, rates - upper)

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Convex parts of Examples D.3 and D.4."""
        plus, minus = self.split_rates(scores, aux)
        lower, upper = self._bounds()
        return _by_level(lower + minus, plus - upper)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Concave parts of Examples D.3 and D.4, with the opposite sign."""
        plus, minus = self.split_rates(scores, aux)
        return _by_level(plus, minus)

    def _more(self, scores: np.ndarray) -> dict[str, Any]:
        """Where the metric exceeds kappa most between two levels, a level is added."""
        return {"levels": np.concatenate([self.levels, self._cuts(scores)])}

    def _thresholds(self, scores: np.ndarray) -> Tensor:
        return torch.from_numpy(self.initial_aux(scores))

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """See `BoundConstraint.offsets`; the gap does not change when all scores move alike."""
        everything_allowed = np.ones_like
        offset = shared_offset(scores, gains, everything_allowed, threshold)
        return np.full(self.data.n_groups, offset)

    def _bounds(self) -> tuple[Tensor, Tensor]:
        # A margin narrows the window around its centre, so that the thresholds stay where they are.
        centre = torch.from_numpy(self.levels + self.kappa * self.scale / 2)
        return centre - self.slack / 2, centre + self.slack / 2

    def _cuts(self, scores: np.ndarray) -> np.ndarray:
        """Levels at which the exact constraint is violated most, at most one between two levels."""
        _, ranks = self._rank_table(scores)
        excess = gaps_by_threshold(ranks, self.intervals, self.normalize) - self.kappa
        violated = np.flatnonzero(excess > 0)
        if violated.size == 0 or self.levels.size == 0:
            return np.empty(0)
        ends = self.intervals.clip(ranks[violated]) + self.interval[0] if self.normalize else ranks[violated]
        level = (ends.min(axis=1) + ends.max(axis=1) - self.kappa * self.scale) / 2
        gap = np.searchsorted(np.sort(self.levels), level)
        worst_first = np.argsort(-excess[violated], kind="stable")
        _, first = np.unique(gap[worst_first], return_index=True)
        candidates = level[worst_first[np.sort(first)[:MAX_CUTS]]]
        spacing = np.abs(candidates[:, None] - self.levels).min(axis=1)
        # A cut nearer to a level than one row can tell apart says nothing new.
        return candidates[spacing > 2 * self.granularity * self.scale]

    def _rank_table(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return rank_table(scores, self.data.codes, self.data.weights.numpy(), self.data.n_groups)


def _by_level(lower: Tensor, upper: Tensor) -> Tensor:
    """Two tables of shape (n_groups, n_levels) as components, levels first: new levels come last."""
    return torch.stack([lower, upper], dim=-1).transpose(0, 1).reshape(-1)
