"""Adult (census income), from OpenML."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

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

__all__ = ["fetch_adult"]

OPENML_ID = 1590  # "adult", version 2: the UCI training and test files merged
SENSITIVE = ("sex", "race")

_NUMERIC = ["age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
_COLUMNS = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship", "race",
    "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
]  # fmt: skip

DESCR = """\
Adult, or census income (UCI; OpenML "adult" version 2)
-------------------------------------------------------

Adults in the US Current Population Survey of 1994: does a person earn more than 50,000 dollars a year?

:Number of rows: 48842
:Label: class, 1 = income above 50,000 USD a year (23.93 %), 0 = not
:Sensitive features: sex (Female 16192 rows, 10.93 % positive; Male 32650 rows, 30.38 %), race

==============  ==================================================================================
Column          Meaning and unit
==============  ==================================================================================
age             years, 17 .. 90
workclass       kind of employer (category, '?' = not stated)
fnlwgt          census weight: how many people the row stands for
education       highest level (category)
education-num   the same level as a number, 1 .. 16
marital-status  category
occupation      category, '?' = not stated
relationship    category
race            category, five values
sex             category, Female or Male
capital-gain    USD a year
capital-loss    USD a year
hours-per-week  hours worked in a week, 1 .. 99
native-country  category, '?' = not stated
==============  ==================================================================================

'?' stays a category of its own, so that no row is dropped: 3620 rows have at least one.

Reference: B. Becker, R. Kohavi, "Adult", UCI Machine Learning Repository, 1996.
"""


@documented_by(RETURNS_BUNCH, FETCHED)
def fetch_adult(
    *,
    sensitive: str | Sequence[str] = "sex",
    data_home: str | PathLike[str] | None = None,
    include_sensitive: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Any:
    """Fetch the Adult (census income) data from OpenML, or from scikit-learn's cache.

    Parameters
    ----------
    sensitive : {"sex", "race"} or sequence of them, default="sex"
        The sensitive feature, or several: then ``sensitive_features`` has one column for each.

    Returns
    -------
    bunch : Bunch
        Data and their description, with the attributes

        data : DataFrame or ndarray of shape (48842, 13)
            14 columns less the sensitive ones. Not-stated values are the category ``'?'``.
        target : Series or ndarray of shape (48842,)
            1 if the income exceeds 50,000 USD a year, else 0.

    References
    ----------
    .. [1] B. Becker, R. Kohavi, "Adult", UCI Machine Learning Repository, 1996.
    """
    chosen_columns(sensitive, SENSITIVE)
    table = fetch_openml_table(OPENML_ID, "the Adult data", data_home)
    layout = {"include_sensitive": include_sensitive, "as_frame": as_frame, "return_X_y": return_X_y}
    return adult_from_table(table, sensitive=sensitive, **layout)


def adult_from_table(
    table: pd.DataFrame,
    *,
    sensitive: str | Sequence[str] = "sex",
    **layout: bool,
) -> Any:
    """Return what :func:`fetch_adult` does, from a table with OpenML's columns.

    Raises ValueError if a column is missing, a label is unknown or ``sensitive`` is not offered.
    """
    names = chosen_columns(sensitive, SENSITIVE)
    require_columns(table, [*_COLUMNS, "class"], "OpenML's 'adult', version 2")
    features = pd.DataFrame(
        {
            name: pd.to_numeric(table[name]) if name in _NUMERIC else categorical(table[name], missing="?")
            for name in _COLUMNS
        }
    )
    return build_bunch(
        features,
        binary_target(table["class"], {"<=50K": 0, ">50K": 1}, "class"),
        features[names].astype(str),
        target_names=("<=50K", ">50K"),
        descr=DESCR,
        **layout,
    )
