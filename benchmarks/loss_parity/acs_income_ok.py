"""ACS income, Oklahoma 2018: the paper's nine features as numbers, without race; groups: white, or not.

All 17,917 rows where `fairconstrained.datasets.fetch_acs_income` has them or can download them, and else the sample of
8,241 rows in the data folder. Which of them it is is printed: never join results of the two.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from benchmarks._common import Table, data_folder
from fairconstrained.datasets import fetch_acs_income

FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX"]
SAMPLE = "acs_income_2018_OK_sample.parquet"


@cache
def load() -> Table:
    """Load all rows if they can be had, and else the sample.

    Raises
    ------
    SystemExit
        If neither all rows nor the sample can be had.
    """
    try:
        acs = fetch_acs_income("OK", 2018, sensitive="RAC1P")
    except (ImportError, ConnectionError) as error:
        print(f"acs_income_ok: the sample of 46 % of the rows. {error}")
        return _sample(error)
    print("acs_income_ok: all rows.")
    return _table(acs.data, acs.target, acs.sensitive_features)


def _sample(error: Exception) -> Table:
    path = data_folder() / SAMPLE
    if not path.exists():
        raise SystemExit(f"There is no {SAMPLE} in the data folder either; {error}") from error
    frame = pd.read_parquet(path)
    return _table(frame, frame["PINCP_gt_50000"], frame["RAC1P"])


def _table(data: pd.DataFrame, rich: pd.Series, race: pd.Series) -> Table:
    return Table(
        "acs_income_ok",
        data[FEATURES].to_numpy(dtype=float),
        np.where(rich > 0, 1, -1),
        np.where(race == 1, "white", "non-white"),
    )
