"""Tables from the results: kept promises, comparisons with other packages, seconds, and the four-fifths rule."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import norm

from benchmarks._runner import Row
from benchmarks.any_model.fronts import beyond_front, points
from benchmarks.any_model.tables import kept
from benchmarks.notions.catalogue import ENTRIES, WHOLE
from benchmarks.notions.tasks import METHODS

#: Numbers in the results have six digits.
_ROUNDING = 2e-6
REDUCTION = "exponentiated_gradient"


def write_tables(results: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables by the last part of their file's name."""
    all_rows = results.assign(is_infeasible=results.status.str.contains("infeasible"))
    # splits with all their training rows are there for the seconds
    marked = all_rows[~all_rows.data.str.endswith(WHOLE)]
    tables = {
        "values": values(marked),
        "promise": promise(marked),
        "kept": new_rows(marked),
        "compared": compared(marked),
        "seconds": seconds(all_rows),
        "four_fifths": four_fifths(marked),
    }
    return tables | {"summary": summary(tables)}


def _of_ours(results: pd.DataFrame) -> pd.DataFrame:
    return results[results.method.isin(list(METHODS)) & np.isfinite(results.kappa)]


def _at_bound(results: pd.DataFrame) -> pd.DataFrame:
    """Fits at the bound of the notion, and not at the value that another package reached."""
    return results[results.against.isna() & np.isfinite(results.kappa)]


def values(results: pd.DataFrame) -> pd.DataFrame:
    """By data set, notion and method: means over the splits of fits at the bound, and values over the bound."""
    names = ["train_gap", "test_gap", "error", "accuracy", "seconds"]
    grouped = _at_bound(results).groupby(["data", "notion", "method", "bound"], sort=False)
    table = grouped[names].mean().assign(infeasible=grouped.is_infeasible.sum(), splits=grouped.seed.nunique())
    table = table.reset_index()
    return table.assign(train_over=table.train_gap / table.bound, new_over=table.test_gap / table.bound)


def promise(results: pd.DataFrame) -> pd.DataFrame:
    """By notion and method of the package: fits that exceed kappa on their training rows, and those that say so.

    The bound of a head is on cross-fitted scores of the training rows.

    ``silent`` are those that exceed it by more than the granularity and are not infeasible by their status.
    """
    ours = _of_ours(results)
    excess = (ours.promised - ours.kappa).fillna(np.inf)
    over = excess > ours.granularity.fillna(0) + _ROUNDING
    marked = ours.assign(excess=excess, over=over, silent=over & ~ours.is_infeasible)
    grouped = marked.groupby(["notion", "method"], sort=False)
    table = grouped.agg(fits=("over", "size"), infeasible=("is_infeasible", "sum"), silent=("silent", "sum"))
    within = marked[~marked.is_infeasible].groupby(["notion", "method"], sort=False)
    table["largest_excess"] = within.excess.max()
    return table.reset_index()


def new_rows(results: pd.DataFrame) -> pd.DataFrame:
    """By notion and method: cells whose mean value on new rows is what sampling explains, at the bound."""
    rows = _at_bound(results)
    table = points(rows)
    share = rows.groupby("data").training_share.mean()
    return kept(table.assign(training_share=table.data.map(share)))


def compared(results: pd.DataFrame) -> pd.DataFrame:
    """Every point of another package with the front of ours that has the same information, on new rows.

    The front has our fits at the bound, at the training values that other packages reached, and without a bound. The
    columns ending in "_ours" are those of the fit at the same training value.
    """
    lines: list[Row] = []
    for (data, notion, peer), theirs in _at_bound(results).groupby(["data", "notion", "method"], sort=False):
        for method in [name for name, ours in METHODS.items() if peer in ours.answers]:
            ours = results[(results.data == data) & (results.notion == notion) & (results.method == method)]
            matched = ours[ours.against == peer]
            seeds = sorted(set(theirs.seed) & set(matched.seed))
            if seeds:
                names = {"data": data, "notion": notion, "method": peer, "against": method}
                lines.append(names | _comparison(*(rows[rows.seed.isin(seeds)] for rows in (theirs, matched, ours))))
    columns = [
        "data", "notion", "method", "against", "splits", "train_gap", "gap", "gap_ours", "accuracy", "accuracy_ours",
        "difference", "half_width", "dominates", "infeasible", "faster",
    ]  # fmt: skip
    return pd.DataFrame(lines, columns=columns)


