"""ACS income, Oklahoma 2018, 46 % of the rows: the paper's nine features as numbers; groups: white, or not."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks._common import Table, data_folder

PLACE = 1
TITLE = "ACS income, Oklahoma"
FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX"]


def load() -> Table:
    """See `benchmarks.loss_parity.datasets`; race is not among the features."""
    frame = pd.read_parquet(data_folder() / "acs_income_2018_OK_sample.parquet")
    return Table(
        "acs_income_ok",
        frame[FEATURES].to_numpy(dtype=float),
        np.where(frame["PINCP_gt_50000"] > 0, 1, -1),
        np.where(frame["RAC1P"] == 1, "white", "non-white"),
    )
