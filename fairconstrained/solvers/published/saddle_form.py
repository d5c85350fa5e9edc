"""Pairwise quadratic losses as saddle functions of single rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self, cast

import numpy as np

from fairconstrained.pairwise import PairTerms
from fairconstrained.problem import Problem
from fairconstrained.views import SingleRows

__all__ = ["SaddleForm", "SaddleSample"]


class SaddleSample(NamedTuple):
    """The saddle function on some rows, and its gradients there."""

    #: F, summed over the terms of every component: the gradient in the weights of the components.
    u: np.ndarray  # of shape (n_components,)
    #: G: the gradient in the scaled alpha.
    v: np.ndarray  # of shape (n_terms,)
    #: Gradient in the scores.
    scores: np.ndarray  # of shape (n_rows,)
    #: Second derivatives in the scores.
    curvature: np.ndarray  # of shape (n_rows,)
    #: Gradient in the auxiliary variables a and b.
    ab: np.ndarray  # of shape (2, n_terms)
    #: Second derivatives there.
    ab_curvature: np.ndarray  # of shape (2, n_terms)


class _Rows(NamedTuple):
    """The cell of every row of a term, its share of the cell, that over its probability, and the sets by cell."""

    codes: np.ndarray
    shares: np.ndarray
    ratio: np.ndarray
    sets: np.ndarray


@dataclass(frozen=True, eq=False)
class SaddleForm:
    r"""The terms of all components in saddle form (Lemma 1), component 0 being the objective.

    The term of the sets A and B is

    .. math::
        E\left[ c_1 (s - s' - c_2)^2 \mid s \in A, s' \in B \right]
        = \min_{a, b} \max_\alpha \; E\left[ F(s, a, b) + \alpha G(s) \right] - c_1 \alpha^2

    with the weights :math:`p_A(i) = 1[i \in A] / P(A)` of row i in the sets and

    .. math::
        F &= c_1 \left( c_2^2 - 2 c_2 s (p_A - p_B) + (s - a)^2 p_A + (s - b)^2 p_B \right) \\
        G &= 2 c_1 s (p_A - p_B)

    (eq. 8). Both take one row at a time. The best :math:`a, b` are the mean scores of the sets, the best
    :math:`\alpha` is their difference. The :math:`-\alpha^2` of eqs. 7 and 11-17 is right for :math:`c_1 = 1` only:
    with a factor :math:`c_1` in G its maximum would be :math:`c_1^2 (\bar s_A - \bar s_B)^2`.
    """

    #: Component that every term belongs to, and the numbers of its sets A and B.
    component: np.ndarray  # of shape (n_terms,)
    first: np.ndarray  # of shape (n_terms,)
    second: np.ndarray  # of shape (n_terms,)
    c1: np.ndarray  # of shape (n_terms,)
    c2: np.ndarray  # of shape (n_terms,)
    #: Added to the sums of the terms.
    constant: np.ndarray  # of shape (n_components,)
    #: Places of the rows for every term of the problem; empty on a stream.
    rows: tuple[_Rows, ...]

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The objective, without its penalty, and all constraints of a problem whose terms offer `SingleRows`.

        Of the objective only the losses over pairs, without the mean over the rows.
        """
        forms = [cast(SingleRows, term).pair_terms() for term in (problem.objective, *problem.constraints)]
        probability = problem.data.weights.numpy()
        return cls.joined(forms, tuple(_cell_rows(form, probability) for form in forms))

    @classmethod
    def joined(cls, forms: Sequence[PairTerms], rows: tuple[_Rows, ...] = ()) -> Self:
        """The components of several terms, of which the first is the objective; the sets are numbered on and on."""
        components = np.cumsum([0] + [form.constant.size for form in forms])
        sets = np.cumsum([0] + [len(form.sets) for form in forms])
        return cls(
            component=np.concatenate([form.component + j for form, j in zip(forms, components, strict=False)]),
            first=np.concatenate([form.first + k for form, k in zip(forms, sets, strict=False)]),
            second=np.concatenate([form.second + k for form, k in zip(forms, sets, strict=False)]),
            c1=np.concatenate([np.full(form.component.size, form.c1) for form in forms]),
            c2=np.concatenate([np.full(form.component.size, form.c2) for form in forms]),
            constant=np.concatenate([form.constant for form in forms]),
            rows=rows,
        )

    def set_weights(self, rows: np.ndarray) -> np.ndarray:
        """Weights in the sets of rows that are drawn in proportion to their weight, along a new last axis."""
        parts = [place.sets[place.codes[rows]] * place.ratio[rows][..., None] for place in self.rows]
        return np.concatenate(parts, axis=-1)

    def sample(
        self, scores: np.ndarray, weights: np.ndarray, ab: np.ndarray, y: np.ndarray, alpha: np.ndarray
    ) -> SaddleSample:
        r""":math:`\Phi = \tilde y^T F + \tilde\alpha^T G` (eq. 26), summed over some rows, and its gradients.

        ``weights`` are those of `set_weights`, divided by the number of rows for the mean over them. ``ab`` are the
        auxiliary variables, ``y`` the weights of the components, and alpha is not scaled:
        :math:`\tilde\alpha_k = \tilde y_{j(k)} \alpha_k`.
        """
        powers = np.ones((3, len(scores)))
        powers[1] = scores
        powers[2] = scores * scores
        # each of shape (2, n_terms), for the sets A and B
        mass, mean, square = (powers @ weights @ self._incidence.T).reshape(3, 2, -1)
        difference = mean[0] - mean[1]
        spread = square + ab * (ab * mass - 2 * mean)
        terms = self.c1 * (self.c2 * (self.c2 - 2 * difference) + spread[0] + spread[1])
        # the gradient in a score of set A is 2 c1 y~ p_A (s - a - c2 + alpha), and that of B the same with signs turned
        curvature = 2 * self.c1 * y[self.component]
        lean = curvature * (alpha - self.c2)
        lines = np.empty((2, 2, curvature.size))
        lines[0] = curvature
        lines[1] = -curvature * ab
        lines[1, 0] += lean
        lines[1, 1] -= lean
        bends, slopes = (lines.reshape(2, -1) @ self._incidence) @ weights.T
        return SaddleSample(
            u=self.constant + self.total(terms),
            v=2 * self.c1 * difference,
            scores=bends * scores + slopes,
            curvature=bends,
            ab=curvature * (ab * mass - mean),
            ab_curvature=curvature * mass,
        )

    def best_ab(self, scores: np.ndarray) -> np.ndarray:
        """The best auxiliary variables for scores of all rows: the means of the sets; shape (2, n_terms)."""
        means = []
        for place in self.rows:
            cells = np.bincount(place.codes, place.shares * scores, len(place.sets))
            means.append(cells @ place.sets)
        return np.concatenate(means)[self._sets]

    def total(self, terms: np.ndarray) -> np.ndarray:
        """Sums over the terms of every component; ndarray of shape (n_components,)."""
        return self._membership @ terms

    @cached_property
    def _membership(self) -> np.ndarray:
        """Which terms every component has; ndarray of shape (n_components, n_terms)."""
        return (np.arange(self.constant.size)[:, None] == self.component).astype(float)

    @cached_property
    def _sets(self) -> np.ndarray:
        """The sets A and B of every term; ndarray of shape (2, n_terms)."""
        return np.stack([self.first, self.second])

    @cached_property
    def _incidence(self) -> np.ndarray:
        """Which set the A and then the B of every term is; ndarray of shape (2 n_terms, n_sets)."""
        n_sets = self._sets.max(initial=-1) + 1
        return (np.arange(n_sets) == self._sets.reshape(-1, 1)).astype(float)


def _cell_rows(form: PairTerms, probability: np.ndarray) -> _Rows:
    codes = np.full(probability.size, len(form.rows))
    for cell, rows in enumerate(form.rows):
        codes[rows] = cell
    outside = np.zeros((1, len(form.sets)))
    shares = form.shares.numpy()
    return _Rows(codes, shares, shares / probability, np.vstack([form.sets.T, outside]))
