"""Seconds of bounds on AUCs, of two groups and of sixty, and of networks with a bound against those without.

``python -m benchmarks.bound_speed [--quick] [--docs]`` writes two tables. Seconds are processor time of one process
with one thread; a network has the same number of epochs with its bound and without, and no estimates on new rows.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from benchmarks._common import (
    Table,
    command_line,
    data_folder,
    keep,
    load_a9a,
    load_bank_table,
    load_law_school_table,
    parsed,
    set_threads,
    significant,
)
from fairconstrained import (
    AUCFairClassifier,
    ConvergenceWarning,
    LossParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
)
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import loss_parity_gap, rate_gap


def _generator() -> Table:
    return Table("generator", *make_biased_classification(20_000, 20, group_proportions=(0.6, 0.4), random_state=0))


def _sixty_generated() -> Table:
    rng, n_groups = np.random.default_rng(0), 60
    options = {"positive_rates": rng.uniform(0.3, 0.6, n_groups), "group_shift": rng.normal(0, 0.3, n_groups)}
    shares = np.full(n_groups, 1 / n_groups)
    made = make_biased_classification(10_000, 20, group_proportions=shares, random_state=0, **options)
    return Table("generator", *made)


def _occupations() -> Table:
    """20,000 rows of the ACS sample in one of its sixty largest occupations, which are the groups."""
    frame = pd.read_parquet(data_folder() / "acs_income_2018_us_sample.parquet")
    frame = frame[frame["OCCP"].isin(frame["OCCP"].value_counts().index[:60])].sample(20_000, random_state=0)
    features = frame[["AGEP", "WKHP", "SCHL", "SEX"]].astype(float)
    X = pd.concat([features, pd.get_dummies(frame[["RAC1P", "MAR"]].astype(str), dtype=float)], axis=1).to_numpy()
    y = frame["PINCP_gt_50000"].to_numpy(dtype=int)
    return Table("occupations", X, y, frame["OCCP"].to_numpy()).standardised()


def _bank() -> Table:
    return load_bank_table().standardised()


def _law_school() -> Table:
    return load_law_school_table().standardised()


TWO = {"a9a": load_a9a, "bank": _bank, "generator": _generator}
SIXTY = {"occupations": _occupations, "generator": _sixty_generated}
NETWORKS = {"law_school": _law_school, "bank": _bank, "generator": _generator}
Maker = Callable[[], Any]
#: Bounds on AUCs of two groups, and of sixty.
TWO_BOUNDS: dict[str, Maker] = {
    "group AUC": lambda: PartialParityClassifier(0.02, constraint="group_auc"),
    "group AUC [0, 30 %]": lambda: PartialParityClassifier(0.02, constraint="group_auc", interval=(0.0, 0.3)),
    "AUC gap, group": lambda: AUCFairClassifier(0.02, constraint="group_auc"),
    "AUC gap, inter-group": lambda: AUCFairClassifier(0.02, constraint="inter_group"),
    "AUC gap, intra-group": lambda: AUCFairClassifier(0.02, constraint="intra_group"),
}
SIXTY_BOUNDS: dict[str, Maker] = {
    "group AUC": lambda: PartialParityClassifier(0.2, constraint="group_auc"),
    "AUC gap, intra-group": lambda: AUCFairClassifier(0.2, constraint="intra_group"),
}
#: Networks, and their bounds.
NETWORK_BOUNDS: dict[str, tuple[float, Callable[[float | None], Any]]] = {
    "losses": (0.005, lambda kappa: LossParityClassifier(kappa)),
    "positive rates": (
        0.02,
        lambda kappa: RateParityClassifier(kappa, hidden_layer_sizes=(64, 32)),
    ),
}


def fitted(model: Any, rows: Table, seed: int = 0) -> dict[str, Any]:
    """Fit; seconds, status, evaluations, log loss and gap on the training rows."""
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the status is in the table
        model.set_params(random_state=seed, new_row_folds=None, small_groups="ignore").fit(
            rows.X, rows.y, sensitive_features=rows.groups
        )
    seconds = time.process_time() - begin
    signs = np.where(rows.y == model.classes_[1], 1, -1)
    return {
        "seconds": seconds,
        "status": model.status_,
        "evaluations": model.n_evaluations_,
        "log loss": float(np.logaddexp(0, -signs * model.decision_function(rows.X)).mean()),
        "gap": float(next(iter(model.constraint_values_.values()))),
    }


def aucs(n_rows: int | None) -> pd.DataFrame:
    """A line for every bound and data set."""
    lines = []
    for n_groups, sources, bounds in ((2, TWO, TWO_BOUNDS), (60, SIXTY, SIXTY_BOUNDS)):
        for data, load in sources.items():
            rows = load().some(n_rows)
            for what, make in bounds.items():
                lines.append({"groups": n_groups, "data": data, "bound": what, **fitted(make(), rows)})
    return pd.DataFrame(lines)


def networks(n_rows: int | None, n_seeds: int, **options: Any) -> pd.DataFrame:
    """Means over seeds, on 60 % of the rows; accuracy and gap on the other rows."""
    lines = []
    for data, load in NETWORKS.items():
        rows = load().some(n_rows)
        for what, (kappa, make) in NETWORK_BOUNDS.items():
            runs = [_with_and_without(make, kappa, rows, seed, options) for seed in range(n_seeds)]
            means = pd.DataFrame(runs).mean()
            lines.append({"data": data, "bound": what, **means, "times": means["bounded"] / means["free"]})
    return pd.DataFrame(lines)


def _with_and_without(make: Any, kappa: float, rows: Table, seed: int, options: dict[str, Any]) -> dict[str, float]:
    new = np.random.default_rng(seed).random(rows.y.size) < 0.4
    seen, unseen = rows.take(~new), rows.take(new)
    model = make(kappa).set_params(**options)
    free, bounded = (fitted(m, seen, seed) for m in (make(None).set_params(**options), model))
    gap = loss_parity_gap if isinstance(model, LossParityClassifier) else rate_gap
    return {
        "free": free["seconds"],
        "bounded": bounded["seconds"],
        "log loss": bounded["log loss"],
        "gap": bounded["gap"],
        "new accuracy": model.score(unseen.X, unseen.y),
        "new gap": gap(unseen.y, model.decision_function(unseen.X), sensitive_features=unseen.groups),
    }


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSVs and print them."""
    parser = command_line(__doc__, "few rows and units, one seed, to see that it runs")
    options = parsed(parser, arguments)
    set_threads(1)
    keep(significant(aucs(6000 if options.quick else None)), "bound_speed", options, "aucs")
    found = networks(6000, 1, hidden_layer_sizes=(4,)) if options.quick else networks(None, 3)
    keep(significant(found), "bound_speed", options, "networks")


if __name__ == "__main__":
    main()
