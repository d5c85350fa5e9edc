"""Bounds whose metric counts rows or pairs, with a surrogate in place of the indicator."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.constraints._blur import blurred
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.surrogates import SURROGATES, Surrogate
from fairconstrained.views import FullBatch

__all__ = ["BoundSmoothed", "surrogate_options"]

#: Width of "auto" surrogates before a solver refines them: that of the experiments of the partial fairness paper.
PAPER_WIDTH = 1.0


def surrogate_options(constraint: Any) -> dict[str, Any]:
    """Return the fields of `BoundSmoothed` that ``surrogate`` and ``surrogate_width`` of a constraint stand for.

    Raises
    ------
    ValueError
        For an unknown name (the message lists the known ones) or a width that is not positive.
    """
    name, width = constraint.surrogate, constraint.surrogate_width
    if name not in SURROGATES:
        raise ValueError(f"surrogate must be one of {sorted(SURROGATES)}, got {name!r}.")
    is_auto = isinstance(width, str) and width == "auto"
    if not is_auto and (isinstance(width, str) or not width > 0):
        raise ValueError(f"surrogate_width must be 'auto' or a positive number, got {width!r}.")
    surrogate = SURROGATES[name].with_width(PAPER_WIDTH if is_auto else float(width))
    return {"surrogate": surrogate, "fixed_width": not is_auto}


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundSmoothed(BoundConstraint, FullBatch):
    """Bound on a metric that counts, with the values of the metric and the slopes of a surrogate.

    Attributes
    ----------
    surrogate : Surrogate
    fixed_width : bool
        Whether the user chose the surrogate's width, so that refinement leaves it alone.
    margin : float
        Difference between ``kappa`` and the tighter bound that solvers see.
    correction : Tensor
        Difference of the exact and the smooth rates or gaps at the scores of the last refinement, which is added to
        the smooth ones.
    """

    data: FairData
    kappa: float
    name: str
    surrogate: Surrogate
    fixed_width: bool
    margin: float = 0.0
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
        refined = replace(self, surrogate=surrogate, margin=margin)
        return replace(refined, correction=refined._correction_at(scores))

    @abstractmethod
    def _correction_at(self, scores: np.ndarray) -> Tensor:
        """Return the exact rates or gaps minus the smooth ones."""
