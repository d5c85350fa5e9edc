"""Sets of parameters with a Euclidean projection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from typing_extensions import override

from fairconstrained.checks.messages import check_positive
from fairconstrained.exceptions import IncompatibleProblem

#: Steps of Newton's method that a projection may take, and by how much of a radius it may end outside.
_NEWTON_STEPS, _ROUNDING = 100, 1e-12

__all__ = ["Box", "Domain", "L1Ball", "L2Ball", "NonNegative", "Polyhedron", "Product", "Simplex"]


class Polyhedron(NamedTuple):
    """``{x : A (x, u) <= b, lower <= (x, u) <= upper for some u}``, for linear programs.

    Attributes
    ----------
    A : sparse array of shape (n_rows, n + n_extra)
    b : ndarray of shape (n_rows,)
    lower, upper : ndarray of shape (n + n_extra,)
        Infinite where there is no bound.
    """

    A: Any
    b: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @classmethod
    def box(cls, lower: Any, upper: Any, n: int) -> Polyhedron:
        """Bounds alone, on ``n`` entries."""
        return cls(sp.csr_array((0, n)), np.empty(0), np.full(n, lower, dtype=float), np.full(n, upper, dtype=float))


class Domain(ABC):
    """A closed convex set."""

    @property
    def is_polyhedral(self) -> bool:
        """Whether linear inequalities describe the set, so that it has a `polyhedron`."""
        return type(self).polyhedron is not Domain.polyhedron

    @abstractmethod
    def project(self, x: np.ndarray) -> np.ndarray:
        """The point of the set nearest to ``x``; ndarray of the same shape."""

    def scaled(self, factors: np.ndarray) -> Domain | None:
        """The set of all ``factors * x``, with a Euclidean projection; None if that is not known.

        Parameters
        ----------
        factors : ndarray of shape (n,)
            Positive.
        """
        return None

    def polyhedron(self, n: int) -> Polyhedron:
        """The set in ``n`` dimensions by linear inequalities, for solvers that solve linear programs.

        Raises
        ------
        IncompatibleProblem
            If the set has curved sides.
        """
        raise IncompatibleProblem(
            f"{self} has curved sides, but this solver's linear programs need a domain of linear inequalities: "
            "L1Ball, Box, NonNegative, Simplex, or a Product of those."
        )


@dataclass(frozen=True)
class _Ball(Domain):
    """Points whose norm is at most ``radius``."""

    radius: float

    def __post_init__(self) -> None:
        check_positive(radius=self.radius)


@dataclass(frozen=True)
class L2Ball(_Ball):
    """``{x : |x|_2 <= radius}``.

    Parameters
    ----------
    radius : float
        Positive.

    Raises
    ------
    ValueError
        If ``radius`` is not positive.
    """

    def project(self, x: np.ndarray) -> np.ndarray:
        """Scale back to the sphere when outside."""
        norm = float(np.linalg.norm(x))
        return x if norm <= self.radius else x * (self.radius / norm)

    def scaled(self, factors: np.ndarray) -> Domain:
        """An ellipsoid."""
        return _Ellipsoid(self.radius * factors)


@dataclass(frozen=True)
class _Ellipsoid(Domain):
    """``{x : |x / lengths|_2 <= 1}``."""

    lengths: np.ndarray

    def __repr__(self) -> str:
        return f"ellipsoid with half axes of {self.lengths.min():.3g} to {self.lengths.max():.3g}"

    def project(self, x: np.ndarray) -> np.ndarray:
        """``x / (1 + multiplier / lengths**2)``, with the multiplier by Newton's method.

        References
        ----------
        Moré, Sorensen (1983), Computing a trust region step, section 3: the inverse of the norm is almost linear in the
        multiplier, and Newton's method comes from below.
        """
        inside = x / self.lengths
        if np.linalg.norm(inside) <= 1:
            return x
        unit = self.lengths.max()
        squares, multiplier = (self.lengths / unit) ** 2, 0.0
        for _ in range(_NEWTON_STEPS):
            damped = inside * squares / (squares + multiplier)
            norm = float(np.linalg.norm(damped))
            if norm <= 1 + _ROUNDING:
                break
            multiplier += (norm - 1) * norm**2 / float(damped**2 @ (1 / (squares + multiplier)))
        return self.lengths * damped / max(norm, 1.0)

    @override
    def scaled(self, factors: np.ndarray) -> Domain:
        return _Ellipsoid(self.lengths * factors)


@dataclass(frozen=True)
class Box(Domain):
    """``{x : lower <= x <= upper}``, entry by entry.

    Parameters
    ----------
    lower, upper : float or ndarray of shape (n,)
        Bounds of every entry; infinite where there is none. A number is the bound of all entries.

    Raises
    ------
    ValueError
        If an entry of ``lower`` is larger than that of ``upper``.
    """

    lower: float | np.ndarray
    upper: float | np.ndarray

    def __post_init__(self) -> None:
        if np.any(np.asarray(self.lower) > np.asarray(self.upper)):
            raise ValueError("Box needs lower <= upper in every entry.")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Clip."""
        return np.clip(x, self.lower, self.upper)

    def scaled(self, factors: np.ndarray) -> Domain:
        """Another box."""
        return Box(self.lower * factors, self.upper * factors)

    def polyhedron(self, n: int) -> Polyhedron:
        """Bounds."""
        return Polyhedron.box(self.lower, self.upper, n)


