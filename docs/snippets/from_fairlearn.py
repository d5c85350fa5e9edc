"""Training with Fairlearn and with this package, side by side."""

import warnings

import numpy as np
from fairlearn.adversarial import AdversarialFairnessClassifier
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.preprocessing import CorrelationRemover
from fairlearn.reductions import (
    BoundedGroupLoss,
    DemographicParity,
    EqualizedOdds,
    ErrorRateParity,
    ExponentiatedGradient,
    FalsePositiveRateParity,
    GridSearch,
    SquareLoss,
    TruePositiveRateParity,
)
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairconstrained import (
    CorrelationPenaltyClassifier,
    FairHeadClassifier,
    LossParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import make_biased_classification, make_biased_regression
from fairconstrained.metrics import demographic_parity_ratio_gap, independence_gap

warnings.simplefilter("ignore", FutureWarning)
# a reduction
X, y, group = make_biased_classification(9000, n_features=6, random_state=0)
X, X_new, y, y_new, group, group_new = X[:3000], X[3000:], y[:3000], y[3000:], group[:3000], group[3000:]


def gap(decisions, metric=independence_gap):
    """Gap on the new rows."""
    return metric(y_new, decisions, sensitive_features=group_new)


theirs = ExponentiatedGradient(LogisticRegression(), DemographicParity(difference_bound=0.05))
theirs.fit(X, y, sensitive_features=group)
decisions = theirs.predict(X_new, random_state=0)
changed = np.mean(decisions != theirs.predict(X_new, random_state=1))
print(f"reduction: gap {gap(decisions):.3f}, accuracy {np.mean(decisions == y_new):.3f}")
print(f"share of its decisions that another seed changes: {changed:.3f}")

ours = RateParityClassifier(kappa=0.05, constraint="demographic_parity")
ours.fit(X, y, sensitive_features=group)
print(f"linear: gap {gap(ours.predict(X_new)):.3f}, accuracy {ours.score(X_new, y_new):.3f}, {ours.status_}")
ours = FairHeadClassifier(LogisticRegression(), head=RateParityClassifier(kappa=0.05), random_state=0)
ours.fit(X, y, sensitive_features=group)
print(f"head: gap {gap(ours.predict(X_new)):.3f}, accuracy {ours.score(X_new, y_new):.3f}, {ours.status_}")
# end of a reduction
assert changed > 0
assert np.array_equal(ours.predict(X_new), ours.predict(X_new))
assert gap(ours.predict(X_new)) < 0.08

# a ratio
theirs = ExponentiatedGradient(LogisticRegression(), DemographicParity(ratio_bound=0.8))
theirs.fit(X, y, sensitive_features=group)
ratio = 1 - gap(theirs.predict(X_new, random_state=0), demographic_parity_ratio_gap)
ours = RateParityClassifier(kappa=0.2, constraint="demographic_parity_ratio").fit(X, y, sensitive_features=group)
print(f"ratios on new rows: {ratio:.2f} and {1 - gap(ours.predict(X_new), demographic_parity_ratio_gap):.2f}")
# end of a ratio
assert ours.constraint_values_["demographic_parity_ratio"] <= 0.2

# moments
moments = [
    (DemographicParity(difference_bound=0.05), GroupRates("selection", rule="to_overall", kappa=0.05)),
    (TruePositiveRateParity(difference_bound=0.05), GroupRates("true_positive", rule="to_overall", kappa=0.05)),
    (FalsePositiveRateParity(difference_bound=0.05), GroupRates("false_positive", rule="to_overall", kappa=0.05)),
    (EqualizedOdds(difference_bound=0.05), GroupRates("true_and_false_positive", rule="to_overall", kappa=0.05)),
    (ErrorRateParity(difference_bound=0.05), GroupRates("error", rule="to_overall", kappa=0.05)),
]
for moment, constraint in moments:
    model = RateParityClassifier(constraint=constraint).fit(X, y, sensitive_features=group)
    moment.load_data(X, y, sensitive_features=group)
    violation = moment.gamma(lambda rows, fitted=model: fitted.predict(rows)).max()
    print(f"{moment.short_name:25s} {violation:.4f} {model.constraint_values_}")
    # end of moments
    # the same number in both packages
    assert np.isclose(violation, *model.constraint_values_.values())
    assert violation <= 0.05 + max(model.granularity_.values())

# a grid
theirs = GridSearch(LogisticRegression(), DemographicParity(), grid_size=10).fit(X, y, sensitive_features=group)
print([round(gap(model.predict(X_new)), 3) for model in theirs.predictors_])
path = fairness_path(RateParityClassifier(), X, y, sensitive_features=group, kappas=[0.2, 0.1, 0.05])
print(path.table[["kappa", "gap", "train_accuracy", "price"]])
model = path.best(0.1)
# end of a grid
assert list(path.table["gap"] <= path.table["kappa"] + 0.005) == [True] * 3

# thresholds
scores = LogisticRegression().fit(X[:1500], y[:1500])
rows = slice(1500, None)
theirs = ThresholdOptimizer(estimator=scores, prefit=True, predict_method="predict_proba")
theirs.fit(X[rows], y[rows], sensitive_features=group[rows])
decisions = theirs.predict(X_new, sensitive_features=group_new, random_state=0)
ours = FairHeadClassifier(scores, RateParityClassifier(kappa=0.02), cv="prefit", use_groups=True, random_state=0)
ours.fit(X[rows], y[rows], sensitive_features=group[rows])
print(f"gaps {gap(decisions):.3f} and {gap(ours.predict(X_new, sensitive_features=group_new)):.3f}")
# end of thresholds
assert ours.constraint_values_["demographic_parity"] <= 0.02 + ours.granularity_["demographic_parity"]
assert np.array_equal(*(ours.predict(X_new, sensitive_features=group_new) for _ in range(2)))

# correlation
remover = CorrelationRemover(sensitive_feature_ids=[X.shape[1]])
theirs = LogisticRegression().fit(remover.fit_transform(np.column_stack([X, group])), y)
decisions = theirs.predict(remover.transform(np.column_stack([X_new, group_new])))
ours = CorrelationPenaltyClassifier(weight=10.0).fit(X, y, sensitive_features=group)
print(f"gaps {gap(decisions):.3f} and {gap(ours.predict(X_new)):.3f}")
# end of correlation

# networks
theirs = AdversarialFairnessClassifier(
    predictor_model=[16], adversary_model=[16], epochs=10, alpha=1.0, random_state=0
).fit(X, y, sensitive_features=group)
ours = LossParityClassifier(constraint=GroupRates("selection", kappa=0.05), hidden_layer_sizes=(16,), random_state=0)
ours.fit(X, y, sensitive_features=group)
print(f"gaps {gap(theirs.predict(X_new)):.3f} and {gap(ours.predict(X_new)):.3f}")
# end of networks
assert ours.constraint_values_["demographic_parity"] <= 0.05 + ours.granularity_["demographic_parity"]

# losses
X, y, group = make_biased_regression(1500, random_state=0)
theirs = GridSearch(LinearRegression(), BoundedGroupLoss(SquareLoss(y.min(), y.max())), grid_size=10)
theirs.fit(X, y, sensitive_features=group)
free = PartialParityRegressor(constraint=GroupRates("squared", rule="ceiling", kappa=None))
free.fit(X, y, sensitive_features=group)
(largest,) = free.constraint_values_.values()  # half the mean squared error of the worse group
ours = PartialParityRegressor(constraint=GroupRates("squared", rule="ceiling", kappa=0.9 * largest))
ours.fit(X, y, sensitive_features=group)
for name, model in {"grid search": theirs, "no bound": free, "bound": ours}.items():
    errors = (y - model.predict(X)) ** 2
    print(f"{name:12s}", [round(float(errors[group == g].mean()), 3) for g in np.unique(group)])
# end of losses
assert ours.constraint_values_["squared_ceiling"] <= 0.9 * largest * (1 + 1e-6)
