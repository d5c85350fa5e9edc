"""Exact rates on Adult: `RateParityClassifier` with ``rate="indicator"`` against Fairlearn's ExponentiatedGradient.

Random splits of the official sizes, both on the same rows in one process with one thread. "zero_one" (one coefficient
vector per group) minimises the error rate, as the reduction does, and predicts without randomness. Means over the
seeds with 95 % intervals (Student's t). A point of ours is dominated if mixtures of the reduction's points at the same
gap on the same split are more accurate, by more than the interval of that difference.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import t as student
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks._common import load_a9a, set_threads
from fairconstrained import RateParityClassifier
from fairconstrained.metrics import rate_gap

__all__ = ["BOUNDS", "measure"]

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1)
CONSTRAINTS = ("demographic_parity", "equalized_odds")
_Predict = Callable[[Any, np.ndarray], np.ndarray]


def _ours(objective: str, constraint: str, bound: float, X: Any, y: np.ndarray, groups: np.ndarray) -> _Predict:
    model = RateParityClassifier(
        bound,
        constraint=constraint,
        rate="indicator",
        objective=objective,
        group_interactions=objective == "zero_one",
    )
    model.fit(X, y, sensitive_features=groups)
    if objective == "zero_one":
        return lambda rows, their_groups: model.predict(rows, sensitive_features=their_groups)
    return lambda rows, their_groups: model.predict(rows)


def _reduction(constraint: str, bound: float, X: Any, y: np.ndarray, groups: np.ndarray) -> _Predict:
    from fairlearn import reductions  # an optional dependency

    kinds = {"demographic_parity": reductions.DemographicParity, "equalized_odds": reductions.EqualizedOdds}
    model = reductions.ExponentiatedGradient(
        LogisticRegression(max_iter=1000), kinds[constraint](difference_bound=bound)
    )
    model.fit(X, (y + 1) // 2, sensitive_features=groups)
    # it returns a distribution over classifiers; its predictions are random draws
    return lambda rows, their_groups: 2 * np.asarray(model.predict(rows, random_state=0)) - 1


METHODS = {
    "zero_one": partial(_ours, "zero_one"),
    "logistic": partial(_ours, "logistic"),
    "ExponentiatedGradient": _reduction,
}


def measure(quick: bool) -> dict[str, pd.DataFrame]:
    """The means of all runs, and how they compare."""
    set_threads(1)
    table = load_a9a()
    dense = table.X.toarray()  # Fairlearn takes no sparse matrices; the conversion is not counted
    rows = []
    seeds, bounds = (1, BOUNDS[2:3]) if quick else (5, BOUNDS)
    cases = [(s, c, b, m) for s in range(seeds) for c in CONSTRAINTS for b in bounds for m in METHODS]
    for seed, constraint, bound, method in tqdm(cases, desc="fits"):
        train, test = train_test_split(np.arange(table.y.size), train_size=32_561, random_state=seed)
        X = dense if method == "ExponentiatedGradient" else table.X
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            predict = METHODS[method](constraint, bound, X[train], table.y[train], table.groups[train])
        row = {"constraint": constraint, "bound": bound, "method": method, "seed": seed}
        row["seconds"] = time.process_time() - begin
        for part, index in (("train", train), ("test", test)):
            predicted, y, groups = predict(X[index], table.groups[index]), table.y[index], table.groups[index]
            row[f"{part}_accuracy"] = float(np.mean(predicted == y))
            row[f"{part}_majority"] = max(float(np.mean(y > 0)), float(np.mean(y < 0)))
            row[f"{part}_gap"] = rate_gap(y, predicted.astype(float), sensitive_features=groups, constraint=constraint)
        rows.append(row)
    runs = pd.DataFrame(rows)
    return {"reduction_runs": runs, "reduction": _compared(runs)}


def _compared(runs: pd.DataFrame) -> pd.DataFrame:
    point = ["constraint", "method", "bound"]
    runs = runs.assign(behind=[_reachable(row, runs) - row.test_accuracy for row in runs.itertuples()])
    grouped = runs.groupby(point, sort=False)
    means, count = grouped.mean().drop(columns="seed"), grouped.seed.count()
    factor = student.ppf(0.975, (count - 1).clip(lower=1)) / count**0.5
    for name in ("test_accuracy", "test_gap", "behind"):
        means[f"{name}_ci"] = (grouped[name].std() * factor).fillna(0.0)
    means = means.reset_index()
    means["dominated"] = means.behind > means.behind_ci
    seconds = means.set_index(point).seconds
    means["times_faster"] = [
        seconds[row.constraint, "ExponentiatedGradient", row.bound] / row.seconds for row in means.itertuples()
    ]
    return means


def _reachable(row: Any, runs: pd.DataFrame) -> float:
    """Largest accuracy of the reduction at that gap, on the same split: of mixtures of its points.

    One of them is to predict the same for all, which is always fair.
    """
    is_of_front = (runs.method == "ExponentiatedGradient") & (runs.constraint == row.constraint)
    front = runs[is_of_front & (runs.seed == row.seed)].sort_values("test_gap")
    gaps = np.append(0.0, front.test_gap)
    accuracies = np.maximum.accumulate(np.append(row.test_majority, front.test_accuracy))
    return float(np.interp(row.test_gap, gaps, accuracies))
