"""The figure: gaps of the training rows and of new rows, joined by a line, beside what sampling explains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from benchmarks._figures import saved
from benchmarks.any_model.data import CASES
from benchmarks.any_model.notions import NOTIONS

STYLES = {"before": ("before", "#D55E00"), "default": ("default", "#0072B2"), "promise": ("promise", "#009E73")}
#: Bound that is shown.
SHOWN = 0.02
#: Panels beside each other, so that they can be read on a page.
_COLUMNS = 3
#: Larger gaps are drawn as an arrow here.
_LARGEST = 0.102
_MARK: dict[str, Any] = {"markersize": 11, "markeredgewidth": 1.6}


def draw_all(table: pd.DataFrame, folder: Path, stem: str) -> list[Path]:
    """PNG with a panel for every notion and data set, from the table of cells."""
    shown = table[(table.kappa == SHOWN) & table.method.isin(list(STYLES))]
    notions = [name for name in NOTIONS if name in set(shown.notion)]
    cases = [name for name in CASES if name in set(shown.data)]
    if not notions:
        return []
    blocks = [cases[start : start + _COLUMNS] for start in range(0, len(cases), _COLUMNS)]
    figure = plt.figure(figsize=(9.3, len(blocks) * (0.85 * len(notions) + 0.4) + 1.2), layout="constrained")
    for block, part in zip(blocks, figure.subfigures(len(blocks), 1, squeeze=False).flat, strict=True):
        axes = part.subplots(len(notions), _COLUMNS, squeeze=False)
        for line, notion in zip(axes, notions, strict=True):
            for ax, data in zip(line, block, strict=False):
                _panel(ax, shown[(shown.notion == notion) & (shown.data == data)])
                if ax in axes[0]:
                    ax.set_title(CASES[data].title.replace(", 100,000 rows", ""), fontsize=11)
                if ax not in axes[-1]:
                    ax.tick_params(labelbottom=False)
            for ax in line[len(block) :]:
                ax.set_axis_off()
            name = NOTIONS[notion].title.replace(", ", ",\n")
            line[0].set_ylabel(name, fontsize=9, rotation=0, ha="right", va="center")
    figure.supxlabel(f"gap; the bound is {SHOWN:g}. Mean over the splits", fontsize=10)
    _legend(figure)
    return saved([("", figure)], folder, stem)


def _panel(ax: Axes, table: pd.DataFrame) -> None:
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set(xlim=(0, 0.105), ylim=(2.6, -0.6), yticks=[], xticks=[0, 0.02, 0.05, 0.1])
    ax.tick_params(labelsize=8)
    ax.axvline(SHOWN, color="#BBBBBB", linewidth=0.8, zorder=0)
    for place, (method, (_, color)) in enumerate(STYLES.items()):
        for train, new, floor in table.loc[
            table.method == method, ["train_gap", "test_gap", "floor_of_several"]
        ].to_numpy():
            ends = [min(float(train), _LARGEST), min(float(new), _LARGEST)]
            ax.plot(ends, [place, place], color=color, linewidth=1.6)
            ax.plot(ends[:1], [place], "o", markersize=5, markerfacecolor="white", color=color)
            ax.plot(ends[1:], [place], "o" if new <= _LARGEST else ">", markersize=6, color=color)
            ax.plot([min(float(floor), _LARGEST)], [place], "|", color="black", **_MARK, zorder=5)


def _legend(figure: Figure) -> None:
    entries = [Line2D([], [], color=color, marker="o", label=label) for label, color in STYLES.values()]
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "none"}
    entries += [
        Line2D([], [], marker="o", markerfacecolor="white", label="training rows", **grey),
        Line2D([], [], marker="o", label="new rows (arrow: beyond the panel)", **grey),
        Line2D([], [], marker="|", color="black", linestyle="none", label="explained by sampling alone", **_MARK),
    ]  # fmt: skip
    figure.legend(handles=entries, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
