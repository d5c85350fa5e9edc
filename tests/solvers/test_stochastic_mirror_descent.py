"""Mirror descent with bounded multipliers: its saddle point is the optimum, its dual steps are the best ones."""

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.objectives import Logistic, PairwiseAUC
from fairconstrained.problem import Problem
from fairconstrained.solvers import StochasticMirrorDescent, make_solver
from fairconstrained.solvers.published._duals import BoundedMultipliers
from fairconstrained.solvers.published.saddle_form import SaddleForm
from fairconstrained.solvers.published.saddle_steps import Averages, LateAverages


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(600, 3)), rng.integers(0, 2, 600)
    X[:, 0] += 0.8 * groups
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=600) > 0.5, 1.0, -1.0)
    return FairData.from_arrays(X, y, groups, ("a", "b"))


def make_problem(data, kappa=0.2, objective=None, model=None):
    objective = PairwiseAUC(loss="quadratic") if objective is None else objective
    bounds = () if kappa is None else (QuadraticAUCGap(kappa).bind(data),)
    return Problem(objective.bind(data), bounds, data, model=model or LinearModel(3))


def solve(problem, name="mirror_descent", start=None, seed=0, callback=None, **options):
    return make_solver(name, options, problem).solve(problem, start, np.random.default_rng(seed), callback)


@pytest.mark.slow
def test_it_comes_to_the_optimum(data):
    problem = make_problem(data)
    optimum, result = solve(problem, "moments"), solve(problem, max_iter=30)
    assert result.objective == pytest.approx(optimum.objective, abs=0.003)
    assert result.surrogate_violation <= 0
    for name in problem.component_names:
        assert result.multipliers[name] == pytest.approx(optimum.multipliers.get(name, 0.0), abs=0.05)
    free = solve(make_problem(data, None), "moments")
    assert free.objective < optimum.objective - 0.02  # so that the bound matters


@pytest.mark.slow
def test_losses_of_rows_and_networks(data):
    for objective in (Logistic(), PairwiseAUC(loss="quadratic")):
        linear = solve(make_problem(data, objective=objective), max_iter=30)
        model = ModuleModel(partial(mlp, hidden_layer_sizes=(5,), activation="logistic"), 3)
        network = solve(make_problem(data, objective=objective, model=model), max_iter=30, step=1.0)
        assert network.objective < linear.objective + 0.02
        assert max(network.surrogate_violation, linear.surrogate_violation) < 0.01


def test_the_result_is_the_best_of_the_passes(data):
    seen = []
    result = solve(make_problem(data), max_iter=10, callback=seen.append)
    assert len(result.history) == len(seen) == result.n_iter == 10
    best = min((record["surrogate_violation"], record["objective"]) for record in result.history)
    assert result.objective == pytest.approx(best[1], abs=1e-12)
    again = solve(make_problem(data), max_iter=10)
    np.testing.assert_array_equal(again.model_state, result.model_state)
    assert result.n_evaluations >= 20  # a pass in mini-batches and one over all rows, ten times


def dual(data, kappa=0.2):
    return StochasticMirrorDescent().duals(SaddleForm.of(make_problem(data, kappa)))


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")  # SciPy 1.11, on its way
def test_the_dual_step_is_the_best_one(data):
    """Against SLSQP on the definition: the gain of the step less the distance, over multipliers and alpha."""
    duals, rng = dual(data), np.random.default_rng(1)
    form, K, tau = duals.form, duals.entropy, 0.7
    log_y, alpha = np.log([0.5, 0.3, 0.2]), rng.uniform(-0.5, 0.5, form.c1.size)
    u, v = rng.normal(size=3), rng.normal(size=form.c1.size)
    before = np.exp(log_y)

    def lost(z):
        y, a = z[:3], z[3:]
        weights = duals.component_weights(y)
        of_terms = weights[form.component]
        gain = weights[1:] @ u[1:] + of_terms @ (a * v - form.c1 * a**2)
        distance = K * (y @ np.log(y / before)) + of_terms @ (form.c1 * (a - alpha) ** 2)
        return distance / tau - gain

    start = np.concatenate([before, alpha])
    bounds = [(1e-9, 1)] * 3 + [(-i, i) for i in duals.interval]
    total = {"type": "eq", "fun": lambda z: z[:3].sum() - 1}
    best = minimize(lost, start, method="SLSQP", bounds=bounds, constraints=total, options={"ftol": 1e-14}).x
    new_log_y, new_alpha = duals.step(log_y, alpha, u, v, tau)
    np.testing.assert_allclose(np.exp(new_log_y), best[:3], atol=1e-4)
    np.testing.assert_allclose(new_alpha, best[3:], atol=1e-3)


def test_multipliers_stay_within_their_sum(data):
    duals = dual(data)
    log_y, alpha = duals.start(), np.zeros(duals.form.c1.size)
    np.testing.assert_allclose(duals.component_weights(np.exp(log_y)), [1.0, 0.1, 0.1], atol=1e-3)
    for _ in range(500):
        log_y, alpha = duals.step(log_y, alpha, np.array([5.0, 3.0, 1.0]), np.zeros_like(alpha), 1.0)
    weights = duals.component_weights(np.exp(log_y))
    assert weights[0] == 1.0
    assert weights[1] == pytest.approx(10.0, abs=1e-6)
    assert weights[1:].sum() <= 10.0 + 1e-9
    assert isinstance(duals, BoundedMultipliers)


def test_late_averages_are_those_of_the_last_half_to_three_quarters():
    late = LateAverages(lambda: Averages(np.zeros(1), np.zeros(1), np.zeros(1), np.zeros(1)))
    for t in range(1, 400):
        late.newest.x += t
        late.newest.n_steps += 1
        late.roll()
        kept = late.sums.n_steps
        assert late.sums.x[0] == sum(range(t - int(kept) + 1, t + 1))  # the last ones, and all of them
        if t > 30:
            assert 0.5 <= kept / t <= 0.8
