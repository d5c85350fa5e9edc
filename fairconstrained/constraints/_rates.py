"""Surrogates and exact rates that the parity constraints share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._blur import blurred
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import Cells, FairData
from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals
from fairconstrained.surrogates import SURROGATES, Surrogate
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic

__all__ = ["BoundParity", "BoundSplitParity", "make_surrogate"]

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


@dataclass(frozen=True, eq=False)
class BoundParity(BoundConstraint, FullBatch):
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
        """Implement `BoundConstraint.scale`; the shortest interval where groups have their own."""
        return float(self.lengths.min())

    @property
    def allowed_gap(self) -> float:
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

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        surrogate = (
            self.surrogate if self.fixed_width else blurred(self.surrogate, scores, self.data.weights.numpy(), blur)
        )
        refined = replace(self, surrogate=surrogate, margin=margin, **self._more(scores))
        return replace(refined, correction=refined._correction_at(scores))

    def rates(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        """Corrected smooth share of every cell above every threshold; shape (n_cells, n_thresholds)."""
        return self._smooth_rates(scores, thresholds) + self.correction

    def _smooth_rates(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        return torch.cat([self.surrogate.rates(scores, thresholds, cells) for cells in self.blocks])

    def _correction_at(self, scores: np.ndarray) -> Tensor:
        """By how much the exact rates exceed the smooth ones."""
        thresholds = self._thresholds(scores)
        smooth = self._smooth_rates(torch.from_numpy(scores), thresholds)
        return torch.from_numpy(self.exact_rates(scores, thresholds.numpy())) - smooth

    def _more(self, scores: np.ndarray) -> dict[str, Any]:
        """Return the other fields that a refinement changes."""
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


@dataclass(frozen=True, eq=False)
class BoundSplitParity(BoundParity, DifferenceOfConvex, Stochastic):
    """A parity constraint whose surrogate is a difference of convex functions, and unbiased on mini-batches."""

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, data=data)

    def split_rates(self, scores: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor]:
        """Two parts, convex in scores and thresholds, whose difference is `rates`."""
        parts = [self.surrogate.split_rates(scores, thresholds, cells) for cells in self.blocks]
        plus, minus = (torch.cat(part) for part in zip(*parts, strict=True))
        return plus + self.correction, minus
