"""Parity of the groups' positive rates at one threshold, among all rows or among those of one label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.parameters import parameter, with_parameters
from fairconstrained.constraints._constraint import IntervalConstraint
from fairconstrained.constraints._rates import BoundParity, BoundSplitParity
from fairconstrained.constraints.base import check_kappa
from fairconstrained.constraints.offsets import group_offsets, shared_offset
from fairconstrained.data import FairData
from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals
from fairconstrained.metrics.ranks import gaps_by_threshold
from fairconstrained.views import Pull

__all__ = ["BoundRateParity", "BoundThresholdParity", "RateParity", "distances_to_counted"]


@with_parameters
class RateParity(IntervalConstraint):
    r"""Parity of the groups' positive rates at one threshold, among all rows or among those of one label.

    The common part of `DemographicParity`, `EqualOpportunity` and `EqualizedOdds`.

    Parameters
    ----------
    threshold : float, default=0.0
        The threshold :math:`\hat\theta`, in units of the scores.
    normalize : bool, default=True
        True bounds the difference of the clipped rates, divided by the length of the interval. False bounds the rank
        gap, ``|F_g - F_g'| <= kappa`` where one of the two ranks lies in the interval. The surrogate then bounds the
        difference wherever the ranks lie, which is sufficient, and the interval has no effect on training.
    """

    #: Name of the notion, and the targets within which groups are compared (None: all rows).
    _name: ClassVar[str]
    _targets: ClassVar[tuple[float, ...] | None]

    threshold: float = parameter(default=0.0)
    normalize: bool = parameter(default=True)

    @property
    def _bound_class(self) -> Callable[..., BoundThresholdParity]:
        """Class of the constraint on data."""
        return BoundRateParity

    @override
    def _bind(self, data: FairData) -> BoundThresholdParity:
        return self._bound_class(
            data=data,
            kappa=check_kappa(self.kappa),
            intervals=PercentileIntervals.parse(self.interval, data.labels),
            normalize=self.normalize,
            **self._surrogate_options(),
            targets=self._targets,
            name=self._name,
            threshold=float(self.threshold),
        )


@dataclass(frozen=True, eq=False)
class BoundThresholdParity(BoundParity):
    """Rates at one threshold, clipped to the ranks that count; components: ordered pairs of groups, by target."""

    _of_groups: ClassVar[tuple[str, ...]] = ("_pairs", "_ends", "_per_length")
    _of_data: ClassVar[tuple[str, ...]] = (*BoundParity._of_data, *_of_groups)

    #: Score above which a row counts as positive.
    threshold: float = 0.0
    #: Whether `values` lead back from where no rank that counts is at one of two rates, see `with_restoring_slopes`.
    has_restoring_slopes: bool = False

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two cells of every component."""
        labels = [label for cells in self.blocks for label in cells.labels]
        first, second = self._pairs
        return tuple(f"{self.name}[{labels[a]} - {labels[b]}]" for a, b in zip(first, second, strict=True))

    def metric(self, scores: np.ndarray) -> float:
        """The largest gap over pairs of groups (and targets)."""
        return float(self._gaps(scores, np.array([self.threshold]))[0])

    @property
    @override
    def decision_threshold(self) -> float:
        return self.threshold

    @override
    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        return self._gaps(scores, cuts)

    def _gaps(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Largest gap at every threshold; ndarray of shape (n_thresholds,)."""
        return self._largest_gaps(self.exact_rates(scores, thresholds), self._intervals_at(scores))

    def _largest_gaps(self, rates: np.ndarray, intervals: list[PercentileIntervals]) -> np.ndarray:
        """Largest gap in every column of rates, of shape (n_cells, n_columns), with the ranks that count by target."""
        gaps = [
            gaps_by_threshold(np.where(np.isnan(own.length), np.nan, block.T), own, self.normalize)
            for block, own in zip(rates.reshape(len(self.blocks), -1, rates.shape[1]), intervals, strict=True)
        ]
        return np.max(gaps, axis=0)

    def _intervals_at(self, scores: np.ndarray) -> list[PercentileIntervals]:
        """The ranks that count, exactly, for every target; NaN where a group has no row of the target there."""
        return [self.intervals] * len(self.blocks)

    def with_restoring_slopes(self) -> Self:
        """Implement `BoundConstraint.with_restoring_slopes`; `plus` and `minus` stay those of the equations."""
        return replace(self, has_restoring_slopes=True)

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """Implement `BoundConstraint.offsets`; zero where two targets bind the same offsets, or there is no gap."""
        n_groups, own = self.data.n_groups, self._intervals_at(scores)[0]
        if shared:
            allowed = shared_offset(scores, gains, lambda at: self._gaps(scores, at) <= self.kappa, threshold)
            return np.full(n_groups, allowed)
        if len(self.blocks) > 1 or np.isnan(own.length).any():
            return np.zeros(n_groups)
        weights = self.blocks[0].weights.numpy()
        rows = self.data.slices
        values = [self._share_of(group, own) for group in range(n_groups)]
        by_group = [[column[part] for part in rows] for column in (scores, weights, gains)]
        return group_offsets(by_group[0], by_group[1], by_group[2], values, self.kappa, threshold)

    def _share_of(self, group: int, intervals: PercentileIntervals) -> Any:
        """The function of a group's rate whose values the constraint compares."""
        if not self.normalize:
            return lambda rates: rates
        column = group % intervals.alpha.shape[1]
        own = PercentileIntervals(intervals.alpha[:, [column]], intervals.beta[:, [column]])
        return lambda rates: own.clip(rates[:, None])[:, 0] / own.length[0]

    def _thresholds(self, scores: np.ndarray | None = None) -> Tensor:
        return torch.full((1,), self.threshold, dtype=torch.float64)

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the cells of all ordered pairs of different groups, block by block."""
        first, second = np.nonzero(~np.eye(self.data.n_groups, dtype=bool))
        blocks = np.arange(len(self.blocks))[:, None] * self.data.n_groups
        return (blocks + first).ravel(), (blocks + second).ravel()

    @cached_property
    def _ends(self) -> tuple[Tensor, Tensor]:
        """Ends of the pieces of every cell's interval; two Tensors of shape (n_cells, n_pieces)."""
        alpha, beta = (
            torch.from_numpy(np.tile(np.broadcast_to(end.T, (self.data.n_groups, len(end))), (len(self.blocks), 1)))
            for end in (self.intervals.alpha, self.intervals.beta)
        )
        return alpha, beta


def distances_to_counted(rates: Tensor, alpha: Tensor, beta: Tensor) -> tuple[Tensor, Tensor]:
    """Distances of rates to ranks that count, down and up, zero at these and where there are none.

    They lead back from where no rank that counts is at one of two rates. One of the two has a distance of zero where
    their violation begins.

    Parameters
    ----------
    rates : Tensor of shape (n_cells,)
    alpha, beta : Tensor of shape (n_cells, n_pieces)
        Ends of the pieces of every cell's interval.

    Returns
    -------
    down, up : Tensor of shape (n_cells,)
    """
    parts = rates[:, None]
    is_inside = ((parts >= alpha) & (parts <= beta)).any(dim=1)
    down = torch.where(parts > beta, parts - beta, np.inf).amin(dim=1)
    up = torch.where(parts < alpha, alpha - parts, np.inf).amin(dim=1)
    down, up = (torch.where(is_inside | distances.isinf(), 0.0, distances) for distances in (down, up))
    return down, up


@dataclass(frozen=True, eq=False)
class BoundRateParity(BoundThresholdParity, BoundSplitParity):
    """`RateParity` on data, with ranks among the rows that are compared."""

    measures_at_once: ClassVar[bool] = True

    def stricter(self) -> Self | None:
        """Implement `BoundConstraint.stricter`: rates differ by at most ``kappa (beta - alpha)``, wherever they lie.

        In eq. 21 the gradient of a rate outside of the interval is zero, so a solver may move the rates of other groups
        out of the interval, although moving the rate back into it would cost less.
        """
        if not self.normalize or self.intervals.alpha.shape[1] > 1 or self.scale == 1:
            return None
        narrower = replace(self, normalize=False, kappa=self.kappa * self.scale)
        return narrower if narrower.granularity <= narrower.resolution else None

    @override
    def metrics(self, scores: np.ndarray) -> np.ndarray:
        return self._largest_gaps(self.exact_rates_of(scores, self.threshold), [self.intervals] * len(self.blocks))

    @override
    def metrics_with_weights(self, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
        above = (scores > self.threshold).astype(float)
        cells = [rows for block in self.blocks for rows in block.slices]
        rates = np.stack([weights[:, rows] @ above[rows] / weights[:, rows].sum(axis=1) for rows in cells])
        rates[rates > 1 - RANK_TOLERANCE] = 1.0
        return self._largest_gaps(rates, [self.intervals] * len(self.blocks))

    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        """Eqs. 21, 50 and 56, every ordered pair as ``<= 0``; with restoring slopes, more where they are violated."""
        table, pull_rates = self.rates_at(scores, np.array([self.threshold]))
        rates, (first, second) = table[:, 0], self._pairs
        shares, of_shares = self._shares(rates) if self.normalize else (rates, np.ones_like(rates))
        values = shares[first] - shares[second] - self.allowed_gap
        of_first, of_second, violated = of_shares[first], -of_shares[second], values > 0
        if self.has_restoring_slopes and violated.any() and not of_shares.all():
            every = distances_to_counted(torch.from_numpy(rates), *self._ends)
            down, up = (distances.numpy()[own] for distances, own in zip(every, (first, second), strict=True))
            least = np.where(violated, np.minimum(down, up), 0.0)
            of_first = of_first + ((least > 0) & (down < up))
            of_second = of_second - ((least > 0) & (up < down))
            values = values + least

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            of_rates = self._of_rates(multipliers, of_first, of_second)
            return pull_rates(of_rates[:, None])[0], aux[:0]

        return values, pull

    @override
    def decision_costs(self, scores: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        rates, (first, second) = self.exact_rates_of(scores[None], self.threshold)[:, 0], self._pairs
        of_shares = self._shares(rates)[1] if self.normalize else np.ones_like(rates)
        of_rates = iter(self._of_rates(multipliers, of_shares[first], -of_shares[second]))
        costs = np.zeros(self.data.n_samples)
        for cells in self.blocks:
            for rows in cells.slices:
                costs[rows] += next(of_rates) * cells.weights.numpy()[rows]
        return costs

    def _of_rates(self, multipliers: np.ndarray, of_first: np.ndarray, of_second: np.ndarray) -> np.ndarray:
        """Slopes of a combination of the components in the rates, from those of every component in its two rates."""
        first, second = self._pairs
        n_cells = sum(map(len, self.blocks))
        of_rates = np.bincount(first, multipliers * of_first, n_cells)
        return of_rates + np.bincount(second, multipliers * of_second, n_cells)

    def _shares(self, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Clipped rate of every cell in units of the components, and its slope; two of shape (n_cells,)."""
        alpha, beta = (end.numpy() for end in self._ends)
        parts, factor = rates[:, None], self._per_length.numpy()
        is_inside = (parts >= alpha) & (parts <= beta)
        return (parts.clip(alpha, beta) - alpha).sum(axis=1) * factor, is_inside.sum(axis=1) * factor

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Convex part of Example D.5 (with the factor 1/n_g that its maximum needs), see `minus`."""
        return self._part(scores, 0)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Concave part with the opposite sign.

        ``min(m, a) = m+ + a - max(m- + a, m+)`` for a rate ``m = m+ - m-``; the ``m+`` that both ends of an
        interval share is left out, which makes the convex model tighter.
        """
        return self._part(scores, 1)

    def _part(self, scores: Tensor, part: int) -> Tensor:
        plus, minus = (r[:, 0] for r in self.split_rates(scores, self._thresholds()))
        first, second = self._pairs
        if not self.normalize:
            return (plus[first] + minus[second], minus[first] + plus[second] + self.allowed_gap)[part]
        at_alpha, at_beta = (
            torch.maximum(minus[:, None] + end, plus[:, None]).sum(dim=1) * self._per_length for end in self._ends
        )
        return (
            at_alpha[first] + at_beta[second],
            at_alpha[second] + at_beta[first] + self.allowed_gap,
        )[part]

    @cached_property
    def _per_length(self) -> Tensor:
        """Factor from the clipped rate of every cell to units of the components; Tensor of shape (n_cells,)."""
        lengths = np.broadcast_to(self.lengths, self.data.n_groups)
        return torch.from_numpy(np.tile(self.scale / lengths, len(self.blocks)))
