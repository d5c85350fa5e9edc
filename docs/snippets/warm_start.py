"""Many rows, first a part of them; and a path of tolerances, each fit from the one before."""

import numpy as np

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

# a part first
X, y, group = make_biased_classification(6000, random_state=0)
coarse = PartialParityClassifier(
    kappa=0.1,
    constraint="demographic_parity",
    solver="augmented_lagrangian",
    solver_options={"coarse_rows": 1500},
    new_row_folds=None,
    random_state=0,
)
coarse.fit(X, y, sensitive_features=group)
# end of the part
assert coarse.status_ == "optimal"
assert coarse.constraint_values_["demographic_parity"] <= 0.1 + 1 / np.bincount(group).min()

# a path
model = PartialParityClassifier(constraint="demographic_parity", solver="augmented_lagrangian", warm_start=True)
evaluations = []
for kappa in (0.3, 0.2, 0.1, 0.05):
    model.set_params(kappa=kappa).fit(X, y, sensitive_features=group)
    evaluations.append(model.n_evaluations_)
    print(f"kappa {kappa}: {model.constraint_values_}, objective {model.objective_:.4f}")
# end of the path
cold = PartialParityClassifier(kappa=0.05, constraint="demographic_parity", solver="augmented_lagrangian")
cold.fit(X, y, sensitive_features=group)
print("evaluations along the path", evaluations, "and cold", cold.n_evaluations_)
assert model.status_ == "optimal"
assert evaluations[-1] < cold.n_evaluations_
assert np.isclose(model.objective_, cold.objective_, rtol=0.02)
