"""Empirical Bernstein bounds: metrics that are made of means of bounded functions of the rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.certification.evidence import CellEvidence, Cells, Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import CellMeans, Comparison, NotOffered
from fairconstrained.metrics.contrasts import Contrast

__all__ = ["BoundedMeans", "bernstein_margin"]


def bernstein_margin(variances: np.ndarray, counts: np.ndarray, delta: float) -> np.ndarray:
    r"""Margin that a mean of values in [0, 1] exceeds that of the sample by with probability at most ``delta``.

    .. math:: \sqrt{\frac{2 V \ln(2/\delta)}{n}} + \frac{7 \ln(2/\delta)}{3 (n - 1)}

    Parameters
    ----------
    variances : ndarray
        V, with n - 1 in the denominator.
    counts : ndarray
        n, need not be integers; infinity up to 1.

    References
    ----------
    A. Maurer, M. Pontil, "Empirical Bernstein Bounds and Sample Variance Penalization", COLT 2009, theorem 4.
    """
    log = np.log(2 / delta)
    with np.errstate(divide="ignore", invalid="ignore"):
        margin = np.sqrt(2 * variances * log / counts) + 7 * log / (3 * (counts - 1))
    return np.where(counts > 1, margin, np.inf)


@dataclass(frozen=True, eq=False)
class BoundedMeans(Cells):
    """Means of cells, of values between two known numbers."""

    means: np.ndarray  # of shape (n_blocks, n_columns)
    variances: np.ndarray  # of shape (n_blocks, n_columns)
    counts: np.ndarray  # of shape (n_blocks, n_columns)
    low: float
    high: float
    #: Names of the cells.
    index: pd.Index
    method: ClassVar[str] = "bernstein"

    @classmethod
    def evidence(cls, sample: Sample, found: Comparison, low: float, high: float) -> CellEvidence:
        """Return the evidence of a comparison whose values lie between ``low`` and ``high``."""
        counts = found.counts
        means = found.sums(found.values) / counts
        # around the mean of all, lest squares of a large mean hide the variance
        shifted = found.values - found.values.mean()
        squares, sums = found.sums(shifted**2), found.sums(shifted)
        variances = np.maximum(squares - sums**2 / counts, 0.0) / np.maximum(counts - 1, 1)
        # a single row has none; the largest there is, for what more rows would say
        variances[counts == 1] = (high - low) ** 2 / 4
        cells = cls(means, variances, counts, low, high, found.index)
        return CellEvidence(sample.gap, sample.n_samples, cells, found.contrast)

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        length = self.high - self.low
        margin = length * bernstein_margin(self.variances / length**2, self.counts * scale, delta)
        return np.maximum(self.means - margin, self.low), np.minimum(self.means + margin, self.high)

    @override
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        lower, upper = self.ends(delta)
        columns = {"n_samples": self.counts.astype(int), "estimate": self.means, "lower": lower, "upper": upper}
        return pd.DataFrame({name: values.ravel() for name, values in columns.items()}, index=self.index)


@offers("bernstein", CellMeans)
def _means(sample: Sample) -> Evidence:
    found = sample.comparison()
    if found.counts_events:
        raise NotOffered("'bernstein' is for means of values between 0 and 1; rates of an event have exact bounds.")
    if found.limits is not None:
        return BoundedMeans.evidence(sample, found, *found.limits)
    if sample.loss_bound is None:
        raise NotOffered("'bernstein' needs loss_bound, numbers between which all losses lie.")
    low, high = sample.of_small(*sample.loss_bound)
    ends = float(found.values.min()), float(found.values.max())
    if ends[0] < low or ends[1] > high:
        (low, high), (least, most) = sample.loss_bound, sample.of_small(*ends)
        raise ValueError(
            f"loss_bound=({low:g}, {high:g}) does not hold: losses of these rows lie between {least:g} and {most:g}. "
            "It has to hold for all rows of the population; a bounded loss or clipped scores have such a bound."
        )
    return BoundedMeans.evidence(sample, found, low, high)
