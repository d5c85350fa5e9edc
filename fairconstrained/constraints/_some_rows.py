"""Constraints on some of the rows: those of the groups that are compared, or any others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.pairwise import PairTerms
from fairconstrained.views import (
    DifferenceOfConvex,
    DirectSlopes,
    FullBatch,
    Pull,
    RowLosses,
    SaddleMoments,
    Stochastic,
)

__all__ = ["compared_rows_only", "on_some_rows"]


def compared_rows_only(inner: BoundConstraint, data: FairData) -> BoundConstraint:
    """Return a constraint on all ``data`` from one on ``data.compared``, with the same views.

    Parameters
    ----------
    inner : BoundConstraint
        The constraint on ``data.compared``.
    data : FairData
        The last groups of which take no part in the constraint.
    """
    return on_some_rows(inner, data, slice(0, inner.data.n_samples))


def on_some_rows(inner: BoundConstraint, data: FairData, rows: slice) -> BoundConstraint:
    """Return a constraint on all ``data`` from one on some of its rows, with the same views.

    Parameters
    ----------
    inner : BoundConstraint
        The constraint on these rows.
    data : FairData
    rows : slice
        Places of the rows in ``data``.
    """
    return _class_for(type(inner))(inner, data, rows)


def _handed_on(name: str) -> Any:
    """Attribute, or method whose arguments are no rows, of the constraint that does everything."""
    return property(lambda self: getattr(self.inner, name))


def _of_own(name: str) -> Any:
    """Method whose first argument has one entry for every row, of which the other constraint gets its own."""
    return lambda self, scores, *args: getattr(self.inner, name)(scores[self._rows], *args)


def _moved(name: str) -> Any:
    """Method that returns another constraint on the same rows, or None."""

    def changed(self: _SomeRows, *args: Any) -> BoundConstraint | None:
        inner = getattr(self.inner, name)(*args)
        return None if inner is None else self._with(inner)

    return changed


class _SomeRows(BoundConstraint):
    """Constraint that hands the scores of its own rows to another, which does everything else."""

    def __init__(self, inner: BoundConstraint, data: FairData, rows: slice) -> None:
        self.inner, self.data, self._rows = inner, data, rows
        self.name, self.kappa = inner.name, inner.kappa

    def _with(self, inner: BoundConstraint) -> BoundConstraint:
        return on_some_rows(inner, self.data, self._rows)

    def _scattered(self, own: np.ndarray, others: Any) -> np.ndarray:
        """An entry for every row, from those of its own rows and one for all others."""
        entries = np.full((self.data.n_samples, *own.shape[1:]), others, own.dtype)
        entries[self._rows] = own
        return entries

    bounds_metric = _handed_on("bounds_metric")
    counts_rows = _handed_on("counts_rows")
    ignores_shifts = _handed_on("ignores_shifts")
    first_blur = _handed_on("first_blur")
    scale = _handed_on("scale")
    penalty_factor = _handed_on("penalty_factor")
    damping = _handed_on("damping")
    component_names = _handed_on("component_names")
    directions = _handed_on("directions")
    n_aux = _handed_on("n_aux")
    fair_aux = _handed_on("fair_aux")
    components = _handed_on("components")
    granularity = _handed_on("granularity")
    value_by_chance = _handed_on("value_by_chance")
    resolution = _handed_on("resolution")
    compares = _handed_on("compares")
    compared_cells = _handed_on("compared_cells")
    decision_threshold = _handed_on("decision_threshold")
    price = _handed_on("price")
    bounds_from_below = _handed_on("bounds_from_below")
    sees_cells_only = _handed_on("sees_cells_only")
    is_fitted_loss = _handed_on("is_fitted_loss")
    complaint = _handed_on("complaint")
    why_undefined = _handed_on("why_undefined")
    complaint_about_decisions = _handed_on("complaint_about_decisions")

    exact = _of_own("exact")
    is_within = _of_own("is_within")
    differences = _of_own("differences")
    metric = _of_own("metric")
    initial_aux = _of_own("initial_aux")
    values_at_cuts = _of_own("values_at_cuts")
    of_decisions = _of_own("of_decisions")
    caveat = _of_own("caveat")
    class_values = _of_own("class_values")

    renamed = _moved("renamed")
    with_kappa = _moved("with_kappa")
    stricter = _moved("stricter")
    with_logistic_slopes = _moved("with_logistic_slopes")
    with_linear_components = _moved("with_linear_components")
    uncorrected = _moved("uncorrected")
    for_class = _moved("for_class")
    with_components = _moved("with_components")
    with_optimism = _moved("with_optimism")
    with_restoring_slopes = _moved("with_restoring_slopes")

    @property
    def strata(self) -> np.ndarray | None:
        own = self.inner.strata
        if own is None:
            return None
        return self._scattered(own, own.max(initial=-1) + 1)

    def decision_costs(self, scores: np.ndarray, multipliers: np.ndarray) -> np.ndarray | None:
        own = self.inner.decision_costs(scores[self._rows], multipliers)
        return None if own is None else self._scattered(own, 0.0)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Any:
        return self._with(self.inner.refined(scores[self._rows], blur=blur, margin=margin))

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """Offsets of the compared groups; those of the others are zero, or the same where all move alike."""
        own = self.inner.offsets(scores[self._rows], gains[self._rows], threshold, shared)
        return np.concatenate([own, np.full(self.data.n_ignored, own[0] if shared else 0.0)])


class _FullBatch(_SomeRows, FullBatch):
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return cast(FullBatch, self.inner).values(scores[self._rows], aux)

    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        values, pull_own = cast(FullBatch, self.inner).with_slopes(scores[self._rows], aux)

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            own, of_aux = pull_own(multipliers)
            return self._scattered(own, 0.0), of_aux

        return values, pull


class _DirectSlopes(_FullBatch, DirectSlopes):
    pass


class _RowLosses(_DirectSlopes, RowLosses):
    @property
    def row_loss(self) -> Any:
        return cast(RowLosses, self.inner).row_loss

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        return cast(RowLosses, self.inner).of_losses(losses[self._rows], aux)

    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, aux = cast(RowLosses, self.inner).row_weights(multipliers)
        return self._scattered(own.T, 0.0).T, aux  # rows are the last axis


class _DifferenceOfConvex(_SomeRows, DifferenceOfConvex):
    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        return cast(DifferenceOfConvex, self.inner).plus(scores[self._rows], aux)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        return cast(DifferenceOfConvex, self.inner).minus(scores[self._rows], aux)


class _Stochastic(_SomeRows, Stochastic):
    def on(self, data: FairData) -> BoundConstraint:
        return compared_rows_only(cast(Stochastic, self.inner).on(data.compared), data)


class _SaddleMoments(_SomeRows, SaddleMoments):
    def pair_terms(self) -> PairTerms:
        terms = cast(SaddleMoments, self.inner).pair_terms()
        others = self.data.n_samples - terms.shares.numel()
        return replace(terms, shares=torch.cat([terms.shares, terms.shares.new_zeros(others)]))


#: Class that hands every view on; of a view and one that implies it, only the latter is taken.
_VIEWS: dict[type, type[_SomeRows]] = {
    RowLosses: _RowLosses,
    DirectSlopes: _DirectSlopes,
    FullBatch: _FullBatch,
    DifferenceOfConvex: _DifferenceOfConvex,
    Stochastic: _Stochastic,
    SaddleMoments: _SaddleMoments,
}


@cache
def _class_for(inner: type) -> Callable[[BoundConstraint, FairData, slice], BoundConstraint]:
    """The class with the views of ``inner``."""
    bases = [own for view, own in _VIEWS.items() if issubclass(inner, view)]
    kept = [base for base in bases if not any(other is not base and issubclass(other, base) for other in bases)]
    return type(f"{inner.__name__}OfSomeRows", (*kept, _SomeRows), {})