@dataclass(frozen=True)
class NonNegative(Domain):
    """``{x : x >= 0}``."""

    def project(self, x: np.ndarray) -> np.ndarray:
        """Clip at zero."""
        return np.maximum(x, 0.0)

    def scaled(self, factors: np.ndarray) -> Domain:
        """Return the set itself."""
        return self

    def polyhedron(self, n: int) -> Polyhedron:
        """Bounds."""
        return Polyhedron.box(0.0, np.inf, n)


@dataclass(frozen=True)
class Simplex(Domain):
    """``{x : x >= 0, sum(x) = total}``.

    Parameters
    ----------
    total : float, default=1.0
        Positive.

    Raises
    ------
    ValueError
        If ``total`` is not positive.
    """

    total: float = 1.0

    def __post_init__(self) -> None:
        check_positive(total=self.total)

    def project(self, x: np.ndarray) -> np.ndarray:
        """Shift all entries by one amount and clip at zero; the amount by sorting, O(d log d).

        References
        ----------
        Duchi, Shalev-Shwartz, Singer, Chandra (2008), Efficient projections onto the l1-ball, Figure 1.
        """
        return self.scaled(np.ones_like(x)).project(x)

    def scaled(self, factors: np.ndarray) -> Domain:
        """``{x : x >= 0, sum(x / factors) = total}``."""
        return _WeightedSimplex(1 / factors, self.total)

    def polyhedron(self, n: int) -> Polyhedron:
        """Bounds, and the sum from above and from below."""
        total = sp.csr_array(np.stack([np.ones(n), -np.ones(n)]))
        return Polyhedron.box(0.0, np.inf, n)._replace(A=total, b=np.array([self.total, -self.total]))


@dataclass(frozen=True)
class _WeightedSimplex(Domain):
    """``{x : x >= 0, weights @ x = total}``."""

    weights: np.ndarray
    total: float

    @override
    def project(self, x: np.ndarray) -> np.ndarray:
        return _nearest_of_sum(x, self.weights, self.total)


@dataclass(frozen=True)
class _WeightedL1Ball(Domain):
    """``{x : weights @ |x| <= radius}``."""

    weights: np.ndarray
    radius: float

    @override
    def project(self, x: np.ndarray) -> np.ndarray:
        magnitudes = np.abs(x)
        if float((self.weights * magnitudes).sum()) <= self.radius:
            return x
        return np.copysign(_nearest_of_sum(magnitudes, self.weights, self.radius), x)

    @override
    def scaled(self, factors: np.ndarray) -> Domain:
        return _WeightedL1Ball(self.weights / factors, self.radius)

    @override
    def polyhedron(self, n: int) -> Polyhedron:
        unit = sp.csr_array(sp.eye(n))
        total = sp.csr_array(np.concatenate([self.weights, 2 * self.weights])[None])
        lower = np.concatenate([np.full(n, -np.inf), np.zeros(n)])
        return Polyhedron(
            sp.vstack([sp.hstack([-unit, -unit]), total], format="csr"),
            np.append(np.zeros(n), self.radius),
            lower,
            np.full(2 * n, np.inf),
        )


