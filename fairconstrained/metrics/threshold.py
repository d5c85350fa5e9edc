"""Gaps between groups of the rates of binary predictions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.groups import Groups
from fairconstrained.metrics.cell_means import Notion
from fairconstrained.metrics.comparisons import CellRates, Comparison, MetricRows, everyone, label_blocks
from fairconstrained.metrics.contrasts import OneCell
from fairconstrained.metrics.group_rates import means_compared
from fairconstrained.metrics.rates import AGGREGATES, OVER_LABELS, Aggregate, AggregateLabels, block_signs
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.rules import gap_of_pairs
from fairconstrained.metrics.validation import (
    GroupedRows,
    OnEmpty,
    check_binary_labels,
    check_cells,
    check_groups,
    check_labels,
    check_option,
    check_predictions,
)

__all__ = [
    "equal_opportunity_gap",
    "inaccuracy",
    "independence_gap",
    "separation_gap",
    "sufficiency_gap",
]

_ALL = ("all",)


def _selection(rows: MetricRows) -> Comparison:
    """Positive predictions of the groups."""
    labels = check_binary_labels(rows.y_true, rows.response)
    return means_compared(rows, labels.y_pred, everyone(labels.y_pred.size), _ALL, Notion())


def _by_label(rows: MetricRows, among: Sequence[int] = (0, 1)) -> Comparison:
    """Positive predictions among the rows of each of these true labels."""
    labels = check_binary_labels(rows.y_true, rows.response)
    blocks, names = label_blocks(labels.y_true, "y_true", labels.names, among)
    return means_compared(rows, labels.y_pred, blocks, names, Notion(agg_labels=rows.params.get("agg_labels", "max")))


def _by_prediction(rows: MetricRows) -> Comparison:
    """Positives by predicted label."""
    labels = check_binary_labels(rows.y_true, rows.response)
    blocks, names = label_blocks(labels.y_pred, "y_pred", labels.names)
    return means_compared(rows, labels.y_true, blocks, names, Notion(agg_labels="sum"))


def _errors(rows: MetricRows) -> Comparison:
    """Wrong predictions of all rows."""
    actual, predicted = check_labels(rows.y_true, rows.response)
    alone = Groups(np.zeros(actual.size, dtype=np.int64), ("all rows",))
    return Comparison(actual != predicted, everyone(actual.size), _ALL, alone, OneCell())


@register(
    "predict",
    title="Positive rate (demographic parity)",
    description="Difference between the shares of two groups that get a positive decision.",
    symbol="Ind",
    aliases=("demographic_parity", "demographic_parity_difference", "selection_rate_difference"),
    compared=CellRates(_selection),
)
def independence_gap(
    y_true: npt.ArrayLike | None,
    y_pred: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    agg: Aggregate = "max",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the groups' rates of positive predictions (demographic parity).

    .. math:: \max_{g, g'} |P(\hat y = 1 \mid g) - P(\hat y = 1 \mid g')|

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Tells which labels exist, when ``y_pred`` is constant; otherwise ignored.
    y_pred : array-like of shape (n_samples,)
        Predicted labels: 0/1, -1/1, booleans, strings, ...

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        ``n_samples``, ``weight``, ``selection_rate`` by group. Only if ``return_groups``.

    References
    ----------
    .. [1] S. Barocas, M. Hardt, A. Narayanan, "Fairness and Machine Learning", MIT Press 2023, chapter 3
       (independence).

    Examples
    --------
    >>> from fairconstrained.metrics import independence_gap
    >>> independence_gap([0, 1, 1, 0], [1, 1, 1, 0], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    labels = check_predictions(y_true, y_pred, pos_label)
    rows = check_groups(sensitive_features, sample_weight, labels.y_pred.size)
    return _gap_of_rates(["selection_rate"], rows.means(labels.y_pred), rows, agg, return_groups)


@register(
    "predict",
    title="True or false positive rate (equalized odds)",
    description="Difference between the shares of the positives, or of the negatives, of two groups that get a "
    "positive decision, whichever is larger.",
    symbol="Sp",
    symbol_params={"agg_labels": "sum"},
    aliases=("equalized_odds", "equalized_odds_difference"),
    compared=CellRates(_by_label),
    given=("group", "label"),
)
def separation_gap(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    agg: Aggregate = "max",
    agg_labels: AggregateLabels = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Larger difference of the groups' true and false positive rates (equalized odds).

    .. math:: \max_{g, g'} \max_{v \in \{0, 1\}} |P(\hat y = 1 \mid g, y = v) - P(\hat y = 1 \mid g', y = v)|

    Parameters
    ----------
    agg_labels : {"max", "sum"}, default="max"
        Aggregate of the differences of a pair in the two rates: the larger of them, as in Fairlearn's
        ``equalized_odds_difference``, or their sum, which papers report as separation, "Sp".

    Returns
    -------
    gap : float
        Gap in [0, 1], or [0, 2] with ``agg_labels="sum"``, where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        ``n_samples``, ``weight``, ``false_positive_rate``, ``true_positive_rate`` by group. Only if
        ``return_groups``.

    References
    ----------
    .. [1] S. Barocas, M. Hardt, A. Narayanan, "Fairness and Machine Learning", MIT Press 2023, chapter 3 (separation).
    .. [2] M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NeurIPS 2016, definition
       2.1.
    """
    labels = check_binary_labels(y_true, y_pred, pos_label)
    rows = check_groups(sensitive_features, sample_weight, labels.y_pred.size)
    rates = rows.means(labels.y_pred, labels.y_true)
    check_cells(rates, labels.y_true, rows, _headings("y_true", labels.names), on_empty)
    names = ["false_positive_rate", "true_positive_rate"]
    return _gap_of_rates(names, rates, rows, agg, return_groups, agg_labels, on_empty)


