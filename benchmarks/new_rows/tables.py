"""Tables from the results: every cell, shares of kept bounds, and what methods cost."""

from __future__ import annotations

import pandas as pd

from benchmarks.any_model.fronts import beyond_front, means, shares_kept
from benchmarks.new_rows.methods import FEWEST_ERRORS, FRONT_OF_ERRORS, SAMPLES
from benchmarks.new_rows.tasks import KAPPAS

CELL = ["data", "notion", "kappa", "method"]
_VALUES = [
    "train_gap", "test_gap", "error", "floor", "floor_of_several", "granularity", "estimate", "estimate_error",
    "accuracy", "auc", "log_loss", "seconds",
]  # fmt: skip


def cells(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, and the mean gap on new rows over the mean floors."""
    return means(results.groupby(CELL, sort=False), _VALUES).reset_index()


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """By method and notion: shares of kept cells as in `shares_kept`, and the worst cell; "all" are all notions."""
    both = pd.concat([table, table.assign(notion="all")])
    by = ["method", "notion"]
    return shares_kept(both, by).join(_worst_cell(both, by)).reset_index()


def _worst_cell(table: pd.DataFrame, by: list[str]) -> pd.Series:
    """The cell of the largest gap over its floor, among those that have one."""
    last = table.dropna(subset="over_floor").sort_values("over_floor").groupby(by).last()
    return (last.data + ", " + last.kappa.map("{:g}".format)).rename("worst_cell")


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


def compared(results: pd.DataFrame) -> pd.DataFrame:
    """Accuracy of other methods on new rows less that of our front of fewest errors at the same gap there.

    Columns as in `benchmarks.any_model.fronts.beyond_front`, by data set, notion, method and bound.
    """
    lines = []
    front = results[results.method == FRONT_OF_ERRORS]
    others = results[results.method.isin(FEWEST_ERRORS)]
    for names, theirs in others.groupby(CELL, sort=False):
        own = front[(front.data == names[0]) & (front.notion == names[1])]
        seeds = set(theirs.seed) & set(own.seed)
        if seeds:
            rows, ours = (part[part.seed.isin(seeds)] for part in (theirs, own))
            lines.append(dict(zip(CELL, names, strict=True)) | beyond_front(rows, ours, "accuracy"))
    return pd.DataFrame(lines, columns=[*CELL, "splits", "gap", "difference", "half_width", "dominates"])


def few_rows(results: pd.DataFrame) -> pd.DataFrame:
    """Means over samples of training rows: of one network, and of small networks side by side, the default there."""
    samples = results[results.data.isin(list(SAMPLES)) & results.method.isin(["one_network", "network"])]
    wide = samples.pivot_table(
        index=["data", "kappa"], columns="method", values=["test_gap", "accuracy", "log_loss", "seconds"], sort=False
    )
    wide.columns = [f"{value}_{method}" for value, method in wide.columns]
    wide.insert(0, "samples", samples.groupby(["data", "kappa"], sort=False).seed.nunique())
    return wide.reset_index()


def write_tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables by the last part of their file's name."""
    few = few_rows(results)
    results = results[~results.data.isin(list(SAMPLES))]
    # further bounds of the front are not among the cells that are judged
    is_judged = results.kappa.isin(KAPPAS) | (results.method != FRONT_OF_ERRORS)
    table = cells(results[is_judged])
    return {"cells": table, "kept": kept(table), "costs": costs(results), "compared": compared(results), "few": few}
