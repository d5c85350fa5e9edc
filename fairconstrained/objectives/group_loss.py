"""Losses with a factor for every group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.objectives._loss import ReweightedLoss

__all__ = ["GroupLoss"]


@dataclass(frozen=True)
class GroupLoss(ReweightedLoss):
    r""":math:`\sum_g a_g \sum_{i \in g} w_i l(s_i, y_i)`, such as the loss of one class, or of the rows with labels.

    Parameters
    ----------
    loss : Loss
        The l above.
    factors : tuple of float
        :math:`a_g`, for every group of the data.
    """

    factors: tuple[float, ...]

    needs_groups: ClassVar[bool] = True

    @override
    def shares(self, data: FairData) -> Tensor:
        return data.weights * torch.tensor(self.factors, dtype=torch.float64)[data.codes]