def _comparison(theirs: pd.DataFrame, matched: pd.DataFrame, ours: pd.DataFrame) -> Row:
    # points of the front are told apart by a number: the kappas of matched fits differ between splits
    front = ours.assign(kappa=ours.groupby(["against", "bound", ours.kappa.map(np.isfinite)], dropna=False).ngroup())
    return {
        **beyond_front(theirs, front, "accuracy"),
        "train_gap": theirs.train_gap.mean(),
        "accuracy": theirs.accuracy.mean(),
        "gap_ours": matched.test_gap.mean(),
        "accuracy_ours": matched.accuracy.mean(),
        "infeasible": int(matched.is_infeasible.sum()),
        "faster": theirs.seconds.median() / matched.seconds.median(),
    }


def seconds(results: pd.DataFrame) -> pd.DataFrame:
    """Median seconds of the reduction, and how many times less ours take at the training value that it reached.

    ``estimate`` is what the estimate for new rows adds to a fit of least log loss, as a multiple of it.
    """
    key = ["data", "notion"]
    reduction = _at_bound(results[results.method == REDUCTION]).groupby(key, sort=False).seconds.median()
    table = pd.DataFrame({"reduction": reduction})
    matched = results[results.against == REDUCTION]
    for method, rows in matched.groupby("method", sort=False):
        of_method = rows.groupby(key).seconds.median()
        table[str(method)], table[f"{method}_faster"] = of_method, reduction / of_method
    estimated = results[results.method == "linear_estimate"].set_index(["seed", *key]).seconds
    plain = _at_bound(results[results.method == "linear"]).set_index(["seed", *key]).seconds
    table["estimate"] = (estimated / plain - 1).groupby(key).median()
    return table.reset_index()


def four_fifths(results: pd.DataFrame) -> pd.DataFrame:
    """By data set and method: ratios of the positive rates under the four-fifths rule, in training and on new rows.

    ``expected`` is the share of the splits in which the ratio of new rows would be at least that of the bound, for a
    method with the same training value that does not adapt to its training rows.
    """
    rows = _at_bound(results[results.notion == "demographic_parity_ratio"])
    apart = rows.error / np.sqrt(rows.training_share)
    marked = rows.assign(
        train=1 - rows.train_gap,
        new=1 - rows.test_gap,
        at_least=rows.test_gap <= rows.bound,
        expected=norm.cdf((rows.bound - rows.train_gap) / apart),
    )
    grouped = marked.groupby(["data", "method"], sort=False)
    return grouped.agg(
        splits=("seed", "nunique"),
        least_training_ratio=("train", "min"),
        new_ratio=("new", "mean"),
        standard_error=("error", "mean"),
        share_at_least=("at_least", "mean"),
        expected=("expected", "mean"),
        accuracy=("accuracy", "mean"),
    ).reset_index()


def summary(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """One line for every notion: promises, new rows, points of other packages beyond ours, and how much faster ours is.

    ``kept`` and ``expected`` are of linear scores of least log loss, by the floor of a single difference for all
    notions; ``ahead`` counts points of other packages beyond our front by more than the interval, ``behind`` those that
    it is beyond.
    """
    lines = []
    for notion, entry in ENTRIES.items():
        part = {name: table[table.notion == notion] for name, table in tables.items() if "notion" in table}
        if part["promise"].empty:
            continue
        own = part["kept"][part["kept"].method == "linear"]
        known = part["compared"][part["compared"].dominates.notna()]
        reduction = known[known.method == REDUCTION]
        line = {
            "notion": entry.title,
            "fits": part["promise"].fits.sum(),
            "silent": part["promise"].silent.sum(),
            "infeasible": part["promise"].infeasible.sum(),
            "kept": own.of_one.mean(),
            "expected": own.expected_of_one.mean(),
            "points": len(known),
            "ahead": int(known.dominates.astype(bool).sum()),
            "behind": int((known.difference < -known.half_width).sum()),
            "faster": reduction.faster.median(),
        }
        lines.append(line)
    return pd.DataFrame(lines)
