"""A certificate: a bound on a gap in the population, with what it rests on, in words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.certification.evidence import Evidence
from fairconstrained.certification.seen_rows import Overlap
from fairconstrained.estimators.saving import PlainState
from fairconstrained.metrics.registry import MetricInfo

__all__ = ["Certificate", "certificate_of"]

#: When a bound holds, in words, by whether it is distribution-free.
_VALIDITY = {
    True: "valid for every distribution and sample size",
    False: "valid in the limit of many rows only",
}


@dataclass(frozen=True, eq=False)
class Certificate(PlainState):
    """A bound on a gap in the population, which `certify` returns.

    Attributes
    ----------
    metric : str
        Name of the number that is bounded; ``"1 - minority_share"`` and ``"1 - group_rates"`` for a share that is to be
        large, and for the least rate of a group.
    gap : float
        Value of the metric in the sample.
    upper_bound : float
        Exceeded by the gap in the population with probability at most ``delta``, over the draw of the sample.
    delta : float
    kappa : float or None
        Value that the metric should not exceed; of a floor the least rate that is allowed.
    method : {"betting", "hoeffding", "unconditional", "binomial", "ustatistic", "dkw", "bootstrap"}
        The family of the bound.
    is_distribution_free : bool
        Whether the bound holds for every distribution and every sample size; otherwise in the limit of many rows.
    n_samples : int
    n_events : int
        Number of events in the union; the probabilities with which they fail add up to at most ``delta``.
    union : str
        These events in words.
    by_class : DataFrame or None
        The ``gap`` and ``upper_bound`` of every class against all others, where there are more than two; None
        otherwise. All gaps are at most the largest bound with probability ``1 - delta``; every other bound holds with
        this probability by itself.
    cells : DataFrame
        The counts from which the bound is computed, with the estimates and, where the bound is computed from them,
        their confidence limits, each of which holds with probability ``1 - delta / n_events``.
    share_seen : float or None
        Share of the rows on which the model was fitted. It is above 0 only if ``allow_training_data``, and 0 as well if
        the overlap can be due to chance or is at most 1 %; None if the model keeps no record of its rows.
    noticeable_overlap : int or None
        The fewest rows in common with the fit that are noticed with a probability of at least 95 %: models remember
        hashes of at most 5,000 of their rows. None if even a complete overlap might not be noticed, or if nothing is
        known.
    """

    metric: str
    gap: float
    upper_bound: float
    delta: float
    kappa: float | None
    method: str
    is_distribution_free: bool
    n_samples: int
    n_events: int
    union: str
    by_class: pd.DataFrame | None = field(repr=False)
    cells: pd.DataFrame = field(repr=False)
    share_seen: float | None
    noticeable_overlap: int | None
    _evidence: Evidence = field(repr=False)
    _is_floor: bool = field(repr=False)

    @property
    def passed(self) -> bool | None:
        """Whether ``upper_bound <= kappa``, or at most ``1 - kappa`` for a floor; None without ``kappa``."""
        return None if self.kappa is None else self.upper_bound <= self.largest(self.kappa)

    def largest(self, kappa: float) -> float:
        """The largest ``upper_bound`` that passes.

        Parameters
        ----------
        kappa : float

        Returns
        -------
        largest : float
            ``1 - kappa`` where ``kappa`` is the least value of a floor, of which the complement is certified.
        """
        return 1 - kappa if self._is_floor else kappa

    @cached_property
    def sufficient_n(self) -> int | None:
        """Smallest sample that would have sufficed for ``kappa``, from `sample_size`; None without ``kappa``."""
        return None if self.kappa is None else self.sample_size(self.kappa)

    def sample_size(self, kappa: float) -> int | None:
        """The smallest sample with the same estimates and shares of cells that passes with ``kappa``.

        Parameters
        ----------
        kappa : float

        Returns
        -------
        n_samples : int or None
            Number of rows; None if the estimate is not below `largest`, or so close to it that more than 1e8 times the
            rows are needed.
        """
        scale = self._evidence.sufficient_scale(self.delta, self.largest(kappa))
        return None if scale is None else int(np.ceil(scale * self.n_samples - 1e-9))

    def __str__(self) -> str:
        lines = [
            f"{self.metric} is at most {self.upper_bound:.4g} in the population, with {1 - self.delta:.4g} confidence.",
            f"Measured: {self.gap:.4g} on {self.n_samples:,} rows.",
            *self._worst_class(),
            *self._verdict(),
            f"Method: {self.method}, {_VALIDITY[self.is_distribution_free]}.",
            f"Union: {self.union}.",
            ("NOT VALID. " if self.share_seen else "") + Overlap(self.share_seen, self.noticeable_overlap).words,
        ]
        return "\n".join(lines)

    def _worst_class(self) -> list[str]:
        if self.by_class is None:
            return []
        worst = int(self.by_class["upper_bound"].argmax())
        label, gap = self.by_class.index.tolist()[worst], self.by_class["gap"].iloc[worst]
        return [
            f"Every one of {len(self.by_class)} classes against all others; the bound is largest for {label!r}, whose "
            f"gap is {gap:.4g}."
        ]

    def _verdict(self) -> list[str]:
        if self.kappa is None:
            return []
        asked = f"kappa = {self.kappa:g}"
        if self._is_floor:
            asked += f", the least that is allowed, so that {self.metric} may be {self.largest(self.kappa):.4g}"
        if self.passed:
            return [f"{asked}: passed."]
        if self.sufficient_n is None:
            return [f"{asked}: not passed; no sample suffices for this estimate."]
        return [f"{asked}: not passed; {self.sufficient_n:,} rows would have sufficed."]


def certificate_of(
    evidence: Evidence,
    metric: MetricInfo,
    params: Mapping[str, Any],
    delta: float,
    kappa: float | None,
    overlap: Overlap,
) -> Certificate:
    """Return the certificate that some evidence gives on a metric with some arguments."""
    return Certificate(
        metric=metric.bounded_name(params),
        gap=evidence.gap,
        upper_bound=evidence.upper(delta),
        delta=delta,
        kappa=kappa,
        method=evidence.method,
        is_distribution_free=evidence.is_distribution_free,
        n_samples=evidence.n_samples,
        n_events=evidence.n_events,
        union=evidence.union,
        by_class=evidence.by_class(delta),
        cells=evidence.cells(delta),
        share_seen=overlap.share,
        noticeable_overlap=overlap.noticeable,
        _evidence=evidence,
        _is_floor=metric.is_floor(params),
    )
