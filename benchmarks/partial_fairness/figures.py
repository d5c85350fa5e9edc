"""Figures from the results alone, one PNG for each; what has no results yet is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.partial_fairness.cases import CASES, NOTIONS
from benchmarks.partial_fairness.tables import POINT, choose, matched, means, our_fits, partial_fits
from benchmarks.partial_fairness.tasks import OURS, PAPERS_SETTING, UNCONSTRAINED
from fairconstrained.plotting import ParetoFrontDisplay, ScoreCurveDisplay, ScoreDensityDisplay

#: Label and colour of every method, ours first.
METHODS = {
    OURS: ("partial parity (ours)", "#0072B2"),
    "truncated": ("ours, truncated loss", "#56B4E9"),
    "zero-one": ("ours, zero-one loss", "#882255"),
    "regularised": ("regularisation", "#D55E00"),
    "group_auc": ("group AUC", "#009E73"),
    "inter_group": ("inter-group AUC", "#CC79A7"),
    "intra_group": ("intra-group AUC", "#E69F00"),
    "exponentiated_gradient": ("Fairlearn's reduction", "#777777"),
}
PUBLISHED = {"linestyle": "none", "marker": "D", "markersize": 4.5, "color": "black", "zorder": 5}
FAIRNESS, ACCURACY = "1 - rank gap, test", "accuracy, test"
TITLES = {"a9a": "a9a", "bank": "bank", "law_school": "law school"}


def panels(n_rows: int, n_columns: int, height: float = 3.1) -> tuple[Figure, np.ndarray]:
    """A figure with that many axes, always as a table."""
    size = (3.6 * n_columns, height * n_rows + 0.5)
    figure, axes = plt.subplots(n_rows, n_columns, figsize=size, squeeze=False, layout="constrained")
    for ax in axes.flat:
        ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def one_legend(figure: Figure, axes: Iterable[Axes]) -> None:
    """One legend below the figure in place of those of the axes; an entry for each label."""
    entries: dict[str, Any] = {}
    for ax in axes:
        entries |= {label: handle for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        if ax.get_legend() is not None:
            ax.get_legend().remove()
    figure.legend(entries.values(), entries, loc="outside lower center", ncols=4, frameon=False, fontsize=8.5)


def title_of(data: str) -> str:
    low, high = CASES[data].interval
    return f"{TITLES[data]}, ranks {low:.0%} to {high:.0%}"


def front(ax: Axes, points: pd.DataFrame, label: str, color: str) -> None:
    """Means over the seeds with their 95 % intervals; points that another one beats are pale."""
    if points.empty:
        return
    points = points.fillna({"accuracy_ci": 0.0, "fairness_ci": 0.0})
    display = ParetoFrontDisplay(
        points.accuracy,
        points.fairness,
        performance_std=points.accuracy_ci,
        fairness_std=points.fairness_ci,
        performance_name=ACCURACY,
        fairness_name="1 - rank gap on test",
    )
    display.plot(ax, step=False, error_bars=True, name=label, color=color, markersize=4)
    ax.set_xlabel(FAIRNESS)


def draw_pareto(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 1; all methods but those of another objective begin at the same unconstrained model."""
    rows = results[(results.experiment == "pareto") & (results.notion == notion)]
    method = np.where(rows.setting == PAPERS_SETTING, rows.method, rows.setting.str.split().str[0])
    points = means(rows.assign(method=method), ["data", "method", "parameter"])
    figure, axes = panels(1, len(CASES), 3.6)
    for ax, (data, case) in zip(axes.flat, CASES.items(), strict=True):
        here = points[points.data == data]
        shared = here[(here.method == OURS) & (here.parameter == UNCONSTRAINED)]
        for method, (label, color) in METHODS.items():
            own = here[here.method == method]
            begins = len(own) and method not in (OURS, "truncated", "zero-one", "exponentiated_gradient")
            front(ax, pd.concat([shared, own]) if begins else own, label, color)
        if notion == "pSP":
            ax.plot(*zip(*case.published["partial"], strict=True), label="published", **PUBLISHED)
        ax.set_title(title_of(data), fontsize=10)
    one_legend(figure, axes.flat)
    return figure


