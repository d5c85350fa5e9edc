"""Distances between the groups' score distributions, and the curve of their ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.checks.messages import check_integer
from fairconstrained.metrics.comparisons import QuantileDistances, RanksOfThresholds
from fairconstrained.metrics.partial import partial_statistical_parity_gap
from fairconstrained.metrics.ranks import rank_table
from fairconstrained.metrics.rates import AGGREGATES, Aggregate, aggregate_pairs
from fairconstrained.metrics.registry import documented_metric, register
from fairconstrained.metrics.transport import (
    group_distributions,
    group_histograms,
    largest_squared_wasserstein,
    squared_wasserstein,
)
from fairconstrained.metrics.validation import check_groups, check_option, check_scores

__all__ = ["score_curve", "statistical_parity_gap", "wasserstein_gap"]

# float32 probabilities that sum to one after rounding may exceed it by this much.
_PROBABILITY_TOLERANCE = 1e-6


@register(
    "decision_function",
    title="Scores (statistical parity)",
    description="Difference between the shares of two groups above a threshold, for the threshold at which it is "
    "largest.",
    compared=RanksOfThresholds(),
)
def statistical_parity_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Kolmogorov-Smirnov distance of the groups' score distributions (SP).

    .. math:: \max_{g, g'} \max_\theta |P(s > \theta \mid g) - P(s > \theta \mid g')|

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``threshold``, the score with the largest gap over all pairs;
        its ``rank`` in the group, P(s > threshold | g). Only if ``return_groups``.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: eq. (2).
    """
    result = partial_statistical_parity_gap(
        y_true,
        y_score,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        agg=agg,
        return_groups=return_groups,
    )
    if isinstance(result, tuple):
        return result[0], result[1].drop(columns="partial_rank")
    return result


@register(
    "predict_proba",
    title="Distance of the probabilities (Wasserstein)",
    description="Squared distance by which the probabilities of one group have to move to be distributed as those of "
    "another.",
    label="Wasserstein gap",
    unit="squared probability",
    symbol="Wd",
    compared=QuantileDistances(),
)
def wasserstein_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    n_bins: int | None = None,
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Squared 2-Wasserstein distance of the groups' predicted probabilities (Wd).

    With the quantile function :math:`Q_g` of the predicted probabilities in group :math:`g`,

    .. math:: \max_{g, g'} W_2^2(g, g') = \max_{g, g'} \int_0^1 (Q_g(u) - Q_{g'}(u))^2 \, du

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Predicted probabilities of the positive class. Of more than two labels, shape (n_samples, n_labels): a column
        for every label, in sorted order.
    n_bins : int, default=None
        None is exact. Otherwise the probabilities are first moved to the centres of ``n_bins`` equal bins of
        [0, 1], closed on the left, the last one closed on both sides.
    agg : {"max", "mean"}, default="max"
        Aggregate of the distances of the pairs of groups.

    Returns
    -------
    gap : float
        Gap in [0, 1] (squared units of probability), where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``; ``mean_score``; ``gap``, the largest distance to another
        group. Only if ``return_groups``.

    Raises
    ------
    ValueError
        If a probability is outside [0, 1], or ``n_bins`` is no integer of at least 1.

    References
    ----------
    .. [1] A. Miroshnikov, K. Kotsiopoulos, R. Franks, A. Ravi Kannan, "Wasserstein-based fairness interpretability
       framework for machine learning models", Machine Learning 111, 2022.
    """
    scores = check_scores(y_score, y_true)
    if scores.min() < -_PROBABILITY_TOLERANCE or scores.max() > 1 + _PROBABILITY_TOLERANCE:
        raise ValueError(
            f"y_score must hold probabilities in [0, 1]; its range is [{scores.min():g}, {scores.max():g}]. "
            "Pass predict_proba(X)[:, 1] of a classifier; statistical_parity_gap compares other scores and the "
            "predictions of a regressor."
        )
    scores = np.clip(scores, 0.0, 1.0)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    check_option("agg", agg, AGGREGATES)
    if n_bins is None:
        distributions = group_distributions(scores, *rows.arrays)
    else:
        distributions = group_histograms(scores, *rows.arrays, check_integer("n_bins", n_bins))
    if agg == "max" and not return_groups:
        return rows.gap(largest_squared_wasserstein(distributions))
    distances = np.zeros((rows.n_groups, rows.n_groups))
    for first, second in zip(*np.triu_indices(rows.n_groups, 1), strict=True):
        distance = squared_wasserstein(distributions[first], distributions[second])
        distances[first, second] = distances[second, first] = distance
    gap = rows.gap(aggregate_pairs(distances, agg))
    if not return_groups:
        return gap
    return gap, rows.table(mean_score=rows.means(scores)[0], gap=distances.max(axis=0))


@documented_metric
def score_curve(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
) -> pd.DataFrame:
    r"""Positive rate of every group at every threshold, to plot one group's against the other's.

    Two groups with the same score distribution give the diagonal; the largest distance of the curve from the
    diagonal, measured along an axis, is :func:`statistical_parity_gap`.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores, e.g. from ``decision_function``. Only their order matters.

    Returns
    -------
    curve : DataFrame of shape (n_thresholds, n_groups)
        :math:`\bar F_g(\theta) = P(s > \theta \mid g)`: one column for each group, one row for each distinct
        score :math:`\theta` in decreasing order and a last one for :math:`-\infty`, so the rates run from 0
        to 1. The index is called ``threshold``.

    References
    ----------
    .. [1] He, Huang, Yao, Lin, arXiv:2505.12530: definition 4.1.
    """
    scores = check_scores(y_score, y_true)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    thresholds, ranks = rank_table(scores, *rows.arrays)
    return pd.DataFrame(ranks, index=pd.Index(thresholds, name="threshold"), columns=rows.index)
