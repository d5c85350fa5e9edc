"""
Boosted trees under a bound
===========================

Boosted trees follow curves and steps that no line does, and every tree can be told to keep a bound.

``FairBoostingClassifier`` grows the trees of LightGBM along the slopes of a Lagrangian: the loss, plus the gap between
the groups times a multiplier that follows the gap. The model is the best number of trees whose exact gap is at most
``kappa``, with scores of the rows by trees that have not seen them.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import FairBoostingClassifier, PartialParityClassifier
from fairconstrained.metrics import partial_demographic_parity_gap

# %%
# Two groups around a ring
# ------------------------
#
# A row is likely positive within a ring. The second group lies further to the right, where it misses the ring more
# often.


def make_ring(n_samples, seed):
    """Labels by the distance from the origin, with noise; the second group is displaced."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n_samples) < 0.4).astype(int)
    X = rng.normal(size=(n_samples, 2)) + group[:, None] * [1.2, 0.0]
    inside = 1.5 - np.hypot(X[:, 0], X[:, 1])
    return X, (inside + 0.3 * rng.logistic(size=n_samples) > 0).astype(int), group


X, y, group = make_ring(12_000, 0)
X_new, y_new, group_new = make_ring(20_000, 1)

# %%
# Three bounds
# ------------
#
# The positive rates may differ by anything, by 0.1, and by 0.05. For comparison, linear scores with the last bound.
# Two boosters have half of the rows each, which is the default where there is a bound.

trees = {"n_estimators": 200, "num_leaves": 6, "cv": 2}
models = {
    "trees, no bound": FairBoostingClassifier(kappa=None, **trees),
    "trees, kappa = 0.1": FairBoostingClassifier(kappa=0.1, **trees),
    "trees, kappa = 0.05": FairBoostingClassifier(kappa=0.05, **trees),
    "linear, kappa = 0.05": PartialParityClassifier(kappa=0.05, constraint="demographic_parity"),
}
for name, model in models.items():
    model.fit(X, y, sensitive_features=group)
    scores = model.decision_function(X_new)
    gap = partial_demographic_parity_gap(y_new, scores, sensitive_features=group_new)
    print(
        f"{name:21} gap {model.constraint_values_['demographic_parity']:.3f}, on new rows {gap:.3f}, "
        f"accuracy there {model.score(X_new, y_new):.3f}"
    )

# %%
# What changes, and when
# ----------------------
#
# On the left the line of decisions: under the bound, more of the second group (triangles) is inside, and less of the
# first one. On the right what happens while trees are added: the gap first grows with the accuracy, and then the
# multiplier brings it to the bound. The circle is the number of trees that was chosen.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
figure.suptitle("Decisions of boosted trees, and their gap while they grow")
some = np.random.default_rng(0).permutation(len(y))[:700]
for value, marker in ((0, "o"), (1, "^")):
    rows = some[group[some] == value]
    colors = np.where(y[rows] == 1, "#0072B2", "#bbbbbb")
    left.scatter(*X[rows].T, c=colors, marker=marker, s=9, linewidths=0)
grid = np.stack(np.meshgrid(np.linspace(-3.2, 4.2, 220), np.linspace(-3.2, 3.2, 200)), axis=-1)
for name, color in (("trees, no bound", "black"), ("trees, kappa = 0.05", "#D55E00")):
    height = models[name].decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    left.contour(grid[..., 0], grid[..., 1], height, levels=[0.0], colors=color, linewidths=1.6)
    left.plot([], [], color=color, label=name)
left.set(xlabel="first feature", ylabel="second feature", xlim=(-3.2, 4.2), ylim=(-3.2, 3.2))
left.legend(frameon=False, fontsize=8, loc="lower left")

for (name, model), color in zip(list(models.items())[:3], ("black", "#009E73", "#D55E00"), strict=True):
    n_trees = [record["n_iter"] for record in model.history_]
    gaps = [record["demographic_parity"] for record in model.history_]
    right.plot(n_trees, gaps, color=color, label=name)
    right.plot(model.n_trees_ / model.n_boosters_, model.constraint_values_["demographic_parity"], "o", color=color)
    if model.kappa is not None:
        right.axhline(model.kappa, color=color, linestyle=":", linewidth=1)
right.set(xlabel="trees of each booster", ylabel="gap of the out-of-fold scores", ylim=(0, None))
right.legend(frameon=False, fontsize=8)
for ax in figure.axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
