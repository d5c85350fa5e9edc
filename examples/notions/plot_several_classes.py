"""
Three classes under one bound
=============================

Rates of every class that agree between two groups, with a head on a forest as well.

With more than two classes, a bound holds for every class against all others: the share of a group that is predicted to
be in a class differs by at most ``kappa`` between the groups, for each of the classes. Here the classes are thirds of
the final grades of law students, predicted after their first year.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairHeadClassifier, RateParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import independence_gap

law = load_law_school()
known = [law.feature_names.index(name) for name in ("zfygpa", "lsat", "ugpa", "fulltime", "fam_inc", "male", "tier")]
grades = law.data[:, law.feature_names.index("zgpa")]
thirds = np.array(["lowest", "middle", "highest"])[np.digitize(grades, np.quantile(grades, [1 / 3, 2 / 3]))]
X = StandardScaler().fit_transform(law.data[:, known])
parts = train_test_split(X, thirds, law.sensitive_features, test_size=0.75, random_state=0)
X_train, X_test, y_train, y_test, race_train, race_test = parts

# %%
# Models without and with a bound
# -------------------------------
#
# A linear model, the same under a bound, and gradient boosting under the same bound by a head on its scores. The rows
# that show what the bound is worth are at hand, so ``new_row_folds=None`` leaves out the estimates of the gaps there.

kappa = 0.1
boosting = HistGradientBoostingClassifier(max_iter=50, random_state=0)
models = {
    "no bound": RateParityClassifier(None),
    "bound": RateParityClassifier(kappa, new_row_folds=None),
    "boosting with a bound": FairHeadClassifier(
        boosting, RateParityClassifier(kappa, new_row_folds=None), random_state=0
    ),
}
for name, model in models.items():
    model.fit(X_train, y_train, sensitive_features=race_train)
    gap = independence_gap(y_test, model.predict(X_test), sensitive_features=race_test)
    print(f"{name}: {model.score(X_test, y_test):.3f} of new rows right, gap on new rows {gap:.3f}")

# %%
# By class, each against the others, on the training rows:

print(models["bound"].class_gaps_["demographic_parity"])

# %%
# Predicted shares of the classes
# -------------------------------
#
# On the three quarters of the rows that no model has seen. Without a bound, most students of the smaller group are
# predicted to be in the lowest third.

order = ["lowest", "middle", "highest"]
groups = ["White", "Non-White"]
figure, axes = plt.subplots(1, 3, figsize=(9.6, 3.4), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, models.items(), strict=True):
    predicted = model.predict(X_test)
    for place, group in enumerate(groups):
        shares = [(predicted[race_test == group] == third).mean() for third in order]
        axis.bar(np.arange(3) + (place - 0.5) * 0.38, shares, 0.36, label=group, color=["#0072B2", "#D55E00"][place])
    axis.set(xticks=range(3), xticklabels=order, title=name, xlabel="predicted third")
axes[0].set_ylabel("share of the group")
axes[0].legend()
for model in list(models.values())[1:]:
    assert model.constraint_values_["demographic_parity"] <= kappa + model.granularity_["demographic_parity"]
