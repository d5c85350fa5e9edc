"""LossParityClassifier with groups of two columns: small ones, many of them, and a bound on the gap to all rows."""

import numpy as np
from sklearn.preprocessing import StandardScaler

from fairconstrained import LossParityClassifier
from fairconstrained.datasets import make_acs_like
from fairconstrained.metrics import loss_parity_gap

# small groups
acs = make_acs_like(4000, sensitive=["RAC1P", "SEX"], random_state=0)
X, y, columns = StandardScaler().fit_transform(acs.data), acs.target, acs.sensitive_features
options = {"kappa": 0.1, "min_group_size": 20, "hidden_layer_sizes": (8,), "random_state": 0}
try:
    LossParityClassifier(**options).fit(X, y, sensitive_features=columns)
except ValueError as error:
    print(error)
model = LossParityClassifier(small_groups="merge", **options).fit(X, y, sensitive_features=columns)
table = model.group_losses_
print(model.constraint_values_)
print(table)
# end of small groups
assert len(table) > 12
assert set(table.loc[table["n_samples"] < 20, "compared_as"]) == {"(small groups)"}
assert model.constraint_values_["loss_parity"] <= 0.1 + 1e-6

# by hand
names = dict(zip(table.index, table["compared_as"], strict=True))
compared = [names[race, sex] for race, sex in columns.itertuples(index=False)]
print(loss_parity_gap(y, model.decision_function(X), sensitive_features=compared))
print(loss_parity_gap(y, model.decision_function(X), sensitive_features=columns))
# end of by hand
gap = loss_parity_gap(y, model.decision_function(X), sensitive_features=compared)
assert np.isclose(gap, model.constraint_values_["loss_parity"])
assert len(set(compared)) > 8
assert all("centre" in name for name in model.multipliers_)
assert loss_parity_gap(y, model.decision_function(X), sensitive_features=columns) > 0.2

# all rows
overall = LossParityClassifier(reference="overall", small_groups="ignore", **options)
overall.fit(X, y, sensitive_features=columns)
print(overall.constraint_values_, overall.multipliers_)
# end of all rows
assert overall.constraint_values_["loss_parity"] <= 0.1 + 1e-6
assert all("all" in name for name in overall.multipliers_)
