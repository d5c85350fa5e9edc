"""Objectives that count: costs, balanced accuracy, F1, and class weights."""

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score

from fairconstrained import RateParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.objectives import CostMatrix

X, y, group = make_biased_classification(4000, random_state=0)
y = y * (np.random.default_rng(0).random(y.size) < 0.4)

# what is counted
accurate = RateParityClassifier(0.05, objective="zero_one", random_state=0)
f1 = RateParityClassifier(0.05, objective="f1", random_state=0)
costly = RateParityClassifier(0.05, objective=CostMatrix([[0, 1], [5, 0]]), random_state=0)
balanced = RateParityClassifier(0.05, objective="zero_one", class_weight="balanced", random_state=0)
for model in (accurate, f1, costly, balanced):
    decisions = model.fit(X, y, sensitive_features=group).predict(X)
    print(f"F1 {f1_score(y, decisions):.3f}, positive {decisions.mean():.3f}, {model.constraint_values_}")
# end of what is counted
assert not accurate.predict(X).any()
for model in (accurate, f1, costly, balanced):
    assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
assert f1_score(y, f1.predict(X)) > f1_score(y, accurate.predict(X)) + 0.2
assert balanced_accuracy_score(y, balanced.predict(X)) > balanced_accuracy_score(y, accurate.predict(X)) + 0.1
