"""The promise on real data: kappa is met, and accuracy is not given away."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.preprocessing import StandardScaler

from fairconstrained import PartialParityClassifier, PartialParityRegressor
from fairconstrained.datasets import load_law_school
from fairconstrained.metrics import granularity, partial_statistical_parity_gap


@pytest.fixture(scope="module")
def law():
    data = load_law_school()
    return StandardScaler().fit_transform(data.data), data.target, data.sensitive_features


def check_promise(model, scores, groups):
    gap = partial_statistical_parity_gap(None, scores, sensitive_features=groups, interval=model.interval)
    assert gap <= model.kappa + granularity(groups, interval=model.interval) + 1e-9
    assert model.status_ == "optimal"
    return gap


@pytest.mark.parametrize("parity", ["statistical", "demographic"])
def test_law_school(law, parity):
    X, y, race = law
    options = {"interval": (0.7, 1.0), "parity": parity}
    free = PartialParityClassifier(None, **options).fit(X, y, sensitive_features=race)
    fair = PartialParityClassifier(0.05, **options).fit(X, y, sensitive_features=race)
    assert fair.constraint_values_[f"{parity}_parity"] <= 0.05 + granularity(race, interval=(0.7, 1.0))
    assert free.constraint_values_[f"{parity}_parity"] > 0.2
    assert fair.score(X, y) > free.score(X, y) - 0.02
    if parity == "statistical":
        check_promise(fair, fair.decision_function(X), race)


def test_law_school_regression(law):
    """The undergraduate grades from the rest."""
    X, _, race = law
    data = load_law_school()
    target = data.feature_names.index("ugpa")
    features, grades = np.delete(X, target, axis=1), data.data[:, target]
    free = PartialParityRegressor(None, interval=(0.0, 0.3)).fit(features, grades, sensitive_features=race)
    fair = PartialParityRegressor(0.05, interval=(0.0, 0.3)).fit(features, grades, sensitive_features=race)
    check_promise(fair, fair.predict(features), race)
    assert free.constraint_values_["statistical_parity"] > 0.2
    assert fair.score(features, grades) > free.score(features, grades) - 0.03


def test_a9a(real_folder):
    path = real_folder / "adult_a9a.npz"
    if not path.is_file():
        pytest.skip("no adult_a9a.npz in the folder with the real data")
    raw = np.load(path)
    rows = np.flatnonzero(raw["is_train"])[::3]
    X, y = sp.csr_array(raw["X"][rows].astype(float)), raw["y"][rows]
    sex = np.where(raw["female"][rows].astype(bool), "female", "male")
    interval = (0.05, 0.3)
    free = PartialParityClassifier(None, interval=interval).fit(X, y, sensitive_features=sex)
    fair = PartialParityClassifier(0.1, interval=interval).fit(X, y, sensitive_features=sex)
    check_promise(fair, fair.decision_function(X), sex)
    assert free.constraint_values_["statistical_parity"] > 0.4
    assert fair.score(X, y) > free.score(X, y) - 0.02
