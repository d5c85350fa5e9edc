"""Tables from the results: means over the seeds beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from benchmarks.loss_parity.methods import methods
from benchmarks.loss_parity.tasks import METRICS, PARTS

BY = ["dataset", "constraint", "method"]
COSTS = ["seconds", "cpu_seconds", "iterations"]
VALUES = [f"{part}_{metric}" for part in PARTS for metric in METRICS]
#: Digits of a metric in the tables for reading.
DIGITS = {"Wd": 4, "gap": 4}


def with_limit(results: pd.DataFrame, limits: Mapping[str, float]) -> pd.DataFrame:
    """The runs of the data sets' time limits, and those without any."""
    return results[results.limit.isna() | (results.limit == results.dataset.map(limits))]


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """A line for every method on every data set: means, standard deviations, and what is published of them."""
    table = results.groupby(BY).agg(
        runs=("seed", "nunique"),
        within_kappa=("status", lambda status: int((status == "completed").sum())),
        **{name: (name, "mean") for name in COSTS},
        **{f"{name}_mean": (name, "mean") for name in VALUES},
        **{f"{name}_sd": (name, "std") for name in VALUES},
    )
    known = methods()
    lines = [
        getattr(known[name], "PUBLISHED", {}).get((data, constraint), {}) for data, constraint, name in table.index
    ]
    published = pd.DataFrame(lines, index=table.index).add_suffix("_published")
    places = {name: place for place, name in enumerate(known)}
    table = table.join(published).reset_index()
    return table.sort_values(BY, key=lambda column: column.map(places) if column.name == "method" else column)


def for_reading(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """The metrics of a part as "mean ± deviation", in a line below them what is published."""
    lines = []
    for row in table.to_dict("records"):
        ours = {"method": methods()[row["method"]].LABEL}
        for metric in METRICS:
            name, digits = f"{part}_{metric}", DIGITS.get(metric, 3)
            ours[metric] = _number(row[f"{name}_mean"], digits)
            if not pd.isna(row[f"{name}_sd"]):
                ours[metric] += f" ± {row[f'{name}_sd']:.{digits}f}"
        ours["within kappa"] = f"{row['within_kappa']} of {row['runs']}"
        ours |= {"seconds": _number(row["seconds"], 1), "iterations": _number(row["iterations"], 0)}
        lines.append(ours)
        published = {metric: row.get(f"{part}_{metric}_published") for metric in METRICS}
        if any(not pd.isna(value) for value in published.values()):
            numbers = {name: _number(value, DIGITS.get(name, 3)) for name, value in published.items()}
            lines.append({"method": f"{ours['method']}, published"} | numbers)
    return pd.DataFrame(lines)


def _number(value: float | None, digits: int) -> str:
    return "" if value is None or pd.isna(value) else f"{value:,.{digits}f}"


def write_tables(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """``stem_summary.csv`` with all numbers, and a table for reading for every data set, constraint and part."""
    table = summary(results)
    table.round(5).to_csv(folder / f"{stem}_summary.csv", index=False)
    for (data, constraint), rows in table.groupby(BY[:2]):
        for part in PARTS:
            for_reading(rows, part).to_csv(folder / f"{stem}_{data}_{constraint}_{part}.csv", index=False)
