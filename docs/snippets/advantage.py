"""The picture at the top of the README: what a bound of 0.02 is worth on new rows, and what it costs."""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

FRONTS = Path(__file__).parents[1] / "benchmarks" / "any_model_fronts.csv"
KAPPA = 0.02
#: Rows of the picture, from the top: the method in the table, its name, and whether it is one of this package.
METHODS = {
    "head": ("FairHeadClassifier", True),
    "head_groups": ("FairHeadClassifier, use_groups=True", True),
    "boosting_folds": ("FairBoostingClassifier", True),
    "oxonfair_groups": ("OxonFair, thresholds by group", False),
    "threshold_optimizer": ("Fairlearn, thresholds by group", False),
    "fairgbm": ("FairGBM", False),
    "exponentiated_gradient": ("Fairlearn, reduction", False),
}
NOTIONS = {"demographic_parity": ("o", "demographic parity"), "equalized_odds": ("^", "equalized odds")}
OURS, OTHERS = "#0B5CAD", "#B4561E"

fronts = pd.read_csv(FRONTS)
fronts = fronts[fronts["notion"].isin(list(NOTIONS))]
free = fronts[fronts["method"] == "trees"].set_index(["data", "notion"])["accuracy"]
cells = fronts[fronts["method"].isin(list(METHODS)) & (fronts["kappa"] == KAPPA)].copy()
cells["times"] = cells["test_gap"] / KAPPA
cells["points"] = 100 * (
    cells["accuracy"] - free.loc[list(zip(cells["data"], cells["notion"], strict=True))].to_numpy()
)

figure, (gaps, costs) = plt.subplots(1, 2, figsize=(10, 3.7), sharey=True, layout="constrained")
for row, (method, (_, is_ours)) in enumerate(METHODS.items()):
    for shift, (notion, (marker, _)) in zip((-0.16, 0.16), NOTIONS.items(), strict=True):
        part = cells[(cells["method"] == method) & (cells["notion"] == notion)]
        style = {"marker": marker, "s": 34, "color": OURS if is_ours else OTHERS, "alpha": 0.75, "linewidths": 0}
        for ax, column in ((gaps, "times"), (costs, "points")):
            ax.scatter(part[column], np.full(len(part), row + shift), **style)
gaps.axvspan(0.1, 1, color="0.93", zorder=0)
gaps.axvline(1, color="0.3", linewidth=1)
gaps.set_xscale("log")
gaps.set_xlim(0.15, 16)
gaps.set_xticks([0.25, 0.5, 1, 2, 4, 8], ["1/4", "1/2", "1", "2", "4", "8"])
gaps.minorticks_off()
gaps.set_title("Gap on new rows / bound (grey: the bound is kept)", fontsize=10)
costs.set_title("Change of accuracy, in percentage points", fontsize=10)
costs.axvline(0, color="0.3", linewidth=1)
costs.annotate("COMPAS", (-10.6, 0.5), ha="center", va="center", fontsize=8, color="0.3")
gaps.set_yticks(range(len(METHODS)), [name for name, _ in METHODS.values()])
for label, (_, is_ours) in zip(gaps.get_yticklabels(), METHODS.values(), strict=True):
    label.set_color(OURS if is_ours else OTHERS)
gaps.invert_yaxis()
for marker, name in NOTIONS.values():
    costs.scatter([], [], marker=marker, color="0.4", label=name)
costs.legend(loc="lower left", fontsize=8, frameon=False)
for ax in (gaps, costs):
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
figure.suptitle("Boosted trees, asked for a gap of at most 0.02: a mark for each data set", fontsize=11)
figure.savefig("advantage.png", dpi=150)

# what is said beside the picture
times = cells.groupby("method")["times"].agg(["median", "max"]).loc[list(METHODS)]
print(times.round(2))
# end of the text
assert 0.95 < times["median"]["head"] < 1.05
assert 2.0 < times["max"]["head"] < 2.1
assert times.loc[["fairgbm", "exponentiated_gradient"], "max"].min() > 10
costly = cells[cells["points"] < -6]
assert set(costly["data"]) == {"compas"}
assert set(costly["method"]) == {"head", "head_groups", "boosting_folds"}
