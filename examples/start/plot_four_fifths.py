"""
The four-fifths rule
====================

Selection rates by group before and after a bound on their ratio, and the price of every step towards it.

Audits of selection procedures divide the selection rate of each group by that of the group with the highest one; below
four fifths, they look closer. In the bundled law school data, students are selected whom a model expects in the upper
part of the class in the third year, by the admission test and the grades of the first year.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from fairconstrained import RateParityClassifier, fairness_path
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import demographic_parity_ratio_gap

law = load_law_school()
place = law.feature_names.index
known = law.data[:, [place(name) for name in ("lsat", "ugpa", "zfygpa", "tier", "fulltime")]]
upper = (law.data[:, place("decile3")] >= 7).astype(int)
X, X_new, y, y_new, race, race_new = train_test_split(
    StandardScaler().fit_transform(known),
    upper,
    law.sensitive_features,
    test_size=0.5,
    random_state=0,
    stratify=law.sensitive_features,
)


def selection(model, X, y, groups):
    """Ratio of the selection rates of the groups, and the rates."""
    gap, table = demographic_parity_ratio_gap(y, model.predict(X), sensitive_features=groups, return_groups=True)
    return 1 - gap, table["selection"]


# %%
# The path
# --------
#
# The metric of a ratio is one minus it, so a ratio of at least 0.8 is ``kappa=0.2``. On the training rows every model
# keeps its bound exactly; on new rows the ratio is a little smaller.

ratios = [0.5, 0.6, 0.7, 0.8, 0.9]
estimator = RateParityClassifier(constraint="demographic_parity_ratio", new_row_folds=None)
path = fairness_path(estimator, X, y, sensitive_features=race, kappas=[None, *(1 - np.array(ratios))])
training = [selection(model, X, y, race) for model in path.models]
new = [selection(model, X_new, y_new, race_new) for model in path.models]
accuracy = [model.score(X_new, y_new) for model in path.models]
print("bound    ratio  on new rows  accuracy")
for bound, (ratio, _), (new_ratio, _), share in zip(["none", *ratios], training, new, accuracy, strict=True):
    print(f"{bound!s:6s}  {ratio:6.3f}  {new_ratio:11.3f}  {share:8.3f}")

# %%
# A bound on the estimate for new rows
# ------------------------------------
#
# ``promise="new_rows"`` bounds an estimate of the ratio on new rows in place of that on the training rows. The estimate
# comes from folds of the rows; three take less time than the five of the default.

careful = RateParityClassifier(kappa=0.2, constraint="demographic_parity_ratio", promise="new_rows", new_row_folds=3)
careful.fit(X, y, sensitive_features=race)
careful_ratio, _ = selection(careful, X_new, y_new, race_new)
print(f"{careful.status_}: ratio {careful_ratio:.3f} on new rows, accuracy {careful.score(X_new, y_new):.3f}")

# %%
# Before and after
# ----------------
#
# Left: the rates of both groups. The grey band begins at four fifths of the higher rate. Right: the ratio, and the
# accuracy on new rows that is left.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained")
four_fifths = ratios.index(0.8) + 1
columns = {
    "no bound,\ntraining": training[0],
    "no bound,\nnew rows": new[0],
    "ratio 0.8,\ntraining": training[four_fifths],
    "ratio 0.8,\nnew rows": new[four_fifths],
}
for column, (_, rates) in enumerate(columns.values()):
    left.fill_between([column - 0.4, column + 0.4], 0.8 * rates.max(), rates.max(), color="#DDDDDD", lw=0)
for group, color in (("White", "#0072B2"), ("Non-White", "#D55E00")):
    left.plot([rates[group] for _, rates in columns.values()], "o", ms=8, color=color, label=group)
for column, (ratio, rates) in enumerate(columns.values()):
    left.text(column, rates.min() - 0.02, f"{ratio:.2f}", ha="center", va="top")
left.set_xticks(range(len(columns)), columns)
left.set(ylim=(0, 0.6), ylabel="selection rate", title="rates, and their ratio below")
left.legend(frameon=False, loc="upper right", ncols=2)

right.plot([ratio for ratio, _ in training], accuracy, "o-", color="#009E73", label="ratio on the training rows")
right.plot([ratio for ratio, _ in new], accuracy, "o--", color="#CC79A7", label="ratio on new rows")
right.plot(careful_ratio, careful.score(X_new, y_new), "D", color="black", label='promise="new_rows", on new rows')
right.axvline(0.8, color="#777777", linestyle=":", label="four fifths")
right.set(xlabel="ratio of the selection rates", ylabel="accuracy on new rows", title="the price")
right.legend(frameon=False, loc="lower left")
for ax in (left, right):
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The labels differ between the groups. The more the ratio has to exceed the quotient of these two shares, the more
# decisions have to contradict the labels, and no method can avoid that. Whether the labels deserve this trust is not a
# question of statistics.

for group in ("White", "Non-White"):
    print(f"{group}: a share of {upper[law.sensitive_features == group].mean():.2f} ends in the upper part")
assert all(ratio >= bound for bound, (ratio, _) in zip(ratios, training[1:], strict=True))
