"""COMPAS two-year recidivism, from OpenML or from ProPublica's own file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.datasets import fetch_file, get_data_home

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
from fairconstrained.datasets._download import fetch_openml_table, or_connection_error

__all__ = ["fetch_compas"]

OPENML_ID = 42193  # "compas-two-years": filtered as ProPublica did, two races, one-hot columns
PROPUBLICA_FILE = "compas-scores-two-years.csv"
# The revision of 13 June 2017, and the hash of the file in it: nothing else is read in its place.
PROPUBLICA_COMMIT = "bafff5da3f2e45eca6c2d5055faad269defd135a"
PROPUBLICA_SHA256 = "c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d"
PROPUBLICA_URL = f"https://raw.githubusercontent.com/propublica/compas-analysis/{PROPUBLICA_COMMIT}/{PROPUBLICA_FILE}"
SENSITIVE = ("race", "sex", "age_cat")

_COUNTS = ["age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count"]
_CATEGORIES = ["sex", "age_cat", "c_charge_degree", "race"]
_ONE_HOT = {
    "age_cat": {"25-45": "25 - 45", "Greaterthan45": "Greater than 45", "Lessthan25": "Less than 25"},
    "c_charge_degree": {"F": "F", "M": "M"},
    "race": {"African-American": "African-American", "Caucasian": "Caucasian"},
}

DESCR = """\
COMPAS two-year recidivism (ProPublica; OpenML "compas-two-years")
------------------------------------------------------------------

Defendants screened in Broward County, Florida, 2013 and 2014: is a person charged again within two years?

