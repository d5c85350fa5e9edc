"""Boosted trees under equalized odds: gaps of training and of new rows, accuracy, and time beside plain LightGBM.

``python -m benchmarks.boosting_speed [--quick] [--docs]`` fits both data sets on the official split and on nine random
ones of the same size, and writes a CSV. Every row has the seconds of LightGBM with the same number of trees on the same
rows, measured in turns in one process with one thread; those are seconds of processor time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

from benchmarks._common import command_line, keep, parsed, set_threads, timed
from benchmarks.any_model.data import CASES, Part
from benchmarks.any_model.methods import quiet
from fairconstrained import FairBoostingClassifier
from fairconstrained.metrics import partial_equalized_odds_gap

KAPPA = 0.02
SHOWN = ["seconds", "times_lightgbm", "train_gap", "train_accuracy", "test_gap", "test_accuracy", "trees"]
#: Data sets that have an official split.
DATA = ("a9a", "adult")
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "five folds": {"cv": 5},
    "early stopping": {"early_stopping_rounds": 100},
    "errors": {"objective": "zero_one"},
    "training rows": {"cv": None},
    "training rows, errors": {"cv": None, "objective": "zero_one"},
}


def splits(is_train: np.ndarray, n_splits: int) -> Iterator[np.ndarray]:
    """Masks of the training rows: the official ones, then random ones of the same number."""
    yield is_train
    for seed in range(1, n_splits):
        yield np.random.default_rng(seed).permutation(is_train)


def plain(X: Any, y: np.ndarray, n_trees: int) -> lgb.Booster:
    """LightGBM without a bound, from the rows to the last tree."""
    params = {"objective": "binary", "num_threads": 1, "verbosity": -1, "deterministic": True, "force_row_wise": True}
    return lgb.train(params, lgb.Dataset(X, y), n_trees)


def measured(name: str, train: Part, test: Part, n_trees: int) -> Iterator[dict[str, Any]]:
    """One line for LightGBM and one for each variant."""
    booster, seconds = timed(lambda: plain(train.X, train.y, n_trees))
    scores = [booster.predict(part.X, raw_score=True) for part in (train, test)]
    yield {"data": name, "method": "LightGBM", "seconds": seconds} | judged(scores, train, test)
    for variant, options in VARIANTS.items():
        model = FairBoostingClassifier(
            KAPPA,
            constraint="equalized_odds",
            n_estimators=n_trees,
            n_jobs=1,
            random_state=0,
            new_row_folds=None,
            **options,
        )
        with quiet():
            _, own = timed(partial(model.fit, train.X, train.y, sensitive_features=train.groups))
        _, again = timed(lambda: plain(train.X, train.y, n_trees))
        scores = [model.decision_function(part.X) for part in (train, test)]
        line = {"seconds": own, "times_lightgbm": own / min(seconds, again), "status": model.status_}
        excess = max(model.constraint_values_["equalized_odds"] - KAPPA, 0.0)
        line |= {"excess": excess, "granularity": model.granularity_["equalized_odds"], "trees": model.n_trees_}
        yield {"data": name, "method": variant} | line | judged(scores, train, test)


def judged(scores: list[np.ndarray], train: Part, test: Part) -> dict[str, float]:
    """Gap and accuracy on the training and on the new rows."""
    found = {}
    for name, own, part in zip(("train", "test"), scores, (train, test), strict=True):
        found[f"{name}_gap"] = float(partial_equalized_odds_gap(part.y, own, sensitive_features=part.groups))
        found[f"{name}_accuracy"] = float(np.mean((own > 0) == (part.y == 1)))
    return found


def table(names: Sequence[str], n_splits: int, n_trees: int) -> pd.DataFrame:
    """All lines."""
    lines = []
    for name in names:
        rows, official = CASES[name].load()
        for number, is_train in enumerate(splits(official, n_splits)):
            parts = (rows.take(np.flatnonzero(mask)) for mask in (is_train, ~is_train))
            lines += [{"split": number} | line for line in measured(name, *parts, n_trees)]
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print the means."""
    parser = command_line(__doc__, "one split and few trees, to see that it runs")
    parser.add_argument("data", nargs="*", default=DATA, help=f"some of {DATA}")
    parser.add_argument("--splits", type=int, default=10)
    options = parsed(parser, arguments)
    set_threads(1)
    n_splits, n_trees = (1, 20) if options.quick else (options.splits, 300)
    found = table(options.data, n_splits, n_trees)
    means = found.groupby(["data", "method"], sort=False).mean(numeric_only=True)[SHOWN]
    print(means.to_string(float_format=lambda value: f"{value:.4g}"))
    shown = means.map(lambda value: f"{value:.3g}").replace("nan", "").reset_index()
    keep(found, "boosting_speed", options, shown=shown)


if __name__ == "__main__":
    main()
