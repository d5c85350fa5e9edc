"""Tables from the results: points of the fronts, comparisons with the head, kept bounds, and targets."""

from __future__ import annotations

import pandas as pd

from benchmarks.any_model.fronts import (
    BOOSTING,
    ENSEMBLE,
    ENSEMBLE_WITH_GROUPS,
    WITHOUT_BOUND,
    cells,
    compare,
    points,
    shares_kept,
)
from benchmarks.any_model.targets import targets

#: Methods of other packages that grow boosted trees under a bound, and need no group of new rows.
OTHER_TREES = ("exponentiated_gradient", "fairgbm")


def write_tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables by the last part of their file's name."""
    of_trees = results.method.isin([BOOSTING, WITHOUT_BOUND, *OTHER_TREES])
    tables = {
        "fronts": points(results),
        "compared": compare(results),
        "ensemble": compare(results, ENSEMBLE, ENSEMBLE_WITH_GROUPS),
        "boosting": compare(results[of_trees], BOOSTING),
        "seconds": seconds(results),
    }
    tables |= {"wins": wins(tables["compared"]), "ensemble_wins": wins(tables["ensemble"])}
    tables |= {"kept": kept(cells(tables["fronts"]))}
    return tables | {"targets": targets(results, tables)}


def wins(compared: pd.DataFrame) -> pd.DataFrame:
    """By notion and method: in how many of the points the method, or the head, is better beyond the interval."""
    known = compared[compared.dominates.notna()].copy()
    known["method_better"] = known.dominates.astype(bool)
    known["head_better"] = known.difference < -known.half_width
    by = known.groupby(["notion", "method", "against"], sort=False)
    table = by.agg(
        points=("difference", "size"),
        method_better=("method_better", "sum"),
        head_better=("head_better", "sum"),
        mean_difference=("difference", "mean"),
        largest_difference=("difference", "max"),
        fewest_splits=("splits", "min"),
    )
    return table.reset_index()


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """By notion and method: the cells (data set and bound) whose mean gap on new rows is within what sampling explains.

    Columns as in `shares_kept`; ``fewest_splits`` is the least number of splits of a cell.
    """
    bounded = table[table.floor.notna()]
    by = ["notion", "method"]
    lines = shares_kept(bounded, by).assign(fewest_splits=bounded.groupby(by, sort=False).splits.min())
    return lines.reset_index()


def seconds(results: pd.DataFrame) -> pd.DataFrame:
    """Mean seconds of processor time for all bounds of a notion together, by method, notion and data set."""
    whole = results.groupby(["data", "seed", "notion", "method", "task"], as_index=False).seconds.max()
    bounds = results.groupby("task").kappa.nunique()
    whole["each"] = whole.seconds / whole.task.map(bounds)
    table = whole.pivot_table(index=["notion", "method"], columns="data", values="each", sort=False)
    return table.reset_index()
