"""Bank marketing, from OpenML."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from fairconstrained.checks.docstrings import documented_by
from fairconstrained.datasets._bunch import (
    FETCHED,
    RETURNS_BUNCH,
    binary_target,
    build_bunch,
    categorical,
    chosen_columns,
    require_columns,
)
from fairconstrained.datasets._download import fetch_openml_table

__all__ = ["fetch_bank_marketing"]

OPENML_ID = 1461  # "bank-marketing", version 1: UCI's bank-full, its columns renamed V1 .. V16 and Class
SENSITIVE = ("age", "marital")
WORKING_AGE, OTHER_AGE = "25 to 60", "under 25 or over 60"

_COLUMNS = [
    "age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact", "day", "month",
    "duration", "campaign", "pdays", "previous", "poutcome",
]  # fmt: skip

_NUMERIC = ["age", "balance", "day", "duration", "campaign", "pdays", "previous"]

DESCR = """\
Bank marketing (UCI bank-full; OpenML "bank-marketing" version 1)
-----------------------------------------------------------------

Telephone campaigns of a Portuguese bank, 2008 to 2010: does the client subscribe a term deposit?

:Number of rows: 45211, without missing values
:Label: y, 1 = subscribed (5289 rows, 11.70 %), 0 = did not
:Sensitive features: age as two groups, "25 to 60" (both ends included) or "under 25 or over 60"; marital

=========  ======================================================================================
Column     Meaning and unit
=========  ======================================================================================
age        years
job        category
marital    divorced (or widowed), married or single
education  category
default    has credit in default: yes or no
balance    mean balance in a year, EUR
housing    has a housing loan: yes or no
loan       has a personal loan: yes or no
contact    kind of telephone: cellular, telephone or unknown
day        day of the month of the last contact, 1 .. 31
month      month of the last contact, jan .. dec
duration   length of the last contact, seconds; known only afterwards, so leave it out of a model to be used
campaign   number of contacts in this campaign
pdays      days since the last contact of an earlier campaign; -1 = none
previous   number of contacts before this campaign
poutcome   outcome of the earlier campaign: failure, other, success or unknown
=========  ======================================================================================

OpenML calls the columns V1 .. V16 and the label Class with values 1 and 2; the names here are UCI's.

References: S. Moro, P. Cortez, P. Rita, "A data-driven approach to predict the success of bank
telemarketing", Decision Support Systems 62, 22-31, 2014. The age groups are those of M. B. Zafar, I. Valera,
M. Gomez Rodriguez, K. P. Gummadi, "Fairness constraints: mechanisms for fair classification", AISTATS 2017.
"""


@documented_by(RETURNS_BUNCH, FETCHED)
def fetch_bank_marketing(
    *,
    sensitive: str | Sequence[str] = "age",
    data_home: str | PathLike[str] | None = None,
    include_sensitive: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Any:
    """Fetch the bank marketing data from OpenML, or from scikit-learn's cache.

    Parameters
    ----------
    sensitive : {"age", "marital"} or sequence of them, default="age"
        ``"age"`` gives two groups, from 25 to 60 years and all others [2]_; ``"marital"`` the three values.
    include_sensitive : bool, default=False
        Keep the sensitive columns in ``data`` too; age then in years, as it was recorded.

    Returns
    -------
    bunch : Bunch
        Data and their description, with the attributes

        data : DataFrame or ndarray of shape (45211, 15)
            16 columns less the sensitive ones, described with their units in ``DESCR``.
        target : Series or ndarray of shape (45211,)
            1 if the client subscribed, else 0.

    References
    ----------
    .. [1] S. Moro, P. Cortez, P. Rita, "A data-driven approach to predict the success of bank
       telemarketing", Decision Support Systems 62, 22-31, 2014.
    .. [2] M. B. Zafar, I. Valera, M. Gomez Rodriguez, K. P. Gummadi, "Fairness constraints: mechanisms for
       fair classification", AISTATS 2017 (experiments on real-world data).
    """
    chosen_columns(sensitive, SENSITIVE)
    table = fetch_openml_table(OPENML_ID, "the bank marketing data", data_home)
    layout = {"include_sensitive": include_sensitive, "as_frame": as_frame, "return_X_y": return_X_y}
    return bank_marketing_from_table(table, sensitive=sensitive, **layout)


def bank_marketing_from_table(
    table: pd.DataFrame,
    *,
    sensitive: str | Sequence[str] = "age",
    **layout: bool,
) -> Any:
    """Return what :func:`fetch_bank_marketing` does, from OpenML's table or one with UCI's column names.

    Raises ValueError if a column is missing, a label is unknown or ``sensitive`` is not offered.
    """
    names = chosen_columns(sensitive, SENSITIVE)
    if "Class" in table.columns:
        openml_names = [f"V{position}" for position in range(1, len(_COLUMNS) + 1)]
        require_columns(table, openml_names, "OpenML's 'bank-marketing', version 1")
        table = table.rename(columns={**dict(zip(openml_names, _COLUMNS, strict=True)), "Class": "y"})
        labels = {"1": 0, "2": 1}
    else:
        labels = {"no": 0, "yes": 1}
    require_columns(table, ["age", "marital", "y"], "a bank marketing table")
    features = pd.DataFrame({name: _feature(column) for name, column in table.items() if name != "y"})
    groups = pd.DataFrame({name: _groups(features[name]) for name in names})
    return build_bunch(
        features,
        binary_target(table["y"], labels, "y"),
        groups,
        target_names=("no", "yes"),
        descr=DESCR,
        **layout,
    )


def _feature(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.name in _NUMERIC or pd.api.types.is_numeric_dtype(column.dtype):
        return pd.to_numeric(column)
    return categorical(column)


def _groups(column: pd.Series[Any]) -> pd.Series[Any]:
    if column.name == "age":
        working_age = np.where(column.between(25, 60), WORKING_AGE, OTHER_AGE)
        return pd.Series(working_age, index=column.index, name="age")
    return column.astype(str)
