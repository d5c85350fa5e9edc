"""Exact binomial intervals: metrics that are made of rates, or of ranks of thresholds, which are rates too.

Given how many rows there are in a cell, the number of those with an event is binomial, and the ends of Clopper and
Pearson (1934) hold for every rate. Which rows are in the cell must not depend on the event; cells may overlap.

The largest gap over all thresholds needs no band around whole distribution functions, see
`fairconstrained.metrics.contrasts`.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.stats import beta
from typing_extensions import override

from fairconstrained.certification._ranks import RankCells
from fairconstrained.certification.evidence import CellEvidence, Cells, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import CellRates, Comparison, NotOffered, RanksOfThresholds
from fairconstrained.metrics.contrasts import Contrast

__all__ = ["Proportions", "RankProportions", "binomial_ends", "counted_events"]


def binomial_ends(hits: np.ndarray, counts: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson ends, each of which fails with probability at most ``delta``.

    Parameters
    ----------
    hits, counts : ndarray
        Need not be integers.

    Returns
    -------
    lower, upper : ndarray
        0 and 1 where there are no rows.
    """
    missed = counts - hits
    some, not_all = hits > 0, missed > 0
    with warnings.catch_warnings(), np.errstate(divide="ignore", over="ignore", under="ignore"):
        # SciPy up to 1.13 gives up a series where counts are near 10^12; the quantiles are right to ten digits.
        # With a delta near 10^-100, every version gives up where an end is next to 0 or 1, in one way or another.
        warnings.filterwarnings("ignore", "Error in function boost::math::(tgamma|ibeta)", RuntimeWarning)
        lower = np.where(some, beta.ppf(delta, np.where(some, hits, 1.0), missed + 1), 0.0)
        upper = np.where(not_all, beta.isf(delta, hits + 1, np.where(not_all, missed, 1.0)), 1.0)
    return np.nan_to_num(lower, nan=0.0), np.nan_to_num(upper, nan=1.0)


@dataclass(frozen=True, eq=False)
class Proportions(Cells):
    """Rates of an event in cells."""

    hits: np.ndarray  # of shape (n_blocks, n_columns)
    counts: np.ndarray  # of shape (n_blocks, n_columns)
    #: Counts and rates by the names of the cells, as in `Comparison.table`.
    rates: pd.DataFrame
    method: ClassVar[str] = "binomial"

    @classmethod
    def evidence(cls, sample: Sample) -> CellEvidence:
        """Return the evidence of a sample about the rates that the metric compares."""
        found = counted_events(sample)
        cells = cls(found.sums(found.values), found.counts, found.table)
        return CellEvidence(sample.gap, sample.n_samples, cells, found.contrast)

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        return binomial_ends(self.hits * scale, self.counts * scale, delta)

    @override
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        lower, upper = self.ends(delta)
        return self.rates.assign(lower=lower.ravel(), upper=upper.ravel())


@dataclass(frozen=True, eq=False)
class RankProportions(RankCells):
    """Ranks with the interval of each threshold by itself."""

    method: ClassVar[str] = "binomial"

    @cached_property
    def _hits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Distinct numbers of rows above a threshold in every group, and which of them each threshold has."""
        hits = np.rint(self.ranks * self.counts)
        return [np.unique(column, return_inverse=True) for column in hits.T]

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        columns = []
        for (hits, places), count in zip(self._hits, self.counts, strict=True):
            ends = np.stack(binomial_ends(hits * scale, np.full(hits.size, count * scale), delta))
            columns.append(ends[:, places])
        lower, upper = np.stack(columns, axis=-1)
        return lower[:, None], upper[:, None]


offers("binomial", RanksOfThresholds)(RankProportions.evidence)
offers("binomial", CellRates)(Proportions.evidence)


def counted_events(sample: Sample) -> Comparison:
    """Return the comparison of a sample; it raises `NotOffered` where the values of rows are not 0 and 1."""
    found = sample.comparison()
    if not found.counts_events:
        raise NotOffered.of_smooth_rate(sample.params.get("rate"))
    return found
