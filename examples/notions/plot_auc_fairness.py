"""
Two AUCs that should be equal
=============================

Scores for ranking: a bound on the difference between two AUCs, instead of a difference of decisions.

The data are bundled: 20,798 law students, 92 % of the White and 72 % of the Non-White of whom passed the bar
examination at the first attempt. Take one who passed and one who failed, of different races. A score should put the
first one above the second one as often if the one who passed is White as if the other one is. The difference of these
two frequencies is the inter-group AUC gap, also called xAUC.
"""

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import AUCFairClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import inter_group_auc_gap
from fairconstrained.plotting import SubsetRocDisplay

sklearn.set_config(enable_metadata_routing=True)

law = load_law_school()
rows = train_test_split(law.data, law.target, law.sensitive_features, train_size=6000, random_state=0)
X, X_test, y, y_test, race, race_test = rows

# %%
# The curves whose areas are compared
# -----------------------------------
#
# The figure shows both AUCs that the gap compares, on rows that no fit has seen: of the Non-White who passed over the
# White who failed, and of the White who passed over the Non-White who failed. Grades and test scores differ so much
# between the two groups that a smaller gap costs AUC. On the right the areas are nearly equal, but the curves are not:
# they cross. :ref:`sphx_glr_auto_examples_kappa_plot_fairness_path.py` shows all bounds between these two models.

models = {
    "no bound": make_pipeline(StandardScaler(), AUCFairClassifier(kappa=None)),
    "bound": make_pipeline(StandardScaler(), AUCFairClassifier(kappa=0.03)),
}
for model in models.values():
    model.fit(X, y, sensitive_features=race)
figure, axes = plt.subplots(1, 2, figsize=(9, 5.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    SubsetRocDisplay.from_estimator(
        model, X_test, y_test, sensitive_features=race_test, metric="inter_group", protected="Non-White", ax=ax
    )
    auc = roc_auc_score(y_test, model.decision_function(X_test))
    ax.set_title(f"{name}: kappa = {model[-1].kappa}\noverall AUC {auc:.3f}")
plt.show()

# %%
# A stream
# --------
#
# With the quadratic surrogate and ``objective="auc"`` the fit depends on the training rows only through the mean and
# the covariance of every group and class. ``partial_fit`` updates these; the coefficients are the optimum for all rows
# so far, so in the end they are those of ``fit``, and the features need no scaling. With few rows the surrogate's bound
# holds, but the gap on new rows is still large. Dotted: ``fit`` on all rows.


def measure(model):
    """AUC and gap on the test rows."""
    scores = model.decision_function(X_test)
    return roc_auc_score(y_test, scores), inter_group_auc_gap(y_test, scores, sensitive_features=race_test)


options = {"kappa": 0.2, "surrogate": "quadratic", "objective": "auc"}
whole = AUCFairClassifier(**options).fit(X, y, sensitive_features=race)
stream, measured = AUCFairClassifier(**options), []
ends = np.unique(np.geomspace(200, len(y), 25).astype(int))
for begin, end in zip([0, *ends[:-1]], ends, strict=True):
    new = slice(begin, end)
    stream.partial_fit(X[new], y[new], classes=[0, 1], sensitive_features=race[new], groups=np.unique(race))
    measured.append(measure(stream))
print("largest difference from fit:", abs(stream.coef_ - whole.coef_).max())

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
figure.suptitle("AUC and gap of a model that learns from a stream")
for ax, values, final, name in zip(axes, np.transpose(measured), measure(whole), ["AUC", "gap"], strict=True):
    ax.plot(ends, values, "o-", markersize=4)
    ax.axhline(final, color="#777777", linestyle=":")
    ax.set(xscale="log", xlabel="rows so far", ylabel=f"{name}, test rows")
    ax.set_xticks([200, 500, 1000, 2000, 5000], ["200", "500", "1000", "2000", "5000"])
    ax.set_xticks([], minor=True)
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
