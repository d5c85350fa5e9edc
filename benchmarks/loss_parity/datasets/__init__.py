"""Data sets: a module for each, with

``load() -> benchmarks._common.Table``
    Dense features as they are, labels -1 and 1, the group of every row, and, if there is an official split,
    ``is_train``. What says the group should not be among the features.
``TITLE`` : str
    Title in figures and tables.
``STANDARDISE`` : bool, optional
    Whether the features are standardised on the training part; they are if it is left out.
``SECONDS`` : float, optional
    Seconds of a run, if not the published ones.
``SPLITS`` : tuple of str, optional
    Ways of `SPLITS` that it is run with; all of them if it is left out.
``PLACE`` : int, optional
    Place among the others, see `benchmarks.loss_parity.discovery`.
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks._common import Table
from benchmarks.loss_parity.discovery import modules_of

__all__ = ["SPLITS", "Part", "Parts", "datasets", "load_parts", "split_seed"]

#: Share of the rows that test where there is no official split (section 4.1).
TEST_SHARE = 0.2
#: How the rows are split: once for all runs, with the authors' seed, or anew for every run.
SPLITS = ("fixed", "redrawn")
FIXED_SEED = 42


class Part(NamedTuple):
    """Rows of a table: features, labels in {-1, 1}, and groups by name."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


class Parts(NamedTuple):
    """Rows to train on, and rows to test on."""

    train: Part
    test: Part


def datasets() -> dict[str, ModuleType]:
    """All data sets by name."""
    return modules_of("datasets")


def split_seed(split: str, seed: int) -> int:
    """Seed that the rows of a run with this seed are split with."""
    return FIXED_SEED if split == "fixed" else seed


@lru_cache(maxsize=2)
def load_parts(name: str, seed: int) -> Parts:
    """The official split, else one that is drawn with ``seed`` and stratified by group."""
    module = datasets()[name]
    table: Table = module.load()
    if table.is_train is None:
        rows = np.arange(table.y.size)
        train, test = train_test_split(rows, test_size=TEST_SHARE, stratify=table.groups, random_state=seed)
    else:
        train, test = np.flatnonzero(table.is_train), np.flatnonzero(~table.is_train)
    X = table.X
    if getattr(module, "STANDARDISE", True):
        X = StandardScaler().fit(X[train]).transform(X)
    return Parts(*(Part(X[rows], table.y[rows], table.groups[rows]) for rows in (train, test)))
