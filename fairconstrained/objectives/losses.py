"""Losses for classification (targets -1 / +1) and regression."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from typing_extensions import override

from fairconstrained.checks.messages import check_positive
from fairconstrained.objectives._loss import ConvexLoss, Loss
from fairconstrained.objectives.corners import Absolute, Hinge
from fairconstrained.objectives.multinomial import MultinomialLogistic
from fairconstrained.surrogates import SURROGATES

__all__ = [
    "ROW_LOSS_OBJECTIVES",
    "CorrectRate",
    "DecisionRate",
    "ErrorRate",
    "Logistic",
    "NegativeRate",
    "PositiveRate",
    "Scaled",
    "Score",
    "Squared",
    "TruncatedLogistic",
    "ZeroOne",
]


@dataclass(frozen=True)
class Logistic(ConvexLoss):
    """``log(1 + exp(-y s))``."""

    is_smooth_and_convex: ClassVar[bool] = True

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return F.softplus(-targets * scores)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        signs = -targets
        return signs * torch.sigmoid(signs * scores)

    @override
    def curvature(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Second derivative ``p (1 - p)``; of the truncated loss, a bound on it."""
        share = torch.sigmoid(scores)
        return (share * (1 - share)).clamp(min=1e-12)

    @override
    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        share = torch.sigmoid(scores)
        return share * (1 - share)

    @override
    def of_several_classes(self) -> Loss | None:
        return MultinomialLogistic()


@dataclass(frozen=True)
class TruncatedLogistic(Logistic):
    """``a log(1 + l / a)`` of the logistic loss ``l``: large losses, of outliers, grow only like a logarithm.

    Parameters
    ----------
    truncation : float, default=0.5
        The ``a`` above, positive; the loss tends to the logistic one as ``a`` grows.
    """

    is_smooth_and_convex: ClassVar[bool] = False

    truncation: float = 0.5

    def __post_init__(self) -> None:
        check_positive(truncation=self.truncation)

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.truncation * torch.log1p(super().of(scores, targets) / self.truncation)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        return super().slope(scores, targets) / (1 + super().of(scores, targets) / self.truncation)

    @override
    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        return Loss.second_derivative(self, scores, targets)

    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """``l`` and ``l - a log(1 + l/a)``; the second is a convex increasing function of the convex ``l``."""
        loss = super().of(scores, targets)
        return loss, loss - self.truncation * torch.log1p(loss / self.truncation)

    def path(self) -> tuple[Loss, ...]:
        """The convex logistic loss, then this one."""
        return (Logistic(), self)

    @override
    def of_several_classes(self) -> Loss | None:
        return None


