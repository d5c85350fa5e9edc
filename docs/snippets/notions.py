"""The five notions of parity, each beside the metric that its kappa bounds; forms of an interval, and of ranks."""

import numpy as np

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import (
    granularity,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)

X, y, group = make_biased_classification(1000, group_shift=(0.5, 0.0), random_state=0)

# five notions
metrics = {
    "statistical_parity": partial_statistical_parity_gap,
    "demographic_parity": partial_demographic_parity_gap,
    "equal_opportunity": partial_equal_opportunity_gap,
    "equalized_odds": partial_equalized_odds_gap,
    "group_auc": partial_group_auc_gap,
}
for parity, metric in metrics.items():
    model = PartialParityClassifier(kappa=0.05, constraint=parity).fit(X, y, sensitive_features=group)
    gap = metric(y, model.decision_function(X), sensitive_features=group)
    print(f"{parity:18s} {model.status_:9s} gap {gap:.3f}, accuracy {model.score(X, y):.3f}")
    # end of the notions
    rows = min(np.sum((group == g) & (y == label)) for g in (0, 1) for label in (0, 1))
    assert gap <= 0.05 + 1 / rows
    assert np.isclose(gap, *model.constraint_values_.values())
    assert model.status_ in ("optimal", "completed")

# forms of the interval
intervals = {
    "top fifth": (0.0, 0.2),
    "both ends": [(0.0, 0.2), (0.8, 1.0)],
    "by group": {0: (0.0, 0.3), 1: (0.0, 0.15)},
}
for name, interval in intervals.items():
    model = PartialParityClassifier(kappa=0.1, interval=interval).fit(X, y, sensitive_features=group)
    gap = partial_statistical_parity_gap(y, model.decision_function(X), sensitive_features=group, interval=interval)
    print(f"{name}: gap {gap:.3f}, one row {granularity(group, interval=interval):.3f}")
    # end of the forms
    assert gap <= 0.1 + granularity(group, interval=interval)
    assert np.isclose(gap, model.constraint_values_["statistical_parity"])

# ranks among whom
for ranks in ("group_and_label", "group"):
    model = PartialParityClassifier(kappa=0.1, constraint="equal_opportunity", interval=(0.0, 0.5), ranks=ranks)
    scores = model.fit(X, y, sensitive_features=group).decision_function(X)
    options = {"sensitive_features": group, "interval": (0.0, 0.5)}
    among_positives = partial_equal_opportunity_gap(y, scores, **options)
    in_group = partial_equal_opportunity_gap(y, scores, **options, ranks="group")
    print(f"ranks={ranks!r}: gap {among_positives:.3f} among the positives, {in_group:.3f} in the group")
    # end of the ranks
    gap = in_group if ranks == "group" else among_positives
    assert gap <= 0.1 + model.granularity_["equal_opportunity"]
    assert np.isclose(gap, model.constraint_values_["equal_opportunity"])
    assert ranks == "group" or in_group > 0.2
    assert ranks == "group_and_label" or in_group < 0.15
