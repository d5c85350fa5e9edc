"""Data, splits, timing and output that the benchmarks share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse as sp

RESULTS = Path(__file__).parent / "results"


class Table(NamedTuple):
    """One data set: CSR features, labels in {-1, 1}, groups, and the official training part if there is one."""

    name: str
    X: sp.csr_array
    y: np.ndarray
    groups: np.ndarray
    is_train: np.ndarray | None = None


def data_folder() -> Path:
    """Where the real data sets are: ``FAIRCONSTRAINED_DATA``, else ``../shared/data``."""
    folder = Path(os.environ.get("FAIRCONSTRAINED_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        raise SystemExit(f"No data in {folder}: set FAIRCONSTRAINED_DATA to the folder with adult_a9a.npz and others.")
    return folder


def load_a9a() -> Table:
    """Adult as 123 binary features; groups: female."""
    raw = np.load(data_folder() / "adult_a9a.npz")
    return Table(
        "a9a",
        sp.csr_array(raw["X"].astype(float)),
        raw["y"].astype(int),
        np.where(raw["female"].astype(bool), "female", "male"),
        raw["is_train"].astype(bool),
    )


def median_seconds(function: Callable[[], Any], repeats: int = 30) -> float:
    """Median wall-clock time of a call, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def save(frame: pd.DataFrame, name: str) -> None:
    """Write ``results/name.csv`` and print the table."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.csv"
    frame.to_csv(path, index=False)
    print(frame.to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    print(f"written to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")
