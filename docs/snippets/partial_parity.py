"""Partial parity by hand: ranks, the interval, and the two gaps."""

import numpy as np

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import (
    granularity,
    independence_gap,
    partial_demographic_parity_gap,
    partial_statistical_parity_gap,
)

# the bound
X, y, group = make_biased_classification(4000, random_state=0)
top = (0.0, 0.2)
for kappa in (None, 0.1):
    model = PartialParityClassifier(kappa, interval=top).fit(X, y, sensitive_features=group)
    print(f"kappa {kappa}: {model.constraint_values_}, accuracy {model.score(X, y):.3f}")
# end of the bound

# by hand
score = model.decision_function(X)
alpha, beta = top
rank = {g: np.array([np.mean(score[group == g] > theta) for theta in score]) for g in (0, 1)}
clip = {g: np.clip(rank[g], alpha, beta) - alpha for g in (0, 1)}
by_hand = np.max(np.abs(clip[0] - clip[1])) / (beta - alpha)
gap = partial_statistical_parity_gap(None, score, sensitive_features=group, interval=top)
assert np.isclose(gap, by_hand)
assert np.isclose(gap, model.constraint_values_["statistical_parity"])

# the rank gap
inside = np.logical_or(*((alpha <= rank[g]) & (rank[g] < beta) for g in (0, 1)))
rank_by_hand = np.max(np.abs(rank[0] - rank[1])[inside])
rank_gap = partial_statistical_parity_gap(None, score, sensitive_features=group, interval=top, normalize=False)
assert np.isclose(rank_gap, rank_by_hand)
assert rank_gap >= gap * (beta - alpha) - 1e-12

# the promise
assert gap <= model.kappa + granularity(group, interval=top)

# one threshold
decisions = PartialParityClassifier(kappa=0.1, constraint="demographic_parity", objective="zero_one")
decisions.fit(X, y, sensitive_features=group)
score = decisions.decision_function(X)
assert np.isclose(
    partial_demographic_parity_gap(None, score, sensitive_features=group),
    independence_gap(None, decisions.predict(X), sensitive_features=group),
)

# coefficients for each group
per_group = PartialParityClassifier(kappa=0.1, interval=top, group_interactions=True)
per_group.fit(X, y, sensitive_features=group)
assert per_group.coef_.shape == (2, X.shape[1])
per_group.predict(X[:5], sensitive_features=group[:5])
