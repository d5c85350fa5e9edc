"""Gaps between the rates of decisions of groups, by difference and by ratio, under the names that the field uses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.metrics.cell_means import Notion
from fairconstrained.metrics.comparisons import CellRates, Comparison, MetricRows
from fairconstrained.metrics.group_rates import (
    GROUP_RATES,
    RULE_NAMES,
    LabelledRows,
    checked_strata,
    given_of,
    rates_compared,
)
from fairconstrained.metrics.rates import AGGREGATES, Aggregate
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.validation import (
    OnEmpty,
    check_binary_labels,
    check_groups,
    check_option,
    check_predictions,
)

__all__ = [
    "accuracy_ratio_gap",
    "conditional_parity_gap",
    "demographic_parity_ratio_gap",
    "equal_opportunity_ratio_gap",
    "equalized_odds_ratio_gap",
    "error_rate_parity_gap",
    "error_rate_ratio_gap",
    "predictive_equality_gap",
    "predictive_equality_ratio_gap",
    "predictive_parity_gap",
    "predictive_parity_ratio_gap",
]

#: Documentation that the metrics share.
_DOCUMENTATION = r"""{summary}

.. math:: {formula}

{text}

Parameters
----------
y_true : array-like of shape (n_samples,){or_none}
    {labels}

Returns
-------
gap : float
    Gap in [0, 1], where 0 is fair. It is NaN for a single group, and with ``on_empty="nan"`` where it does not exist.
groups : DataFrame
    ``n_samples``, ``weight``, the rate, and ``gap``, that of the group to the one it differs from most, by group. Only
    if ``return_groups``.

