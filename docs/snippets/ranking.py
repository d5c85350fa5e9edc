"""FairRanker: documents of two groups, one of which is ranked right less often."""

import numpy as np

from fairconstrained import FairRanker
from fairconstrained.metrics import pairwise_ranking_gap

# ranking
rng = np.random.default_rng(0)
qid, group = np.repeat(np.arange(60), 10), rng.integers(0, 2, 600)
X = rng.normal(size=(600, 3)) + 0.5 * group[:, None]
relevance = np.digitize(X[:, 0] + rng.normal(size=600), [0.0, 1.0])
for kappa in (None, 0.02):
    ranker = FairRanker(kappa).fit(X, relevance, qid=qid, sensitive_features=group)
    print(ranker.status_, ranker.constraint_values_, f"pairs right {ranker.score(X, relevance, qid=qid):.3f}")
    print(ranker.pair_accuracies_)
# end of ranking
gap = pairwise_ranking_gap(relevance, ranker.predict(X), qid=qid, sensitive_features=group)
assert np.isclose(gap, ranker.constraint_values_["pairwise_ranking"])
assert gap <= 0.02 + 0.003
