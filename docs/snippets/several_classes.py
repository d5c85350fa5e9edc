"""Three classes under bounds on rates, scores and losses, a head on a forest, a certificate and a report."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from fairconstrained import (
    FairHeadClassifier,
    FairnessReport,
    LossParityClassifier,
    PartialParityClassifier,
    RateParityClassifier,
    certify,
)
from fairconstrained.metrics import equal_opportunity_gap, independence_gap, loss_parity_gap, statistical_parity_gap
from fairconstrained.plotting import ScoreDensityDisplay

# rates
rng = np.random.default_rng(0)
group = rng.choice(["f", "m"], 2000)
X = rng.normal(size=(2000, 4))
X[:, :2] += 0.6 * (group == "m")[:, None]
scores = X @ rng.normal(size=(4, 3)) + rng.gumbel(size=(2000, 3))
y = np.array(["low", "mid", "high"])[scores.argmax(axis=1)]

model = RateParityClassifier(0.05).fit(X, y, sensitive_features=group)
print(model.classes_, model.coef_.shape, model.predict_proba(X[:1]).round(2))
print(independence_gap(y, model.predict(X), sensitive_features=group))  # at most 0.05, up to one row
print(model.class_gaps_["demographic_parity"])  # high, low, mid
print(model.group_rates_)
# end of rates
gap = independence_gap(y, model.predict(X), sensitive_features=group)
assert gap <= 0.05 + model.granularity_["demographic_parity"]
assert np.isclose(gap, max(model.class_gaps_["demographic_parity"].values()))

# others
scored = PartialParityClassifier(0.1, constraint="statistical_parity").fit(X, y, sensitive_features=group)
print(statistical_parity_gap(y, scored.decision_function(X), sensitive_features=group))
network = LossParityClassifier(0.02, hidden_layer_sizes=(8,), random_state=0).fit(X, y, sensitive_features=group)
print(loss_parity_gap(y, network.decision_function(X), sensitive_features=group))
# end of others
assert statistical_parity_gap(y, scored.decision_function(X), sensitive_features=group) <= 0.1 + 0.002
assert loss_parity_gap(y, network.decision_function(X), sensitive_features=group) <= 0.02 + 1e-6

# head
forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
head = RateParityClassifier(0.05, constraint="equal_opportunity")
model = FairHeadClassifier(forest, head, random_state=0).fit(X, y, sensitive_features=group)
print(model.constraint_values_, model.score(X, y))
print(equal_opportunity_gap(y, model.predict(X), sensitive_features=group))
# end of head
assert model.constraint_values_["equal_opportunity"] <= 0.05 + model.granularity_["equal_opportunity"]

# new rows
fit, new = slice(0, 1000), slice(1000, None)
model = RateParityClassifier(0.05).fit(X[fit], y[fit], sensitive_features=group[fit])
certificate = certify(model, X[new], y[new], sensitive_features=group[new], metric="independence_gap")
print(certificate)
print(certificate.by_class)
report = FairnessReport.from_estimator(model, X[new], y[new], sensitive_features=group[new], n_resamples=0)
print(report.gaps[["value", "class"]])
print(report.class_tables["high"])  # against "low" and "mid"
ScoreDensityDisplay.from_estimator(model, X[new], sensitive_features=group[new], pos_label="high")
# end of new rows
assert certificate.gap == report.gaps.loc["independence_gap", "value"]
assert certificate.upper_bound == certificate.by_class["upper_bound"].max()
