"""Default fits to 1,000 rows of 10 features, beside scikit-learn's logistic regression of the same rows.

``python -m benchmarks.small_data [--seeds 8] [--docs]`` fits both in turns, in one process, to generated rows, one set
for every seed. Seconds are processor time of one thread; of every set the median of the runs counts. "times" is the
quotient of the seconds of a default fit, with the estimate for new rows, and of the regression. "estimate" is by how
much that estimate makes a fit longer, as a multiple of the fit without it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from tqdm import tqdm

from benchmarks._common import command_line, save, set_threads, significant, timed, to_docs
from fairconstrained import AUCFairClassifier, GroupLossClassifier, PartialParityClassifier, RateParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import FairnessWarning

MODELS: dict[str, Callable[..., Any]] = {
    "demographic parity": lambda **params: PartialParityClassifier(0.05, constraint="demographic_parity", **params),
    "equalized odds": lambda **params: PartialParityClassifier(0.05, constraint="equalized_odds", **params),
    "statistical parity": lambda **params: PartialParityClassifier(0.05, **params),
    "rates of decisions": lambda **params: RateParityClassifier(0.05, **params),
    "AUC between groups": lambda **params: AUCFairClassifier(0.05, **params),
    "group AUC": lambda **params: PartialParityClassifier(0.05, constraint="group_auc", **params),
    "largest group loss": lambda **params: GroupLossClassifier("minimax", **params),
}


def lines(seed: int, size: tuple[int, int], repeats: int) -> list[dict[str, Any]]:
    """A line for every model on the rows of one seed."""
    X, y, groups = make_biased_classification(*size, random_state=seed)
    fits: dict[Any, Callable[[], Any]] = {None: lambda: LogisticRegression().fit(X, y)}
    for name, make in MODELS.items():
        for folds in ("auto", None):
            model = make(random_state=0, new_row_folds=folds)
            fits[name, folds] = lambda model=model: model.fit(X, y, sensitive_features=groups)
    models = {key: fit() for key, fit in fits.items()}
    times: dict[Any, list[float]] = {key: [] for key in fits}
    for _ in range(repeats):
        for key, fit in fits.items():
            times[key].append(timed(fit)[1])
    seconds = {key: float(np.median(own)) for key, own in times.items()}
    return [
        {
            "bound": name,
            "solver": models[name, "auto"].solver_,
            "milliseconds": 1e3 * seconds[name, "auto"],
            "times": seconds[name, "auto"] / seconds[None],
            "estimate": seconds[name, "auto"] / seconds[name, None] - 1,
        }
        for name in MODELS
    ]


def table(n_seeds: int, size: tuple[int, int] = (1000, 10), repeats: int = 3) -> pd.DataFrame:
    """Medians over the seeds, and the largest and smallest quotients."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        found = pd.DataFrame([line for seed in tqdm(range(n_seeds)) for line in lines(seed, size, repeats)])
    by_bound = found.groupby("bound", sort=False)
    shown = by_bound[["milliseconds", "times", "estimate"]].median()
    shown.insert(2, "least", by_bound["times"].min())
    shown.insert(3, "most", by_bound["times"].max())
    solvers = by_bound["solver"].agg(lambda names: ", ".join(sorted(set(names))))
    return shown.assign(solver=solvers).reset_index()


def main(arguments: list[str] | None = None) -> None:
    """Measure, write the CSV and print it."""
    parser = command_line(__doc__)
    parser.add_argument("--seeds", type=int, default=8, help="sets of rows")
    options = parser.parse_args(arguments)
    set_threads(1)
    found = significant(table(options.seeds), 3)
    save(found, "small_data")
    if options.docs:
        to_docs(found, "small_data")


if __name__ == "__main__":
    main()
