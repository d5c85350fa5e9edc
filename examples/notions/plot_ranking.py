"""
A ranking that is as often right for one group as for another
=============================================================

Learning to rank documents by pairs, with a bound on the difference between the shares of pairs that are ranked right.

The data are generated: the features underrate the documents of group 1, so a ranker puts them too low. Where one of
them is the better document of a pair, it is ranked right less often than where it is the worse one.
"""

import matplotlib.pyplot as plt
import numpy as np

from fairconstrained import FairRanker
from fairconstrained.datasets import make_biased_ranking
from fairconstrained.metrics import pairwise_ranking_gap

train = make_biased_ranking(n_queries=300, n_documents=10, random_state=0)
test = make_biased_ranking(n_queries=1000, n_documents=10, random_state=1)

# %%
# From no bound to a tight one
# ----------------------------
#
# ``kappa`` bounds the difference between the accuracies of the two kinds of pairs on the training data.

kappas = (None, 0.1, 0.05, 0.02)
points = []
print("bound   gap: train   test   pairs ranked right, test")
for kappa in kappas:
    X, y, qid, groups = train
    ranker = FairRanker(kappa).fit(X, y, qid=qid, sensitive_features=groups)
    X, y, qid, groups = test
    gap = pairwise_ranking_gap(y, ranker.predict(X), qid=qid, sensitive_features=groups)
    points.append((gap, ranker.score(X, y, qid=qid)))
    train_gap = ranker.constraint_values_["pairwise_ranking"]
    print(f"{kappa!s:6s}  {train_gap:10.3f} {points[-1][0]:6.3f} {points[-1][1]:12.3f}")
print(ranker.pair_accuracies_)

# %%
# What it costs: the smaller the bound, the fewer pairs are ranked right in all.

gaps, accuracies = np.transpose(points)
figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
figure.suptitle("Accuracy of all pairs against the gap between two kinds")
ax.plot(gaps, accuracies, "o-", color="#0072B2")
for gap, accuracy, kappa in zip(gaps, accuracies, kappas, strict=True):
    label = "no bound" if kappa is None else f"kappa = {kappa}"
    ax.annotate(label, (gap, accuracy), xytext=(6, -11), textcoords="offset points", fontsize=8)
ax.set(xlabel="gap of the pairs' accuracies, new queries", ylabel="pairs ranked right, new queries")
ax.margins(0.15)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
