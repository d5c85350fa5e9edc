"""Gaps between the mean losses of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.metrics._group_losses import NOTIONS, ROW_LOSSES, Reference, loss_gaps, mean_losses, signed_losses
from fairconstrained.metrics._rates import AGGREGATES, Aggregate, aggregate_pairs
from fairconstrained.metrics._registry import register
from fairconstrained.metrics._validation import (
    OnEmpty,
    check_cells,
    check_groups,
    check_option,
    check_scores,
    check_true_labels,
)

__all__ = ["loss_parity_gap"]

_SIGN_NAMES = {1.0: "positive", -1.0: "negative"}


@register("decision_function")
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
    "equalized_odds"      :math:`\sum_{v \in \{+,-\}} |L_{g,v} - L_{g',v}|`
    ====================  ====================================================

    The names are the paper's: what is compared are losses, and not the rates that these names stand for elsewhere
    (see `independence_gap` and `separation_gap` for those).

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Two labels.
    y_score : array-like of shape (n_samples,)
        Scores from ``decision_function``; for the log loss they are log-odds.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features)
        Group of every row; several columns are combined.
    sample_weight : array-like of shape (n_samples,), default=None
        Non-negative; a weight of 2 stands for the same row twice.
    constraint : {"demographic_parity", "equal_opportunity", "equalized_odds"}, default="demographic_parity"
        See above.
    loss : {"log_loss", "hinge", "absolute", "squared"}, default="log_loss"
        Of the score s and the label y, -1 or +1: :math:`\log(1 + e^{-ys})`, :math:`\max(1 - ys, 0)`,
        :math:`|s - y|`, :math:`(s - y)^2 / 2`.
    reference : {"pairwise", "overall"}, default="pairwise"
        What the loss of a group is compared with: that of every other group, or that of all rows.
    agg : {"max", "mean"}, default="max"
        How the gaps (of the pairs of groups, or of every group to all rows) become one number. The mean visits every
        pair of groups.
    pos_label : object, default=None
        The positive label; by default the greater one.
    on_empty : {"raise", "nan"}, default="raise"
        Whether a group without rows of a label that is compared is an error, or makes the gap NaN.
    return_groups : bool, default=False
        Whether to return the table by group as well.

    Returns
    -------
    gap : float
        In units of the loss, 0 is fair; 0 for a single group.
    groups : DataFrame
        By group: ``n_samples``, ``weight``, ``loss`` (``loss_positive`` and ``loss_negative`` where labels are told
        apart), and ``gap``, to the group it differs from most or to all rows. Only if ``return_groups``.

    Raises
    ------
    ValueError
        If scores are not finite, lengths differ, labels are not two, an option is unknown, a group has no weight, or
        a cell that is compared is empty.

    References
    ----------
    .. [1] A. Kliachkin, J. Lepsova, G. Bareilles, J. Marecek, "Benchmarking Stochastic Approximation Algorithms for
       Fairness-Constrained Training of Deep Neural Networks", arXiv:2507.04033. Table 1.

    Examples
    --------
    >>> from fairconstrained.metrics import loss_parity_gap
    >>> gap = loss_parity_gap([1, 0, 1, 0], [0.0, 0.0, 2.0, -2.0], sensitive_features=["a", "a", "b", "b"])
    >>> print(f"{gap:.3f}")  # log(2) - log(1 + exp(-2))
    0.566
    """
    check_option("constraint", constraint, NOTIONS)
    check_option("loss", loss, ROW_LOSSES)
    check_option("reference", reference, ("pairwise", "overall"))
    check_option("agg", agg, AGGREGATES)
    scores = check_scores(y_score, y_true)
    positive, names = check_true_labels(y_true, pos_label)
    rows = check_groups(sensitive_features, sample_weight, scores.size)
    notion = NOTIONS[constraint]
    targets = np.where(positive, 1.0, -1.0)
    losses = ROW_LOSSES[loss](scores, targets)
    blocks = [np.ones_like(positive)] if notion.targets is None else [targets == target for target in notion.targets]
    means = np.stack(
        [
            mean_losses(losses, np.where(block, rows.codes, rows.n_groups), rows.weights, rows.n_groups)
            for block in blocks
        ]
    )
    check_cells(means.T, positive, rows, names, on_empty)
    overall = np.array([mean_losses(losses, np.where(block, 0, 1), rows.weights, 1)[0] for block in blocks])
    gaps = loss_gaps(means, overall, notion, reference)
    gap = _aggregated(gaps, signed_losses(means, notion), reference, agg)
    if not return_groups:
        return gap
    columns = ["loss"] if notion.targets is None else [f"loss_{_SIGN_NAMES[target]}" for target in notion.targets]
    return gap, rows.table(**dict(zip(columns, means, strict=True)), gap=gaps)


def _aggregated(gaps: np.ndarray, signed: np.ndarray, reference: Reference, agg: Aggregate) -> float:
    """One number of the gaps, which are of shape (n_groups,); 0 for a single group."""
    if gaps.size < 2:
        return 0.0
    if agg == "max" or reference == "overall":
        return float(AGGREGATES[agg](gaps))
    return aggregate_pairs(np.abs(signed[:, :, None] - signed[:, None, :]).max(axis=0), agg)
