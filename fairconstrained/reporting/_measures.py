"""The table by group: counts, rates, areas under the curve and losses, with NaN where a cell is empty."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from fairconstrained.metrics.cell_aucs import ScoredRows
from fairconstrained.metrics.cell_means import ROW_LOSSES, mean_by_cell
from fairconstrained.reporting._rows import ReportRows

__all__ = ["MEASURES", "OVERALL", "Measure", "class_tables", "group_table"]

#: Name of the row of all rows together.
OVERALL = "overall"


class Measure(NamedTuple):
    """A column of the table by group."""

    #: Heading of the measure.
    title: str
    #: Explanation in plain words.
    words: str
    #: Format of the number.
    form: str = "rate"  # {"count", "rate", "number"}
    #: Without which rows it is not defined; empty if it always is.
    needs: str = ""
    #: The gap in ``METRICS`` that is the largest difference of this column between groups.
    metric: str | None = None


#: The columns of the table by group.
MEASURES: dict[str, Measure] = {
    "n_samples": Measure("rows", "number of rows", "count"),
    "share": Measure("share", "share of all rows, by weight"),
    "base_rate": Measure("base rate", "share whose label is positive"),
    "positive_rate": Measure("positive rate", "share whose decision is positive", metric="independence_gap"),
    "true_positive_rate": Measure(
        "true positive rate",
        "share of the positives whose decision is positive",
        needs="positives",
        metric="equal_opportunity_gap",
    ),
    "false_positive_rate": Measure(
        "false positive rate", "share of the negatives whose decision is positive", needs="negatives"
    ),
    "precision": Measure(
        "precision", "share of the positive decisions whose label is positive", needs="positive decisions"
    ),
    "accuracy": Measure("accuracy", "share of the decisions that are right"),
    "auc": Measure(
        "AUC",
        "chance that a positive of the group scores above a negative of the group",
        "number",
        needs="positives or no negatives",
        metric="intra_group_auc_gap",
    ),
    "log_loss": Measure(
        "log loss", "mean of −log of the probability of the true label", "number", metric="loss_parity_gap"
    ),
}


#: Columns that take several classes at once, and columns that tell a positive label from the others.
_OF_ALL_LABELS = ("n_samples", "share", "accuracy", "log_loss")
_OF_ONE_LABEL = ("base_rate", "positive_rate", "true_positive_rate", "false_positive_rate", "precision", "auc")


def class_tables(rows: ReportRows) -> dict[Any, pd.DataFrame]:
    """Columns that tell a positive label from the others, by the class that is positive; empty for two classes."""
    tables = {label: group_table(part) for label, part in rows.by_class.items()}
    return {label: table.filter(items=_OF_ONE_LABEL) for label, table in tables.items()}


def group_table(rows: ReportRows) -> pd.DataFrame:
    """All columns of `MEASURES` by group, then overall; those of scores only where there are some.

    Of several classes only those that need no positive label.
    """
    if rows.classes:
        return group_table(rows.own_label).filter(items=_OF_ALL_LABELS)
    codes, weights, n_groups = rows.grouped.arrays
    parts = [(codes, n_groups), (np.zeros_like(codes), 1)]

    def mean(event: np.ndarray, among: np.ndarray | None = None) -> np.ndarray:
        cells = [(c if among is None else np.where(among, c, n), n) for c, n in parts]
        return np.concatenate([mean_by_cell(event, c, weights, (1, n))[0] for c, n in cells])

    mass = np.append(np.bincount(codes, weights, minlength=n_groups), weights.sum())
    columns = {
        "n_samples": np.append(rows.sizes, codes.size),
        "share": mass / mass[-1],
        "base_rate": mean(rows.y_true),
        "positive_rate": mean(rows.y_pred),
        "true_positive_rate": mean(rows.y_pred, rows.y_true == 1),
        "false_positive_rate": mean(rows.y_pred, rows.y_true == 0),
        "precision": mean(rows.y_true, rows.y_pred == 1),
        "accuracy": mean(rows.y_true == rows.y_pred),
    }
    if rows.y_score is not None:
        columns["auc"] = np.concatenate([_aucs(rows, *part) for part in parts])
    if rows.log_odds is not None:
        columns["log_loss"] = mean(ROW_LOSSES["log_loss"](rows.log_odds, 2.0 * rows.y_true - 1.0))
    index = pd.Index([*rows.grouped.labels, OVERALL], name="group", tupleize_cols=False)
    return pd.DataFrame(columns, index=index)


def _aucs(rows: ReportRows, codes: np.ndarray, n_groups: int) -> np.ndarray:
    """Area under the curve of every group; NaN where it has one label only."""
    assert rows.y_score is not None
    scored = ScoredRows.of(rows.y_score, codes, rows.grouped.weights, n_groups)
    is_positive = rows.y_true == 1
    return 0.5 + scored.among(is_positive).within(scored.among(~is_positive))
