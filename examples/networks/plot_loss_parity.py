"""
A network whose groups have equal losses
========================================

A bound on the difference between the groups' mean log losses, and the progress of several solvers.

The data are generated: rows like those of the American Community Survey, of which 38 % of the men and 19 % of the women
earn more than 50,000 dollars a year. The network does not see the sex. It predicts women better, because few of them
are positive, and the bound requires it to predict both about equally well.
"""

import warnings
from itertools import takewhile

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from fairconstrained import ConvergenceWarning, LossParityClassifier
from fairconstrained.datasets import make_acs_like
from fairconstrained.metrics import loss_parity_gap


def people(n_samples, seed):
    """Features without the sex, whether the income exceeds 50,000 dollars, and the sex."""
    acs = make_acs_like(n_samples, sensitive="SEX", random_state=seed)
    return acs.data, acs.target.to_numpy(), np.where(acs.sensitive_features == 1, "men", "women")


X, y, sex = people(5000, 0)
X_new, y_new, sex_new = people(20_000, 1)
scaler = StandardScaler().fit(X)
X, X_new = scaler.transform(X), scaler.transform(X_new)

# %%
# Five fits of one network
# ------------------------
#
# ``kappa`` is in units of the loss. The default solver ends with the exact training gap within it. ``"ssl_alm"`` is one
# of the published methods: every step uses the gaps on two mini-batches with eight women and eight men only. It warns
# where the gap of all rows exceeds ``kappa``.

network = {"hidden_layer_sizes": (16,), "random_state": 0}
models = {
    "no bound": LossParityClassifier(kappa=None, new_row_folds=None, max_epochs=20, **network),
    "auto, kappa = 0.05": LossParityClassifier(kappa=0.05, max_epochs=20, **network),
    "auto, kappa = 0.02": LossParityClassifier(kappa=0.02, max_epochs=20, **network),
    "auto, kappa = 0.005": LossParityClassifier(kappa=0.005, max_epochs=20, **network),
    "ssl_alm, kappa = 0.005": LossParityClassifier(
        kappa=0.005, solver="ssl_alm", new_row_folds=None, batch_size=8, max_epochs=10, **network
    ),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for model in models.values():
        model.fit(X, y, sensitive_features=sex)

print("                        status      objective  gap     new rows: gap  accuracy")
for name, model in models.items():
    gap = loss_parity_gap(y_new, model.decision_function(X_new), sensitive_features=sex_new)
    print(
        f"{name:22}  {model.status_:10}  {model.objective_:.4f}     {model.constraint_values_['loss_parity']:.4f}  "
        f"{gap:.4f}         {model.score(X_new, y_new):.4f}"
    )

# %%
# Objective and gap against epochs
# --------------------------------
#
# ``history_`` has a record of every epoch, measured on all rows. The dots are the models that are returned. While the
# default solver trains on mini-batches its gap stays near ``kappa`` (dotted lines), above or below it; at the end the
# last layer is trained on all rows, and then the gap is within ``kappa``. The gap of ``"ssl_alm"`` changes by some
# hundredths from one epoch to the next, so its value at the end of training depends on chance.

colors = dict(zip(models, ["#777777", "#56B4E9", "#0072B2", "#003D66", "#D55E00"], strict=True))
figure, axes = plt.subplots(1, 2, figsize=(10.5, 4.2), layout="constrained")
figure.suptitle("Objective and gap while the solvers train")
for name, model in models.items():
    epochs = list(takewhile(lambda record: record["n_iter"] > 0, model.history_))  # the last layer's begin again at 0
    final = {"objective": model.objective_, "loss_parity": model.constraint_values_["loss_parity"]}
    for ax, quantity in zip(axes, final, strict=True):
        ax.plot([e["n_iter"] for e in epochs], [e[quantity] for e in epochs], color=colors[name], label=name)
        ax.plot(epochs[-1]["n_iter"] + 1, final[quantity], "o", color=colors[name])
for kappa in (0.05, 0.02, 0.005):
    axes[1].axhline(kappa, color="#777777", linestyle=":", linewidth=1)
axes[0].set(xlabel="epoch", ylabel="objective, training rows")
axes[1].set(xlabel="epoch", ylabel="gap, training rows", ylim=(0, None))
axes[0].legend(frameon=False, fontsize=8)
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The losses of the groups
# ------------------------
#
# The smaller gap harms the women: their loss rises by more than that of the men falls. A bound on a difference allows
# this. On new rows a part of the difference remains: the fit makes up for what it overfits the training rows, but
# only as far as fits to halves of them show it.


def group_losses(model, X, y, sex):
    """Mean log loss of men and of women."""
    _, table = loss_parity_gap(y, model.decision_function(X), sensitive_features=sex, return_groups=True)
    return table["loss"]


figure, axes = plt.subplots(1, 2, figsize=(10.5, 3.6), layout="constrained", sharex=True, sharey=True)
parts = {"training rows": (X, y, sex), "new rows": (X_new, y_new, sex_new)}
for ax, (part, rows) in zip(axes, parts.items(), strict=True):
    losses = {name: group_losses(model, *rows) for name, model in models.items()}
    for place, by_group in enumerate(losses.values()):
        ax.plot(by_group, [place, place], color="#bbbbbb", zorder=0)
    for group, color in {"men": "#0072B2", "women": "#D55E00"}.items():
        ax.plot([by_group[group] for by_group in losses.values()], range(len(losses)), "o", color=color, label=group)
    ax.set_yticks(range(len(losses)), losses)
    ax.set(title=part, xlabel="mean log loss")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].invert_yaxis()
axes[0].legend(frameon=False)
plt.show()
