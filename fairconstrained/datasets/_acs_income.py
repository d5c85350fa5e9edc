"""ACSIncome: census microdata, through folktables."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import get_data_home

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
from fairconstrained.datasets._download import or_connection_error

__all__ = ["fetch_acs_income"]

# fmt: off
STATES = (
    "AL", "AK", "AZ", "AR", "CA", "CO", "CT", "DE", "FL", "GA", "HI", "ID", "IL", "IN", "IA", "KS", "KY",
    "LA", "ME", "MD", "MA", "MI", "MN", "MS", "MO", "MT", "NE", "NV", "NH", "NJ", "NM", "NY", "NC", "ND",
    "OH", "OK", "OR", "PA", "RI", "SC", "SD", "TN", "TX", "UT", "VT", "VA", "WA", "WV", "WI", "WY", "PR",
)
# fmt: on
YEARS = range(2014, 2019)  # folktables starts in 2014; from 2019 on RELP is RELSHIPP with other codes
THRESHOLD = 50_000  # dollars a year

FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"]
LABEL = "PINCP"
#: Codes of a missing value, which is a question that the survey does not ask of a person: folktables has the first
#: (`numpy.nan_to_num` with the default of ``nan``), and the second keeps it apart where the first is an answer.
MISSING, MISSING_BESIDE_ZERO = 0, -1

COLUMNS = """\
======  ===========================================================================================
Column  Meaning and unit (the codes are nominal unless a unit or an order is given)
======  ===========================================================================================
AGEP    age, years, 17 .. 99
COW     class of worker, 1 .. 8
SCHL    educational attainment, ordered, 1 (none) .. 24 (doctorate)
MAR     marital status: 1 married, 2 widowed, 3 divorced, 4 separated, 5 never married
OCCP    occupation, census code
POBP    place of birth, census code
RELP    relationship to the reference person, 0 (the person itself) .. 17
WKHP    usual hours worked in a week, 1 .. 99
SEX     1 male, 2 female
RAC1P   1 White, 2 Black or African American, 3 American Indian, 4 Alaska Native, 5 American Indian or
        Alaska Native not specified, 6 Asian, 7 Native Hawaiian or Pacific Islander, 8 some other race,
        9 two or more races
======  ===========================================================================================
"""

DESCR = f"""\
ACSIncome (American Community Survey, public use microdata sample, 1-year person file)
--------------------------------------------------------------------------------------

Does a working adult in the chosen US states and year earn more than 50,000 dollars a year?

:Number of rows: depends on states and year; Oklahoma 2018 has 17917
:Label: PINCP, 1 = total income above 50,000 USD a year, 0 = not
:Sensitive features: RAC1P (race) by default, else any columns of the file, as the codes of the census

{COLUMNS}
As in folktables, a row is kept if age > 16, income > 100 USD, hours > 0 and person weight >= 1, and a value that
the survey does not ask of a person is 0. Of the ten columns above none is known to be missing after the filter. A
sensitive column in which 0 is an answer, such as MLPK (0: no military service in that period), has -1 for what was not
asked.

