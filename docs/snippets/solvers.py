"""Three solvers on one problem, each with some hundred evaluations, and an option of one of them."""

import time
import warnings

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(1500, random_state=0)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # two of the three bound the surrogate and warn about the metric
    for solver, max_iter in {"augmented_lagrangian": 50, "switching_subgradient": 500, "idca": 5}.items():
        begin = time.perf_counter()
        model = PartialParityClassifier(kappa=0.1, solver=solver, max_iter=max_iter)
        model.fit(X, y, sensitive_features=group)
        print(
            f"{solver:22s} {model.status_:10s} gap {model.constraint_values_['statistical_parity']:.3f} "
            f"objective {model.objective_:.4f} evaluations {model.n_evaluations_} "
            f"{time.perf_counter() - begin:.1f} s"
        )
        if solver == "augmented_lagrangian":
            assert model.status_ == "optimal"

# options
model = PartialParityClassifier(kappa=0.1, solver_options={"patience": 5})
model.fit(X, y, sensitive_features=group)
assert model.status_ == "optimal"
