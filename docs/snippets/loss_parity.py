"""LossParityClassifier: the bound, the same gap on new rows, what mini-batches see of it, and a picture of all."""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.preprocessing import StandardScaler

from fairconstrained import LossParityClassifier
from fairconstrained.datasets import make_acs_like
from fairconstrained.metrics import independence_gap, loss_parity_gap


# the bound
def people(n_samples, seed):
    """Features, whether the income exceeds 50,000 dollars, and two groups of race."""
    acs = make_acs_like(n_samples, random_state=seed)
    return acs.data, acs.target.to_numpy(), np.where(acs.sensitive_features == 1, "White", "other")


X, y, race = people(4000, 0)
X_new, y_new, race_new = people(20_000, 1)
scaler = StandardScaler().fit(X)
X, X_new = scaler.transform(X), scaler.transform(X_new)
network = {"hidden_layer_sizes": (16,), "random_state": 1}
free = LossParityClassifier(kappa=None, **network).fit(X, y, sensitive_features=race)
fair = LossParityClassifier(kappa=0.02, **network).fit(X, y, sensitive_features=race)
for model in (free, fair):
    print(model.status_, model.constraint_values_, f"objective {model.objective_:.4f}")
    print(model.group_losses_)
# end of the bound
gap = loss_parity_gap(y, fair.decision_function(X), sensitive_features=race)
assert fair.status_ == "completed"
assert gap <= 0.02 + 1e-6
assert np.isclose(gap, fair.constraint_values_["loss_parity"])
before, after = free.group_losses_["loss"], fair.group_losses_["loss"]
assert (after > before).all()
assert after["other"] - before["other"] > 2 * (after["White"] - before["White"])
assert abs(fair.objective_ / free.objective_ - 1) < 0.15

# new rows
for model in (free, fair):
    scores = model.decision_function(X_new)
    losses = np.logaddexp(0, -np.where(y_new == 1, scores, -scores))
    squared_errors = [losses[race_new == name].var() / (race_new == name).sum() for name in model.groups_]
    gap = loss_parity_gap(y_new, scores, sensitive_features=race_new)
    rates = independence_gap(None, model.predict(X_new), sensitive_features=race_new)
    print(f"gap {gap:.3f} +- {np.sqrt(sum(squared_errors)):.3f}, positive rates differ by {rates:.3f}")
means = [model.predict_proba(X_new)[race_new == "other", 1].mean() for model in (free, fair)]
share = y_new[race_new == "other"].mean()
print(f"second group: mean probabilities {means[0]:.3f} and {means[1]:.3f}, share of positives {share:.3f}")
# end of new rows
assert gap < 0.035 < loss_parity_gap(y_new, free.decision_function(X_new), sensitive_features=race_new)
assert means[1] - share > 2 * abs(means[0] - share)  # not calibrated

# mini-batches
scores = fair.decision_function(X)
losses = np.logaddexp(0, -np.where(y == 1, scores, -scores))
rng = np.random.default_rng(0)
batch_gaps = {}
for size in (8, 256):
    halves = [rng.choice(losses[race == name], (20_000, size)).mean(axis=1) for name in ("White", "other")]
    batch_gaps[size] = halves[0] - halves[1]
    mean, absolute = batch_gaps[size].mean(), abs(batch_gaps[size]).mean()
    within = (abs(batch_gaps[size]) <= 0.02).mean()
    print(f"{size} rows a group: mean {mean:.3f}, mean absolute value {absolute:.3f}, within kappa {within:.3f}")
# end of the mini-batches
exact = fair.constraint_values_["loss_parity"]
assert all(abs(gaps.mean() - exact) < 4 * gaps.std() / np.sqrt(gaps.size) for gaps in batch_gaps.values())
assert abs(batch_gaps[8]).mean() > 5 * exact
assert abs(batch_gaps[256]).mean() > 1.2 * exact
assert (abs(batch_gaps[8]) <= 0.02).mean() < 0.12

# the picture
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(12.5, 4.2), layout="constrained")
colors = {"White": "#0072B2", "other": "#D55E00"}
new_losses = [np.logaddexp(0, -np.where(y_new == 1, s, -s)) for s in (m.decision_function(X_new) for m in (free, fair))]
for name, color in colors.items():
    new = [losses[race_new == name].mean() for losses in new_losses]
    left.plot([before[name], after[name]], "o-", color=color, label=f"{name}, training rows")
    left.plot(new, "o--", color=color, markerfacecolor="white", label=f"{name}, new rows")
left.set_xticks([0, 1], ["no bound", "kappa = 0.02"])
left.set(xlim=(-0.3, 1.3), ylabel="mean log loss")
left.legend(frameon=False, fontsize=8)

models = [LossParityClassifier(kappa, **network).fit(X, y, sensitive_features=race) for kappa in (0.005, 0.05)]
models = {"0.005": models[0], "0.02": fair, "0.05": models[1], "no bound": free}
sides = {
    "training rows": (X, y, race, {"fmt": "o-", "color": "black"}, {"xytext": (-6, 5), "ha": "right"}),
    "new rows": (X_new, y_new, race_new, {"fmt": "o--", "color": "black", "mfc": "white"}, {"xytext": (6, -11)}),
}
for label, (rows, labels, groups, line, text) in sides.items():
    scores = [model.decision_function(rows) for model in models.values()]
    gaps = [loss_parity_gap(labels, s, sensitive_features=groups) for s in scores]
    accuracies = [np.mean((s > 0) == labels) for s in scores]
    middle.errorbar(gaps, accuracies, **line, label=label)
    for name, *place in zip(models, gaps, accuracies, strict=True):
        middle.annotate(name, place, textcoords="offset points", fontsize=8, **text)
middle.set(xlabel="gap of the mean losses", ylabel="accuracy", xlim=(-0.01, None))
middle.legend(frameon=False, fontsize=8, loc="lower right")

bins = np.linspace(-1.5, 1.5, 121)
for size, gaps in batch_gaps.items():
    right.hist(gaps, bins, density=True, histtype="step", label=f"{size} rows a group: mean {gaps.mean():.3f}")
right.axvspan(-0.02, 0.02, color="#009E73", alpha=0.4, label="within kappa")
right.set(xlabel="gap of a balanced mini-batch", ylabel="density", xlim=(-1.5, 1.5))
right.legend(frameon=False, fontsize=8, loc="upper right")
right.set_ylim(0, 11)
for ax in figure.axes:
    ax.spines[["top", "right"]].set_visible(False)
# end of the picture
figure.savefig("loss_parity.png", dpi=110)
