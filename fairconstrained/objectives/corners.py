"""Convex losses with a corner at the target, and smooth ones close to them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.special import expit
from torch import Tensor
from typing_extensions import override

from fairconstrained.objectives._loss import Loss

__all__ = ["Absolute", "CornerLoss", "Hinge", "RoundedCorner"]


class CornerLoss(Loss):
    r"""A loss :math:`\max(a_y (s - y), b_y (s - y))`, straight but for a corner at the target."""

    @abstractmethod
    def sides(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Slopes a and b to the left and to the right of the corner; two Tensors of shape (n_samples,)."""

    @override
    def rounded(self, width: float) -> Loss:
        return RoundedCorner(self, width)


@dataclass(frozen=True)
class RoundedCorner(Loss):
    r"""A loss with its corner rounded by a hyperbola, for Newton steps.

    .. math:: \frac{a_y + b_y}{2} r + \frac{b_y - a_y}{2} \sqrt{r^2 + \omega^2}, \qquad r = s - y

    It exceeds the loss by :math:`(b_y - a_y) \omega / 2` at most, and by less the farther the score is from the corner.

    Parameters
    ----------
    loss : CornerLoss
    width : float
        The width :math:`\omega`, positive, in units of the score.
    """

    is_smooth_and_convex: ClassVar[bool] = True

    loss: CornerLoss
    width: float

    def _parts(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean slope, half of its jump, distance from the corner, and the hyperbola."""
        (left, right), distance = self.loss.sides(targets), scores - targets
        return (left + right) / 2, (right - left) / 2, distance, torch.sqrt(distance**2 + self.width**2)

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        slope, jump, distance, hyperbola = self._parts(scores, targets)
        return slope * distance + jump * hyperbola

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        slope, jump, distance, hyperbola = self._parts(scores, targets)
        return slope + jump * distance / hyperbola

    @override
    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        _, jump, _, hyperbola = self._parts(scores, targets)
        return jump * self.width**2 / hyperbola**3

    @override
    def floor(self, scores: Tensor, targets: Tensor) -> Tensor:
        """The line through the corner; its slope is between those of the sides, so the loss is above it."""
        return self.slope(scores, targets) * (scores - targets)

    @override
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and zero, as it is convex."""
        return self.of(scores, targets), torch.zeros_like(scores)


@dataclass(frozen=True)
class Hinge(CornerLoss):
    """``max(1 - y s, 0)``, its corner rounded by a parabola over ``smoothing``.

    Parameters
    ----------
    smoothing : float
        Half the width of the parabola, in units of the margin ``y s``. The rounded loss exceeds the hinge
        by at most ``smoothing / 4``.
    """

    smoothing: float = 0.01

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        shortfall = 1 - targets * scores
        rounded = (shortfall + self.smoothing).clamp(0, 2 * self.smoothing) ** 2 / (4 * self.smoothing)
        return rounded + (shortfall - self.smoothing).clamp(min=0)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        shortfall = 1 - targets * scores
        return -targets * ((shortfall + self.smoothing) / (2 * self.smoothing)).clamp(0, 1)

    @override
    def sides(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        return (-targets).clamp(max=0), (-targets).clamp(min=0)

    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and zero, as it is convex."""
        return self.of(scores, targets), torch.zeros_like(scores)

    def path(self) -> tuple[Loss, ...]:
        """Hinges with rounder corners, then this one."""
        return (*(Hinge(s) for s in (0.5, 0.1) if s > self.smoothing), self)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """``1 / (1 + exp(-s))``: ranks like the score, but is not calibrated."""
        return expit(scores)


@dataclass(frozen=True)
class Absolute(CornerLoss):
    """``|s - y|``."""

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (scores - targets).abs()

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (scores - targets).sign()

    @override
    def sides(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        return -torch.ones_like(targets), torch.ones_like(targets)

    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss and zero, as it is convex."""
        return self.of(scores, targets), torch.zeros_like(scores)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """``(1 + s) / 2``, clipped to [0, 1]: ranks like the score, but is not calibrated."""
        return np.clip((1 + scores) / 2, 0, 1)
