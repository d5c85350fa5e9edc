"""Bounds whose metric counts rows or pairs, with a surrogate in place of the indicator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._blur import blurred
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.surrogates import SURROGATES, Surrogate
from fairconstrained.views import FullBatch

__all__ = ["BoundSmoothed"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundSmoothed(BoundConstraint, FullBatch):
    """Bound on a metric that counts, with the values of the metric and the slopes of a surrogate."""

    #: Cached properties that depend on neither the surrogate nor the margin nor the correction.
    _of_data: ClassVar[tuple[str, ...]] = ()

    data: FairData
    kappa: float
    name: str
    surrogate: Surrogate
    #: Whether the user chose the surrogate's width, so that refinement leaves it alone.
    fixed_width: bool
    #: Difference between ``kappa`` and the tighter bound that solvers see.
    margin: float = 0.0
    #: Difference of the exact and the smooth rates or gaps at the scores of the last refinement, which is added to the
    #: smooth ones.
    correction: Tensor = field(default_factory=lambda: torch.zeros((), dtype=torch.float64))

    @property
    def allowed_gap(self) -> float:
        """Bound on the surrogate in its own units, ``(kappa - margin) scale``, at least 0."""
        return max(self.kappa - self.margin, 0.0) * self.scale

    @override
    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        surrogate = self.surrogate
        if not self.fixed_width:
            surrogate = blurred(surrogate, scores, self.data.weights.numpy(), blur)
        return self._changed(surrogate=surrogate, margin=margin)._corrected_at(scores)

    def _changed(self, kept: Iterable[str] | None = None, **fields: Any) -> Self:
        """Return the bound with other fields; of the cached properties, those named in ``kept`` stay.

        None: those in `_of_data`.
        """
        changed, known = replace(self, **fields), self.__dict__
        names = self._of_data if kept is None else kept
        changed.__dict__.update({name: known[name] for name in names if name in known})
        return changed

    @override
    def with_logistic_slopes(self) -> Self:
        return replace(self, surrogate=SURROGATES["logistic"].with_width(1.0), fixed_width=True)

    @override
    def uncorrected(self) -> Self:
        return replace(self, correction=torch.zeros_like(self.correction))

    @abstractmethod
    def _corrected_at(self, scores: np.ndarray) -> Self:
        """Return the bound with the correction that makes its smooth rates or gaps exact at some scores."""
