"""What the parity constraints share: parameters, surrogates, exact rates, and parity of rates at one threshold."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints._base import BoundConstraint, check_kappa
from fairconstrained.constraints._constraint import Constraint
from fairconstrained.constraints._offsets import group_offsets, shared_offset
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.data import Cells, FairData
from fairconstrained.metrics._intervals import RANK_TOLERANCE, PercentileIntervals
from fairconstrained.metrics._ranks import gaps_by_threshold
from fairconstrained.surrogates import SURROGATES, Surrogate
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic

__all__ = ["BoundParity", "BoundRateParity", "RateParity", "blurred", "make_surrogate"]

#: Width of "auto" surrogates before a solver refines them: that of the paper's experiments.
PAPER_WIDTH = 1.0


def make_surrogate(name: str, width: float | str) -> Surrogate:
    """The surrogate of that name; ``width="auto"`` starts at the paper's width of 1.

    Raises
    ------
    ValueError
        For an unknown name (the message lists the known ones) or a width that is not positive.
    """
    if name not in SURROGATES:
        raise ValueError(f"surrogate must be one of {sorted(SURROGATES)}, got {name!r}.")
    if width == "auto":
        return SURROGATES[name].with_width(PAPER_WIDTH)
    if isinstance(width, str) or not width > 0:
        raise ValueError(f"surrogate_width must be 'auto' or a positive number, got {width!r}.")
    return SURROGATES[name].with_width(float(width))


def blurred(surrogate: Surrogate, scores: np.ndarray, data: FairData, blur: float) -> Surrogate:
    """The surrogate at the width that blurs the scores by so many of their standard deviations."""
    weights = data.weights.numpy()
    deviation = float(np.sqrt(weights @ (scores - weights @ scores) ** 2))
    # Constant scores are fair whatever the width is, so any width will do.
    return surrogate.with_blur(blur * deviation) if deviation > 0 else surrogate


@dataclass(frozen=True, eq=False)
class BoundParity(BoundConstraint, FullBatch, DifferenceOfConvex, Stochastic):
    """A bound ``kappa`` on a gap between the ranks that thresholds have in cells of rows.

    Attributes
    ----------
    intervals : PercentileIntervals
        The ranks that count, for all groups or for each.
    targets : tuple of float, or None
        Only rows with the same target are compared, for every one of these; None compares whole groups.
    margin : float
        What the surrogate's tolerance falls short of ``kappa``.
    fixed_width : bool
        Whether the user chose the surrogate's width, so that refinement leaves it alone.
    correction : Tensor of shape (n_cells, n_thresholds) or (1, 1)
        Added to the surrogate's rates. Refinement sets it to what the exact rates exceed the smooth ones by, so
        that the surrogate takes its values from the metric and only its slopes from the smoothing.
    """

    counts_rows: ClassVar[bool] = True

    data: FairData
    kappa: float
    intervals: PercentileIntervals
    normalize: bool
    surrogate: Surrogate
    fixed_width: bool
    targets: tuple[float, ...] | None = None
    margin: float = 0.0
    name: str = "parity"
    correction: Tensor = field(default_factory=lambda: torch.zeros(1, 1, dtype=torch.float64))

    @cached_property
    def blocks(self) -> tuple[Cells, ...]:
        """The groups' rows of every target: cells are compared with those of the same block only."""
        if self.targets is None:
            return (self.data.groups,)
        return tuple(self.data.groups_with_label(target) for target in self.targets)

    @property
    def lengths(self) -> np.ndarray:
        """Rate that a gap of one stands for, by group or for all: the interval's length, or 1 for rank gaps."""
        return self.intervals.length if self.normalize else np.ones(1)

    @property
    def scale(self) -> float:
        """See `BoundConstraint.scale`; the shortest interval where groups have their own."""
        return float(self.lengths.min())

    @property
    def slack(self) -> float:
        """Tolerance of the surrogate, as a difference of rates: ``(kappa - margin) scale``, at least 0."""
        return max(self.kappa - self.margin, 0.0) * self.scale

    @property
    def granularity(self) -> float:
        """Largest share of a cell that one row stands for, as a gap."""
        return float(self.compared_cells().steps.max())

    def compared_cells(self) -> CellSizes:
        """Sizes of the groups' cells of every target."""
        return self._cell_sizes

    @cached_property
    def _cell_sizes(self) -> CellSizes:
        return CellSizes.of_blocks(self.blocks, self.lengths)

    def on(self, data: FairData) -> Self:
        """See `Stochastic.on`."""
        return replace(self, data=data)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """See `Exact.refined`."""
        surrogate = self.surrogate if self.fixed_width else blurred(self.surrogate, scores, self.data, blur)
        refined = replace(self, surrogate=surrogate, margin=margin, **self._more(scores))
        thresholds = refined._thresholds(scores)
        smooth = refined._smooth_rates(torch.from_numpy(scores), thresholds)
        exact = torch.from_numpy(self.exact_rates(scores, thresholds.numpy()))
        return replace(refined, correction=exact - smooth)

    def rates(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        """Corrected smooth share of every cell above every threshold; shape (n_cells, n_thresholds)."""
        return self._smooth_rates(scores, thresholds) + self.correction

    def split_rates(self, scores: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor]:
        """Two parts, convex in scores and thresholds, whose difference is `rates`."""
        parts = [self.surrogate.split_rates(scores, thresholds, cells) for cells in self.blocks]
        plus, minus = (torch.cat(part) for part in zip(*parts, strict=True))
        return plus + self.correction, minus

    def _smooth_rates(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        return torch.cat([self.surrogate.rates(scores, thresholds, cells) for cells in self.blocks])

    def _more(self, scores: np.ndarray) -> dict[str, Any]:
        """What else refinement changes."""
        return {}

    @abstractmethod
    def _thresholds(self, scores: np.ndarray) -> Tensor:
        """The thresholds at which the rates are compared, given the scores; shape (n_thresholds,)."""

    def exact_rates(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Share of every cell above every threshold; ndarray of shape (n_cells, n_thresholds)."""
        order = np.argsort(thresholds)
        n_below = np.searchsorted(thresholds[order], scores)
        rates = np.empty((sum(map(len, self.blocks)), thresholds.size))
        rows_of_all = [(rows, cells.weights.numpy()) for cells in self.blocks for rows in cells.slices]
        for cell, (rows, weights) in enumerate(rows_of_all):
            mass = np.bincount(n_below[rows], weights[rows], minlength=thresholds.size + 1)
            rates[cell, order] = np.cumsum(mass[:0:-1])[::-1]
        rates[rates > 1 - RANK_TOLERANCE] = 1.0
        return rates


class RateParity(Constraint):
    """Parity of the groups' positive rates at one threshold, among all rows or among those of one label.

    The common part of `DemographicParity`, `EqualOpportunity` and `EqualizedOdds`.
    """

    #: Name of the notion, and the targets within which groups are compared (None: all rows).
    _name: ClassVar[str]
    _targets: ClassVar[tuple[float, ...] | None]

    def __init__(
        self,
        kappa: float | None = 0.05,
        *,
        interval: Any = (0.0, 1.0),
        threshold: float = 0.0,
        normalize: bool = True,
        surrogate: str = "smoothstep",
        surrogate_width: float | str = "auto",
    ) -> None:
        self.kappa = kappa
        self.interval = interval
        self.threshold = threshold
        self.normalize = normalize
        self.surrogate = surrogate
        self.surrogate_width = surrogate_width

    def _bind(self, data: FairData) -> BoundRateParity:
        """See `Constraint.bind`."""
        return BoundRateParity(
            data=data,
            kappa=check_kappa(self.kappa),
            intervals=PercentileIntervals.parse(self.interval, data.labels),
            normalize=self.normalize,
            surrogate=make_surrogate(self.surrogate, self.surrogate_width),
            fixed_width=self.surrogate_width != "auto",
            targets=self._targets,
            name=self._name,
            threshold=float(self.threshold),
        )


@dataclass(frozen=True, eq=False)
class BoundRateParity(BoundParity):
    """See `RateParity`. Components: ordered pairs of groups, for every target.

    Attributes
    ----------
    threshold : float
        Score above which a row counts as positive.
    has_way_back : bool
        Whether `values` lead back from where no rank that counts is at one of two rates, see `with_way_back`.
    """

    threshold: float = 0.0
    has_way_back: bool = False

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
    def decision_threshold(self) -> float:
        """See `BoundConstraint.decision_threshold`."""
        return self.threshold

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        """See `BoundConstraint.values_at_cuts`."""
        return self._gaps(scores, cuts)

    def _gaps(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Largest gap at every threshold; ndarray of shape (n_thresholds,)."""
        rates = self.exact_rates(scores, thresholds).reshape(len(self.blocks), -1, thresholds.size)
        return np.max([gaps_by_threshold(block.T, self.intervals, self.normalize) for block in rates], axis=0)

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Eqs. 21, 50 and 56, every ordered pair as ``<= 0``; with a way back, more where they are violated."""
        rates = self.rates(scores, self._thresholds())[:, 0]
        first, second = self._pairs
        if not self.normalize:
            return rates[first] - rates[second] - self.slack
        alpha, beta = self._ends
        parts = rates[:, None]
        shares = (parts.clamp(alpha, beta) - alpha).sum(dim=1) * self._per_length
        excess = shares[first] - shares[second] - self.slack
        if not self.has_way_back:
            return excess
        # The distance of the rates to the ranks that count; it is zero where the violation begins, for there one of the
        # rates is at ranks that count.
        inside = ((parts >= alpha) & (parts <= beta)).any(dim=1)
        if inside.all() or not (excess > 0).any():
            return excess
        down = torch.where(parts > beta, parts - beta, np.inf).amin(dim=1)
        up = torch.where(parts < alpha, alpha - parts, np.inf).amin(dim=1)
        down, up = (torch.where(inside | d.isinf(), 0.0, d) for d in (down, up))
        return excess + torch.where(excess > 0, torch.minimum(down[first], up[second]), 0.0)

    def with_way_back(self) -> Self:
        """See `BoundConstraint.with_way_back`; the parts `plus` and `minus` stay those of the equations."""
        return replace(self, has_way_back=True)

    def stricter(self) -> Self | None:
        """Rates that differ by ``kappa (beta - alpha)`` at most, wherever they lie.

        Under eq. 21 a rate outside of the interval has no slope, so that a solver moves the rates of other groups there
        even where the way back to the interval would cost less.
        """
        if not self.normalize or self.intervals.alpha.shape[1] > 1 or self.scale == 1:
            return None
        narrower = replace(self, normalize=False, kappa=self.kappa * self.scale)
        return narrower if narrower.granularity <= narrower.resolution else None

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
            return (plus[first] + minus[second], minus[first] + plus[second] + self.slack)[part]
        at_alpha, at_beta = (
            torch.maximum(minus[:, None] + end, plus[:, None]).sum(dim=1) * self._per_length for end in self._ends
        )
        return (
            at_alpha[first] + at_beta[second],
            at_alpha[second] + at_beta[first] + self.slack,
        )[part]

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """See `BoundConstraint.offsets`; zero where two targets bind the same offsets."""
        n_groups = self.data.n_groups
        if shared:
            allowed = shared_offset(scores, gains, lambda at: self._gaps(scores, at) <= self.kappa, threshold)
            return np.full(n_groups, allowed)
        if len(self.blocks) > 1:
            return np.zeros(n_groups)
        weights = self.blocks[0].weights.numpy()
        rows = self.data.slices
        values = [self._share_of(group) for group in range(n_groups)]
        by_group = [[column[part] for part in rows] for column in (scores, weights, gains)]
        return group_offsets(by_group[0], by_group[1], by_group[2], values, self.kappa, threshold)

    def _share_of(self, group: int) -> Any:
        """The function of a group's rate whose values the constraint compares."""
        if not self.normalize:
            return lambda rates: rates
        column = group % self.intervals.alpha.shape[1]
        own = PercentileIntervals(self.intervals.alpha[:, [column]], self.intervals.beta[:, [column]])
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

    @cached_property
    def _per_length(self) -> Tensor:
        """What turns the clipped rate of every cell into units of the components; Tensor of shape (n_cells,)."""
        lengths = np.broadcast_to(self.lengths, self.data.n_groups)
        return torch.from_numpy(np.tile(self.scale / lengths, len(self.blocks)))
