"""Dual variables of quadratic losses over pairs in saddle form, and their mirror steps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from fairconstrained.solvers.published.saddle_form import SaddleForm

__all__ = ["BoundedMultipliers", "DualVariables", "LevelWeights"]

#: Every multiplier at the beginning, over the largest sum of all.
_FIRST = 0.01


@dataclass(frozen=True, eq=False)
class DualVariables(ABC):
    r"""Weights :math:`\tilde y` in a simplex, and one :math:`\alpha` for every term of the saddle form.

    With :math:`\tilde\alpha_k = \tilde y_{j(k)} \alpha_k` the dual function is concave, and

    .. math:: d_y = \sum_k c_{1k} \tilde\alpha_k^2 / \tilde y_{j(k)}, \qquad
              V_y = K \sum_j \tilde y_j \ln (\tilde y_j / \tilde y_j')
                    + \sum_k c_{1k} \tilde y_{j(k)} (\alpha_k - \alpha_k')^2

    (eqs. 25 and 28, with the factor :math:`c_1` that the paper leaves out; see `SaddleForm`). With p terms in a
    component, :math:`K = 2 (1 + \sqrt{p} I)^2` makes the distance strongly convex with modulus
    :math:`\min(1, c_1)`; the paper has p = 2.
    """

    form: SaddleForm
    #: :math:`|\alpha_k| \le I_k`.
    interval: np.ndarray  # of shape (n_terms,)

    @classmethod
    def of(cls, form: SaddleForm, level: float) -> Self:
        r"""The smallest intervals for points whose objective is at most ``level`` and that are feasible.

        There every component is bounded by some :math:`B_j`, which no term exceeds, as none is negative:
        :math:`c_1 (\bar s_A - \bar s_B - c_2)^2 \le B_j`, so that :math:`I_k = c_2 + \sqrt{B_j / c_1}` holds the best
        alpha. Where alpha would leave the interval, the component still exceeds :math:`B_j`: the intervals change
        neither the feasible set nor the root of H. They hold for any model.
        """
        bounds = -form.constant
        bounds[0] += level
        interval = form.c2 + np.sqrt(np.maximum(bounds[form.component], 0.0) / form.c1)
        return cls(form, interval)

    @abstractmethod
    def start(self) -> np.ndarray:
        """Logarithms of the first weights; ndarray of shape (n_components,)."""

    @abstractmethod
    def component_weights(self, y: np.ndarray) -> np.ndarray:
        """Factors of the objective and of the constraints in the saddle function; ndarray of shape (n_components,)."""

    @abstractmethod
    def gains(self, values: np.ndarray) -> np.ndarray:
        """Derivatives of the dual function in the weights, where components have these values."""

    @property
    @abstractmethod
    def pace(self) -> float:
        r"""The dual step size over the primal one, :math:`\tau_t / \eta_t`."""

    @cached_property
    def entropy(self) -> float:
        """K, see above."""
        most = np.bincount(self.form.component).max(initial=0)
        return 2 * (1 + np.sqrt(most) * float(self.interval.max(initial=0.0))) ** 2

    def step(
        self, log_y: np.ndarray, alpha: np.ndarray, u: np.ndarray, v: np.ndarray, tau: float
    ) -> tuple[np.ndarray, np.ndarray]:
        r"""The mirror step (29), in closed form (Lemma 3).

        .. math::
            \alpha_k^\# &= \arg\min_{|\alpha| \le I_k} \; -\alpha v_k + c_1 \alpha^2
                           + \tfrac{c_1}{\tau} (\alpha - \alpha_k')^2
                         = \mathrm{clip}\left( \frac{\tau v_k / (2 c_1) + \alpha_k'}{1 + \tau} \right), \\
            \tilde y_j^\# &\propto \tilde y_j' \exp \left( (u_j - \textstyle\sum_{k \in j} \mu_k)\, \tau / K \right)

        with :math:`\mu_k` the minimum (eq. 38). ``log_y`` are the logarithms of the weights, ``u`` the values of the
        components without their parts in alpha, and ``v`` the derivatives in the scaled alpha.
        """
        c1 = self.form.c1
        moved = (tau / 2 * v / c1 + alpha) / (1 + tau)
        moved = np.minimum(np.maximum(moved, -self.interval), self.interval)
        mu = moved * (c1 * moved - v) + c1 / tau * (moved - alpha) ** 2
        log_pi = log_y + self.gains(u - self.form.total(mu)) * (tau / self.entropy)
        log_pi -= log_pi.max()
        return log_pi - np.log(np.exp(log_pi).sum()), moved

    def largest(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        r"""The components' largest values over alpha (Lemma 4); ndarray of shape (n_components,).

        .. math:: u_j + \sum_{k \in j} \max_{|\alpha| \le I_k} \left( \alpha v_k - c_1 \alpha^2 \right)
        """
        c1 = self.form.c1
        alpha = np.clip(v / (2 * c1), -self.interval, self.interval)
        return u + self.form.total(alpha * (v - c1 * alpha))


class LevelWeights(DualVariables):
    """Weights of the components themselves, the objective being one of them, less its level."""

    def start(self) -> np.ndarray:
        """Equal weights."""
        n_components = self.form.constant.size
        return np.full(n_components, -np.log(n_components))

    def component_weights(self, y: np.ndarray) -> np.ndarray:
        """The weights as they are."""
        return y

    def gains(self, values: np.ndarray) -> np.ndarray:
        """The values as they are."""
        return values

    @cached_property
    def pace(self) -> float:
        """Variation of the distance generating function, D_y squared in Theorem 1; 1 without dual variables."""
        most = self.form.total(self.form.c1 * self.interval**2).max()
        return self.entropy * math.log(self.form.constant.size) + float(most) or 1.0


@dataclass(frozen=True, eq=False)
class BoundedMultipliers(DualVariables):
    r"""Multipliers :math:`\lambda_j = \Lambda \tilde y_j` whose sum is at most :math:`\Lambda`.

    The objective has the factor 1, and its weight is what the multipliers leave. They begin near zero, as large ones
    do harm for as long as their logarithms take to shrink. Two sizes are not those of the theory, of which single rows
    make too much and multipliers too little: dual steps are about as long as primal ones, or alpha would follow every
    row, and :math:`K = \Lambda / 2`, so that a step moves the logarithm of a multiplier by twice the step size times
    the violation.
    """

    #: :math:`\Lambda`.
    largest_sum: float = 10.0
    pace: float = 1.0  # as in `DualVariables`

    @cached_property
    def entropy(self) -> float:
        """K, half of the largest sum."""
        return self.largest_sum / 2

    def start(self) -> np.ndarray:
        """Small multipliers, all alike."""
        y = np.full(self.form.constant.size, _FIRST)
        y[0] = max(1 - _FIRST * (y.size - 1), _FIRST)
        return np.log(y / y.sum())

    def component_weights(self, y: np.ndarray) -> np.ndarray:
        """1 for the objective, and the multipliers."""
        weights = self.largest_sum * y
        weights[0] = 1.0
        return weights

    def gains(self, values: np.ndarray) -> np.ndarray:
        """The values of the constraints, times the largest sum of multipliers."""
        gains = self.largest_sum * values
        gains[0] = 0.0
        return gains
