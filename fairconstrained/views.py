"""Views: what a term of a problem can offer a solver.

A term (objective or bound constraint) offers a view by inheriting from its class below. A solver names the
views it needs in ``requires``; `Problem.view` combines those of all terms, or says which term lacks one.

Every view is a function of the scores and of the term's auxiliary variables alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from fairconstrained.data import FairData
from fairconstrained.pairwise import CellQuadratics, PairTerms
from fairconstrained.slopes import with_own_slopes

__all__ = [
    "ConvexQuadratic",
    "DifferenceOfConvex",
    "DirectSlopes",
    "Exact",
    "FullBatch",
    "Pull",
    "RowLosses",
    "SaddleMoments",
    "SingleRows",
    "Stochastic",
]


#: From multipliers to slopes of a combination in scores and auxiliary variables, see `FullBatch.with_slopes`.
Pull = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


class FullBatch(ABC):
    """Values on all data, differentiable by torch."""

    @abstractmethod
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        """Values of the term.

        Parameters
        ----------
        scores : Tensor of shape (n_samples,)
        aux : Tensor of shape (n_aux,)

        Returns
        -------
        values : Tensor of shape (n_components,)
            The objective has one component; a constraint is satisfied where its components are at most 0.
        """

    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        """Values of the term, and what gives the slopes of their combinations.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,), or (n_samples, n_classes)
        aux : ndarray of shape (n_aux,)

        Returns
        -------
        values : ndarray of shape (n_components,)
        pull : callable
            Takes multipliers, an ndarray of shape (n_components,), and returns the slopes of ``multipliers @ values``
            in scores and auxiliary variables, shaped as these are.
        """
        given = torch.from_numpy(scores).requires_grad_(), torch.from_numpy(aux).requires_grad_()
        with torch.enable_grad():
            values = self.values(*given)

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            weights = torch.from_numpy(multipliers)
            of_scores, of_aux = torch.autograd.grad(values, given, weights, retain_graph=True, materialize_grads=True)
            return of_scores.numpy(), of_aux.numpy()

        return values.detach().numpy(), pull


class DirectSlopes(FullBatch):
    """Values whose slopes are computed by formulas: on few rows, a graph takes longer than all the arithmetic."""

    @override
    @abstractmethod
    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        """Implement `FullBatch.with_slopes` without a graph."""

    @override
    def values(self, scores: Tensor, aux: Tensor) -> Tensor:
        return with_own_slopes(self.with_slopes, scores, aux)


class RowLosses(DirectSlopes):
    """Values that are linear in one loss of every row, and in the auxiliary variables.

    Where all terms of a problem have this view of the same loss, a gradient takes one product of the loss's slopes with
    weights of the rows, and no graph.
    """

    data: FairData

    @property
    @abstractmethod
    def row_loss(self) -> Any:
        """The loss, a `fairconstrained.objectives.Loss`; equal losses are the same."""

    @abstractmethod
    def of_losses(self, losses: np.ndarray, aux: np.ndarray) -> np.ndarray:
        """Values of the term from the losses of the rows.

        Parameters
        ----------
        losses : ndarray of shape (n_samples,)
        aux : ndarray of shape (n_aux,)

        Returns
        -------
        values : ndarray of shape (n_components,)
        """

    @abstractmethod
    def row_weights(self, multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Slopes of ``multipliers @ of_losses(losses, aux)``.

        Parameters
        ----------
        multipliers : ndarray of shape (..., n_components)
            Coefficients of one combination of the components, or of several; objectives take one only.

        Returns
        -------
        losses : ndarray of shape (..., n_samples)
        aux : ndarray of shape (..., n_aux)
        """

    @override
    def with_slopes(self, scores: np.ndarray, aux: np.ndarray) -> tuple[np.ndarray, Pull]:
        given, y = torch.from_numpy(scores), self.data.y

        def pull(multipliers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            weights, of_aux = self.row_weights(multipliers)
            return (weights * self.row_loss.slope(given, y).numpy().T).T, of_aux  # rows are the last axis

        return self.of_losses(self.row_loss.of(given, y).numpy(), aux), pull


class DifferenceOfConvex(ABC):
    """A split ``values = plus - minus`` into functions that are convex in (scores, aux)."""

    @abstractmethod
    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The convex part; Tensor of shape (n_components,), arguments as in `FullBatch.values`."""

    @abstractmethod
    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The part that is subtracted, convex too; Tensor of shape (n_components,)."""


class Stochastic:
    """Term that can be evaluated on a mini-batch, which holds rows of every group."""

    def on(self, data: FairData) -> Any:
        """Return the term on other rows, with its levels and widths, where it offers the values of `FullBatch`.

        By default it is a copy with another ``data``, for which the term has to be a dataclass. Override it if more of
        the term depends on the rows.

        Raises
        ------
        TypeError
            If the term is no dataclass and does not override this method.
        """
        own: Any = self  # a dataclass
        return replace(own, data=data)


class Exact(ABC):
    """Exact excess over the limit, and the means to bring a surrogate closer to it (constraints only)."""

    @abstractmethod
    def exact(self, scores: Any) -> float:
        """Return the quantity that ``kappa`` bounds, minus ``kappa``, at ``scores``: a positive value is a violation.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            Scores in the order of the data.

        Returns
        -------
        excess : float
            Computed by numpy alone, from the exact metric wherever ``kappa`` bounds the metric.
        """

    @property
    @abstractmethod
    def granularity(self) -> float:
        """The change of the metric that a single row can make."""

    @abstractmethod
    def refined(self, scores: Any, *, blur: float, margin: float) -> Any:
        """Return the constraint with a surrogate closer to the metric around ``scores``.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            The current scores: what they violate most becomes new components, appended behind the others.
        blur : float
            Standard deviation by which the new surrogate blurs the scores, in standard deviations of the scores.
        margin : float
            Difference of ``kappa`` and the new surrogate's bound; negative for a looser bound.
        """


class ConvexQuadratic(ABC):
    """Components that are convex quadratic functions of the scores' moments in cells of rows."""

    @abstractmethod
    def quadratics(self) -> CellQuadratics:
        """Coefficients of every component; no auxiliary variables enter."""


class SingleRows(ABC):
    """Components that take one row at a time: quadratic losses over pairs, plus the mean of a loss over the rows.

    In saddle form (Lemma 1 of the AUC fairness paper) the losses over pairs are such a mean too.
    """

    @abstractmethod
    def pair_terms(self) -> PairTerms:
        """The sets of rows that are paired, in every component; no auxiliary variables enter."""

    def row_mean(self, scores: np.ndarray, data: FairData) -> tuple[float, np.ndarray]:
        """Return the mean over some rows of what is no loss over pairs, zero unless an objective overrides it.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,)
        data : FairData
            The rows; they count by their weights.

        Returns
        -------
        mean : float
        slopes : ndarray of shape (n_rows,)
            Derivatives in the scores.
        """
        return 0.0, np.zeros(len(scores))


class SaddleMoments(ConvexQuadratic, SingleRows):
    """Components that are sums of quadratic losses over pairs of rows, and of nothing else.

    A linear model needs no more than the moments of X for them.
    """

    @override
    def quadratics(self) -> CellQuadratics:
        return self.pair_terms().quadratics
