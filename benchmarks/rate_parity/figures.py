"""Figures of the rate parity benchmark, from its tables alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from benchmarks._figures import columns, drawn, one_legend, panels
from benchmarks.rate_parity.convergence import VIOLATION
from benchmarks.rate_parity.parameters import LINEAR

_COLORS = ("#000000", "#D55E00", "#E69F00", "#009E73", "#56B4E9", "#0072B2", "#CC79A7", "#777777", "#F0E442")
_QUANTITIES = {"objective": "|loss - best|", "violation": "gap above kappa", "distance": "near-stationarity"}


def draw_all(folder: Path, stem: str) -> list[Path]:
    """Whatever there are tables for."""
    drawings = {
        "way": draw_way,
        "duals": draw_duals,
        "epochs": draw_epochs,
        "web_search_epochs": draw_web_search,
    }
    return drawn({name: (name, draw) for name, draw in drawings.items()}, folder, stem)


def draw_way(way: pd.DataFrame) -> Figure:
    """Figures 1 and 2 of the paper: a column for a problem, lines for loss, violation and near-stationarity."""
    cases = list(way.groupby(["data", "constraint"], sort=False))
    figure, axes = columns(len(cases), len(_QUANTITIES), 2.1)
    for column, ((data, constraint), case) in zip(axes, cases, strict=True):
        best = case[case.violation <= VIOLATION].objective.min()
        for color, method in zip(_COLORS, LINEAR, strict=False):
            run = case[case.method == method]
            for ax, quantity in zip(column, _QUANTITIES, strict=True):
                own = run.dropna(subset=quantity)
                # what breaks the bound may have less loss than the best that keeps it
                values = (own.objective - best).abs() if quantity == "objective" else own[quantity]
                ax.plot(own.seconds, values, color=color, label=method, lw=1.2)
        for ax, floor in zip(column, (2e-4, 1e-5, 1e-4), strict=True):
            ax.set(xscale="log", yscale="log")
            ax.set_ylim(bottom=floor)
        column[0].set_title(f"{data}, {constraint.replace('_', ' ')}", fontsize=9)
        column[-1].set_xlabel("seconds")
    for column in axes[::3]:
        for ax, label in zip(column, _QUANTITIES.values(), strict=True):
            ax.set_ylabel(label)
    one_legend(figure, np.concatenate(axes))
    return figure


def draw_duals(way: pd.DataFrame) -> Figure:
    """Figures 4 to 6 of the paper: what alpha and beta change, and how the multipliers approach each other."""
    columns = {
        "alpha, Adult": [name for name in way.method.unique() if name.startswith("alpha")],
        "beta, Adult": [name for name in way.method.unique() if name.startswith("beta")],
    }
    figure, axes = panels(3, 3, 2.3)
    figure.set_figwidth(10)
    quantities = {"objective": "loss", "violation": "gap above kappa", "residual": "residual (Theorem 1)"}
    for column, (title, names) in zip(axes.T, columns.items(), strict=False):
        for ax, (quantity, label) in zip(column, quantities.items(), strict=True):
            for color, name in zip(_COLORS, names, strict=False):
                run = way[way.method == name].dropna(subset=quantity)
                ax.plot(run.n_iter, run[quantity], color=color, label=name, lw=1.2)
            ax.set(xscale="log", yscale="linear" if quantity == "objective" else "log", ylabel=label)
            ax.legend(fontsize=6)
        column[0].set_title(title, fontsize=9)
    duals = {"dual_distance": "|lambda - mu|", "multiplier": "largest lambda", "auxiliary": "largest mu"}
    for ax, (quantity, label) in zip(axes[:, 2], duals.items(), strict=True):
        for color, (data, runs) in zip(_COLORS, way.groupby("data", sort=False), strict=False):
            for name, style in (("plada", "-"), ("plada, published", ":")):
                run = runs[runs.method == name]
                ax.plot(run.n_iter, run[quantity], color=color, ls=style, label=f"{data}, {name}", lw=1.2)
        ax.set(xscale="log", yscale="log" if quantity == "dual_distance" else "linear", ylabel=label)
    axes[0, 2].set_title("multipliers", fontsize=9)
    axes[0, 2].legend(fontsize=6)
    for ax in axes[-1]:
        ax.set_xlabel("iterations")
        ax.xaxis.set_minor_formatter(NullFormatter())
    return figure


def draw_epochs(epochs: pd.DataFrame) -> Figure:
    """Figure 3 of the paper: medians over the splits against epochs, on the training part and on new communities.

    A method that a message stopped on some splits ends where the last split does.
    """
    figure, axes = panels(4, 2, 2.3)
    epochs = epochs.dropna(subset="epoch")
    colors = dict(zip(dict.fromkeys(epochs.method), _COLORS, strict=False))
    for line, (bound, runs) in zip(axes.reshape(2, 4), epochs.groupby("bound", sort=False), strict=True):
        values = {"log loss": "log_loss", f"{bound} excess": f"{bound}_excess"}
        panels_of = [(part, label, name) for label, name in values.items() for part in ("train", "test")]
        for ax, (part, label, name) in zip(line, panels_of, strict=True):
            for method, own in runs.groupby("method", sort=False):
                curve = own.groupby("epoch")[f"{part}_{name}"].median()
                ax.plot(curve.index, curve, color=colors[method], label=method, lw=1.2)
            ax.set_title(f"{label}, {part}", fontsize=9)
            ax.set_xlabel("epochs")
            if "excess" in name:
                ax.set_yscale("symlog", linthresh=0.1)
            else:
                ax.set_yscale("log")
    one_legend(figure, axes.flat)
    return figure


def draw_web_search(epochs: pd.DataFrame) -> Figure:
    """Figure 7 of the paper: loss and gap on the training queries against epochs, means over the repetitions."""
    figure, axes = panels(1, 2, 2.6)
    epochs = epochs.dropna(subset="epoch")
    for ax, (name, label) in zip(
        axes.flat, {"objective": "loss", "train_gap": "gap of the pairs"}.items(), strict=True
    ):
        for color, (method, own) in zip(_COLORS, epochs.groupby("method", sort=False), strict=False):
            curve = own.groupby("epoch")[name].mean()
            ax.plot(curve.index, curve, color=color, label=method, lw=1.2)
        ax.set(xlabel="epochs", ylabel=label)
    one_legend(figure, axes.flat)
    return figure
