"""Demographic parity on Adult: `PartialParityClassifier(objective="zero_one")` against Fairlearn's reduction.

Five random splits (the official sizes), both methods on the same rows in one process with one thread. The group is
one of the features, as a9a has it. Prints the two fronts (means over the seeds), which of our points are dominated,
and the ratio of the training times.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd
import torch
from fairlearn.reductions import DemographicParity, ExponentiatedGradient
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from tqdm import tqdm

from benchmarks._common import load_a9a, save
from fairconstrained import PartialParityClassifier
from fairconstrained.metrics import independence_gap

BOUNDS = (0.005, 0.01, 0.02, 0.05, 0.1)


def fit_ours(X, y, groups, bound):
    model = PartialParityClassifier(
        bound, parity="demographic", objective="zero_one", group_interactions=True, solver_options=OPTIONS
    )
    model.fit(X, y, sensitive_features=groups)
    return lambda rows, their_groups: model.predict(rows, sensitive_features=their_groups)


def fit_reduction(X, y, groups, bound):
    model = ExponentiatedGradient(LogisticRegression(max_iter=1000), DemographicParity(difference_bound=bound))
    model.fit(X, (y + 1) // 2, sensitive_features=groups)
    # The reduction returns a distribution over classifiers; its predictions are random draws.
    return lambda rows, their_groups: 2 * model.predict(rows, random_state=0) - 1


METHODS = {"fairconstrained": fit_ours, "ExponentiatedGradient": fit_reduction}
OPTIONS: dict = {}


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
    torch.set_num_threads(1)
    results = run(arguments.seeds)
    save(results, "versus_fairlearn_runs")
    means = results.groupby(["method", "bound"], as_index=False).mean().drop(columns="seed")
    theirs = means[means.method == "ExponentiatedGradient"]
    means["dominated"] = [
        row.method == "fairconstrained"
        and bool(((theirs.test_accuracy >= row.test_accuracy) & (theirs.test_gap <= row.test_gap)).any())
        for row in means.itertuples()
    ]
    save(means, "versus_fairlearn")
    seconds = results.pivot_table(index=["seed", "bound"], columns="method", values="seconds")
    ratio = seconds["ExponentiatedGradient"] / seconds["fairconstrained"]
    print("speed-up over ExponentiatedGradient by bound:", ratio.groupby("bound").median().round(1).to_dict())


if __name__ == "__main__":
    main()
