"""The first two moments of feature rows, which can be gathered chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from fairconstrained.features import sums_of_products, weighted_gram

__all__ = ["Moments"]


@dataclass(frozen=True, eq=False)
class Moments:
    """Weight, weighted mean and weighted covariance of some rows.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    mean : ndarray of shape (n_features,)
    covariance : ndarray of shape (n_features, n_features)
        Covariance with the weights divided by their sum, without a correction for degrees of freedom.
    """

    weight: float
    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, X: Any, weights: np.ndarray) -> Self:
        """Return the moments of the rows of ``X``, an ndarray or a CSR matrix of shape (n_samples, n_features)."""
        total = float(weights.sum())
        mean = sums_of_products(X, weights) / total
        return cls(total, mean, weighted_gram(X, weights / total, mean))

    def merged(self, other: Self) -> Self:
        """Return the moments of the rows of both."""
        weight = self.weight + other.weight
        share = other.weight / weight
        difference = other.mean - self.mean
        covariance = (1 - share) * self.covariance + share * other.covariance
        covariance += share * (1 - share) * np.outer(difference, difference)
        return type(self)(weight, self.mean + share * difference, covariance)
