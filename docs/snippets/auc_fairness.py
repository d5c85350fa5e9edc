"""AUCFairClassifier: the bound, sets of one's own, both surrogates in a picture, a stream, a network, many groups."""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from fairconstrained import AUCFairClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import inter_group_auc_gap, subset_auc_gap
from fairconstrained.plotting import ParetoFrontDisplay, SubsetRocDisplay

# the bound
X, y, group = make_biased_classification(1000, 5, group_shift=(0.5, 0.0), random_state=0)
X_new, y_new, group_new = make_biased_classification(20_000, 5, group_shift=(0.5, 0.0), random_state=1)
free = AUCFairClassifier(kappa=None).fit(X, y, sensitive_features=group)
fair = AUCFairClassifier(kappa=0.02).fit(X, y, sensitive_features=group)
print(fair.status_, fair.constraint_values_)
for model in (free, fair):
    scores = model.decision_function(X_new)
    gap = inter_group_auc_gap(y_new, scores, sensitive_features=group_new)
    print(f"new rows: AUC {roc_auc_score(y_new, scores):.3f}, gap {gap:.3f}")
# end of the bound
assert fair.status_ == "optimal"
assert np.isclose(
    inter_group_auc_gap(y, fair.decision_function(X), sensitive_features=group), fair.constraint_values_["inter_group"]
)
assert fair.constraint_values_["inter_group"] <= 0.0201 < free.constraint_values_["inter_group"]


# any four sets
def positives_over_all_negatives(positive, groups):
    """Positives of group 0 against those of group 1, both over everybody's negatives."""
    one = groups == 1
    return ~one & positive, ~positive, one & positive, ~positive


own = AUCFairClassifier(kappa=0.02, constraint=positives_over_all_negatives).fit(X, y, sensitive_features=group)
print(own.constraint_values_)
# end of the sets
assert np.isclose(
    subset_auc_gap(
        y, own.decision_function(X), subsets=positives_over_all_negatives, sensitive_features=group, pos_label=1
    ),
    own.constraint_values_["subset_auc"],
)

# a stream
quadratic = {"surrogate": "quadratic", "objective": "auc"}
stream = AUCFairClassifier(kappa=0.2, **quadratic)
for rows in np.array_split(np.argsort(group, kind="stable"), 10):  # one group after the other
    stream.partial_fit(X[rows], y[rows], classes=[0, 1], sensitive_features=group[rows], groups=[0, 1])
whole = AUCFairClassifier(kappa=0.2, **quadratic).fit(X, y, sensitive_features=group)
print(abs(stream.coef_ - whole.coef_).max(), stream.constraint_values_, whole.constraint_values_)
# end of the stream
assert np.allclose(stream.coef_, whole.coef_, atol=1e-8)
assert np.isclose(stream.constraint_values_["inter_group_surrogate"], 0.2, atol=1e-6)

# an online network
online = AUCFairClassifier(kappa=0.3, hidden_layer_sizes=(10,), **quadratic, random_state=0)
for rows in np.array_split(np.arange(20_000), 400):  # or one row after the other
    online.partial_fit(X_new[rows], y_new[rows], [0, 1], group_new[rows], groups=[0, 1])
print(online.constraint_values_, online.violation_)
# end of the online network
assert roc_auc_score(y, online.decision_function(X)) > 0.8
assert online.violation_ < 0.1

# the picture
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 5), layout="constrained")
new = {"sensitive_features": group_new}
SubsetRocDisplay.from_estimator(free, X_new, y_new, ax=left, **new)
SubsetRocDisplay.from_estimator(fair, X_new, y_new, ax=middle, **new)
left.set_title("no bound")
middle.set_title("kappa = 0.02")

fronts = {
    "ramp": [fair, AUCFairClassifier(kappa=0.05).fit(X, y, sensitive_features=group), free],
    "quadratic": [
        AUCFairClassifier(kappa, **quadratic).fit(X, y, sensitive_features=group)
        for kappa in (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, None)
    ],
}
for name, models in fronts.items():
    ParetoFrontDisplay.from_estimator(
        models, X_new, y_new, performance="roc_auc", fairness="neg_inter_group_auc_gap", name=name, ax=right, **new
    )
right.set(xlabel="inter-group AUC gap", ylabel="AUC")
# end of the picture
figure.savefig("auc_fairness.png", dpi=110)

# a network
network = AUCFairClassifier(
    kappa=0.02, hidden_layer_sizes=(10,), alpha=1e-2, validation_fraction=0.2, max_iter=6, random_state=0
)
# end of the network
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the objective may not settle in so few iterations
    network.fit(X, y, sensitive_features=group)
print(network.status_, network.constraint_values_)
assert network.status_ in ("optimal", "max_iter")

# many groups
X, y, group = make_biased_classification(
    1000, 5, group_proportions=(0.5, 0.3, 0.2), positive_rates=(0.6, 0.4, 0.3), group_shift=(0.5, 0, 0), random_state=0
)
one = AUCFairClassifier(kappa=0.05, protected=0).fit(X, y, sensitive_features=group)
print(one.constraint_values_, one.multipliers_)
# end of many groups
assert inter_group_auc_gap(y, one.decision_function(X), sensitive_features=group, protected=0) <= 0.0501
