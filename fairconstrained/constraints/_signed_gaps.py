"""Differences of AUCs as constraints: two signs, and slopes from a surrogate at exact values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._blur import blurred
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.constraints.offsets import free_offset
from fairconstrained.data import FairData
from fairconstrained.surrogates import Surrogate
from fairconstrained.views import FullBatch

__all__ = ["BoundSignedGaps"]


@dataclass(frozen=True, eq=False)
class BoundSignedGaps(BoundConstraint, FullBatch):
    """``|gap_j(scores)| <= kappa`` for signed gaps that do not change when all scores move alike.

    Components: every gap, then every gap with the other sign.

    Attributes
    ----------
    surrogate : Surrogate
    fixed_width : bool
        Whether the user chose the surrogate's width, so that refinement leaves it alone.
    margin : float
        What the surrogate's tolerance falls short of ``kappa``.
    correction : Tensor of shape (n_gaps,) or (1,)
        Added to the smooth gaps. Refinement sets it to what the exact gaps exceed the smooth ones by, so that the
        surrogate takes its values from the metric and only its slopes from the smoothing.
    """

    data: FairData
    kappa: float
    surrogate: Surrogate
    fixed_width: bool
    name: str
    margin: float = field(default=0.0, kw_only=True)
    correction: Tensor = field(default_factory=lambda: torch.zeros(1, dtype=torch.float64), kw_only=True)

    @abstractmethod
    def _exact_gaps(self, scores: np.ndarray) -> np.ndarray:
        """Signed; ndarray of shape (n_gaps,)."""

    @abstractmethod
    def _smooth_gaps(self, scores: Tensor) -> Tensor:
        """Gaps with the surrogate in place of the indicator, without the correction; Tensor of shape (n_gaps,)."""

    @property
    def allowed_gap(self) -> float:
        """Tolerance of the surrogate, ``kappa - margin``, at least 0."""
        return max(self.kappa - self.margin, 0.0)

    def metric(self, scores: np.ndarray) -> float:
        """The largest gap."""
        return float(np.abs(self._exact_gaps(scores)).max(initial=0.0))

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        """Implement `BoundConstraint.values_at_cuts`; only the order of the scores counts."""
        return np.full(cuts.size, self.metric(scores))

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        surrogate = (
            self.surrogate if self.fixed_width else blurred(self.surrogate, scores, self.data.weights.numpy(), blur)
        )
        refined = replace(self, surrogate=surrogate, margin=margin)
        exact = torch.from_numpy(self._exact_gaps(scores))
        return replace(refined, correction=exact - refined._smooth_gaps(torch.from_numpy(scores)))

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """Implement `BoundConstraint.offsets`; the gap does not change when all scores move alike."""
        return np.full(self.data.n_groups, free_offset(scores, gains, threshold))

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The surrogate of both signs as ``<= 0``."""
        gaps = self._smooth_gaps(scores) + self.correction
        return torch.cat([gaps, -gaps]) - self.allowed_gap
