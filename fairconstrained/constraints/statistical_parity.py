"""Partial statistical parity (pSP): equal score distributions within a percentile interval."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor
from typing_extensions import override

from fairconstrained.cells import cell_sums
from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import IntervalConstraint
from fairconstrained.constraints._last_of_scores import LastOfScores
from fairconstrained.constraints._rates import BoundSplitParity
from fairconstrained.constraints.base import check_kappa
from fairconstrained.data import FairData
from fairconstrained.metrics.intervals import ALL_RANKS, RANK_TOLERANCE, PercentileIntervals
from fairconstrained.metrics.ranks import gaps_by_threshold, rank_table, ranks_of_models
from fairconstrained.views import Pull

__all__ = ["StatisticalParity"]

#: Levels of ``n_levels="auto"``, the paper's number; the solver adds more where they are needed.
AUTO_LEVELS = 10
#: Random scores of which the mean gap by chance is taken.
_DRAWS = 20
#: Cuts that one refinement adds at most, the worst ones.
MAX_CUTS = 4
#: The last rank table on every data set: the metric, the cuts and the thresholds of an iterate all ask for it.
_LAST_TABLES: WeakKeyDictionary[FairData, LastOfScores] = WeakKeyDictionary()


@with_parameters
class StatisticalParity(IntervalConstraint):
    r"""Bound on the partial statistical parity gap.

    .. math:: \max_\theta \left| \mathrm{clip}(\bar F_g(\theta)) - \mathrm{clip}(\bar F_{g'}(\theta)) \right|
              \le \kappa (\beta - \alpha) \quad \text{for all groups } g, g'

    with :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`. Its surrogate takes auxiliary thresholds
    :math:`\theta_p` for levels :math:`p \in [\alpha, \beta - \kappa (\beta - \alpha))`:

    .. math:: p \le \frac{1}{n_g} \sum_{i \in g} \sigma(h_i - \theta_p) \le p + \kappa (\beta - \alpha).

    Where the interval has several pieces, or differs between groups, a level is a share of the interval and both
    bounds are the ranks of group g that belong to that share.

    Parameters
    ----------
    normalize : bool, default=True
        True bounds the gap above. False bounds the rank gap instead,
        :math:`|\bar F_g(\theta) - \bar F_{g'}(\theta)| \le \kappa` wherever one of the two ranks lies in the
        interval.
    n_levels : int or "auto", default="auto"
        Number of levels p to begin with, at least 1; "auto" is 10, as in the paper. Solvers that refine the surrogate
        add levels where the metric exceeds ``kappa``.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: Definition 4.2, Lemma 5.1, eq. 15; remark 5.3.
    """

    normalize: bool = parameter(default=True)
    n_levels: int | str = parameter(
        default="auto", allowed=[Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})]
    )

    @override
    def _bind(self, data: FairData) -> BoundStatisticalParity:
        n_levels = AUTO_LEVELS if self.n_levels == "auto" else int(self.n_levels)
        constraint = BoundStatisticalParity(
            data=data,
            kappa=check_kappa(self.kappa),
            intervals=PercentileIntervals.parse(self.interval, data.labels),
            normalize=self.normalize,
            **self._surrogate_options(),
            name="statistical_parity",
            levels=(np.arange(n_levels) + 0.5) / n_levels,
        )
        return constraint if constraint.kappa < 1 else replace(constraint, levels=np.empty(0))


@dataclass(frozen=True, eq=False)
class BoundStatisticalParity(BoundSplitParity):
    """`StatisticalParity` on data. Components: levels x groups x (lower, upper), levels first."""

    #: Positions among all levels of Lemma 5.1, whose range depends on ``kappa``: 0 is the lowest one and 1 the highest.
    #: So the levels of one ``kappa`` make sense for another one. Cuts may lie a little outside, where the window around
    #: a violated threshold only partly meets the interval.
    levels: np.ndarray = field(default_factory=lambda: np.empty(0))  # of shape (n_levels,)

    ignores_shifts: ClassVar[bool] = True

    @cached_property
    def component_names(self) -> tuple[str, ...]:
        """Level, group and side of every component."""
        return tuple(
            f"{self.name}[p={rank:.4g}, {label}, {side}]"
            for rank in self.ranks
            for label in self.data.labels
            for side in ("lower", "upper")
        )

    @property
    @override
    def directions(self) -> np.ndarray:
        return np.arange(self.levels.size * self.data.n_groups).repeat(2)  # both sides of a level

    @property
    def ranks(self) -> np.ndarray:
        """Lower end of every level's window, on average over the groups; ndarray of shape (n_levels,)."""
        return self._centres.mean(axis=0) - self.kappa * self.scale / 2

    @property
    def penalty_factor(self) -> float:
        """Two, as a component is the distance of one group from the middle of two (eq. 114)."""
        return 2 / self.scale

    @property
    def n_aux(self) -> int:
        """Number of thresholds, one for every level."""
        return self.levels.size

    @property
    def components(self) -> np.ndarray:
        """Positions of the levels."""
        return self.levels

    def with_components(self, components: np.ndarray) -> Self:
        """Return the constraint at other levels."""
        return replace(self, levels=components if self.kappa < 1 else np.empty(0))

    def metric(self, scores: np.ndarray) -> float:
        """Partial statistical parity gap."""
        return self._largest_gap(self._rank_table(scores)[1])

    def _largest_gap(self, ranks: np.ndarray) -> float:
        """The gap of a table of ranks, of shape (n_thresholds, n_groups)."""
        return float(gaps_by_threshold(ranks, self.intervals, self.normalize).max())

    @override
    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        order = np.argsort(-scores)  # once for all draws: sorting rows that are in order takes hardly any time
        rows = scores[order], self.data.codes[order]
        tables = (rank_table(*rows, own[order], self.data.n_groups) for own in weights)
        return np.array([self._largest_gap(ranks) for _, ranks in tables])

    @override
    def metrics(self, scores: np.ndarray) -> np.ndarray:
        ranks, counts = ranks_of_models(scores, self.data.codes, self.data.weights.numpy(), self.data.n_groups)
        gaps = gaps_by_threshold(ranks.reshape(-1, self.data.n_groups), self.intervals, self.normalize)
        return gaps.reshape(counts.shape).max(axis=1, where=counts, initial=0.0)

    @property
    @override
    def value_by_chance(self) -> float:
        data, rng = self.data, np.random.default_rng(0)  # the same in every fit
        weights = data.weights.numpy()
        mass = np.round(cell_sums(data.codes, data.n_groups, weights) / weights.sum(), 12)  # sums differ by rounding
        counts = np.bincount(data.codes, minlength=data.n_groups)
        # neither names of groups matter nor the order of the rows, except for groups that nothing tells apart
        rows = np.lexsort((weights, data.codes, counts[data.codes], mass[data.codes]))
        values, scores = [], np.empty(data.n_samples)
        for _ in range(_DRAWS):
            scores[rows] = rng.random(scores.size)
            values.append(self.metric(scores))
        return float(np.mean(values))

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        """Implement `BoundConstraint.values_at_cuts`; only the order of the scores counts."""
        return np.full(cuts.size, self.metric(scores))

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        """Thresholds at which the groups' ranks lie around the centre of what the level allows.

        The largest and the smallest distance of a rank from its group's centre are made opposite, by bisection
        over the rows of the rank table.
        """
        thresholds, ranks = self._rank_table(scores)
        centres = self._centres.T  # one row per level
        first, last = np.zeros(self.levels.size, dtype=int), np.full(self.levels.size, thresholds.size - 1)
        while (first < last).any():
            middle = (first + last) // 2
            excess = ranks[middle] - centres
            reached = excess.min(axis=1) + excess.max(axis=1) >= RANK_TOLERANCE
            first, last = np.where(reached, first, middle + 1), np.where(reached, middle, last)
            first = np.minimum(first, last)
        # Ranks hold from a score up to the next higher one; in between, no row is on the threshold. The first row
        # of the table, above which there is nothing, and the last one, -inf, are no thresholds between rows.
        row = first.clip(min=1, max=max(thresholds.size - 2, 1))
        return (thresholds[row] + thresholds[row - 1]) / 2 if thresholds.size > 2 else np.full(row.shape, thresholds[0])

    def fair_aux(self) -> np.ndarray:
        """``-width sigma^-1(p + allowed_gap/2)``, the start of section G.2.2 for any surrogate, by bisection."""
        target = torch.from_numpy(self._centres.mean(axis=0))
        low, high = torch.full_like(target, -50.0), torch.full_like(target, 50.0)
        for _ in range(60):
            middle = (low + high) / 2
            above = self.surrogate.value(middle) > target
            high, low = torch.where(above, middle, high), torch.where(above, low, middle)
        return -self.surrogate.width * low.numpy()

    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        """Eq. 15, both sides as ``<= 0``."""
        rates, pull_rates = self.rates_at(scores, aux)
        lower, upper = (bound.numpy() for bound in self._bounds)

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            of_lower, of_upper = np.moveaxis(multipliers.reshape(*rates.T.shape, 2), -1, 0)
            return pull_rates((of_upper - of_lower).T)

        # levels first, so that new ones come last
        return np.stack([(lower - rates).T, (rates - upper).T], axis=-1).ravel(), pull

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Convex parts of Examples D.3 and D.4."""
        plus, minus = self.split_rates(scores, aux)
        lower, upper = self._bounds
        return _by_level(lower + minus, plus - upper)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Concave parts of Examples D.3 and D.4, with the opposite sign."""
        plus, minus = self.split_rates(scores, aux)
        return _by_level(plus, minus)

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        # a level is added where the metric exceeds kappa most between two levels
        finer = replace(self, levels=np.concatenate([self.levels, self._cuts(scores)]))
        return super(BoundStatisticalParity, finer).refined(scores, blur=blur, margin=margin)

    def _thresholds(self, scores: np.ndarray) -> Tensor:
        return torch.from_numpy(self.initial_aux(scores))

    @cached_property
    def _window(self) -> tuple[np.ndarray, float, PercentileIntervals]:
        """Centre of every level's window and how wide ``kappa`` makes it, as shares of the last item's interval.

        Lemma 5.1. For rank gaps a pair also counts when only its larger rank has reached the interval, so the
        windows are those of ranks, and begin where a window reaches the interval.
        """
        if self.normalize or not self.levels.size:
            return self.levels * (1 - self.kappa) + self.kappa / 2, self.kappa, self.intervals
        reach = _reach(self.intervals, self.kappa)
        beyond = (self.levels - self.levels.clip(0, 1)) * reach.length
        starts = reach.rank_at(self.levels, "left")[0].clip(min=reach.alpha.min()) + beyond
        return starts + self.kappa / 2, self.kappa, ALL_RANKS

    @cached_property
    def _centres(self) -> np.ndarray:
        """Rank at the centre of every level's window; ndarray of shape (n_groups or 1, n_levels)."""
        centre, _, intervals = self._window
        return (intervals.rank_at(centre, "left") + intervals.rank_at(centre, "right")) / 2

    @cached_property
    def _bounds(self) -> tuple[Tensor, Tensor]:
        """Least and largest rank in the windows; two Tensors of shape (n_groups or 1, n_levels).

        A margin narrows a window around its centre, so that the thresholds stay where they are.
        """
        centre, width, intervals = self._window
        half = max(width - self.margin, 0.0) / 2
        return (
            torch.from_numpy(intervals.rank_at(centre - half, "left")),
            torch.from_numpy(intervals.rank_at(centre + half, "right")),
        )

    def _cuts(self, scores: np.ndarray) -> np.ndarray:
        """Return the levels at which the exact constraint is violated most, at most one between two levels."""
        _, ranks = self._rank_table(scores)
        excess = gaps_by_threshold(ranks, self.intervals, self.normalize) - self.kappa
        violated = np.flatnonzero(excess > 0)
        if violated.size == 0 or self.levels.size == 0:
            return np.empty(0)
        values = self.intervals.clip(ranks[violated]) / self.intervals.length if self.normalize else ranks[violated]
        start = (values.min(axis=1) + values.max(axis=1) - self.kappa) / 2
        level, unit = self._levels_from(start)
        gap = np.searchsorted(np.sort(self.levels), level)
        worst_first = np.argsort(-excess[violated], kind="stable")
        _, first = np.unique(gap[worst_first], return_index=True)
        candidates = level[worst_first[np.sort(first)[:MAX_CUTS]]]
        spacing = np.abs(candidates[:, None] - self.levels).min(axis=1)
        # A cut nearer to a level than one row can tell apart says nothing new.
        return candidates[spacing * unit > 2 * self.granularity]

    def _levels_from(self, start: np.ndarray) -> tuple[np.ndarray, float]:
        """Levels whose windows start at the given shares (or ranks), and the share that a level of one stands for."""
        if self.normalize:
            return start / (1 - self.kappa), 1 - self.kappa
        reach = _reach(self.intervals, self.kappa)
        unit = float(reach.length[0])
        beyond = start - start.clip(reach.alpha.min(), reach.beta.max())
        return (reach.clip(start[:, None])[:, 0] + beyond) / unit, unit

    def _rank_table(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        data, last = self.data, _LAST_TABLES.setdefault(self.data, LastOfScores())
        return last.at(scores, lambda: rank_table(scores, data.codes, data.weights.numpy(), data.n_groups))


def _reach(intervals: PercentileIntervals, kappa: float) -> PercentileIntervals:
    """Ranks at which a window of length ``kappa`` that meets an interval may start, as one union."""
    pieces = sorted(
        (max(0.0, alpha - kappa), min(beta, 1 - kappa))
        for alpha, beta in zip(intervals.alpha.ravel(), intervals.beta.ravel(), strict=True)
        if beta > alpha
    )
    merged: list[list[float]] = []
    for alpha, beta in pieces:
        if merged and alpha <= merged[-1][1]:
            merged[-1][1] = max(beta, merged[-1][1])
        elif beta > alpha:
            merged.append([alpha, beta])
    return PercentileIntervals.parse(merged, ())


def _by_level(lower: Tensor, upper: Tensor) -> Tensor:
    """Return the components of two tables of shape (n_groups, n_levels), levels first, so that new levels come last."""
    return torch.stack([lower, upper], dim=-1).transpose(0, 1).reshape(-1)
