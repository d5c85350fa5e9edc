"""Boosted trees under equalized odds: gaps of training and of new rows, accuracy, and time beside plain LightGBM.

``python -m benchmarks.boosting_speed [--quick]`` fits both data sets on the official split and on nine random ones of
the same size, and writes a CSV. Every row has the seconds of LightGBM with the same number of trees on the same rows,
measured in turns in one process with one thread; those are seconds of processor time.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import lightgbm as lgb
import numpy as np
import pandas as pd

from benchmarks._common import command_line, data_folder, load_a9a, save, set_threads, timed, to_docs
from fairconstrained import FairBoostingClassifier, FairnessWarning
from fairconstrained.metrics import partial_equalized_odds_gap

KAPPA = 0.02
SHOWN = ["seconds", "times_lightgbm", "train_gap", "train_accuracy", "test_gap", "test_accuracy", "trees"]


class Rows(NamedTuple):
    """Features, labels, groups, and which rows the official split trains on."""

    X: Any
    y: np.ndarray
    groups: np.ndarray
    is_train: np.ndarray


@cache
def a9a() -> Rows:
    """Adult as 123 binary features."""
    table = load_a9a()
    assert table.is_train is not None
    return Rows(table.X.toarray(), (table.y > 0).astype(int), table.groups, table.is_train)


@cache
def adult() -> Rows:
    """Adult as it is: numbers, and categories of which some are missing."""
    frame = pd.read_parquet(data_folder() / "adult.parquet")
    features = frame.drop(columns=["income", "split"]).replace("?", None)
    texts = [name for name in features if not pd.api.types.is_numeric_dtype(features[name])]
    y = frame["income"].str.startswith(">").to_numpy(dtype=int)
    is_train = (frame["split"] == "train").to_numpy()
    return Rows(features.astype(dict.fromkeys(texts, "category")), y, frame["sex"].to_numpy(dtype=str), is_train)


DATA: dict[str, Callable[[], Rows]] = {"a9a": a9a, "adult": adult}
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "five folds": {"cv": 5},
    "early stopping": {"early_stopping_rounds": 100},
    "errors": {"objective": "zero_one"},
    "training rows": {"cv": None},
    "training rows, errors": {"cv": None, "objective": "zero_one"},
}


def splits(rows: Rows, n_splits: int) -> Iterator[np.ndarray]:
    """Masks of the training rows: the official ones, then random ones of the same number."""
    yield rows.is_train
    for seed in range(1, n_splits):
        yield np.random.default_rng(seed).permutation(rows.is_train)


def part_of(rows: Rows, mask: np.ndarray) -> tuple[Any, np.ndarray, np.ndarray]:
    """Features, labels and groups of some rows."""
    X = rows.X[mask] if isinstance(rows.X, np.ndarray) else rows.X.loc[mask]
    return X, rows.y[mask], rows.groups[mask]


def plain(X: Any, y: np.ndarray, n_trees: int) -> lgb.Booster:
    """LightGBM without a bound, from the rows to the last tree."""
    params = {"objective": "binary", "num_threads": 1, "verbosity": -1, "deterministic": True, "force_row_wise": True}
    return lgb.train(params, lgb.Dataset(X, y), n_trees)


def measured(name: str, rows: Rows, mask: np.ndarray, n_trees: int) -> Iterator[dict[str, Any]]:
    """One line for LightGBM and one for each variant."""
    train, test = part_of(rows, mask), part_of(rows, ~mask)
    booster, seconds = timed(lambda: plain(*train[:2], n_trees))
    scores = [booster.predict(part[0], raw_score=True) for part in (train, test)]
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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            _, own = timed(lambda: model.fit(train[0], train[1], sensitive_features=train[2]))  # noqa: B023 - called at once
        _, again = timed(lambda: plain(*train[:2], n_trees))
        scores = [model.decision_function(part[0]) for part in (train, test)]
        line = {"seconds": own, "times_lightgbm": own / min(seconds, again), "status": model.status_}
        excess = max(model.constraint_values_["equalized_odds"] - KAPPA, 0.0)
        line |= {"excess": excess, "granularity": model.granularity_["equalized_odds"], "trees": model.n_trees_}
        yield {"data": name, "method": variant} | line | judged(scores, train, test)


def judged(scores: list[np.ndarray], train: Any, test: Any) -> dict[str, float]:
    """Gap and accuracy on the training and on the new rows."""
    found = {}
    for name, own, (_, y, groups) in zip(("train", "test"), scores, (train, test), strict=True):
        found[f"{name}_gap"] = float(partial_equalized_odds_gap(y, own, sensitive_features=groups))
        found[f"{name}_accuracy"] = float(np.mean((own > 0) == (y == 1)))
    return found


def table(names: list[str], n_splits: int, n_trees: int) -> pd.DataFrame:
    """All lines."""
    lines = []
    for name in names:
        rows = DATA[name]()
        for number, mask in enumerate(splits(rows, n_splits)):
            lines += [{"split": number} | line for line in measured(name, rows, mask, n_trees)]
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print the means."""
    parser = command_line(__doc__, "one split and few trees, to see that it runs", docs=False)
    parser.add_argument("data", nargs="*", default=list(DATA), help=f"some of {list(DATA)}")
    parser.add_argument("--splits", type=int, default=10)
    options = parser.parse_args(arguments)
    set_threads(1)
    n_splits, n_trees = (1, 20) if options.quick else (options.splits, 300)
    found = table(options.data, n_splits, n_trees)
    save(found, f"boosting_speed{'_quick' if options.quick else ''}")
    means = found.groupby(["data", "method"], sort=False).mean(numeric_only=True)[SHOWN]
    print(means.to_string(float_format=lambda value: f"{value:.4g}"))
    if not options.quick:
        shown = means.map(lambda value: f"{value:.3g}").replace("nan", "")
        to_docs(shown, "boosting_speed", index=True)


if __name__ == "__main__":
    main()