@register(
    "predict",
    title="True positive rate (equal opportunity)",
    description="Difference between the shares of the positives of two groups that get a positive decision.",
    aliases=("equal_opportunity_difference", "true_positive_rate_difference", "false_negative_rate_difference"),
    compared=CellRates(partial(_by_label, among=[1])),
    given=("group", "label"),
)
def equal_opportunity_gap(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the groups' true positive rates (equality of opportunity).

    .. math:: \max_{g, g'} |P(\hat y = 1 \mid g, y = 1) - P(\hat y = 1 \mid g', y = 1)|

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        ``n_samples``, ``weight``, ``true_positive_rate`` by group. Only if ``return_groups``.

    References
    ----------
    .. [1] M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NeurIPS 2016, definition
       2.2.
    """
    labels = check_binary_labels(y_true, y_pred, pos_label)
    rows = check_groups(sensitive_features, sample_weight, labels.y_pred.size)
    rates = rows.means(labels.y_pred, labels.y_true)[1:]
    check_cells(rates, labels.y_true, rows, _headings("y_true", labels.names), on_empty)
    return _gap_of_rates(["true_positive_rate"], rates, rows, agg, return_groups, on_empty=on_empty)


@register(
    "predict",
    title="Precision (sufficiency)",
    description="The differences of two groups in the share of positives among those with a positive decision, and in "
    "that among those with a negative one, added up; at most 2.",
    symbol="Sf",
    compared=CellRates(_by_prediction),
    given=("group", "response"),
)
def sufficiency_gap(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Sum over both predictions of the differences of the groups' shares of positives (sufficiency).

    .. math:: \max_{g, g'} \sum_{v \in \{0, 1\}} |P(y = 1 \mid g, \hat y = v) - P(y = 1 \mid g', \hat y = v)|

    Returns
    -------
    gap : float
        Gap in [0, 2], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        ``n_samples``, ``weight``, ``false_omission_rate`` = P(y=1 | g, yhat=0) and ``precision`` =
        P(y=1 | g, yhat=1) by group. Only if ``return_groups``.

    References
    ----------
    .. [1] S. Barocas, M. Hardt, A. Narayanan, "Fairness and Machine Learning", MIT Press 2023, chapter 3 (sufficiency).
    """
    labels = check_binary_labels(y_true, y_pred, pos_label)
    rows = check_groups(sensitive_features, sample_weight, labels.y_pred.size)
    rates = rows.means(labels.y_true, labels.y_pred)
    check_cells(rates, labels.y_pred, rows, _headings("y_pred", labels.names), on_empty)
    return _gap_of_rates(["false_omission_rate", "precision"], rates, rows, agg, return_groups, "sum", on_empty)


@register(
    "predict",
    by_class=False,
    symbol="Ina",
    title="Error rate (inaccuracy)",
    description="Share of the rows whose decision is wrong.",
    aliases=("error_rate",),
    compared=CellRates(_errors),
    given=(),
    compares_groups=False,
)
def inaccuracy(
    y_true: npt.ArrayLike,
    y_pred: npt.ArrayLike,
    *,
    sensitive_features: Any = None,
    sample_weight: npt.ArrayLike | None = None,
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Share of wrong predictions, :math:`P(\hat y \ne y)`, that is 1 - accuracy.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels; two or more.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        Group of every row; changes nothing but the table by group.
    return_groups : bool, default=False
        Whether to return the table by group as well; needs ``sensitive_features``.

    Returns
    -------
    share : float
        Share of the weight that is predicted wrong, in [0, 1].
    groups : DataFrame
        ``n_samples``, ``weight``, ``inaccuracy`` by group. Only if ``return_groups``.

    Raises
    ------
    ValueError
        If lengths differ, the labels are numbers in one column and strings in the other, each column holds two labels
        and not the same two, a group has no weight, or ``return_groups`` is asked for without ``sensitive_features``.
    """
    actual, predicted = check_labels(y_true, y_pred)
    if sensitive_features is None:
        if return_groups:
            raise ValueError("return_groups=True needs sensitive_features.")
        sensitive_features = np.zeros(actual.size, dtype=int)
    rows = check_groups(sensitive_features, sample_weight, actual.size)
    wrong = actual != predicted
    share = float(np.average(wrong, weights=rows.weights))
    if not return_groups:
        return share
    return share, rows.table(inaccuracy=rows.means(wrong)[0])


def _headings(what: str, names: tuple[str, str]) -> tuple[str, str]:
    return f"{what}={names[0]}", f"{what}={names[1]}"


def _gap_of_rates(
    names: Sequence[str],
    rates: np.ndarray,
    rows: GroupedRows,
    agg: Aggregate,
    return_groups: bool,
    agg_labels: AggregateLabels = "max",
    on_empty: OnEmpty = "raise",
) -> float | tuple[float, pd.DataFrame]:
    """The gap between the groups' rates, of shape (n_rates, n_groups), and perhaps the table with their names."""
    check_option("agg", agg, AGGREGATES)
    check_option("agg_labels", agg_labels, OVER_LABELS)
    signed = block_signs(agg_labels, len(rates)) @ rates
    gap = rows.gap(np.nan if rows.n_groups == 1 else gap_of_pairs(signed, agg), on_empty)
    return (gap, rows.table(**dict(zip(names, rates, strict=True)))) if return_groups else gap
