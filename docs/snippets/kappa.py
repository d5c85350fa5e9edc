"""Promises of kappa, and their limits."""

import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning, NewRowsWarning
from fairconstrained.metrics import granularity, independence_gap, statistical_parity_gap

# where the number holds
X, y, group = make_biased_classification(26_000, n_features=40, random_state=0)
X, X_new, y, y_new, group, group_new = train_test_split(X, y, group, train_size=6000, stratify=group, random_state=0)


def show(name, model, **groups):
    """Print the gap of the training rows, the estimate for new rows, and the gap and accuracy of new rows."""
    model.fit(X, y, sensitive_features=group)
    estimate, error, _ = model.new_row_gaps_["demographic_parity"]
    decisions = model.predict(X_new, **groups)
    print(
        f"{name:24} training rows {model.constraint_values_['demographic_parity']:.3f}, "
        f"estimate {estimate:.3f} +- {error:.3f}, "
        f"new rows {independence_gap(None, decisions, sensitive_features=group_new):.3f} "
        f"at an accuracy of {np.mean(decisions == y_new):.3f}"
    )


bounded = {"kappa": 0.05, "constraint": "demographic_parity"}
show("default", PartialParityClassifier(**bounded))
show("promise='new_rows'", PartialParityClassifier(promise="new_rows", **bounded))
show(
    "group_interactions=True", PartialParityClassifier(group_interactions=True, **bounded), sensitive_features=group_new
)
# a solver that is free to choose all coefficients on the training rows
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    show("augmented_lagrangian", PartialParityClassifier(solver="augmented_lagrangian", **bounded))
print(caught[0].category.__name__, caught[0].message)
# end of where the number holds
assert [warning.category for warning in caught] == [NewRowsWarning]

X, y, group = make_biased_classification(6000, random_state=0)
X, X_new, y, y_new, group, group_new = train_test_split(X, y, group, test_size=0.5, random_state=0)

# the promise
kappa = 0.05
model = PartialParityClassifier(kappa=kappa).fit(X, y, sensitive_features=group)
gap = statistical_parity_gap(None, model.decision_function(X), sensitive_features=group)
assert model.status_ == "optimal"
assert gap <= kappa + granularity(group)
assert np.isclose(gap, model.constraint_values_["statistical_parity"])

# a solver that bounds the surrogate
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    surrogate = PartialParityClassifier(kappa=kappa, solver="switching_subgradient", max_iter=500)
    surrogate.fit(X, y, sensitive_features=group)
assert [warning.category for warning in caught] == [ConvergenceWarning]
assert surrogate.status_ == "infeasible"
assert surrogate.violation_ > granularity(group)

# no groups, no bound
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    no_groups = PartialParityClassifier(kappa=kappa).fit(X, y)
assert [warning.category for warning in caught] == [FairnessWarning]
unconstrained = PartialParityClassifier(kappa=None).fit(X, y, sensitive_features=group)
assert np.allclose(no_groups.coef_, unconstrained.coef_, atol=1e-3)

# a kappa that the data cannot resolve
try:
    PartialParityClassifier(kappa=0.01).fit(X[:100], y[:100], sensitive_features=group[:100])
except ValueError as error:
    print(error)
else:
    raise AssertionError("a gap of 0.01 cannot be told from zero with 100 rows")

# new data
gap_new = statistical_parity_gap(None, model.decision_function(X_new), sensitive_features=group_new)
print(f"kappa {kappa}, training data {gap:.4f}, new data {gap_new:.4f}, one row {granularity(group):.4f}")
assert gap_new > kappa
