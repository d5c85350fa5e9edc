"""
The price of every step towards fairness, and the choice of one
===============================================================

A path of models from the unconstrained one to the tightest bound, measured on held-out folds, and a choice that is then
checked on rows that took no part in it.

In the bundled law school data, candidates are ranked by how likely they are to pass the bar examination. The gap is
that of the inter-group AUCs (xAUC): how often a white candidate who passes is ranked above another one who fails,
minus that share with the groups exchanged.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import AUCFairClassifier, fairness_path
from fairconstrained.datasets import load_law_school

law = load_law_school()
rows = law.data, law.target, law.sensitive_features
strata = pd.Series(law.sensitive_features).astype(str) + pd.Series(law.target).astype(str)
X, X_new, y, y_new, race, race_new = train_test_split(*rows, test_size=0.5, random_state=0, stratify=strata)

# %%
# The path
# --------
#
# The scaler is fitted once for all rows and once for every fold. Every model starts from the one before.

estimator = make_pipeline(StandardScaler(), AUCFairClassifier())
path = fairness_path(estimator, X, y, sensitive_features=race, n_kappas=8, cv=3)
columns = ["kappa", "gap", "mean_test_gap", "std_test_gap", "mean_test_roc_auc", "price", "n_evaluations", "seconds"]
print(path.table[columns].round(4).to_string(index=False))

# %%
# The choice
# ----------
#
# The best model whose mean held-out gap is at most 0.05, and the tightest one that is as good up to one standard error.
# Both are measured on the other half of the rows.

bound = 0.05
choices = {"best": path.best_index(bound), "one standard error": path.best_index(bound, one_standard_error=True)}
new = []
for model in path.models:
    (gap,) = model[-1].constraint_values(model[0].transform(X_new), y_new, sensitive_features=race_new).values()
    new.append(gap)
for name, index in choices.items():
    row = path.table.iloc[index]
    print(f"{name}: kappa {row.kappa:.4f}, held-out gap {row.mean_test_gap:.4f}, gap on new rows {new[index]:.4f}")

# %%
# The figure
# ----------
#
# Left: the performance that a smaller gap costs, with one standard deviation over the folds. Right: kappa bounds the
# gap on the training rows. On held-out rows the gap stops falling: a gap is never negative, so sampling error adds to
# it, and a fold of 3,500 rows has about 150 candidates of the smaller group who failed. On 10,000 new rows this effect
# is smaller.

figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.3), layout="constrained")
figure.suptitle("The price of a smaller gap, and the gap on three sets of rows")
path.plot(axes[0], name="held out")
axes[0].axvline(bound, color="#777777", linestyle=":")
kappas = path.kappas[1:]
series = {"training rows": path.table["gap"], "mean of test folds": path.table["mean_test_gap"], "new rows": new}
for (name, values), color in zip(series.items(), ["#D55E00", "#0072B2", "#009E73"], strict=True):
    axes[1].plot(kappas, np.asarray(values)[1:], "o-", color=color, label=name)
axes[1].axline((0.0, 0.0), slope=1, color="#777777", linestyle=":", label="kappa")
axes[1].set(xlabel="kappa", ylabel="gap of the AUCs")
axes[1].legend(frameon=False)
axes[1].spines[["top", "right"]].set_visible(False)
plt.show()
