"""ParityPairClassifier: the problem of the paper, its bounds and its ball."""

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained import FairnessWarning, ParityPairClassifier
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import parity_pair

#: Bounds of probabilities say nothing of predictions, of which `fit` warns.
ignored = pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")


@pytest.fixture(scope="module")
def biased():
    return make_biased_classification(n_samples=800, n_features=3, random_state=0)


@ignored
def test_the_problem_of_the_paper(biased):
    """Against SLSQP on the formulas of section 1.1."""
    X, y, group = biased
    beta, r, radius = 0.7, 0.9, 0.8
    signs = np.where(y == 1, 1.0, -1.0)

    def objective(w):
        losses = np.logaddexp(0, -signs * (X @ w))
        return np.mean(2 * np.log1p(losses / 2))

    def slack(w):
        means = [np.mean(1 / (1 + np.exp(-X[group == g] @ w))) for g in (0, 1)]
        return np.array([r - a - beta * (1 - b) for a, b in (means, means[::-1])])

    ball = {"type": "ineq", "fun": lambda w: radius**2 - w @ w}
    free = minimize(objective, np.full(3, 0.1), constraints=ball, tol=1e-12)
    best = minimize(objective, np.zeros(3), constraints=[ball, {"type": "ineq", "fun": slack}], tol=1e-12)
    assert slack(free.x).min() < -0.02  # the bound is active, and so is the ball
    assert np.linalg.norm(best.x) == pytest.approx(radius)
    model = ParityPairClassifier(r, beta=beta, radius=radius, fit_intercept=False)
    model.fit(X, y, sensitive_features=group)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(best.fun, abs=1e-4)
    np.testing.assert_allclose(model.coef_[0], best.x, atol=0.02)
    assert slack(model.coef_[0]).min() >= -1.001e-6
    assert np.linalg.norm(model.coef_) <= radius * (1 + 1e-12)


@pytest.mark.slow
@ignored
@pytest.mark.parametrize("rate", ["sigmoid", "indicator"])
@pytest.mark.parametrize("radius", [None, 1.0])
def test_the_bound_is_kept(biased, rate, radius):
    X, y, group = biased
    free = ParityPairClassifier(None, rate=rate, radius=radius).fit(X, y, sensitive_features=group)
    model = ParityPairClassifier(1.02, rate=rate, radius=radius).fit(X, y, sensitive_features=group)
    scores = model.decision_function(X)
    value = parity_pair(None, scores, sensitive_features=group, rate=rate)
    one_row = 1 / min(np.bincount(group))
    assert value <= 1.02 + (1.001e-6 if rate == "sigmoid" else one_row)
    assert model.constraint_values_ == {"parity_pair": pytest.approx(value)}
    assert free.constraint_values_["parity_pair"] > 1.05
    assert free.objective_ < model.objective_ < np.log(2)
    exact = parity_pair(None, scores, sensitive_features=group, rate="indicator")
    assert model.exact_values_["parity_pair"] == pytest.approx(exact)


@pytest.mark.slow
@ignored
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")  # they bound the value up to a tolerance
@pytest.mark.parametrize("oracle", ["augmented_lagrangian", "level_set"])
def test_the_method_of_the_paper(biased, oracle):
    X, y, group = biased
    auto = ParityPairClassifier(1.02, radius=1.0, compute_stationarity=True).fit(X, y, sensitive_features=group)
    options = {"oracle": oracle, "max_iter": 30, "proximity": 0.03}
    model = ParityPairClassifier(1.02, radius=1.0, solver="ipc", solver_options=options, compute_stationarity=True)
    model.fit(X, y, sensitive_features=group)
    assert model.objective_ == pytest.approx(auto.objective_, abs=2e-3)
    assert model.constraint_values_["parity_pair"] <= 1.02 + 1e-4
    for fitted in (auto, model):
        assert fitted.stationarity_ == fitted.stationarity_report_["distance"] < 0.05
        assert fitted.stationarity_report_["kkt_residual"] >= 0


def test_one_group_has_no_pair(biased):
    X, y, _ = biased
    with pytest.warns(FairnessWarning, match="group"):
        model = ParityPairClassifier().fit(X, y)
    assert model.exact_values_ == {}
    assert model.constraint_values_ == {}
