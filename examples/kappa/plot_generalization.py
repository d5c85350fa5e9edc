"""
The gap on new rows: theory and observation
===========================================

``kappa`` bounds the gap on the training rows. ``generalization_bound`` computes the bound of the theory on the gap in
the population; this example compares it with observed gaps.

Models with ten features are fitted to samples of growing size, and their gaps are measured on 200,000 new rows, where
the measurement itself is off by some thousandths.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import statistical_parity_gap
from fairconstrained.theory import generalization_bound

kappa = 0.1
X_new, _, group_new = make_biased_classification(200_000, random_state=0)
n_features = X_new.shape[1]

records = []
for n_samples, n_repeats in {500: 3, 3000: 2, 16_000: 2}.items():
    for repeat in range(n_repeats):
        X, y, group = make_biased_classification(n_samples, random_state=1000 + repeat)
        model = PartialParityClassifier(kappa, new_row_folds=None)  # the new rows are at hand: no estimate is needed
        model.fit(X, y, sensitive_features=group)
        new_gap = statistical_parity_gap(None, model.decision_function(X_new), sensitive_features=group_new)
        records.append(
            {
                "smallest group": np.bincount(group).min(),
                "training": model.constraint_values_["statistical_parity"],
                "new": new_gap,
                "bound": generalization_bound(np.bincount(group), vc_dim=n_features + 1).total,
            }
        )
table = pd.DataFrame(records)
table["difference"] = table["new"] - table["training"]

# %%
# The bound
# ---------
#
# The classifier's default solver bounds the metric itself on the training rows, at every rank. So the bound has no term
# for the levels and none for the surrogate, and ``total`` is the estimation error alone. It depends on the number of
# parameters and on the smallest group.

print(table.round(3).to_string(index=False))

# %%
# The figure
# ----------
#
# Both axes are logarithmic. The bound falls like one over the square root of the rows, up to a logarithm. The observed
# difference, here without its sign, becomes smaller too; the bound is tens of times as large, because it must hold for
# every distribution and for the worst model. Above 1 (grey) it says nothing. The dashed line is a rule of thumb: the
# mean gap between two samples of these sizes from one distribution, :math:`0.87 \sqrt{1 / n_g + 1 / n_{g'}}`. It does
# not include overfitting, which is small with ten features and larger with many.

rows = np.geomspace(100, 10_000, 60)
sizes = np.column_stack([rows * 7 / 3, rows]).round().astype(int)
bound = [generalization_bound(pair, vc_dim=n_features + 1).total for pair in sizes]
chance = 0.87 * np.sqrt((1 / sizes).sum(axis=1))

figure, ax = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
figure.suptitle("Gaps of training rows and of new rows, and the bound of the theory")
ax.axhspan(1, 5, color="0.93")
ax.loglog(rows, bound, color="#0072B2", linewidth=2, label="generalization_bound")
ax.loglog(rows, chance, color="0.4", linestyle="--", label="two samples of one distribution")
ax.loglog(table["smallest group"], table["difference"].abs(), "o", color="#D55E00", alpha=0.8, label="observed")
ax.set(
    xlabel="training rows of the smallest group",
    ylabel="|gap on new data - gap on training data|",
    ylim=(0.0008, 5),
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="lower left")
plt.show()

# %%
# Use of the bound
# ----------------
#
# Use it to compare designs. On a quarter of the ranks the same precision needs more than sixteen times as many rows;
# five times as many features need about five times as many rows. To *know* the gap of a model, measure it on rows that
# were not used for fitting.

for interval in ((0.0, 1.0), (0.0, 0.25)):
    for features in (10, 50):
        needed = next(
            n
            for n in np.geomspace(100, 1e9, 500).astype(int)
            if generalization_bound([n, n], vc_dim=features + 1, interval=interval).total <= 0.5
        )
        print(f"interval {interval}, {features} features: {needed:,} rows a group for a bound of 0.5")
