"""
Limits for two kinds of error at once
=====================================

Of three kinds of wine, two must hardly ever be mistaken, whatever it costs the third.

Weights of the classes reach one limit by trial and error. With two limits the weights have to be found together, which
is what the multipliers of a constrained fit are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.preprocessing import StandardScaler

from fairconstrained import NeymanPearsonClassifier

X, y = load_wine(return_X_y=True)
X = StandardScaler().fit_transform(X[:, [4, 6, 9]])  # three measurements do not tell them apart

# %%
# Bounds on the errors of classes 0 and 2
# ---------------------------------------
#
# ``constraint="error"`` bounds the error rates of the predictions on the training data, up to one row of the class. The
# multipliers are prices: what the loss of class 1 would fall by for a unit more of the bound.

models = {
    bounds: NeymanPearsonClassifier(
        dict(zip((0, 2), bounds, strict=True)) if bounds else None, constraint="error", alpha=1e-3
    ).fit(X, y)
    for bounds in [(), (0.05, 0.05), (0.02, 0.2)]
}
for bounds, model in models.items():
    print(bounds or "no bounds", model.status_)
    print(model.class_table_.round(3).to_string(), "\n")

# %%
# Every row of a matrix is a class. Without bounds all three count alike.

figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.6), layout="constrained")
for ax, (bounds, model) in zip(axes, models.items(), strict=True):
    shares = {"normalize": "true", "values_format": ".2f", "cmap": "Blues", "colorbar": False}
    ConfusionMatrixDisplay.from_predictions(y, model.predict(X), ax=ax, **shares)
    ax.set_title(
        "no bounds" if not bounds else f"errors of 0 and 2:\nat most {bounds[0]:g} and {bounds[1]:g}", fontsize=9
    )
plt.show()
print(f"rows of each class: {np.bincount(y)}")
