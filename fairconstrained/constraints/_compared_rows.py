"""Constraints on the first rows of the data, where the groups that follow take no part."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from fairconstrained.constraints._resolution import CellSizes
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.pairwise import PairTerms
from fairconstrained.views import DifferenceOfConvex, FullBatch, RowLosses, SaddleMoments, Stochastic

__all__ = ["compared_rows_only"]


def compared_rows_only(inner: BoundConstraint, data: FairData) -> BoundConstraint:
    """Return a constraint on all ``data`` from one on ``data.compared``, with the same views.

    Parameters
    ----------
    inner : BoundConstraint
        The constraint on ``data.compared``.
    data : FairData
        The last groups of which take no part in the constraint.
    """
    return _class_for(type(inner))(inner, data)


class _ComparedRows(BoundConstraint):
    """Constraint that hands the scores of the compared rows to another, which does everything else."""

    def __init__(self, inner: BoundConstraint, data: FairData) -> None:
        self.inner, self.data = inner, data
        self.name, self.kappa = inner.name, inner.kappa
        self._rows = slice(0, inner.data.n_samples)

    @property
    def bounds_metric(self) -> bool:  # type: ignore[override]  # what it is of the inner one
        return self.inner.bounds_metric

    @property
    def counts_rows(self) -> bool:  # type: ignore[override]
        return self.inner.counts_rows

    @property
    def scale(self) -> float:
        return self.inner.scale

    @property
    def penalty_factor(self) -> float:
        return self.inner.penalty_factor

    @property
    def strata(self) -> np.ndarray | None:
        own = self.inner.strata
        if own is None:
            return None
        return np.concatenate([own, np.full(self.data.n_samples - own.size, own.max(initial=-1) + 1)])

    @property
    def component_names(self) -> tuple[str, ...]:
        return self.inner.component_names

    @property
    def n_aux(self) -> int:
        return self.inner.n_aux

    @property
    def components(self) -> np.ndarray:
        return self.inner.components

    @property
    def granularity(self) -> float:
        return self.inner.granularity

    @property
    def resolution(self) -> float:
        return self.inner.resolution

    def compared_cells(self) -> CellSizes | None:
        return self.inner.compared_cells()

    def with_components(self, components: np.ndarray) -> Any:
        return self._with(self.inner.with_components(components))

    def stricter(self) -> Any:
        inner = self.inner.stricter()
        return None if inner is None else self._with(inner)

    def with_restoring_slopes(self) -> Any:
        return self._with(self.inner.with_restoring_slopes())

    def renamed(self, name: str) -> Any:
        return self._with(self.inner.renamed(name))

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Any:
        return self._with(self.inner.refined(scores[self._rows], blur=blur, margin=margin))

    def initial_aux(self, scores: np.ndarray) -> np.ndarray:
        return self.inner.initial_aux(scores[self._rows])

    def fair_aux(self) -> np.ndarray:
        return self.inner.fair_aux()

    def exact(self, scores: np.ndarray) -> float:
        return self.inner.exact(scores[self._rows])

    def metric(self, scores: np.ndarray) -> float:
        return self.inner.metric(scores[self._rows])

    @property
    def decision_threshold(self) -> float | None:
        return self.inner.decision_threshold

    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        return self.inner.values_at_cuts(scores[self._rows], cuts)

    def of_decisions(self, scores: np.ndarray) -> float | None:
        return self.inner.of_decisions(scores[self._rows])

    def caveat(self, scores: np.ndarray) -> str | None:
        return self.inner.caveat(scores[self._rows])

    @property
    def compares(self) -> bool:
        return self.inner.compares

    def offsets(self, scores: np.ndarray, gains: np.ndarray, threshold: float, shared: bool) -> np.ndarray:
        """Offsets of the compared groups; those of the others are zero, or the same where all move alike."""
        own = self.inner.offsets(scores[self._rows], gains[self._rows], threshold, shared)
        return np.concatenate([own, np.full(self.data.n_ignored, own[0] if shared else 0.0)])

    def price(self, multipliers: Mapping[str, float] | None) -> float:
        return self.inner.price(multipliers)

    def complaint_about_decisions(self, value: float) -> str:
        return self.inner.complaint_about_decisions(value)

    def complaint(self, value: float) -> str:
        return self.inner.complaint(value)

    def _with(self, inner: BoundConstraint) -> BoundConstraint:
        return compared_rows_only(inner, self.data)


class _FullBatch(_ComparedRows, FullBatch):
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return cast(FullBatch, self.inner).values(scores[self._rows], aux)


class _RowLosses(_FullBatch, RowLosses):
    @property
    def row_loss(self) -> Any:
        return cast(RowLosses, self.inner).row_loss

    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        return cast(RowLosses, self.inner).of_losses(losses[self._rows], aux)

    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        own, aux = cast(RowLosses, self.inner).row_weights(multipliers)
        return np.concatenate([own, np.zeros(self.data.n_samples - own.size)]), aux


class _DifferenceOfConvex(_ComparedRows, DifferenceOfConvex):
    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        return cast(DifferenceOfConvex, self.inner).plus(scores[self._rows], aux)

    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        return cast(DifferenceOfConvex, self.inner).minus(scores[self._rows], aux)


class _Stochastic(_ComparedRows, Stochastic):
    def on(self, data: FairData) -> BoundConstraint:
        return compared_rows_only(cast(Stochastic, self.inner).on(data.compared), data)


class _SaddleMoments(_ComparedRows, SaddleMoments):
    def pair_terms(self) -> PairTerms:
        terms = cast(SaddleMoments, self.inner).pair_terms()
        others = self.data.n_samples - terms.shares.numel()
        return replace(terms, shares=torch.cat([terms.shares, terms.shares.new_zeros(others)]))


#: Class that hands every view on; of a view and one that implies it, only the latter is taken.
_VIEWS: dict[type, type[_ComparedRows]] = {
    RowLosses: _RowLosses,
    FullBatch: _FullBatch,
    DifferenceOfConvex: _DifferenceOfConvex,
    Stochastic: _Stochastic,
    SaddleMoments: _SaddleMoments,
}


@cache
def _class_for(inner: type) -> Callable[[BoundConstraint, FairData], BoundConstraint]:
    """The class with the views of ``inner``."""
    bases = [own for view, own in _VIEWS.items() if issubclass(inner, view)]
    kept = [base for base in bases if not any(other is not base and issubclass(other, base) for other in bases)]
    return type(f"{inner.__name__}OfComparedRows", (*kept, _ComparedRows), {})
