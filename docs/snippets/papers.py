"""IDCA as its authors ran it, beside the default solver."""

import warnings

from fairconstrained import ConvergenceWarning, PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(600, random_state=0)
# "idca" bounds its surrogate, so the exact gap is larger than kappa, and fit says so
warnings.simplefilter("ignore", ConvergenceWarning)

# the paper's
paper = PartialParityClassifier(0.1, interval=(0.05, 0.3), solver="idca", solver_options="paper", max_iter=20)
paper.fit(X, y, sensitive_features=group)
print(paper.published_params_)
ours = PartialParityClassifier(0.1, interval=(0.05, 0.3), group_interactions=True)
ours.fit(X, y, sensitive_features=group)
for model in (paper, ours):
    print(model.status_, model.n_evaluations_, f"{model.constraint_values_['statistical_parity']:.3f}")
# end of the paper's
assert paper.published_params_["surrogate"] == "ramp"
assert ours.constraint_values_["statistical_parity"] <= 0.1 + ours.granularity_["statistical_parity"]
