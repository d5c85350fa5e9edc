"""Centres and scales of the features, from two passes over rows that may be sparse, in files or in other processes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from fairconstrained.data import FairData
from fairconstrained.features import group_sums, squares, sums_by_group, sums_of_products

__all__ = ["Scales"]

#: Spread of a feature, relative to its size, that is rounding error: that of the mean of very many rows.
_ROUNDING = 1e-12


class Scales(NamedTuple):
    """Centres and scales with which the features of some parts of the rows are standardised."""

    #: Weighted means; 0 for a constant feature, and for all if features are not to be centred.
    centre: np.ndarray  # of shape (n_parts, n_features)
    #: Weighted mean squares of the distances from the centre; 1 for a feature of zeros.
    variance: np.ndarray  # of shape (n_parts, n_features)
    #: Weighted mean squares of the features; 1 for a feature of zeros.
    square: np.ndarray  # of shape (n_parts, n_features)
    #: Whether a feature is constant, up to rounding.
    constant: np.ndarray  # of bool, of shape (n_parts, n_features)

    @property
    def largest(self) -> float:
        """The largest scale of a feature that is not constant; 1 if all are."""
        return float(np.sqrt(np.max(self.variance, where=~self.constant, initial=0.0))) or 1.0

    @classmethod
    def of(cls, data: FairData, parts: Sequence[slice] | None = None, centred: bool = True) -> Scales:
        """Return the scales of the features.

        Parameters
        ----------
        parts : sequence of slice, optional
            Rows of every part; by default all rows are one.
        centred : bool, default=True
            Whether features are to be centred.
        """
        parts = (slice(0, data.n_samples),) if parts is None else parts
        weights = data.weights.numpy()
        total = np.array([[weights[rows].sum()] for rows in parts])
        mean = sums_by_group(data.X, sums_of_products, weights, parts) / total
        distances = [partial(squares, centre=own) for own in mean]
        variance = group_sums(data.X, distances, parts, weights) / total
        square = variance + mean**2
        # a constant feature keeps its own scale; its variance is rounding error
        constant = variance <= _ROUNDING**2 * square
        square = np.where(square > 0, square, 1.0)
        if not centred:
            return cls(np.zeros_like(mean), square, square, constant)
        return cls(np.where(constant, 0.0, mean), np.where(constant, square, variance), square, constant)
