"""Bands around whole distribution functions (Dvoretzky, Kiefer, Wolfowitz; the constant is Massart's).

Of n draws with distribution function F and empirical one F^, ``sup(F^ - F) > eps`` has a probability of at most
``exp(-2 n eps^2)`` as long as this is at most 1/2, and so has ``sup(F - F^) > eps``, continuous or not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.certification._ranks import RankCells
from fairconstrained.certification.evidence import Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import NotOffered, QuantileDistances, RanksOfThresholds
from fairconstrained.metrics.contrasts import counted
from fairconstrained.metrics.rates import AGGREGATES, Aggregate
from fairconstrained.metrics.transport import Distribution, group_distributions
from fairconstrained.metrics.validation import check_groups, check_scores

__all__ = ["QuantileBands", "RankBands", "band_width"]


def band_width(counts: np.ndarray | float, delta: float) -> Any:
    """Half the width of the band, ``sqrt(ln(1 / delta) / (2 n))``, of which each side fails with ``delta``.

    References
    ----------
    P. Massart, "The Tight Constant in the Dvoretzky-Kiefer-Wolfowitz Inequality", Annals of Probability 1990,
    theorem 1 and corollary 1.
    """
    return np.sqrt(-np.log(min(delta, 0.5)) / (2 * counts))


@dataclass(frozen=True, eq=False)
class RankBands(RankCells):
    """Ranks within a band of one width."""

    method: ClassVar[str] = "dkw"

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        width = band_width(self.counts * scale, delta)
        ends = np.clip([self.ranks - width, self.ranks + width], 0.0, 1.0)
        return ends[0][:, None], ends[1][:, None]


offers("dkw", RanksOfThresholds)(RankBands.evidence)


@dataclass(frozen=True, eq=False)
class QuantileBands(Evidence):
    """Squared 2-Wasserstein distances of distributions on [0, 1].

    With F within ``eps`` of F^, the quantile function at u lies between those of F^ at ``u - eps`` and ``u + eps``, and
    the distance of two quantile functions is at most that of the farther ends of their bands. Both sides of the bands
    of both groups are needed, as either may be above the other, now here and now there.
    """

    #: Atoms in increasing order and their masses, by group.
    distributions: list[Distribution] = field(repr=False)
    #: Names of the groups.
    index: pd.Index
    agg: Aggregate
    method: ClassVar[str] = "dkw"

    @property
    def counts(self) -> np.ndarray:
        """Rows of the groups."""
        return np.array([masses.sum() for _, masses in self.distributions])

    @property
    @override
    def n_events(self) -> int:
        return 4 * (1 if self.agg == "max" else self.counts.size * (self.counts.size - 1) // 2)

    @property
    @override
    def union(self) -> str:
        words = "4 sides of the bands of one pair of groups"
        if self.agg == "mean":
            return f"{words}, for each of {counted(self.n_events // 4, 'pair of groups')}"
        return f"{words}; none over pairs of groups, as the largest of bounds that hold singly bounds the largest gap"

    @override
    def upper(self, delta: float, scale: float = 1.0) -> float:
        widths = band_width(self.counts * scale, delta / self.n_events)
        pairs = combinations(zip(self.distributions, widths, strict=True), 2)
        return float(AGGREGATES[self.agg]([_farthest(*first, *second) for first, second in pairs]))

    def cells(self, delta: float) -> pd.DataFrame:
        """Implement `Evidence.cells`; the ends are those of the mean, from the bands."""
        widths = band_width(self.counts, delta / self.n_events)
        means = np.array([masses @ atoms for atoms, masses in self.distributions]) / self.counts
        columns = {"n_samples": self.counts.astype(int), "estimate": means, "band": widths}
        return pd.DataFrame(columns, index=self.index)


@offers("dkw", QuantileDistances)
def _distances(sample: Sample) -> Evidence:
    if sample.params.get("n_bins") is not None:
        raise NotOffered("'dkw' bounds the exact distance; leave out n_bins.")
    scores = np.clip(check_scores(sample.response), 0.0, 1.0)
    rows = check_groups(sample.sensitive_features, None, scores.size)
    distributions = group_distributions(scores, *rows.arrays)
    return QuantileBands(sample.gap, sample.n_samples, distributions, rows.index, sample.params.get("agg", "max"))


def _farthest(one: Distribution, width_1: float, other: Distribution, width_2: float) -> float:
    """Return the squared distance of the farther ends of two bands of quantiles, over all levels."""
    bands = [_Band(*one, width_1), _Band(*other, width_2)]
    steps = np.unique(np.concatenate([[0.0, 1.0], *(band.steps for band in bands)]).clip(0.0, 1.0))
    levels = (steps[1:] + steps[:-1]) / 2  # between two steps nothing changes
    (low_1, high_1), (low_2, high_2) = (band.at(levels) for band in bands)
    return float(np.diff(steps) @ np.maximum(high_1 - low_2, high_2 - low_1) ** 2)


class _Band:
    """Band that contains the quantile function of a distribution on [0, 1]."""

    def __init__(self, atoms: np.ndarray, masses: np.ndarray, width: float) -> None:
        self.atoms, self.width = atoms, width
        self.levels = np.cumsum(masses) / masses.sum()

    @property
    def steps(self) -> np.ndarray:
        """Levels at which the ends of the band change."""
        return np.concatenate([self.levels - self.width, self.levels + self.width, [self.width, 1 - self.width]])

    def at(self, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends at these levels."""
        last = self.atoms.size - 1
        below, above = levels - self.width, levels + self.width
        low = np.where(below > 0, self.atoms[np.searchsorted(self.levels, below).clip(max=last)], 0.0)
        high = np.where(above <= 1, self.atoms[np.searchsorted(self.levels, above).clip(max=last)], 1.0)
        return low, high
