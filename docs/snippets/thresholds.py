"""Thresholds by group for a classifier that exists: any objective under any bounds on rates."""

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import train_test_split

from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import make_biased_classification
from fairconstrained.objectives import CostMatrix
from fairconstrained.postprocessing import GroupThresholdClassifier

X, y, group = make_biased_classification(6000, random_state=0)
X, X_new, y, y_new, group, group_new = train_test_split(X, y, group, test_size=0.5, random_state=0)

# the thresholds
trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
model = GroupThresholdClassifier(trees, kappa=0.02, constraint="equalized_odds", objective="f1", random_state=0)
model.fit(X, y, sensitive_features=group)
print(model.thresholds_, model.constraint_values_, model.status_)
decisions = model.predict(X_new, sensitive_features=group_new)
# end of the thresholds
assert model.status_ == "optimal"
assert model.constraint_values_["equalized_odds"] <= 0.02 + 1e-12
assert f1_score(y_new, decisions) > 0.75

# several bounds
bounds = [
    ("rates", GroupRates("selection", rule="ratio", kappa=0.2)),
    ("hits", GroupRates("true_positive", rule="floor", kappa=0.7)),
    ("alarms", GroupRates("false_positive", kappa=0.1)),
]
costs = CostMatrix([[0, 1], [3, 0]])
careful = GroupThresholdClassifier(model.estimator_, constraint=bounds, objective=costs, cv="prefit")
careful.fit(X_new, y_new, sensitive_features=group_new)
print(careful.constraint_values_)
# end of several bounds
values = careful.constraint_values_
assert careful.status_ == "optimal"
assert values["rates"] <= 0.2 + 1e-9
assert values["hits"] >= 0.7
assert values["alarms"] <= 0.1 + 1e-12


# a function of the counts
def youden(tn, fp, fn, tp):
    return tp / (tp + fn) - fp / (tn + fp)


by_function = GroupThresholdClassifier(trees, 0.02, objective=youden, random_state=0)
by_function.fit(X, y, sensitive_features=group)
# end of a function of the counts
by_name = GroupThresholdClassifier(trees, 0.02, objective="balanced_accuracy", random_state=0)
by_name.fit(X, y, sensitive_features=group)
assert np.isclose(-by_function.objective_, 1 - 2 * by_name.objective_)
