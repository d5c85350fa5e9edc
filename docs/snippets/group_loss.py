"""GroupLossClassifier: a bound on every group's loss, the least bound that can be kept, and what lies between."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from fairconstrained import GroupLossClassifier
from fairconstrained.datasets import load_law_school

# minimax
data = load_law_school()
X, y, race = StandardScaler().fit_transform(data.data), data.target, data.sensitive_features
free = GroupLossClassifier().fit(X, y, sensitive_features=race)
least = GroupLossClassifier("minimax", slack=0).fit(X, y, sensitive_features=race)
for model in (free, least):
    print(model.group_losses_[["n_samples", "loss", "multiplier"]].round(4))
print(f"worst group: {least.worst_group_}, duality gap {least.duality_gap_:.1e}")
# end of minimax
assert least.group_losses_.loss.max() < free.group_losses_.loss.max()
assert 0 <= least.duality_gap_ <= 1e-4 * least.objective_

# bound
low, high = least.group_losses_.loss.max(), free.group_losses_.loss.max()
model = GroupLossClassifier(kappa=(low + high) / 2).fit(X, y, sensitive_features=race)
print(model.status_, model.constraint_values_, model.prices_)
# end of bound
assert model.constraint_values_["bounded_group_loss"] <= (low + high) / 2
assert model.prices_["bounded_group_loss"] > 0

bounds = high - (high - low) * np.linspace(0, 1, 12)[1:] ** 0.5 * (1 - 1e-3)
fits = [GroupLossClassifier(k, new_row_folds=None).fit(X, y, sensitive_features=race) for k in bounds]
means = [fit.group_losses_.share @ fit.group_losses_.loss for fit in fits]
figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
axes[0].plot(bounds, means, "o-", label="bounded")
axes[0].plot(high, free.group_losses_.share @ free.group_losses_.loss, "ks", label="unconstrained")
axes[0].plot(low, least.group_losses_.share @ least.group_losses_.loss, "k*", markersize=12, label="minimax")
axes[0].set(xlabel="mean loss of the worst group", ylabel="mean loss of all rows")
axes[0].locator_params(axis="x", nbins=5)
axes[0].legend()
axes[1].plot(bounds, [fit.prices_["bounded_group_loss"] for fit in fits], "o-")
axes[1].set(xlabel="bound", ylabel="price: fall of the mean loss\nfor a unit more of the bound", yscale="log")
figure.savefig("group_loss.png", dpi=120)
