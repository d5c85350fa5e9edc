"""Speed and memory of `PartialParityClassifier` on a9a: `auto` against IDCA, cost of one evaluation, peak memory.

The official training part, ``group_interactions=True``, I = [5 %, 30 %], kappa = 0.05, both forms of the gap; every
comparison in one process. IDCA runs with the paper's ramp of width 1, T = 150 and eps = 1e-3 from its zero start.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks._common import load_a9a, median_seconds, save, set_threads
from fairconstrained import ConvergenceWarning, PartialParityClassifier
from fairconstrained.constraints import StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.estimators.threads import limited_threads
from fairconstrained.groups import GroupEncoder
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import FullBatchView, Problem

SETTING = {"kappa": 0.05, "interval": (0.05, 0.3), "group_interactions": True}
THREADS = (1, 2)


def training_part() -> tuple[Any, np.ndarray, np.ndarray]:
    table = load_a9a()
    rows = table.is_train
    return table.X[rows], table.y[rows], table.groups[rows]


def timed_fit(model: PartialParityClassifier) -> dict[str, float]:
    X, y, groups = training_part()
    begin = time.perf_counter()
    with warnings.catch_warnings():
        # IDCA bounds a surrogate, so its exact gap may exceed kappa: that is a column of the table.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, sensitive_features=groups)
    return {
        "seconds": time.perf_counter() - begin,
        "evaluations": model.n_evaluations_,
        "objective": model.objective_,
        "exact_gap": model.constraint_values_["statistical_parity"],
        "status": model.status_,
    }


def solvers(outer: int) -> pd.DataFrame:
    rows = []
    for threads in THREADS:
        set_threads(threads)
        for normalize in (True, False):
            setting = {**SETTING, "normalize": normalize}
            candidates = {"auto": PartialParityClassifier(**setting)}
            if threads == 1:
                idca = {"solver": "idca", "surrogate": "ramp", "max_iter": outer}
                candidates["idca"] = PartialParityClassifier(**setting, **idca)
            for name, model in candidates.items():
                timed_fit(PartialParityClassifier(**setting, max_iter=1))  # first calls load libraries
                rows.append({"threads": threads, "normalize": normalize, "solver": name, **timed_fit(model)})
    table = pd.DataFrame(rows)
    reference = table[table.solver == "idca"].set_index("normalize").seconds
    table["times_faster_than_idca"] = table.normalize.map(reference) / table.seconds
    return table


def evaluation_cost() -> pd.DataFrame:
    """One value and gradient with ten levels, against the products X W and X' R on the same matrix."""
    X, y, groups = training_part()
    encoder = GroupEncoder(groups)
    data = FairData.from_arrays(X, y.astype(float), encoder.codes, encoder.labels)
    rng = np.random.default_rng(0)
    rows = []
    for surrogate in ("smoothstep", "logistic", "ramp"):
        constraint = StatisticalParity(0.05, interval=(0.05, 0.3), surrogate=surrogate, n_levels=10).bind(data)
        problem = Problem(Logistic().bind(data), (constraint,), data, model=LinearModel(X.shape[1], 2, True, 1e-4))
        z = problem.start(rng.normal(size=problem.n_params) / 10)
        problem_view, multipliers = FullBatchView(problem), np.ones(len(problem.component_names))
        W, R = rng.normal(size=(X.shape[1], 2)), rng.normal(size=(X.shape[0], 2))

        def evaluate(view=problem_view, z=z, multipliers=multipliers) -> None:
            view.at(z).gradient(1.0, multipliers)

        def products(W=W, R=R) -> None:
            X @ W, X.T @ R

        for threads in THREADS:
            set_threads(threads)
            pair = median_seconds(products, 100)
            with limited_threads(X.shape[0]):  # as `fit` does
                evaluation = median_seconds(evaluate, 100)
            rows.append(
                {
                    "surrogate": surrogate,
                    "threads": threads,
                    "products_ms": 1e3 * pair,
                    "evaluation_ms": 1e3 * evaluation,
                    "ratio": evaluation / pair,
                }
            )
    return pd.DataFrame(rows)


def memory() -> pd.DataFrame:
    """Peak resident memory that `fit` adds, in a fresh process, against twice the data plus 50 MB."""
    X, y, groups = training_part()
    with tempfile.TemporaryDirectory() as folder:
        # The process reads the matrix as it is, so that nothing before the fit needed more memory.
        np.savez(f"{folder}/rows.npz", data=X.data, indices=X.indices, indptr=X.indptr, y=y, groups=groups)
        command = [sys.executable, "-m", "benchmarks.partial_parity_speed", "--memory-of-one-fit", folder]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    added, data = (float(word) for word in output.split())
    return pd.DataFrame([{"data_MB": data, "added_by_fit_MB": added, "limit_MB": 2 * data + 50}])


def print_memory_of_one_fit(folder: str) -> None:
    raw = np.load(f"{folder}/rows.npz")
    y, groups = raw["y"], raw["groups"]
    X = sp.csr_array((raw["data"], raw["indices"], raw["indptr"]))
    head = slice(0, 500)
    PartialParityClassifier(kappa=0.2).fit(X[head], y[head], sensitive_features=groups[head])  # loads libraries
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far (Linux)
    before = memory_in_mb("VmRSS")
    PartialParityClassifier(**SETTING).fit(X, y, sensitive_features=groups)
    print(memory_in_mb("VmHWM") - before, (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes) / 2**20)


def memory_in_mb(entry: str) -> float:
    status = Path("/proc/self/status").read_text()
    return int(re.search(rf"{entry}:\s+(\d+) kB", status).group(1)) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outer", type=int, default=200, help="outer iterations of IDCA")
    parser.add_argument("--memory-of-one-fit", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of_one_fit:
        print_memory_of_one_fit(arguments.memory_of_one_fit)
        return
    save(evaluation_cost(), "partial_parity_evaluation")
    save(memory(), "partial_parity_memory")
    save(solvers(arguments.outer), "partial_parity_solvers")


if __name__ == "__main__":
    main()
