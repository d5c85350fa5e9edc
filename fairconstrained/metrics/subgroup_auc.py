"""Gaps of AUCs between a group and everything, and between any sets of rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.checks.messages import check_arguments
from fairconstrained.metrics.auc_gaps import compare_groups, difference_aucs
from fairconstrained.metrics.auc_sets import checked_masks, mask_cells
from fairconstrained.metrics.comparisons import AUCDifferences
from fairconstrained.metrics.rates import Aggregate
from fairconstrained.metrics.registry import register
from fairconstrained.metrics.validation import (
    NAN_INSTEAD,
    GroupedRows,
    OnEmpty,
    check_groups,
    check_option,
    check_scores,
    check_true_labels,
)

__all__ = ["bpsn_bnsp_gap", "negative_equality_gap", "positive_equality_gap", "subset_auc_gap"]

Masks = Callable[[np.ndarray, np.ndarray | None], Any]

_SUBSETS = ("G1", "G1'", "G2", "G2'")
_PROTECTED = """Parameters
----------
protected : object, default=None
    The one group to compare with everything; None compares each of them.
"""


@register(
    "decision_function",
    title="Positives of a group among all positives",
    description="How far the chance that a positive of the group scores above a positive of everybody is from one "
    "half.",
    unit="AUC",
    compared=AUCDifferences("positive_equality"),
    given=("label",),
)
@documented_by(_PROTECTED)
def positive_equality_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    protected: Hashable = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Distance from one half of the chance that a positive of a group outranks a positive of everybody.

    .. math:: \max_g \left| P(s \ge s' \mid g, y = 1, y' = 1) - \tfrac{1}{2} \right|,

    in which a tie :math:`s = s'` counts one half: the positive average equality gap.

    Returns
    -------
    gap : float
        Gap in [0, 1/2], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group (with ``protected``, that group and the others as one): ``n_samples``, ``weight``;
        ``auc`` of its positives against all positives, NaN for a single group. Only if ``return_groups``.

    Notes
    -----
    With the share :math:`\pi` of the group among all positives, the gap of the group is :math:`1 - \pi` times that
    between its positives and the positives of the others; it cannot exceed :math:`(1 - \pi) / 2`. One row changes it by
    at most its share of its cell of group and label.

    References
    ----------
    .. [1] D. Borkan, L. Dixon, J. Sorensen, N. Thain, L. Vasserman, "Nuanced Metrics for Measuring Unintended Bias with
       Real Data for Text Classification", WWW 2019 Companion.
    .. [2] Yao, Lin, Yang, arXiv:2212.12603: definition 2 and example 4.

    Examples
    --------
    >>> from fairconstrained.metrics import positive_equality_gap
    >>> label, score, group = [1, 1, 0, 0, 1, 1, 0, 0], [8, 6, 5, 2, 7, 3, 4, 1], list("aaaabbbb")
    >>> positive_equality_gap(label, score, sensitive_features=group)
    0.125
    """
    found = compare_groups(
        "positive_equality", y_true, y_score, sensitive_features, sample_weight, pos_label, protected, on_empty
    )
    return found.result(agg, return_groups, ["auc"], on_empty=on_empty)


