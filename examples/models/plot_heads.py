"""
A head on a finished model
==========================

A model that exists already is kept as it is, and a small head under a bound decides by its scores.

``FairHeadClassifier`` takes any classifier of scikit-learn's kind. It fits an estimator of this package on a few
functions of its scores and of the probabilities of the groups, by rows that the classifier has not seen.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from fairconstrained import FairHeadClassifier, PartialParityClassifier, fairness_path
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import independence_gap

# %%
# A model that exists
# -------------------
#
# Boosted trees that predict who passes the bar exam. The race is not among their features.

law = load_law_school()
X, X_new, y, y_new, groups, groups_new = train_test_split(
    law.data, law.target, law.sensitive_features, test_size=0.4, stratify=law.sensitive_features, random_state=0
)
X, X_other, y, y_other, groups, groups_other = train_test_split(
    X, y, groups, test_size=0.5, stratify=groups, random_state=0
)
trees = HistGradientBoostingClassifier(max_iter=50, learning_rate=0.05, random_state=0).fit(X, y)

# %%
# Heads for several bounds
# ------------------------
#
# The rows that the trees have not seen are those on which the heads keep their bounds. The path fits nothing but the
# heads, and a model of the group, once.

head = PartialParityClassifier(constraint="demographic_parity", objective="zero_one")
model = FairHeadClassifier(FrozenEstimator(trees), head, random_state=0)
kappas = [None, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01]
path = fairness_path(model, X_other, y_other, sensitive_features=groups_other, kappas=kappas)
new = [
    (independence_gap(y_new, each.predict(X_new), sensitive_features=groups_new), each.score(X_new, y_new))
    for each in path.models
]
for kappa, (gap, accuracy) in zip(kappas, new, strict=True):
    print(f"kappa {kappa}: gap on new rows {gap:.3f}, accuracy there {accuracy:.4f}")

# %%
# What the head does
# ------------------
#
# On the left the gap that was asked for and that of new rows: the line is equality. On the right the decisions of the
# head for a bound of 0.02, by what it sees of a row, the log-odds of passing and the probability of a group: the border
# is no longer vertical, so that the same log-odds count for more where the second group is more likely.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
figure.suptitle("Gaps of the heads on new rows, and the decisions of one of them")
bounds = [kappa for kappa in kappas if kappa is not None]
left.plot([0, 0.11], [0, 0.11], color="0.7", zorder=0)
left.plot(bounds, [gap for gap, _ in new[1:]], "o-", label="gap of the decisions on new rows")
left.set(xlabel="kappa", ylabel="gap")
left.legend()
below = left.twinx()
below.plot(bounds, [accuracy for _, accuracy in new[1:]], "s--", color="tab:orange", label="accuracy on new rows")
below.set_ylabel("accuracy", color="tab:orange")

chosen = path.models[kappas.index(0.02)]
shares = chosen.scores_.models_[0].groups[0].predict_proba(X_new)[:, 1]
odds = trees.decision_function(X_new)
decided = chosen.predict(X_new) == chosen.classes_[1]
some = np.random.default_rng(0).permutation(len(odds))[:2500]
for value, colour, name in ((False, "tab:red", "no"), (True, "tab:blue", "yes")):
    shown = some[decided[some] == value]
    right.scatter(odds[shown], shares[shown], s=5, color=colour, alpha=0.5, label=name)
right.axvline(0, color="0.4", linewidth=1, linestyle=":")
right.set(xlabel="log-odds of passing, by the trees", ylabel=f"probability of {chosen.scores_.groups_.labels[1]!r}")
right.legend(title="predicted to pass", markerscale=3)
plt.show()
