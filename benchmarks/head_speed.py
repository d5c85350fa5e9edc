"""Seconds of heads: one fit on many rows, and ten bounds next to the model that the heads are on.

``python -m benchmarks.head_speed [--quick] [--docs]`` cross-fits LightGBM on 100,000 rows of the ACS sample, fits a
head for every notion on the features, and a path of ten bounds. Seconds are processor time of one process with one
thread; the path is a ratio to the fits of the model alone, its folds and the models of the group included.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import lightgbm as lgb
import numpy as np
import pandas as pd

from benchmarks._common import command_line, data_folder, keep, parsed, set_threads, timed
from fairconstrained import (
    AUCFairClassifier,
    ConvergenceWarning,
    FairHeadClassifier,
    PartialParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import LossParity
from fairconstrained.heads import CrossFittedScores

ERRORS = {"objective": "zero_one"}
HEADS: dict[str, Callable[[], Any]] = {
    "demographic parity, errors": lambda: PartialParityClassifier(0.02, constraint="demographic_parity", **ERRORS),
    "equal opportunity, errors": lambda: PartialParityClassifier(0.02, constraint="equal_opportunity", **ERRORS),
    "equalized odds, errors": lambda: PartialParityClassifier(0.02, constraint="equalized_odds", **ERRORS),
    "demographic parity, log loss": lambda: PartialParityClassifier(0.02, constraint="demographic_parity"),
    "equalized odds, log loss": lambda: PartialParityClassifier(0.02, constraint="equalized_odds"),
    "statistical parity [5 %, 30 %]": lambda: PartialParityClassifier(0.05, interval=(0.05, 0.3)),
    "inter-group AUC": lambda: AUCFairClassifier(0.02),
    "group AUC": lambda: AUCFairClassifier(0.02, constraint="group_auc"),
    "intra-group AUC": lambda: AUCFairClassifier(0.02, constraint="intra_group"),
    "losses": lambda: PartialParityClassifier(constraint=LossParity(0.005), alpha=1e-3),
}
KAPPAS = (0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.025, 0.02, 0.015, 0.01)


def acs(n_rows: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows of the ACS sample, drawn at random: numbers and codes, income above 50,000, sex."""
    frame = pd.read_parquet(data_folder() / "acs_income_2018_us_sample.parquet").sample(n_rows, random_state=0)
    columns = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "RAC1P"]
    return frame[columns], frame["PINCP_gt_50000"].to_numpy(dtype=int), frame["SEX"].to_numpy()


def timed_fit(function: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a call, and its processor seconds, without warnings: the status is in the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return timed(function)


def table(X: Any, y: np.ndarray, groups: np.ndarray, n_trees: int) -> pd.DataFrame:
    """A line for the model, one for every head, and one for the path."""
    trees = lgb.LGBMClassifier(n_estimators=n_trees, learning_rate=0.05, n_jobs=1, random_state=0, verbose=-1)
    scores = CrossFittedScores(trees, random_state=0)
    features, base = timed_fit(lambda: scores.fit_transform(X, y, sensitive_features=groups))
    lines: list[dict[str, Any]] = [{"what": "LightGBM, cross-fitted, and of the group", "seconds": base}]
    for name, make in HEADS.items():
        head = make().set_params(random_state=0, new_row_folds=None)
        head._on_scores = True
        _, seconds = timed_fit(lambda head=head: head.fit(features, y, sensitive_features=groups))
        (value,) = head.constraint_values_.values()
        lines.append({"what": name, "seconds": seconds, "status": head.status_, "training gap": value})
    head = PartialParityClassifier(constraint="demographic_parity", random_state=0, new_row_folds=None, **ERRORS)
    model = FairHeadClassifier(trees, head, random_state=0)
    _, whole = timed_fit(lambda: fairness_path(model, X, y, sensitive_features=groups, kappas=KAPPAS))
    lines.append({"what": "ten bounds, errors, with LightGBM", "seconds": whole, "times": whole / base})
    model = FairHeadClassifier(trees, head.set_params(objective="logistic"), random_state=0)
    _, whole = timed_fit(lambda: fairness_path(model, X, y, sensitive_features=groups, kappas=KAPPAS))
    lines.append({"what": "ten bounds, log loss, with LightGBM", "seconds": whole, "times": whole / base})
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print it."""
    parser = command_line(__doc__, "few rows and trees, to see that it runs")
    options = parsed(parser, arguments)
    set_threads(1)
    found = table(*acs(3000 if options.quick else 100_000), n_trees=20 if options.quick else 300)
    shown = found.map(lambda value: f"{value:.3g}" if isinstance(value, float) else value).replace("nan", "")
    keep(found, "head_speed", options, shown=shown)


if __name__ == "__main__":
    main()
