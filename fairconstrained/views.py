"""Views: what a term of a problem can offer a solver.

A term (objective or bound constraint) offers a view by inheriting from its class below. A solver names the
views it needs in ``requires``; `Problem.view` combines those of all terms, or says which term lacks one.

Every view is a function of the scores and of the term's auxiliary variables alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from torch import Tensor

from fairconstrained.data import FairData
from fairconstrained.quadratics import CellQuadratics, PairTerms

__all__ = ["ConvexQuadratic", "DifferenceOfConvex", "Exact", "FullBatch", "SaddleMoments", "Stochastic"]


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


class DifferenceOfConvex(ABC):
    """A split ``values = plus - minus`` into functions that are convex in (scores, aux)."""

    @abstractmethod
    def plus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The convex part; Tensor of shape (n_components,), arguments as in `FullBatch.values`."""

    @abstractmethod
    def minus(self, scores: Tensor, aux: Tensor) -> Tensor:
        """The part that is subtracted, convex too; Tensor of shape (n_components,)."""


class Stochastic(ABC):
    """The same term on a mini-batch that holds rows of every group."""

    @abstractmethod
    def on(self, data: FairData) -> Any:
        """The term, as it stands (levels, widths), on other rows; it offers `FullBatch` values there."""


class Exact(ABC):
    """The metric that the user reads, and the means to bring a surrogate closer to it (constraints only)."""

    @abstractmethod
    def exact(self, scores: Any) -> float:
        """Value of the metric at ``scores`` (ndarray of shape (n_samples,)), by numpy alone."""

    @property
    @abstractmethod
    def granularity(self) -> float:
        """The change of the metric that a single row can make."""

    @abstractmethod
    def refined(self, scores: Any, *, blur: float, margin: float) -> Any:
        """The same constraint with a surrogate closer to the metric around ``scores``.

        Parameters
        ----------
        scores : ndarray of shape (n_samples,)
            The current scores: what they violate most becomes new components, appended behind the others.
        blur : float
            Standard deviation by which the new surrogate blurs the scores, in standard deviations of the scores.
        margin : float
            What the new surrogate's tolerance falls short of ``kappa`` (negative: exceeds it by).
        """


class ConvexQuadratic(ABC):
    """Components that are convex quadratic functions of the scores' moments in cells of rows."""

    @abstractmethod
    def quadratics(self) -> CellQuadratics:
        """Coefficients of every component; no auxiliary variables enter."""


class SaddleMoments(ConvexQuadratic):
    """Components that are sums of quadratic losses over pairs of rows.

    A linear model needs no more than the moments of X for them, and in saddle form (Lemma 1 of the AUC fairness paper)
    they take one row at a time.
    """

    @abstractmethod
    def pair_terms(self) -> PairTerms:
        """The sets of rows that are paired, in every component; no auxiliary variables enter."""

    def quadratics(self) -> CellQuadratics:
        """See `ConvexQuadratic.quadratics`."""
        return self.pair_terms().quadratics
