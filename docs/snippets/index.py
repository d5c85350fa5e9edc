from sklearn.model_selection import train_test_split

from fairconstrained import FairBoostingClassifier
from fairconstrained.datasets import make_acs_like
from fairconstrained.metrics import independence_gap

people = make_acs_like(20_000, sensitive="SEX", random_state=0)  # incomes above 50,000 dollars, generated
X = people.data.astype({"COW": "category", "MAR": "category", "OCCP": "category"})
X, X_new, y, y_new, sex, sex_new = train_test_split(X, people.target, people.sensitive_features, random_state=0)
for kappa in (None, 0.05):
    model = FairBoostingClassifier(kappa, constraint="demographic_parity").fit(X, y, sensitive_features=sex)
    gap = independence_gap(None, model.predict(X_new), sensitive_features=sex_new)
    print(f"kappa {kappa}: {model.status_}, gap on new rows {gap:.3f}, accuracy {model.score(X_new, y_new):.3f}")
# end of the page
assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
assert gap < 0.1