@dataclass(frozen=True)
class Squared(ConvexLoss):
    """``(s - y)^2 / 2`` (Example D.1)."""

    is_smooth_and_convex: ClassVar[bool] = True

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return (scores - targets) ** 2 / 2

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        return scores - targets

    @override
    def curvature(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Return one."""
        return torch.ones_like(scores)

    @override
    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        return torch.ones_like(scores)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """``(1 + s) / 2``, clipped to [0, 1]: the least-squares score estimates ``E[y | x]``."""
        return np.clip((1 + scores) / 2, 0, 1)


@dataclass(frozen=True)
class ZeroOne(Loss):
    """``1 / (1 + exp(y s / width))``, a smooth surrogate of the error ``1[y s < 0]``.

    Parameters
    ----------
    width : float, default=0.25
        Width in units of the score, positive.
    """

    width: float = 0.25

    def __post_init__(self) -> None:
        check_positive(width=self.width)

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return torch.sigmoid(-targets * scores / self.width)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        shares = torch.sigmoid(-targets * scores / self.width)
        return -targets * shares * (1 - shares) / self.width

    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Plus a parabola of the largest curvature of the logistic function, ``1 / (6 sqrt(3) width^2)``."""
        parabola = scores**2 / (2 * 6 * np.sqrt(3) * self.width**2)
        return self.of(scores, targets) + parabola, parabola

    def path(self) -> tuple[Loss, ...]:
        """The logistic loss, then this one: wide surrogates of the error predict the majority class everywhere."""
        return (Logistic(), self)

    @override
    def favouring_positives(self, factor: float) -> None:
        return None

    def gains(self, targets: Tensor, weights: Tensor) -> Tensor:
        """The error rate falls by the weight of a row when its label is predicted."""
        return weights * targets


@dataclass(frozen=True)
class DecisionRate(Loss):
    """``1 / (1 + exp(-z s / width))``, a smooth surrogate of the event ``z s > 0`` that a decision makes true.

    Parameters
    ----------
    width : float, default=1.0
        Width in units of the score, positive.
    """

    width: float = 1.0

    def __post_init__(self) -> None:
        check_positive(width=self.width)

    @abstractmethod
    def signs(self, targets: Tensor) -> Tensor | float:
        """The signs ``z`` of the rows: 1 where a positive decision is the event."""

    def with_blur(self, blur: float) -> Self:
        """Return the surrogate whose slope is a logistic distribution of this standard deviation."""
        return replace(self, width=blur / SURROGATES["logistic"].spread)

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return torch.sigmoid(self.signs(targets) * scores / self.width)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        signs = self.signs(targets)
        rates = torch.sigmoid(signs * scores / self.width)
        return signs * rates * (1 - rates) / self.width

    @override
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Plus a parabola, see `ZeroOne.split`."""
        return ZeroOne(self.width).split(scores, -self.signs(targets) * torch.ones_like(scores))


@dataclass(frozen=True)
class PositiveRate(DecisionRate):
    """Share of positive decisions, whatever the targets are."""

    @override
    def signs(self, targets: Tensor) -> float:
        return 1.0


@dataclass(frozen=True)
class NegativeRate(DecisionRate):
    """Share of negative decisions, whatever the targets are."""

    @override
    def signs(self, targets: Tensor) -> float:
        return -1.0


@dataclass(frozen=True)
class CorrectRate(DecisionRate):
    """Share of decisions that equal the label."""

    @override
    def signs(self, targets: Tensor) -> Tensor:
        return targets


@dataclass(frozen=True)
class ErrorRate(DecisionRate):
    """Share of decisions that differ from the label."""

    @override
    def signs(self, targets: Tensor) -> Tensor:
        return -targets


@dataclass(frozen=True)
class Score(ConvexLoss):
    """``offset + scale s``, the score itself in the units of the user.

    Parameters
    ----------
    offset, scale : float, default=0.0 and 1.0
        Numbers that turn a score of the solver into the units of the user.
    """

    is_smooth_and_convex: ClassVar[bool] = True

    offset: float = 0.0
    scale: float = 1.0

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.offset + self.scale * scores

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        return torch.full_like(scores, self.scale)


@dataclass(frozen=True)
class Scaled(Loss):
    """A multiple of another loss, such as one in other units.

    Parameters
    ----------
    loss : Loss
    factor : float
        Positive.
    """

    loss: Loss
    factor: float

    @override
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.factor * self.loss.of(scores, targets)

    @override
    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.factor * self.loss.slope(scores, targets)

    @override
    def curvature(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.factor * self.loss.curvature(scores, targets)

    @property
    def is_smooth_and_convex(self) -> bool:  # type: ignore[override]  # it is if the loss is
        """Whether the loss is."""
        return self.loss.is_smooth_and_convex

    @override
    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        return self.factor * self.loss.second_derivative(scores, targets)

    @property
    def has_corner(self) -> bool:  # type: ignore[override]  # it has if the loss has
        """Whether the loss has one."""
        return self.loss.has_corner

    @override
    def sides(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        left, right = self.loss.sides(targets)
        return self.factor * left, self.factor * right

    @override
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Split the loss, and scale both parts."""
        plus, minus = self.loss.split(scores, targets)
        return self.factor * plus, self.factor * minus


#: The losses of `fairconstrained.metrics.loss_parity_gap` by name. The corner of the hinge is all but sharp, because
#: what is bounded is the loss that is reported.
ROW_LOSS_OBJECTIVES: dict[str, Loss] = {
    "log_loss": Logistic(),
    "hinge": Hinge(smoothing=1e-9),
    "absolute": Absolute(),
    "squared": Squared(),
}