def draw_published(results: pd.DataFrame, notion: str) -> Figure:
    """Our front, by the choice on validation, beside the published points."""
    points = means(choose(our_fits(results)), POINT)
    figure, axes = panels(1, len(CASES), 3.4)
    for ax, (data, case) in zip(axes.flat, CASES.items(), strict=True):
        for model, label, color in (("interactions", "group interactions", "#0072B2"), ("plain", "without", "#009E73")):
            front(ax, points[(points.data == data) & (points.model == model)], label, color)
        ax.plot(*zip(*case.published["partial"], strict=True), label="published", **PUBLISHED)
        ax.set_title(title_of(data), fontsize=10)
    one_legend(figure, axes.flat)
    return figure


def draw_variant(experiment: str, label: str, published: str) -> Callable[[pd.DataFrame, str], Figure]:
    """Tables 3 and 4 as a figure: the default and a variant, and the published points of both."""

    def draw(results: pd.DataFrame, notion: str) -> Figure:
        unconstrained = partial_fits(results).query("parameter == @UNCONSTRAINED")
        variant = pd.concat([unconstrained, results[results.experiment == experiment]])
        kinds = (("partial, 10 levels", "#0072B2", partial_fits(results)), (label, "#D55E00", variant))
        figure, axes = panels(1, len(CASES), 3.4)
        for ax, (data, case) in zip(axes.flat, CASES.items(), strict=True):
            for name, color, rows in kinds:
                rows = rows[(rows.data == data) & (rows.setting == PAPERS_SETTING)]
                front(ax, means(rows, ["parameter"]), name, color)
            for key, color in (("partial", "#0072B2"), (published, "#D55E00")):
                style = PUBLISHED | {"color": color, "markerfacecolor": "none"}
                ax.plot(*zip(*case.published[key], strict=True), label=f"published, {key}", **style)
            ax.set_title(title_of(data), fontsize=10)
        one_legend(figure, axes.flat)
        return figure

    return draw


def shown_kappas(data: str, notion: str) -> dict[float, str]:
    """Those of the curves and densities, with their names."""
    return {UNCONSTRAINED: "unconstrained"} | {k: f"$\\kappa$ = {k:g}" for k in CASES[data].curves[notion]}


