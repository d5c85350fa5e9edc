"""Convex losses with a corner at the target, and smooth ones close to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.messages import check_positive
from fairconstrained.objectives._loss import ConvexLoss, Loss

__all__ = ["Absolute", "Hinge", "RoundedCorner"]

#: Width of a parabola that is as good as a corner.
_SHARP = 1e-6


@dataclass(frozen=True)
class RoundedCorner(ConvexLoss):
    r"""A loss with its corner rounded by a hyperbola, for Newton steps.

    .. math:: \ell_\omega(s, y) = \frac{a_y + b_y}{2} r + \frac{b_y - a_y}{2} \sqrt{r^2 + \omega^2}, \qquad r = s - y

    where a and b are the slopes on both sides of the corner. It exceeds the loss everywhere, by
    :math:`(b_y - a_y) \omega / 2` at most, and by less the farther the score is from the corner.

    Newton's method would step too far where it is almost straight. So the slopes are variables of their own, v, and
    :math:`(v - \frac{a + b}{2}) \sqrt{r^2 + \omega^2} = \frac{b - a}{2} r` is what is linearised.

    Parameters
    ----------
    loss : Loss
        A loss that `has_corner`.
    width : float
        The width :math:`\omega`, positive, in units of the score.

    References
    ----------
    Chan, Golub, Mulet, A nonlinear primal-dual method for total variation-based image restoration, SIAM Journal on
    Scientific Computing 20 (1999), section 3 (the linearisation).
    """

    is_smooth_and_convex: ClassVar[bool] = True

    loss: Loss
    width: float

    def _parts(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean slope, half of its jump, distance from the corner, and the root."""
        (left, right), distance = self.loss.sides(targets), scores - targets
        return (left + right) / 2, (right - left) / 2, distance, torch.sqrt(distance**2 + self.width**2)

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        slope, jump, distance, root = self._parts(scores, targets)
        return slope * distance + jump * root

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        slope, jump, distance, root = self._parts(scores, targets)
        return slope + jump * distance / root

    @override
    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.newton_curvature(scores, targets, self.slope(scores, targets))

    @override
    def newton_curvature(self, scores: Tensor, targets: Tensor, duals: Tensor) -> Tensor:
        slope, jump, distance, root = self._parts(scores, targets)
        return ((jump - (duals - slope) * distance / root) / root).clamp(min=0)  # negative by rounding alone

    @override
    def admissible(self, duals: Tensor, targets: Tensor) -> Tensor:
        return torch.clamp(duals, *self.loss.sides(targets))

    @override
    def floor(self, scores: Tensor, targets: Tensor, duals: Tensor) -> Tensor:
        """Lines through the corner, which are below the loss without rounding as well."""
        return duals * (scores - targets)


@dataclass(frozen=True)
class Hinge(ConvexLoss):
    """``max(1 - y s, 0)``, its corner rounded by a parabola over ``smoothing``.

    Parameters
    ----------
    smoothing : float, default=0.01
        Half the width of the parabola, in units of the margin ``y s``; positive. The rounded loss exceeds the hinge
        by at most ``smoothing / 4``.
    """

    smoothing: float = 0.01

    def __post_init__(self) -> None:
        check_positive(smoothing=self.smoothing)

    @property
    def has_corner(self) -> bool:  # type: ignore[override]  # it has if it is not rounded already
        """Whether the parabola is too narrow to matter."""
        return self.smoothing <= _SHARP

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

    def path(self) -> tuple[Loss, ...]:
        """Hinges with rounder corners, then this one."""
        return (*(Hinge(s) for s in (0.5, 0.1) if s > self.smoothing), self)


@dataclass(frozen=True)
class Absolute(ConvexLoss):
    """``|s - y|``."""

    has_corner: ClassVar[bool] = True

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (scores - targets).abs()

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (scores - targets).sign()

    @override
    def sides(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        return -torch.ones_like(targets), torch.ones_like(targets)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """``(1 + s) / 2``, clipped to [0, 1]: ranks like the score, but is not calibrated."""
        return np.clip((1 + scores) / 2, 0, 1)
