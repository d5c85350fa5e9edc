"""A table of scores for the command line: labels, probabilities and groups of rows that the model has not seen."""

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained.datasets import make_acs_like

acs = make_acs_like(3000, sensitive="SEX", random_state=0)
X, X_new, y, y_new, sex, sex_new = train_test_split(acs.data, acs.target, acs.sensitive_features, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)

# write
table = X_new[["AGEP"]].astype(int).rename(columns={"AGEP": "age"})
table["sex"] = sex_new.map({1: "male", 2: "female"})
table["sector"] = X_new["COW"].map({1: "private", 2: "private", 3: "public", 4: "public", 5: "public"}).fillna("own")
table["score"] = model.predict_proba(X_new)[:, 1].round(3)
table["high_income"] = np.where(y_new == 1, "yes", "no")
table.to_csv("scores.csv", index=False)

# checks
assert len(table) == 750
assert table.notna().all(axis=None)
