"""The figure: values over their bounds on training rows and on new rows, and accuracy beside that of other packages."""

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
from benchmarks.notions.catalogue import ENTRIES

#: Label and colour of the methods that are shown.
STYLES = {
    "linear": ("ours", "#0072B2"),
    "exponentiated_gradient": ("Fairlearn, reduction (random)", "#D55E00"),
    "oxonfair": ("OxonFair (uses the group)", "#882255"),
}
#: Our fits that are compared with another package at its training value.
ANSWERS = {"exponentiated_gradient": "linear_errors", "oxonfair": "linear_groups"}
#: Larger values over their bound are drawn as an arrow here.
_LARGEST = 3.0
#: Ends of the axis of accuracies, in percentage points.
_POINTS = 6.0


def draw_all(tables: dict[str, pd.DataFrame], folder: Path, stem: str) -> list[Path]:
    """PNG with a line of two panels for every data set, from the tables."""
    values, compared = tables["values"], tables["compared"]
    cases = [name for name in CASES if name in set(values.data)]
    notions = [name for name in ENTRIES if name in set(values.notion)]
    size = (9.6, 0.36 * len(notions) * len(cases) + 2.0)
    figure, axes = plt.subplots(len(cases), 2, figsize=size, squeeze=False, layout="constrained", sharey=True)
    for data, (left, right) in zip(cases, axes, strict=True):
        left.set_title(CASES[data].title.replace(", raw", ""), fontsize=11, loc="left")
        _values(left, values[values.data == data], notions)
        _accuracies(right, compared[compared.data == data], notions)
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(notions)), [ENTRIES[name].title for name in notions], fontsize=9)
        ax.set_ylim(len(notions) - 0.5, -0.5)
    _legend(figure)
    return saved([("", figure)], folder, stem)


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(labelsize=8)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color="#EEEEEE", linewidth=0.8)
    ax.set_axisbelow(True)


def _values(ax: Axes, table: pd.DataFrame, notions: list[str]) -> None:
    """Value over the bound of every method, that of the training rows joined with that of new rows."""
    _plain(ax)
    ax.axvline(1, color="#666666", linewidth=1)
    ax.set(xlim=(0, _LARGEST + 0.1), xlabel="value over its bound")
    for place, (method, (_, color)) in enumerate(STYLES.items()):
        rows = table[table.method == method]
        for line in rows.itertuples():
            height = notions.index(str(line.notion)) + 0.24 * (place - 1)
            train, new = (min(float(value), _LARGEST) for value in (line.train_over, line.new_over))  # type: ignore
            ax.plot([train, new], [height, height], color=color, linewidth=1.4)
            ax.plot([train], [height], "o", markersize=4.5, markerfacecolor="white", color=color)
            ax.plot([new], [height], ">" if new == _LARGEST else "o", markersize=5, color=color)


def _accuracies(ax: Axes, table: pd.DataFrame, notions: list[str]) -> None:
    """How much more accurate ours is at the same value on new rows, in percentage points, with the interval."""
    _plain(ax)
    ax.axvline(0, color="#666666", linewidth=1)
    ax.set(xlim=(-_POINTS, _POINTS), xlabel="accuracy, ours minus theirs (points)")
    for place, (peer, method) in enumerate(ANSWERS.items()):
        color = STYLES[peer][1]
        for line in table[(table.method == peer) & (table.against == method)].itertuples():
            height = notions.index(str(line.notion)) + 0.3 * (place - 0.5)
            center, width = -100 * float(line.difference), 100 * float(line.half_width)  # type: ignore[arg-type]
            shown = min(max(center, -_POINTS), _POINTS)
            ax.errorbar(shown, height, xerr=width, fmt="o", color=color, markersize=4.5, elinewidth=1.2)


def _legend(figure: Figure) -> None:
    grey: dict[str, Any] = {"color": "#555555", "linestyle": "none", "marker": "o"}
    entries = [Line2D([], [], color=color, marker="o", label=label) for label, color in STYLES.values()]
    entries += [
        Line2D([], [], markerfacecolor="white", label="training rows", **grey),
        Line2D([], [], label="new rows (arrow: beyond the panel)", **grey),
    ]
    figure.legend(handles=entries, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
