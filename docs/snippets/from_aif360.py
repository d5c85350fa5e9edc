"""Metrics and methods of AIF360, written out by their definitions, beside those of this package."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import FairHeadClassifier, RateParityClassifier
from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import (
    demographic_parity_ratio_gap,
    group_rates,
    independence_gap,
    separation_gap,
    sufficiency_gap,
)
from fairconstrained.postprocessing import GroupThresholdClassifier

X, y, sex = make_biased_classification(6000, n_features=6, random_state=0)
X, X_new, y, y_new, sex, sex_new = X[:3000], X[3000:], y[:3000], y[3000:], sex[:3000], sex[3000:]

# the data
frame = pd.DataFrame(X, index=pd.MultiIndex.from_arrays([sex, y], names=["sex", "y"]))  # as aif360.sklearn has it
groups, labels = frame.index.get_level_values("sex"), frame.index.get_level_values("y")
model = make_pipeline(StandardScaler(), RateParityClassifier(kappa=0.05))
model.fit(frame, labels, rateparityclassifier__sensitive_features=groups)
# end of the data
assert model[-1].status_ == "optimal"

# metrics
free = LogisticRegression().fit(X, y)
decisions, scores = free.predict(X), free.decision_function(X)
rows = {"sensitive_features": sex}
rate = {g: decisions[sex == g].mean() for g in (0, 1)}  # 1 is the unprivileged group
print("statistical_parity_difference", rate[1] - rate[0], independence_gap(y, decisions, **rows))
print("disparate_impact", rate[1] / rate[0], 1 - demographic_parity_ratio_gap(y, decisions, **rows))


def rates(of, given):
    """The share of ``of`` among the rows of ``given``, less that of the other group."""
    return [of[given & (sex == g)].mean() for g in (1, 0)]


true, false = rates(decisions, y == 1), rates(decisions, y == 0)
odds = (abs(true[0] - true[1]) + abs(false[0] - false[1])) / 2
print("average_abs_odds_difference", odds, separation_gap(y, decisions, agg_labels="sum", **rows) / 2)
errors = rates(decisions != y, y >= 0)
print("error_rate_difference", errors[0] - errors[1], group_rates(y, scores, rate="error", **rows))
# end of metrics
assert np.isclose(abs(rate[1] - rate[0]), independence_gap(y, decisions, **rows))
quotient = rate[1] / rate[0]
assert np.isclose(min(quotient, 1 / quotient), 1 - demographic_parity_ratio_gap(y, decisions, **rows))
assert np.isclose(odds, separation_gap(y, decisions, agg_labels="sum", **rows) / 2)
assert np.isclose(abs(errors[0] - errors[1]), group_rates(y, scores, rate="error", **rows))
assert np.isclose(max(abs(true[0] - true[1]), abs(false[0] - false[1])), separation_gap(y, decisions, **rows))
assert np.isclose(abs(true[0] - true[1]), group_rates(y, scores, rate="true_positive", **rows))
precision, omission = rates(y, decisions == 1), rates(y, decisions == 0)
predictive = abs(precision[0] - precision[1]) + abs(omission[0] - omission[1])
assert np.isclose(predictive, sufficiency_gap(y, decisions, **rows))


# reweighing
def show(name, decided):
    """Print and return the gap of positive rates on new rows."""
    gap = independence_gap(y_new, decided, sensitive_features=sex_new)
    print(f"{name:24s} new rows: gap {gap:.3f}, accuracy {np.mean(decided == y_new):.3f}")
    return gap


table = pd.crosstab(sex, y, normalize=True)
expected = np.outer(table.sum(axis=1), table.sum(axis=0))
weights = (expected / table.to_numpy())[sex, y]
reweighed = LogisticRegression().fit(X, y, sample_weight=weights)
show("reweighing", reweighed.predict(X_new))

head = FairHeadClassifier(LogisticRegression(), RateParityClassifier(kappa=0.05), random_state=0)
head.fit(X, y, sensitive_features=sex)
bounded = show("a head", head.predict(X_new))
# end of reweighing
assert bounded < 0.09

# thresholds
by_group = GroupThresholdClassifier(
    LogisticRegression(), constraint=GroupRates("true_and_false_positive", kappa=0.03), random_state=0
)
by_group.fit(X, y, sensitive_features=sex)
print(by_group.thresholds_, by_group.constraint_values_)
show("thresholds by group", by_group.predict(X_new, sensitive_features=sex_new))
# end of thresholds
assert by_group.status_ == "optimal"
