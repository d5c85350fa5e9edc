"""Weights of the classes in an objective."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from fairconstrained.checks.messages import is_number
from fairconstrained.data import FairData

__all__ = ["ClassWeights"]


@dataclass(frozen=True)
class ClassWeights:
    """Factors with which the rows of each class count, only in an objective; constraints take the rows as they are.

    Parameters
    ----------
    factors : tuple of float, default=(1.0, 1.0)
        Factors by class, not negative; with two classes, the factor of the negatives comes first. Only their ratios
        matter: the weights of all rows still sum to one.
    balanced : bool, default=False
        Whether all classes weigh alike in total before the factors.

    Raises
    ------
    ValueError
        If a factor is negative or not finite, or all of them are 0.
    """

    factors: tuple[float, ...] = (1.0, 1.0)
    balanced: bool = False

    def __post_init__(self) -> None:
        if not all(is_number(factor) and factor >= 0 for factor in self.factors) or not any(self.factors):
            raise ValueError(
                f"factors must be finite numbers of at least 0, one for each class and not all 0; got {self.factors!r}."
            )

    @property
    def is_even(self) -> bool:
        """Whether every row counts as it is."""
        return len(set(self.factors)) == 1 and not self.balanced

    def on(self, data: FairData) -> ClassWeights:
        """The factors that some rows have, which other rows may then have too, such as those of a mini-batch.

        Raises
        ------
        ValueError
            If the factor is 0 for every class that has rows.
        """
        masses = torch.bincount(self._classes(data), data.weights, minlength=len(self.factors))
        factors = torch.tensor(self.factors, dtype=torch.float64)
        if self.balanced and masses.all():
            factors = factors / masses
        mean = factors @ masses
        if not mean:
            raise ValueError(
                f"the factors {self.factors!r} of the classes leave no weight to any row: {int((masses > 0).sum())} of "
                "the classes have rows, and their factors are 0. Give one of them a positive factor, or add rows of "
                "another class."
            )
        return ClassWeights(tuple((factors / mean).tolist()))

    def of_rows(self, data: FairData) -> Tensor:
        """The weights of rows times the factors, as they are; Tensor of shape (n_samples,)."""
        if self.is_even:
            return data.weights
        return data.weights * torch.tensor(self.factors, dtype=torch.float64)[self._classes(data)]

    def __mul__(self, other: ClassWeights) -> ClassWeights:
        """Both factors at once."""
        factors = tuple(own * more for own, more in zip(self.factors, other.factors, strict=True))
        return ClassWeights(factors, self.balanced or other.balanced)

    def _classes(self, data: FairData) -> Tensor:
        """Number of the class of every row; targets of two classes are -1 and 1."""
        return (data.y > 0).long() if len(self.factors) == 2 else data.y.long()
