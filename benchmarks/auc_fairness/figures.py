"""Figures and tables of the AUC fairness benchmark, from its results alone."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from benchmarks._figures import one_legend, panels, saved
from benchmarks.auc_fairness.fronts import choose, costs, means, same_splits
from benchmarks.auc_fairness.methods import CASES, GAPS, METHODS, UNCONSTRAINED
from fairconstrained.plotting import ParetoFrontDisplay

COLORS = dict(
    zip(METHODS, ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#E69F00", "#009E73", "#CC79A7", "#777777"), strict=True)
)
TITLES = {"group_auc": "group_auc", "inter_group": "inter-group", "intra_group": "intra-group"}


def draw_fronts(results: pd.DataFrame, folder: Path, stem: str) -> list[Path]:
    """PNGs for every model, of all splits and of the first: AUC against the gap on the test part, metrics in rows.

    A point that not all splits have is left out.
    """
    figures = (
        (model if name == "fronts" else f"{model}_{name}", _draw(rows[rows.seeds == rows.of_seeds]))
        for name, part in same_splits(results).items()
        for model, rows in means(choose(part)).groupby("model")
    )
    return saved(figures, folder, stem)


def _draw(rows: pd.DataFrame) -> Figure:
    """A panel for every metric and data set."""
    figure, axes = panels(len(GAPS), len(CASES), 2.9)
    n_splits = int(rows.of_seeds.max())
    for line, metric in zip(axes, GAPS, strict=True):
        for ax, data in zip(line, CASES, strict=True):
            here = rows[(rows.metric == metric) & (rows.data == data)]
            for method, color in COLORS.items():
                points = here[here.method == method]
                if len(points):
                    ParetoFrontDisplay(
                        points.test_auc,
                        1 - points.test_gap,
                        performance_std=points.test_auc_ci.fillna(0.0),
                        fairness_std=points.test_gap_ci.fillna(0.0),
                        performance_name="AUC, test",
                        fairness_name="1 - gap, test",
                    ).plot(ax, step=False, error_bars=n_splits > 1, name=method, color=color, markersize=4)
            ax.set(title=f"{data}, {TITLES[metric]}", xlabel="1 - gap, test")
    figure.suptitle("one split" if n_splits == 1 else f"means of {n_splits} splits, 95 % intervals")
    one_legend(figure, axes.flat)
    return figure


def draw_rows(table: pd.DataFrame) -> Figure:
    """Seconds of the pass over a stream and of the program that is left, against rows."""
    figure, axes = panels(1, 1, 3.2)
    ax = axes[0, 0]
    ax.loglog(table.rows, table.pass_seconds, "o-", label="moments, one pass", color="#0072B2")
    ax.loglog(table.rows, table.solve_seconds, "s-", label="the program that is left", color="#D55E00")
    ax.set(xlabel="rows", ylabel="seconds of processor time")
    ax.legend(frameon=False)
    return figure


def write_tables(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """The means, with "none" for no bound, and the seconds of a fit, each as a CSV."""
    for name, part in same_splits(results).items():
        table = means(choose(part))
        table["bound"] = table.bound.map(lambda value: "none" if value == UNCONSTRAINED else f"{value:g}")
        table.round(4).to_csv(folder / f"{stem}_{name}.csv", index=False)
    costs(results).round(2).to_csv(folder / f"{stem}_costs.csv", index=False)
