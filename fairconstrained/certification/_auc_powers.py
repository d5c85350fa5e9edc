r"""Unbiased estimates of the powers of an AUC, from all ways of pairing two samples.

With rows :math:`x_1, \dots, x_n` of the smaller sample and :math:`y_1, \dots, y_m` of the larger one, and the kernel
:math:`h(x, y) = 1[x > y] + \tfrac12 1[x = y]`, the estimate of the power k is the mean over all choices of k rows x and
of k different rows y in any order,

.. math:: v_k = \frac{1}{\binom nk} \frac{(m-k)!}{m!} \sum_{i_1 < \dots < i_k} \;
          \sum_{j_1, \dots, j_k \text{ distinct}} \; \prod_{l=1}^k h(x_{i_l}, y_{j_l}), \qquad
          \mathrm{E}\, v_k = \theta^k,

because the pairs of one choice have no row in common, so that the values of the kernel are independent with mean
:math:`\theta`: a U-statistic of two samples (Lehmann 1951, section 3; Hoeffding 1963, equation 5.1).

The inner sum counts placements of k rooks on the board of the pairs with x above y. Columns that a row is above are
also below the next rows in order, a Ferrers board, so that rows can be placed one after the other: a row above L others
has L - k + 1 columns left if k - 1 rooks lie on rows before it (Goldman, Joichi, White 1975, theorem 1). This takes n
steps of length K for the powers up to K. Rows of one score are placed together: t of p rows on columns of their own
score, each of which counts 1/2.

References
----------
E. L. Lehmann, "Consistency and Unbiasedness of Certain Nonparametric Tests", Annals of Mathematical Statistics 1951.
W. Hoeffding, "Probability Inequalities for Sums of Bounded Random Variables", JASA 1963.
J. Goldman, J. Joichi, D. White, "Rook Theory I. Rook Equivalence of Ferrers Boards", Proceedings of the AMS 1975.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

__all__ = ["log_powers"]


def log_powers(above: np.ndarray, below: np.ndarray, largest: int | None = None) -> np.ndarray:
    """Return the logarithms of the unbiased estimates of the powers of ``P(above > below) + P(above = below) / 2``.

    Parameters
    ----------
    above, below : ndarray of shape (n_above,) and (n_below,)
        Scores of two samples, none of which is empty.
    largest : int, optional
        Largest power. None: the number of rows of the smaller sample, beyond which there is no estimate.

    Returns
    -------
    logs : ndarray of shape (n_powers + 1,)
        Logarithms for the powers 0, 1, ...; minus infinity where an estimate is 0.
    """
    if above.size > below.size:  # the same AUC with the order of scores turned round
        above, below = -below, -above
    n_powers = min(above.size, above.size if largest is None else largest)
    rows, repeats = np.unique(above, return_counts=True)
    below = np.sort(below)
    lower = np.searchsorted(below, rows, "left")
    ties = np.searchsorted(below, rows, "right") - lower
    auc = float((lower + ties / 2) @ repeats / (above.size * below.size))
    powers = np.arange(n_powers + 1)
    if auc == 0:
        return np.where(powers == 0, 0.0, -np.inf)
    board = _Board(below.size, powers, auc, gammaln(np.arange(above.size + 2) + 1.0))
    estimates = (powers == 0).astype(float)
    placed = 0
    for n_rows, n_lower, n_ties in zip(repeats.tolist(), lower.tolist(), ties.tolist(), strict=True):
        estimates = board.placed(estimates, placed, n_rows, n_lower, n_ties)
        placed += n_rows
    with np.errstate(divide="ignore"):
        return np.log(estimates) + powers * np.log(auc)


class _Board:
    """Estimates of powers of the AUC of the rows so far, divided by the same powers of ``auc`` lest they underflow."""

    def __init__(self, n_columns: int, powers: np.ndarray, auc: float, log_factorials: np.ndarray) -> None:
        self.n_columns, self.powers, self.auc, self.log_factorials = n_columns, powers, auc, log_factorials

    def placed(self, estimates: np.ndarray, before: int, n_rows: int, n_lower: int, n_ties: int) -> np.ndarray:
        """Return the estimates with ``n_rows`` more rows of one score, above ``n_lower`` columns."""
        k = self.powers[1:]
        ratio = np.maximum(n_lower - k + 1, 0) / ((self.n_columns - k + 1) * self.auc)
        steps = [estimates]
        for after in range(before + 1, before + n_rows + 1):
            share = k / after
            moved = steps[-1].copy()
            # beyond the rows so far the estimates are 0, which the share of 1 at k = after keeps
            moved[1:] = np.maximum(1 - share, 0.0) * moved[1:] + share * steps[-1][:-1] * ratio
            steps = [*steps, moved] if n_ties else [moved]
        return self._with_ties(steps, before, n_rows, n_ties) if n_ties else steps[-1]

    def _with_ties(self, steps: list[np.ndarray], before: int, n_rows: int, n_ties: int) -> np.ndarray:
        """Add placements with t rows on columns of their own score, the others as in ``steps[n_rows - t]``."""
        total, columns = steps[-1].copy(), np.ones(self.powers.size)
        after, logs = before + n_rows, self.log_factorials
        for t in range(1, min(n_rows, n_ties, self.powers[-1]) + 1):
            left = self.n_columns - self.powers - t + 1
            columns = columns * ((n_ties - t + 1) / (2 * self.auc)) / np.maximum(left, 1)
            k = self.powers[: min(self.powers[-1] - t, after - t) + 1]
            rows = logs[n_rows] - logs[t] - logs[n_rows - t] + logs[after - t] - logs[after] + logs[k + t] - logs[k]
            total[k + t] += steps[n_rows - t][k] * np.exp(rows) * columns[k]
        return total
