"""Figures and tables of the AUC fairness benchmark, from its results alone."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from scipy.stats import t as student

from benchmarks.auc_fairness.tasks import CASES, GAPS, METHODS, UNCONSTRAINED
from benchmarks.partial_fairness.figures import one_legend, panels
from fairconstrained.plotting import ParetoFrontDisplay

COLORS = dict(
    zip(METHODS, ("#0072B2", "#56B4E9", "#D55E00", "#E69F00", "#E69F00", "#009E73", "#CC79A7", "#777777"), strict=True)
)
TITLES = {"group": "group", "inter_group": "inter-group", "intra_group": "intra-group"}
POINT = ["data", "metric", "model", "method", "parameter"]


def means(results: pd.DataFrame) -> pd.DataFrame:
    """Means over the seeds, and half the widths of their 95 % intervals (Student's t; 0 for one seed)."""
    grouped = results.groupby(POINT, sort=False)
    table = grouped[["test_auc", "test_gap", "train_gap", "seconds"]].mean()
    count = grouped.test_auc.count()
    for name in ("test_auc", "test_gap"):
        factor = student.ppf(0.975, (count - 1).clip(lower=1)) / count**0.5
        table[f"{name}_ci"] = (grouped[name].std() * factor).fillna(0.0)
    return table.assign(seeds=count).reset_index()


def draw_fronts(results: pd.DataFrame, folder: Path, stem: str) -> list[Path]:
    """One PNG for every model: AUC against the gap on the test part, metrics below each other."""
    paths = []
    for model, rows in means(results).groupby("model"):
        figure, axes = panels(len(GAPS), len(CASES), 2.9)
        for line, metric in zip(axes, GAPS, strict=True):
            for ax, data in zip(line, CASES, strict=True):
                here = rows[(rows.metric == metric) & (rows.data == data)]
                for method, color in COLORS.items():
                    points = here[here.method == method]
                    if len(points):
                        ParetoFrontDisplay(
                            points.test_auc,
                            1 - points.test_gap,
                            performance_std=points.test_auc_ci,
                            fairness_std=points.test_gap_ci,
                            performance_name="AUC, test",
                            fairness_name="1 - gap, test",
                        ).plot(ax, step=False, error_bars=True, name=method, color=color, markersize=4)
                ax.set(title=f"{data}, {TITLES[metric]}", xlabel="1 - gap, test")
        one_legend(figure, axes.flat)
        paths.append(folder / f"{stem}_{model}.png")
        figure.savefig(paths[-1], dpi=110)
        plt.close(figure)
    return paths


def draw_rows(folder: Path) -> list[Path]:
    """Seconds of the pass over a stream and of the program that is left, against rows."""
    source = folder / "auc_fairness_rows.csv"
    if not source.exists():
        return []
    table = pd.read_csv(source)
    figure, axes = panels(1, 1, 3.2)
    ax = axes[0, 0]
    ax.loglog(table.rows, table.pass_seconds, "o-", label="moments, one pass", color="#0072B2")
    ax.loglog(table.rows, table.solve_seconds, "s-", label="the program that is left", color="#D55E00")
    ax.set(xlabel="rows", ylabel="seconds of processor time")
    ax.legend(frameon=False)
    path = folder / "auc_fairness_rows.png"
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return [path]


def write_tables(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """The means as a CSV, "none" for no bound."""
    table = means(results)
    table["parameter"] = table.parameter.map(lambda value: "none" if value == UNCONSTRAINED else f"{value:g}")
    table.round(4).to_csv(folder / f"{stem}_fronts.csv", index=False)
