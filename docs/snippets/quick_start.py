import sklearn
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier
from fairconstrained.datasets import load_law_school
from fairconstrained.model_selection import get_fairness_scorer

sklearn.set_config(enable_metadata_routing=True)
law = load_law_school()
rows = train_test_split(law.data, law.target, law.sensitive_features, test_size=0.3, random_state=0)
X_train, X_test, y_train, y_test, race_train, race_test = rows
model = make_pipeline(StandardScaler(), PartialParityClassifier(kappa=0.05))
model.fit(X_train, y_train, sensitive_features=race_train)
print(model[-1].status_, model[-1].constraint_values_)
gap = -get_fairness_scorer("neg_statistical_parity_gap")(model, X_test, y_test, sensitive_features=race_test)
print(f"held out: accuracy {model.score(X_test, y_test, sensitive_features=race_test):.3f}, gap {gap:.3f}")

# end of the page
assert model[-1].status_ == "optimal"
assert gap < 0.1
