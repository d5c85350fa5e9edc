"""Figures of the benchmark of weakly convex problems, from its tables alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks._figures import columns, drawn, one_legend, panels
from benchmarks.weakly_convex.convergence import VIOLATION
from benchmarks.weakly_convex.parameters import PARAMETERS

__all__ = ["draw_all"]

_COLORS = ("#000000", "#009E73", "#0072B2", "#56B4E9", "#CC79A7", "#E69F00", "#D55E00")
#: Points of a run that are so few that each is marked.
_FEW = 20


def draw_all(folder: Path, stem: str) -> list[Path]:
    """Whatever there are tables for."""
    drawings = {
        "passes": ("way", lambda table: draw_way(table, "passes")),
        "seconds": ("way", lambda table: draw_way(table, "seconds")),
        "neyman_pearson": ("neyman_pearson", draw_neyman_pearson),
        "complexity": ("complexity", draw_complexity),
    }
    return drawn(drawings, folder, stem)


def draw_way(way: pd.DataFrame, against: str) -> Figure:
    """Figures 1 and 2 of the paper: a column for a problem, objective above constraint."""
    cases = list(way.groupby("problem", sort=False))
    figure, axes = columns(len(cases), 2, 2.3)
    for column, (name, case) in zip(axes, cases, strict=True):
        best = case[case.constraint <= VIOLATION].objective.min()
        for color, method in zip(_COLORS, PARAMETERS, strict=True):
            run = case[case.method == method]
            if run.empty:  # not done yet
                continue
            marker = "o" if len(run) < _FEW else ""
            # what breaks the bound may have a smaller objective than the best that keeps it
            for ax, values in zip(column, ((run.objective - best).abs(), run.constraint), strict=True):
                ax.plot(run[against], values, color=color, label=method, lw=1.3, marker=marker, ms=3)
        column[0].set_yscale("log")
        column[0].set_ylim(bottom=1e-5)
        column[1].axhline(0, color="#999999", lw=0.8)
        column[1].set_yscale("symlog", linthresh=1e-3)
        for ax in column:
            ax.set_xscale("symlog", linthresh=10 if against == "passes" else 0.1)
            ax.set_xlim(left=0)
        column[0].set_title(name, fontsize=9)
        column[1].set_xlabel("data passes" if against == "passes" else "seconds of CPU")
    for column in axes[::3]:
        column[0].set_ylabel("|objective - best|")
        column[1].set_ylabel("constraint")
    one_legend(figure, np.concatenate(axes))
    return figure


def draw_neyman_pearson(table: pd.DataFrame) -> Figure:
    """Error of the class without a bound against the bound of the others."""
    names = list(dict.fromkeys(table.data))
    figure, axes = panels(1, len(names), 3.0)
    for ax, name in zip(axes.flat, names, strict=True):
        own = table[table.data == name]
        for color, (method, run) in zip(_COLORS, own.groupby("method", sort=False), strict=False):
            short = method.split(",")[0]
            ax.plot(run.bound, run.priority, "o-", color=color, label=f"{short}, training", ms=4)
            ax.plot(run.bound, run.priority_test, "o--", color=color, label="test", ms=4, mfc="none")
        ax.set(title=name, xlabel="bound on the error of the others", ylabel="error of the class without", xscale="log")
        _plain_ticks(ax, own.bound)
    one_legend(figure, axes.flat)
    return figure


def draw_complexity(table: pd.DataFrame) -> Figure:
    """Subgradients against eps, beside the second and the fourth power of its inverse."""
    figure, axes = panels(1, 1, 3.2)
    ax = axes.flat[0]
    ax.plot(table.eps, table.n_subgradients, "o", color=_COLORS[1], ms=4, label="ipc, five starts")
    largest = table.eps.max()
    first = table[table.eps == largest].n_subgradients.mean()
    grid = np.geomspace(table.eps.min(), largest, 50)
    for power, style in ((2, ":"), (4, "--")):
        ax.plot(grid, first * (largest / grid) ** power, style, color="#555555", label=rf"$\epsilon^{{-{power}}}$")
    ax.set(xscale="log", yscale="log", xlabel=r"$\epsilon$", ylabel="subgradients")
    _plain_ticks(ax, table.eps)
    ax.invert_xaxis()
    one_legend(figure, axes.flat)
    return figure


def _plain_ticks(ax: Axes, values: pd.Series) -> None:
    """A tick at every value."""
    ticks = sorted(set(values))
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
