"""Real attributes crossed: the ACS income sample of all states, groups of up to eleven columns of the census.

Table "crossed": the first columns of `COLUMNS`, how many cells their values make possible, how many of these have
rows, and how many have as many as a cell that is compared; seconds of `GroupEncoder` on the DataFrame. For one of them
`auto` is trained for two epochs with the large cells compared and the small ones merged, as in table "cells" of
`benchmarks.loss_parity.promises.groups`. Processor time with one thread.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler

from benchmarks._common import data_folder, set_threads
from benchmarks.loss_parity.datasets import Part
from benchmarks.loss_parity.promises.groups import LEAST, QUICK_LEAST, fit
from fairconstrained.groups import GroupEncoder

#: Crossed in this order.
COLUMNS = ("SEX", "RAC1P", "STATE", "MAR", "AGEP", "SCHL", "COW", "RELP", "POBP", "OCCP", "WKHP")
#: How many of them, and with how many there is a fit.
CROSSED, FITTED = (2, 4, 6, 8, 9, 11), (4,)
QUICK_ROWS = 20_000


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """Count the cells of crossed columns, and measure fits that bound the gap between them."""
    set_threads(1)
    frame = pd.read_parquet(data_folder() / "acs_income_2018_us_sample.parquet")
    if quick:
        frame = frame.sample(QUICK_ROWS, random_state=0)
    rows = [_row(frame, n, QUICK_LEAST if quick else LEAST) for n in CROSSED]
    return {"crossed": pd.DataFrame(rows).astype({"compared": "Int64"})}


def _row(frame: pd.DataFrame, n_columns: int, least: int) -> dict[str, Any]:
    sensitive = frame[list(COLUMNS[:n_columns])]
    begin = time.process_time()
    encoder = GroupEncoder(sensitive)
    seconds = time.process_time() - begin
    sizes = np.bincount(encoder.codes)
    row = {
        "columns": n_columns,
        "last_column": COLUMNS[n_columns - 1],
        "possible_cells": f"{sensitive.nunique().astype(float).prod():.3g}",
        "observed_cells": sizes.size,
        f"cells_of_{least}_rows": int((sizes >= least).sum()),
        "encode_seconds": seconds,
    }
    names = ("compared", "fit_seconds", "train_gap", "status")
    if n_columns not in FITTED:
        return row | dict.fromkeys(names)
    fitted = fit(_part(frame, n_columns), sensitive, "merge", least)
    return row | {name: fitted[name] for name in names}


def _part(frame: pd.DataFrame, n_columns: int) -> Part:
    """The columns of the task that are not crossed, standardised, and the label."""
    features = [name for name in COLUMNS[n_columns:] if name != "STATE"]
    X = StandardScaler().fit_transform(frame[features].to_numpy(dtype=float))
    return Part(X, np.where(frame["PINCP_gt_50000"] > 0, 1, -1), np.empty(0))
