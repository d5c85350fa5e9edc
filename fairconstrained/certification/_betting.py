"""AUC gaps by betting: bounds from the mean wealth over all pairings of two samples, see `_bets`.

The difference of two AUCs between four disjoint sets is bounded as one sum, ``(1 - AUC_1) + AUC_2``, of two independent
AUCs, with a single event. Of any other difference each AUC has its own bounds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd
from typing_extensions import override

from fairconstrained.certification._aucs import ComparedAUCs, Set, compared_aucs
from fairconstrained.certification._bets import Bettor, TwoSamples
from fairconstrained.certification._hoeffding import words_of_sums
from fairconstrained.certification._ustatistics import auc_evidence
from fairconstrained.certification.evidence import Evidence, offers
from fairconstrained.certification.sample import Sample
from fairconstrained.metrics.comparisons import AUCDifferences
from fairconstrained.metrics.rates import AGGREGATES, Aggregate

__all__ = ["BetsOnDifferences"]


@dataclass(frozen=True, eq=False)
class _BetsOnAUC:
    """Bounds on a single AUC by betting.

    For other numbers of rows their distance from the AUC of the samples changes with the root of the factor.
    """

    samples: TwoSamples
    _known: dict[float, tuple[float, float]] = field(default_factory=dict, init=False, repr=False)

    @classmethod
    def of(cls, above: np.ndarray, below: np.ndarray) -> _BetsOnAUC:
        """Return the bounds of two samples of scores, none of which is empty."""
        return cls(TwoSamples(above, below))

    @cached_property
    def _sides(self) -> tuple[Bettor, Bettor]:
        return Bettor([self.samples]), Bettor([self.samples.turned])

    def ends(self, delta: float, scale: float) -> tuple[float, float]:
        """Return both ends, each of which fails with probability at most ``delta``."""
        if delta not in self._known:
            low, turned = (side.least_sum(delta) for side in self._sides)
            self._known[delta] = low, 1 - turned
        auc = self.samples.auc
        low, high = (auc + (end - auc) / float(np.sqrt(scale)) for end in self._known[delta])
        return max(0.0, low), min(1.0, high)


@dataclass(frozen=True, eq=False)
class BetsOnDifferences(Evidence):
    """Differences of two AUCs between four disjoint sets of rows."""

    found: ComparedAUCs
    agg: Aggregate
    method: ClassVar[str] = "betting"
    _known: dict[float, float] = field(default_factory=dict, init=False, repr=False)

    @property
    @override
    def n_events(self) -> int:
        return 1 if self.agg == "max" else len(self.found.differences)

    @property
    @override
    def union(self) -> str:
        return words_of_sums(self.agg, self.n_events)

    @override
    def upper(self, delta: float, scale: float = 1.0) -> float:
        """Implement `Evidence.upper`; for other numbers of rows the distance from the gap changes with their root."""
        if delta not in self._known:
            self._known[delta] = float(AGGREGATES[self.agg]([self._largest(place, delta) for place in self._pairs]))
        return min(1.0, self.gap + (self._known[delta] - self.gap) / float(np.sqrt(scale)))

    def cells(self, delta: float) -> pd.DataFrame:
        """Implement `Evidence.cells`; counts and estimates only, as the bound is one of their difference."""
        return self.found.table([self._samples[sets].auc for sets in self.found.pairs])

    @cached_property
    def _samples(self) -> dict[tuple[Set, Set], TwoSamples]:
        """Scores of the sets of every AUC."""
        return {
            sets: TwoSamples(self.found.scores_of(sets[0]), self.found.scores_of(sets[1]))
            for sets in dict.fromkeys(self.found.pairs)
        }

    @cached_property
    def _pairs(self) -> list[tuple[Bettor, Bettor]]:
        """Bets that the first AUC of a difference is not so much larger, and not so much smaller."""
        aucs = [(self._samples[sets[:2]], self._samples[sets[2:]]) for sets in self.found.differences]
        return [(Bettor([one.turned, other]), Bettor([one, other.turned])) for one, other in aucs]

    def _largest(self, sides: tuple[Bettor, Bettor], delta: float) -> float:
        """Return the bound on the absolute value of a difference, the larger one of both directions."""
        return max(1 - side.least_sum(delta / self.n_events) for side in sides)


@offers("betting", AUCDifferences)
def _aucs(sample: Sample) -> Evidence:
    found = compared_aucs(sample)
    if found.are_disjoint:
        return BetsOnDifferences(sample.gap, sample.n_samples, found, sample.params.get("agg", "max"))
    return auc_evidence(sample, "betting", _BetsOnAUC.of)
