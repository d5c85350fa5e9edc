"""Demographic parity on Adult: `PartialParityClassifier` against Fairlearn's reduction.

Five random splits (the official sizes), both methods on the same rows in one process with one thread. The group is
one of the features, as a9a has it. "zero_one" (one coefficient vector per group) minimises the error rate, as the
reduction does; "logistic" the log loss, with probabilities. Prints the fronts (means over the seeds), which points of
"zero_one" the reduction dominates, and the ratios of the training times.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks._common import load_a9a, save, set_threads
from fairconstrained import PartialParityClassifier
from fairconstrained.metrics import independence_gap

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1)


def fit_zero_one(X, y, groups, bound):
    model = PartialParityClassifier(
        bound, constraint="demographic_parity", objective="zero_one", group_interactions=True
    )
    model.fit(X, y, sensitive_features=groups)
    return lambda rows, their_groups: model.predict(rows, sensitive_features=their_groups)


def fit_logistic(X, y, groups, bound):
    model = PartialParityClassifier(bound, constraint="demographic_parity").fit(X, y, sensitive_features=groups)
    return lambda rows, their_groups: model.predict(rows)


def fit_reduction(X, y, groups, bound):
    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity(difference_bound=bound))
    model.fit(X, (y + 1) // 2, sensitive_features=groups)
    # The reduction returns a distribution over classifiers; its predictions are random draws.
    return lambda rows, their_groups: 2 * model.predict(rows, random_state=0) - 1


METHODS = {"zero_one": fit_zero_one, "logistic": fit_logistic, "ExponentiatedGradient": fit_reduction}


def run(seeds: int) -> pd.DataFrame:
    table = load_a9a()
    dense = table.X.toarray()  # Fairlearn takes no sparse matrices; the conversion is not counted
    rows = []
    cases = [(seed, bound, method) for seed in range(seeds) for bound in BOUNDS for method in METHODS]
    for seed, bound, method in tqdm(cases, desc="fits"):
        train, test = train_test_split(np.arange(table.y.size), train_size=32_561, random_state=seed)
        X = dense if method == "ExponentiatedGradient" else table.X
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            predict = METHODS[method](X[train], table.y[train], table.groups[train], bound)
        seconds = time.perf_counter() - begin
        record = {"seed": seed, "bound": bound, "method": method, "seconds": seconds}
        for part, index in (("train", train), ("test", test)):
            predicted = predict(X[index], table.groups[index])
            record[f"{part}_accuracy"] = np.mean(predicted == table.y[index])
            record[f"{part}_gap"] = independence_gap(table.y[index], predicted, sensitive_features=table.groups[index])
        rows.append(record)
    return pd.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    set_threads(1)
    results = run(arguments.seeds)
    save(results, "versus_fairlearn_runs")
    means = results.groupby(["method", "bound"], as_index=False).mean().drop(columns="seed")
    theirs = means[means.method == "ExponentiatedGradient"]
    means["dominated"] = [
        row.method == "zero_one"
        and bool(((theirs.test_accuracy >= row.test_accuracy) & (theirs.test_gap <= row.test_gap)).any())
        for row in means.itertuples()
    ]
    save(means, "versus_fairlearn")
    seconds = results.pivot_table(index=["seed", "bound"], columns="method", values="seconds")
    for ours in ("zero_one", "logistic"):
        ratio = seconds["ExponentiatedGradient"] / seconds[ours]
        by_bound = ratio.groupby("bound").median().round(1).to_dict()
        print(f"{ours}: times faster than ExponentiatedGradient, by bound: {by_bound}")


if __name__ == "__main__":
    main()
