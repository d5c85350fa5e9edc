"""Where the group is needed, what a fitted model keeps, and small groups in what is published."""

import pickle

import numpy as np

from fairconstrained import FairHeadClassifier, RateParityClassifier, fairness_report
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(4000, n_features=5, random_state=0)
group = np.where(group == 0, "a", "b")

# prediction
shared = RateParityClassifier(kappa=0.05).fit(X, y, sensitive_features=group)
shared.predict(X)  # no group
by_group = RateParityClassifier(kappa=0.05, group_interactions=True).fit(X, y, sensitive_features=group)
by_group.predict(X, sensitive_features=group)
try:
    by_group.predict(X)
except ValueError as error:
    print(error)
# end of prediction
else:
    raise AssertionError("a model with scores for each group has decided without it")

# what is kept
print("names of the groups:", shared.groups_)
print(len(pickle.dumps(shared)), "bytes with the hashes of its rows")
print(len(pickle.dumps(shared.forget_rows())), "bytes without")
# end of what is kept


def arrays(thing, seen=None):
    """Every array in an object, however deep."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, (str, bytes, type)):
        return
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        yield thing
    elif isinstance(thing, dict):
        for value in thing.values():
            yield from arrays(value, seen)
    elif isinstance(thing, (list, tuple, set)):
        for value in thing:
            yield from arrays(value, seen)
    elif hasattr(thing, "__dict__"):
        yield from arrays(vars(thing), seen)


head = FairHeadClassifier(RateParityClassifier(kappa=None), RateParityClassifier(kappa=0.05), random_state=0)
head.fit(X, y, sensitive_features=group).forget_rows()
assert len(pickle.dumps(shared)) < 10_000
for model in (shared, by_group.forget_rows(), head):
    largest = max(array.size for array in arrays(model))
    assert 0 < largest < 500, largest  # nothing in it has an entry for every row

# small groups
rare = np.where(np.arange(4000) < 20, "c", group)
report = fairness_report(y, shared.decision_function(X), sensitive_features=rare, n_resamples=0)
print(report.table[["n_samples", "positive_rate"]])
kept = report.table["n_samples"] >= 30
published = report.table.where(kept)  # rates of fewer people are not shown
# end of small groups
assert published.loc["c"].isna().all()
assert published.loc[["a", "b"], "positive_rate"].notna().all()
