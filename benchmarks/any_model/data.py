"""Data sets as raw tables with categories and missing values, their splits, and the features of linear models."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks._common import data_folder
from fairconstrained.datasets import make_biased_classification

#: Share of the rows that a split trains on.
TRAINING_SHARE = 0.7
#: Rows of the ACS sample that are used, of 765,670.
ACS_ROWS = 100_000
#: Crime rates of communities from which on the label is positive: the upper 30 %.
HIGH_CRIME = 0.28


class Part(NamedTuple):
    """Rows of a data set: features, labels 0 or 1, and the group of every row."""

    X: pd.DataFrame
    y: np.ndarray
    groups: np.ndarray

    def take(self, rows: np.ndarray) -> Part:
        """The given rows."""
        return Part(self.X.iloc[rows], self.y[rows], self.groups[rows])


class Split(NamedTuple):
    """Rows that a method is fitted on, and new rows that it is measured on."""

    train: Part
    test: Part


@dataclass(frozen=True)
class Case:
    """A data set: how it is loaded, its title, and whether the group can be read off the features."""

    load: Callable[[], tuple[Part, np.ndarray | None]]
    title: str
    group_in_features: bool


def _categorical(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    return frame.astype(dict.fromkeys(columns, "category"))


def _texts(frame: pd.DataFrame) -> list[str]:
    return list(frame.columns[[not pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]])


@cache
def _adult() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "adult.parquet")
    features = frame.drop(columns=["income", "split"]).replace("?", None)
    y = frame["income"].str.startswith(">").to_numpy(dtype=int)
    part = Part(_categorical(features, _texts(features)), y, frame["sex"].to_numpy(dtype=str))
    return part, (frame["split"] == "train").to_numpy()


@cache
def _a9a() -> tuple[Part, np.ndarray | None]:
    raw = np.load(data_folder() / "adult_a9a.npz")
    groups = np.where(raw["female"].astype(bool), "Female", "Male")
    features = pd.DataFrame(raw["X"].astype(float)).add_prefix("x")
    return Part(features, (raw["y"] > 0).astype(int), groups), raw["is_train"].astype(bool)


@cache
def _bank() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "bank_additional_full.parquet")
    features = frame.drop(columns=["y", "marital", "day_of_week"]).replace("unknown", None)
    groups = np.where(frame["age"].between(25, 60), "25 to 60", "other")
    return Part(_categorical(features, _texts(features)), (frame["y"] == "yes").to_numpy(dtype=int), groups), None


@cache
def _compas() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "compas_two_years.parquet")
    frame = frame[frame["propublica_filter"] & frame["race"].isin(["African-American", "Caucasian"])]
    names = ["sex", "age", "juv_fel_count", "juv_misd_count", "juv_other_count", "priors_count", "c_charge_degree"]
    y = frame["two_year_recid"].to_numpy(dtype=int)
    return Part(_categorical(frame[names], ["sex", "c_charge_degree"]), y, frame["race"].to_numpy(dtype=str)), None


@cache
def _law_school() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "law_school.parquet")
    features = frame.drop(columns=["race", "pass_bar"]).astype(float)
    return Part(features, (frame["pass_bar"] > 0).to_numpy(dtype=int), frame["race"].to_numpy(dtype=str)), None


@cache
def _acs() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "acs_income_2018_us_sample.parquet").sample(ACS_ROWS, random_state=0)
    categories = ["COW", "MAR", "OCCP", "POBP", "RELP", "RAC1P"]
    features = _categorical(frame[["AGEP", "SCHL", "WKHP", *categories]], categories)
    groups = np.where(frame["SEX"] == 1, "male", "female")
    return Part(features, frame["PINCP_gt_50000"].to_numpy(dtype=int), groups), None


@cache
def _oklahoma() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "acs_income_2018_OK_sample.parquet")
    # as the experiments of arXiv:2507.04033 have it: codes as numbers
    features = frame[["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX"]].astype(float)
    groups = np.where(frame["RAC1P"] == 1, "white", "other")
    return Part(features, frame["PINCP_gt_50000"].to_numpy(dtype=int), groups), None


@cache
def _credit() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "credit_risk_home_ownership.parquet")
    features = frame.drop(columns=["loan_status", "person_home_ownership"])
    groups = np.where(frame["person_home_ownership"] == "RENT", "rent", "other")
    return Part(_categorical(features, _texts(features)), frame["loan_status"].to_numpy(dtype=int), groups), None


@cache
def _communities() -> tuple[Part, np.ndarray | None]:
    frame = pd.read_parquet(data_folder() / "communities_crime.parquet")
    names = ["state", "county", "community", "communityname", "fold", "ViolentCrimesPerPop"]
    features = frame.drop(columns=names).astype(float)
    y = (frame["ViolentCrimesPerPop"] >= HIGH_CRIME).to_numpy(dtype=int)
    share = frame["racepctblack"]
    groups = np.where(share > share.quantile(0.75), "upper quarter", "other")
    return Part(features, y, groups), None


@cache
def _generated() -> tuple[Part, np.ndarray | None]:
    X, y, groups = make_biased_classification(n_samples=1500, random_state=0)
    features = pd.DataFrame(np.asarray(X)).add_prefix("x")
    features["level"] = pd.cut(features["x0"], 4, labels=list("abcd"))
    features.loc[::17, "x1"] = np.nan
    return Part(features, (np.asarray(y) > 0).astype(int), np.asarray(groups).astype(str)), None


#: Those of `CASES` that need no data beside the package, for quick runs.
QUICK = ("generated",)
CASES: dict[str, Case] = {
    "adult": Case(_adult, "Adult, raw", True),
    "a9a": Case(_a9a, "a9a", True),
    "bank": Case(_bank, "Bank", True),
    "compas": Case(_compas, "COMPAS", False),
    "law_school": Case(_law_school, "Law school", False),
    "acs": Case(_acs, "ACS, 100,000 rows", False),
    "oklahoma": Case(_oklahoma, "ACS of Oklahoma", False),
    "credit": Case(_credit, "Credit risk", False),
    "communities": Case(_communities, "Communities", True),
    "generated": Case(_generated, "generated", False),
}


def load_split(data: str, seed: int) -> Split:
    """Split a data set: the official way for seed 0 where there is one, else 70 to 30, stratified by group and label.

    Parameters
    ----------
    data : str
        Key of `CASES`.
    seed : int

    Returns
    -------
    split : Split
    """
    part, official = CASES[data].load()
    if official is not None and seed == 0:
        return Split(part.take(np.flatnonzero(official)), part.take(np.flatnonzero(~official)))
    return parted(part, TRAINING_SHARE, seed)


def parted(part: Part, train_size: float, seed: int) -> Split:
    """Split rows at random, stratified by group and label; ``train_size`` is a share or a number of rows."""
    cells = np.char.add(part.groups.astype(str), part.y.astype(str))
    rows = np.arange(part.y.size)
    train, test = train_test_split(rows, train_size=train_size, stratify=cells, random_state=seed)
    return Split(part.take(train), part.take(test))


def categorical_columns(X: pd.DataFrame) -> list[int]:
    """Places of the columns of categories."""
    return [place for place, kind in enumerate(X.dtypes) if isinstance(kind, pd.CategoricalDtype)]


def as_codes(X: pd.DataFrame) -> np.ndarray:
    """Return the table as numbers: codes of categories, and NaN where a value is missing."""
    numbers = X.copy()
    for place in categorical_columns(X):
        name = X.columns[place]
        codes = X[name].cat.codes.to_numpy(dtype=float)
        numbers[name] = np.where(codes < 0, np.nan, codes)
    return numbers.to_numpy(dtype=float)


def linear_features(train: pd.DataFrame) -> Any:
    """Return a fitted transformer to the features of linear models: standardised numbers, categories one-hot."""
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    categories = OneHotEncoder(handle_unknown="ignore", min_frequency=10)
    return ColumnTransformer(
        [
            ("numbers", numbers, make_column_selector(dtype_include="number")),
            ("categories", categories, make_column_selector(dtype_include="category")),
        ]
    ).fit(train)


def linear_split(split: Split) -> Split:
    """Return a split in the features of linear models, which are sparse where categories make many of them zero."""
    features = linear_features(split.train.X)
    return Split(*(part._replace(X=features.transform(part.X)) for part in split))


def dense(X: Any) -> np.ndarray:
    """Return features as an array."""
    return X.toarray() if hasattr(X, "toarray") else np.asarray(X)