def _nearest_of_sum(x: np.ndarray, weights: np.ndarray, total: float) -> np.ndarray:
    """The nearest point to ``x`` of non-negative entries with ``weights @ point = total``, see `Simplex.project`."""
    order = np.argsort(-x / weights, axis=None)
    ordered, own = x.ravel()[order], weights.ravel()[order]
    shifts = (np.cumsum(own * ordered) - total) / np.cumsum(own**2)
    last = np.count_nonzero(ordered > own * shifts) - 1
    return np.maximum(x - weights * shifts[last], 0.0)


@dataclass(frozen=True)
class L1Ball(_Ball):
    """``{x : |x|_1 <= radius}``.

    Parameters
    ----------
    radius : float
        Positive.

    Raises
    ------
    ValueError
        If ``radius`` is not positive.
    """

    def project(self, x: np.ndarray) -> np.ndarray:
        """Project the magnitudes onto the simplex when outside; O(d log d)."""
        return self.scaled(np.ones_like(x)).project(x)

    def scaled(self, factors: np.ndarray) -> Domain:
        """``{x : |x / factors|_1 <= radius}``."""
        return _WeightedL1Ball(1 / factors, self.radius)

    def polyhedron(self, n: int) -> Polyhedron:
        """The negative part ``u`` as further variables: ``u >= 0``, ``x + u >= 0`` and ``sum(x + 2 u) <= radius``."""
        return self.scaled(np.ones(n)).polyhedron(n)


@dataclass(frozen=True)
class Product(Domain):
    """``{x : x[part] in domain for every (part, domain)}``; entries of no part are free.

    Parameters
    ----------
    parts : tuple of (slice, Domain)
        Slices ``slice(start, stop)`` of entries from 0 on, which do not overlap.

    Raises
    ------
    ValueError
        If slices overlap, or have no beginning or end or another step than 1.
    """

    parts: tuple[tuple[slice, Domain], ...]

    def __post_init__(self) -> None:
        slices = [part for part, _ in self.parts]
        for part in slices:
            if part.start is None or part.stop is None or part.step not in (None, 1) or not 0 <= part.start < part.stop:
                raise ValueError(f"Product needs slices from start to stop with 0 <= start < stop, got {part}.")
        for one, other in pairwise(sorted(slices, key=lambda part: part.start)):
            if one.stop > other.start:
                raise ValueError(f"Product needs slices that do not overlap, got {one} and {other}.")

    def project(self, x: np.ndarray) -> np.ndarray:
        """Project part by part."""
        projected = x.copy()
        for part, domain in self.parts:
            projected[part] = domain.project(x[part])
        return projected

    def scaled(self, factors: np.ndarray) -> Domain | None:
        """Scale part by part; None if a part cannot be scaled."""
        parts = [(part, domain.scaled(factors[part])) for part, domain in self.parts]
        known = tuple((part, domain) for part, domain in parts if domain is not None)
        return Product(known) if len(known) == len(parts) else None

    @property
    @override
    def is_polyhedral(self) -> bool:
        return all(domain.is_polyhedral for _, domain in self.parts)

    def polyhedron(self, n: int) -> Polyhedron:
        """The polyhedron of all parts, with the further variables of one after those of the other."""
        entries = [np.arange(n)[part] for part, _ in self.parts]
        found = [domain.polyhedron(own.size) for own, (_, domain) in zip(entries, self.parts, strict=True)]
        extra = [part.lower.size - own.size for own, part in zip(entries, found, strict=True)]
        ends = n + np.cumsum([0, *extra])
        whole = Polyhedron.box(-np.inf, np.inf, int(ends[-1]))
        rows = [whole.A]
        for own, part, first, last in zip(entries, found, ends[:-1], ends[1:], strict=True):
            columns = np.append(own, np.arange(first, last))
            rows.append(part.A @ sp.csr_array(sp.eye(ends[-1]))[columns])
            whole.lower[columns], whole.upper[columns] = part.lower, part.upper
        b = np.concatenate([np.empty(0), *(part.b for part in found)])
        return whole._replace(A=sp.vstack(rows, format="csr"), b=b)
