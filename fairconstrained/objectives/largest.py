"""The largest of several means of a loss, such as the loss of the worst group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.objectives._base import BoundObjective
from fairconstrained.objectives._loss import Loss
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["BoundLargestMean", "SmoothLargestMean", "WeightedMeans"]

#: Share of the largest mean at scores of zero by which the largest mean is rounded up, at most.
_ROUNDED = 0.005


@dataclass(frozen=True, eq=False)
class BoundLargestMean(BoundObjective, Stochastic):
    r""":math:`\max_g L_g`, the largest of several means of the losses of rows.

    On a mini-batch it is the largest mean there, which is larger than that of all rows on average.

    Attributes
    ----------
    loss : Loss
        Loss of a row.
    means : RowLosses and Stochastic
        The means; its components are :math:`L_g`.
    """

    loss: Loss
    means: Any = None

    @property
    @override
    def largest_of(self) -> Any:
        return self.means

    @override
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return self.means.values(scores, aux).max().reshape(1)

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, means=self.means.on(data), data=data)

    def means_at(self, scores: np.ndarray) -> np.ndarray:
        """The means at some scores; ndarray of shape (n_means,)."""
        losses = self.means.row_loss.of(torch.from_numpy(scores), self.data.y).numpy()
        return self.means.of_losses(losses, np.empty(0))

    @override
    def smoothed(self) -> BoundObjective:
        """The largest mean, rounded where two are as large: by a share of that of scores that are zero."""
        means = self.means_at(np.zeros(self.data.n_samples))
        sharpness = np.log(max(means.size, 2)) / (_ROUNDED * float(means.max()))
        return SmoothLargestMean(self.loss, self.data, means=self.means, sharpness=sharpness)

    def weighted(self, weights: np.ndarray) -> WeightedMeans:
        """Return the sum of the means with these weights, an ndarray of shape (n_means,)."""
        return WeightedMeans(self.loss, self.data, means=self.means, weights=weights)


@dataclass(frozen=True, eq=False)
class SmoothLargestMean(BoundLargestMean):
    r""":math:`\frac{1}{\beta} \log \sum_g \exp(\beta L_g)`, which exceeds the largest mean by its logarithm at most.

    Its slopes are those of a sum of the means with weights :math:`p_g \propto \exp(\beta L_g)`.
    """

    #: The factor :math:`\beta`.
    sharpness: float = 1.0

    @override
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        means = self.means.values(scores, aux)
        return (torch.logsumexp(self.sharpness * means, dim=0) / self.sharpness).reshape(1)

    @override
    def smoothed(self) -> BoundObjective:
        return self

    @override
    def curvature(self, scores: Tensor) -> Tensor:
        """Curvature of the sum of the means with their present weights."""
        shares = softmax(self.sharpness * self.means_at(scores.detach().numpy()))
        weights, _ = self.means.row_weights(shares)
        return torch.from_numpy(weights) * self.means.row_loss.curvature(scores.detach(), self.data.y)


@dataclass(frozen=True, eq=False)
class WeightedMeans(BoundObjective, RowLosses, Stochastic):
    r""":math:`\sum_g p_g L_g`, several means of the losses of rows with weights.

    Attributes
    ----------
    loss : Loss
        Loss of a row.
    means : RowLosses and Stochastic
        The means; its components are :math:`L_g`.
    weights : ndarray of shape (n_means,)
        :math:`p_g`, at least 0.
    """

    loss: Loss
    means: Any = None
    weights: Any = None

    @property
    @override
    def row_loss(self) -> Loss:
        return self.means.row_loss

    @override
    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        return np.array([self.weights @ self.means.of_losses(losses, aux)])

    @override
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.means.row_weights(multipliers[0] * self.weights)

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, means=self.means.on(data), data=data)
