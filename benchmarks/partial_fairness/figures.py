"""Figures from the results alone, one PNG for each; what has no results yet is left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks._figures import one_legend, panels, saved
from benchmarks.partial_fairness.cases import CASES, LARGE_CASES, NOTIONS
from benchmarks.partial_fairness.convergence import METHODS as SOLVERS
from benchmarks.partial_fairness.tables import (
    POINT,
    TEST_GAPS,
    acs_fits,
    celeba_fits,
    choose,
    front_fits,
    matched,
    means,
    our_fits,
    variant_fits,
)
from benchmarks.partial_fairness.tasks import OURS, STOCHASTIC, UNCONSTRAINED
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
#: By whether the gap is divided by the interval's length.
FAIRNESS = {False: "1 - rank gap, test", True: "1 - normalised gap, test"}
FORMS = {False: "rank gap", True: "normalised"}
ACCURACY = "accuracy, test"
TITLES = {"a9a": "a9a", "bank": "bank", "law_school": "law school"}


def title_of(data: str, points: pd.DataFrame | None = None) -> str:
    """Data set, interval, and over how many splits the points are means, if any."""
    low, high = CASES[data].interval
    title = f"{TITLES[data]}, ranks {low:.0%} to {high:.0%}"
    return title if points is None or points.empty else f"{title}, {splits(points)}"


def splits(points: pd.DataFrame) -> str:
    """Over how many splits the means are."""
    n = int(points.seeds.max())
    return f"{n} splits" if n > 1 else "one split"


def front(ax: Axes, points: pd.DataFrame, label: str, color: str, normalize: bool = False) -> None:
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
        fairness_name=FAIRNESS[normalize],
    )
    display.plot(ax, step=False, error_bars=True, name=label, color=color, markersize=4)
    ax.set_xlabel(FAIRNESS[normalize])


def draw_pareto(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 1, a row for each form; all methods but those of another objective begin at the unconstrained model."""
    figure, axes = panels(len(FORMS), len(CASES), 3.3)
    for line, (normalize, form) in zip(axes, FORMS.items(), strict=True):
        fits = front_fits(results, notion, normalize)
        points = means(fits, ["data", "method", "parameter"], TEST_GAPS[normalize])
        for ax, (data, case) in zip(line, CASES.items(), strict=True):
            here = points[points.data == data]
            shared = here[(here.method == OURS) & (here.parameter == UNCONSTRAINED)]
            for method, (label, color) in METHODS.items():
                own = here[here.method == method]
                begins = len(own) and method not in (OURS, "truncated", "zero-one", "exponentiated_gradient")
                front(ax, pd.concat([shared, own]) if begins else own, label, color, normalize)
            if notion == "pSP" and not normalize:
                ax.plot(*zip(*case.published["partial"], strict=True), label="published", **PUBLISHED)
            ax.set_title(f"{TITLES[data]}, {form}, {splits(here)}" if len(here) else TITLES[data], fontsize=10)
    one_legend(figure, axes.flat)
    return figure


def draw_published(results: pd.DataFrame, notion: str) -> Figure:
    """Our front, by the choice on validation, beside the published points."""
    points = means(choose(our_fits(results)), POINT)
    figure, axes = panels(1, len(CASES), 3.4)
    for ax, (data, case) in zip(axes.flat, CASES.items(), strict=True):
        front(ax, points[points.data == data], "ours", METHODS[OURS][1])
        ax.plot(*zip(*case.published["partial"], strict=True), label="published", **PUBLISHED)
        ax.set_title(title_of(data, points[points.data == data]), fontsize=9)
    one_legend(figure, axes.flat)
    return figure


def draw_variant(experiment: str, label: str, variant: str) -> Callable[[pd.DataFrame, str], Figure]:
    """Tables 3 and 4 as a figure: the default and a variant on the same splits, and the published points of both."""

    def draw(results: pd.DataFrame, notion: str) -> Figure:
        fits = variant_fits(results, experiment, variant)
        kinds = (("default", "partial", "partial, 10 levels", "#0072B2"), (variant, variant, label, "#D55E00"))
        figure, axes = panels(1, len(CASES), 3.4)
        for ax, (data, case) in zip(axes.flat, CASES.items(), strict=True):
            here = means(fits[fits.data == data], ["kind", "parameter"])
            for kind, key, name, color in kinds:
                front(ax, here[here.kind == kind], name, color)
                style = PUBLISHED | {"color": color, "markerfacecolor": "none"}
                ax.plot(*zip(*case.published[key], strict=True), label=f"published, {key}", **style)
            ax.set_title(title_of(data, here), fontsize=9)
        one_legend(figure, axes.flat)
        return figure

    return draw