@register(
    "decision_function",
    title="Negatives of a group among all negatives",
    description="How far the chance that a negative of the group scores above a negative of everybody is from one "
    "half.",
    unit="AUC",
    compared=AUCDifferences("negative_equality"),
    given=("label",),
)
@documented_by(_PROTECTED)
def negative_equality_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    protected: Hashable = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Distance from one half of the chance that a negative of a group outranks a negative of everybody.

    .. math:: \max_g \left| P(s \ge s' \mid g, y = 0, y' = 0) - \tfrac{1}{2} \right|,

    in which a tie :math:`s = s'` counts one half: the negative average equality gap.

    Returns
    -------
    gap : float
        Gap in [0, 1/2], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group (with ``protected``, that group and the others as one): ``n_samples``, ``weight``;
        ``auc`` of its negatives against all negatives, NaN for a single group. Only if ``return_groups``.

    See Also
    --------
    positive_equality_gap : The same for positives, with notes and references.
    """
    found = compare_groups(
        "negative_equality", y_true, y_score, sensitive_features, sample_weight, pos_label, protected, on_empty
    )
    return found.result(agg, return_groups, ["auc"], on_empty=on_empty)


@register(
    "decision_function",
    title="Errors for a group against the background (BPSN, BNSP)",
    description="Difference between the chance that a positive of everybody scores above a negative of the group, and "
    "that a positive of the group scores above a negative of everybody.",
    label="BPSN-BNSP gap",
    unit="AUC",
    compared=AUCDifferences("bpsn_bnsp"),
    given=("label",),
)
@documented_by(_PROTECTED)
def bpsn_bnsp_gap(
    y_true: npt.ArrayLike,
    y_score: npt.ArrayLike,
    *,
    sensitive_features: Any,
    sample_weight: npt.ArrayLike | None = None,
    pos_label: Any = None,
    protected: Hashable = None,
    agg: Aggregate = "max",
    on_empty: OnEmpty = "raise",
    return_groups: bool = False,
) -> float | tuple[float, pd.DataFrame]:
    r"""Difference of the AUCs in which a group gives the negatives and in which it gives the positives.

    .. math:: \max_g \left| P(s \ge s' \mid y = 1, y' = 0, g' = g) - P(s \ge s' \mid g, y = 1, y' = 0) \right|,

    in which a tie :math:`s = s'` counts one half. The first is the BPSN AUC (background positives, subgroup
    negatives), the second the BNSP AUC (background negatives, subgroup positives); the background is all rows, the
    group included.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is 0 for a constant score, and NaN for a single group.
    groups : DataFrame
        One row for each group (with ``protected``, that group and the others as one): ``n_samples``, ``weight``; its
        ``bpsn_auc`` and ``bnsp_auc``, NaN for a single group. Only if ``return_groups``.

    Notes
    -----
    Large if the scores of a group are shifted, up or down, against those of everybody with the same label. One row
    changes it by at most its share of its cell of group and label.

    References
    ----------
    .. [1] D. Borkan, L. Dixon, J. Sorensen, N. Thain, L. Vasserman, "Nuanced Metrics for Measuring Unintended Bias with
       Real Data for Text Classification", WWW 2019 Companion.
    .. [2] Yao, Lin, Yang, arXiv:2212.12603: definition 2 and example 5.

    Examples
    --------
    >>> from fairconstrained.metrics import bpsn_bnsp_gap
    >>> label, score, group = [1, 1, 0, 0, 1, 1, 0, 0], [8, 6, 5, 2, 7, 3, 4, 1], list("aaaabbbb")
    >>> bpsn_bnsp_gap(label, score, sensitive_features=group)
    0.125
    """
    found = compare_groups(
        "bpsn_bnsp", y_true, y_score, sensitive_features, sample_weight, pos_label, protected, on_empty
    )
    return found.result(agg, return_groups, ["bpsn_auc", "bnsp_auc"], on_empty=on_empty)


@register(
    "decision_function",
    title="AUCs of the user's own sets of rows",
    description="Difference between two AUCs, each of one set of rows over another.",
    unit="AUC",
    compared=AUCDifferences(None),
    given=(),
    is_gap=False,
    compares_groups=False,
)
def subset_auc_gap(
    y_true: npt.ArrayLike | None,
    y_score: npt.ArrayLike,
    *,
    subsets: npt.ArrayLike | Masks,
    sample_weight: npt.ArrayLike | None = None,
    sensitive_features: Any = None,
    pos_label: Any = None,
    on_empty: OnEmpty = "raise",
) -> float:
    r"""Difference of the AUCs of any two pairs of subsets.

    .. math:: |\mathrm{AUC}(G_1, G_1') - \mathrm{AUC}(G_2, G_2')|, \qquad
              \mathrm{AUC}(G, G') = P(s \ge s' \mid \text{row of } s \in G, \text{row of } s' \in G'),

    in which a tie :math:`s = s'` counts one half. The other AUC gaps are this one for sets of their own.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,) or None
        Labels: 0/1, -1/1, booleans, strings, ... Only a callable needs them.
    y_score : array-like of shape (n_samples,)
        Scores, e.g. from ``decision_function``. Only their order matters.
    subsets : array-like of bool, of shape (4, n_samples), or callable
        Masks of the sets :math:`G_1, G_1', G_2` and :math:`G_2'`, which may overlap. A callable
        ``subsets(positive, groups)`` returns these masks for the rows it is given, which is what cross-validation
        needs: ``positive`` is boolean of shape (n_samples,), and ``groups`` holds the labels of the groups in
        shape (n_samples,), or (n_samples, n_features) for several columns; None without ``sensitive_features``.
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_features), default=None
        Group of every row, for a callable.
    pos_label : object, default=None
        The positive label, against all others, for a callable; None for the larger of two. More than two labels need
        it.
    on_empty : {"raise", "nan"}, default="raise"
        Whether to raise or to return NaN if a subset has no rows.

    Returns
    -------
    gap : float
        Gap in [0, 1], where 0 is fair; it is 0 for a constant score.

    Raises
    ------
    ValueError
        If ``subsets`` are not four boolean masks of the right length, or a callable is given without ``y_true``.
    TypeError
        If a callable does not take two arguments.

    Notes
    -----
    As a scorer: ``make_fairness_scorer(subset_auc_gap, subsets=function)``. Time: one sort, whatever the sets.

    References
    ----------
    .. [1] Yao, Lin, Yang, arXiv:2212.12603: definition 2.

    Examples
    --------
    >>> from fairconstrained.metrics import subset_auc_gap
    >>> label, score, group = [1, 1, 0, 0, 1, 1, 0, 0], [8, 6, 5, 2, 7, 3, 4, 1], list("aaaabbbb")
    >>> def a_against_everybody(positive, groups):
    ...     a = groups == "a"
    ...     return a & positive, ~positive, positive, ~positive
    >>> subset_auc_gap(label, score, subsets=a_against_everybody, sensitive_features=group)
    0.125
    """
    check_option("on_empty", on_empty, ("raise", "nan"))
    scores = check_scores(y_score, y_true)
    # without groups all rows are one, which only has to have some weight
    features = np.zeros(scores.size, dtype=int) if sensitive_features is None else sensitive_features
    rows = check_groups(features, sample_weight, scores.size)
    if callable(subsets):
        positive, _ = check_true_labels(y_true, pos_label)
        columns = positive, None if sensitive_features is None else _group_labels(rows)
        check_arguments(
            subsets, "subsets must take two arguments, subsets(positive, groups), and return four masks", *columns
        )
        subsets = subsets(*columns)
    masks = checked_masks(subsets, "subsets must be", scores.size)
    counts = np.count_nonzero(masks & (rows.weights > 0), axis=1)
    if on_empty == "raise" and not counts.all():
        empty = " and ".join(name for name, count in zip(_SUBSETS, counts, strict=True) if not count)
        listed = ", ".join(f"{name} {count}" for name, count in zip(_SUBSETS, counts, strict=True))
        raise ValueError(
            f"subset {empty} has no rows (of positive weight). Use more data. {NAN_INSTEAD} Rows per subset: {listed}."
        )
    cells, n_cells, difference = mask_cells(masks)
    aucs = difference_aucs(scores, cells, rows.weights, n_cells, [difference])
    return float(np.abs(aucs[0, 0] - aucs[0, 1]))


def _group_labels(rows: GroupedRows) -> np.ndarray:
    """The group of every row as the user wrote it: one column, or one for each sensitive feature."""
    if all(isinstance(label, tuple) for label in rows.labels):
        # a table keeps the types of its columns apart; an array of tuples could not be compared with a value
        return pd.DataFrame(list(rows.labels)).to_numpy()[rows.codes]
    return rows.index.to_numpy()[rows.codes]
