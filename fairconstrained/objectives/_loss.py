"""Losses that are a weighted mean over the rows, and those with weights of their own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.objectives._base import LEAST_CURVATURE, BoundObjective, Objective, of_rows
from fairconstrained.objectives.class_weights import ClassWeights
from fairconstrained.pairwise import PairTerms
from fairconstrained.views import DifferenceOfConvex, RowLosses, SingleRows, Stochastic

__all__ = ["BoundLoss", "BoundReweightedLoss", "ClassLoss", "ConvexLoss", "Loss", "ReweightedLoss"]


@dataclass(frozen=True)
class Loss(Objective):
    """A loss ``l(s, y)`` of one score and one target; the objective is its weighted mean.

    A new loss is a subclass with `of` and `split`, or one of `ConvexLoss` with `of` alone.
    """

    #: Whether the loss is convex in the score and has a second derivative everywhere, see `second_derivative`.
    is_smooth_and_convex: ClassVar[bool] = False
    #: Whether the loss is convex and straight but for a corner at the target, see `sides`.
    has_corner: ClassVar[bool] = False

    @abstractmethod
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Loss of every row; Tensor of shape (n_samples,)."""

    def slope(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Derivative of `of` with respect to the scores; Tensor of shape (n_samples,)."""
        with torch.enable_grad():
            scores = scores.detach().requires_grad_()
            return torch.autograd.grad(self.of(scores, targets).sum(), scores)[0]

    def curvature(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Positive curvature of every row's loss for a Newton step, or a bound on it; Tensor of shape (n_samples,).

        Here the absolute slope: the step of a row is then 1 at most, also where the loss has a corner.
        """
        return self.slope(scores, targets).abs().clamp(min=LEAST_CURVATURE)

    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Second derivative of `of` with respect to the scores; Tensor of shape (n_samples,)."""
        with torch.enable_grad():
            at = scores.detach().requires_grad_()
            (slopes,) = torch.autograd.grad(self.of(at, targets).sum(), at, create_graph=True)
            bent = slopes.requires_grad  # those of a linear loss are constant
            return torch.autograd.grad(slopes.sum(), at)[0].detach() if bent else torch.zeros_like(scores)

    def sides(self, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Slopes to the left and to the right of the corner, where `has_corner`; two Tensors of shape (n_samples,)."""
        raise NotImplementedError(f"{type(self).__name__} has no corner at the target.")

    def newton_curvature(self, scores: Tensor, targets: Tensor, duals: Tensor) -> Tensor:
        """Curvature for a Newton step in which the slopes of the rows are variables of their own; (n_samples,).

        Here the second derivative, whatever these variables are.
        """
        return self.second_derivative(scores, targets)

    def admissible(self, duals: Tensor, targets: Tensor) -> Tensor:
        """Return the slopes of rows, moved to where they can be slopes of the loss; here as they are."""
        return duals

    def floor(self, scores: Tensor, targets: Tensor, duals: Tensor) -> Tensor:
        """Values at the scores of lines with these slopes that are nowhere above the loss; here the loss."""
        return self.of(scores, targets)

    @abstractmethod
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Two losses, convex in the scores, whose difference is `of`."""

    def gains(self, targets: Tensor, weights: Tensor) -> Tensor | None:
        """Gain of predicting each row positive, for a loss that counts errors; None for the others.

        Such a loss is minimised over the intercepts by an exact search once the solver has finished.
        """
        return None

    @override
    def path(self) -> tuple[Loss, ...]:
        return (self,)

    def bind(self, data: FairData) -> BoundLoss:
        """The weighted mean of this loss over ``data``."""
        return BoundLoss(self, data)

    @override
    def weighing_classes(self, classes: ClassWeights) -> Loss:
        return self if classes.is_even else ClassLoss(self, classes)

    @override
    def favouring_positives(self, factor: float) -> Loss | None:
        return self.weighing_classes(ClassWeights((1.0, factor)))

    @override
    def of_several_classes(self) -> Loss | None:
        return None


@dataclass(frozen=True)
class ConvexLoss(Loss):
    """A loss that is convex in the score, so that it needs no other one to be subtracted."""

    @override
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        losses = self.of(scores, targets)
        return losses, torch.zeros_like(losses)


@dataclass(frozen=True)
class BoundLoss(BoundObjective, RowLosses, DifferenceOfConvex, SingleRows, Stochastic):
    """``sum_i weights_i l(s_i, y_i)`` (the empirical loss, eq. 79 of the partial fairness paper)."""

    loss: Loss

    @property
    @override
    def row_loss(self) -> Loss:
        return self.loss

    @property
    def shares(self) -> Tensor:
        """Weight of every row in the loss; Tensor of shape (n_samples,)."""
        return self.data.weights

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """Implement `RowLosses.of_losses`; one component."""
        return np.array([self.shares.numpy() @ losses])

    @override
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return multipliers[0] * self.shares.numpy(), np.empty(0)

    @override
    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        return (self.shares @ self.row_loss.split(scores, self.data.y)[0]).reshape(1)

    @override
    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        return (self.shares @ self.row_loss.split(scores, self.data.y)[1]).reshape(1)

    def pair_terms(self) -> PairTerms:
        """Return a component without any pairs."""
        return PairTerms.none(self.shares)

    @override
    def row_mean(self, scores: np.ndarray, data: FairData) -> tuple[float, np.ndarray]:
        shares, values = self.on(data).shares, torch.from_numpy(scores)
        slopes = of_rows(shares, self.row_loss.slope(values, data.y))
        return float(shares @ self.row_loss.of(values, data.y)), slopes.numpy()

    @override
    def curvature(self, scores: Tensor) -> Tensor:
        return of_rows(self.shares, self.row_loss.curvature(scores, self.data.y))

    @property
    @override
    def gains(self) -> Tensor | None:
        return self.row_loss.gains(self.data.y, self.shares)

    @override
    def on(self, data: FairData) -> Self:
        return type(self)(self.loss, data)


@dataclass(frozen=True)
class ReweightedLoss(Loss):
    r""":math:`\sum_i a_i w_i l(s_i, y_i)` with a factor for every row; a subclass says which one."""

    #: The l above.
    loss: Loss

    @abstractmethod
    def shares(self, data: FairData) -> Tensor:
        """The weights :math:`a_i w_i`; Tensor of shape (n_samples,)."""

    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Implement `Loss.of`; that of ``loss``."""
        return self.loss.of(scores, targets)

    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Implement `Loss.split`; that of ``loss``."""
        return self.loss.split(scores, targets)

    def gains(self, targets: Tensor, weights: Tensor) -> Tensor | None:
        """Implement `Loss.gains`; that of ``loss``."""
        return self.loss.gains(targets, weights)

    def path(self) -> tuple[Self, ...]:
        """The path of ``loss``, with the same factors."""
        return tuple(replace(self, loss=loss) for loss in self.loss.path())

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Implement `Objective.probability` by that of ``loss``."""
        return self.loss.probability(scores)

    @override
    def favouring_positives(self, factor: float) -> Loss | None:
        return None

    @override
    def bind(self, data: FairData) -> BoundLoss:
        return BoundReweightedLoss(self, data)


@dataclass(frozen=True)
class BoundReweightedLoss(BoundLoss):
    """The loss on data."""

    loss: ReweightedLoss

    @property
    def row_loss(self) -> Loss:
        """Implement `RowLosses.row_loss`; without the factors, so that others may share it."""
        return self.loss.loss

    @cached_property
    @override
    def shares(self) -> Tensor:
        return self.loss.shares(self.data)


@dataclass(frozen=True)
class ClassLoss(ReweightedLoss):
    r""":math:`\sum_i a_{y_i} w_i l(s_i, y_i) / \sum_i a_{y_i} w_i`, a mean in which one class weighs more.

    Parameters
    ----------
    loss : Loss
        The l above.
    classes : ClassWeights
        The factors :math:`a_y` of the classes.
    """

    classes: ClassWeights

    @override
    def shares(self, data: FairData) -> Tensor:
        return self.classes.of_rows(data)

    @override
    def bind(self, data: FairData) -> BoundLoss:
        # Mini-batches have the factors of all rows.
        return super(ClassLoss, replace(self, classes=self.classes.on(data))).bind(data)

    @override
    def weighing_classes(self, classes: ClassWeights) -> ClassLoss:
        return replace(self, classes=self.classes * classes)

    @override
    def favouring_positives(self, factor: float) -> Loss | None:
        return None if self.loss.favouring_positives(factor) is None else Loss.favouring_positives(self, factor)

    @override
    def of_several_classes(self) -> Loss | None:
        loss = self.loss.of_several_classes()
        return None if loss is None else replace(self, loss=loss)
