"""FairHeadClassifier: trees on raw columns under a bound, a path, a finished model, and what the head may know."""

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator

from fairconstrained import AUCFairClassifier, FairHeadClassifier, PartialParityClassifier, fairness_path
from fairconstrained.metrics import independence_gap


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


X, y, group = applicants(8000, 0)
X_new, y_new, group_new = applicants(20_000, 1)


# a head
def measure(name, classifier):
    """Print the gap and the accuracy on new rows."""
    gap = independence_gap(None, classifier.predict(X_new), sensitive_features=group_new)
    print(f"{name:15} new rows: gap {gap:.3f}, accuracy {classifier.score(X_new, y_new):.3f}")


trees = HistGradientBoostingClassifier(max_iter=60, random_state=0)
head = PartialParityClassifier(kappa=0.05, constraint="demographic_parity")
model = FairHeadClassifier(trees, head, random_state=0).fit(X, y, sensitive_features=group)
print(model.status_, model.constraint_values_)
measure("trees alone", trees.fit(X, y))
measure("trees and head", model)
# end of a head
assert model.status_ == "optimal"
assert model.violation_ <= model.granularity_["demographic_parity"]
gaps = [independence_gap(None, each.predict(X_new), sensitive_features=group_new) for each in (trees, model)]
assert abs(gaps[1] - 0.05) < 0.03
assert gaps[0] > 0.2
assert model.score(X_new, y_new) > trees.score(X_new, y_new) - 0.08

# decisions
decisions = PartialParityClassifier(kappa=0.05, constraint="demographic_parity", objective="zero_one")
fewest_errors = FairHeadClassifier(trees, decisions, random_state=0).fit(X, y, sensitive_features=group)
# end of decisions
assert "n_sweeps" in fewest_errors.history_[0]
assert fewest_errors.violation_ <= fewest_errors.granularity_["demographic_parity"]

# a path
path = fairness_path(
    FairHeadClassifier(trees, head, random_state=0), X, y, sensitive_features=group, kappas=[None, 0.1, 0.05, 0.02]
)
print(path.table[["kappa", "gap", "train_accuracy", "price"]])
chosen = path.best(0.11)
# end of a path
assert chosen.named_kappas() == {"demographic_parity": 0.1}
assert all(each.scores_ is chosen.scores_ for each in path.models)

# a finished model
finished = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(X[:4000], y[:4000])
rest, rest_y, rest_group = X[4000:], y[4000:], group[4000:]
ranking = FairHeadClassifier(FrozenEstimator(finished), AUCFairClassifier(kappa=0.02), random_state=0)
ranking.fit(rest, rest_y, sensitive_features=rest_group)
print(ranking.constraint_values_, ranking.constraint_values(X_new, y_new, sensitive_features=group_new))
# end of a finished model
assert ranking.violation_ <= ranking.granularity_["inter_group"]
assert ranking.constraint_values(X_new, y_new, sensitive_features=group_new)["inter_group"] < 0.05
assert ranking.scores_.models_[0].base is finished

# who knows the group
known = FairHeadClassifier(trees, decisions, use_groups=True, random_state=0).fit(X, y, sensitive_features=group)
alone = FairHeadClassifier(trees, decisions, group_estimator=None, random_state=0).fit(X, y, sensitive_features=group)
accuracies = {
    "the group itself": known.score(X_new, y_new, sensitive_features=group_new),
    "an estimate": fewest_errors.score(X_new, y_new),
    "neither": alone.score(X_new, y_new),
}
print("accuracies on new rows:", accuracies)
# end of who knows the group
assert accuracies["the group itself"] > accuracies["an estimate"] > accuracies["neither"]
