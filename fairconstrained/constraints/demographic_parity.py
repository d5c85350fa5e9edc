"""Partial demographic parity (pDP): equal positive rates at one threshold within a percentile interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints._base import Constraint, check_kappa, check_resolution
from fairconstrained.constraints._offsets import group_offsets, shared_offset
from fairconstrained.constraints._rates import BoundParity, make_surrogate, single_interval
from fairconstrained.data import FairData
from fairconstrained.metrics._ranks import gaps_by_threshold

__all__ = ["DemographicParity"]


class DemographicParity(Constraint):
    r"""Bound on the partial demographic parity gap at one threshold.

    .. math:: \left| \mathrm{clip}(\bar F_g(\hat\theta)) - \mathrm{clip}(\bar F_{g'}(\hat\theta)) \right|
              \le \kappa (\beta - \alpha) \quad \text{for all groups } g, g'

    with :math:`\mathrm{clip}(F) = \min(F, \beta) - \min(F, \alpha)`. On the interval (0, 1) this is demographic
    parity.

    Parameters
    ----------
    kappa : float or None, default=0.05
        Bound on the metric, in [0, 1]. None is no bound: the metric is only reported.
    interval : pair of floats, default=(0.0, 1.0)
        Percentile interval ``[alpha, beta)``; 0 is the top of a group.
    threshold : float, default=0.0
        The threshold :math:`\hat\theta`, in units of the scores.
    normalize : bool, default=True
        False bounds the rank gap, ``|F_g - F_g'| <= kappa`` where one of the two ranks lies in the interval.
        The surrogate then bounds the difference wherever the ranks lie, which is sufficient.
    surrogate : {"logistic", "ramp", "smoothstep"}, default="logistic"
    surrogate_width : float or "auto", default="auto"
        Width of :math:`\sigma` in units of the scores. "auto" lets the solver narrow it.

    References
    ----------
    He, Huang, Yao, Lin, arXiv:2505.12530: Definition 4.3, Lemma 5.2, eq. 21.
    """

    def __init__(
        self,
        kappa: float | None = 0.05,
        *,
        interval: Any = (0.0, 1.0),
        threshold: float = 0.0,
        normalize: bool = True,
        surrogate: str = "logistic",
        surrogate_width: float | str = "auto",
    ) -> None:
        self.kappa = kappa
        self.interval = interval
        self.threshold = threshold
        self.normalize = normalize
        self.surrogate = surrogate
        self.surrogate_width = surrogate_width

    def bind(self, data: FairData) -> BoundDemographicParity:
        """See `Constraint.bind`."""
        kappa = check_kappa(self.kappa)
        alpha, beta = single_interval(self.interval)
        check_resolution(data, self.kappa, beta - alpha if self.normalize else 1.0, "demographic parity")
        return BoundDemographicParity(
            data=data,
            kappa=kappa,
            interval=(alpha, beta),
            normalize=self.normalize,
            surrogate=make_surrogate(self.surrogate, self.surrogate_width),
            fixed_width=self.surrogate_width != "auto",
            name="demographic_parity",
            threshold=float(self.threshold),
        )


@dataclass(frozen=True, eq=False)
class BoundDemographicParity(BoundParity):
    """See `DemographicParity`. Components: ordered pairs of groups."""

    threshold: float = 0.0

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two groups of every component."""
        labels = self.data.labels
        first, second = self._pairs()
        return tuple(f"{self.name}[{labels[a]} - {labels[b]}]" for a, b in zip(first, second, strict=True))

    def metric(self, scores: np.ndarray) -> float:
        """Partial demographic parity gap."""
        rates = self.exact_rates(scores, np.array([self.threshold])).T
        return float(gaps_by_threshold(rates, self.intervals, self.normalize)[0])

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Eq. 21, every ordered pair as ``<= 0``."""
        rates = self.rates(scores, self._thresholds())[:, 0]
        first, second = self._pairs()
        if not self.normalize:
            return rates[first] - rates[second] - self.slack
        alpha, beta = self.interval
        clipped = rates.clamp(alpha, beta)
        # Where the interval lies between two rates, the gap is largest and its gradient zero. The distance to
        # the interval adds a way out; it is zero wherever the constraint could hold.
        outside = torch.minimum((rates - beta).clamp(min=0)[first], (alpha - rates).clamp(min=0)[second])
        return clipped[first] - clipped[second] + outside - self.slack

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Convex part of Example D.5 (with the factor 1/n_g that its maximum needs), see `minus`."""
        return self._part(scores, 0)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Concave part with the opposite sign.

        ``min(m, a) = m+ + a - max(m- + a, m+)`` for a rate ``m = m+ - m-``; the ``m+`` that both parts share
        is left out, which makes the convex model tighter.
        """
        return self._part(scores, 1)

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """See `BoundConstraint.offsets`; the rates that the window allows, by sorting."""
        data, weights = self.data, self.data.group_weights.numpy()
        if shared:

            def allowed(thresholds: np.ndarray) -> np.ndarray:
                rates = self.exact_rates(scores, thresholds).T
                return gaps_by_threshold(rates, self.intervals, self.normalize) <= self.kappa

            return np.full(data.n_groups, shared_offset(scores, gains, allowed, threshold))

        def value(rates: np.ndarray) -> np.ndarray:
            return self.intervals.clip(rates[:, None])[:, 0] if self.normalize else rates

        by_group = [[column[rows] for rows in data.slices] for column in (scores, weights, gains)]
        return group_offsets(by_group[0], by_group[1], by_group[2], value, self.kappa * self.scale, threshold)

    def _part(self, scores: Tensor, part: int) -> Tensor:
        plus, minus = (r[:, 0] for r in self.split_rates(scores, self._thresholds()))
        first, second = self._pairs()
        if not self.normalize:
            return (plus[first] + minus[second], minus[first] + plus[second] + self.slack)[part]
        at_alpha, at_beta = (torch.maximum(minus + end, plus) for end in self.interval)
        return (
            at_alpha[first] + at_beta[second],
            at_alpha[second] + at_beta[first] + self.slack,
        )[part]

    def _thresholds(self, scores: np.ndarray | None = None) -> Tensor:
        return torch.full((1,), self.threshold, dtype=torch.float64)

    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Codes of the ordered pairs of different groups."""
        first, second = np.nonzero(~np.eye(self.data.n_groups, dtype=bool))
        return first, second
