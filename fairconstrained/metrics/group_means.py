"""Gaps between the mean losses of groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.metrics.cell_means import (
    LOSS_NOTIONS,
    RATE_NOTIONS,
    RATES,
    ROW_LOSSES,
    Notion,
    Reference,
    rate_notion,
)
from fairconstrained.metrics.classes import checked_class_scores, class_log_loss
from fairconstrained.metrics.comparisons import CellMeans, CellRates, Comparison, MetricRows, everyone
from fairconstrained.metrics.group_rates import LabelledRows, Rate, means_compared
from fairconstrained.metrics.rates import AGGREGATES, OVER_LABELS, Aggregate, AggregateLabels
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.validation import (
    GroupedRows,
    OnEmpty,
    check_cells,
    check_groups,
    check_option,
    check_scores,
    check_true_labels,
)

__all__ = ["loss_parity_gap", "rate_gap"]

_SIGN_NAMES = {1.0: "positive", -1.0: "negative"}


def _given(params: dict[str, Any]) -> tuple[str, ...]:
    """Numbers of rows by group and by label, as far as the comparison conditions on them."""
    constraint = params.get("constraint", "demographic_parity")
    by_label = constraint in ("equal_opportunity", "equalized_odds")
    if params.get("reference") == "overall" or constraint == "intersectional":
        return ("label",) if by_label else ()
    return ("group", "label") if by_label else ("group",)


def _losses(rows: MetricRows) -> Comparison:
    """Losses of the groups."""
    notion = LOSS_NOTIONS[rows.params.get("constraint", "demographic_parity")]._replace(
        reference=rows.params.get("reference", "pairwise"), agg_labels=rows.params.get("agg_labels", "max")
    )
    facts: dict[str, Any] = {"limits": None, "counts_events": False}
    of_classes = checked_class_scores(rows.y_true, rows.response)
    if of_classes is None:
        return _compared(rows, ROW_LOSSES[rows.params.get("loss", "log_loss")], notion, **facts)
    scores, numbers, labels = of_classes
    if notion.targets is None:
        names, blocks = ["all"], everyone(numbers.size)
    else:
        names, blocks = [f"{label}" for label in labels], numbers == np.arange(len(labels))[:, None]
    return means_compared(rows, class_log_loss(scores, numbers), blocks, tuple(names), notion, **facts)


def _rates(rows: MetricRows) -> Comparison:
    """Rates of the groups."""
    rate = rows.params.get("rate", "indicator")
    notion = rate_notion(rows.params.get("constraint", "demographic_parity"), rate)
    limits = None if rate == "hinge" else (0.0, 1.0)
    return _compared(rows, RATES[rate], notion, limits=limits, counts_events=rate == "indicator")


def _compared(
    rows: MetricRows, function: Callable[[np.ndarray, np.ndarray], np.ndarray], notion: Notion, **facts: Any
) -> Comparison:
    scores = check_scores(rows.response, rows.y_true)
    positive, _ = check_true_labels(rows.y_true)
    targets = np.where(positive, 1.0, -1.0)
    blocks = notion.blocks(targets).members
    names = ("all",) if notion.targets is None else tuple(_SIGN_NAMES[target] for target in notion.targets)
    return means_compared(rows, function(scores, targets), blocks, names, notion, **facts)


@register(
    "decision_function",
    by_class=False,
    title="Log loss (loss parity)",
    description="Difference between the mean log losses of two groups.",
    unit="loss",
    reads="log-odds",
    compared=CellMeans(_losses),
    given=_given,
    overlapping=True,
)
def loss_parity_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    constraint: str = "demographic_parity",
    loss: str = "log_loss",
    reference: Reference = "pairwise",
    agg: Aggregate = "max",
    agg_labels: AggregateLabels = "max",
    pos_label: Any = None,
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Largest gap between the mean losses of groups.

    With the mean loss :math:`L_{g,v}` of the rows of group g and label v, and :math:`L_g` of all rows of g,

    ====================  ====================================================
    constraint            gap of g and g'
    ====================  ====================================================
    "demographic_parity"  :math:`|L_g - L_{g'}|`
    "equal_opportunity"   :math:`|L_{g,+} - L_{g',+}|`
    "equalized_odds"      :math:`\max_{v \in \{+,-\}} |L_{g,v} - L_{g',v}|`
    ====================  ====================================================

    The names are the paper's. Losses are compared here, and not the rates that have these names elsewhere (see
    `independence_gap` and `separation_gap` for those).

    Parameters
    ----------
    y_score : array-like of shape (n_samples,) or (n_samples, n_labels)
        Scores from ``decision_function``; for the log loss they are log-odds. With a column for each of more than two
        labels, in sorted order, the loss is the multinomial log loss, and ``loss`` and ``agg_labels`` keep their
        defaults. Both "equal_opportunity" and "equalized_odds" then compare the groups among the rows of each label,
        and the largest gap counts.
    constraint : {"demographic_parity", "equal_opportunity", "equalized_odds"}, default="demographic_parity"
        Groups of rows whose losses are compared, as above.
    loss : {"log_loss", "hinge", "absolute", "squared"}, default="log_loss"
        Function of the score s and the label y, -1 or +1: :math:`\log(1 + e^{-ys})`, :math:`\max(1 - ys, 0)`,
        :math:`|s - y|`, :math:`(s - y)^2 / 2`.
    reference : {"pairwise", "overall"}, default="pairwise"
        Whether the loss of a group is compared with that of every other group, or with that of all rows.
    agg : {"max", "mean"}, default="max"
        Aggregate of the gaps (of the pairs of groups, or of every group to all rows). The mean visits every pair of
        groups.
    agg_labels : {"max", "sum"}, default="max"
        Aggregate in "equalized_odds" of the gaps of two groups among the positive and among the negative rows: the
        larger of them, or their sum as in [1]_. The other constraints ignore it.
    pos_label : object, default=None
        The positive label, against all others, where there is one score for each row; None for the larger of two
        labels.

    Returns
    -------
    gap : float
        Gap in units of the loss, 0 is fair; NaN for a single group.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``, ``loss`` (``loss_positive`` and ``loss_negative`` where
        labels are told apart), and ``gap``, to the group it differs from most or to all rows. Only if
        ``return_groups``.

    References
    ----------
    .. [1] Kliachkin, Lepsova, Bareilles, Marecek, arXiv:2507.04033: Table 1.

    Examples
    --------
    >>> from fairconstrained.metrics import loss_parity_gap
    >>> gap = loss_parity_gap([1, 0, 1, 0], [0.0, 0.0, 2.0, -2.0], sensitive_features=["a", "a", "b", "b"])
    >>> print(f"{gap:.3f}")  # log(2) - log(1 + exp(-2))
    0.566
    """
    check_option("constraint", constraint, LOSS_NOTIONS)
    check_option("loss", loss, ROW_LOSSES)
    check_option("reference", reference, ("pairwise", "overall"))
    check_option("agg", agg, AGGREGATES)
    check_option("agg_labels", agg_labels, OVER_LABELS)
    notion = LOSS_NOTIONS[constraint]._replace(reference=reference, agg=agg, agg_labels=agg_labels)
    of_classes = checked_class_scores(y_true, y_score)
    if of_classes is not None:
        if (loss, agg_labels) != ("log_loss", "max"):
            raise ValueError(
                "y_score has a column for each of more than two labels: set loss='log_loss' and agg_labels='max'."
            )
        groups = check_groups(sensitive_features, sample_weight, len(of_classes[0]), overlapping=True)
        return _gap_of_classes(*of_classes, groups, notion, on_empty, return_groups)
    rows = LabelledRows.of(y_true, y_score, sensitive_features, sample_weight, pos_label)
    return _gap(rows, loss, notion, on_empty, "loss", return_groups)


