"""Share of the positive predictions that goes to a minority, and preference of one group over another."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fairconstrained.checks.messages import is_number
from fairconstrained.checks.protected import named_code
from fairconstrained.groups import Groups
from fairconstrained.metrics.cell_means import RATES
from fairconstrained.metrics.comparisons import CellRates, Comparison, MetricRows, NotOffered, everyone
from fairconstrained.metrics.contrasts import OneCell, ParityPairs
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.validation import check_groups, check_option, check_scores

__all__ = ["POSITIVE_RATES", "minority_share", "parity_pair", "parity_pair_of_rates", "share_of_first"]

#: Rates of positive predictions: `RATES` without the hinge.
POSITIVE_RATES = ("indicator", "sigmoid")


def share_of_first(first: float, total: float) -> float:
    """``first / total``; 1 where there is nothing to share."""
    return 1.0 if total <= 0 else first / total


def _others(rows: MetricRows) -> Comparison:
    """Shares of others than the minority; given how many predictions are positive, their number is binomial."""
    rate = rows.params.get("rate", "indicator")
    if rate != "indicator":
        raise NotOffered.of_smooth_rate(rate)
    scores = check_scores(rows.response)
    found = check_groups(rows.sensitive_features, None, scores.size)
    others = found.codes != found.labels.index(rows.params["minority"])
    alone = Groups(np.zeros(scores.size, dtype=np.int64), ("positive predictions",))
    return Comparison(others, (scores > 0)[None], ("all",), alone, OneCell())


def _positive_rates(rows: MetricRows) -> Comparison:
    """Rates of all groups."""
    rate = rows.params.get("rate", "indicator")
    scores = check_scores(rows.response, rows.y_true)
    groups = rows.groups
    values = RATES[rate](scores, np.ones(scores.size))
    contrast = ParityPairs(n_groups=len(groups.names), beta=rows.params.get("beta", 1.0))
    return Comparison(values, everyone(scores.size), ("all",), groups, contrast, counts_events=rate == "indicator")


@register(
    "decision_function",
    title="Share of the minority (minority share)",
    description="Share of the positive decisions that go to the minority.",
    compared=CellRates(_others),
    given=(),
    is_gap=False,
    complement=True,
)
def minority_share(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    minority: Any,
    sample_weight: npt.ArrayLike | None = None,
    rate: str = "indicator",
) -> float:
    r"""Share of the positive predictions that go to a minority.

    .. math:: \frac{\sum_{i \in M} r(s_i)}{\sum_{i} r(s_i)}

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores from ``decision_function``; positive ones are positive predictions.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row.
    minority : object
        The group M; a tuple where several columns are combined.
    rate : {"indicator", "sigmoid"}, default="indicator"
        The function r: 1 for a positive score and 0 otherwise, or :math:`1 / (1 + e^{-s})`.

    Returns
    -------
    share : float
        Share in [0, 1]; it is 1 where nobody is positive, since then nothing is withheld from the minority.

    Raises
    ------
    ValueError
        If no row is of the minority, or ``rate`` is unknown.

    References
    ----------
    .. [1] Ma, Lin, Yang, arXiv:1908.01871, section 5.

    Examples
    --------
    >>> from fairconstrained.metrics import minority_share
    >>> minority_share(None, [1.0, 2.0, 1.0, -1.0, 3.0], sensitive_features=["a", "b", "b", "a", "b"], minority="a")
    0.25
    """
    check_option("rate", rate, POSITIVE_RATES)
    scores = check_scores(y_score, y_true)
    groups = check_groups(sensitive_features, sample_weight, scores.size)
    code = named_code(groups.labels, minority, "minority", has_default=False)
    rates = groups.weights * RATES[rate](scores, np.ones(scores.size))
    return share_of_first(float(rates[groups.codes == code].sum()), float(rates.sum()))


def parity_pair_of_rates(rates: np.ndarray, beta: float) -> np.ndarray:
    """``R_a + beta (1 - R_b)`` for all groups a, b; ndarray of shape (n_groups, n_groups), zero for a = b."""
    values = rates[:, None] + beta * (1 - rates)
    np.fill_diagonal(values, 0.0)
    return values


@register(
    "decision_function",
    title="Parity of a pair of groups (parity pair)",
    description="Positive rate of one group and the negative rate of another, with a weight, added up.",
    compared=CellRates(_positive_rates),
    is_gap=False,
)
def parity_pair(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    beta: float = 1.0,
    rate: str = "indicator",
) -> float:
    r"""Rate at which one group is accepted plus the rate at which another is turned down.

    .. math:: \max_{a \ne b} \; \frac{1}{|a|} \sum_{i \in a} r(s_i) + \beta \frac{1}{|b|} \sum_{i \in b} (1 - r(s_i))

    With :math:`\beta = 1` it is one more than the largest gap between positive rates.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores from ``decision_function``; positive ones are positive predictions.
    beta : float, default=1.0
        Positive weight of turning down.
    rate : {"indicator", "sigmoid"}, default="indicator"
        The function r, see `minority_share`.

    Returns
    -------
    value : float
        Value in [0, 1 + beta]; it is NaN for a single group.

    Raises
    ------
    ValueError
        If ``beta`` is not positive, or ``rate`` is unknown.

    Warns
    -----
    FairnessWarning
        If there is a single group, so that there is nothing to compare and the value is NaN.

    References
    ----------
    .. [1] Ma, Lin, Yang, arXiv:1908.01871, section 1.1.

    Examples
    --------
    >>> from fairconstrained.metrics import parity_pair
    >>> parity_pair(None, [1.0, 2.0, 1.0, -1.0], sensitive_features=["a", "a", "b", "b"])
    1.5
    """
    check_option("rate", rate, POSITIVE_RATES)
    if not is_number(beta) or beta <= 0:
        raise ValueError(f"beta must be positive and finite, got {beta!r}.")
    scores = check_scores(y_score, y_true)
    groups = check_groups(sensitive_features, sample_weight, scores.size)
    (rates,) = groups.means(RATES[rate](scores, np.ones(scores.size)))
    return groups.gap(parity_pair_of_rates(rates, beta).max())
