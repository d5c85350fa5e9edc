"""
Hundreds of groups that overlap
===============================

A bound on the positive rate of every group that is defined by thresholds on three columns, not only of the groups of
one column.

The data are generated: the label depends on two of three columns, and each of these defines groups on which a decision
should not depend too much.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import RateParityClassifier
from fairconstrained.groups import threshold_groups

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 6))
y = (X[:, 0] - 0.7 * X[:, 1] + X[:, 3] + rng.logistic(size=4000) > 0).astype(int)
members = threshold_groups(X, columns=[0, 1, 2], quantiles=6, min_share=0.02)
print(f"{members.shape[1]} groups; a row belongs to {members.sum(axis=1).mean():.0f} of them on average")

# %%
# One fit bounds them all
# -----------------------
#
# ``constraint="intersectional"`` compares the rate of every group with that of all rows; ``rate="indicator"`` makes it
# the rate of the predictions, which ``kappa`` bounds up to the share that one row has in the smallest group.
# ``group_rates_`` has a line for every group.

models = {
    kappa: RateParityClassifier(kappa, constraint="intersectional", rate="indicator").fit(
        X, y, sensitive_features=members
    )
    for kappa in (None, 0.2, 0.1)
}
print("bound   status      largest gap  accuracy")
for kappa, model in models.items():
    gap = model.exact_gaps_["intersectional"]
    print(f"{kappa!s:6s}  {model.status_:10s}  {gap:11.3f}  {model.score(X, y):8.3f}")

# %%
# Every dot is a group. Without a bound, the groups' rates differ widely.

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
figure.suptitle("Positive rates of the overlapping groups, by bound")
shares = models[None].group_rates_["share"]
for (kappa, model), color in zip(models.items(), ("#777777", "#0072B2", "#D55E00"), strict=True):
    label = "no bound" if kappa is None else f"kappa = {kappa}"
    ax.plot(shares, model.group_rates_["rate"], ".", ms=4, color=color, label=label)
    if kappa is not None:
        overall = model.predict(X).mean()
        ax.axhspan(overall - kappa, overall + kappa, color=color, alpha=0.1, lw=0)
ax.set(xlabel="share of the rows in the group", ylabel="positive rate of the group")
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()
