"""Bounds of the other estimators on new rows: of smooth rates, shares, classes, losses, predictions and rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from benchmarks._common import data_folder, set_threads
from benchmarks._runner import Row, TaskOfFields
from benchmarks.any_model.data import CASES, TRAINING_SHARE, dense, linear_features, load_split
from benchmarks.any_model.fronts import KEPT
from benchmarks.any_model.methods import quiet
from benchmarks.any_model.trees import Seconds
from benchmarks.rate_parity.ranking import quality_of
from fairconstrained import (
    FairRanker,
    GroupLossClassifier,
    GroupLossRegressor,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    ParityPairClassifier,
    PartialParityRegressor,
    RateParityClassifier,
)
from fairconstrained.datasets import make_biased_ranking, make_biased_regression

#: Samples by which the floor is found.
_N_SAMPLES = 50
_SHARED = ("data", "seed", "estimator", "kappa")
COLUMNS = (
    "task", *_SHARED, "status", "bound", "training", "new", "floor", "estimate", "estimate_error", "score", "seconds",
)  # fmt: skip


class Rows(NamedTuple):
    """Rows as arrays: features, targets, groups unless they do not matter, and for rankings the query of every row."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    qid: np.ndarray | None = None

    def take(self, rows: np.ndarray) -> Rows:
        """The given rows."""
        return Rows(*(None if column is None else column[rows] for column in self))

    def resampled(self, size: float, rng: np.random.Generator) -> Rows:
        """A sample with replacement, ``size`` times as large: of rows, or of whole queries."""
        if self.qid is None:
            return self.take(rng.integers(self.y.size, size=round(size * self.y.size)))
        names = np.unique(self.qid)
        drawn = rng.choice(names, round(size * names.size))
        parts = [np.flatnonzero(self.qid == name) for name in drawn]
        sample = self.take(np.concatenate(parts))
        return sample._replace(qid=np.repeat(np.arange(drawn.size), [part.size for part in parts]))


def _value(model: Any, rows: Rows) -> float:
    """The largest of the bounded quantities."""
    return max(model.constraint_values(rows.X, rows.y, **_told(rows)).values())


def _told(rows: Rows, *names: str) -> dict[str, Any]:
    """Those of the named columns that there are, as arguments."""
    known = {"sensitive_features": rows.groups, "qid": rows.qid}
    return {name: known[name] for name in names or known if known[name] is not None}


def _fit(model: Any, rows: Rows) -> Any:
    return model.fit(rows.X, rows.y, **_told(rows))


def _loss_of_groups(estimator: type) -> Callable[[float, Rows], Any]:
    """An estimator whose bound is by a share larger than the loss of the worst group where this is least."""

    def make(share: float, rows: Rows) -> Any:
        least = _fit(estimator("minimax", new_row_folds=None), rows)
        return estimator((1 + share) * _value(least, rows))

    return make


def _share_of_minority(less: float, rows: Rows) -> Any:
    """A minority with its share of the rows among the positive decisions, or less by this part."""
    share = np.unique(rows.groups, return_counts=True)[1].min() / rows.y.size
    return MinorityRateClassifier((1 - less) * share, rate="indicator")


def _of_class(constraint: str) -> Callable[[float, Rows], Any]:
    return lambda bound, _: NeymanPearsonClassifier({0: bound}, constraint=constraint)


def _bound_of_class(model: Any) -> float:
    return model.bounds[0]


@dataclass(frozen=True)
class Bounded:
    """An estimator with a bound.

    Attributes
    ----------
    make : callable
        Takes the bound and the training rows.
    kappas : tuple of float
    kind : {"classes", "numbers", "rankings"}
        Targets that it takes.
    bound : callable
        The bound of a model on what `constraint_values` gives.
    has_groups : bool
        Whether it is told the groups.
    """

    make: Callable[[float, Rows], Any]
    kappas: tuple[float, ...] = (0.02, 0.05)
    kind: str = "classes"
    bound: Callable[[Any], float] = attrgetter("kappa")
    has_groups: bool = True


ESTIMATORS: dict[str, Bounded] = {
    "sigmoid rates": Bounded(lambda kappa, _: RateParityClassifier(kappa, rate="sigmoid")),
    "parity pair": Bounded(lambda kappa, _: ParityPairClassifier(kappa), (1.05,)),
    "minority share": Bounded(_share_of_minority, (0.0, 0.2), bound=lambda model: 1 - model.min_share),
    "error of a class": Bounded(_of_class("error"), (0.05, 0.1), bound=_bound_of_class, has_groups=False),
    "loss of a class": Bounded(_of_class("loss"), (0.3, 0.5), bound=_bound_of_class, has_groups=False),
    "losses of groups": Bounded(_loss_of_groups(GroupLossClassifier)),
    "squared losses of groups": Bounded(_loss_of_groups(GroupLossRegressor), kind="numbers"),
    "squared losses, differences": Bounded(
        lambda kappa, rows: GroupLossRegressor(kappa * rows.y.var(), constraint="loss_parity"), kind="numbers"
    ),
    "mean predictions": Bounded(
        lambda kappa, rows: GroupLossRegressor(kappa * rows.y.std(), constraint="mean_score_parity"), kind="numbers"
    ),
    "statistical parity of predictions": Bounded(lambda kappa, _: PartialParityRegressor(kappa), kind="numbers"),
    "pairs of a ranking": Bounded(lambda kappa, _: FairRanker(kappa), kind="rankings"),
}


class Table(NamedTuple):
    """Rows before features of linear models are made of them."""

    X: pd.DataFrame
    y: np.ndarray
    groups: np.ndarray
    qid: np.ndarray | None = None


