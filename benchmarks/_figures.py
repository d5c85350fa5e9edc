"""Grids of axes, one legend, and files: what the figures of all benchmarks share. No window is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["columns", "drawn", "one_legend", "panels", "saved"]


def panels(n_rows: int, n_columns: int, height: float = 3.1) -> tuple[Figure, np.ndarray]:
    """A figure with that many axes, always as a table."""
    size = (3.6 * n_columns, height * n_rows + 0.5)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def columns(n_cases: int, n_rows: int, height: float) -> tuple[Figure, list[np.ndarray]]:
    """A figure with a column of axes for every case, three beside each other, so that they can be read on a page."""
    n_blocks, width = -(-n_cases // 3), min(3, n_cases)
    figure, axes = panels(n_blocks * n_rows, width, height)
    figure.set_figwidth(3.1 * width)
    found = [axes[n_rows * block : n_rows * (block + 1), place] for block in range(n_blocks) for place in range(width)]
    for column in found[n_cases:]:
        for ax in column:
            ax.set_axis_off()
    return figure, found[:n_cases]


def one_legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend below the figure in place of those of the axes; an entry for each label."""
    entries: dict[str, Any] = {}
    for ax in axes:
        entries |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    n_columns = min(4, max(1, int(figure.get_figwidth() // 1.9)))
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=n_columns, frameon=False, fontsize=8.5)


def saved(figures: Iterable[tuple[str, Figure]], folder: Path, stem: str, dpi: int = 110) -> list[Path]:
    """Write ``folder/stem_NAME.png`` for one figure after the other, given with its name; an only one may have none."""
    paths = []
    for name, figure in figures:
        paths.append(folder / f"{stem}{name and '_' + name}.png")
        figure.savefig(paths[-1], dpi=dpi, pil_kwargs={"optimize": True})
        plt.close(figure)
    return paths


def drawn(drawings: Mapping[str, tuple[str, Callable[[pd.DataFrame], Figure]]], folder: Path, stem: str) -> list[Path]:
    """Write the figures for which there are tables; each is given by its name, that of its table and its function."""
    sources = {name: folder / f"{stem}_{source}.csv" for name, (source, _) in drawings.items()}
    there = {name: pd.read_csv(path) for name, path in sources.items() if path.exists()}
    return saved(((name, drawings[name][1](table)) for name, table in there.items()), folder, stem)
