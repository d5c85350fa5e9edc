"""
The worst group's loss against the mean loss
============================================

How much does the mean loss rise when the group that is served worst is served as well as any model can?

Four groups of very different sizes, in which the features mean different things. The unconstrained model serves the
largest group. A bound on the mean loss of every group moves it, down to the least bound that any coefficients keep: the
minimax model.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import GroupLossClassifier

rng = np.random.default_rng(0)
group = rng.choice(["a", "b", "c", "d"], p=[0.6, 0.2, 0.12, 0.08], size=8000)
directions = {"a": [2.0, 0.5, 0.0], "b": [1.0, 2.0, 0.0], "c": [0.5, 0.5, 1.5], "d": [-0.5, 1.5, 1.0]}
X = rng.normal(size=(8000, 3))
y = (X * [directions[g] for g in group]).sum(axis=1) + rng.logistic(size=8000) > 0

# %%
# From no bound to the least one
# ------------------------------
#
# ``duality_gap_`` says how far from the optimum each of the models can be at most.

free = GroupLossClassifier().fit(X, y, sensitive_features=group)
minimax = GroupLossClassifier("minimax", slack=0).fit(X, y, sensitive_features=group)
high, low = (model.group_losses_.loss.max() for model in (free, minimax))
bounds = np.linspace(high, low * (1 + 1e-4), 12)[1:]
path = [GroupLossClassifier(kappa, new_row_folds=None).fit(X, y, sensitive_features=group) for kappa in bounds]
models = [free, *path, minimax]
print("largest duality gap:", max(model.duality_gap_ for model in models))
print(minimax.group_losses_.round(4))

# %%
# Left: every point is a model that no other one beats in both losses. Right: the groups on the way; at the end, those
# with a multiplier above zero have the same loss, and the others less.

losses = np.array([model.group_losses_.loss for model in models])
mean = [model.group_losses_.share @ model.group_losses_.loss for model in models]
worst = losses.max(axis=1)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
figure.suptitle("Losses of the groups from no bound to the least one")
axes[0].plot(mean, worst, "o-", label="bounded")
axes[0].plot(mean[0], worst[0], "ks", label="unconstrained")
axes[0].plot(mean[-1], worst[-1], "k*", markersize=13, label="minimax")
axes[0].set(xlabel="mean log loss of all rows", ylabel="mean log loss of the worst group")
axes[0].legend()
for name, column in zip(free.group_losses_.index, losses.T, strict=True):
    axes[1].plot(worst, column, "o-", markersize=4, label=f"group {name}")
axes[1].axline((low, low), slope=1, color="grey", linestyle=":", label="bound")
axes[1].invert_xaxis()
axes[1].set(xlabel="bound (tighter to the right)", ylabel="mean log loss of a group")
axes[1].legend()
plt.show()
