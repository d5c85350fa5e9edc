"""Partial parity on many rows: ACS income, the size of the whole task, and time against rows, groups and levels.

``python -m benchmarks.large_data [acs acs_test whole rows groups levels memory] [--docs]`` writes a CSV each, some with
a PNG; ``--plots --docs`` runs nothing, and copies the tables and figures that there are. Seconds are wall-clock, of
`fit` alone, with at most two threads; memory is the peak of the whole process.
"""

from __future__ import annotations

import time
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import scipy.sparse as sp

from benchmarks._common import (
    RESULTS,
    command_line,
    in_own_process,
    load_acs_income,
    peak_memory,
    publish,
    save,
    significant,
)
from benchmarks._figures import saved
from fairconstrained import PartialParityClassifier, RateParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import partial_statistical_parity_gap

INTERVAL = (0.2, 0.4)
KAPPAS = (0.3, 0.2, 0.1, 0.05, 0.02)
#: Fairness and accuracy published for the whole task (1,664,500 rows, a test part): a comparison in shape only.
PUBLISHED = ((0.7748, 0.7986), (0.8660, 0.8100), (0.9090, 0.8068), (0.9357, 0.8043), (0.9669, 0.8001))
#: Rows of the whole ACS income task, 2018, all states.
WHOLE = 1_664_500


def timed_fit(
    X: Any, y: np.ndarray, groups: np.ndarray, **params: Any
) -> tuple[PartialParityClassifier, dict[str, Any]]:
    """A fitted model and what it cost."""
    model = PartialParityClassifier(random_state=0, **params)
    begin = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, sensitive_features=groups)
    seconds = time.perf_counter() - begin
    (gap,) = model.constraint_values_.values()
    return model, {
        "rows": X.shape[0],
        "columns": X.shape[1],
        "kappa": params["kappa"],
        "seconds": seconds,
        "evaluations": model.n_evaluations_,
        "train_gap": gap,
        "objective": model.objective_,
        "status": model.status_,
        "warnings": len(caught),
    }


def acs_fit(kappa: float, n_rows: int | None = None) -> dict[str, Any]:
    """One fit on ACS income, or on as many rows as asked for: the sample repeated, its numbers perturbed."""
    table = load_acs_income()
    X, y, groups = table.X, table.y, table.groups
    if n_rows is not None:
        rng = np.random.default_rng(0)
        rows = np.concatenate([np.arange(y.size), rng.integers(0, y.size, n_rows - y.size)])
        X, y, groups = X[rows], y[rows], groups[rows]
        numbers = X.data != 1  # age and hours; the other columns are one-hot
        X.data[numbers] += rng.normal(0, 0.05, int(numbers.sum()))
    loaded = peak_memory()
    model, row = timed_fit(X, y, groups, kappa=kappa, interval=INTERVAL)
    return row | {"loaded_GiB": loaded, "peak_GiB": peak_memory(), "train_accuracy": model.score(X, y)}


def acs_test_fit(kappa: float) -> dict[str, Any]:
    """One fit on 80 % of ACS income, judged on the others."""
    table = load_acs_income()
    is_test = np.random.default_rng(0).random(table.y.size) < 0.2
    train, test = ((table.X[rows], table.y[rows], table.groups[rows]) for rows in (~is_test, is_test))
    model, row = timed_fit(*train, kappa=kappa, interval=INTERVAL)
    scores = model.decision_function(test[0])
    gaps = {
        name: partial_statistical_parity_gap(
            None, scores, sensitive_features=test[2], interval=INTERVAL, normalize=normalize
        )
        for name, normalize in (("test_gap", True), ("test_rank_gap", False))
    }
    return row | {"test_accuracy": model.score(*test[:2])} | gaps


def acs() -> pd.DataFrame:
    """The sample of 765,670 rows: one fit per kappa, each in a process of its own."""
    return pd.DataFrame([in_own_process(acs_fit, kappa) for kappa in KAPPAS])


def acs_test() -> pd.DataFrame:
    """Held-out accuracy and fairness, beside the published ones."""
    frame = pd.DataFrame([acs_test_fit(kappa) for kappa in KAPPAS])
    published = pd.DataFrame(PUBLISHED, columns=["published_fairness", "published_accuracy"])
    return pd.concat([frame, published], axis=1)


def whole() -> pd.DataFrame:
    """As many rows as the whole task."""
    return pd.DataFrame([in_own_process(acs_fit, kappa, WHOLE) for kappa in (0.2, 0.05)])


