"""Post-processing any classifier: the scores of one group stretched and shifted within a bound on an AUC gap."""

from sklearn.linear_model import LogisticRegression

from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import partial_group_auc_gap
from fairconstrained.postprocessing import ScoreShiftPostprocessor

X, y, group = make_biased_classification(2000, random_state=0)

# the search
model = ScoreShiftPostprocessor(LogisticRegression(), kappa=0.02, shifts="all")
model.fit(X, y, sensitive_features=group)
print(model.protected_, model.slope_, model.shift_, model.constraint_values_, model.auc_)
scores = model.decision_function(X, sensitive_features=group)
# end of the search
gap = partial_group_auc_gap(y, scores, sensitive_features=group)
assert model.status_ == "optimal"
assert gap <= 0.02 + 1e-12, gap
assert partial_group_auc_gap(y, model.estimator_.decision_function(X), sensitive_features=group) > 0.05