{raises}See Also
--------
fairconstrained.constraints.GroupRates : The bound, ``GroupRates({rate!r}, rule={rule!r})``.
"""
_GAP = r"\max_{{g, g'}} |{0} - {1}|"
_RATIO = r"1 - \min_{{g, g'}} \frac{{{0}}}{{{1}}}"
_WORSE_LABEL = r"\min_{v \in \{0, 1\}} \min_"
_RAISES = {
    "difference": "",
    "ratio": 'Raises\n------\nValueError\n    If no group has a rate above 0, unless ``on_empty="nan"``.\n\n',
}
_SUMMARIES = {"difference": "", "ratio": ": one minus the ratio of the smaller rate to the larger"}
_LABELS = "Labels: 0/1, -1/1, booleans, strings, ..."
_IGNORED = "Tells which labels exist, when ``y_pred`` is constant; otherwise ignored."


def _measured(
    y_true: Any,
    y_pred: Any,
    rate: str,
    rule: str,
    sensitive_features: Any,
    sample_weight: Any,
    pos_label: Any,
    agg: Aggregate,
    on_empty: OnEmpty,
    return_groups: bool,
    strata: Any = None,
) -> float | tuple[float, pd.DataFrame]:
    check_option("agg", agg, AGGREGATES)
    chosen = GROUP_RATES[rate]
    labels = (check_binary_labels if chosen.asks_for_labels else check_predictions)(y_true, y_pred, pos_label)
    groups = check_groups(sensitive_features, sample_weight, labels.y_pred.size)
    scores = np.where(labels.y_pred, 1.0, -1.0)
    rows = LabelledRows(scores, labels.y_true, labels.names, groups, checked_strata(strata, scores.size))
    found = rows.measured(chosen, Notion(chosen.targets, RULE_NAMES[rule], agg)).checked(rows, rate, on_empty)
    if not return_groups:
        return found.value
    return found.value, found.table(rows, rate)


def _metric(name: str, rate: str, rule: str, title: str, description: str, probability: str, **entry: Any) -> Any:
    """Make and register the metric of a rate and a rule.

    Parameters
    ----------
    title, description : str
        For reports.
    probability : str
        Formula of the rate, with ``{g}`` in place of the group.
    **entry : object
        Further fields of `MetricInfo`.
    """
    chosen, reference = GROUP_RATES[rate], RULE_NAMES[rule]

    def metric(
        y_true: npt.ArrayLike | None,
        y_pred: npt.ArrayLike,
        *,
        sensitive_features: Any,
        sample_weight: npt.ArrayLike | None = None,
        pos_label: Any = None,
        agg: Aggregate = "max",
        on_empty: OnEmpty = "raise",
        return_groups: bool = False,
    ) -> float | tuple[float, pd.DataFrame]:
        return _measured(
            y_true, y_pred, rate, rule, sensitive_features, sample_weight, pos_label, agg, on_empty, return_groups
        )

    metric.__name__ = metric.__qualname__ = name
    sides = probability.format(g="g"), probability.format(g="g'")
    formula = (_GAP if rule == "difference" else _RATIO).format(*sides)
    if chosen.targets is not None and len(chosen.targets) > 1:
        formula = formula.replace(r"\min_", _WORSE_LABEL)
    metric.__doc__ = _DOCUMENTATION.format(
        summary=f"{title}{_SUMMARIES[rule]}.",
        formula=formula,
        text=description,
        or_none="" if chosen.asks_for_labels else " or None",
        labels=_LABELS if chosen.asks_for_labels else _IGNORED,
        raises=_RAISES[rule],
        rate=rate,
        rule=rule,
    )
    compared = CellRates(partial(rates_compared, rate=chosen, reference=reference))
    unit = "rate" if rule == "difference" else "ratio"
    shared: dict[str, Any] = {
        "title": title,
        "description": description,
        "unit": unit,
        "given": given_of(chosen, reference),
    }
    return register("predict", compared=compared, **shared, **entry)(metric)


demographic_parity_ratio_gap: Callable[..., Any] = _metric(
    "demographic_parity_ratio_gap",
    "selection",
    "ratio",
    "Ratio of positive rates (four-fifths rule)",
    "One minus the ratio of the shares of two groups that get a positive decision, the smaller to the larger; the "
    "four-fifths rule asks for at most 0.2.",
    r"P(\hat y = 1 \mid {g})",
    aliases=("demographic_parity_ratio", "selection_rate_ratio", "disparate_impact"),
)
equal_opportunity_ratio_gap: Callable[..., Any] = _metric(
    "equal_opportunity_ratio_gap",
    "true_positive",
    "ratio",
    "Ratio of true positive rates",
    "One minus the ratio of the shares of the positives of two groups that get a positive decision.",
    r"P(\hat y = 1 \mid {g}, y = 1)",
    aliases=("true_positive_rate_ratio",),
)
equalized_odds_ratio_gap: Callable[..., Any] = _metric(
    "equalized_odds_ratio_gap",
    "true_and_false_positive",
    "ratio",
    "Ratio of true or false positive rates",
    "One minus the ratio of the true positive rates of two groups, or of their false positive rates, whichever is "
    "larger. False positive rates that are 0 in all groups are equal.",
    r"P(\hat y = 1 \mid {g}, y = v)",
)
predictive_equality_gap: Callable[..., Any] = _metric(
    "predictive_equality_gap",
    "false_positive",
    "difference",
    "False positive rate (predictive equality)",
    "Difference between the shares of the negatives of two groups that get a positive decision.",
    r"P(\hat y = 1 \mid {g}, y = 0)",
    aliases=("false_positive_rate_parity", "false_positive_rate_difference", "true_negative_rate_difference"),
)
predictive_equality_ratio_gap: Callable[..., Any] = _metric(
    "predictive_equality_ratio_gap",
    "false_positive",
    "ratio",
    "Ratio of false positive rates",
    "One minus the ratio of the shares of the negatives of two groups that get a positive decision.",
    r"P(\hat y = 1 \mid {g}, y = 0)",
    aliases=("false_positive_rate_ratio",),
)
error_rate_parity_gap: Callable[..., Any] = _metric(
    "error_rate_parity_gap",
    "error",
    "difference",
    "Error rate of groups (error rate parity)",
    "Difference between the shares of wrong decisions in two groups.",
    r"P(\hat y \ne y \mid {g})",
    aliases=("accuracy_parity", "accuracy_score_difference", "zero_one_loss_difference"),
)
error_rate_ratio_gap: Callable[..., Any] = _metric(
    "error_rate_ratio_gap",
    "error",
    "ratio",
    "Ratio of error rates",
    "One minus the ratio of the shares of wrong decisions in two groups.",
    r"P(\hat y \ne y \mid {g})",
    aliases=("zero_one_loss_ratio",),
)
accuracy_ratio_gap: Callable[..., Any] = _metric(
    "accuracy_ratio_gap",
    "accuracy",
    "ratio",
    "Ratio of accuracies",
    "One minus the ratio of the shares of right decisions in two groups.",
    r"P(\hat y = y \mid {g})",
    aliases=("accuracy_score_ratio",),
)
predictive_parity_gap: Callable[..., Any] = _metric(
    "predictive_parity_gap",
    "positive_predictive_value",
    "difference",
    "Positive predictive value (predictive parity)",
    "Difference between the shares of positives among those of two groups with a positive decision.",
    r"P(y = 1 \mid {g}, \hat y = 1)",
    aliases=("precision_score_difference",),
)
predictive_parity_ratio_gap: Callable[..., Any] = _metric(
    "predictive_parity_ratio_gap",
    "positive_predictive_value",
    "ratio",
    "Ratio of positive predictive values",
    "One minus the ratio of the shares of positives among those of two groups with a positive decision.",
    r"P(y = 1 \mid {g}, \hat y = 1)",
    aliases=("precision_score_ratio",),
)


def _selection_within(rows: MetricRows) -> Comparison:
    return rates_compared(rows, GROUP_RATES["selection"], "pairwise", strata=rows.params["strata"])


@register(
    "predict",
    title="Positive rate within strata (conditional parity)",
    description="Largest difference between the shares of two groups of the same stratum that get a positive decision.",
    aliases=("conditional", "conditional_demographic_parity"),
    compared=CellRates(_selection_within),
    is_gap=False,  # only those who know the strata can ask for it
)
def conditional_parity_gap(
    y_true: npt.ArrayLike | None,
    y_pred: npt.ArrayLike,
    *,
    sensitive_features: Any,
    strata: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Largest difference of the groups' rates of positive predictions within a stratum (conditional parity).

    .. math:: \max_s \max_{g, g'} |P(\hat y = 1 \mid g, s) - P(\hat y = 1 \mid g', s)|

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Tells which labels exist, when ``y_pred`` is constant; otherwise ignored.
    strata : array-like of shape (n_samples,) or (n_samples, n_columns)
        Stratum of every row, such as a job or a department; several columns are combined.
    pos_label : object, default=None
        The positive label, against all others; None for the larger of two. More than two labels need it.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is NaN for a single group.
    groups : DataFrame
        ``n_samples``, ``weight``, the selection rate in every stratum, and ``gap`` by group. Only if
        ``return_groups``.

    Warns
    -----
    FairnessWarning
        If there is a single group, so that there is nothing to compare and the value is NaN (not with
        ``on_empty='nan'``).

    References
    ----------
    .. [1] F. Kamiran, I. Zliobaite, T. Calders, "Quantifying explainable discrimination and removing illegal
       discrimination in automated decision making", Knowledge and Information Systems 35, 2013.
    """
    rows = sensitive_features, sample_weight, pos_label, agg, on_empty, return_groups
    return _measured(y_true, y_pred, "selection", "difference", *rows, strata=strata)
