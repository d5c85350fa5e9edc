"""
A share for a minority among applicants without labels
======================================================

Learn from last year's borrowers, whose outcomes are known, and give a minority at least a given share of this year's
offers, whose outcomes are not yet known.

The data are generated: fewer of the minority repaid last year, and more of them apply this year.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import MinorityRateClassifier
from fairconstrained.datasets import make_biased_classification

X, repaid, _ = make_biased_classification(2000, n_features=5, positive_rates=(0.6, 0.35), random_state=0)
applicants, would_repay, group = make_biased_classification(
    2000, n_features=5, positive_rates=(0.6, 0.35), group_proportions=(0.6, 0.4), random_state=1
)

# %%
# The share is bounded on the applicants
# --------------------------------------
#
# ``X_constraint`` are their features, and ``sensitive_features_constraint`` says who is of the minority. The loss is
# that of last year's rows alone. ``rate="indicator"`` makes it the share of the offers themselves. The applicants'
# outcomes, which the generator knows, are only used to evaluate the result.

shares = [None, 0.3, 0.35, 0.4, 0.45]
models = {
    share: MinorityRateClassifier(share, minority=1, rate="indicator").fit(
        X, repaid, X_constraint=applicants, sensitive_features_constraint=group
    )
    for share in shares
}
print("min_share  status   share  offers  accuracy on the applicants")
for share, model in models.items():
    offers, accuracy = model.predict(applicants).mean(), model.score(applicants, would_repay)
    print(f"{share!s:9s}  {model.status_}  {model.minority_share_:.3f}  {offers:.3f}   {accuracy:.3f}")

# %%
# Who gets an offer
# -----------------
#
# A larger share for the minority means other offers, and it may mean fewer of them: the constraint is about shares, not
# about numbers.

figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.5), layout="constrained")
figure.suptitle("Share of the minority, and accuracy, by min_share")
labels = ["none" if share is None else f"{share:g}" for share in shares]
places = np.arange(len(shares))
for code, (name, color) in enumerate([("others", "#999999"), ("minority", "#D55E00")]):
    numbers = [int(model.predict(applicants)[group == code].sum()) for model in models.values()]
    axes[0].bar(places + 0.4 * code - 0.2, numbers, 0.4, color=color, label=name)
axes[0].set(xlabel="min_share", ylabel="offers", xticks=places, xticklabels=labels)
axes[0].legend(frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
reached = [model.minority_share_ for model in models.values()]
axes[1].plot(reached, [model.score(applicants, would_repay) for model in models.values()], "o-", color="#0072B2")
axes[1].set(xlabel="share of the offers that goes to the minority", ylabel="accuracy on the applicants")
for ax in axes:
    ax.spines[["top", "right"]].set_visible(False)
plt.show()
