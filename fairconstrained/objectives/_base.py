"""Objectives, and the losses that are a weighted mean over the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.pairwise import PairTerms
from fairconstrained.views import DifferenceOfConvex, FullBatch, RowLosses, SingleRows, Stochastic

__all__ = ["BoundLoss", "BoundObjective", "Loss", "Objective"]

#: Curvature below which a row's loss is taken as straight, and a positive number for where it is zero everywhere.
_LEAST_CURVATURE, _TINY = 1e-3, 1e-12


@dataclass(frozen=True)
class Objective(ABC):
    """An objective as the user writes it, without data; two are equal if their parameters are."""

    @abstractmethod
    def bind(self, data: FairData) -> BoundObjective:
        """The objective on ``data``."""

    def path(self) -> tuple[Objective, ...]:
        """Objectives to minimise in turn, each from the solution of the one before; the last one is this one.

        An objective that is hard to minimise from an arbitrary start names easier ones here.
        """
        return (self,)

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Probability of the positive class that a score stands for; ndarray of shape (n_samples,).

        Raises
        ------
        NotImplementedError
            For an objective that is not made for classification.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define probabilities.")


@dataclass(frozen=True)
class BoundObjective(FullBatch):
    """An objective on data: a function of the scores.

    Attributes
    ----------
    loss : Objective
        Objective as the user wrote it.
    data : FairData
    name : str
        Name in messages.
    shift : {"groups", "shared"}
        Scores that the exact search over `gains` may move: those of every group on their own, or all alike.
    """

    loss: Objective
    data: FairData
    name: str = "objective"

    shift: ClassVar[Literal["groups", "shared"]] = "groups"

    def curvature(self, scores: Tensor) -> Tensor:
        """Curvature of the objective in every score, for Newton steps that take each row by itself.

        Here the absolute slopes, which no curvature of a logistic loss of pairs exceeds.

        Parameters
        ----------
        scores : Tensor of shape (n_samples,)

        Returns
        -------
        curvature : Tensor of shape (n_samples,)
            Positive.
        """
        with torch.enable_grad():
            at = scores.detach().requires_grad_()
            (slopes,) = torch.autograd.grad(self.values(at, at.new_empty(0)).sum(), at)
        return slopes.abs().clamp(min=_LEAST_CURVATURE * float(slopes.abs().max()) + _TINY)

    @property
    def gains(self) -> Tensor | None:
        """Gain of predicting each row positive, where an exact search over the intercepts finishes the work.

        Returns
        -------
        gains : Tensor of shape (n_samples,) or None
            Gains of the rows; None for an objective that determines the intercepts itself.
        """
        return None

    @property
    def counts_errors(self) -> bool:
        """Whether `gains` are what the objective itself counts, so that the search alone may solve the problem."""
        return self.gains is not None and self.shift == "groups"


@dataclass(frozen=True)
class Loss(Objective):
    """A loss ``l(s, y)`` of one score and one target; the objective is its weighted mean.

    A new loss is a subclass with `of`; with `split` it also serves difference-of-convex solvers.
    """

    #: Whether it is convex in the score and has a second derivative everywhere, see `second_derivative`.
    is_smooth_and_convex: ClassVar[bool] = False

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
        return self.slope(scores, targets).abs().clamp(min=_LEAST_CURVATURE)

    def second_derivative(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Second derivative of `of` with respect to the scores; Tensor of shape (n_samples,)."""
        with torch.enable_grad():
            at = scores.detach().requires_grad_()
            (slopes,) = torch.autograd.grad(self.of(at, targets).sum(), at, create_graph=True)
            bent = slopes.requires_grad  # those of a linear loss are constant
            return torch.autograd.grad(slopes.sum(), at)[0].detach() if bent else torch.zeros_like(scores)

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
        slopes = shares * self.row_loss.slope(values, data.y)
        return float(shares @ self.row_loss.of(values, data.y)), slopes.numpy()

    @override
    def curvature(self, scores: Tensor) -> Tensor:
        return self.shares * self.row_loss.curvature(scores, self.data.y)

    @property
    @override
    def gains(self) -> Tensor | None:
        return self.row_loss.gains(self.data.y, self.shares)

    @override
    def on(self, data: FairData) -> Self:
        return type(self)(self.loss, data)
