"""An interval from an unconstrained model, and the theory of the gap on new data."""

import numpy as np

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import granularity, partial_statistical_parity_gap
from fairconstrained.model_selection import suggest_interval
from fairconstrained.theory import generalization_bound

X, y, group = make_biased_classification(4000, positive_rates=(0.5, 0.4), separation=(2.0, 1.0), random_state=0)

# suggest an interval
unconstrained = PartialParityClassifier(kappa=None).fit(X, y, sensitive_features=group)
suggestion = suggest_interval(unconstrained.decision_function(X), sensitive_features=group, rate=0.4)
print(suggestion.table)
model = PartialParityClassifier(kappa=0.1, interval=suggestion.interval).fit(X, y, sensitive_features=group)
# end of the suggestion
alpha, beta = suggestion.interval
assert alpha <= suggestion.rate < beta
gap = partial_statistical_parity_gap(
    None, unconstrained.decision_function(X), sensitive_features=group, interval=suggestion.interval
)
assert np.isclose(suggestion.gap, gap)
assert suggestion.gap > 0.2
assert model.constraint_values_["statistical_parity"] <= 0.1 + granularity(group, interval=suggestion.interval)

# the bound
bound = generalization_bound(np.bincount(group), vc_dim=X.shape[1] + 1, interval=suggestion.interval)
print(f"{bound.total:.2f}")
# end of the bound
assert bound.total == bound.estimation > 1
surrogate = generalization_bound(
    np.bincount(group), vc_dim=11, interval=suggestion.interval, n_levels=10, n_near=[80, 60], margin=0.05
)
assert surrogate.total > bound.total + 0.1
