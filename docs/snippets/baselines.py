"""The baselines of the paper's comparison: what they bound, and what comes of it."""

from fairconstrained import PairwiseParityClassifier, PartialParityClassifier, RegularizedParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import partial_group_auc_gap, partial_statistical_parity_gap

X, y, group = make_biased_classification(1000, random_state=0)

# the comparison
models = {
    "constraint on the metric": PartialParityClassifier(kappa=0.1),
    "penalty": RegularizedParityClassifier(weight=0.3, max_iter=300),
    "quadratic surrogate of the AUC gap": PairwiseParityClassifier(kappa=1.0, solver="augmented_lagrangian"),
}
for name, model in models.items():
    scores = model.fit(X, y, sensitive_features=group).decision_function(X)
    gap = partial_statistical_parity_gap(None, scores, sensitive_features=group)
    order = partial_group_auc_gap(None, scores, sensitive_features=group)
    print(f"{name:36s} pSP {gap:.3f}, pGAUC {order:.3f}, accuracy {model.score(X, y):.3f}")
# end of the comparison
assert models["constraint on the metric"].violation_ <= 0.01
assert models["penalty"].status_ == "completed"
assert models["quadratic surrogate of the AUC gap"].violation_ <= 1e-5
