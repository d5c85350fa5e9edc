"""Surrogates and exact rates that the parity constraints share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.cells import sums_above
from fairconstrained.constraints._last_of_scores import LastOfScores
from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints._smoothed import BoundSmoothed
from fairconstrained.data import Cells, FairData
from fairconstrained.kernels import GroupMeans
from fairconstrained.metrics.intervals import RANK_TOLERANCE, PercentileIntervals
from fairconstrained.views import DifferenceOfConvex, DirectSlopes, Pull, Stochastic

__all__ = ["BoundParity", "BoundSplitParity"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundParity(BoundSmoothed):
    """Bound on a gap between the ranks that thresholds have in cells of rows."""

    counts_rows: ClassVar[bool] = True
    _of_data: ClassVar[tuple[str, ...]] = ("blocks", "_cell_sizes")
    #: Those of `_of_data` that do not depend on the rows.
    _of_groups: ClassVar[tuple[str, ...]] = ()
    _of_surrogate: ClassVar[tuple[str, ...]] = ("_rates_of_refinement",)

    #: The ranks that count, for all groups or for each.
    intervals: PercentileIntervals
    normalize: bool
    #: Targets within which groups are compared, each by itself; None compares whole groups.
    targets: tuple[float, ...] | None = None

    @cached_property
    def blocks(self) -> tuple[Cells, ...]:
        """The groups' rows of every target: cells are compared with those of the same block only."""
        if self.targets is None:
            return (self.data.groups,)
        return tuple(self.data.groups_with_label(target) for target in self.targets)

    @property
    @override
    def compares(self) -> bool:
        return len(self.blocks[0]) > 1

    @property
    def lengths(self) -> np.ndarray:
        """Rate that a gap of one stands for, by group or for all: the interval's length, or 1 for rank gaps."""
        return self.intervals.length if self.normalize else np.ones(1)

    @property
    def scale(self) -> float:
        """Implement `BoundConstraint.scale`; the shortest interval where groups have their own."""
        return float(self.lengths.min())

    @property
    def granularity(self) -> float:
        """Largest share of a cell that one row stands for, as a gap."""
        return float(self._cell_sizes.steps.max())

    @cached_property
    def _cell_sizes(self) -> CellSizes:
        return CellSizes.of_blocks(self.blocks, self.lengths)

    def rates_at(self, scores: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, Pull]:
        """Corrected smooth share of every cell above every threshold, and its slopes.

        Returns
        -------
        rates : ndarray of shape (n_cells, n_thresholds)
        pull : callable
            From the slopes of anything in the rates to its slopes in scores and thresholds.
        """
        known = self._rates_of_refinement
        found = known.taken_at(np.append(scores, thresholds), lambda: self._rates_by_block(scores, thresholds))
        ends = np.cumsum([len(cells) for cells in self.blocks])[:-1]

        def pull(of_rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            pairs = zip(found, np.split(of_rates, ends), strict=True)
            of_scores, of_thresholds = zip(*(slopes(own) for (_, slopes), own in pairs), strict=True)
            return sum(of_scores[1:], of_scores[0]), sum(of_thresholds[1:], of_thresholds[0])

        return np.concatenate([means for means, _ in found]) + self.correction.numpy(), pull

    def _smooth_rates(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        return torch.cat([self.surrogate.rates(scores, thresholds, cells) for cells in self.blocks])

    @override
    def _correction_at(self, scores: np.ndarray) -> Tensor:
        scores = scores.copy()  # slopes are computed later, when a caller may have changed its array
        thresholds, known = self._thresholds(scores).numpy(), self._rates_of_refinement
        found = known.at(np.append(scores, thresholds), lambda: self._rates_by_block(scores, thresholds))
        return torch.from_numpy(self.exact_rates(scores, thresholds) - np.concatenate([means for means, _ in found]))

    def _rates_by_block(self, scores: np.ndarray, thresholds: np.ndarray) -> list[GroupMeans]:
        return [self.surrogate.rates_at(scores, thresholds, cells) for cells in self.blocks]

    @cached_property
    def _rates_of_refinement(self) -> LastOfScores:
        """The rates that a refinement was made by; a solver then asks for their slopes at the same scores."""
        return LastOfScores()

    @abstractmethod
    def _thresholds(self, scores: np.ndarray) -> Tensor:
        """The thresholds at which the rates are compared, given the scores; shape (n_thresholds,)."""

    def exact_rates(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Share of every cell above every threshold; ndarray of shape (n_cells, n_thresholds)."""
        if thresholds.size == 1:  # a comparison takes a fraction of the time of a search
            return self.exact_rates_of(scores[None], float(thresholds[0]))
        of_blocks = [
            sums_above(scores, thresholds, cells.codes.numpy(), len(cells), cells.weights.numpy()).T
            for cells in self.blocks
        ]
        rates = np.concatenate(of_blocks)
        rates[rates > 1 - RANK_TOLERANCE] = 1.0
        return rates

    def exact_rates_of(self, scores: np.ndarray, threshold: float) -> np.ndarray:
        """Share of every cell above a threshold, of several models; ndarray of shape (n_cells, n_models).

        Parameters
        ----------
        scores : ndarray of shape (n_models, n_samples)
        """
        above = (scores > threshold).astype(float)
        rates = np.stack(
            [above[:, rows] @ cells.weights.numpy()[rows] for cells in self.blocks for rows in cells.slices]
        )
        rates[rates > 1 - RANK_TOLERANCE] = 1.0
        return rates


@dataclass(frozen=True, eq=False)
class BoundSplitParity(DirectSlopes, BoundParity, DifferenceOfConvex, Stochastic):
    """A parity constraint whose surrogate is a difference of convex functions and unbiased on mini-batches."""

    @override
    def on(self, data: FairData) -> Self:
        # computing it anew for every mini-batch would take as long as a step of a small network
        same = self.targets is None and data.codes is self.data.codes and data.weights is self.data.weights
        return self._changed(self._of_data if same else self._of_groups, data=data)

    def split_rates(self, scores: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor]:
        """Two parts, convex in scores and thresholds, whose difference are the rates of `rates_at`."""
        parts = [self.surrogate.split_rates(scores, thresholds, cells) for cells in self.blocks]
        plus, minus = (torch.cat(part) for part in zip(*parts, strict=True))
        return plus + self.correction, minus
