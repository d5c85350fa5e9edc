"""Convex quadratic functions of the moments of the scores, and the pairwise quadratic losses that come to them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import torch
from torch import Tensor

from fairconstrained.data import Rows

__all__ = ["CellQuadratics", "PairTerms"]


@dataclass(frozen=True, eq=False)
class CellQuadratics:
    """Convex quadratic functions of the means ``m`` and the variances ``v`` of the scores in cells of rows.

    Component j is ``variance[j] @ v + m @ product[j] @ m + linear[j] @ m + constant[j]``. For a model that is
    linear in its parameters ``w`` it is a convex quadratic function of ``w``, and its Hessian takes no more than
    the first two moments of X in every cell.

    Attributes
    ----------
    rows : tuple of slice or ndarray
        The rows of every cell; cells are disjoint.
    shares : Tensor of shape (n_samples,)
        Weights of the rows, which sum to one in every cell.
    variance : ndarray of shape (n_components, n_cells)
        Non-negative.
    product : ndarray of shape (n_components, n_cells, n_cells)
        Symmetric and positive semidefinite.
    linear : ndarray of shape (n_components, n_cells)
    constant : ndarray of shape (n_components,)
    """

    rows: tuple[Rows, ...]
    shares: Tensor
    variance: np.ndarray
    product: np.ndarray
    linear: np.ndarray
    constant: np.ndarray

    def values(self, scores: Tensor) -> Tensor:
        """Every component at some scores; Tensor of shape (n_components,), differentiable."""
        means = torch.stack([self.shares[rows] @ scores[rows] for rows in self.rows])
        variances = torch.stack(
            [self.shares[rows] @ (scores[rows] - mean) ** 2 for rows, mean in zip(self.rows, means, strict=True)]
        )
        variance, product, linear, constant = (
            torch.from_numpy(table) for table in (self.variance, self.product, self.linear, self.constant)
        )
        return variance @ variances + (product @ means) @ means + linear @ means + constant


@dataclass(frozen=True, eq=False)
class PairTerms:
    r"""Sums of a quadratic loss over pairs of rows.

    Component j is the sum of its terms plus a constant. The term of the sets A and B is

    .. math:: E\left[ c_1 (s - s' - c_2)^2 \mid s \in A, s' \in B \right]
              = c_1 \left( (\bar s_A - \bar s_B - c_2)^2 + v_A + v_B \right)

    with the means and variances of the scores in the sets: no pair is formed. Sets are unions of cells.

    Attributes
    ----------
    rows : tuple of slice or ndarray
        The rows of every cell; cells are disjoint.
    shares : Tensor of shape (n_samples,)
        Weights of the rows, which sum to one in every cell.
    sets : ndarray of shape (n_sets, n_cells)
        Share that every cell has in every set; the rows sum to one.
    component, first, second : ndarray of shape (n_terms,)
        Component that every term belongs to, and the numbers of its sets A and B.
    constant : ndarray of shape (n_components,)
    c1, c2 : float
        Positive.
    """

    rows: tuple[Rows, ...]
    shares: Tensor
    sets: np.ndarray
    component: np.ndarray
    first: np.ndarray
    second: np.ndarray
    constant: np.ndarray
    c1: float = 0.5
    c2: float = 1.0

    @classmethod
    def none(cls, shares: Tensor) -> Self:
        """One component without terms, which is zero."""
        no_terms = np.empty(0, dtype=int)
        return cls((), shares, np.empty((0, 0)), no_terms, no_terms, no_terms, np.zeros(1))

    def plus(self, constant: float) -> Self:
        """Return the functions with a constant added to every component."""
        return replace(self, constant=self.constant + constant)

    @cached_property
    def quadratics(self) -> CellQuadratics:
        """The components as functions of the moments in the cells."""
        n_components, n_cells = self.constant.size, self.sets.shape[1]
        variance, linear = np.zeros((2, n_components, n_cells))
        product = np.zeros((n_components, n_cells, n_cells))
        constant = self.constant.copy()
        for j, a, b in zip(self.component, self.sets[self.first], self.sets[self.second], strict=True):
            difference = a - b
            variance[j] += self.c1 * (a + b)
            # the second part is the variance between the cells of a set
            product[j] += self.c1 * (np.outer(difference, difference) + _between(a) + _between(b))
            linear[j] -= 2 * self.c1 * self.c2 * difference
            constant[j] += self.c1 * self.c2**2
        return CellQuadratics(self.rows, self.shares, variance, product, linear, constant)


def _between(shares: np.ndarray) -> np.ndarray:
    """The matrix P for which ``m @ P @ m`` is the variance of cell means ``m`` in these shares."""
    return np.diag(shares) - np.outer(shares, shares)
