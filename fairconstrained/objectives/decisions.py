"""Loss of decisions themselves, for exact searches over thresholds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import torch
from typing_extensions import override

__all__ = ["CountedLoss", "DecisionLoss", "GainLoss", "sums_from"]


def sums_from(columns: np.ndarray) -> np.ndarray:
    """Sums of the entries from every place on, and of none; of shape (n_columns, n_entries + 1)."""
    sums = np.zeros((columns.shape[0], columns.shape[1] + 1))
    sums[:, :-1] = np.cumsum(columns[:, ::-1], axis=1)[:, ::-1]
    return sums


class DecisionLoss(ABC):
    """Loss of predicting some rows positive, a function of sums over these rows.

    A search over thresholds takes the sums above every cut from one sorting, and their losses at once.

    Attributes
    ----------
    columns : ndarray of shape (n_columns, n_samples)
        Amounts that a row adds to the sums when it is predicted positive.
    """

    #: Steps at most in which a search for the best thresholds takes the loss as linear.
    n_steps: ClassVar[int]
    columns: np.ndarray

    @abstractmethod
    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        """Loss of the decisions with these sums, up to a constant.

        Parameters
        ----------
        sums : ndarray of shape (n_columns,) or (n_columns, n_decisions)

        Returns
        -------
        loss : float or ndarray of shape (n_decisions,)
        """

    def of(self, positive: np.ndarray) -> float:
        """Loss of predicting the rows positive where ``positive``, an ndarray of bool, says so."""
        return float(self.of_sums(self.columns[:, positive].sum(axis=1)))

    @abstractmethod
    def slopes(self, sums: np.ndarray) -> np.ndarray:
        """Return the fall of the loss per unit of each of the sums; zero where it has no slope. Shape (n_columns,)."""

    @property
    def centre(self) -> np.ndarray:
        """Sums at half of all rows."""
        return self.columns.sum(axis=1) / 2

    def gains(self, positive: np.ndarray) -> np.ndarray:
        """Gain of predicting each row positive, to first order at given decisions; ndarray of shape (n_samples,)."""
        return self.slopes(self.columns[:, positive].sum(axis=1)) @ self.columns

    @property
    def unit(self) -> float:
        """Size of the loss, in which searches measure what a bound costs."""
        return 1.0


@dataclass(frozen=True, eq=False)
class GainLoss(DecisionLoss):
    """Loss to which every row predicted positive adds an amount of its own, as to the number of errors."""

    #: Amounts by which the loss falls.
    row_gains: np.ndarray  # of shape (n_samples,)

    n_steps: ClassVar[int] = 1

    @property
    @override
    def columns(self) -> np.ndarray:  # type: ignore[override]
        return self.row_gains[None]

    @override
    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        return -sums[0]

    @override
    def of(self, positive: np.ndarray) -> float:
        return -float(self.row_gains @ positive)

    @override
    def slopes(self, sums: np.ndarray) -> np.ndarray:
        return np.ones(1)

    @override
    def gains(self, positive: np.ndarray) -> np.ndarray:
        return self.row_gains


@dataclass(frozen=True, eq=False)
class CountedLoss(DecisionLoss):
    r"""Minus a utility, any function of the four counts.

    .. math:: -u(n_- - \mathrm{fp}, \; \mathrm{fp}, \; n_+ - \mathrm{tp}, \; \mathrm{tp})

    Where u is a ratio of linear functions, as F1 is, the best decisions are found in a few steps of the method of
    Dinkelbach: each takes the gains to first order, those of a cost matrix, and finds the best decisions for these.
    """

    #: Takes ``(tn, fp, fn, tp)``, numbers, arrays or tensors.
    utility: Callable[[Any, Any, Any, Any], Any]
    weights: np.ndarray  # of shape (n_samples,)
    #: Labels of the rows.
    is_positive: np.ndarray  # of bool, of shape (n_samples,)

    n_steps: ClassVar[int] = 20

    @cached_property
    @override
    def columns(self) -> np.ndarray:  # type: ignore[override]
        return self.weights * np.stack([~self.is_positive, self.is_positive])

    @override
    def of_sums(self, sums: np.ndarray) -> np.ndarray:
        (fp, tp), (negatives, positives) = sums, self._totals
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -np.asarray(self.utility(negatives - fp, fp, positives - tp, tp), dtype=np.float64)
        return np.nan_to_num(loss, nan=np.inf)

    @cached_property
    @override
    def unit(self) -> float:
        # Half of each class is a place where no ratio of counts is 0 / 0.
        return float(np.abs(self.slopes(self.centre)) @ self._totals) or 1.0

    @property
    def _totals(self) -> np.ndarray:
        return self.columns.sum(axis=1)

    @override
    def slopes(self, sums: np.ndarray) -> np.ndarray:
        at = torch.from_numpy(np.array(sums)).requires_grad_()
        totals = torch.from_numpy(self._totals)
        with torch.enable_grad():
            utility = self.utility(totals[0] - at[0], at[0], totals[1] - at[1], at[1])
            (slopes,) = torch.autograd.grad(utility, at, materialize_grads=True)
        return np.nan_to_num(slopes.numpy(), posinf=0.0, neginf=0.0)
