r"""Means of values between two known numbers: limits from the wealth of bets that a mean is as small as supposed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from typing_extensions import override

from fairconstrained.cells import quotients
from fairconstrained.certification.evidence import CellEvidence, Cells, Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import CellMeans, Comparison, NotOffered
from fairconstrained.metrics.contrasts import Contrast

__all__ = ["BoundedMeans", "least_mean"]

#: Largest share of the wealth on one row: with a share of 1, a single value of 0 would cost all of it.
_MOST = 0.75
#: Mean and variance that count as much as one row, as long as few rows have come.
_MEAN, _VARIANCE = 0.5, 0.25
#: Orders of the rows; where rows are many, as many as have this number of values, since one says the same as another.
_ORDERS, _VALUES = 8, 200_000
#: Mean below which a limit is zero.
_LEAST = 1e-9


def least_mean(values: np.ndarray, delta: float, scale: float = 1.0) -> float:
    r"""Return a limit that the mean in the population is below with probability at most ``delta``.

    Somebody bets the share :math:`f_i` of the wealth on row i, and chooses it by the rows before. If the mean is
    :math:`\theta`, the expectation of the wealth

    .. math:: W(\theta) = \prod_{i=1}^n \Bigl(1 - f_i + f_i \frac{z_i}{\theta}\Bigr)

    is 1, so that :math:`P(W(\theta) \ge 1/\delta) \le \delta`, for every distribution of independent rows. The limit
    is the mean at which the average wealth over several orders of the rows is :math:`1/\delta`. The shares
    :math:`f_i = \min(3/4, m_i \sqrt{2 \ln(1/\delta) / (n v_i)})`, with the mean :math:`m_i` and the variance
    :math:`v_i` of the rows before, make it large: with many rows, it is about
    :math:`\sqrt{2 v \ln(1/\delta) / n}` below the mean of the sample.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Values z of independent rows, in [0, 1].
    scale : float, default=1.0
        Factor of the number of rows, to say what more rows like these would tell.

    References
    ----------
    I. Waudby-Smith, A. Ramdas, "Estimating Means of Bounded Random Variables by Betting", JRSS B 2024, section 4.
    """
    n_rows, budget = values.size, -np.log(delta)
    if not values.any():
        return 0.0
    n_orders = int(np.clip(_VALUES // n_rows, 1, _ORDERS))
    rows = np.random.default_rng(0).permuted(np.tile(values, (n_orders, 1)), axis=1)
    means = _before(rows, _MEAN)
    variances = _before((rows - means) ** 2, _VARIANCE)
    shares = np.minimum(_MOST, means * np.sqrt(2 * budget / (scale * n_rows * variances)))

    def excess(mean: float) -> float:
        wealths = scale * np.log1p(shares * (rows / mean - 1)).sum(axis=1)
        return float(np.logaddexp.reduce(wealths) - np.log(n_orders) - budget)

    mean = float(values.mean())
    if mean <= _LEAST or excess(_LEAST) <= 0:
        return 0.0
    return mean if excess(mean) >= 0 else float(brentq(excess, _LEAST, mean))


def _before(rows: np.ndarray, prior: float) -> np.ndarray:
    """Mean of the values before each one, of which the first is ``prior``."""
    sums = np.cumsum(rows, axis=1) - rows + prior
    return sums / np.arange(1, rows.shape[1] + 1)


@dataclass(frozen=True, eq=False)
class BoundedMeans(Cells):
    """Means of cells, of values between two known numbers."""

    #: Values of the rows of every cell, those of the first block first.
    values: list[np.ndarray]
    means: np.ndarray  # of shape (n_blocks, n_columns)
    low: float
    high: float
    #: Names of the cells.
    index: pd.Index
    method: ClassVar[str] = "betting"

    @classmethod
    def evidence(cls, sample: Sample, found: Comparison, low: float, high: float) -> CellEvidence:
        """Return the evidence of a comparison whose values lie between ``low`` and ``high``."""
        means = quotients(found.sums(found.values), found.counts)
        cells = cls(found.cell_values, means, low, high, found.index)
        return CellEvidence(sample.gap, sample.n_samples, cells, found.contrast)

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        length = self.high - self.low
        parts = [np.clip((values - self.low) / length, 0.0, 1.0) for values in self.values]  # but for rounding
        lower = [self.low + length * least_mean(part, delta, scale) for part in parts]
        upper = [self.high - length * least_mean(1 - part, delta, scale) for part in parts]
        return np.reshape(lower, self.means.shape), np.reshape(upper, self.means.shape)

    @override
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        lower, upper = self.ends(delta)
        sizes = np.array([values.size for values in self.values])
        columns = {"n_samples": sizes, "estimate": self.means, "lower": lower, "upper": upper}
        return pd.DataFrame({name: column.ravel() for name, column in columns.items()}, index=self.index)


@offers("betting", CellMeans)
def _means(sample: Sample) -> Evidence:
    found = sample.comparison()
    if found.counts_events:
        raise NotOffered("'betting' is for AUCs, and means of losses and sigmoids; rates of events have exact bounds.")
    if found.limits is not None:
        return BoundedMeans.evidence(sample, found, *found.limits)
    if sample.loss_bound is None:
        raise NotOffered("'betting' needs loss_bound, numbers between which all losses lie.")
    low, high = sample.of_small(*sample.loss_bound)
    ends = float(found.values.min()), float(found.values.max())
    if ends[0] < low or ends[1] > high:
        (low, high), (least, most) = sample.loss_bound, sample.of_small(*ends)
        raise ValueError(
            f"loss_bound=({low:g}, {high:g}) does not hold: losses of these rows lie between {least:g} and {most:g}. "
            "It has to hold for all rows of the population; a bounded loss or clipped scores have such a bound."
        )
    return BoundedMeans.evidence(sample, found, low, high)
