"""Bounds on sums of quadratic losses over pairs of rows, the surrogate of an AUC gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints.auc_sets import AUCSets, side_names
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData, Rows
from fairconstrained.metrics.auc_sets import AUCDifference
from fairconstrained.pairwise import PairTerms
from fairconstrained.views import DifferenceOfConvex, FullBatch, SaddleMoments

__all__ = ["BoundQuadratic", "Term", "pair_terms", "quadratic_components"]

#: Tolerance of the surrogate above ``kappa``, relative to ``max(kappa, 1)``: the tolerance of section G.3.2 of the
#: partial fairness paper.
TOLERANCE = 1e-6

#: A term ``E[c1 (s - s' - c2)^2]``, of s in the first and s' in the second union of cells.
Term = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class BoundQuadratic(BoundConstraint, FullBatch, DifferenceOfConvex, SaddleMoments):
    """Bound on a quadratic *surrogate*; the AUC gap is only reported. No components without a bound.

    There is no `Stochastic` view: products of two means of the same mini-batch are biased.
    """

    bounds_metric: ClassVar[bool] = False
    ignores_shifts: ClassVar[bool] = True

    data: FairData
    kappa: float
    #: Sets of rows that the metric compares.
    sets: AUCSets
    #: The surrogate, without subtracting ``kappa``.
    terms: PairTerms
    #: Names of the two sides of every component.
    sides: tuple[tuple[str, str], ...]
    name: str
    #: Difference between ``kappa`` and the tighter bound that solvers see.
    margin: float = 0.0

    @property
    def component_names(self) -> tuple[str, ...]:
        """The two sides of every component."""
        return side_names(self.name, self.sides)

    @property
    def granularity(self) -> float:
        """Numerical tolerance: a surrogate that varies continuously has no granularity."""
        return TOLERANCE * max(self.kappa, 1.0)

    def compared_cells(self) -> CellSizes:
        """Sizes of the sets of rows."""
        return self.sets.sizes()

    def metric(self, scores: np.ndarray) -> float:
        """The exact AUC gap, ties one half."""
        return float(np.abs(self.sets.exact(scores)).max(initial=0.0))

    def exact(self, scores: np.ndarray) -> float:
        """The *surrogate* minus kappa, as ``kappa`` bounds the surrogate here; -inf without a bound."""
        values = replace(self, margin=0.0).values(torch.from_numpy(scores), torch.empty(0)).numpy()
        return float(values.max(initial=-np.inf))

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """Implement `Exact.refined`; the bound is on this very surrogate, so only the margin changes."""
        return replace(self, margin=margin)

    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Return the surrogate minus its bound."""
        if not self.sides:
            return scores[:0]
        return self.quadratics().values(scores)

    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Return `values`, which are convex."""
        return self.values(scores, aux)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Return zeros, as `values` are convex."""
        return scores.new_zeros(len(self.sides))

    @override
    def pair_terms(self) -> PairTerms:
        return self._bounded

    @cached_property
    def _bounded(self) -> PairTerms:
        """Cached because the terms keep the tables that every evaluation needs."""
        return self.terms.plus(-(self.kappa - self.margin)) if self.sides else self.terms


def pair_terms(
    components: Sequence[Sequence[Term]],
    mass: np.ndarray,
    constant: float,
    c1: float = 0.5,
    rows: tuple[Rows, ...] = (),
    shares: Tensor | None = None,
) -> PairTerms:
    """Return the terms of every component, each with the same constant.

    Parameters
    ----------
    mass : ndarray of shape (n_cells,)
        Weights of the cells.
    rows, shares
        Rows of the cells and their weights, where the data are at hand.
    """
    unions = list(dict.fromkeys(cells for terms in components for term in terms for cells in term))
    flat = [(j, unions.index(a), unions.index(b)) for j, terms in enumerate(components) for a, b in terms]
    component, first, second = np.array(flat, dtype=int).reshape(-1, 3).T
    sets = np.zeros((len(unions), mass.size))
    for row, cells in zip(sets, unions, strict=True):
        row[list(cells)] = mass[list(cells)] / mass[list(cells)].sum()
    return PairTerms(
        rows=rows,
        shares=torch.empty(0) if shares is None else shares,
        sets=sets,
        component=component,
        first=first,
        second=second,
        constant=np.full(len(components), constant),
        c1=c1,
    )


def quadratic_components(differences: Sequence[AUCDifference]) -> list[list[Term]]:
    """The terms of eq. 4 of the AUC fairness paper for every difference, then those of eq. 5, of its negative."""
    first = [[(d.below, d.above), (d.reference_above, d.reference_below)] for d in differences]
    second = [[(d.reference_below, d.reference_above), (d.above, d.below)] for d in differences]
    return first + second
