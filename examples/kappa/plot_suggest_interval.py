"""
The choice of an interval with an unconstrained model
=====================================================

A bound on an interval of ranks leaves the rest of the scores free, so the interval matters. When the decision
fixes only the share of positives, ``suggest_interval`` proposes one.

The data are generated, so that new rows are plentiful. Think of admissions: four applicants in ten will be admitted,
perhaps a few more or a few less. The features tell less about the applicants of group 1, 30 % of all: the distance
between their two classes is half as large, so most of their scores are in the middle and few of them reach the top.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import partial_statistical_parity_gap, score_curve
from fairconstrained.model_selection import suggest_interval

population = {"positive_rates": (0.5, 0.4), "separation": (2.0, 1.0), "proxy_strength": 0.5}
X, y, group = make_biased_classification(20_000, **population, random_state=0)
X_new, y_new, group_new = make_biased_classification(100_000, **population, random_state=1)

# %%
# The suggestion
# --------------
#
# It takes the scores of a model without constraint, and the share to be admitted. Rank 0 is the top, so the cut is at
# rank 0.4. The candidates are the intervals of length 0.25 that contain the cut and start at a multiple of 0.05. Each
# has two gaps: ``gap`` is the one that ``kappa`` bounds, in units of the applicants within the interval; ``rank_gap``
# is in units of the whole group.

rate = 0.4
unconstrained = PartialParityClassifier(kappa=None).fit(X, y, sensitive_features=group)
scores = unconstrained.decision_function(X)
suggestion = suggest_interval(scores, sensitive_features=group, rate=rate)
print(suggestion, "\n")
print(suggestion.table.round(3).to_string(index=False))

# %%
# Each candidate is drawn as the ranks that it covers, at the height of its gap; in orange the suggested one. Grey:
# intervals of the same length that do not contain the cut. Some are as bad, but no admission is decided there.

suggested, other = ([table.alpha, table.beta] for table in (suggestion.table.iloc[0], suggestion.table.iloc[-1]))
figure, ax = plt.subplots(figsize=(7.2, 4.2), layout="constrained")
figure.suptitle("Gaps of the unconstrained model on the candidate intervals")
for start in np.linspace(0, 0.75, 16).round(2):
    pair = [start, start + 0.25]
    gap = partial_statistical_parity_gap(None, scores, sensitive_features=group, interval=pair)
    covers = start <= rate < start + 0.25
    color = "#D55E00" if np.allclose(pair, suggested) else "#0072B2" if covers else "0.8"
    ax.plot(pair, [gap, gap], color=color, linewidth=4, solid_capstyle="butt", zorder=2 + covers)
ax.axvline(rate, color="black", linestyle=":")
ax.annotate("cut", (rate, 0), (4, 4), textcoords="offset points")
ax.set(
    xlabel="rank in the group (0 = highest score)", ylabel="partial statistical parity gap", xlim=(0, 1), ylim=(0, None)
)
ax.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# The length is a choice of yours, not of the data. The gap of a short interval tends to be larger, only because it is
# divided by a smaller length, and the rank gap grows with the interval:

for width in (0.1, 0.25, 0.5):
    print(f"width {width}: {suggest_interval(scores, sensitive_features=group, rate=rate, width=width)}")

# %%
# Bounds of the same strength
# ---------------------------
#
# In units of the whole group, all three constraints allow a difference of 0.025: on the suggested interval, on the last
# candidate of the table, and on all ranks. New rows are at hand, so ``new_row_folds=None`` leaves out the estimates of
# the gaps there.

kappa, length = 0.1, 0.25
models = {
    "no bound": unconstrained,
    "suggested interval": PartialParityClassifier(kappa, interval=suggested),
    "last candidate": PartialParityClassifier(kappa, interval=other),
    "all ranks": PartialParityClassifier(kappa * length),
}
for model in models.values():
    model.set_params(new_row_folds=None).fit(X, y, sensitive_features=group)

# %%
# The difference between the groups' shares above a threshold, for all thresholds, on new data; shaded, the suggested
# interval.

shares = [np.mean(group_new == label) for label in (0, 1)]
figure, ax = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
figure.suptitle("Differences between the groups at all thresholds, with four bounds")
ax.axvspan(*suggested, color="0.93")
ax.axvline(rate, color="black", linestyle=":")
ax.axhline(0, color="0.6", linewidth=0.8)
rows = {}
for (name, model), color in zip(models.items(), ("0.4", "#D55E00", "#56B4E9", "#009E73"), strict=True):
    scores_new = model.decision_function(X_new)
    curve = score_curve(None, scores_new, sensitive_features=group_new)
    above, difference = curve @ shares, curve[0] - curve[1]
    ax.plot(above, difference, color=color, label=name, linewidth=1.8)
    rows[name] = {
        "gap, suggested interval": partial_statistical_parity_gap(
            None, scores_new, sensitive_features=group_new, interval=suggested
        ),
        "difference at the cut": np.interp(rate, above, difference),
        "largest difference": difference.abs().max(),
        "AUC": roc_auc_score(y_new, scores_new),
    }
ax.set(xlabel="share of all applicants above the threshold", ylabel="group 0 minus group 1, share above", xlim=(0, 1))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# The bound on the suggested interval holds the groups together at the cut and above it. It does not bound the
# difference at other ranks, which has grown there. The last candidate begins at the cut, so it has no effect on a
# threshold that is a little stricter. Parity on all ranks avoids both problems, at a cost: if the features are less
# informative for one group, one score function for all groups can reach parity only by making less use of the features.

print(pd.DataFrame(rows).T.round(3).to_string())

# %%
# The model bounded on the suggested interval has a larger gap there on new data than ``kappa``, which speaks of the
# training rows. How far the two can be apart is the subject of
# :ref:`sphx_glr_auto_examples_kappa_plot_generalization.py`.
