"""Figures of the benchmark of certificates, from its tables alone."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from benchmarks._figures import drawn, one_legend, panels, saved
from benchmarks.certification.coverage import DELTA

__all__ = ["draw_all"]

#: Colour and marker of every method.
_METHODS = {
    "betting": ("#F0E442", "*"),
    "hoeffding": ("#56B4E9", "s"),
    "binomial": ("#0072B2", "o"),
    "ustatistic": ("#009E73", "^"),
    "dkw": ("#CC79A7", "D"),
    "unconditional": ("#000000", "P"),
    "bootstrap": ("#D55E00", "x"),
}
_BOUNDS = ("rates", "scores", "bootstrap")
_SIZES = ("#0072B2", "#D55E00")


def draw_all(folder: Path, stem: str) -> list[Path]:
    """Whatever there are tables for."""
    bounds = [pd.read_csv(path) for name in _BOUNDS if (path := folder / f"{stem}_{name}.csv").exists()]
    coverage = [("coverage", draw_coverage(pd.concat(bounds, ignore_index=True)))] if bounds else []
    return [*saved(coverage, folder, stem), *drawn({"cost": ("cost", draw_cost)}, folder, stem)]


def draw_coverage(table: pd.DataFrame) -> Figure:
    """How often bounds are broken, by population, and how wide they are where there are gaps."""
    shown = table["metric"] + table["parameters"].fillna("").map(lambda text: f" ({text})" if text else "")
    table = table.assign(row=shown)
    names = list(dict.fromkeys(table["row"]))
    populations = [name for name in dict.fromkeys(table["population"]) if name != "no gaps, 20 rows"]
    figure, axes = plt.subplots(
        1, len(populations) + 1, figsize=(12.5, 0.24 * len(names) + 2.5), sharey=True, layout="constrained"
    )
    for ax, population in zip(axes, populations, strict=False):
        _dots(ax, table[table["population"] == population], names, "violated")
        ax.axvline(DELTA, color="#999999", lw=0.8)
        ax.set_xlim(-0.004, max(0.105, ax.get_xlim()[1]))
        ax.set_xlabel("broken", fontsize=9)
        ax.set_title(population, fontsize=9)
    width = table[table["population"] == populations[0]]
    _dots(axes[-1], width[width["metric"] != "loss_parity_gap"], names, "mean_width")
    axes[-1].set_xlim(left=0)
    axes[-1].set_xlabel("bound - gap of the sample", fontsize=9)
    axes[-1].set_title(f"width, {populations[0]}", fontsize=9)
    axes[0].set_yticks(range(len(names)), names, fontsize=8)
    axes[0].invert_yaxis()
    one_legend(figure, axes)
    return figure


def _dots(ax: plt.Axes, table: pd.DataFrame, names: list[str], column: str) -> None:
    for method, (color, marker) in _METHODS.items():
        own = table[table["method"] == method]
        places = [names.index(name) for name in own["row"]]
        ax.plot(own[column], places, ls="", marker=marker, color=color, ms=5, label=method)
    ax.grid(axis="y", color="#EEEEEE")
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)


def draw_cost(table: pd.DataFrame) -> Figure:
    """Accuracy and population gap against the rows set aside; the plain estimator without any at zero."""
    populations = list(dict.fromkeys(table["population"]))
    figure, axes = panels(2, len(populations), 2.8)
    for column, population in zip(axes.T, populations, strict=True):
        of = table[table["population"] == population]
        for color, (size, runs) in zip(_SIZES, of.groupby("n"), strict=False):
            mean = runs.groupby("calibration_fraction").mean(numeric_only=True).assign(
                certified=runs.groupby("calibration_fraction")["certified"].mean()
            )  # fmt: skip
            for ax, name in zip(column, ("accuracy", "population_gap"), strict=True):
                ax.plot(mean.index, mean[name], color=color, lw=1.2, label=f"{size:,} rows")
                ax.scatter(runs["calibration_fraction"], runs[name], s=7, color=color, alpha=0.35, lw=0)
            for fraction, certified in mean["certified"].iloc[1:].items():
                column[0].annotate(
                    f"{certified:.0%}", (fraction, mean["accuracy"][fraction]), xytext=(0, 5), color=color,
                    textcoords="offset points", ha="center", fontsize=7,
                )  # fmt: skip
        column[0].set_title(f"{population}, kappa = {of['kappa'].iloc[0]:g}", fontsize=9)
        column[1].axhline(of["kappa"].iloc[0], color="#999999", lw=0.8)
        column[1].set_ylim(bottom=0)
        column[1].set_xlabel("share of the rows set aside")
    axes[0, 0].set_ylabel("accuracy")
    axes[1, 0].set_ylabel("gap in the population")
    one_legend(figure, axes.flat)
    return figure
