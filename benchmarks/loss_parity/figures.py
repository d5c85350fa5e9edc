"""Figures from the results: the way of every method, its predictions, and its metrics side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks._figures import one_legend, panels, saved
from benchmarks.loss_parity.constraints import CONSTRAINTS
from benchmarks.loss_parity.datasets import DATASETS
from benchmarks.loss_parity.methods import METHODS
from benchmarks.loss_parity.tasks import KAPPA, PARTS
from fairconstrained.plotting import ScoreDensityDisplay

#: Columns of panels next to each other.
WIDE = 6
POINTS = 200
#: Losses above are cut off: a coin toss has 0.69.
MOST = 1.0
MOST_GAP = 0.25
PART_COLORS = {"train": "#0072B2", "test": "#D55E00"}
RADAR = ("Ind", "Sp", "Ina", "Sf")
#: Of the radar plot, in the order of the methods that are not like others.
COLORS = ("#777777", "#56B4E9", "#009E73", "#0072B2", "#CC79A7", "#882255", "#E69F00", "#000000", "#D55E00", "#999933")


def on_grid(history: pd.DataFrame, value: str, grid: np.ndarray) -> np.ndarray:
    """A value of every run at the given seconds, its last one before each; NaN before the first. A line for a run."""
    lines = []
    for _, run in history.groupby("task"):
        place = np.searchsorted(run.seconds.to_numpy(), grid, side="right") - 1
        lines.append(np.where(place >= 0, run[value].to_numpy()[place], np.nan))
    return np.stack(lines)


def draw_way(history: pd.DataFrame) -> Figure:
    """Figures 1 and 2 of the paper: loss and signed gap against time on both parts; medians, means and quartiles."""
    names = _present(history)
    second = "gap" if history.train_signed.isna().all() else "signed"
    bands = -(-len(names) // WIDE)
    figure, axes = panels(2 * bands, min(len(names), WIDE), 1.8)
    figure.set_figwidth(2.15 * min(len(names), WIDE))
    first, last = history.seconds.quantile(0.01), history.seconds.max()
    for place, name in enumerate(names):
        band, column = divmod(place, WIDE)
        own = history[history.method == name]
        for line, value in enumerate(("loss", second)):
            ax = axes[2 * band + line, column]
            for part in PARTS:
                _quartiles(ax, own, f"{part}_{value}", part)
            ax.set(xscale="log", xlim=(first, 1.1 * last))
            ax.xaxis.set_minor_formatter(NullFormatter())  # a short range would show every digit
            ax.tick_params(labelsize=7)
            if value == second:
                for bound in (-KAPPA, KAPPA):
                    ax.axhline(bound, color="black", linewidth=0.8, linestyle=":", label="kappa")
                ax.set_xlabel("seconds", fontsize=8)
            if not column:
                ax.set_ylabel({"signed": "signed gap"}.get(value, value))
        axes[2 * band, column].set_title(METHODS[name].label, fontsize=9)
    _share_limits([axes[2 * band] for band in range(bands)], len(names), (0.0, MOST))
    _share_limits([axes[2 * band + 1] for band in range(bands)], len(names), (-MOST_GAP, MOST_GAP))
    for ax in axes[-2:, (len(names) - 1) % WIDE + 1 :].flat:
        ax.set_visible(False)
    one_legend(figure, axes.flat)
    return figure


def _quartiles(ax: Axes, history: pd.DataFrame, value: str, part: str) -> None:
    first = history.groupby("task").seconds.min().max()  # from when on all runs have a record
    grid = np.geomspace(first, history.seconds.max(), POINTS).clip(min=first)
    values = on_grid(history, value, grid)
    low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75), axis=0)
    style = {"linewidth": 1.2, "marker": ".", "markevery": [-1]}  # a dot where it ends
    ax.plot(grid, middle, color=PART_COLORS[part], label=f"{part}, median", **style)
    ax.plot(grid, np.nanmean(values, axis=0), color=PART_COLORS[part], linestyle="--", linewidth=0.8, label="mean")
    ax.fill_between(grid, low, high, color=PART_COLORS[part], alpha=0.25, linewidth=0, label=f"{part}, quartiles")


def _share_limits(rows: list[np.ndarray], n_panels: int, within: tuple[float, float]) -> None:
    """Give all panels of one kind one vertical range, ``within`` limits, so that columns can be compared."""
    axes = [ax for row in rows for ax in row][:n_panels]
    limits = np.array([ax.get_ylim() for ax in axes])
    for ax in axes:
        ax.set_ylim(max(limits[:, 0].min(), within[0]), min(limits[:, 1].max(), within[1]))
        if ax is not axes[0] and ax not in [row[0] for row in rows]:
            ax.tick_params(labelleft=False)


def draw_densities(predictions: pd.DataFrame) -> Figure:
    """Figure 3 of the paper: predicted probabilities of the test rows by group, of all runs together."""
    names = _present(predictions)
    lines = -(-len(names) // WIDE)
    figure, axes = panels(lines, min(len(names), WIDE), 1.9)
    figure.set_figwidth(2.15 * min(len(names), WIDE))
    for ax, name in zip(axes.flat, names, strict=False):
        own = predictions[predictions.method == name]
        display = ScoreDensityDisplay.from_predictions(
            own.probability, sensitive_features=own.group, method="hist", ax=ax, score_name=""
        )
        for group, curve in display.lines_.items():
            curve.set(label=str(group), linewidth=1.1)
        ax.set_title(METHODS[name].label, fontsize=9)
        ax.set(ylabel="", xlim=(0, 1), yticks=[])
        ax.tick_params(labelsize=7)
    for ax in axes.flat[len(names) :]:
        ax.set_visible(False)
    one_legend(figure, axes.flat)
    return figure


def draw_radar(results: pd.DataFrame) -> Figure:
    """Figure 4 of the paper: means of the fairness metrics and of the inaccuracy; smaller is better."""
    angles = np.linspace(0, 2 * np.pi, len(RADAR), endpoint=False)
    around = np.append(angles, 0.0)
    figure, axes = plt.subplots(
        1, len(PARTS), figsize=(9.5, 5.2), subplot_kw={"projection": "polar"}, layout="constrained"
    )
    for ax, part in zip(axes, PARTS, strict=True):
        for name in _present(results):
            own = results[results.method == name][[f"{part}_{metric}" for metric in RADAR]].mean().to_numpy()
            ax.plot(around, np.append(own, own[0]), label=METHODS[name].label, **_style(name))
        ax.set_xticks(angles, RADAR)
        ax.set_title({"train": "training part", "test": "test part"}[part], fontsize=10)
        ax.tick_params(axis="y", labelsize=7)
        ax.set_rlabel_position(45)
    one_legend(figure, axes.flat)
    return figure


def _style(name: str) -> dict[str, Any]:
    """A colour of its own, or that of the method which it is another implementation of, dashed."""
    own = [other for other, method in METHODS.items() if not method.like]
    like = METHODS[name].like or name
    return {
        "color": COLORS[own.index(like) % len(COLORS)],
        "linestyle": "-" if like == name else "--",
        "linewidth": 2.4 if name == "auto" else 1.3,
    }


def _present(table: pd.DataFrame) -> list[str]:
    return [name for name in METHODS if name in set(table.method)]


class Drawing(NamedTuple):
    """A figure: its function, the table that it is drawn from (results, histories or probabilities), its subject."""

    draw: Callable[[pd.DataFrame], Figure]
    table: str
    shows: str


FIGURES = {
    "way": Drawing(draw_way, "histories", "mean loss and gap against processor time"),
    "densities": Drawing(draw_densities, "probabilities", "predicted probabilities, test part"),
    "radar": Drawing(draw_radar, "results", "fairness metrics and inaccuracy"),
}


def draw_all(tables: dict[str, pd.DataFrame], folder: Path, stem: str) -> list[Path]:
    """Write ``folder/stem_DATASET_SPLIT_CONSTRAINT_NAME.png`` for all that there is."""
    return saved(_figures(tables), folder, stem, dpi=100)


def _figures(tables: dict[str, pd.DataFrame]) -> Iterator[tuple[str, Figure]]:
    for name, drawing in FIGURES.items():
        for (data, split, constraint), rows in tables[drawing.table].groupby(["dataset", "split", "constraint"]):
            figure = drawing.draw(rows)
            title = f"{DATASETS[data].title}, {split} split, {CONSTRAINTS[constraint].title}: {drawing.shows}"
            figure.suptitle(title, fontsize=10)
            yield f"{data}_{split}_{constraint}_{name}", figure


def draw_steps(table: pd.DataFrame) -> Figure:
    """Time of a step against the number of groups, a curve for every size of the mini-batches."""
    kinds = list(dict.fromkeys(table.solver))
    figure, axes = panels(1, len(kinds), 2.9)
    for ax, kind in zip(axes.flat, kinds, strict=True):
        for place, (batch, rows) in enumerate(table[table.solver == kind].groupby("batch")):
            ax.loglog(
                rows.groups, rows.microseconds, "os^"[place % 3] + "-", color=COLORS[place + 1], label=f"batch {batch}"
            )
        ax.set(xlabel="groups", ylabel="microseconds of a step", title=kind)
        ax.set_ylim(table.microseconds.min() / 2, table.microseconds.max() * 2)
    one_legend(figure, axes.flat)
    return figure
