"""Weights of the two classes in an objective."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairconstrained.data import FairData

__all__ = ["ClassWeights"]


@dataclass(frozen=True)
class ClassWeights:
    """Factors with which the rows of each class count, only in an objective; constraints take the rows as they are.

    Parameters
    ----------
    negative, positive : float, default=1.0
        Factors, not negative. Only their ratio matters: the weights of all rows still sum to one.
    balanced : bool, default=False
        Whether both classes weigh alike in total before the factors.
    """

    negative: float = 1.0
    positive: float = 1.0
    balanced: bool = False

    @property
    def is_even(self) -> bool:
        """Whether every row counts as it is."""
        return self.negative == self.positive and not self.balanced

    def on(self, data: FairData) -> ClassWeights:
        """The factors that some rows have, which other rows may then have too, such as those of a mini-batch."""
        positive = float(data.weights[data.y > 0].sum())
        negative = float(data.weights[data.y < 0].sum())
        factors = [self.negative, self.positive]
        if self.balanced and negative and positive:
            factors = [self.negative / negative, self.positive / positive]
        mean = factors[0] * negative + factors[1] * positive
        return ClassWeights(factors[0] / mean, factors[1] / mean)

    def of_rows(self, data: FairData) -> Tensor:
        """The weights of rows times the factors, as they are; Tensor of shape (n_samples,)."""
        if self.is_even:
            return data.weights
        return data.weights * torch.where(data.y > 0, self.positive, self.negative)

    def __mul__(self, other: ClassWeights) -> ClassWeights:
        """Both factors at once."""
        balanced = self.balanced or other.balanced
        return ClassWeights(self.negative * other.negative, self.positive * other.positive, balanced)
