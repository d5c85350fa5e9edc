"""Sets of parameters with a Euclidean projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

__all__ = ["Box", "Domain", "L1Ball", "L2Ball", "NonNegative", "Simplex"]


class Domain(ABC):
    """A closed convex set."""

    @abstractmethod
    def project(self, x: np.ndarray) -> np.ndarray:
        """The point of the set nearest to ``x``; ndarray of the same shape."""


def _positive(value: float, name: str) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value}.")


@dataclass(frozen=True)
class L2Ball(Domain):
    """``{x : |x|_2 <= radius}``."""

    radius: float

    def __post_init__(self) -> None:
        _positive(self.radius, "radius")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Scale back to the sphere when outside."""
        norm = float(np.linalg.norm(x))
        return x if norm <= self.radius else x * (self.radius / norm)


@dataclass(frozen=True)
class Box(Domain):
    """``{x : lower <= x <= upper}``, entry by entry."""

    lower: float | np.ndarray
    upper: float | np.ndarray

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.lower) > np.asarray(self.upper)):
            raise ValueError("Box needs lower <= upper in every entry.")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Clip."""
        return np.clip(x, self.lower, self.upper)


@dataclass(frozen=True)
class NonNegative(Domain):
    """``{x : x >= 0}``."""

    def project(self, x: np.ndarray) -> np.ndarray:
        """Clip at zero."""
        return np.maximum(x, 0.0)


@dataclass(frozen=True)
class Simplex(Domain):
    """``{x : x >= 0, sum(x) = total}``."""

    total: float = 1.0

    def __post_init__(self) -> None:
        _positive(self.total, "total")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Shift all entries by one amount and clip at zero; the amount by sorting, O(d log d).

        References
        ----------
        Duchi, Shalev-Shwartz, Singer, Chandra (2008), Efficient projections onto the l1-ball, Figure 1.
        """
        descending = np.sort(x, axis=None)[::-1]
        shifts = (np.cumsum(descending) - self.total) / np.arange(1, x.size + 1)
        return np.maximum(x - shifts[np.count_nonzero(descending > shifts) - 1], 0.0)


@dataclass(frozen=True)
class L1Ball(Domain):
    """``{x : |x|_1 <= radius}``."""

    radius: float

    def __post_init__(self) -> None:
        _positive(self.radius, "radius")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Project the magnitudes onto the simplex when outside; O(d log d)."""
        magnitudes = np.abs(x)
        if magnitudes.sum() <= self.radius:
            return x
        return np.copysign(Simplex(self.radius).project(magnitudes), x)
