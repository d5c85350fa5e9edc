"""Data sets, and how their rows are split."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._common import Table, load_a9a
from benchmarks.loss_parity import acs_income_ok

__all__ = ["DATASETS", "SPLITS", "Dataset", "Part", "Parts", "load_parts", "split_seed"]

#: Share of the rows that test where there is no official split (section 4.1).
TEST_SHARE = 0.2
#: How the rows are split: once for all runs, with the authors' seed, or anew for every run.
SPLITS = ("fixed", "redrawn")
FIXED_SEED = 42


@dataclass(frozen=True)
class Dataset:
    """A data set.

    Attributes
    ----------
    title : str
        Title in figures.
    load : callable
        Returns dense features as they are, labels -1 and 1, the group of every row, and, if there is an official split,
        ``is_train``. What says the group should not be among the features.
    standardise : bool
        Whether the features are standardised on the training part.
    seconds : float
        Seconds of a run; those published (section 4.2 and the authors' configuration) by default.
    splits : tuple of str
        Ways of `SPLITS` that it is run with.
    """

    title: str
    load: Callable[[], Table]
    standardise: bool = True
    seconds: float = 30.0
    splits: tuple[str, ...] = SPLITS


class Part(NamedTuple):
    """Rows of a table: features, labels in {-1, 1}, and groups by name."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


class Parts(NamedTuple):
    """Rows to train on, and rows to test on."""

    train: Part
    test: Part


def _adult() -> Table:
    """Adult as LIBSVM's binary features (a9a) without the two that say the sex; official split; groups: sex."""
    table = load_a9a()
    X = table.X.toarray()
    agreement = np.mean((table.groups == "female")[:, None] == X, axis=0)
    return table._replace(name="adult", X=X[:, (agreement > 0) & (agreement < 1)])


#: Data sets by name.
DATASETS = {
    "acs_income_ok": Dataset("ACS income, Oklahoma", acs_income_ok.load),
    # the split is the official one; standardised, a rare category would become a huge number
    "adult": Dataset("Adult", _adult, standardise=False, seconds=10.0, splits=("fixed",)),
}


def split_seed(split: str, seed: int) -> int:
    """Seed that the rows of a run with this seed are split with."""
    return FIXED_SEED if split == "fixed" else seed


@lru_cache(maxsize=2)
def load_parts(name: str, seed: int) -> Parts:
    """The official split, else one that is drawn with ``seed`` and stratified by group."""
    dataset = DATASETS[name]
    table = dataset.load()
    if table.is_train is None:
        rows = np.arange(table.y.size)
        train, test = train_test_split(rows, test_size=TEST_SHARE, stratify=table.groups, random_state=seed)
    else:
        train, test = np.flatnonzero(table.is_train), np.flatnonzero(~table.is_train)
    X = table.X
    if dataset.standardise:
        X = StandardScaler().fit(X[train]).transform(X)
    return Parts(*(Part(X[rows], table.y[rows], table.groups[rows]) for rows in (train, test)))
