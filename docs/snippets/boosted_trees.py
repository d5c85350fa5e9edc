"""FairBoostingClassifier: a table with categories and missing values, new rows, rows seen, and the booster."""

import numpy as np
import pandas as pd

from fairconstrained import FairBoostingClassifier, PartialParityClassifier
from fairconstrained.metrics import partial_equalized_odds_gap


# the bound
def applicants(n_samples, seed):
    """A table with missing incomes and a column of categories, whether loans were repaid, and two groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b"], n_samples, p=[0.6, 0.4])
    income = rng.normal(size=n_samples) + 1.2 * (group == "a")
    age = rng.uniform(20, 70, n_samples)
    job = rng.choice(["clerk", "farmer", "nurse", "student"], n_samples)
    risk = income - ((age - 45) / 15) ** 2 + 1.5 * (job == "nurse") - (job == "student") + 0.4 * (group == "a")
    repaid = (risk + rng.logistic(size=n_samples) > -0.5).astype(int)
    income[rng.random(n_samples) < 0.15] = np.nan
    return pd.DataFrame({"income": income, "age": age, "job": pd.Categorical(job)}), repaid, group


X, y, group = applicants(12_000, 0)
X_new, y_new, group_new = applicants(20_000, 1)
trees = {"constraint": "equalized_odds", "n_estimators": 150, "num_leaves": 6, "monotonic_cst": {"income": 1}}
free = FairBoostingClassifier(kappa=None, **trees).fit(X, y, sensitive_features=group)
fair = FairBoostingClassifier(kappa=0.05, **trees).fit(X, y, sensitive_features=group)
for model in (free, fair):
    scores = model.decision_function(X_new)
    new_gap = partial_equalized_odds_gap(y_new, scores, sensitive_features=group_new)
    print(model.constraint_values_, f"new rows: gap {new_gap:.3f}, accuracy {model.score(X_new, y_new):.3f}")
# end of the bound
assert fair.status_ == "completed"
assert fair.constraint_values_["equalized_odds"] <= 0.05 + fair.granularity_["equalized_odds"]
assert fair.n_boosters_ == 2
assert free.constraint_values_["equalized_odds"] > 0.1
new_gaps = [
    partial_equalized_odds_gap(y_new, model.decision_function(X_new), sensitive_features=group_new)
    for model in (free, fair)
]
assert new_gaps[1] < 0.5 * new_gaps[0]
accuracies = [model.score(X_new, y_new) for model in (free, fair)]
assert accuracies[1] > accuracies[0] - 0.04

# beside a line
numbers = [table[["income", "age"]].fillna(0.0) for table in (X, X_new)]
line = PartialParityClassifier(kappa=0.05, constraint="equalized_odds").fit(numbers[0], y, sensitive_features=group)
print(f"linear scores: accuracy {line.score(numbers[1], y_new):.3f}")
# end of beside a line
assert line.score(numbers[1], y_new) < accuracies[1] - 0.05

# fewest errors
decisive = FairBoostingClassifier(kappa=0.05, objective="zero_one", **trees).fit(X, y, sensitive_features=group)
for model in (fair, decisive):
    new_gap = model.constraint_values(X_new, y_new, sensitive_features=group_new)["equalized_odds"]
    print(f"{model.objective}: accuracy {model.score(X_new, y_new):.3f}, gap of new rows {new_gap:.3f}")
# end of fewest errors
assert decisive.constraint_values_["equalized_odds"] <= 0.05 + decisive.granularity_["equalized_odds"]
assert new_gap < new_gaps[1]
assert decisive.score(X_new, y_new) > accuracies[1] - 0.01

# rows that the trees know
known = FairBoostingClassifier(kappa=0.05, cv=None, **trees).fit(X, y, sensitive_features=group)
for model in (fair, known):
    new_gap = model.constraint_values(X_new, y_new, sensitive_features=group_new)
    print(model.n_boosters_, model.constraint_values_, "new rows:", new_gap)
# end of rows that the trees know
assert known.constraint_values_["equalized_odds"] <= 0.05 + known.granularity_["equalized_odds"]
assert new_gap["equalized_odds"] > new_gaps[1]

# early stopping
stopped = FairBoostingClassifier(kappa=0.05, early_stopping_rounds=30, **trees).fit(X, y, sensitive_features=group)
n_trees = stopped.n_trees_ // stopped.n_boosters_
print(f"{n_trees} of {stopped.n_iter_} trees of each booster, at most {stopped.n_estimators}")
# end of early stopping
assert n_trees <= stopped.n_iter_ <= 150

# the booster
print(dict(zip(fair.feature_names_in_, fair.feature_importances_.round(2).tolist(), strict=True)))
coded = X_new.assign(job=X_new["job"].cat.codes).to_numpy(dtype=float)
assert np.array_equal(fair.booster_.predict(coded, raw_score=True), fair.decision_function(X_new))
# end of the booster
assert fair.feature_importances_[1] > 0.2

# more trees
kept = fair.n_trees_ // fair.n_boosters_
fair.set_params(warm_start=True, n_estimators=200).fit(X, y, sensitive_features=group)
best = fair.n_trees_ // fair.n_boosters_
print(f"{kept} trees of each booster kept, {fair.n_iter_} more grown; the best number is {best}")
print(fair.constraint_values_)
# end of more trees
assert fair.n_iter_ == 200 - kept
assert kept <= best <= 200
