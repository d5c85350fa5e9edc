"""AUC gaps between groups: the named ones, a protected group, any four sets, a scorer, and their curves."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import group_auc_gap, inter_group_auc_gap, intra_group_auc_gap, subset_auc_gap
from fairconstrained.model_selection import get_fairness_scorer, make_fairness_scorer
from fairconstrained.plotting import SubsetRocDisplay

# the gaps
X, y, group = make_biased_classification(2000, group_shift=(0.5, 0.0), random_state=0)
model = LogisticRegression().fit(X, y)
scores = model.decision_function(X)

print(f"group        {group_auc_gap(y, scores, sensitive_features=group):.3f}")
print(f"intra-group  {intra_group_auc_gap(y, scores, sensitive_features=group):.3f}")
gap, table = inter_group_auc_gap(y, scores, sensitive_features=group, return_groups=True)
print(f"inter-group  {gap:.3f}\n{table}")


# any four sets
def one_against_everybody(positive, groups):
    """AUC within group 1 against that of everybody."""
    one = groups == 1
    return one & positive, one & ~positive, positive, ~positive


print(subset_auc_gap(y, scores, subsets=one_against_everybody, sensitive_features=group))

# scorers
inter = get_fairness_scorer("neg_inter_group_auc_gap", protected=1)
own = make_fairness_scorer(subset_auc_gap, subsets=one_against_everybody)
print(inter(model, X, y, sensitive_features=group), own(model, X, y, sensitive_features=group))

# curves
display = SubsetRocDisplay.from_estimator(model, X, y, sensitive_features=group, metric="inter_group", protected=1)
print([(curve.name, round(curve.auc, 3)) for curve in display.curves])
# end of the curves

assert np.isclose(inter(model, X, y, sensitive_features=group), -gap)
assert np.isclose(display.gap, gap)
assert own(model, X, y, sensitive_features=group) <= 0
