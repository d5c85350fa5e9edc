"""A pipeline with a fair classifier in ONNX."""

import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification

X, y, group = make_biased_classification(1000, random_state=0)
pipeline = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.1))
pipeline.fit(X, y, partialparityclassifier__sensitive_features=group)

# convert
plain = make_pipeline(pipeline[0], pipeline[-1].to_sklearn())
rows = X.astype(np.float32)
exported = to_onnx(plain, rows[:1], options={"zipmap": False})
session = onnxruntime.InferenceSession(exported.SerializeToString())
labels, probabilities = session.run(None, {"X": rows})

# checks
assert (labels == pipeline.predict(X)).mean() > 0.995
assert np.abs(probabilities - pipeline.predict_proba(X)).max() < 1e-5