def _with_target(data: str, target: str) -> Callable[[], Table]:
    """A data set of labels with a column of numbers in their place."""

    def load() -> Table:
        part, _ = CASES[data].load()
        part = part.take(np.flatnonzero(part.X[target].notna()))
        return Table(part.X.drop(columns=target), part.X[target].to_numpy(dtype=float), part.groups)

    return load


def _crime_rates() -> Table:
    part, _ = CASES["communities"].load()
    rates = pd.read_parquet(data_folder() / "communities_crime.parquet")["ViolentCrimesPerPop"]
    return Table(part.X, rates.to_numpy(dtype=float), part.groups)


def _search_results() -> Table:
    """LightGBM's example, with pages of high and low quality as in `benchmarks.rate_parity.ranking`."""
    raw = np.load(data_folder() / "ltr_lightgbm_example.npz")
    X, y, sizes = (np.concatenate([raw[f"{name}_train"], raw[f"{name}_test"]]) for name in ("X", "y", "group"))
    quality = X[:, quality_of(X, y)]
    return Table(pd.DataFrame(X), y, quality > np.median(quality), np.repeat(np.arange(sizes.size), sizes))


def _generated_numbers() -> Table:
    X, y, groups = make_biased_regression(600, random_state=0)
    return Table(pd.DataFrame(X), y, groups)


def _generated_rankings() -> Table:
    X, y, qid, groups = make_biased_ranking(300, random_state=0)
    return Table(pd.DataFrame(X), y, groups, qid)


#: Tables beside those of labels.
TABLES = {
    "crime rates": _crime_rates,
    "grades": _with_target("law_school", "ugpa"),
    "hours of work": _with_target("adult", "hours-per-week"),
    "interest rates": _with_target("credit", "loan_int_rate"),
    "generated numbers": _generated_numbers,
    "search results": _search_results,
    "generated rankings": _generated_rankings,
}
#: Data of each kind of targets. ACS is left out, as it has 392 features.
DATA = {
    "classes": ("bank", "a9a", "adult", "compas", "law_school", "oklahoma", "credit", "communities"),
    "numbers": ("crime rates", "grades", "hours of work", "interest rates"),
    "rankings": ("search results", "generated rankings"),
}
#: Generated data of each kind, for quick runs.
QUICK_DATA = {"classes": ("generated",), "numbers": ("generated numbers",), "rankings": ("generated rankings",)}


@lru_cache(maxsize=2)
def rows_of(data: str, seed: int) -> tuple[Rows, Rows]:
    """Rows to train on, and new ones, with the features of linear models."""
    parts = _parts(TABLES[data](), seed) if data in TABLES else load_split(data, seed)
    features = linear_features(parts[0].X)
    train, test = (Rows(dense(features.transform(part.X)), *part[1:]) for part in parts)
    return train, test


def _parts(table: Table, seed: int) -> tuple[Table, Table]:
    """A part of the rows, or of whole queries, and the others."""
    units = np.arange(table.y.size) if table.qid is None else table.qid
    names = np.random.default_rng(seed).permutation(np.unique(units))
    is_drawn = np.isin(units, names[: round(TRAINING_SHARE * names.size)])
    train, test = (
        Table(table.X[part], *(None if column is None else column[part] for column in table[1:]))
        for part in (is_drawn, ~is_drawn)
    )
    return train, test


@dataclass(frozen=True)
class Fit(TaskOfFields):
    """A fit of one estimator to one split, under one bound."""

    data: str
    seed: int
    estimator: str
    kappa: float


def all_fits(data: Mapping[str, Sequence[str]], seeds: Sequence[int], most: int | None = None) -> Iterator[Fit]:
    """The fits of all estimators to the data of their kind, under the first bounds, one split after the other."""
    for seed in seeds:
        for name, bounded in ESTIMATORS.items():
            for data_set in data[bounded.kind]:
                for kappa in bounded.kappas[:most]:
                    yield Fit(data_set, seed, name, kappa)


def run_fit(task: Fit) -> list[Row]:
    """Fit, and measure what is bounded on the training rows, on new ones, and on samples of the training rows."""
    set_threads(1)
    bounded, seconds, rng = ESTIMATORS[task.estimator], Seconds(), np.random.default_rng(0)
    train, test = rows_of(task.data, task.seed)
    if not bounded.has_groups:
        train, test = train._replace(groups=None), test._replace(groups=None)
    model = bounded.make(task.kappa, train)
    with seconds.count(), quiet():
        model = _fit(model, train)
    own, size = _value(model, train), test.y.size / train.y.size
    drawn = [_value(model, train.resampled(size, rng)) for _ in range(_N_SAMPLES)]
    gap = max(model.new_row_gaps_.values(), key=lambda each: each.estimate)
    measured: Row = {
        "bound": bounded.bound(model),
        "training": own,
        "new": _value(model, test),
        "floor": bounded.bound(model) + float(np.mean(drawn)) - own,
        "estimate": gap.estimate,
        "estimate_error": gap.standard_error,
        "score": model.score(test.X, test.y, **_told(test, "qid")),
        "seconds": seconds.total,
    }
    rounded = {name: float(f"{value:.6g}") for name, value in measured.items()}
    return [task.columns | {"status": str(model.status_)} | rounded]


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """By estimator, data set and bound: means over the splits, and how far new rows are beyond the floor."""
    numbers = ["bound", "training", "new", "floor", "estimate", "estimate_error", "score", "seconds"]
    grouped = results.groupby(["estimator", "data", "kappa"], sort=False)
    table = grouped[numbers].mean().assign(splits=grouped.seed.nunique()).reset_index()
    ratio = table.new / table.floor
    return table.assign(over_floor=ratio, is_kept=ratio <= KEPT)
