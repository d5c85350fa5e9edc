"""AUCs between any sets of rows, from bands around the distribution functions of the sets.

Moving a distribution upwards, or the one that it is compared with downwards, raises the AUC. So the AUC of the upper
side of one band over the lower side of the other bounds that of the population, however the two samples depend on each
other: sets may overlap, and they may be cut to an interval of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd

from fairconstrained.certification._aucs import Set, compared_aucs
from fairconstrained.certification._dkw import band_width
from fairconstrained.certification._ranks import rank_cells
from fairconstrained.certification.evidence import CellEvidence, Cells, Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import AUCDifferences, PartialAUCs
from fairconstrained.metrics.contrasts import AUCGaps, Contrast
from fairconstrained.metrics.intervals import ALL_RANKS, PercentileIntervals
from fairconstrained.metrics.ranks import rank_table

__all__ = ["AUCBands", "auc_of_curves"]


def auc_of_curves(above: np.ndarray, below: np.ndarray) -> float:
    """AUC of two distributions by their ranks ``P(s > threshold)`` at decreasing thresholds.

    Parameters
    ----------
    above, below : ndarray of shape (n_thresholds,)
        Curves. Where the first value is not zero, the rest lies above all thresholds.
    """
    middle = (below[1:] + below[:-1]) / 2
    return float(above[0] + np.diff(above) @ (1 - middle))


@dataclass(frozen=True, eq=False)
class AUCBands(Cells):
    """AUCs, two for every difference, from bands around the ranks of sets of rows."""

    ranks: np.ndarray  # of shape (n_thresholds, n_sets)
    #: Rows of the sets.
    counts: np.ndarray  # of shape (n_sets,)
    #: The set above and the set below, of both AUCs. It is 1/2 where they are the same.
    pairs: np.ndarray  # of int, of shape (n_differences, 2, 2)
    #: Names of the sets.
    names: tuple[str, ...]
    #: Ranks that count.
    intervals: PercentileIntervals
    method: ClassVar[str] = "dkw"

    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Implement `Cells.ends`; both ends of an AUC need one side of each of two bands."""
        width = band_width(self.counts * scale, delta)
        low, high = (self._shares(np.clip(self.ranks + side, 0.0, 1.0)) for side in (-width, width))
        lower, upper = np.full(self.pairs.shape[:2], 0.5), np.full(self.pairs.shape[:2], 0.5)
        for place in np.ndindex(*self.pairs.shape[:2]):
            above, below = self.pairs[place]
            if above != below:
                upper[place] = auc_of_curves(high[:, above], low[:, below])
                lower[place] = 1 - auc_of_curves(high[:, below], low[:, above])
        return lower, upper

    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        """Implement `Cells.table`; one row for every AUC that is not 1/2 by definition."""
        lower, upper = self.ends(delta)
        shares, width = self._shares(self.ranks), band_width(self.counts, delta)
        rows = []
        for place in np.ndindex(*self.pairs.shape[:2]):
            above, below = self.pairs[place]
            sizes = {"n_above": int(self.counts[above]), "n_below": int(self.counts[below])}
            found = {"estimate": auc_of_curves(shares[:, above], shares[:, below])}
            ends = {"lower": lower[place], "upper": upper[place]}
            bands = {"band_above": width[above], "band_below": width[below]}
            if above != below:
                rows.append({"above": self.names[above], "below": self.names[below]} | sizes | found | ends | bands)
        return pd.DataFrame(rows)

    def _shares(self, ranks: np.ndarray) -> np.ndarray:
        """Return the part of every set above the thresholds, as a share of the ranks that count."""
        return self.intervals.clip(ranks) / self.intervals.length


@offers("dkw", PartialAUCs)
def _between_groups(sample: Sample) -> Evidence:
    _, ranks, counts, labels = rank_cells(sample)
    intervals = PercentileIntervals.parse(sample.params.get("interval", (0.0, 1.0)), labels)
    pairs = np.array([[pair, (0, 0)] for pair in combinations(range(len(labels)), 2)]).reshape(-1, 2, 2)
    return _evidence(sample, AUCBands(ranks, counts, pairs, tuple(map(str, labels)), intervals))


@offers("dkw", AUCDifferences)
def _between_sets(sample: Sample) -> Evidence:
    found = compared_aucs(sample)
    number: dict[Set, int] = {}
    sets = [[number.setdefault(tuple(sorted(cells)), len(number)) for cells in pair] for pair in found.pairs]
    in_cells = found.cells < found.n_cells
    present = np.flatnonzero(found.counts)
    place = np.zeros(found.n_cells, dtype=np.int64)
    place[present] = np.arange(present.size)
    codes = place[found.cells[in_cells]]
    _, of_cells = rank_table(found.scores[in_cells], codes, np.ones(codes.size), present.size)
    masses = np.array([np.isin(present, cells) * found.counts[present] for cells in number], dtype=float)
    ranks = of_cells @ (masses / masses.sum(axis=1, keepdims=True)).T
    named = {tuple(sorted(cells)): name for cells, name in found.names.items()}
    names = tuple(named[cells] for cells in number)
    pairs = np.array(sets).reshape(-1, 2, 2)
    return _evidence(sample, AUCBands(ranks, masses.sum(axis=1), pairs, names, ALL_RANKS))


def _evidence(sample: Sample, cells: AUCBands) -> Evidence:
    n_ends = 2 * int((cells.pairs[:1, :, 0] != cells.pairs[:1, :, 1]).sum())
    contrast = AUCGaps(n_differences=len(cells.pairs), tails_of_one=n_ends, agg=sample.params.get("agg", "max"))
    return CellEvidence(sample.gap, sample.n_samples, cells, contrast)
