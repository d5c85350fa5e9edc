"""Losses with a factor for every group."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.objectives._base import BoundLoss, Loss

__all__ = ["GroupLoss"]


@dataclass(frozen=True)
class GroupLoss(Loss):
    r""":math:`\sum_g a_g \sum_{i \in g} w_i l(s_i, y_i)`, such as the loss of one class, or of the rows with labels.

    Parameters
    ----------
    loss : Loss
        The l above.
    factors : tuple of float
        :math:`a_g`, for every group of the data.
    """

    loss: Loss
    factors: tuple[float, ...]

    def of(self, scores: Tensor, targets: Tensor) -> Tensor:
        """Implement `Loss.of`; that of ``loss``."""
        return self.loss.of(scores, targets)

    def split(self, scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Implement `Loss.split`; that of ``loss``."""
        return self.loss.split(scores, targets)

    def gains(self, targets: Tensor, weights: Tensor) -> Tensor | None:
        """Implement `Loss.gains`; that of ``loss``."""
        return self.loss.gains(targets, weights)

    def path(self) -> tuple[GroupLoss, ...]:
        """The path of ``loss``, with the same factors."""
        return tuple(replace(self, loss=loss) for loss in self.loss.path())

    def probability(self, scores: np.ndarray) -> np.ndarray:
        """Implement `Objective.probability` by that of ``loss``."""
        return self.loss.probability(scores)

    @override
    def bind(self, data: FairData) -> BoundLoss:
        return BoundGroupLoss(self, data)


@dataclass(frozen=True)
class BoundGroupLoss(BoundLoss):
    """The loss on data."""

    loss: GroupLoss

    @property
    def row_loss(self) -> Loss:
        """Implement `RowLosses.row_loss`; without the factors, so that others may share it."""
        return self.loss.loss

    @cached_property
    @override
    def shares(self) -> Tensor:
        return self.data.weights * torch.tensor(self.loss.factors, dtype=torch.float64)[self.data.codes]
