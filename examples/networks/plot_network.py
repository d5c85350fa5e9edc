"""
A network under the same bound
==============================

Any torch module can compute the scores, and the bound has the same meaning.

``hidden_layer_sizes`` builds a multilayer perceptron. As with a linear model, its exact gap on the training rows is at
most ``kappa``; but the two models change in different ways to keep the bound.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from fairconstrained import PartialParityClassifier
from fairconstrained.metrics import independence_gap

# %%
# Two groups, two features
# ------------------------
#
# A row is more likely positive the higher it lies above a parabola. The second group lies further to the right, where
# the parabola is steep, so fewer of its rows are positive. Rows of the first group are circles, those of the second
# triangles.


def make_curved(n_samples, rng):
    """Labels by the distance to a parabola, with noise; the second group is displaced along it."""
    group = (rng.random(n_samples) < 0.4).astype(int)
    X = rng.normal(size=(n_samples, 2)) + 1.1 * group[:, None] * [1.0, 0.0]
    height = X[:, 1] - 0.8 * X[:, 0] ** 2 + 0.6
    y = (height + 0.3 * rng.normal(size=n_samples) > 0).astype(int)
    return X, y, group


rng = np.random.default_rng(0)
X, y, group = make_curved(2000, rng)
X_test, y_test, group_test = make_curved(10000, rng)

# %%
# Four models
# -----------
#
# Linear models and networks, without a bound and with positive rates that differ by at most 0.02. A smooth activation
# function suits the default solver, which is a quasi-Newton method; ``random_state`` determines the first weights.

common = {"constraint": "demographic_parity", "random_state": 0}
network = {"hidden_layer_sizes": (6,), "activation": "tanh"}
models = {
    "linear, no bound": PartialParityClassifier(kappa=None, **common),
    "linear, kappa = 0.02": PartialParityClassifier(kappa=0.02, **common),
    "network, no bound": PartialParityClassifier(kappa=None, **network, **common),
    "network, kappa = 0.02": PartialParityClassifier(kappa=0.02, **network, **common),
}
for model in models.values():
    model.fit(X, y, sensitive_features=group)

# %%
# Their decisions
# ---------------
#
# Shaded: predicted positive. The line is the decision threshold, at score 0. The linear model keeps the bound by
# turning its line. The network raises the bottom of its curve, where most of the positives are of the first group; with
# the bound it is still far more accurate than the linear model without a bound. But its gap on new rows exceeds
# ``kappa`` by more: the more parameters a model has, the more it keeps the bound by overfitting.

low, high = X.min() - 0.2, X.max() + 0.2
grid = np.stack(np.meshgrid(*[np.linspace(low, high, 200)] * 2), axis=-1)
figure, axes = plt.subplots(2, 2, figsize=(8.4, 8.8), layout="constrained", sharex=True, sharey=True)
shown = slice(0, 500)
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    scores = model.decision_function(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.contourf(
        *grid.transpose(2, 0, 1),
        scores,
        levels=[scores.min() - 1, 0, scores.max() + 1],
        cmap=ListedColormap(["white", "#e3edf5"]),
    )
    ax.contour(*grid.transpose(2, 0, 1), scores, levels=[0], colors="black", linewidths=1.2)
    for code, marker in enumerate("o^"):
        for label, color in enumerate(["#D55E00", "#0072B2"]):
            rows = (group[shown] == code) & (y[shown] == label)
            text = f"group {code}, {'positive' if label else 'negative'}"
            ax.plot(*X[shown][rows].T, marker, color=color, markersize=4, alpha=0.7, markeredgewidth=0, label=text)
    accuracy = model.score(X_test, y_test)
    gap = independence_gap(None, model.predict(X_test), sensitive_features=group_test)
    ax.set_title(f"{name}\nnew rows: accuracy {accuracy:.3f}, gap {gap:.3f}", fontsize=10)
    ax.set_aspect("equal")
    ax.set(xticks=[], yticks=[])
figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
plt.show()

# %%
# On the training data both keep the bound, up to one row of the smaller group:

for name, model in models.items():
    print(
        f"{name:22} {model.status_}, gap {model.constraint_values_['demographic_parity']:.4f}, "
        f"accuracy {model.score(X, y):.4f}"
    )
