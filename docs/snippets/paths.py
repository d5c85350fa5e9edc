"""Paths of kappas, the choice among their models, and estimators that choose in fit."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    CorrelationPenaltyClassifier,
    FairnessPathCV,
    PartialParityClassifier,
    PartialParityClassifierCV,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import DemographicParity, EqualOpportunity
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(3000, 5, random_state=0)
X, X_new, y, y_new, group, group_new = train_test_split(X, y, group, test_size=0.5, random_state=0)

# a path
path = fairness_path(RateParityClassifier(), X, y, sensitive_features=group, n_kappas=7, cv=3)
print(path.table[["kappa", "gap", "price", "train_accuracy", "mean_test_gap", "mean_test_accuracy"]].round(3))
# end of the path
assert path.kappas[0] == np.inf
assert (path.table["gap"] <= path.kappas + 1 / np.bincount(group).min() + 1e-12).all()
assert path.table["mean_test_gap"].iloc[-1] > path.table["gap"].iloc[-1]

# the choice
fair = path.best(0.1)
fairer = path.best(0.1, one_standard_error=True)
print("kappa", fair.kappa, "or", fairer.kappa)
# end of the choice
chosen = path.table.iloc[path.best_index(0.1)]
assert chosen["mean_test_gap"] <= 0.1
assert fairer.kappa <= fair.kappa < 0.1
gap_new = fair.constraint_values(X_new, y_new, sensitive_features=group_new)["demographic_parity"]
spread = chosen["std_test_gap"]
print(f"gap {chosen['gap']:.3f}, held out {chosen['mean_test_gap']:.3f} +- {spread:.3f}, new rows {gap_new:.3f}")

# the picture
display = path.plot(name="held out")
path.plot(display.ax_, held_out=False, name="training rows")
# end of the picture
display.ax_.set(xlabel="demographic parity gap (smaller is fairer)", ylabel="accuracy")
display.figure_.savefig("paths.png", dpi=120)
plt.close(display.figure_)

# in fit
model = PartialParityClassifierCV(bound=0.12, constraint="demographic_parity", kappas=[0.2, 0.1, 0.06], cv=2)
model.fit(X, y, sensitive_features=group)
print(model.kappa_, model.coef_.shape, model.path_.table["mean_test_gap"].round(3).tolist())
# end of in fit
assert model.kappa_ in (0.1, 0.06)

# any estimator
model = FairnessPathCV(make_pipeline(StandardScaler(), RateParityClassifier()), bound=0.1, n_kappas=6, cv=3)
model.fit(X, y, sensitive_features=group)
print(model.best_estimator_[-1].kappa)
# end of any estimator
assert model.path_.table["mean_test_gap"][model.best_index_] <= 0.1

# other parameters
penalty = fairness_path(
    CorrelationPenaltyClassifier(), X, y, sensitive_features=group, param="weight", kappas=[0, 0.1, 1]
)
constraints = [("rate", DemographicParity(0.2)), ("tpr", EqualOpportunity(0.2))]
several = fairness_path(
    PartialParityClassifier(constraint=constraints),
    X,
    y,
    sensitive_features=group,
    param="constraint__rate__kappa",
    kappas=[0.2, 0.1],
)
print(several.table[["kappa", "gap_rate", "gap_tpr", "train_accuracy"]].round(3))
# end of other parameters
assert penalty.table["gap"].is_monotonic_decreasing
assert several.table["gap_rate"].iloc[1] < 0.11 < several.table["gap_rate"].iloc[0]
