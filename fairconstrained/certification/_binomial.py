"""Exact binomial intervals: metrics that are made of rates, or of ranks of thresholds, which are rates too.

Given how many rows there are in a cell, the number of those with an event is binomial, and the ends of Clopper and
Pearson (1934) hold for every rate. Which rows are in the cell must not depend on the event; cells may overlap.

The gap of the largest threshold needs no band around whole distribution functions: the threshold at which the
*population* gap is attained is a fixed number, and the bound of the gap at this number holds with probability
``1 - delta``. The largest bound over all thresholds is no smaller. See `fairconstrained.certification._contrasts`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.stats import beta
from typing_extensions import override

import fairconstrained.metrics as metrics
from fairconstrained.certification._cells import Comparison, everyone, group_rates, positive_rates
from fairconstrained.certification._contrasts import Contrast, OneCell, PairGaps
from fairconstrained.certification._evidence import CellEvidence, Cells, Evidence, NotOffered, offers
from fairconstrained.certification._ranks import RANK_METRICS, RankCells, contrast_of_ranks, rank_cells
from fairconstrained.certification._sample import Sample
from fairconstrained.groups import Groups
from fairconstrained.metrics._rates import AggregateLabels
from fairconstrained.metrics._validation import (
    check_binary_labels,
    check_groups,
    check_labels,
    check_scores,
    check_true_labels,
)

__all__ = ["READERS", "Proportions", "RankProportions", "binomial_ends"]

_ALL: tuple[str, ...] = ("all",)


def binomial_ends(hits: np.ndarray, counts: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """Clopper-Pearson ends, each of which fails with probability at most ``delta``.

    Parameters
    ----------
    hits, counts : ndarray
        Need not be integers.
    delta : float

    Returns
    -------
    lower, upper : ndarray
        0 and 1 where there are no rows.
    """
    missed = counts - hits
    some, not_all = hits > 0, missed > 0
    with warnings.catch_warnings():
        # SciPy up to 1.13 gives up a series where counts are near 10^12; the quantiles are right to ten digits
        warnings.filterwarnings("ignore", "Error in function boost::math::tgamma", RuntimeWarning)
        lower = np.where(some, beta.ppf(delta, np.where(some, hits, 1.0), missed + 1), 0.0)
        upper = np.where(not_all, beta.isf(delta, hits + 1, np.where(not_all, missed, 1.0)), 1.0)
    return lower, upper


@dataclass(frozen=True, eq=False)
class Proportions(Cells):
    """Rates of an event in cells.

    Parameters
    ----------
    hits, counts : ndarray of shape (n_blocks, n_columns)
    index : Index
        Names of the cells.
    """

    hits: np.ndarray
    counts: np.ndarray
    index: pd.Index
    method: ClassVar[str] = "binomial"

    @classmethod
    def evidence(cls, sample: Sample, found: Comparison) -> CellEvidence:
        """That of a comparison whose values are 0 and 1."""
        cells = cls(found.sums(found.values), found.counts, found.index)
        return CellEvidence(sample.gap, sample.n_samples, cells, found.contrast)

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        return binomial_ends(self.hits * scale, self.counts * scale, delta)

    @override
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        lower, upper = self.ends(delta)
        rates = np.divide(self.hits, self.counts, out=np.full(self.hits.shape, np.nan), where=self.counts > 0)
        sizes = {"n_samples": self.counts.ravel().astype(int), "n_hits": self.hits.ravel().astype(int)}
        ends = {"estimate": rates.ravel(), "lower": lower.ravel(), "upper": upper.ravel()}
        return pd.DataFrame(sizes | ends, index=self.index)


@dataclass(frozen=True, eq=False)
class RankProportions(RankCells):
    """Ranks with the interval of each threshold by itself."""

    method: ClassVar[str] = "binomial"

    @cached_property
    def _hits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of every group the distinct numbers of rows above a threshold, and which of them each threshold has."""
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


@offers("binomial", *RANK_METRICS)
def _all_thresholds(sample: Sample) -> Evidence:
    cells = RankProportions(*rank_cells(sample))
    return CellEvidence(sample.gap, sample.n_samples, cells, contrast_of_ranks(sample.params, cells.labels))


def _selection(sample: Sample) -> Comparison:
    labels = check_binary_labels(sample.y_true, sample.response)
    groups = check_groups(sample.sensitive_features, None, sample.n_samples).groups
    return Comparison(labels.y_pred, everyone(sample.n_samples), _ALL, groups, _pairs(sample, groups, 1))


