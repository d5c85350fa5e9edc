"""
Thresholds by group
===================

A threshold for every group on the scores of a finished model, the best ones of all under bounds on rates.

``GroupThresholdClassifier`` takes any classifier of scikit-learn's kind, an objective of the decisions, and bounds. It
is for decisions that may know the group of a row.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score, roc_curve
from sklearn.model_selection import train_test_split

from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import load_law_school
from fairconstrained.postprocessing import GroupThresholdClassifier

# %%
# A model that exists
# -------------------
#
# Boosted trees that predict who passes the bar exam. Thresholds are chosen on rows that they have not seen, and judged
# on a third part.

law = load_law_school()
X, X_new, y, y_new, groups, groups_new = train_test_split(
    law.data, law.target, law.sensitive_features, test_size=0.4, stratify=law.sensitive_features, random_state=0
)
X, X_other, y, y_other, groups, groups_other = train_test_split(
    X, y, groups, test_size=0.5, stratify=groups, random_state=0
)
trees = HistGradientBoostingClassifier(max_iter=50, learning_rate=0.05, random_state=0).fit(X, y)


def fitted(**options):
    """Thresholds with the best balanced accuracy under some bounds."""
    model = GroupThresholdClassifier(trees, objective="balanced_accuracy", cv="prefit", **options)
    return model.fit(X_other, y_other, sensitive_features=groups_other)


# %%
# One bound after the other
# -------------------------
#
# Nearly everybody passes, so the objective is the balanced accuracy. The last model has two bounds: rates of true
# positives that differ by 0.03 at most, and are at least 80 % in every group.

models = {
    "no bound": fitted(kappa=None),
    "demographic parity": fitted(kappa=0.03, constraint="demographic_parity"),
    "equal opportunity": fitted(kappa=0.03, constraint="equal_opportunity"),
    "equal opportunity, at least 0.8": fitted(
        constraint=[
            ("opportunity", GroupRates("true_positive", kappa=0.03)),
            ("hits", GroupRates("true_positive", rule="floor", kappa=0.8)),
        ]
    ),
}
for name, model in models.items():
    decided = model.predict(X_new, sensitive_features=groups_new)
    values = {key: round(float(value), 3) for key, value in model.constraint_values_.items()}
    print(f"{name!r}: {model.status_}, {values}, on new rows {balanced_accuracy_score(y_new, decided):.3f}")

# %%
# The price of a bound
# --------------------
#
# Left, the rates of both groups with each of the models, on their ROC curves: a bound is a window, which the points of
# the two groups have to share; that of equal opportunity is 0.03 high. Right, the best balanced accuracy for each width
# of the window.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.6), layout="constrained")
figure.suptitle("Rates of both groups at their thresholds, and the price of the bounds")
scores = trees.decision_function(X_other)
is_positive = y_other == trees.classes_[1]
for group, style in zip(np.unique(groups_other), ("-", "--"), strict=True):
    own = groups_other == group
    alarms, hits, at = roc_curve(is_positive[own], scores[own])
    left.plot(alarms, hits, style, color="0.6", label=f"ROC curve of {group!r}")
    for (name, model), marker in zip(models.items(), "osD^", strict=True):
        above = scores[own] > model.thresholds_[group]
        point = above[~is_positive[own]].mean(), above[is_positive[own]].mean()
        colour = f"C{list(models).index(name)}"
        left.plot(*point, marker, color=colour, label=name if style == "-" else None, linestyle="none")
left.set(xlabel="false positive rate", ylabel="true positive rate", xlim=(0, 1), ylim=(0, 1))
left.legend(fontsize=8, loc="lower right")

kappas = [0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4]
for constraint in ("demographic_parity", "equal_opportunity", "predictive_parity"):
    best = [1 - fitted(kappa=kappa, constraint=constraint).objective_ for kappa in kappas]
    right.plot(kappas, best, "o-", label=constraint.replace("_", " "))
right.set(xlabel="kappa", ylabel="best balanced accuracy")
right.legend()
plt.show()
