"""Errors of heads by smooth decisions, by counts to the end (``exact=True``), and of an exhaustive sweep.

``python -m benchmarks.exact_heads [--quick] [--docs]`` fits heads of fewest errors on cross-fitted LightGBM, on 3,600
rows of every data set, so that their features are a score, the group's probability, and the product of the two. The
sweep tries 2,000 mixtures of the first two, each with all thresholds: what it finds is the optimum over mixtures and
thresholds, up to the grid.
"""

from __future__ import annotations

from functools import partial
from itertools import product

import lightgbm as lgb
import numpy as np
import pandas as pd

from benchmarks._common import command_line, keep, parsed, set_threads, timed
from benchmarks.any_model.data import CASES, as_codes, load_split, parted
from benchmarks.head_speed import timed_fit
from fairconstrained import PartialParityClassifier
from fairconstrained.heads import CrossFittedScores
from fairconstrained.metrics import equal_opportunity_gap, independence_gap

#: Rows that a head is fitted on, mixtures of the sweep, and splits.
ROWS, MIXTURES, SPLITS = 3600, 2000, 5
DATA = ("adult", "bank", "compas", "law_school", "credit")
METRICS = {"demographic_parity": independence_gap, "equal_opportunity": equal_opportunity_gap}
KAPPAS = (0.02, 0.05, 0.1)
HEADS = {"head": {}, "head, exact": {"exact": True}}


def swept(features: np.ndarray, y: np.ndarray, groups: np.ndarray, constraint: str, kappa: float) -> int:
    """The fewest errors of all mixtures of the first two features and thresholds whose gap is within ``kappa``."""
    fewest = y.size
    counted = y == 1 if constraint == "equal_opportunity" else np.ones(y.size, dtype=bool)
    cells = [(groups == group) & counted for group in np.unique(groups)]
    for angle in np.linspace(0, 2 * np.pi, MIXTURES, endpoint=False):
        order = np.argsort(-features[:, :2] @ [np.cos(angle), np.sin(angle)])
        rates = [np.append(0, np.cumsum(rows[order])) / rows.sum() for rows in cells]
        errors = y.sum() + np.append(0, np.cumsum(1 - 2 * y[order]))
        within = np.max(rates, axis=0) - np.min(rates, axis=0) <= kappa + 1e-12
        fewest = min(fewest, int(errors[within].min()))
    return fewest


def table(data: str, seed: int, n_rows: int, kappas: tuple[float, ...] = KAPPAS) -> pd.DataFrame:
    """A line for every bound and way: errors of 10,000 rows in training and of new ones, the new gap, and seconds."""
    train, test = load_split(data, seed)
    train = parted(train, n_rows, seed).train
    trees = lgb.LGBMClassifier(n_estimators=100, learning_rate=0.05, n_jobs=1, random_state=0, verbose=-1)
    scores = CrossFittedScores(trees, random_state=0)
    features = scores.fit_transform(as_codes(train.X), train.y, sensitive_features=train.groups)
    new = scores.transform(as_codes(test.X))
    lines = []
    for constraint, kappa in product(METRICS, kappas):
        cell = {"data": CASES[data].title, "seed": seed, "constraint": constraint, "kappa": kappa}
        fewest, seconds = timed(partial(swept, features, train.y, train.groups, constraint, kappa))
        lines.append(cell | {"method": "sweep", "training errors": 1e4 * fewest / n_rows, "seconds": seconds})
        for method, options in HEADS.items():
            head = PartialParityClassifier(kappa, constraint=constraint, objective="zero_one", random_state=0)
            head.set_params(solver="span_search", solver_options=options, new_row_folds=None)
            head._on_scores = True
            _, seconds = timed_fit(partial(head.fit, features, train.y, sensitive_features=train.groups))
            decisions = head.predict(new)
            measured = {
                "training errors": 1e4 * np.mean(head.predict(features) != train.y),
                "new errors": 1e4 * np.mean(decisions != test.y),
                "new gap": METRICS[constraint](test.y, decisions, sensitive_features=test.groups),
                "seconds": seconds,
            }
            lines.append(cell | {"method": method} | measured)
    return pd.DataFrame(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print means over splits and bounds."""
    parser = command_line(__doc__, "one small generated data set, to see that it runs")
    options = parsed(parser, arguments)
    set_threads(1)
    if options.quick:
        found = table("generated", 0, 1000, kappas=KAPPAS[:1])
    else:
        found = pd.concat([table(data, seed, ROWS) for data, seed in product(DATA, range(SPLITS))])
    keys = ["data", "constraint", "method"]
    shown = (
        found.groupby(keys, sort=False)[["training errors", "new errors", "new gap", "seconds"]].mean().reset_index()
    )
    print(shown.to_string(float_format=lambda value: f"{value:.4g}"))
    digits = {"training errors": 1, "new errors": 1, "new gap": 4, "seconds": 3}
    keep(found, "exact_heads", options, shown=shown.round(digits))


if __name__ == "__main__":
    main()
