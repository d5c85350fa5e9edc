"""Bounds on rates of groups by name and as `GroupRates`: ratios, false positive rates, predictive values, floors."""

import numpy as np

from fairconstrained import RateParityClassifier
from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import (
    conditional_parity_gap,
    demographic_parity_ratio_gap,
    find_metric,
    group_rates,
    predictive_equality_gap,
    predictive_parity_gap,
)

# the rows
X, y, group = make_biased_classification(12_000, n_features=5, group_shift=(0.5, 0.0), random_state=0)
X, X_new, y, y_new, group, group_new = X[:4000], X[4000:], y[:4000], y[4000:], group[:4000], group[4000:]
free = RateParityClassifier(kappa=None).fit(X, y, sensitive_features=group)
for rate in ("selection", "true_positive", "false_positive", "positive_predictive_value"):
    _, table = group_rates(
        y_new, free.decision_function(X_new), sensitive_features=group_new, rate=rate, return_groups=True
    )
    print(f"{rate:26s}", table.iloc[:, 2].round(3).to_dict())
# end of the rows

# four fifths
model = RateParityClassifier(kappa=0.2, constraint="demographic_parity_ratio").fit(X, y, sensitive_features=group)
for name, fitted in (("no bound", free), ("four fifths", model)):
    gap = demographic_parity_ratio_gap(y_new, fitted.predict(X_new), sensitive_features=group_new)
    print(f"{name:12s} ratio on new rows {1 - gap:.2f}, accuracy {fitted.score(X_new, y_new):.3f}")
# end of four fifths
assert 1 - model.constraint_values_["demographic_parity_ratio"] >= 0.8
assert 1 - demographic_parity_ratio_gap(y_new, free.predict(X_new), sensitive_features=group_new) < 0.6
assert 1 - gap > 0.75

# false positives
model = RateParityClassifier(kappa=0.05, constraint="predictive_equality", promise="new_rows")
model.fit(X, y, sensitive_features=group)
for name, fitted in (("no bound", free), ("kappa=0.05", model)):
    gap = predictive_equality_gap(y_new, fitted.predict(X_new), sensitive_features=group_new)
    print(f"{name:12s} gap on new rows {gap:.3f}, accuracy {fitted.score(X_new, y_new):.3f}")
# end of false positives
assert model.new_row_gaps_["predictive_equality"].estimate <= 0.05 + model.granularity_["predictive_equality"]
assert gap < 0.06 < 0.1 < predictive_equality_gap(y_new, free.predict(X_new), sensitive_features=group_new)

# predictive parity
model = RateParityClassifier(kappa=0.05, constraint="predictive_parity").fit(X, y, sensitive_features=group)
for name, fitted in (("no bound", free), ("kappa=0.05", model)):
    gap = predictive_parity_gap(y_new, fitted.predict(X_new), sensitive_features=group_new)
    print(f"{name:12s} gap on new rows {gap:.3f}, accuracy {fitted.score(X_new, y_new):.3f}")
# end of predictive parity
assert model.constraint_values_["predictive_parity"] <= 0.05 + model.granularity_["predictive_parity"]
assert gap < 0.06 < predictive_parity_gap(y_new, free.predict(X_new), sensitive_features=group_new)

# within strata
rng = np.random.default_rng(0)
department = rng.choice(["research", "sales"], 12_000)
X_in = np.column_stack([np.vstack([X, X_new]), department == "sales"])
department, department_new = department[:4000], department[4000:]
model = RateParityClassifier(kappa=0.05, constraint="conditional_parity")
model.fit(X_in[:4000], y, sensitive_features=group, strata=department)
gap, table = conditional_parity_gap(
    y_new, model.predict(X_in[4000:]), sensitive_features=group_new, strata=department_new, return_groups=True
)
print(f"largest gap of a department on new rows {gap:.3f}")
print(table.iloc[:, 2:4].round(3))
# end of within strata
assert model.constraint_values_["conditional_parity"] <= 0.05 + model.granularity_["conditional_parity"]

# a floor
floor = GroupRates("true_positive", rule="floor", kappa=0.8)
model = RateParityClassifier(constraint=floor).fit(X, y, sensitive_features=group)
for name, fitted in (("no bound", free), ("floor 0.8", model)):
    least, table = group_rates(
        y_new,
        fitted.decision_function(X_new),
        sensitive_features=group_new,
        rate="true_positive",
        rule="floor",
        return_groups=True,
    )
    print(f"{name:12s} least rate on new rows {least:.3f}, accuracy {fitted.score(X_new, y_new):.3f}")
    print(table.iloc[:, 2].round(3).to_dict())
# end of a floor
assert model.constraint_values_["true_positive_floor"] >= 0.8
assert least > 0.75

# several
bounds = [
    ("selection ratio", GroupRates("selection", rule="ratio", kappa=0.2)),
    ("true positive rates", GroupRates("true_positive", rule="floor", kappa=0.7)),
    ("false positive rates", GroupRates("false_positive", rule="ceiling", kappa=0.25)),
    ("predictive values", GroupRates("positive_predictive_value", kappa=None)),
]
model = RateParityClassifier(constraint=bounds, objective="zero_one").fit(X, y, sensitive_features=group)
for name, value in model.constraint_values_.items():
    print(f"{name:22s} {value:.3f}, estimate for new rows {model.new_row_gaps_[name].estimate:.3f}")
print(f"{model.status_}, accuracy on new rows {model.score(X_new, y_new):.3f}")
# end of several
assert model.constraint_values_["selection ratio"] <= 0.2
assert model.constraint_values_["true positive rates"] >= 0.7
assert model.constraint_values_["false positive rates"] <= 0.25
floor = ("true positive rates", GroupRates("true_positive", rule="floor", kappa=0.75))
model = RateParityClassifier(constraint=[bounds[0], floor, bounds[2]], objective="zero_one", new_row_folds=None)
assert model.fit(X, y, sensitive_features=group).status_ == "infeasible"

# by name
info, _ = find_metric("disparate_impact")
assert info.function is demographic_parity_ratio_gap