def _gap_of_classes(
    scores: np.ndarray,
    numbers: np.ndarray,
    labels: list[Any],
    groups: GroupedRows,
    notion: Notion,
    on_empty: OnEmpty,
    return_groups: bool,
) -> float | tuple[float, pd.DataFrame]:
    """Gap of the multinomial log losses; where labels are told apart, the largest one among the rows of a label."""
    losses, told_apart = class_log_loss(scores, numbers), notion.targets is not None
    within = {label: numbers == k for k, label in enumerate(labels)} if told_apart else {"all": numbers >= 0}
    notion = notion._replace(targets=(1.0,) if told_apart else None)
    found = []
    for label, rows in within.items():
        scored = LabelledRows(losses, rows, (f"not {label}", f"{label}"), groups)
        found.append(cast(tuple[float, pd.DataFrame], _gap(scored, "score", notion, on_empty, "loss", True)))
    values, tables = zip(*found, strict=True)
    value = float(np.max(values))
    if not return_groups:
        return value
    return value, pd.concat(tables, keys=list(within), names=["class"]) if told_apart else tables[0]


@register(
    "decision_function",
    title="Positive rate against everybody",
    description="Difference between the share of a group that gets a positive decision and that of all rows.",
    reads="signed decisions",
    report_params={"constraint": "intersectional"},
    compared=CellRates(_rates),
    given=_given,
    overlapping=True,
)
def rate_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    constraint: str = "demographic_parity",
    rate: str = "indicator",
    agg: Aggregate = "max",
    pos_label: Any = None,
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Largest gap between the positive rates of groups, or between smooth surrogates of them.

    With the mean :math:`R_{g,v}` of the rate over the rows of group g and label v, :math:`R_g` over all rows of g and R
    over all rows,

    ====================  ================================================================
    constraint            gap
    ====================  ================================================================
    "demographic_parity"  :math:`\max_{g,g'} |R_g - R_{g'}|`
    "equal_opportunity"   :math:`\max_{g,g'} |R_{g,+} - R_{g',+}|`
    "equalized_odds"      :math:`\max_{g,g'} \max_{v \in \{+,-\}} |R_{g,v} - R_{g',v}|`
    "intersectional"      :math:`\max_g |R_g - R|`, with a hinge :math:`\max_g R_g - R`
    ====================  ================================================================

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Scores from ``decision_function``; positive ones are positive predictions. Of more than two labels, shape
        (n_samples, n_labels): a column for every label, in sorted order.
    constraint : str, default="demographic_parity"
        Groups of rows whose rates are compared, as above.
    rate : {"indicator", "sigmoid", "hinge"}, default="indicator"
        Function of the score s and the label y, -1 or +1: 1 where s is positive and 0 elsewhere;
        :math:`1 / (1 + e^{-s})`; :math:`\max(1 - ys, 0)`, which is a loss: a group may have less of it than others,
        but not more.
    agg : {"max", "mean"}, default="max"
        Aggregate of the gaps (of the pairs of groups, or of every group to all rows).

    Returns
    -------
    gap : float
        0 is fair. It can be negative only for "intersectional" with a hinge: with ``agg="mean"``, or where overlapping
        groups leave out rows.
    groups : DataFrame
        One row for each group: ``n_samples``, ``weight``, ``rate`` (``rate_positive`` and ``rate_negative`` where
        labels are told apart), and ``gap``, to the group it differs from most or to all rows. Only if
        ``return_groups``.

    References
    ----------
    .. [1] "A modified proximal-perturbed Lagrangian for non-convex non-smooth representatives of fairness constraints",
       eqs. 15, 17 and 18.

    Examples
    --------
    >>> from fairconstrained.metrics import rate_gap
    >>> rate_gap([1, 0, 1, 0], [2.0, 1.0, 1.0, -2.0], sensitive_features=["a", "a", "b", "b"])
    0.5
    """
    check_option("constraint", constraint, RATE_NOTIONS)
    check_option("rate", rate, RATES)
    check_option("agg", agg, AGGREGATES)
    rows = LabelledRows.of(y_true, y_score, sensitive_features, sample_weight, pos_label)
    notion = rate_notion(constraint, rate)._replace(agg=agg)
    return _gap(rows, rate, notion, on_empty, "rate", return_groups)


def _gap(
    rows: LabelledRows, function: str, notion: Notion, on_empty: OnEmpty, what: str, return_groups: bool
) -> float | tuple[float, pd.DataFrame]:
    """The gap between the groups' means of a function of the rows, and perhaps the table by group."""
    found = rows.measured(Rate(function), notion)
    check_cells(found.means, rows.positive, rows.groups, rows.names, on_empty)
    value = rows.groups.gap(found.value, on_empty) if rows.is_alone(notion) else found.value
    if not return_groups:
        return value
    columns = [what] if notion.targets is None else [f"{what}_{_SIGN_NAMES[target]}" for target in notion.targets]
    return value, rows.groups.table(**dict(zip(columns, found.means, strict=True)), gap=found.gaps)
