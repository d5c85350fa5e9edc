"""What the parity constraints share: parameters, surrogates, and the exact metric on an interval."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints._base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.metrics._intervals import PercentileIntervals
from fairconstrained.surrogates import SURROGATES, Surrogate
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic

__all__ = ["BoundParity", "make_surrogate", "single_interval"]

#: Width of "auto" surrogates before a solver refines them: that of the paper's experiments.
PAPER_WIDTH = 1.0


def make_surrogate(name: str, width: float | str) -> Surrogate:
    """The surrogate of that name; ``width="auto"`` starts at the paper's width of 1.

    Raises
    ------
    ValueError
        For an unknown name (the message lists the known ones) or a width that is not positive.
    """
    if name not in SURROGATES:
        raise ValueError(f"surrogate must be one of {sorted(SURROGATES)}, got {name!r}.")
    if width == "auto":
        return SURROGATES[name].with_width(PAPER_WIDTH)
    if isinstance(width, str) or not width > 0:
        raise ValueError(f"surrogate_width must be 'auto' or a positive number, got {width!r}.")
    return SURROGATES[name].with_width(float(width))


def single_interval(interval: Any) -> tuple[float, float]:
    """A validated pair ``(alpha, beta)``; raises ValueError for anything else."""
    parsed = PercentileIntervals.parse(interval, ())
    if parsed.alpha.shape != (1, 1):
        raise ValueError(f"this constraint takes one interval (alpha, beta), got {interval!r}.")
    return float(parsed.alpha[0, 0]), float(parsed.beta[0, 0])


@dataclass(frozen=True, eq=False)
class BoundParity(BoundConstraint, FullBatch, DifferenceOfConvex, Stochastic):
    """A bound ``kappa`` on a gap between the groups' ranks on the interval ``[alpha, beta)``.

    Attributes
    ----------
    margin : float
        What the surrogate's tolerance falls short of ``kappa``.
    fixed_width : bool
        Whether the user chose the surrogate's width, so that refinement leaves it alone.
    correction : Tensor of shape (n_groups, n_thresholds) or (1, 1)
        Added to the surrogate's rates. Refinement sets it to what the exact rates exceed the smooth ones by, so
        that the surrogate takes its values from the metric and only its slopes from the smoothing.
    """

    data: FairData
    kappa: float
    interval: tuple[float, float]
    normalize: bool
    surrogate: Surrogate
    fixed_width: bool
    margin: float = 0.0
    name: str = "parity"
    correction: Tensor = field(default_factory=lambda: torch.zeros(1, 1, dtype=torch.float64))

    @property
    def intervals(self) -> PercentileIntervals:
        """The interval in the form that the metrics take."""
        return PercentileIntervals.parse(self.interval, ())

    @property
    def scale(self) -> float:
        """Rate that a gap of one stands for: the length of the interval, or 1 for rank gaps."""
        return self.interval[1] - self.interval[0] if self.normalize else 1.0

    @property
    def slack(self) -> float:
        """Tolerance of the surrogate, as a difference of rates: ``(kappa - margin) scale``, at least 0."""
        return max(self.kappa - self.margin, 0.0) * self.scale

    @property
    def granularity(self) -> float:
        """Largest share of a group that one row stands for, as a gap."""
        shares = [float(self.data.group_weights[rows].max()) for rows in self.data.slices]
        return max(shares) / self.scale

    def on(self, data: FairData) -> Self:
        """See `Stochastic.on`."""
        return replace(self, data=data)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """See `Exact.refined`."""
        surrogate = self.surrogate
        if not self.fixed_width:
            weights = self.data.weights.numpy()
            deviation = float(np.sqrt(weights @ (scores - weights @ scores) ** 2))
            # Constant scores are fair whatever the width is, so any width will do.
            surrogate = surrogate.with_blur(blur * deviation) if deviation > 0 else surrogate
        refined = replace(self, surrogate=surrogate, margin=margin, **self._more(scores))
        thresholds = refined._thresholds(scores)
        smooth = refined.surrogate.rates(torch.from_numpy(scores), thresholds, self.data)
        exact = torch.from_numpy(self.exact_rates(scores, thresholds.numpy()))
        return replace(refined, correction=exact - smooth)

    def rates(self, scores: Tensor, thresholds: Tensor) -> Tensor:
        """Corrected smooth share of every group above every threshold; shape (n_groups, n_thresholds)."""
        return self.surrogate.rates(scores, thresholds, self.data) + self.correction

    def split_rates(self, scores: Tensor, thresholds: Tensor) -> tuple[Tensor, Tensor]:
        """Two parts, convex in scores and thresholds, whose difference is `rates`."""
        plus, minus = self.surrogate.split_rates(scores, thresholds, self.data)
        return plus + self.correction, minus

    def _more(self, scores: np.ndarray) -> dict[str, Any]:
        """What else refinement changes."""
        return {}

    @abstractmethod
    def _thresholds(self, scores: np.ndarray) -> Tensor:
        """The thresholds at which the rates are compared, given the scores; shape (n_thresholds,)."""

    def exact_rates(self, scores: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
        """Share of every group above every threshold; ndarray of shape (n_groups, n_thresholds)."""
        weights = self.data.group_weights.numpy()
        rates = []
        for rows in self.data.slices:
            order = np.argsort(scores[rows])
            below = np.append(0.0, np.cumsum(weights[rows][order]))
            rates.append(1 - below[np.searchsorted(scores[rows][order], thresholds, side="right")])
        return np.stack(rates)
