"""The contract of an objective, and the losses that are a weighted mean over the rows."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic

__all__ = ["BoundObjective", "Loss"]


@dataclass(frozen=True)
class Loss:
    """A loss ``l(s, y)`` of one score and one target.

    A new loss is a subclass with `of`; with `split` it also serves difference-of-convex solvers.
    """

    @abstractmethod
    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Loss of every row; Tensor of shape (n_samples,)."""

    @abstractmethod
    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Two losses, convex in the scores, whose difference is `of`."""

    def path(self) -> tuple[Loss, ...]:
        """Losses to minimise one after the other, each from the last one's solution; the last is this one.

        A loss that is hard to minimise from nowhere names easier ones here.
        """
        return (self,)

    def gains(self, targets: Tensor, weights: Tensor) -> Tensor | None:
        """What predicting each row positive is worth, for a loss that counts errors; None for the others.

        Such a loss is minimised over the intercepts by an exact search once the solver has finished.
        """
        return None

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Probability of the positive class that a score stands for; ndarray of shape (n_samples,).

        Raises
        ------
        NotImplementedError
            For a loss that is not made for classification.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define probabilities.")

    def bind(self, data: FairData) -> BoundObjective:
        """The weighted mean of this loss over ``data``."""
        return BoundObjective(self, data)


@dataclass(frozen=True)
class BoundObjective(FullBatch, DifferenceOfConvex, Stochastic):
    """``sum_i weights_i l(s_i, y_i)`` (the empirical loss, eq. 79 of the partial fairness paper)."""

    loss: Loss
    data: FairData
    name: str = "objective"

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """See `FullBatch.values`; one component."""
        return (self.data.weights @ self.loss.of(scores, self.data.y)).reshape(1)

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """See `DifferenceOfConvex.plus`."""
        return (self.data.weights @ self.loss.split(scores, self.data.y)[0]).reshape(1)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """See `DifferenceOfConvex.minus`."""
        return (self.data.weights @ self.loss.split(scores, self.data.y)[1]).reshape(1)

    @property
    def counts_errors(self) -> bool:
        """Whether an exact search over the intercepts finishes the work, see `Loss.gains`."""
        return self.loss.gains(self.data.y, self.data.weights) is not None

    def on(self, data: FairData) -> Self:
        """See `Stochastic.on`."""
        return type(self)(self.loss, data)
