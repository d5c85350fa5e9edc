"""Bringing the groups through pipelines, searches and scorers."""

import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, TunedThresholdClassifierCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.model_selection import best_feasible, get_fairness_scorer, pareto_front

X, y, group = make_biased_classification(2000, random_state=0)

# routing off
pipeline = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.1))
pipeline.fit(X, y, partialparityclassifier__sensitive_features=group)

# routing on
sklearn.set_config(enable_metadata_routing=True)
pipeline.fit(X, y, sensitive_features=group)

# search
scoring = {
    "accuracy": get_fairness_scorer("accuracy"),
    "pSP": get_fairness_scorer("neg_partial_statistical_parity_gap", interval=(0.0, 1.0)),
}
search = GridSearchCV(
    make_pipeline(StandardScaler(), PartialParityClassifier(group_interactions=True)),
    {"partialparityclassifier__kappa": [0.1, 0.2, None]},
    scoring=scoring,
    refit=best_feasible("pSP", 0.15, "accuracy"),
    cv=2,
)
search.fit(X, y, sensitive_features=group)
front = pareto_front(search.cv_results_)
print(front[["param_partialparityclassifier__kappa", "mean_test_accuracy", "mean_test_pSP"]])

# after the search
best = search.best_estimator_
best.predict(X, sensitive_features=group)
accuracy = search.scorer_["accuracy"](best, X, y, sensitive_features=group)

# any classifier
baseline = cross_validate(LogisticRegression(), X, y, scoring=scoring, params={"sensitive_features": group})
print("logistic regression:", baseline["test_accuracy"].mean(), baseline["test_pSP"].mean())

# threshold
tuned = TunedThresholdClassifierCV(
    LogisticRegression(),
    scoring=get_fairness_scorer("neg_equal_opportunity_gap"),
    thresholds=[0.3, 0.4, 0.5, 0.6, 0.7],
    store_cv_results=True,
)
tuned.fit(X, y, sensitive_features=group)
print("gap by threshold:", -tuned.cv_results_["scores"])

# weights
weights = (group + 1.0) / 2
weighted = make_pipeline(
    StandardScaler().set_fit_request(sample_weight=False),
    PartialParityClassifier().set_fit_request(sample_weight=True),
)
weighted.fit(X, y, sensitive_features=group, sample_weight=weights)

# checks
assert tuned.best_score_ == max(tuned.cv_results_["scores"])
assert -search.cv_results_["mean_test_pSP"][search.best_index_] <= 0.15
assert 0.5 < accuracy <= 1
assert len(front) >= 2
try:
    search.score(X, y, sensitive_features=group)
except KeyError:
    pass
else:
    raise AssertionError("scikit-learn has given searches with a callable refit a score: tell the guide")
