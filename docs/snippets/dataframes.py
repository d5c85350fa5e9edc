"""A DataFrame with numbers, categories and missing values, in three ways under the same bound."""

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fairconstrained import FairBoostingClassifier, FairHeadClassifier, RateParityClassifier


# the table
def applicants(n_samples, seed):
    """Applicants for a loan: missing incomes, two columns of texts, and whether the loan was repaid."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["man", "woman"], n_samples, p=[0.6, 0.4])
    income = rng.normal(size=n_samples) + 0.6 * (sex == "man")
    job = rng.choice(["clerk", "farmer", "nurse", "student"], n_samples)
    region = rng.choice(["north", "south"], n_samples)
    risk = income + 1.5 * (job == "nurse") - (job == "student") + 0.4 * (sex == "man")
    repaid = (risk + rng.logistic(size=n_samples) > 0.5).astype(int)
    income[rng.random(n_samples) < 0.15] = np.nan
    return pd.DataFrame({"income": income, "job": job, "region": region, "sex": sex, "repaid": repaid})


table, new_table = applicants(6000, 0), applicants(20_000, 1)
features = ["income", "job", "region"]
X, y, groups = table[features], table["repaid"], table["sex"]
X_new, y_new, groups_new = new_table[features], new_table["repaid"], new_table["sex"]


def show(name, model):
    new = model.constraint_values(X_new, y_new, sensitive_features=groups_new)["demographic_parity"]
    accuracy = np.mean(model.predict(X_new) == y_new)
    print(f"{name:12s} training gap {model.constraint_values_['demographic_parity']:.3f}", end=", ")
    print(f"new rows: gap {new:.3f}, accuracy {accuracy:.3f}")


# any model
numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
columns = make_column_transformer((numbers, ["income"]), (OneHotEncoder(handle_unknown="ignore"), ["job", "region"]))
columns.set_params(sparse_threshold=0)  # the trees of scikit-learn take no sparse matrix
trees = make_pipeline(columns, HistGradientBoostingClassifier(max_iter=60, random_state=0))
head = FairHeadClassifier(trees, RateParityClassifier(kappa=0.05), random_state=0)
head.fit(X, y, sensitive_features=groups)
show("head", head)
# end of any model

# linear scores
linear = make_pipeline(columns, RateParityClassifier(kappa=0.05))
linear.fit(X, y, rateparityclassifier__sensitive_features=groups)
print(linear[-1].status_, linear[-1].constraint_values_)
weights = pd.Series(linear[-1].coef_[0], index=linear[:-1].get_feature_names_out())
print(weights.round(2))
# end of linear scores

# own trees
as_categories = X.astype({"job": "category", "region": "category"})
boosted = FairBoostingClassifier(kappa=0.05, num_leaves=6)
boosted.fit(as_categories, y, sensitive_features=groups)
show("boosted", boosted)
# end of own trees

# several columns
both = RateParityClassifier(kappa=0.05)
both.fit(columns.transform(X), y, sensitive_features=table[["sex", "region"]])
print(both.groups_)
# end of several columns
assert head.status_ == linear[-1].status_ == "optimal"
assert head.violation_ <= head.granularity_["demographic_parity"]
assert boosted.violation_ <= boosted.granularity_["demographic_parity"]
assert set(weights.index) >= {"onehotencoder__job_nurse", "pipeline__income"}
assert len(both.groups_) == 4