def shown_kappas(data: str, notion: str) -> dict[float, str]:
    """Kappas of the curves and densities, with their names."""
    return {UNCONSTRAINED: "unconstrained"} | {k: f"$\\kappa$ = {k:g}" for k in CASES[data].curves[notion]}


def of_form(rows: pd.DataFrame, normalize: bool) -> pd.DataFrame:
    """Rows that were trained in a form, and the unconstrained ones, which have none."""
    return rows[(rows.normalize.astype(bool) == normalize) | (rows.parameter == UNCONSTRAINED)]


def draw_curves(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 2, a row for each form: the share of one group above a threshold against the share of the other one."""
    rows = results[(results.experiment == "scores") & (results.notion == notion)]
    figure, axes = panels(len(FORMS), len(CASES), 3.3)
    for line, (normalize, form) in zip(axes, FORMS.items(), strict=True):
        for ax, (data, case) in zip(line, CASES.items(), strict=True):
            for kappa, name in shown_kappas(data, notion).items():
                found = of_form(rows[(rows.data == data) & (rows.parameter == kappa)], normalize)
                if len(found):
                    ScoreCurveDisplay.from_predictions(
                        found.score, sensitive_features=found.group, interval=case.interval, name=name, ax=ax
                    )
            ax.set_title(f"{TITLES[data]}, {form}", fontsize=10)
            for label in (ax.xaxis.label, ax.yaxis.label):
                label.set_size(8)
            if ax.get_legend() is not None:
                curves = [line for line in ax.lines if str(line.get_label()) in shown_kappas(data, notion).values()]
                ax.legend(handles=curves, fontsize=7, frameon=False, loc="lower right")
    return figure


def draw_densities(results: pd.DataFrame, notion: str) -> Figure:
    """Figures 3 to 8: where the scores of the groups lie, the interval shaded.

    Of pSP the rank gap, as published; of pDP eq. 21, for the rank gap does not train the interval.
    """
    rows = results[(results.experiment == "scores") & (results.notion == notion)]
    rows = of_form(rows, notion == "pDP")
    figure, axes = panels(2 * len(CASES), 2, 2.3)
    for line, (data, case) in zip(axes.reshape(-1, 4), CASES.items(), strict=True):
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
        mean = points[points.data == data]
        title = f"{TITLES[data]}, {splits(mean)}" if len(mean) else TITLES[data]
        axes[0, column].set(title=title, ylim=(0.6, 0.95))
        for ax, name in zip(axes[:, column], (ACCURACY, FAIRNESS[False]), strict=True):
            ax.set_xticks(range(len(names)), names, fontsize=7)
            ax.set_ylabel(name if column == 0 else "")
    axes[1, 1].set_xlabel("interval of ranks")
    one_legend(figure, axes.flat)
    return figure


def draw_convergence(experiment: str) -> Callable[[pd.DataFrame, str], Figure]:
    """Figures 10 and 11: objective, surrogate and metric against evaluations, on the first split."""

    def draw(results: pd.DataFrame, notion: str) -> Figure:
        rows = results[(results.experiment == experiment) & (results.notion == notion) & (results.seed == 0)]
        shown = {
            "objective": "objective",
            "surrogate_violation": "infeasibility (surrogate)",
            "value": "normalised gap",
        }
        figure, axes = panels(len(shown), len(CASES), 2.2)
        for column, (data, case) in enumerate(CASES.items()):
            for method, found in rows[rows.data == data].groupby("method"):
                color = f"C{list(SOLVERS).index(str(method))}"
                for ax, value in zip(axes[:, column], shown, strict=True):
                    ax.plot(found.evaluations.clip(lower=1), found[value], color=color, linewidth=1.2, label=method)
            axes[0, column].set_title(title_of(data), fontsize=10)
            axes[2, column].axhline(case.kappas[notion][2], color="black", linewidth=0.8, linestyle=":", label="kappa")
            axes[2, column].set_xlabel("evaluations")
            axes[1, column].set_yscale("symlog", linthresh=1e-3)
            for ax, name in zip(axes[:, column], shown.values(), strict=True):
                ax.set_xscale("log")
                ax.set_ylabel(f"{name}, training" if column == 0 else "")
        one_legend(figure, axes.flat)
        return figure

    return draw


def draw_celeba(results: pd.DataFrame, notion: str) -> Figure:
    """Figure 12: an MLP on CelebA's attributes, by the default solver and by stochastic IDCA."""
    rows = celeba_fits(results)
    unconstrained = rows[rows.parameter == UNCONSTRAINED]
    figure, axes = panels(1, 2, 3.4)
    kinds = (("0.2-0.4", 10, "#0072B2"), ("0.2-0.4", 50, "#009E73"), ("0-1", 50, "#D55E00"))
    for ax, (method, title) in zip(axes.flat, ((OURS, "default solver"), (STOCHASTIC, "stochastic IDCA")), strict=True):
        for trained_on, levels, color in kinds:
            own = rows[(rows.trained_on == trained_on) & (rows.levels == levels) & (rows.method == method)]
            points = means(pd.concat([unconstrained, own]), ["parameter"])
            front(ax, points, f"ranks {trained_on}, {levels} levels", color)
        ax.set_title(f"CelebA attributes, {title}, {splits(points)}", fontsize=9)
    one_legend(figure, axes.flat)
    return figure


def draw_acs(results: pd.DataFrame, notion: str) -> Figure:
    """Table 2: our fronts on ACS income, and the published points in the same colours."""
    points = means(acs_fits(results), ["method", "parameter"])
    shared = points[(points.method == OURS) & (points.parameter == UNCONSTRAINED)]
    figure, axes = panels(1, 1, 3.8)
    for method in (OURS, "group_auc", "inter_group", "intra_group"):
        label, color = METHODS[method]
        own = points[points.method == method]
        front(axes[0, 0], own if method == OURS else pd.concat([shared, own]), label, color)
        published = LARGE_CASES["acs_income"].published["partial" if method == OURS else method]
        style = PUBLISHED | {"color": color, "markerfacecolor": "none"}
        axes[0, 0].plot(*zip(*published, strict=True), label=f"published, {label}", **style)
    axes[0, 0].set_title(f"ACS income, ranks 20% to 40%, {splits(points)}", fontsize=10)
    one_legend(figure, axes.flat)
    return figure


Draw = Callable[[pd.DataFrame, str], Figure]
#: The experiment that a figure needs, its notions, and what draws it.
FIGURES: dict[str, tuple[str, tuple[str, ...], Draw]] = {
    "pareto": ("pareto", NOTIONS, draw_pareto),
    "published": ("pareto", ("pSP",), draw_published),
    "curves": ("scores", NOTIONS, draw_curves),
    "densities": ("scores", NOTIONS, draw_densities),
    "robustness": ("robustness", ("pSP",), draw_robustness),
    "convergence": ("convergence", NOTIONS, draw_convergence("convergence")),
    "convergence_long": ("convergence_long", ("pSP",), draw_convergence("convergence_long")),
    "full": ("full", ("pSP",), draw_variant("full", "full", "full")),
    "levels": ("levels", ("pSP",), draw_variant("levels", "partial, 20 levels", "20 levels")),
    "celeba": ("celeba", ("pSP",), draw_celeba),
    "acs": ("acs", ("pSP",), draw_acs),
}


def draw_all(results: pd.DataFrame, folder: Path, stem: str) -> None:
    """Write ``folder/stem_NAME_NOTION.png`` for everything that the results have something for."""
    for name, (experiment, notions, draw) in FIGURES.items():
        for notion in notions:
            if len(results[(results.experiment == experiment) & (results.notion == notion)]):
                (path,) = saved([(f"{name}_{notion}", draw(results, notion))], folder, stem, dpi=100)
                print(f"{path.parent.name}/{path.name}")
