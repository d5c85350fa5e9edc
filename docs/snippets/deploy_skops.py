"""A fitted model as a file of skops."""

import skops.io as sio
from sklearn.ensemble import HistGradientBoostingClassifier

from fairconstrained import FairHeadClassifier, PartialParityClassifier, skops_trusted_types
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(1000, random_state=0)
model = PartialParityClassifier(kappa=0.1).fit(X, y, sensitive_features=group)

# save
sio.dump(model, "model.skops")
loaded = sio.load("model.skops", trusted=skops_trusted_types())

# types of others
head = FairHeadClassifier(HistGradientBoostingClassifier(max_iter=20), model, random_state=0)
sio.dump(head.fit(X, y, sensitive_features=group), "head.skops")
others = set(sio.get_untrusted_types(file="head.skops")) - set(skops_trusted_types())
print(others)
loaded_head = sio.load("head.skops", trusted=[*skops_trusted_types(), *others])

# checks
assert others == {"sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"}
assert (loaded_head.predict(X) == head.predict(X)).all()
assert (loaded.predict(X) == model.predict(X)).all()
assert loaded.constraint_values_ == model.constraint_values_
