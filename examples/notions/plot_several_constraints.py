"""
Two bounds at once
==================

A bound on the top of the ranking and one on the positive rate, each with its own ``kappa``, and what their combinations
cost.

The law school of the bundled data ranks the best-scored fifth of each group for a scholarship, so there scores have to
be comparable: partial statistical parity on the ranks from 0 to 0.2 (pSP). And whoever scores below 0 is predicted to
fail the bar examination and gets no place, so the rates should be close: demographic parity on all ranks (pDP).
Neither bound implies the other.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.model_selection import GridSearchCV, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.datasets import load_law_school
from fairconstrained.model_selection import get_fairness_scorer

sklearn.set_config(enable_metadata_routing=True)

law = load_law_school()
X, y, race = law.data, law.target, law.sensitive_features

# %%
# A search over both kappas
# -------------------------
#
# ``constraint`` takes a list of names and constraints. You choose the names, and a search can vary every parameter of a
# constraint under its name. The gap of a short interval is a noisy number, so most of the rows are held out to measure
# it; ``new_row_folds=None`` leaves out the estimates that every fit would make from its own rows.

top = (0.0, 0.2)
classifier = PartialParityClassifier(
    tol=5e-3,
    new_row_folds=None,
    constraint=[
        ("top", StatisticalParity(interval=top)),
        ("rate", DemographicParity()),
    ],
)
kappas = {"top": [0.1, 0.3, None], "rate": [0.01, 0.06, None]}
search = GridSearchCV(
    make_pipeline(StandardScaler(), classifier),
    {f"partialparityclassifier__constraint__{name}__kappa": values for name, values in kappas.items()},
    scoring={
        "AUC": "roc_auc",
        "pSP": get_fairness_scorer("neg_partial_statistical_parity_gap", interval=top),
        "pDP": get_fairness_scorer("neg_independence_gap"),
    },
    refit=False,
    cv=ShuffleSplit(1, train_size=4000, random_state=0),
)
search.fit(X, y, sensitive_features=race)
results = search.cv_results_
auc = results["mean_test_AUC"]
gaps = -np.array([results["mean_test_pSP"], results["mean_test_pDP"]])

# %%
# The trade-off
# -------------
#
# Every point is a pair of kappas; its position is the two gaps on held-out rows, its colour the area under the ROC
# curve. Points with a ring are those to which no other pair is better in all three. Lines join models that share a
# bound on the rate. A bound on pDP alone (the right ends) hardly costs AUC, and leaves the top fifths as different as
# they were. A bound on pSP of the top moves the models to the left, at a price, and reduces pDP on the way; the lower
# left corner takes both.


def is_efficient(columns):
    """Whether no other column is at most as large in every row, and smaller in one."""
    below = (columns[:, None, :] <= columns[:, :, None]).all(axis=0) & (columns[:, None, :] < columns[:, :, None]).any(
        axis=0
    )
    return ~below.any(axis=1)


efficient = is_efficient(np.vstack([gaps, -auc]))
rates = np.array(
    [np.nan if kappa is None else kappa for kappa in results["param_partialparityclassifier__constraint__rate__kappa"]],
    dtype=float,
)
figure, ax = plt.subplots(figsize=(7.2, 5.0), layout="constrained")
figure.suptitle("AUC of the models by their two gaps")
for rate in kappas["rate"]:
    rows = np.isnan(rates) if rate is None else rates == rate
    ax.plot(*gaps[:, rows], color="#bbbbbb", linewidth=1.2, zorder=1)
    end = gaps[:, rows][:, gaps[0, rows].argmax()]
    text = "no bound on pDP" if rate is None else f"pDP at most {rate}"
    ax.annotate(text, end, xytext=(12, 0), textcoords="offset points", va="center", color="#555555")
ax.scatter(*gaps[:, efficient], s=210, facecolors="none", edgecolors="black", linewidths=1.3, zorder=2)
points = ax.scatter(*gaps, c=auc, s=110, cmap="viridis", zorder=3)
figure.colorbar(points, label="AUC on held-out rows")
ax.set(xlabel="pSP gap of the top fifth, held out", ylabel="pDP gap, held out")
ax.set_xlim(0, gaps[0].max() * 1.35)
ax.set_ylim(0, gaps[1].max() * 1.1)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The table behind it:

print("  top    rate    AUC       pSP     pDP")
for parameters, value, pair in zip(results["params"], auc, gaps.T, strict=True):
    both = "".join(f"{kappa!s:>6}  " for kappa in parameters.values())
    print(f"{both}  {value:.4f}    {pair[0]:.3f}   {pair[1]:.3f}")
