"""Rules by which the means of groups are compared, each of which makes one number of them that a bound limits."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from fairconstrained.metrics.rates import AGGREGATES

__all__ = ["RULES", "Reference", "Rule", "gap_of_pairs"]

Reference = Literal["pairwise", "overall", "excess", "ratio", "floor", "ceiling"]


class Rule(ABC):
    """A rule; means have the shape (..., n_signs, n_groups), those of all rows (..., n_signs)."""

    #: Whether a single group has anything to be compared with.
    works_on_one_group: ClassVar[bool] = False
    #: Whether groups are compared with all rows, as a single one of a membership can be, too.
    compares_with_all: ClassVar[bool] = False
    #: Whether the number is bounded from below.
    is_floor: ClassVar[bool] = False
    #: Whether the number is the same in whichever unit the means are.
    is_relative: ClassVar[bool] = False

    @abstractmethod
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        """Return the number of every group; ndarray of shape (..., n_groups)."""

    def value(self, means: np.ndarray, overall: np.ndarray, agg: str) -> Any:
        """Return the one number of all groups; ndarray of shape (...)."""
        return AGGREGATES[agg](self.by_group(means, overall), axis=-1)


class _Pairwise(Rule):
    """Differences of all pairs of groups."""

    @override
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        # The largest differences are those to the ends, so that no pair has to be formed.
        above, below = means - means.min(axis=-1, keepdims=True), means.max(axis=-1, keepdims=True) - means
        return np.maximum(above, below).max(axis=-2)

    @override
    def value(self, means: np.ndarray, overall: np.ndarray, agg: str) -> Any:
        return gap_of_pairs(means, agg)


def gap_of_pairs(means: np.ndarray, agg: str) -> Any:
    """Return the aggregate of the gaps of all pairs of groups, each the largest over the signs; ndarray of shape (...).

    Parameters
    ----------
    means : ndarray of shape (..., n_signs, n_groups)
    agg : {"max", "mean"}
        "mean" needs two groups.
    """
    if agg == "max":  # needs no pairs
        return np.ptp(means, axis=-1).max(axis=-1)
    first, second = _pairs(means)
    return AGGREGATES[agg](np.abs(first - second).max(axis=-2), axis=-1)


class _Overall(Rule):
    """Differences of every group from all rows."""

    compares_with_all: ClassVar[bool] = True

    @override
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        return np.abs(means - overall[..., None]).max(axis=-2)


class _Excess(Rule):
    """Excess of every group over all rows; negative if the group's mean is lower."""

    compares_with_all: ClassVar[bool] = True

    @override
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        return (means - overall[..., None]).max(axis=-2)


class _Ratio(Rule):
    """One minus the ratio of the smaller mean of two groups to the larger; zeros are as large as each other.

    NaN where all means are zero, and where one is negative, as a mean of scores may be.
    """

    is_relative: ClassVar[bool] = True

    @override
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        means = _defined(means)
        least, most = means.min(axis=-1, keepdims=True), means.max(axis=-1, keepdims=True)
        return (1 - np.fmin(_quotient(means, most), _quotient(least, means))).max(axis=-2)

    @override
    def value(self, means: np.ndarray, overall: np.ndarray, agg: str) -> Any:
        if agg == "max":
            return super().value(means, overall, agg)
        first, second = _pairs(_defined(means))
        ratios = _quotient(np.minimum(first, second), np.maximum(first, second))
        return AGGREGATES[agg]((1 - ratios).max(axis=-2), axis=-1)


def _defined(means: np.ndarray) -> np.ndarray:
    """The means whose ratios exist; NaN in place of others."""
    return np.where((means < 0) | ~means.any(axis=(-2, -1), keepdims=True), np.nan, means)


def _quotient(smaller: np.ndarray, larger: np.ndarray) -> np.ndarray:
    """Return a ratio of numbers that are not negative; 1 of two zeros."""
    return np.divide(smaller, larger, out=np.ones(np.broadcast_shapes(smaller.shape, larger.shape)), where=larger != 0)


class _Ceiling(Rule):
    """The largest mean."""

    works_on_one_group: ClassVar[bool] = True

    @override
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        return means.max(axis=-2)


class _Floor(Rule):
    """The least mean."""

    works_on_one_group: ClassVar[bool] = True
    is_floor: ClassVar[bool] = True

    @override
    def by_group(self, means: np.ndarray, overall: np.ndarray) -> np.ndarray:
        return means.min(axis=-2)

    @override
    def value(self, means: np.ndarray, overall: np.ndarray, agg: str) -> Any:
        return self.by_group(means, overall).min(axis=-1)


def _pairs(means: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means of the first and of the second group of every pair."""
    first, second = np.triu_indices(means.shape[-1], 1)
    return means[..., first], means[..., second]


#: The rules by the name of what a group is compared with.
RULES: dict[Reference, Rule] = {
    "pairwise": _Pairwise(),
    "overall": _Overall(),
    "excess": _Excess(),
    "ratio": _Ratio(),
    "floor": _Floor(),
    "ceiling": _Ceiling(),
}
