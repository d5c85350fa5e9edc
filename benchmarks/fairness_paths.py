"""A path of ten bounds against a cold fit at each of them: seconds, objectives and exact gaps.

Training rows of a9a, Bank and ACS income of Oklahoma, one thread, processor time of one process. A cold fit with a
tolerance of 4e-4 in place of 5e-4 shows what a cold fit itself is known to.
``python -m benchmarks.fairness_paths [--docs]`` writes two CSV files and a PNG.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.ticker import LogLocator, NullFormatter
from sklearn.base import clone
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from benchmarks._common import (
    RESULTS,
    command_line,
    load_a9a,
    load_bank_table,
    publish,
    save,
    set_threads,
    significant,
    timed,
)
from benchmarks._figures import saved
from benchmarks.loss_parity.datasets import load_parts
from fairconstrained import AUCFairClassifier, PartialParityClassifier, RateParityClassifier, fairness_path
from fairconstrained.exceptions import ConvergenceWarning

ESTIMATORS = {
    "scores, ranks 5 to 30 %": PartialParityClassifier(interval=(0.05, 0.3)),
    "positive rates": PartialParityClassifier(constraint="demographic_parity"),
    "error rates": PartialParityClassifier(constraint="equalized_odds"),
    "AUC between groups": AUCFairClassifier(),
    "smooth rates": RateParityClassifier(rate="sigmoid"),
}


def rows_of_a9a() -> tuple[Any, np.ndarray, np.ndarray]:
    table = load_a9a()
    return table.X[table.is_train], table.y[table.is_train], table.groups[table.is_train]


def rows_of_bank() -> tuple[Any, np.ndarray, np.ndarray]:
    table = load_bank_table()
    return StandardScaler().fit_transform(table.X), table.y, table.groups


def rows_of_oklahoma() -> tuple[Any, np.ndarray, np.ndarray]:
    part = load_parts("acs_income_ok", 0).train
    return part.X, part.y, part.groups


DATA: dict[str, Callable[[], tuple[Any, np.ndarray, np.ndarray]]] = {
    "a9a": rows_of_a9a,
    "bank": rows_of_bank,
    "Oklahoma": rows_of_oklahoma,
}


def compare(estimator: Any, X: Any, y: np.ndarray, groups: np.ndarray) -> tuple[dict[str, float], pd.DataFrame]:
    """A row of the table, and the objectives and gaps by kappa."""
    path, seconds = timed(lambda: fairness_path(estimator, X, y, sensitive_features=groups))
    fits, other, cold_seconds = [], [], []
    for kappa in path.kappas:
        bound = estimator._bound_params(None if np.isinf(kappa) else kappa)
        fit, one = timed(lambda bound=bound: clone(estimator).set_params(**bound).fit(X, y, sensitive_features=groups))
        again = clone(fit).set_params(solver_options={"tol": 4e-4}).fit(X, y, sensitive_features=groups)
        fits.append(fit)
        other.append(again)
        cold_seconds.append(one)

    def gaps(models: list[Any]) -> np.ndarray:
        return np.array([max(model.constraint_values_.values()) for model in models])

    frame = pd.DataFrame(
        {
            "kappa": path.kappas,
            "path_objective": path.table["objective"],
            "cold_objective": [model.objective_ for model in fits],
            "other_objective": [model.objective_ for model in other],
            "path_gap": path.table["gap"],
            "cold_gap": gaps(fits),
            "other_gap": gaps(other),
        }
    )
    granularity = max(fits[-1].granularity_.values())
    row = {
        "granularity": granularity,
        "path_seconds": seconds,
        "cold_seconds": float(np.mean(cold_seconds)),
        "cold_fits": seconds / np.mean(cold_seconds),
        "kept": int((frame["path_gap"] <= frame["kappa"] + granularity).sum()),
        "objective_above": (frame["path_objective"] - frame["cold_objective"]).max(),
        "objective_below": (frame["cold_objective"] - frame["path_objective"]).max(),
        "other_above": (frame["other_objective"] - frame["cold_objective"]).abs().max(),
        "gap_apart": (frame["path_gap"] - frame["cold_gap"]).abs().max(),
        "other_gap_apart": (frame["other_gap"] - frame["cold_gap"]).abs().max(),
    }
    return row, frame


def draw(points: pd.DataFrame) -> None:
    """Objectives of the path above those of the cold fits, by kappa."""
    figure, axes = plt.subplots(1, len(DATA), figsize=(10, 3.4), sharey=True, layout="constrained")
    for ax, (data, part) in zip(axes, points.groupby("data", sort=False), strict=True):
        for name, of_one in part.groupby("bounded", sort=False):
            ax.plot(
                of_one["kappa"], of_one["path_objective"] - of_one["cold_objective"], "o-", label=name, markersize=3
            )
        ax.axhspan(-1e-3, 1e-3, color="0.9")
        ax.set(title=data, xlabel="kappa", xscale="log")
        ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_formatter("{x:g}")
        ax.xaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("objective, path - cold fit")
    axes[-1].legend(fontsize=7)
    saved([("", figure)], RESULTS, "fairness_paths", dpi=150)


def main() -> None:
    arguments = command_line(__doc__).parse_args()
    set_threads(1)
    warnings.simplefilter("ignore", ConvergenceWarning)  # the tables say what was kept
    rows, points = [], []
    for data, bounded in tqdm([(data, bounded) for data in DATA for bounded in ESTIMATORS]):
        row, frame = compare(ESTIMATORS[bounded], *DATA[data]())
        rows.append({"data": data, "bounded": bounded, **row})
        points.append(frame.assign(data=data, bounded=bounded))
    save(significant(pd.DataFrame(rows), digits=3), "fairness_paths_table")
    save(pd.concat(points), "fairness_paths_points", show=False)
    draw(pd.concat(points))
    if arguments.docs:
        publish([RESULTS / "fairness_paths.png"], "fairness_paths", without=["points"])


if __name__ == "__main__":
    main()
