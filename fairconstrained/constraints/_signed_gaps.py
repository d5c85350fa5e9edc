"""Differences of AUCs as constraints: two signs, and slopes from a surrogate at exact values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import torch
from typing_extensions import override

from fairconstrained.constraints._optimism import KnowsOptimism
from fairconstrained.constraints._smoothed import BoundSmoothed
from fairconstrained.views import DirectSlopes, Pull

__all__ = ["BoundSignedGaps", "SmoothGaps"]

#: Gaps, and a function from their multipliers to the slopes of the combination in the scores; shape (n_samples,).
SmoothGaps = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundSignedGaps(DirectSlopes, KnowsOptimism, BoundSmoothed):
    """``|gap_j(scores)| <= kappa`` for signed gaps that do not change when all scores move alike.

    Components: every gap, then every gap with the other sign.
    """

    optimism: np.ndarray | None = None

    ignores_shifts: ClassVar[bool] = True

    @abstractmethod
    def _exact_gaps(self, scores: np.ndarray) -> np.ndarray:
        """Return the gaps with their signs; ndarray of shape (n_gaps,)."""

    @abstractmethod
    def _smooth_gaps(self, scores: np.ndarray) -> SmoothGaps:
        """Gaps with the surrogate in place of the indicator, without the correction, and what gives their slopes."""

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
    def _corrected_at(self, scores: np.ndarray) -> Self:
        return self._changed(correction=torch.from_numpy(self._exact_gaps(scores) - self._smooth_gaps(scores)[0]))

    @property
    def _limits(self) -> np.ndarray | float:
        """Bounds of the components of the surrogate."""
        return self.allowed_gap if self.optimism is None else self.allowed_gap - self.optimism

    @override
    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        """The surrogate of both signs as ``<= 0``."""
        smooth, pull_gaps = self._smooth_gaps(scores)
        gaps = smooth + self.correction.numpy()

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            above, below = multipliers.reshape(2, -1)
            return pull_gaps(above - below), np.zeros_like(aux)

        return np.concatenate([gaps, -gaps]) - self._limits, pull
