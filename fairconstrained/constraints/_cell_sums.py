"""Bounds on combinations of the groups' sums of a function of the rows, such as a loss or a rate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
import torch
from typing_extensions import override

from fairconstrained.constraints._blur import blurred
from fairconstrained.constraints.base import BoundConstraint
from fairconstrained.constraints.mean_gaps import RowFunction
from fairconstrained.data import FairData
from fairconstrained.objectives import Loss, PositiveRate
from fairconstrained.views import RowLosses, Stochastic

__all__ = ["TOLERANCE", "BoundCellSums", "sharpened"]

#: Tolerance of a smooth metric above ``kappa``; the augmented Lagrangian comes that close.
TOLERANCE = 1e-6


def sharpened(term: Any, scores: np.ndarray, blur: float, margin: float) -> Any:
    """A term of a step with a stand-in of that blur, corrected so that its values at the scores are those of the step.

    Parameters
    ----------
    term : BoundConstraint
        With `fairconstrained.views.RowLosses` of ``function``, and a ``correction`` that `of_losses` adds.
    scores, blur, margin
        See `Exact.refined`.
    """
    function, y = term.function, term.data.y
    smooth = blurred(cast(PositiveRate, function.smooth), scores, term.data.weights.numpy(), blur)
    refined = replace(term, margin=margin, function=function._replace(smooth=smooth), correction=0.0)
    aux = np.zeros(term.n_aux)
    exact = refined.of_losses(function.exact(scores, y.numpy()), aux)
    values = smooth.of(torch.from_numpy(scores), y).numpy()
    return replace(refined, correction=exact - refined.of_losses(values, aux))


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundCellSums(BoundConstraint, RowLosses, Stochastic):
    r"""Components :math:`\sum_g A_{jg}(\kappa) \sum_{i \in g} w_i r(s_i, y_i) \le b_j(\kappa)`.

    The coefficients belong to the whole data: on a mini-batch, whose weights make up for how its rows are drawn, the
    sums are unbiased.

    Attributes
    ----------
    function : RowFunction
        The r above.
    is_sharp : bool
        Whether its exact form is a step, which solvers see blurred. The components then take their values from the step
        at the scores of the last refinement, and only their slopes from what stands in for it.
    tolerance : float
        What the metric may exceed ``kappa`` by, and what one row of a step changes it by.
    margin : float
        What the tolerance falls short of ``kappa``.
    correction : ndarray of shape (n_components,), or 0
        Added to the components, see ``is_sharp``.
    """

    data: FairData
    kappa: float
    name: str
    function: RowFunction
    is_sharp: bool = False
    tolerance: float = TOLERANCE
    margin: float = 0.0
    correction: Any = 0.0

    @abstractmethod
    def coefficients(self, kappa: float) -> np.ndarray:
        """``A`` at a tightened kappa; ndarray of shape (n_components, n_groups)."""

    @abstractmethod
    def bounds(self, kappa: float) -> np.ndarray:
        """``b`` at a tightened kappa; ndarray of shape (n_components,)."""

    @abstractmethod
    def of_sums(self, sums: np.ndarray) -> float:
        """The metric, from the exact sums of the groups; ndarray of shape (n_groups,)."""

    @property
    def granularity(self) -> float:
        """Granularity of the metric; that of a smooth one is its ``tolerance``."""
        return self.tolerance

    def heaviest_shares(self, of: np.ndarray) -> np.ndarray:
        """Share of the weight ``of`` every group that its heaviest row has; ndarray of shape (n_groups,)."""
        heaviest = np.zeros(self.data.n_groups)
        np.maximum.at(heaviest, self.data.codes, self.data.weights.numpy())
        return np.divide(heaviest, of, out=np.ones_like(heaviest), where=of > 0)

    @override
    def metric(self, scores: np.ndarray) -> float:
        return self.of_sums(self._sums(self._exact_values(scores)))

    @property
    @override
    def decision_threshold(self) -> float | None:
        return 0.0 if self.is_sharp else None

    @override
    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        if not self.is_sharp:
            return None
        order, weights = np.argsort(scores, kind="stable"), self.data.weights.numpy()
        by_group = np.zeros((scores.size + 1, self.data.n_groups))
        by_group[np.arange(scores.size), self.data.codes[order]] = weights[order]
        above = np.cumsum(by_group[::-1], axis=0)[::-1]  # row k: the sums of the rows from the k-th lowest score on
        return np.array([self.of_sums(row) for row in above[np.searchsorted(scores[order], cuts, side="right")]])

    @override
    def of_decisions(self, scores: np.ndarray) -> float | None:
        decisions = self.function.decisions
        return None if decisions is None else self.of_sums(self._sums(decisions(scores, self.data.y.numpy())))

    @property
    @override
    def row_loss(self) -> Loss:
        return self.function.smooth

    @override
    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        coefficients, bounds = self._tables
        return coefficients @ self._sums(losses) - bounds + self.correction

    @override
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_group = multipliers @ self._tables[0]
        return by_group[self.data.codes] * self.data.weights.numpy(), np.empty(0)

    def refined(self, scores: np.ndarray, *, blur: float, margin: float) -> Self:
        """Implement `Exact.refined`; of a smooth function only the margin changes."""
        return sharpened(self, scores, blur, margin) if self.is_sharp else replace(self, margin=margin)

    @override
    def on(self, data: FairData) -> Self:
        return replace(self, data=data)

    def _exact_values(self, scores: np.ndarray) -> np.ndarray:
        return self.function.exact(scores, self.data.y.numpy())

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.data.codes, self.data.weights.numpy() * values, minlength=self.data.n_groups)

    @cached_property
    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        kappa = self.kappa - self.margin
        return self.coefficients(kappa), self.bounds(kappa)