def _by_label(sample: Sample) -> Comparison:
    """Positive predictions by true label, of positives only if the metric compares no others."""
    labels = check_binary_labels(sample.y_true, sample.response)
    groups = check_groups(sample.sensitive_features, None, sample.n_samples).groups
    blocks, names = _label_blocks(labels.y_true, "y_true", labels.names)
    if sample.metric is metrics.equal_opportunity_gap:
        blocks, names = blocks[1:], names[1:]
    fold = sample.params.get("agg_labels", "max")
    return Comparison(labels.y_pred, blocks, names, groups, _pairs(sample, groups, len(blocks), fold))


def _by_prediction(sample: Sample) -> Comparison:
    """Positives by predicted label."""
    labels = check_binary_labels(sample.y_true, sample.response)
    groups = check_groups(sample.sensitive_features, None, sample.n_samples).groups
    blocks, names = _label_blocks(labels.y_pred, "y_pred", labels.names)
    return Comparison(labels.y_true, blocks, names, groups, _pairs(sample, groups, len(blocks), "sum"))


def _errors(sample: Sample) -> Comparison:
    actual, predicted = check_labels(sample.y_true, sample.response)
    alone = Groups(np.zeros(actual.size, dtype=np.int64), ("all rows",))
    return Comparison(actual != predicted, everyone(actual.size), _ALL, alone, OneCell())


def _rates(sample: Sample) -> Comparison:
    _check_indicator(sample)
    return group_rates(sample)


def _parity_pair(sample: Sample) -> Comparison:
    _check_indicator(sample)
    return positive_rates(sample)


def _majority_share(sample: Sample) -> Comparison:
    """Given how many predictions are positive, those of others than the minority are binomial."""
    _check_indicator(sample)
    scores = check_scores(sample.response)
    rows = check_groups(sample.sensitive_features, None, scores.size)
    others = rows.codes != rows.labels.index(sample.params["minority"])
    alone = Groups(np.zeros(scores.size, dtype=np.int64), ("positive predictions",))
    return Comparison(others, (scores > 0)[None], _ALL, alone, OneCell())


def _partial(sample: Sample) -> Comparison:
    """Ranks of one threshold; among all rows, the positives, or the rows of each label."""
    if sample.params.get("ranks", "group_and_label") != "group_and_label":
        raise NotOffered("'binomial' takes the ends of the interval as given; with ranks='group' they are estimates.")
    scores = check_scores(sample.response)
    groups = check_groups(sample.sensitive_features, None, scores.size).groups
    above = scores > sample.params.get("threshold", 0.0)
    blocks, names = everyone(scores.size), _ALL
    if sample.metric is not metrics.partial_demographic_parity_gap:
        positive, labels = check_true_labels(sample.y_true)
        blocks, names = _label_blocks(positive, "y_true", labels)
    if sample.metric is metrics.partial_equal_opportunity_gap:
        blocks, names = blocks[1:], names[1:]
    return Comparison(above, blocks, names, groups, contrast_of_ranks(sample.params, groups.names, len(blocks)))


READERS: dict[Callable[..., object], Callable[[Sample], Comparison]] = {
    metrics.independence_gap: _selection,
    metrics.equal_opportunity_gap: _by_label,
    metrics.separation_gap: _by_label,
    metrics.sufficiency_gap: _by_prediction,
    metrics.inaccuracy: _errors,
    metrics.rate_gap: _rates,
    metrics.parity_pair: _parity_pair,
    metrics.minority_share: _majority_share,
    metrics.partial_demographic_parity_gap: _partial,
    metrics.partial_equal_opportunity_gap: _partial,
    metrics.partial_equalized_odds_gap: _partial,
}


@offers("binomial", *READERS)
def _one_rate_per_cell(sample: Sample) -> Evidence:
    return Proportions.evidence(sample, READERS[sample.metric](sample))


def _pairs(sample: Sample, groups: Groups, n_blocks: int, fold: AggregateLabels = "max") -> PairGaps:
    agg = sample.params.get("agg", "max")
    return PairGaps(n_blocks=n_blocks, n_groups=len(groups.names), fold=fold, agg=agg)


def _label_blocks(positive: np.ndarray, what: str, names: tuple[str, str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """The rows of negative and of positive label, and what to call them."""
    return np.stack([~positive, positive]), tuple(f"{what}={name}" for name in names)


def _check_indicator(sample: Sample) -> None:
    rate = sample.params.get("rate", "indicator")
    if rate != "indicator":
        raise NotOffered(f"'binomial' counts positive predictions, which rate={rate!r} does not.")
