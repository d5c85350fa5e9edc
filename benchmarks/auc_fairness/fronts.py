"""The fronts: for every bound on the gap the model that a method would return, and its means over the splits."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from benchmarks.auc_fairness.methods import BOUNDS, UNCONSTRAINED

#: A front: those of several splits are averaged.
FRONT = ["data", "metric", "model", "method"]
VALUES = ["test_auc", "test_gap", "train_auc", "train_gap", "val_auc"]


def choose(results: pd.DataFrame) -> pd.DataFrame:
    """What every method returns for every bound, by the paper's rule (appendix E.3) for all of them.

    Among all models of a split (parameters, steps, iterations) whose gap on the training part is at most the bound plus
    what one row counts, the one of best AUC on the validation part. A method without such a model has no row. Constant
    scores, with which most iterations begin, are no model.
    """
    models = results[results.val_auc > 0.5]
    chosen = []
    for bound in (*BOUNDS, UNCONSTRAINED):
        within = models[models.train_gap <= bound + models.granularity]
        best = within.groupby([*FRONT, "seed"], sort=False).val_auc.idxmax()
        chosen.append(within.loc[best].assign(bound=bound))
    return pd.concat(chosen, ignore_index=True)


def means(chosen: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits, and half the widths of their 95 % intervals (Student's t; NaN for one split).

    ``seeds`` is the number of splits with a model within the bound; ``of_seeds`` that of all.
    """
    if chosen.empty:
        return pd.DataFrame(columns=[*FRONT, "bound", *VALUES, "test_auc_ci", "test_gap_ci", "seeds", "of_seeds"])
    grouped = chosen.groupby([*FRONT, "bound"], sort=False)
    table, count = grouped[VALUES].mean(), grouped.seed.nunique()
    for name in ("test_auc", "test_gap"):
        table[f"{name}_ci"] = grouped[name].std() * student.ppf(0.975, (count - 1).clip(lower=1)) / count**0.5
    table = table.assign(seeds=count).reset_index()
    return table.join(chosen.groupby(FRONT).seed.nunique().rename("of_seeds"), on=FRONT)


def costs(results: pd.DataFrame) -> pd.DataFrame:
    """Fits, splits, and the mean seconds of processor time of a fit that has a parameter."""
    fits = results.drop_duplicates("task")
    fits = fits[np.isfinite(fits.parameter)]
    grouped = fits.groupby(["model", "method", "data"], sort=False)
    return grouped.agg(seconds=("seconds", "mean"), fits=("task", "size"), seeds=("seed", "nunique")).reset_index()
