r"""Lower bounds on AUCs and on sums of independent AUCs, from the wealth of bets that they are as small as supposed.

For every distribution g of a power k, whatever the estimates :math:`v_k` of the powers are, with
:math:`\mathrm E\,v_k = \theta^k`,

.. math:: W(\theta) = \sum_{k=0}^n g_k \frac{v_k}{\theta^k} \ge 0, \qquad \mathrm{E}\, W(\theta) = \sum_k g_k = 1,

so that, by Markov's inequality, :math:`P(W(\theta) \ge 1/\delta) \le \delta` at the AUC :math:`\theta` of the
population, for every distribution of the scores and all sizes of the samples. W falls with :math:`\theta`; the AUCs at
which it is below :math:`1/\delta` are those above a bound that fails with probability at most :math:`\delta`.

With the binomial distribution of n draws, :math:`g_k = \binom nk \kappa^k (1-\kappa)^{n-k}`, W is the mean of

.. math:: \prod_{i=1}^n \Bigl(1 + \frac{\kappa}{\theta}\bigl(h(x_i, y_{\pi(i)}) - \theta\bigr)\Bigr)

over all ways :math:`\pi` to pair the n rows of the smaller sample with different rows of the larger one, that is, the
wealth of one who bets the share :math:`\kappa` of it on every pair (Waudby-Smith and Ramdas 2024, section 4). In the
limit of many rows the mean over pairings replaces the variance of the kernel by that of the AUC: with
:math:`\lambda = \kappa / \theta`, the logarithm of W is about :math:`n \lambda (v_1 - \theta) - n^2 \lambda^2
\mathrm{Var}(v_1) / 2`. The wealth from a single pairing, as in Hoeffding's inequality for U-statistics, has the
variance of the kernel in the place of :math:`n \mathrm{Var}(v_1)`, two to ten times as much.

Wealths of independent samples may be multiplied, and averaged over shares with weights that do not depend on the data,

.. math:: W(\theta_1, \theta_2) = \sum_j w_j W_{1j}(\theta_1) W_{2j}(\theta_2), \qquad \mathrm{E}\, W = 1,

so that the AUCs with :math:`W < 1/\delta` contain the two of the population with probability at least
:math:`1 - \delta`, and the least of their sums bounds the sum: no union over the two. In the logarithms of the AUCs
:math:`\log W` is convex, a logarithm of a sum of exponentials of linear functions, and the sum is convex too, so that a
search on a line finds the least one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, xlog1py, xlogy

from fairconstrained.certification._auc_powers import log_powers
from fairconstrained.certification._aucs import auc_of_scores

__all__ = ["Bettor", "TwoSamples"]


class _Habit(NamedTuple):
    """Shares of the wealth to bet, by what is expected; bounds hold whether or not it is so."""

    #: Part of the wealth at the start.
    weight: float
    #: AUC that the shares are best for.
    auc: float
    #: Factor of the shares.
    boldness: float = 1.0
    #: Largest share. With a share of 1 a single row that is below all others costs all of the wealth.
    most: float = 1.0


#: For sums of two AUCs: mostly of positives against negatives, and so large; small only where scores are the other way
#: round, such as costs. For single AUCs: mostly of one group against another.
_OF_SUMS = (_Habit(0.24, 0.95, 0.8), _Habit(0.53, 0.86, 0.8), _Habit(0.2, 0.65, 0.8, 0.85), _Habit(0.03, 0.2, 0.8))
_OF_ONE = (_Habit(0.6, 0.5, 0.8, 0.7), _Habit(0.4, 0.8, 0.8, 0.95))

#: Standard deviations of a binomial power beyond which estimates are left out, which makes wealths no larger.
_STANDARD_DEVIATIONS = 8
#: AUC below which a bound is zero, most steps of Newton's method, and the precision of the logarithm of an AUC.
_LEAST, _STEPS, _PRECISION = 1e-9, 100, 1e-7


@dataclass(frozen=True, eq=False)
class TwoSamples:
    """Scores of two independent samples, whose AUC is that of the first over the second."""

    above: np.ndarray  # of shape (n_above,)
    below: np.ndarray  # of shape (n_below,)
    #: Whether the AUC is expected to be at most 1/2.
    expects_less: bool = False
    _powers: dict[int, np.ndarray] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def turned(self) -> TwoSamples:
        """Return the samples in the other order, with one minus the AUC."""
        return TwoSamples(self.below, self.above, not self.expects_less)

    @cached_property
    def auc(self) -> float:
        """AUC of the samples."""
        return auc_of_scores(self.above, self.below)

    @property
    def count(self) -> int:
        """Rows of the smaller sample."""
        return min(self.above.size, self.below.size)

    def log_powers(self, largest: int) -> np.ndarray:
        """Return logarithms of the unbiased estimates of powers of the AUC, up to the ``largest``."""
        if largest not in self._powers:
            self._powers[largest] = log_powers(self.above, self.below, largest)
        return self._powers[largest]

    def expected(self, auc: float) -> float:
        """Return the AUC in this order of what is expected to have the larger one of ``auc`` and ``1 - auc``."""
        return 1 - auc if self.expects_less else auc

    def variance(self, auc: float) -> float:
        """Variance of the AUC of samples of these sizes with exponential scores.

        References
        ----------
        J. Hanley, B. McNeil, "The Meaning and Use of the Area under a Receiver Operating Characteristic (ROC) Curve",
        Radiology 1982, equations 1 and 2, without the terms of second order.
        """
        of_above, of_below = auc / (2 - auc) - auc**2, 2 * auc**2 / (1 + auc) - auc**2
        return of_above / self.above.size + of_below / self.below.size


@dataclass(frozen=True, eq=False)
class Bettor:
    """Wealth of bets that one AUC, or the sum of two independent ones, is as small as supposed."""

    #: Independent of each other.
    samples: Sequence[TwoSamples]

    def least_sum(self, delta: float) -> float:
        """Return a bound that the AUC or the sum of both is below with probability at most ``delta``."""
        habits = _OF_ONE if len(self.samples) == 1 else _OF_SUMS
        shares = np.array([self._shares(habit, delta) for habit in habits])
        wealths = [_Wealth(one, own) for one, own in zip(self.samples, shares.T, strict=True)]
        log_weights = np.log([habit.weight for habit in habits])
        last, budget = wealths[-1], -np.log(delta)
        if len(wealths) == 1:
            return _exp(last.least(log_weights, budget))
        first = wealths[0]

        def total(log_auc: float) -> float:
            return _exp(log_auc) + _exp(last.least(log_weights + first.at(log_auc)[0], budget))

        # with less of the first AUC than this, the second would have to exceed 1
        start = first.least(log_weights + last.at(0.0)[0], budget)
        found = minimize_scalar(total, bounds=(start, 0.0), method="bounded", options={"xatol": 10 * _PRECISION})
        return min(float(found.fun), total(start))

    def _shares(self, habit: _Habit, delta: float) -> np.ndarray:
        r"""Return the share of the wealth for every pair of samples.

        Where the AUCs are :math:`\mu_i` with the variances :math:`V_i`, the shares :math:`t \mu_i / n_i` with
        :math:`t^2 \sum_i V_i = 2 \ln(1/\delta)` give the least bound in the limit of many rows. The smallest sample has
        the share of the habit, and t is no larger than that allows. With two AUCs, the share of the other one may
        depend on this sample, of which it is independent: its :math:`\mu` is halfway between what is expected and this
        AUC.
        """
        means = np.array([one.expected(habit.auc) for one in self.samples])
        counts = np.array([one.count for one in self.samples])
        variance = sum(one.variance(mean) for one, mean in zip(self.samples, means, strict=True))
        fixed = int(counts.argmin())
        slope = habit.boldness * np.sqrt(-2 * np.log(delta) / variance)
        slope = min(slope, habit.most * counts[fixed] / means[fixed])
        known = self.samples[fixed]
        for place, one in enumerate(self.samples):
            if place != fixed:
                alike = known.auc if one.expects_less == known.expects_less else 1 - known.auc
                means[place] = (means[place] + alike) / 2
        return np.minimum(slope * means / counts, habit.most)


class _Wealth:
    """Wealth of some shares as a function of the logarithm of the AUC.

    Parameters
    ----------
    shares : ndarray of shape (n_shares,)
        Shares that are bet on every pair, in (0, 1].
    """

    def __init__(self, samples: TwoSamples, shares: np.ndarray) -> None:
        n, mean = samples.count, samples.count * float(shares.max())
        largest = min(n, int(np.ceil(mean + _STANDARD_DEVIATIONS * (np.sqrt(mean) + 1))))
        self._k = np.arange(largest + 1)
        chances = gammaln(n + 1) - gammaln(self._k + 1) - gammaln(n - self._k + 1)
        chances = chances + xlogy(self._k, shares[:, None]) + xlog1py(n - self._k, -shares[:, None])
        self._terms = samples.log_powers(largest) + chances

    def at(self, log_auc: float) -> tuple[np.ndarray, np.ndarray]:
        """Return logarithms of the wealth and their derivatives, of all shares."""
        terms = self._terms - self._k * log_auc
        tops = np.maximum(terms.max(axis=1), np.finfo(float).min)  # finite, also where all is lost
        parts = np.exp(terms - tops[:, None])
        sums = parts.sum(axis=1)
        with np.errstate(divide="ignore"):
            return tops + np.log(sums), -(parts @ self._k) / np.maximum(sums, 1.0)

    def least(self, log_weights: np.ndarray, budget: float) -> float:
        """Return the logarithm of an AUC at which the weighted wealth has come down to the budget.

        Newton's method on a convex function that falls comes to the root from below, so that stopping early makes the
        bound no larger.
        """
        log_auc = float(np.log(_LEAST))
        for _ in range(_STEPS):
            logs, slopes = self.at(log_auc)
            total = np.logaddexp.reduce(log_weights + logs)
            if total <= budget:
                break
            slope = float(np.exp(log_weights + logs - total) @ slopes)
            if slope == 0:  # more than the budget at every AUC
                return 0.0
            step = (budget - total) / slope
            log_auc += step
            if step < _PRECISION or log_auc >= 0:
                break
        return min(log_auc, 0.0)


def _exp(log_auc: float) -> float:
    return float(np.exp(log_auc)) if log_auc > np.log(_LEAST) else 0.0
