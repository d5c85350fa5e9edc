"""Output of a fit: status, values, granularity, prices, estimates for new rows, hints, and progress."""

import warnings

from fairconstrained import RateParityClassifier
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(3000, n_features=6, random_state=0)

# a fit
model = RateParityClassifier(kappa=0.05, constraint="demographic_parity").fit(X, y, sensitive_features=group)
print("status_", model.status_)
print("constraint_values_", model.constraint_values_)
print("granularity_", model.granularity_)
print("violation_", model.violation_)
print("new_row_gaps_", model.new_row_gaps_)
print("objective_", round(model.objective_, 4))
print("prices_", model.prices_)
print("hints_", model.hints_)
# end of a fit
assert model.status_ == "optimal"
assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
estimate = model.new_row_gaps_["demographic_parity"]
assert 0.05 < estimate.estimate < 0.05 + 2 * estimate.standard_error  # as the page says

# a price
looser = RateParityClassifier(kappa=0.06, constraint="demographic_parity").fit(X, y, sensitive_features=group)
print(f"{model.objective_ - looser.objective_:.5f} {0.01 * model.prices_['demographic_parity']:.5f}")
# end of a price

# progress
RateParityClassifier(kappa=0.05, verbose=1).fit(X, y, sensitive_features=group)
# end of progress

# no groups
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    forgotten = RateParityClassifier(kappa=0.05).fit(X, y)
print(forgotten.status_, forgotten.constraint_values_)
print(f"{caught[0].category.__name__}: {caught[0].message}")
# end of no groups
assert forgotten.status_ == "unconstrained"
assert forgotten.constraint_values_ == {}

# out of reach
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    missed = RateParityClassifier(kappa=0.02, solver="idca", max_iter=1).fit(X, y, sensitive_features=group)
print(missed.status_, missed.constraint_values_, missed.violation_)
print(f"{caught[0].category.__name__}: {caught[0].message}")
# end of out of reach
assert missed.status_ == "infeasible"
assert missed.violation_ > missed.granularity_["demographic_parity"]

# a costly bound
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    strict = RateParityClassifier(kappa=0.01).fit(X[:, :2], y, sensitive_features=group)
print([warning.category.__name__ for warning in caught])
print(*strict.hints_)
# end of a costly bound