Reference: F. Ding, M. Hardt, J. Miller, L. Schmidt, "Retiring Adult: new datasets for fair machine learning",
NeurIPS 2021.
"""


@documented_by(RETURNS_BUNCH, FETCHED)
def fetch_acs_income(
    states: str | Sequence[str] = ("OK",),
    year: int = 2018,
    sensitive: str | Sequence[str] = "RAC1P",
    *,
    data_home: str | PathLike[str] | None = None,
    include_sensitive: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Any:
    """Fetch ACSIncome for some US states and one year through folktables, or read it from the cache.

    Needs folktables: ``pip install 'fairconstrained[datasets]'``.

    Parameters
    ----------
    states : str or sequence of str, default=("OK",)
        Two-letter codes of states, or ``"PR"``.
    year : int, default=2018
        Survey year, 2014 to 2018; from 2019 on the census replaced ``RELP`` by another variable.
    sensitive : str or sequence of str, default="RAC1P"
        The sensitive feature, or several: then ``sensitive_features`` has one column for each. Any columns of the
        census' person file but the label ``"PINCP"``, such as ``["SEX", "RAC1P", "CIT", "DIS", "ST"]``; estimators
        compare the groups that these make up together, as many as are observed. The groups are integer codes, or text
        for the few columns of the census that are text.
    data_home : str or path-like, default=None
        Cache folder, by default that of scikit-learn; the files go to its subfolder ``folktables``.
    include_sensitive : bool, default=False
        Keep the sensitive columns in ``data`` too, as the ACSIncome task of folktables does with its own.

    Returns
    -------
    bunch : Bunch
        Data and their description, with the attributes

        data : DataFrame or ndarray of shape (n_samples, n_features)
            Float columns AGEP, COW, SCHL, MAR, OCCP, POBP, RELP, WKHP, SEX, RAC1P less the sensitive ones;
            ``DESCR`` gives units and codes, also of missing values.
        target : Series or ndarray of shape (n_samples,)
            1 if the total income exceeds 50,000 USD a year, else 0.

    Raises
    ------
    ImportError
        If folktables is not installed.
    ValueError
        If a state or the year is not offered.

    References
    ----------
    .. [1] F. Ding, M. Hardt, J. Miller, L. Schmidt, "Retiring Adult: new datasets for fair machine
       learning", NeurIPS 2021 (the task ACSIncome).
    """
    chosen_columns(sensitive)
    codes = [states] if isinstance(states, str) else list(states)
    unknown = [code for code in codes if code not in STATES]
    if unknown or not codes:
        raise ValueError(f"states must be two-letter codes such as 'OK'; got {states!r}.")
    if year not in YEARS:
        raise ValueError(f"year must be from {YEARS[0]} to {YEARS[-1]}; got {year!r}.")
    table = _fetch_table(codes, year, Path(get_data_home(data_home)) / "folktables")
    layout = {"include_sensitive": include_sensitive, "as_frame": as_frame, "return_X_y": return_X_y}
    return acs_income_from_table(table, sensitive=sensitive, **layout)


def acs_income_from_table(
    table: pd.DataFrame,
    *,
    sensitive: str | Sequence[str] = "RAC1P",
    **layout: bool,
) -> Any:
    """Return what :func:`fetch_acs_income` does, from a person file of the census.

    Raises ValueError if a column is missing or ``sensitive`` is no other column than the label.
    """
    require_columns(table, [*FEATURES, LABEL, "PWGTP"], "an ACS person file of 2014 to 2018")
    names = chosen_columns(sensitive, [name for name in table.columns if name != LABEL])
    working_adult = (table["AGEP"] > 16) & (table[LABEL] > 100) & (table["WKHP"] > 0) & (table["PWGTP"] >= 1)
    rows = table[working_adult]
    features = rows[FEATURES].astype(np.float64).fillna(MISSING)
    others = {name: _codes(table[name])[working_adult] for name in names if name not in FEATURES}
    features = features.assign(**others)
    rich = binary_target(rows[LABEL] > THRESHOLD, {"False": 0, "True": 1}, LABEL)
    return acs_bunch(features, rich, names, DESCR, **layout)


def acs_bunch(
    features: pd.DataFrame,
    target: pd.Series[Any],
    sensitive: list[str],
    descr: str,
    **layout: bool,
) -> Any:
    """Return the Bunch, or data and target, of ``FEATURES``, other sensitive columns, a 0/1 label and the groups.

    A sensitive column that is not among the features is only kept in ``data`` if ``include_sensitive``.
    """
    numbers = [name for name in sensitive if pd.api.types.is_numeric_dtype(features[name].dtype)]
    return build_bunch(
        features,
        target,
        features[sensitive].astype(dict.fromkeys(numbers, np.int64)),
        target_names=("at most 50000 USD", "more than 50000 USD"),
        descr=descr,
        **layout,
    )


def _codes(column: pd.Series[Any]) -> pd.Series[Any]:
    """Return the values of a column of the census as floats, or text as categories, with a code for missing ones."""
    if not pd.api.types.is_numeric_dtype(column.dtype):
        return categorical(column, missing=str(MISSING))
    return column.astype(np.float64).fillna(MISSING_BESIDE_ZERO if (column == 0).any() else MISSING)


def _fetch_table(states: list[str], year: int, folder: Path) -> pd.DataFrame:
    try:
        from folktables import ACSDataSource
    except ImportError as error:
        raise ImportError(
            "fetch_acs_income needs the package folktables: pip install 'fairconstrained[datasets]'"
        ) from error
    folder.mkdir(parents=True, exist_ok=True)
    survey = ACSDataSource(survey_year=str(year), horizon="1-Year", survey="person", root_dir=str(folder))

    def read() -> pd.DataFrame:
        # folktables prints a failed download and goes on until the file is missed; the error says it once.
        with contextlib.redirect_stdout(io.StringIO()):
            return survey.get_data(states=states, download=True)

    return or_connection_error(
        read,
        what=f"the ACS person files of {', '.join(states)} for {year} from the US census bureau",
        remedy=f"copy the folder '{year}' from a machine that has fetched them into '{folder}'",
    )