def generated(n_samples: int, n_groups: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with groups that differ in their features, and in size by a factor of two at most."""
    X, y, _ = make_biased_classification(n_samples=n_samples, n_features=20, random_state=0)
    rng = np.random.default_rng(0)
    share = np.linspace(1, 2, n_groups)
    groups = rng.choice(n_groups, n_samples, p=share / share.sum())
    X = X + np.linspace(-1, 1, n_groups)[groups, None] * np.linspace(0, 1, X.shape[1])
    y = (X[:, -5:].sum(axis=1) + rng.logistic(size=n_samples) > 0).astype(int)
    return X, y, groups


def picture(frame: pd.DataFrame, x: str, name: str, reference: Callable[[np.ndarray], np.ndarray], label: str) -> None:
    """Seconds against ``x``, beside a curve of the stated growth through the first point."""
    figure, axes = plt.subplots(figsize=(5, 3.6), layout="constrained")
    at = frame[x].to_numpy(dtype=float)
    axes.loglog(at, frame["seconds"], "o-", label="fit")
    axes.loglog(at, frame["seconds"].iloc[0] * reference(at) / reference(at[:1]), "--", color="0.5", label=label)
    axes.set(xlabel=x.replace("_", " "), ylabel="seconds")
    axes.legend()
    RESULTS.mkdir(exist_ok=True)
    saved([(name, figure)], RESULTS, "large_data", dpi=150)


def rows() -> pd.DataFrame:
    """Time against the number of rows, 10^4 to 10^6."""
    records = []
    for n_samples in (10_000, 30_000, 100_000, 300_000, 1_000_000):
        X, y, groups = generated(n_samples, 2)
        records.append(timed_fit(X, y, groups, kappa=0.05, interval=INTERVAL)[1])
    frame = pd.DataFrame(records)
    picture(frame, "rows", "rows", lambda n: n * np.log(n), "n log n")
    return frame


def groups() -> pd.DataFrame:
    """Time against the number of groups at 100,000 rows."""
    records = []
    for n_groups in (2, 10, 100):
        X, y, members = generated(100_000, n_groups)
        # the whole distributions: of a hundred groups, shorter intervals hold too few rows for such a kappa
        row = timed_fit(X, y, members, kappa=0.1)[1]
        records.append({"groups": n_groups, **row, "ms_per_evaluation": 1e3 * row["seconds"] / row["evaluations"]})
    frame = pd.DataFrame(records)
    picture(frame, "groups", "groups", lambda g: g, "proportional")
    return frame


def levels() -> pd.DataFrame:
    """Time against the number of levels at 100,000 rows."""
    X, y, members = generated(100_000, 2)
    records = []
    for n_levels in (5, 10, 20, 50, 100):
        row = timed_fit(X, y, members, kappa=0.05, interval=INTERVAL, n_levels=n_levels)[1]
        records.append({"levels": n_levels, **row, "ms_per_evaluation": 1e3 * row["seconds"] / row["evaluations"]})
    frame = pd.DataFrame(records)
    picture(frame, "levels", "levels", lambda p: p, "proportional")
    return frame


#: Layouts and types of X whose memory is measured, and the solvers of the fits; "none" fits without a bound.
TYPES = (("dense", "float64"), ("dense", "float32"), ("csr", "float64"), ("csr", "int8"))
SOLVERS = ("none", "auto")


def of_type(layout: str, numbers: str, n_rows: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of 50 columns, made part by part, so that nothing has taken more memory than X; a fifth of a CSR is set."""
    rng, parts = np.random.default_rng(0), []
    for _ in range(n_rows // 1000):
        part = rng.integers(-3, 4, (1000, 50)) * (rng.random((1000, 50)) < (0.2 if layout == "csr" else 1))
        parts.append(sp.csr_array(part.astype(numbers)) if layout == "csr" else part.astype(numbers))
    w = rng.normal(scale=0.1, size=50)
    scores = np.concatenate([part.astype(float) @ w for part in parts])
    groups = (rng.random(n_rows) < 1 / (1 + np.exp(-scores))).astype(int)
    y = (scores + rng.logistic(size=n_rows) > 0).astype(int)
    if layout == "csr":
        return sp.vstack(parts, format="csr"), y, groups
    X = np.empty((n_rows, 50), dtype=numbers)
    for start in range(0, n_rows, 1000):
        X[start : start + 1000] = parts.pop(0)
    return X, y, groups


def memory_of_fit(layout: str, numbers: str, solver: str, n_rows: int) -> dict[str, Any]:
    """The memory of NumPy that one fit adds at most at a time, in arrays of a float64 number for each row."""
    X, y, groups = of_type(layout, numbers, n_rows)
    model = RateParityClassifier(
        kappa=None if solver == "none" else 0.02, solver="auto" if solver == "none" else solver, random_state=0
    )
    model.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])  # what is imported and compiled at first
    tracemalloc.start()
    model.fit(X, y, sensitive_features=groups)
    array = 8 * n_rows
    of_X = sum(part.nbytes for part in ((X.data, X.indices, X.indptr) if layout == "csr" else (X,)))
    return {
        "layout": layout,
        "numbers": numbers,
        "solver": solver,
        "arrays_of_X": of_X / array,
        "arrays_added": tracemalloc.get_traced_memory()[1] / array,
        "status": model.status_,
        "train_gap": model.constraint_values_["demographic_parity"],
    }


def memory(n_rows: int = 200_000) -> pd.DataFrame:
    """Memory of fits by the type of X, each in a process of its own."""
    cases = product(TYPES, SOLVERS)
    return pd.DataFrame([in_own_process(memory_of_fit, *of_X, solver, n_rows) for of_X, solver in cases])


EXPERIMENTS = {function.__name__: function for function in (acs, acs_test, whole, rows, groups, levels, memory)}


def main() -> None:
    """Run the experiments named on the command line, or all of them."""
    parser = command_line(__doc__, plots=True)
    parser.add_argument("experiments", nargs="*", choices=[[], *EXPERIMENTS], help="all without any")
    arguments = parser.parse_args()
    for name in [] if arguments.plots else arguments.experiments or EXPERIMENTS:
        save(significant(EXPERIMENTS[name]()), f"large_data_{name}")
    if arguments.docs:
        publish(RESULTS.glob("large_data_*.png"), "large_data", is_new=not arguments.plots)


if __name__ == "__main__":
    main()
