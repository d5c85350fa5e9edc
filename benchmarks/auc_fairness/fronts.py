"""The fronts: for every bound on the gap the model that a method would return, and its means over the splits."""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmarks._common import half_width
from benchmarks.auc_fairness.methods import BOUNDS

#: A front: those of several splits are averaged.
FRONT = ["data", "metric", "model", "method"]
VALUES = ["test_auc", "test_gap", "train_auc", "train_gap", "val_auc"]


def complete(results: pd.DataFrame) -> pd.DataFrame:
    """Results of the splits that a method has completed, on all data sets and metrics that it has been run on."""
    panels = (results.data + results.metric).groupby([results[name] for name in ("model", "method", "seed")])
    done = panels.transform("nunique")
    return results[done == done.groupby([results.model, results.method]).transform("max")]


def same_splits(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Results that may be compared, as they are of the same splits, for every kind of model.

    "fronts": all splits, of the methods that have most of them; "first_split": the first one, of all methods, where not
    all have as many.
    """
    results = complete(results)
    splits = results.groupby(["model", "method"]).seed.transform("nunique")
    by_model = splits.groupby(results.model)
    fewer = by_model.transform("min") < by_model.transform("max")
    return {
        "fronts": results[splits == by_model.transform("max")],
        "first_split": results[fewer & (results.seed == 0)],
    }


def choose(results: pd.DataFrame) -> pd.DataFrame:
    """Choose a model of every method for every bound, by the paper's rule (appendix E.3) for all of them.

    Among all models of a split (parameters, steps, iterations) whose gap on the training part is at most the bound plus
    what one row counts, the one of best AUC on the validation part. A method without such a model has no row. Constant
    scores, with which most iterations begin, are no model.
    """
    models = results[results.val_auc > 0.5]
    if results.empty:
        return results.assign(bound=[])
    chosen = []
    for name, bound in ((name, bound) for name, bounds in BOUNDS.items() for bound in bounds):
        within = models[(models.model == name) & (models.train_gap <= bound + models.granularity)]
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
        table[f"{name}_ci"] = grouped[name].agg(half_width)
    table = table.assign(seeds=count).reset_index()
    return table.join(chosen.groupby(FRONT).seed.nunique().rename("of_seeds"), on=FRONT)


def costs(results: pd.DataFrame) -> pd.DataFrame:
    """Splits, fits, and by data set the mean seconds of processor time of a fit that has a parameter."""
    fits = complete(results).drop_duplicates("task")
    fits = fits[np.isfinite(fits.parameter)]
    by = ["model", "method"]
    table = fits.groupby(by, sort=False).agg(splits=("seed", "nunique"), fits=("task", "size"))
    return table.join(fits.pivot_table(index=by, columns="data", values="seconds").add_prefix("seconds_")).reset_index()
