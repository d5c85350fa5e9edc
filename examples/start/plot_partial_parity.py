"""
Partial parity: score curves and densities before and after
===========================================================

The effect of a bound on an interval of ranks on the scores, and the meaning of ``kappa`` in figures.

The school of the bundled law school data offers support to students who are likely to fail the bar examination: those
in the bottom 30 % of the predicted scores of their group, or those below a common threshold in that region. For every
threshold in that region, it should select about equal shares of White and Non-White students. So the distributions of
the scores have to be alike on the ranks from 0.7 to 1, where 0 is the top.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import granularity, partial_statistical_parity_gap, score_curve
from fairconstrained.plotting import ScoreCurveDisplay, ScoreDensityDisplay

law = load_law_school()
rows = train_test_split(law.data, law.target, law.sensitive_features, test_size=0.3, random_state=0)
X, X_test, y, y_test, race, race_test = rows
scaler = StandardScaler().fit(X)
X, X_test = scaler.transform(X), scaler.transform(X_test)

bottom = (0.7, 1.0)
models = {
    "no bound": PartialParityClassifier(kappa=None),
    "kappa = 0.1 on the bottom 30 %": PartialParityClassifier(kappa=0.1, interval=bottom),
    "kappa = 0.03 on all ranks": PartialParityClassifier(kappa=0.03),
}
for model in models.values():
    model.fit(X, y, sensitive_features=race)

# %%
# Where the scores lie
# --------------------
#
# Shaded: the bottom 30 % of each group. Without a bound the two shaded parts hardly overlap, so that a threshold which
# selects some of the White students there selects most of the Non-White ones. With the bound they coincide up to
# ``kappa``.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
for ax, name in zip(axes, list(models)[:2], strict=True):
    ScoreDensityDisplay.from_estimator(models[name], X, sensitive_features=race, interval=bottom, ax=ax)
    ax.set_title(name)
plt.show()

# %%
# The gap by hand
# ---------------
#
# ``score_curve`` gives the share of each group above every threshold. Within the interval, that is after clipping to
# it, the shares may differ by ``kappa`` times its length. The metric divides by the length, and ``fit`` has measured
# the same.

model = models["kappa = 0.1 on the bottom 30 %"]
curve = score_curve(None, model.decision_function(X), sensitive_features=race)
clipped = curve.clip(*bottom)
by_hand = (clipped["White"] - clipped["Non-White"]).abs().max() / (bottom[1] - bottom[0])
measured = model.constraint_values_["statistical_parity"]
step = granularity(race, interval=bottom)
print(f"by hand {by_hand:.4f}, measured by fit {measured:.4f}, one row can change it by {step:.4f}")
assert np.isclose(by_hand, measured)
assert measured <= model.kappa + step

# %%
# One group against the other
# ---------------------------
#
# Each point of a curve is a threshold: the share of White students above it, and that of Non-White students. On the
# diagonal the shares are equal. In the square where both ranks lie in the interval, the bound is a strip around the
# diagonal (dotted) whose half width is ``kappa`` times the length of the interval, here 0.03 of a group. The third
# model keeps to that strip everywhere: the gap on all ranks is divided by 1, so there ``kappa=0.03`` is the same strip.

figure, ax = plt.subplots(figsize=(6.0, 6.9), layout="constrained")
figure.suptitle("One group's share above every threshold against the other's")
for name, model in models.items():
    ScoreCurveDisplay.from_estimator(
        model, X, sensitive_features=race, interval=bottom, reference="White", name=name, ax=ax
    )
for shift in (-0.03, 0.03):
    ends = np.array([max(0.7, 0.7 - shift), min(1.0, 1.0 - shift)])
    ax.plot(ends, ends + shift, color="black", linestyle=":", linewidth=1.2)
plt.show()

# %%
# The price, on held-out data
# ---------------------------
#
# ``kappa`` bounds the gaps on the training data; those on held-out data differ, and the shorter the interval the more.
# The area under the ROC curve measures how well the scores rank all students. With one coefficient vector for everyone,
# a bound makes the model use less of the features in which the groups differ, and those predict who passes.
# Coefficients for each group avoid most of this cost, but then the race of a student has to be known, and used, for
# prediction.

per_group = PartialParityClassifier(kappa=0.1, interval=bottom, group_interactions=True)
models["the second, coefficients by group"] = per_group.fit(X, y, sensitive_features=race)

print(f"{'':34}{'gap, bottom 30 %':>24}{'gap, all ranks':>24}{'AUC':>9}")
print(f"{'':34}{'training':>12}{'held out':>12}{'training':>12}{'held out':>12}{'held out':>9}")
for name, model in models.items():
    scores = model.decision_function(X, sensitive_features=race)
    scores_test = model.decision_function(X_test, sensitive_features=race_test)
    gaps = [
        partial_statistical_parity_gap(None, values, sensitive_features=groups, interval=interval)
        for interval in (bottom, (0.0, 1.0))
        for values, groups in ((scores, race), (scores_test, race_test))
    ]
    print(f"{name:34}" + "".join(f"{gap:12.3f}" for gap in gaps) + f"{roc_auc_score(y_test, scores_test):9.3f}")
