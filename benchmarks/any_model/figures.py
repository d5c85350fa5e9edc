"""Figures from the results alone: performance against the gap, both on new rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from benchmarks._figures import saved
from benchmarks.any_model.data import CASES
from benchmarks.any_model.fronts import HEAD, points
from benchmarks.any_model.notions import NOTIONS

#: Label, colour, marker and line of every method: ours are lines, those of other packages are broken lines.
STYLES = {
    "head": ("head on the trees (ours)", "#0072B2", "o", "-"),
    "head_groups": ("head that knows the group (ours)", "#0072B2", "o", (0, (2, 1))),
    "head_ensemble": ("head on the mean of the folds' models (ours)", "#332288", "p", "-"),
    "head_logistic": ("head of least log loss (ours)", "#56B4E9", ".", "-"),
    "head_network": ("network as the head (ours)", "#56B4E9", "P", "-"),
    "boosting": ("fair boosting of least log loss (ours)", "#66C2A5", "s", "-"),
    "boosting_errors": ("fair boosting of fewest errors (ours)", "#009E73", "s", "-"),
    "boosting_folds": ("fair boosting, bounded out of fold (ours)", "#44AA66", "d", "-"),
    "linear": ("linear (ours)", "#DDAA33", "v", "-"),
    "network": ("network (ours)", "#999933", "P", "-"),
    "two_regressions": ("two regressions and a sweep", "#777777", "x", ":"),
    "exponentiated_gradient": ("Fairlearn, reduction (random)", "#D55E00", "D", "--"),
    "threshold_optimizer": ("Fairlearn, thresholds (uses the group, random)", "#E69F00", "^", "--"),
    "oxonfair_groups": ("OxonFair (uses the group)", "#882255", "<", "--"),
    "oxonfair_inferred": ("OxonFair, inferred groups", "#CC79A7", ">", "--"),
    "fairgbm": ("FairGBM", "#000000", "*", "--"),
}
#: Panels beside each other, so that they can be read on a page.
_COLUMNS = 3


def draw_all(results: pd.DataFrame, folder: Path, stem: str) -> list[Path]:
    """A PNG for every notion, with a panel for every data set."""
    table = points(same_height(results))
    notions = [notion for notion in NOTIONS if notion in set(table.notion)]
    return saved(((notion, _draw(table[table.notion == notion], notion)) for notion in notions), folder, stem)


def same_height(results: pd.DataFrame) -> pd.DataFrame:
    """Performances as if all methods had all splits: what the trees have in a method's splits is taken as their mean.

    Splits differ in how well anything does on them, and some methods have fewer splits than others.
    """
    adjusted = results.copy()
    for measure in ("accuracy", "auc"):
        of_trees = results[results.method == "trees"].groupby(["data", "seed"])[measure].first()
        above = of_trees - of_trees.groupby("data").transform("mean")
        shift = results[["data", "seed"]].join(above.rename("above"), on=["data", "seed"]).above
        adjusted[measure] -= shift.fillna(0.0)
    return adjusted


def _draw(table: pd.DataFrame, notion: str) -> Figure:
    cases = [name for name in CASES if name in set(table.data)]
    n_rows, measure = -(-len(cases) // _COLUMNS), NOTIONS[notion].performance
    size = (9.3, 2.6 * n_rows + 1.6)
    figure, axes = plt.subplots(n_rows, _COLUMNS, figsize=size, squeeze=False, layout="constrained")
    for ax, data in zip(axes.flat, cases, strict=False):
        _panel(ax, table[table.data == data], measure)
        ax.set_title(CASES[data].title, fontsize=11)
    for ax in axes.flat[len(cases) :]:
        ax.set_axis_off()
    for ax in axes[:, 0]:
        ax.set_ylabel("AUC" if measure == "auc" else "accuracy", fontsize=10)
    for ax in axes.flat[max(0, len(cases) - _COLUMNS) :]:
        ax.set_xlabel("gap on new rows", fontsize=10)
    figure.suptitle(f"{NOTIONS[notion].title}: left is fairer; means over splits, standard errors", fontsize=11)
    _legend(figure, axes.flat)
    return figure


def _panel(ax: Axes, table: pd.DataFrame, measure: str) -> None:
    """The fronts of one notion on one data set, the head's in front."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.xaxis.set_major_locator(MaxNLocator(4))
    ax.yaxis.set_major_locator(MaxNLocator(4))
    for method, (label, color, marker, line) in STYLES.items():
        rows = table[(table.method == method) & table[measure].notna()].sort_values("kappa")
        if len(rows):
            is_head = method == HEAD
            ax.errorbar(
                rows.test_gap,
                rows[measure],
                xerr=rows.test_gap_se.fillna(0),
                yerr=rows[f"{measure}_se"].fillna(0),
                color=color,
                marker=marker,
                linestyle=line,
                markersize=5 if is_head else 4,
                linewidth=2.2 if is_head else 1.1,
                elinewidth=0.7,
                zorder=5 if is_head else 3,
                alpha=1 if is_head else 0.85,
                label=label,
            )
    trees = table[table.method == "trees"]
    ax.plot(trees.test_gap, trees[measure], "kX", markersize=7, linestyle="none", label="the trees, no bound")
    ax.set_xlim(left=0)
    _limit(ax, table, measure)


def _limit(ax: Axes, table: pd.DataFrame, measure: str) -> None:
    """Leave points far below the others outside, so that these can be told apart."""
    values = table[measure].dropna()
    low, high = np.quantile(values, [0.12, 1.0])
    margin = max(high - low, 0.002)
    if values.min() < low - 0.6 * margin:
        ax.set_ylim(low - 0.5 * margin, high + 0.1 * margin)


def _legend(figure: Figure, axes: Sequence[Axes]) -> None:
    entries = {}
    for ax in axes:
        entries |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    columns = max(1, int(figure.get_figwidth() // 3.0))
    style: dict[str, Any] = {"frameon": False, "fontsize": 8.5, "columnspacing": 1.0, "handlelength": 1.6}
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=columns, **style)
