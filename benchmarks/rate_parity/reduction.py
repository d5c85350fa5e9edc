"""Exact rates on Adult: `RateParityClassifier` with ``rate="indicator"`` against Fairlearn's ExponentiatedGradient.

Random splits of the official sizes, both on the same rows in one process with one thread. "zero_one" (one coefficient
vector per group) minimises the error rate, as the reduction does, and predicts without randomness. Means over the
seeds with 95 % intervals (Student's t); a point of ours is dominated if the piecewise linear front of the reduction has
a smaller gap at its accuracy.
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
            row[f"{part}_gap"] = rate_gap(y, predicted.astype(float), sensitive_features=groups, constraint=constraint)
        rows.append(row)
    return {"reduction": _compared(pd.DataFrame(rows))}


def _compared(runs: pd.DataFrame) -> pd.DataFrame:
    point = ["constraint", "method", "bound"]
    grouped = runs.groupby(point, sort=False)
    means = grouped.mean().drop(columns="seed")
    count = grouped.seed.count()
    factor = student.ppf(0.975, (count - 1).clip(lower=1)) / count**0.5
    for name in ("test_accuracy", "test_gap"):
        means[f"{name}_ci"] = (grouped[name].std() * factor).fillna(0.0)
    means = means.reset_index()
    theirs = means[means.method == "ExponentiatedGradient"]
    means["dominated"] = [_is_dominated(row, theirs[theirs.constraint == row.constraint]) for row in means.itertuples()]
    seconds = means.set_index(point).seconds
    means["times_faster"] = [
        seconds[row.constraint, "ExponentiatedGradient", row.bound] / row.seconds for row in means.itertuples()
    ]
    return means


def _is_dominated(row: Any, front: pd.DataFrame) -> bool:
    """Whether a mixture of the front's points is at least as accurate with at most the gap, and better in one."""
    if row.method == "ExponentiatedGradient":
        return False
    gaps, accuracies = front.test_gap.to_numpy(), front.test_accuracy.to_numpy()
    order = np.argsort(gaps)
    reachable = np.interp(row.test_gap, gaps[order], np.maximum.accumulate(accuracies[order]), left=-np.inf)
    return bool(reachable >= row.test_accuracy)
