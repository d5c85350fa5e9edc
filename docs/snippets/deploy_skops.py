"""A fitted model as a file of skops."""

import skops.io as sio

from fairconstrained import PartialParityClassifier, skops_trusted_types
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(1000, random_state=0)
model = PartialParityClassifier(kappa=0.1).fit(X, y, sensitive_features=group)

# save
sio.dump(model, "model.skops")
loaded = sio.load("model.skops", trusted=skops_trusted_types())

# checks
assert (loaded.predict(X) == model.predict(X)).all()
assert loaded.constraint_values_ == model.constraint_values_
