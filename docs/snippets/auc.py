"""Objectives for rankings: the area under the ROC curve, whole or at low false positive rates."""

import numpy as np
from sklearn.metrics import roc_auc_score

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import partial_group_auc_gap

X, y, group = make_biased_classification(1000, group_shift=(0.5, 0.0), random_state=0)

# the objectives
whole = PartialParityClassifier(kappa=0.05, constraint="group_auc", objective="auc")
whole.fit(X, y, sensitive_features=group)
early = PartialParityClassifier(
    kappa=0.05, constraint="group_auc", objective="auc", auc_interval=(0.0, 0.3), auc_loss="hinge"
)
early.fit(X, y, sensitive_features=group)
for model in (whole, early):
    scores = model.decision_function(X)
    print(f"AUC {roc_auc_score(y, scores):.3f}, partial {roc_auc_score(y, scores, max_fpr=0.3):.3f}")
# end of the objectives
for model in (whole, early):
    scores = model.decision_function(X)
    assert partial_group_auc_gap(None, scores, sensitive_features=group) <= 0.05 + 1 / np.bincount(group).min()
    assert roc_auc_score(y, scores) > 0.8
    assert np.abs(model.coef_).max() > 0.1

# the threshold
scores = whole.decision_function(X)
errors = [np.mean((scores > cut) != y) for cut in np.quantile(scores, np.linspace(0.01, 0.99, 99))]
assert np.mean(whole.predict(X) != y) <= min(errors)
