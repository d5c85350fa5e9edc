"""AUCs between disjoint sets of rows: two-sample U-statistics of a kernel in [0, 1].

The moment generating function of such a statistic of n and m rows is at most that of the mean of ``k = min(n, m)``
independent values of the kernel, whence Chernoff's bound ``P(U >= u) <= exp(-k kl(u, theta))`` for ``u >= theta``, kl
being the divergence of two Bernoulli distributions. Ties count one half, a value of the kernel like any other.

An AUC of a set over one that contains it, such as a group over everybody, is ``1/2 + (1 - pi) (AUC - 1/2)`` with the
AUC over the rest and the share pi of the set in the larger one, which is binomial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import rel_entr
from typing_extensions import override

from fairconstrained.certification._aucs import ComparedAUCs, Set, auc_of_scores, compared_aucs
from fairconstrained.certification._binomial import binomial_ends
from fairconstrained.certification.evidence import CellEvidence, Cells, Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import AUCDifferences, NotOffered
from fairconstrained.metrics.contrasts import AUCGaps, Contrast

__all__ = ["AUCStatistics", "EndsOfAUC", "auc_evidence", "chernoff_upper"]


def chernoff_upper(estimate: float, count: float, delta: float) -> float:
    """The largest ``theta`` with ``kl(estimate, theta) <= ln(1 / delta) / count``; 1 without rows.

    References
    ----------
    W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963: theorem 1 (equation 2.1)
    for means, section 5 for U-statistics of two samples.
    """
    if not count:
        return 1.0
    allowed = -np.log(delta) / count

    def excess(theta: float) -> float:
        return float(rel_entr(estimate, theta) + rel_entr(1 - estimate, 1 - theta)) - allowed

    # the divergence is infinite at 1 unless the estimate is 1
    if estimate >= 1 or excess(np.nextafter(1.0, 0.0)) <= 0:
        return 1.0
    return float(brentq(excess, estimate, np.nextafter(1.0, 0.0)))


class EndsOfAUC(Protocol):
    """Bounds on the AUC between two disjoint sets of rows."""

    def ends(self, delta: float, scale: float) -> tuple[float, float]:
        """Return both ends, each of which fails with probability at most ``delta``."""


@dataclass(frozen=True)
class _Chernoff:
    """Chernoff's bounds."""

    estimate: float
    #: Rows of the smaller set.
    count: int

    @classmethod
    def of(cls, above: np.ndarray, below: np.ndarray) -> _Chernoff:
        """Return the bounds of two samples of scores, none of which is empty."""
        return cls(auc_of_scores(above, below), min(above.size, below.size))

    def ends(self, delta: float, scale: float) -> tuple[float, float]:
        """Implement `EndsOfAUC.ends`."""
        high = chernoff_upper(self.estimate, self.count * scale, delta)
        return 1 - chernoff_upper(1 - self.estimate, self.count * scale, delta), high


@dataclass(frozen=True, eq=False)
class _Statistic:
    """An AUC between two disjoint sets, and the part of it that the AUC of interest differs from 1/2 by."""

    #: None where nothing is known of it.
    auc: EndsOfAUC | None
    #: hits and total: rows of the larger set that are not in the smaller one, and all of them, where one contains the
    #: other.
    hits: int = 1
    total: int = 0

    @property
    def n_ends(self) -> int:
        """Ends that one end of the AUC is made of."""
        return 2 if self.total else 1

    def ends(self, delta: float, scale: float) -> tuple[float, float]:
        """Lower and upper end of the AUC."""
        low, high = (0.0, 1.0) if self.auc is None else self.auc.ends(delta, scale)
        if not self.total:
            return low, high
        share = float(binomial_ends(np.array(self.hits * scale), np.array(self.total * scale), delta)[1])
        return 0.5 + share * min(low - 0.5, 0.0), 0.5 + share * max(high - 0.5, 0.0)


@dataclass(frozen=True, eq=False)
class AUCStatistics(Cells):
    """AUCs, two for every difference."""

    found: ComparedAUCs
    #: Statistics of the AUCs; None where an AUC is 1/2 by definition.
    statistics: tuple[_Statistic | None, ...]
    method: str = "ustatistic"  # type: ignore[misc]

    @override
    def ends(self, delta: float, scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        known = {one: one.ends(delta, scale) for one in dict.fromkeys(self.statistics) if one is not None}
        ends = [(0.5, 0.5) if statistic is None else known[statistic] for statistic in self.statistics]
        lower, upper = np.array(ends).reshape(-1, 2, 2).transpose(2, 0, 1)
        return lower, upper

    @override
    def table(self, delta: float, contrast: Contrast) -> pd.DataFrame:
        lower, upper = self.ends(delta)
        return self.found.table([self.found.auc(*sets) for sets in self.found.pairs], lower=lower, upper=upper)


def auc_evidence(sample: Sample, method: str, bounds: Callable[[np.ndarray, np.ndarray], EndsOfAUC]) -> CellEvidence:
    """Return the evidence of differences of AUCs, each of which is bounded by itself.

    Parameters
    ----------
    method : str
        Name of the family.
    bounds : callable
        From the scores of two disjoint sets, none of which is empty, to the bounds on their AUC.

    Raises
    ------
    NotOffered
        If two sets overlap and none contains the other.
    """
    found = compared_aucs(sample)
    known = {sets: _statistic(found, *sets, method, bounds) for sets in dict.fromkeys(found.pairs)}
    statistics = tuple(known[sets] for sets in found.pairs)
    n_ends = sum(0 if statistic is None else statistic.n_ends for statistic in statistics[:2])
    agg = sample.params.get("agg", "max")
    contrast = AUCGaps(n_differences=len(found.differences), tails_of_one=n_ends, agg=agg)
    return CellEvidence(sample.gap, sample.n_samples, AUCStatistics(found, statistics, method), contrast)


@offers("ustatistic", AUCDifferences)
def _aucs(sample: Sample) -> Evidence:
    return auc_evidence(sample, "ustatistic", _Chernoff.of)


def _statistic(
    found: ComparedAUCs, above: Set, below: Set, method: str, bounds: Callable[[np.ndarray, np.ndarray], EndsOfAUC]
) -> _Statistic | None:
    """Return the statistic of a set over another; None for a set over itself."""
    one, other = set(above), set(below)
    if one == other:
        return None
    if not one & other:
        return _Statistic(bounds(found.scores_of(above), found.scores_of(below)))
    if not (one < other or other < one):
        raise NotOffered(f"{method!r} needs sets of rows that are disjoint, or of which one contains the other.")
    rest = tuple(sorted(one ^ other))
    total, n_rest = max(found.size(above), found.size(below)), found.size(rest)
    if not n_rest:  # none beside the smaller set here, of whose AUC nothing is known; but maybe in the population
        return _Statistic(None, 0, total)
    pair = (above, rest) if one < other else (rest, below)
    return _Statistic(bounds(*map(found.scores_of, pair)), n_rest, total)
