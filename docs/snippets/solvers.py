"""Three solvers on one problem, an option of one of them, and how near solutions are to a KKT point."""

import time
import warnings

from fairconstrained import PartialParityClassifier, RateParityClassifier
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(1500, random_state=0)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # two of the three bound the surrogate and warn about the metric
    for solver, max_iter in {"auto": None, "switching_subgradient": 500, "idca": 5}.items():
        begin = time.perf_counter()
        model = PartialParityClassifier(kappa=0.1, solver=solver, max_iter=max_iter)
        model.fit(X, y, sensitive_features=group)
        print(
            f"{model.solver_:22s} {model.status_:10s} gap {model.constraint_values_['statistical_parity']:.3f} "
            f"objective {model.objective_:.4f} evaluations {model.n_evaluations_} "
            f"{time.perf_counter() - begin:.1f} s"
        )
        # end of the comparison
        if solver == "auto":
            assert model.status_ == "optimal"

# options
model = PartialParityClassifier(kappa=0.1, solver="augmented_lagrangian", solver_options={"patience": 5})
model.fit(X, y, sensitive_features=group)
# end of options
assert model.status_ == "optimal"

# how near
found = {}
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the bound is on probabilities, and the gap of the decisions is larger
    for solver in ("augmented_lagrangian", "ssg", "plada"):
        model = RateParityClassifier(kappa=0.02, rate="sigmoid", solver=solver, compute_stationarity=True)
        report = model.fit(X, y, sensitive_features=group).stationarity_report_
        print(f"{solver:22s} eps {report['eps']:.0e}, violation {report['violation']:.3f}")
        # end of how near
        found[solver] = report
        assert model.stationarity_ == report["nearly_eps"] <= report["eps"]
assert found["augmented_lagrangian"]["eps"] < 0.001 < found["ssg"]["eps"] < found["plada"]["eps"]
