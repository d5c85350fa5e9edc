"""Tables from the results: means and deviations over the seeds beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks._runner import Row
from benchmarks.loss_parity.datasets import SPLITS
from benchmarks.loss_parity.methods import METHODS
from benchmarks.loss_parity.tasks import KAPPA, METRICS, PARTS, TOLERANCE

BY = ["dataset", "split", "constraint", "method"]
COSTS = ["seconds", "wall_seconds", "iterations"]
VALUES = [f"{part}_{metric}" for part in PARTS for metric in METRICS]
#: Data set and constraint of the paper's experiment.
PUBLISHED = ("acs_income_ok", "demographic_parity")
#: Digits of a metric in the tables for reading.
DIGITS = {"Wd": 4, "gap": 4, "signed": 4}


def with_limit(results: pd.DataFrame, limits: Mapping[str, float]) -> pd.DataFrame:
    """The runs of the data sets' time limits, and those without any."""
    return results[results.limit.isna() | (results.limit == results.dataset.map(limits))]


def same_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """The runs with seeds that all methods of their table have been run with, so that its lines can be compared."""
    tables = results.groupby(BY[:3], group_keys=False)
    n_methods = tables.method.transform("nunique")
    n_with_seed = results.groupby([*BY[:3], "seed"]).method.transform("nunique")
    return results[n_with_seed == n_methods]


def with_shares(results: pd.DataFrame, history: pd.DataFrame) -> pd.DataFrame:
    """``late_within``: the share of a run's records in the second half of its time that are within kappa.

    One record is one moment of a gap that may swing. NaN for methods that end by themselves.
    """
    limit = history.limit.astype(float).fillna(np.inf)
    late = history[history.seconds > limit / 2]
    shares = (late.train_gap <= KAPPA + TOLERANCE).groupby(late.task).mean()
    return results.join(shares.rename("late_within"), on="task")


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """A line for every method on every data set and split: means, deviations, and what is published of both."""
    table = results.groupby(BY).agg(
        runs=("seed", "nunique"),
        within_kappa=("status", lambda status: int((status == "completed").sum())),
        late_within=("late_within", "mean"),
        **{name: (name, "mean") for name in COSTS},
        **{f"{name}_mean": (name, "mean") for name in VALUES},
        **{f"{name}_sd": (name, "std") for name in VALUES},
    )
    lines = [
        METHODS[name].published if (data, constraint) == PUBLISHED else {} for data, _, constraint, name in table.index
    ]
    published = pd.DataFrame(lines, index=table.index).add_suffix("_published")
    places = {name: place for place, name in enumerate(METHODS)}
    table = table.join(published).reset_index()
    return table.sort_values(BY, key=lambda column: column.map(places) if column.name == "method" else column)


def for_reading(table: pd.DataFrame, part: str) -> pd.DataFrame:
    """The metrics of a part as "mean ± deviation", in a line below them what is published."""
    lines = []
    for row in table.to_dict("records"):
        name = {"method": METHODS[row["method"]].label}
        costs = {"seconds": _number(row["seconds"], 1), "iterations": _number(row["iterations"], 0)}
        lines += [name | _cells(row, part) | _kept(row) | costs, *_published(row, part)]
    return pd.DataFrame(lines)


def of_splits(results: pd.DataFrame) -> pd.DataFrame:
    """Test metrics with one split and with redrawn ones, over the seeds that a method has of both."""
    by = ["dataset", "constraint", "method"]
    is_twice = results.groupby([*by, "seed"]).split.transform("nunique") == len(SPLITS)
    lines = []
    for _, rows in summary(results[is_twice]).groupby(by, sort=False):
        for row in rows.to_dict("records"):
            name = {"method": METHODS[row["method"]].label, "split": row["split"]}
            lines.append(name | _cells(row, "test") | _kept(row))
        lines += [line | {"split": "fixed"} for line in _published(row, "test")]
    return pd.DataFrame(lines)


def _cells(row: Row, part: str, kind: str = "") -> dict[str, str]:
    """Means and deviations of the metrics of a part, ours or of another kind of columns."""
    names = {metric: f"{part}_{metric}" for metric in METRICS}
    mean = kind or "_mean"
    return {metric: _cell(row.get(name + mean), row.get(f"{name}_sd{kind}"), metric) for metric, name in names.items()}


def _kept(row: Row) -> dict[str, str]:
    late = row["late_within"]
    return {
        "within kappa": f"{row['within_kappa']} of {row['runs']}",
        "late records within kappa": "" if _is_none(late) else f"{late:.0%}",
    }


def _published(row: Row, part: str) -> list[dict[str, str]]:
    """The line of what is published, if something is."""
    cells = _cells(row, part, "_published")
    return [{"method": f"{METHODS[row['method']].label}, published"} | cells] if any(cells.values()) else []


def _cell(mean: float | None, deviation: float | None, metric: str) -> str:
    digits = DIGITS.get(metric, 3)
    return " ± ".join(_number(value, digits) for value in (mean, deviation) if not _is_none(value))


def _number(value: float | None, digits: int) -> str:
    return "" if _is_none(value) else f"{value:,.{digits}f}"


def _is_none(value: float | None) -> bool:
    return value is None or bool(pd.isna(value))


def write_tables(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """``stem_summary.csv`` with all numbers, tables for reading for every data set, split, constraint and part.

    ``results`` are those of `with_shares`. ``stem_splits.csv`` has all seeds that both splits have.
    """
    of_splits(results).to_csv(folder / f"{stem}_splits.csv", index=False)
    table = summary(same_seeds(results))
    table.round(5).to_csv(folder / f"{stem}_summary.csv", index=False)
    for names, rows in table.groupby(BY[:3]):
        for part in PARTS:
            for_reading(rows, part).to_csv(folder / f"{'_'.join((stem, *names, part))}.csv", index=False)
