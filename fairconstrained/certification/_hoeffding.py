"""Hoeffding's inequality for sums and differences of independent estimates, without any union over them.

The sum over two labels of the gaps of a pair of groups is, with the signs that the gaps have in the population, one
linear function of four independent rates; the difference of two AUCs between four disjoint sets is one of two
independent U-statistics. Intervals for each of the parts would all have to hold at once, and their widths add up. The
whole has the root of the sum of the squared widths, and a single event.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations
from typing import ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.certification._aucs import compared_aucs
from fairconstrained.certification._binomial import counted_events
from fairconstrained.certification.evidence import Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import AUCDifferences, CellRates, NotOffered
from fairconstrained.metrics.contrasts import counted
from fairconstrained.metrics.rates import AGGREGATES, Aggregate

__all__ = ["SumsOfEstimates", "words_of_sums"]


@dataclass(frozen=True, eq=False)
class SumsOfEstimates(Evidence):
    r"""Gaps that are sums of independent estimates with values in [0, 1], each with a sign.

    .. math:: P\Bigl(\sum_c \pm (p_c - \hat p_c) > t\Bigr) \le \exp\Bigl(-\frac{2 t^2}{\sum_c 1 / n_c}\Bigr)

    References
    ----------
    W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963, theorem 2, and section 5
    for U-statistics.
    """

    #: Gaps of the pairs of groups.
    gaps: np.ndarray  # of shape (n_items,)
    #: Sums of ``1 / n_c``; for an AUC ``n_c`` are the rows of the smaller of its sets.
    spreads: np.ndarray  # of shape (n_items,)
    #: Number that no gap exceeds.
    most: float
    agg: Aggregate
    #: Counts and estimates.
    table: pd.DataFrame = field(repr=False)
    method: ClassVar[str] = "hoeffding"

    @property
    @override
    def n_events(self) -> int:
        return 1 if self.agg == "max" else self.gaps.size

    @property
    @override
    def union(self) -> str:
        return words_of_sums(self.agg, self.gaps.size)

    @override
    def upper(self, delta: float, scale: float = 1.0) -> float:
        margins = np.sqrt(np.log(self.n_events / delta) / 2 * self.spreads / scale)
        return float(AGGREGATES[self.agg](np.minimum(self.gaps + margins, self.most)))

    def cells(self, delta: float) -> pd.DataFrame:
        """Implement `Evidence.cells`; counts and estimates only, as the bound is one of their sum."""
        return self.table


def words_of_sums(agg: Aggregate, n_pairs: int) -> str:
    """Return the union of bounds on whole sums in words."""
    if agg == "max":
        return "1 event, of the whole sum; none over pairs of groups, as the worst pair is a fixed one"
    return f"1 event for each of {counted(n_pairs, 'pair of groups')}"


@offers("hoeffding", CellRates)
def _over_labels(sample: Sample) -> Evidence:
    found = counted_events(sample)
    if found.contrast.fold != "sum":
        raise NotOffered("'hoeffding' is for the sum over the labels, agg_labels='sum'.")
    if found.with_overall or found.groups.unions is not None:
        raise NotOffered("'hoeffding' needs rates that are independent: of groups that do not overlap.")
    counts = found.counts
    rates = found.sums(found.values) / counts
    pairs = list(combinations(range(counts.shape[1]), 2))
    return SumsOfEstimates(
        gap=sample.gap,
        n_samples=sample.n_samples,
        gaps=np.array([np.abs(rates[:, a] - rates[:, b]).sum() for a, b in pairs]),
        spreads=np.array([(1 / counts[:, a] + 1 / counts[:, b]).sum() for a, b in pairs]),
        most=float(len(counts)),
        agg=found.contrast.agg,
        table=found.table,
    )


@offers("hoeffding", AUCDifferences)
def _between_aucs(sample: Sample) -> Evidence:
    found = compared_aucs(sample)
    if not found.are_disjoint:
        raise NotOffered("'hoeffding' needs AUCs that are independent: between four sets without common rows.")
    aucs = np.array([found.auc(*sets) for sets in found.pairs]).reshape(-1, 2)
    smaller = np.array([min(map(found.size, sets)) for sets in found.pairs]).reshape(-1, 2)
    return SumsOfEstimates(
        gap=sample.gap,
        n_samples=sample.n_samples,
        gaps=np.abs(aucs[:, 0] - aucs[:, 1]),
        spreads=(1 / smaller).sum(axis=1),
        most=1.0,
        agg=sample.params.get("agg", "max"),
        table=found.table(aucs.ravel().tolist()),
    )
