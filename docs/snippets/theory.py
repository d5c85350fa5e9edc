"""Numbers of iterations that the papers' theorems ask for, beside those that a run needed."""

import warnings

import numpy as np

from fairconstrained import FairnessWarning, MinorityRateClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.theory import idca_parameters, ipc_parameters, plada_steps, ssg_iterations, switching_iterations

# fit warns that the share in the predictions differs; the share in the probabilities is bounded here
warnings.simplefilter("ignore", FairnessWarning)
X, y, group = make_biased_classification(1500, random_state=0)

# constants
rows = np.column_stack([X, np.ones(len(X))])
moment = np.linalg.eigvalsh(rows.T @ rows / len(X))[-1]  # the largest eigenvalue of the mean of x x'
M = np.linalg.norm(rows, axis=1).mean()  # slopes of log loss and sigmoid are at most 1
rho = moment / (6 * np.sqrt(3))  # the sigmoid's second derivative is at most 1 / (6 sqrt(3))
D = 2 * 5.0  # no two coefficient vectors of magnitude 5 are farther apart
# end of the constants

# ipc
known = {"lipschitz": M, "diameter": D, "weak_convexity": rho, "proximity": 2 * rho}
outer = ipc_parameters(0.1, **known, slater=0.05, objective_gap=np.log(2))
inner = switching_iterations(outer.precision, **known)
print(f"ipc: {outer.max_iter} subproblems to {outer.precision:.4f}, limited by {outer.limited_by}")
print(f"     {inner.n_iter:.1e} steps for each, limited by the {inner.limited_by}")
model = MinorityRateClassifier(0.3, minority=1, l1_radius=5.0, compute_stationarity=True)
model.fit(X, y, sensitive_features=group)
print(f"auto: {model.n_evaluations_} evaluations, and a distance of {model.stationarity_:.1e}")
# end of ipc
assert model.stationarity_ < 0.1
assert model.n_evaluations_ < outer.max_iter
assert outer.limited_by == "multipliers"
assert inner.n_iter > 10**7
# plada
steps = plada_steps(smoothness=moment / 4, constraint_lipschitz=M)
print(f"plada: steps below {steps.learning_rate:.4f} and {steps.slack_rate:.3f}, limited by the {steps.limited_by}")
# end of plada
assert steps.slack_rate < 0.1  # the published one
# idca
idca = idca_parameters(0.1, lipschitz=M, strong_convexity=1.0, slater=0.05, objective_gap=np.log(2))
tk = ssg_iterations(idca.precision, lipschitz=M, strong_convexity=1.0, distance=D)
print(f"idca: {idca.max_iter:.1e} subproblems of {tk:.1e} steps, limited by {idca.limited_by}")
# end of idca
assert idca.max_iter > 10**6
