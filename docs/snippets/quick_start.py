import matplotlib.pyplot as plt
import sklearn
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.model_selection import get_fairness_scorer
from fairconstrained.plotting import ScoreDensityDisplay

# the fit
sklearn.set_config(enable_metadata_routing=True)
law = load_law_school()
rows = train_test_split(law.data, law.target, law.sensitive_features, test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, race_train, race_test = rows

model = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.05))
model.fit(X_train, y_train, sensitive_features=race_train)
print(model[-1].status_, model[-1].constraint_values_)

# new rows
models = {
    "no bound": PartialParityClassifier(kappa=None),
    "kappa = 0.05": PartialParityClassifier(kappa=0.05),
    "and coefficients by group": PartialParityClassifier(kappa=0.05, group_interactions=True),
}
for name, classifier in models.items():
    models[name] = make_pipeline(StandardScaler(), classifier).fit(X_train, y_train, sensitive_features=race_train)
    gap, auc = (
        get_fairness_scorer(metric)(models[name], X_test, y_test, sensitive_features=race_test)
        for metric in ("neg_statistical_parity_gap", "roc_auc")
    )
    print(f"{name:25}  held-out rows: gap {-gap:.3f}, AUC {auc:.3f}")

# the picture
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
for ax, (name, fitted) in zip(axes, models.items(), strict=True):
    ScoreDensityDisplay.from_estimator(fitted, X_test, sensitive_features=race_test, ax=ax)
    ax.set_title(name)
plt.show()

# end of the page
assert model[-1].status_ == "optimal"
assert -gap < 0.1
