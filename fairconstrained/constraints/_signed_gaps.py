"""Differences of AUCs as constraints: two signs, and slopes from a surrogate at exact values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._optimism import KnowsOptimism
from fairconstrained.constraints._smoothed import BoundSmoothed

__all__ = ["BoundSignedGaps"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundSignedGaps(KnowsOptimism, BoundSmoothed):
    """``|gap_j(scores)| <= kappa`` for signed gaps that do not change when all scores move alike.

    Components: every gap, then every gap with the other sign.
    """

    optimism: np.ndarray | None = None

    ignores_shifts: ClassVar[bool] = True

    @abstractmethod
    def _exact_gaps(self, scores: np.ndarray) -> np.ndarray:
        """Return the gaps with their signs; ndarray of shape (n_gaps,)."""

    @abstractmethod
    def _smooth_gaps(self, scores: Tensor) -> Tensor:
        """Gaps with the surrogate in place of the indicator, without the correction; Tensor of shape (n_gaps,)."""

    def metric(self, scores: np.ndarray) -> float:
        """The largest gap."""
        return float(np.abs(self._exact_gaps(scores)).max(initial=0.0))

    @override
    def differences(self, scores: np.ndarray) -> np.ndarray:
        gaps = self._exact_gaps(scores)
        return np.concatenate([gaps, -gaps])

    @property
    @override
    def bounds_metric(self) -> bool:  # type: ignore[override]
        return self.optimism is None

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        """Implement `BoundConstraint.values_at_cuts`; only the order of the scores counts."""
        return np.full(cuts.size, self.metric(scores))

    @override
    def _correction_at(self, scores: np.ndarray) -> Tensor:
        return torch.from_numpy(self._exact_gaps(scores)) - self._smooth_gaps(torch.from_numpy(scores))

    @property
    def _limits(self) -> Tensor | float:
        """Bounds of the components of the surrogate."""
        return self.allowed_gap if self.optimism is None else self.allowed_gap - torch.from_numpy(self.optimism)

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The surrogate of both signs as ``<= 0``."""
        gaps = self._smooth_gaps(scores) + self.correction
        return torch.cat([gaps, -gaps]) - self._limits
