"""Bounds on combinations of the groups' sums of a function of the rows, such as a loss or a rate."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from typing_extensions import override

from fairconstrained.cells import sums_above
from fairconstrained.constraints._row_functions import BoundRowFunction

__all__ = ["BoundCellSums"]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoundCellSums(BoundRowFunction):
    r"""Components :math:`\sum_g A_{jg}(\kappa) \sum_{i \in g} w_i r(s_i, y_i) \le b_j(\kappa)`.

    The coefficients belong to the whole data: on a mini-batch, whose weights correct for the way in which its rows are
    drawn, the sums are unbiased.
    """

    @abstractmethod
    def coefficients(self, kappa: float) -> np.ndarray:
        """``A`` at a tightened kappa; ndarray of shape (n_components, n_groups)."""

    @abstractmethod
    def limits(self, kappa: float) -> np.ndarray:
        """``b`` at a tightened kappa; ndarray of shape (n_components,)."""

    @abstractmethod
    def of_sums(self, sums: np.ndarray) -> float:
        """The metric, from the exact sums of the groups; ndarray of shape (n_groups,)."""

    @override
    def metric_of_values(self, values: np.ndarray) -> float:
        return self.of_sums(self._sums(values))

    @override
    def values_at_cuts(self, scores: np.ndarray, cuts: np.ndarray) -> np.ndarray | None:
        if not self.function.is_step:
            return None
        data = self.data
        by_cut = sums_above(scores, cuts, data.codes, data.n_groups, data.weights.numpy())
        return np.array([self.of_sums(sums) for sums in by_cut])

    @override
    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        coefficients, limits = self._tables
        return coefficients @ self._sums(losses) - limits + self.correction

    @override
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        by_group = multipliers @ self._tables[0]
        weights = by_group[..., self.data.codes] * self.data.weights.numpy()
        return weights, np.empty((*multipliers.shape[:-1], 0))

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return self.data.sums(values)

    @property
    def _tables(self) -> tuple[np.ndarray, np.ndarray]:
        kappa = self.kappa - self.margin
        return self.coefficients(kappa), self.limits(kappa)
