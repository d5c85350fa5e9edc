"""Tables from the results: every cell, shares of kept bounds, and what methods cost."""

from __future__ import annotations

import pandas as pd

from benchmarks.any_model.fronts import KEPT, expected_share

CELL = ["data", "notion", "kappa", "method"]
_VALUES = [
    "train_gap", "test_gap", "error", "floor", "granularity", "estimate", "estimate_error", "accuracy", "auc",
    "log_loss", "seconds",
]  # fmt: skip


def cells(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, and the mean gap on new rows over the mean floor."""
    grouped = results.groupby(CELL, sort=False)
    table = grouped[_VALUES].mean()
    table.insert(3, "over_floor", table["test_gap"] / table["floor"])
    table.insert(0, "splits", grouped.seed.nunique())
    return table.reset_index()


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """By notion and method: cells within `KEPT` times the floor, and the worst one; "all" are all notions.

    ``expected`` is the share that a method would have which does not adapt to its training rows.
    """
    marked = table.assign(is_kept=table.over_floor <= KEPT, expected=expected_share(table))
    both = pd.concat([marked, marked.assign(notion="all")])
    lines = both.groupby(["method", "notion"], sort=False).agg(
        cells=("is_kept", "size"),
        share_kept=("is_kept", "mean"),
        expected=("expected", "mean"),
        mean=("over_floor", "mean"),
    )
    return lines.join(_worst(both)).reset_index()


def _worst(table: pd.DataFrame) -> pd.DataFrame:
    last = table.sort_values("over_floor").groupby(["method", "notion"]).last()
    where = last.data + ", " + last.kappa.map("{:g}".format)
    return pd.DataFrame({"worst": last.over_floor, "worst_cell": where})


def against(results: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """By notion and data set: what the second method changes in the same splits and bounds, in the mean."""
    key = ["data", "seed", "notion", "kappa"]
    names = ["train_gap", "test_gap", "accuracy", "auc", "log_loss", "seconds"]
    pairs = [results[results.method == name].set_index(key)[names] for name in (first, second)]
    both = pairs[0].add_suffix("_first").join(pairs[1].add_suffix("_second"), how="inner")
    changes = pd.DataFrame({name: both[f"{name}_second"] - both[f"{name}_first"] for name in names[:-1]})
    changes["seconds_first"], changes["seconds_second"] = both["seconds_first"], both["seconds_second"]
    lines = changes.groupby(["notion", "data"], sort=False).mean().reset_index()
    lines.insert(0, "methods", f"{first} to {second}")
    return lines


def costs(results: pd.DataFrame) -> pd.DataFrame:
    """Changes from before to the default, from that to the promise, and those of networks."""
    steps = [("before", "default"), ("default", "promise"), ("network_before", "network")]
    return pd.concat([against(results, *step) for step in steps], ignore_index=True)


def write_tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables by the last part of their file's name."""
    table = cells(results)
    return {"cells": table, "kept": kept(table), "costs": costs(results)}
