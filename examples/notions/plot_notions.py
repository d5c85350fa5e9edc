"""
Five notions of parity on one data set
======================================

The effect of a bound on one gap on all other gaps, and on the performance.

``constraint`` names the quantity that ``kappa`` bounds. Fitted under each of the five in turn, on the bundled law
school data, the same linear model shows how much the notions differ: most bounds leave other gaps wide open.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import (
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)

law = load_law_school()
X, y, race = StandardScaler().fit_transform(law.data), law.target, law.sensitive_features

# %%
# One model for each notion
# -------------------------
#
# ``kappa`` is 0.05 throughout, on all ranks. Each gap is measured on the training rows, where the bound holds, and not
# estimated for new rows (``new_row_folds=None``); "none" is the model without a bound.

metrics = {
    "equal_opportunity": partial_equal_opportunity_gap,
    "demographic_parity": partial_demographic_parity_gap,
    "equalized_odds": partial_equalized_odds_gap,
    "group_auc": partial_group_auc_gap,
    "statistical_parity": partial_statistical_parity_gap,
}
kappa = 0.05
models = {"none": PartialParityClassifier(kappa=None)}
models |= {parity: PartialParityClassifier(kappa, constraint=parity, new_row_folds=None) for parity in metrics}
gaps, performance = [], []
for model in models.values():
    scores = model.fit(X, y, sensitive_features=race).decision_function(X)
    gaps.append([metric(y, scores, sensitive_features=race) for metric in metrics.values()])
    performance.append([model.score(X, y), roc_auc_score(y, scores)])
gaps, performance = np.array(gaps), np.array(performance)

# %%
# Gaps by model
# -------------
#
# Rows are models, columns are gaps; the gap that a model bounds has a frame. A bound on decisions, in the upper rows,
# hardly reduces the differences between the distributions of scores; a bound on the scores at all ranks bounds the
# decisions too, at a higher price. Equal opportunity ignores those who fail, and therefore the false positive rates,
# which equalized odds includes.

labels = {
    "equal_opportunity": "equal\nopportunity",
    "demographic_parity": "demographic\nparity",
    "equalized_odds": "equalized\nodds",
    "group_auc": "group AUC",
    "statistical_parity": "statistical\nparity",
}
figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.6, 4.8), layout="constrained", width_ratios=(5, 2), gridspec_kw={"wspace": 0.03}
)
figure.suptitle("Gaps under each bound, and the performance that is left")
left.imshow(gaps, cmap="Blues", vmin=0, vmax=0.5, aspect="auto")
for (row, column), gap in np.ndenumerate(gaps):
    color = "white" if gap > 0.3 else "black"
    left.text(column, row, f"{gap:.3f}", ha="center", va="center", color=color)
for column in range(len(metrics)):
    left.add_patch(
        plt.Rectangle((column - 0.47, column + 0.53), 0.94, 0.94, fill=False, color="#D55E00", linewidth=2.5)
    )
left.set_xticks(range(len(metrics)), labels.values())
left.set_yticks(range(len(models)), ["no bound", *(label.replace("\n", " ") for label in labels.values())])
left.set(xlabel="gap measured on the training data", ylabel=f"bounded by {kappa}")
left.tick_params(length=0)
left.spines[:].set_visible(False)

right.plot(performance[:, 0], range(len(models)), "o", color="#0072B2", label="accuracy")
right.plot(performance[:, 1], range(len(models)), "D", color="#D55E00", label="AUC")
right.axvline(max(y.mean(), 1 - y.mean()), color="#777777", linestyle=":", label="accuracy of the\nlarger class")
right.set_ylim(left.get_ylim())
right.set_yticks([])
right.grid(axis="x", color="#dddddd")
right.spines[["top", "left", "right"]].set_visible(False)
right.set_title("what is left")
right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), frameon=False)
plt.show()

# %%
# As 89 % of the students pass, accuracy can hardly change: with statistical parity it is that of predicting that
# everybody passes. The ranking becomes worse, as the area under the ROC curve shows. An interval that covers only the
# ranks which matter, or a looser ``kappa``, lowers that price.

for name, row in zip(models, performance, strict=True):
    print(f"{name:18} accuracy {row[0]:.4f}, AUC {row[1]:.4f}")
assert np.all(np.diag(gaps[1:]) <= kappa + 0.005)
