"""Draws of few rows from known populations: how often the gap in the population is within the bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import set_threads
from benchmarks._runner import Row, TaskOfFields
from benchmarks.any_model.data import Part
from benchmarks.any_model.methods import quiet, response_of_scores
from benchmarks.any_model.notions import NOTIONS
from benchmarks.any_model.trees import Seconds
from fairconstrained import CertifiedFairClassifier, PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

#: Arguments of the generator, by the population's name.
POPULATIONS: dict[str, dict[str, Any]] = {"10 columns": {"n_features": 10}, "40 noise columns": {"n_features": 43}}
SIZES, N_DRAWS, KAPPA, DELTA = (2000, 5000), 20, 0.05, 0.2
#: Rows that stand for the population.
POPULATION_ROWS = 200_000
_NOTION = NOTIONS["demographic_parity"]
_SHARED = ("population", "n", "draw", "method")
COLUMNS = ("task", *_SHARED, "status", "kappa", "train_gap", "gap", "error", "accuracy", "seconds")


def _drawn(population: str, n_samples: int, seed: int) -> Part:
    X, y, groups = make_biased_classification(n_samples, random_state=seed, **POPULATIONS[population])
    return Part(pd.DataFrame(X), (np.asarray(y) > 0).astype(int), np.asarray(groups).astype(str))


@lru_cache(maxsize=2)
def _whole(population: str) -> Part:
    return _drawn(population, POPULATION_ROWS, 10_000)


def _inner(kappa: float, **params: Any) -> PartialParityClassifier:
    return PartialParityClassifier(kappa, constraint="demographic_parity", random_state=0, **params)


def default(rows: Part) -> Any:
    """The default solver."""
    return _inner(KAPPA, new_row_folds=None).fit(rows.X, rows.y, sensitive_features=rows.groups)


def promise(rows: Part) -> Any:
    """A bound on the estimate for new rows."""
    return _inner(KAPPA, promise="new_rows").fit(rows.X, rows.y, sensitive_features=rows.groups)


def margin(rows: Part) -> Any:
    """The default solver with a bound that is smaller by the standard error of the gap that it has at first."""
    scores = default(rows).decision_function(rows.X)
    stricter = max(KAPPA - _NOTION.measure(rows, response_of_scores(scores)).error, 0.0)
    return _inner(stricter, new_row_folds=None).fit(rows.X, rows.y, sensitive_features=rows.groups)


def certified(rows: Part) -> Any:
    """A certificate for the population with a confidence of 80 %, by rows set aside."""
    inner = [KAPPA, KAPPA / 2, KAPPA / 5]
    options: dict[str, Any] = {"metric": "independence_gap", "delta": DELTA, "kappas": inner, "cv": 2}
    model = CertifiedFairClassifier(_inner(KAPPA, new_row_folds=None), kappa=KAPPA, random_state=0, **options)
    return model.fit(rows.X, rows.y, sensitive_features=rows.groups)


METHODS: dict[str, Callable[[Part], Any]] = {
    "default": default,
    "promise": promise,
    "margin": margin,
    "certified": certified,
}


@dataclass(frozen=True)
class Draw(TaskOfFields):
    """One method on one draw of rows from a population."""

    population: str
    n: int
    draw: int
    method: str


def all_draws(sizes: Sequence[int], n_draws: int) -> Iterator[Draw]:
    """One draw of all populations and sizes after the other."""
    for draw, population, n, method in product(range(n_draws), POPULATIONS, sizes, METHODS):
        yield Draw(population, n, draw, method)


def run_draw(task: Draw) -> list[Row]:
    """Fit to the drawn rows, and measure in the population."""
    set_threads(1)
    rows, whole, seconds = _drawn(task.population, task.n, task.draw), _whole(task.population), Seconds()
    with seconds.count(), quiet():
        model = METHODS[task.method](rows)
    train, new = (
        response_of_scores(np.where(np.asarray(model.predict(part.X)) == 1, 1.0, -1.0)) for part in (rows, whole)
    )
    seen = _NOTION.measure(rows, train)
    measured: Row = {
        "train_gap": seen.gap,
        "gap": _NOTION.measure(whole, new).gap,
        "error": seen.error,
        "accuracy": float((new.decisions == whole.y).mean()),
        "seconds": seconds.total,
    }
    rounded = {name: float(f"{value:.6g}") for name, value in measured.items()}
    return [task.columns | {"kappa": KAPPA, "status": str(model.status_)} | rounded]


def summary(results: pd.DataFrame) -> pd.DataFrame:
    """By population, size and method: shares of the draws that keep the bound, and means."""
    kept = results.assign(
        within_one_error=results.gap <= results.kappa + results.error,
        within=results.gap <= results.kappa,
        certified=results.status == "certified",
    )
    lines = kept.groupby(["population", "n", "method"], sort=False).agg(
        draws=("draw", "nunique"),
        within_one_error=("within_one_error", "mean"),
        within=("within", "mean"),
        gap=("gap", "mean"),
        largest=("gap", "max"),
        accuracy=("accuracy", "mean"),
        certified=("certified", "mean"),
        seconds=("seconds", "mean"),
    )
    return lines.reset_index()
