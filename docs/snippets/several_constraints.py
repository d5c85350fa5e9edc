"""Several bounds at once, by name, and a search over them."""

import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.model_selection import best_feasible, get_fairness_scorer

X, y, group = make_biased_classification(1000, 5, random_state=0)

# two bounds
model = PartialParityClassifier(
    constraint=[
        ("top", StatisticalParity(kappa=0.1, interval=(0.0, 0.2))),
        ("rate", DemographicParity(kappa=0.05)),
    ]
)
model.fit(X, y, sensitive_features=group)
print(model.status_, model.constraint_values_)
# end of the bounds
assert model.status_ == "optimal"
assert set(model.constraint_values_) == {"top", "rate"}

# another bound
model.set_params(constraint__top__kappa=0.2).fit(X, y, sensitive_features=group)
# end of another bound
assert model.constraint_values_["top"] <= 0.2 + 0.02

# search
sklearn.set_config(enable_metadata_routing=True)
search = GridSearchCV(
    make_pipeline(StandardScaler(), model),
    {
        "partialparityclassifier__constraint__top__kappa": [0.2, 0.4],
        "partialparityclassifier__constraint__rate__kappa": [0.2],
    },
    scoring={
        "accuracy": "accuracy",
        "top": get_fairness_scorer("neg_partial_statistical_parity_gap", interval=(0.0, 0.2)),
        "rate": get_fairness_scorer("neg_independence_gap"),
    },
    refit=best_feasible("rate", 0.2, "accuracy"),
    cv=2,
)
search.fit(X, y, sensitive_features=group)
print(search.best_params_)
# end of the search
assert len(search.cv_results_["params"]) == 2
chosen = search.best_estimator_[-1]
assert chosen.constraint_values_["rate"] <= chosen.constraint[1][1].kappa + 0.02