def draw_curves(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 2: the share of one group above a threshold against that of the other one."""
    rows = results[(results.experiment == "scores") & (results.notion == notion)]
    figure, axes = panels(1, len(CASES), 3.9)
    for ax, (data, case) in zip(axes.flat, CASES.items(), strict=True):
        for kappa, name in shown_kappas(data, notion).items():
            found = rows[(rows.data == data) & (rows.parameter == kappa)]
            if len(found):
                ScoreCurveDisplay.from_predictions(
                    found.score, sensitive_features=found.group, interval=case.interval, name=name, ax=ax
                )
        ax.set_title(title_of(data), fontsize=10)
        if ax.get_legend() is not None:
            curves = [line for line in ax.lines if str(line.get_label()) in shown_kappas(data, notion).values()]
            ax.legend(handles=curves, fontsize=7, frameon=False, loc="lower right")
    return figure


def draw_densities(results: pd.DataFrame, notion: str) -> Figure:
    """Figures 3 to 8: where the scores of the groups lie, the interval shaded."""
    rows = results[(results.experiment == "scores") & (results.notion == notion)]
    figure, axes = panels(len(CASES), 4, 2.3)
    for line, (data, case) in zip(axes, CASES.items(), strict=True):
        for ax, (kappa, name) in zip(line, shown_kappas(data, notion).items(), strict=True):
            found = rows[(rows.data == data) & (rows.parameter == kappa)]
            if found.empty:
                continue
            display = ScoreDensityDisplay.from_predictions(
                found.score, sensitive_features=found.group, interval=case.interval, ax=ax
            )
            for group, curve in display.lines_.items():
                curve.set_label(str(group))  # the number of quantiles says nothing
            ax.legend(handles=display.lines_.values(), fontsize=7, frameon=False)
            ax.set_title(f"{TITLES[data]}, {name}", fontsize=9)
            ax.set(xlabel="", ylabel="", yticks=[])
    return figure


def draw_robustness(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 9: accuracy and fairness by interval, the baselines at the accuracy nearest to ours."""
    points = means(matched(results), ["data", "interval", "method"])
    figure, axes = panels(2, len(CASES), 2.4)
    for column, (data, case) in enumerate(CASES.items()):
        names = [f"{low:g}-{high:g}" for low, high in case.intervals]
        present = [method for method in METHODS if method in set(points.method)]
        for place, method in enumerate(present):
            mine = points[(points.data == data) & (points.method == method)].set_index("interval").reindex(names)
            x = np.arange(len(names)) + 0.16 * (place - (len(present) - 1) / 2)
            label, color = METHODS[method]
            for ax, value in zip(axes[:, column], ("accuracy", "fairness"), strict=True):
                ax.bar(
                    x,
                    mine[value],
                    0.15,
                    yerr=mine[f"{value}_ci"].fillna(0),
                    color=color,
                    label=label,
                    error_kw={"lw": 0.7},
                )
        axes[0, column].set(title=TITLES[data], ylim=(0.6, 0.95))
        for ax, name in zip(axes[:, column], (ACCURACY, FAIRNESS), strict=True):
            ax.set_xticks(range(len(names)), names, fontsize=7)
            ax.set_ylabel(name if column == 0 else "")
    axes[1, 1].set_xlabel("interval of ranks")
    one_legend(figure, axes.flat)
    return figure


def draw_convergence(results: pd.DataFrame, notion: str) -> Figure:
    """Figures 10 and 11: objective, surrogate and metric against evaluations."""
    rows = results[(results.experiment == "convergence") & (results.notion == notion)]
    shown = {"objective": "objective", "surrogate_violation": "infeasibility (surrogate)", "train_rank_gap": "rank gap"}
    figure, axes = panels(len(shown), len(CASES), 2.2)
    for column, (data, case) in enumerate(CASES.items()):
        for place, (method, found) in enumerate(rows[rows.data == data].groupby("method")):
            for ax, value in zip(axes[:, column], shown, strict=True):
                ax.plot(found.evaluations.clip(lower=1), found[value], color=f"C{place}", linewidth=1.2, label=method)
        axes[0, column].set_title(title_of(data), fontsize=10)
        axes[2, column].axhline(case.kappas[notion][2], color="black", linewidth=0.8, linestyle=":", label="kappa")
        axes[2, column].set_xlabel("evaluations")
        axes[1, column].set_yscale("symlog", linthresh=1e-3)
        for ax, name in zip(axes[:, column], shown.values(), strict=True):
            ax.set_xscale("log")
            ax.set_ylabel(f"{name}, training" if column == 0 else "")
    one_legend(figure, axes.flat)
    return figure


def draw_celeba(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 12: an MLP on CelebA's attributes."""
    rows = results[results.experiment == "celeba"]
    unconstrained = rows[rows.parameter == UNCONSTRAINED]
    figure, axes = panels(1, 1, 3.4)
    kinds = (("0.2-0.4", 10, "#0072B2"), ("0.2-0.4", 50, "#009E73"), ("0-1", 50, "#D55E00"))
    for trained_on, levels, color in kinds:
        own = rows[(rows.trained_on == trained_on) & (rows.levels == levels)]
        label = f"ranks {trained_on}, {levels} levels"
        front(axes[0, 0], means(pd.concat([unconstrained, own]), ["parameter"]), label, color)
    axes[0, 0].set_title("CelebA attributes, MLP, ranks 20% to 40%", fontsize=10)
    return figure


Draw = Callable[[pd.DataFrame, str], Figure]
#: The experiment that a figure needs, its notions, and what draws it.
FIGURES: dict[str, tuple[str, tuple[str, ...], Draw]] = {
    "pareto": ("pareto", NOTIONS, draw_pareto),
    "published": ("pareto", ("pSP",), draw_published),
    "curves": ("scores", NOTIONS, draw_curves),
    "densities": ("scores", NOTIONS, draw_densities),
    "robustness": ("robustness", ("pSP",), draw_robustness),
    "convergence": ("convergence", NOTIONS, draw_convergence),
    "full": ("full", ("pSP",), draw_variant("full", "full", "full")),
    "levels": ("levels", ("pSP",), draw_variant("levels", "partial, 20 levels", "20 levels")),
    "celeba": ("celeba", ("pSP",), draw_celeba),
}


def draw_all(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """Write ``folder/stem_NAME_NOTION.png`` for everything that the results have something for."""
    for name, (experiment, notions, draw) in FIGURES.items():
        for notion in notions:
            if len(results[(results.experiment == experiment) & (results.notion == notion)]):
                figure = draw(results, notion)
                path = folder / f"{stem}_{name}_{notion}.png"
                figure.savefig(path, dpi=100, pil_kwargs={"optimize": True})
                plt.close(figure)
                print(f"{path.parent.name}/{path.name}")