:Number of rows: 5278 from OpenML (African-American 3175, Caucasian 2103); 6172 from ProPublica (all races)
:Label: two_year_recid, 1 = charged again (47.04 % of the OpenML rows, 45.51 % of ProPublica's), 0 = not
:Sensitive features: race, sex, age_cat

===============  ================================================================================
Column           Meaning and unit
===============  ================================================================================
age              years
juv_fel_count    juvenile felony charges, number
juv_misd_count   juvenile misdemeanour charges, number
juv_other_count  other juvenile charges, number
priors_count     prior charges, number
sex              Female or Male
age_cat          "Less than 25", "25 - 45" or "Greater than 45" years
c_charge_degree  F = felony, M = misdemeanour
race             category
===============  ================================================================================

ProPublica's filter keeps a row if the charge lies within 30 days of the screening, recidivism was recorded
(is_recid is not -1), the charge is not an ordinary traffic offence (degree "O") and a score was given.
OpenML's copy went through it, keeps two races and codes the categories as 0/1 columns; they are joined again
here, so that both sources have the same columns. An arrest is not a crime committed: the label carries the
policing of the place and time.

Reference: J. Larson, S. Mattu, L. Kirchner, J. Angwin, "How we analyzed the COMPAS recidivism algorithm",
ProPublica, 2016.
"""


@documented_by(RETURNS_BUNCH, FETCHED)
def fetch_compas(
    *,
    source: str = "openml",
    sensitive: str | Sequence[str] = "race",
    data_home: str | PathLike[str] | None = None,
    include_sensitive: bool = False,
    return_X_y: bool = False,
    as_frame: bool = True,
) -> Any:
    """Fetch the COMPAS two-year recidivism data, or read them from scikit-learn's cache.

    Parameters
    ----------
    source : {"openml", "propublica"}, default="openml"
        OpenML has the two largest races (5,278 rows); ProPublica's file has all six (6,172 rows). It is read only if
        its SHA256 hash is that of the file in revision bafff5d of their repository.
    sensitive : {"race", "sex", "age_cat"} or sequence of them, default="race"
        The sensitive feature, or several: then ``sensitive_features`` has one column for each.

    Returns
    -------
    bunch : Bunch
        Data and their description, with the attributes

        data : DataFrame or ndarray of shape (n_samples, 8)
            Nine columns less the sensitive ones, described with their units in ``DESCR``; the COMPAS score
            itself is not among them.
        target : Series or ndarray of shape (n_samples,)
            1 if the person was charged again within two years, else 0.

    Raises
    ------
    ValueError
        If ``source`` names anything else.

    Warns
    -----
    UserWarning
        If ProPublica's file in the cache has another hash; it is downloaded again.

    References
    ----------
    .. [1] J. Larson, S. Mattu, L. Kirchner, J. Angwin, "How we analyzed the COMPAS recidivism algorithm",
       ProPublica, 2016.
    """
    chosen_columns(sensitive, SENSITIVE)
    if source not in _SOURCES:
        raise ValueError(f"source must be one of {list(_SOURCES)}; got {source!r}.")
    fetch, parse = _SOURCES[source]
    layout = {"include_sensitive": include_sensitive, "as_frame": as_frame, "return_X_y": return_X_y}
    return parse(fetch(data_home), sensitive=sensitive, **layout)


def compas_from_openml(
    table: pd.DataFrame,
    *,
    sensitive: str | Sequence[str] = "race",
    **layout: bool,
) -> Any:
    """Return what :func:`fetch_compas` does, from OpenML's one-hot table.

    Raises ValueError if a column is missing, a row has not exactly one value of a category, a label is unknown or
    ``sensitive`` is not offered.
    """
    one_hot = [f"{name}_{value}" for name, values in _ONE_HOT.items() for value in values]
    require_columns(table, [*_COUNTS, "sex", *one_hot, "twoyearrecid"], "OpenML's 'compas-two-years'")
    table = table.astype(str).astype(float).astype(np.int64)
    joined = {name: _join_one_hot(table, name, values) for name, values in _ONE_HOT.items()}
    sex = table["sex"].map({0: "Female", 1: "Male"})
    plain = table.assign(sex=sex, two_year_recid=table["twoyearrecid"], **joined)
    return _to_bunch(plain, sensitive, **layout)


def compas_from_propublica(
    table: pd.DataFrame,
    *,
    sensitive: str | Sequence[str] = "race",
    **layout: bool,
) -> Any:
    """Return what :func:`fetch_compas` does, from ProPublica's ``compas-scores-two-years.csv``, with their filter.

    Raises ValueError if a column is missing, a label is unknown or ``sensitive`` is not offered.
    """
    filtered_by = ["days_b_screening_arrest", "is_recid", "c_charge_degree", "score_text"]
    needed = [*_COUNTS, *_CATEGORIES, *filtered_by, "two_year_recid"]
    require_columns(table, needed, f"ProPublica's {PROPUBLICA_FILE}")
    keep = (
        table["days_b_screening_arrest"].between(-30, 30)
        & (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & table["score_text"].notna()
        & (table["score_text"] != "N/A")
    )
    return _to_bunch(table[keep], sensitive, **layout)


def _join_one_hot(table: pd.DataFrame, name: str, values: dict[str, str]) -> pd.Series[Any]:
    block = table[[f"{name}_{value}" for value in values]].to_numpy()
    if not ((block == 0) | (block == 1)).all() or (block.sum(axis=1) != 1).any():
        raise ValueError(f"The columns {name}_* must hold exactly one 1 in every row.")
    return pd.Series(np.array(list(values.values()), dtype=object)[block.argmax(axis=1)], index=table.index)


def _to_bunch(table: pd.DataFrame, sensitive: str | Sequence[str], **layout: bool) -> Any:
    names = chosen_columns(sensitive, SENSITIVE)
    features = pd.DataFrame(
        {name: table[name].astype(np.int64) for name in _COUNTS}
        | {name: categorical(table[name]) for name in _CATEGORIES}
    )
    return build_bunch(
        features,
        binary_target(table["two_year_recid"], {"0": 0, "1": 1}, "two_year_recid"),
        features[names].astype(str),
        target_names=("not charged again", "charged again"),
        descr=DESCR,
        **layout,
    )


def _fetch_openml(data_home: str | PathLike[str] | None) -> pd.DataFrame:
    return fetch_openml_table(OPENML_ID, "the COMPAS data", data_home)


def _fetch_propublica(data_home: str | PathLike[str] | None) -> pd.DataFrame:
    folder = Path(get_data_home(data_home)) / "compas"
    folder.mkdir(parents=True, exist_ok=True)
    path = or_connection_error(
        lambda: fetch_file(PROPUBLICA_URL, folder=folder, local_filename=PROPUBLICA_FILE, sha256=PROPUBLICA_SHA256),
        what=f"ProPublica's {PROPUBLICA_FILE}",
        remedy=f"copy that file of revision {PROPUBLICA_COMMIT[:7]} into '{folder}'",
    )
    return pd.read_csv(path)


_SOURCES: dict[str, tuple[Callable[[Any], pd.DataFrame], Callable[..., Any]]] = {
    "openml": (_fetch_openml, compas_from_openml),
    "propublica": (_fetch_propublica, compas_from_propublica),
}
