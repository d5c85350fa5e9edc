"""A fitted model as a file, and as a plain model of scikit-learn."""

import pickle

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(1000, random_state=0)

# pickle
pipeline = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.1))
pipeline.fit(X, y, partialparityclassifier__sensitive_features=group)
loaded = pickle.loads(pickle.dumps(pipeline))

# plain
plain = make_pipeline(pipeline[0], pipeline[-1].to_sklearn())
print(plain)

# threshold
strict = PartialParityClassifier(kappa=0.1, threshold=0.5).fit(X, y, sensitive_features=group)
moved = strict.to_sklearn(absorb_threshold=True)

# checks
assert (loaded.predict(X) == pipeline.predict(X)).all()
assert (plain.predict(X) == pipeline.predict(X)).all()
assert np.allclose(plain.decision_function(X), pipeline.decision_function(X))
assert np.allclose(plain.predict_proba(X), pipeline.predict_proba(X))
assert (moved.predict(X) == strict.predict(X)).all()
assert np.allclose(moved.decision_function(X), strict.decision_function(X) - 0.5)
