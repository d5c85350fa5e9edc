"""Setting of a fit: a split of a data set in the features of linear models and as a raw table, a notion and a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.any_model.data import Part, Split
from benchmarks.new_rows.methods import features_of, split_of
from benchmarks.notions.catalogue import ENTRIES, WHOLE, Entry, Rows

#: Strata within which groups are compared, from the raw table: a degree, how one was called, the charge, full time.
STRATA: dict[str, Callable[[pd.DataFrame], pd.Series]] = {
    "adult": lambda X: X["education-num"] >= 13,
    "bank": lambda X: X["contact"],
    "compas": lambda X: X["c_charge_degree"],
    "law_school": lambda X: X["fulltime"],
    "generated": lambda X: X["x2"] > 0,
}


#: Training rows that are drawn where a split has more.
TRAINING_ROWS = 10_000


@lru_cache(maxsize=2)
def _rows_of(data: str, seed: int) -> tuple[Split, Split]:
    """The split in features of linear models, and as the raw table; both with strata."""
    name = data.removesuffix(WHOLE)
    raw, linear = split_of(name, seed), features_of(name, seed)
    n_rows = raw.train.y.size
    size = n_rows if data.endswith(WHOLE) else min(TRAINING_ROWS, n_rows)
    chosen = np.sort(np.random.default_rng(seed).choice(n_rows, size, replace=False))
    everywhere = np.arange(raw.test.y.size)

    def rows(part: Part, table: Part, places: np.ndarray) -> Any:
        strata = STRATA[name](table.X).astype(str).to_numpy(dtype=str)
        return Rows(part.X, part.y, part.groups, strata).take(places)

    return (
        Split(rows(linear.train, raw.train, chosen), rows(linear.test, raw.test, everywhere)),
        Split(rows(raw.train, raw.train, chosen), rows(raw.test, raw.test, everywhere)),
    )


@dataclass(frozen=True)
class Setting:
    """One notion and bound on one split; ``bound`` is infinite for a fit without a bound."""

    data: str
    seed: int
    notion: str
    bound: float

    @property
    def entry(self) -> Entry:
        """Entry of the notion."""
        return ENTRIES[self.notion]

    @property
    def split(self) -> Split:
        """Split with the features of linear models, as arrays."""
        return _rows_of(self.data, self.seed)[0]

    @property
    def tables(self) -> Split:
        """Split with the raw tables, which have categories and missing values."""
        return _rows_of(self.data, self.seed)[1]

    def bounded_by(self, bound: float) -> Setting:
        """Return the setting with another bound."""
        return replace(self, bound=bound)
