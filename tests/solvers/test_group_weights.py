"""Weights of groups in turn with fits: the largest mean loss against the exact one, and the contract of solvers."""

import numpy as np
import pytest
import torch

from fairconstrained.constraints import GroupRates
from fairconstrained.exceptions import IncompatibleProblem, StopTraining
from fairconstrained.models import LinearModel
from fairconstrained.objectives import BoundLargestMean, Hinge, Logistic
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status, make_solver


def largest(data, loss="log_loss", objective=None):
    means = GroupRates(loss, rule="ceiling", kappa=0.0).unchecked(data)
    objective = BoundLargestMean(objective or Logistic(), data, means=means)
    return Problem(objective, (), data, model=LinearModel(data.n_features, alpha=1e-3))


def solved(name, problem, start=None, callback=None, **options):
    return make_solver(name, options, problem).solve(problem, start, np.random.default_rng(0), callback)


@pytest.fixture
def data(make_data):
    return make_data(counts=(400, 200), weighted=True, shift=0.8)


def test_it_comes_near_the_exact_optimum(data):
    problem = largest(data)
    exact, near = solved("interior_point", problem), solved("group_weights", problem)
    assert exact.objective - exact.duality_gap <= near.objective
    assert near.objective <= 1.005 * exact.objective
    assert near.status is Status.COMPLETED
    assert near.duality_gap is None
    assert sum(near.multipliers.values()) == pytest.approx(1)
    assert near.objective == pytest.approx(problem.objective_at(near.model_state, problem.scores(near.model_state)))
    assert near.objective == min(record["objective"] for record in near.history)


def test_the_weight_of_the_worst_group_grows(data):
    weights = [record["weights"] for record in solved("group_weights", largest(data), max_iter=2).history]
    np.testing.assert_allclose(weights[0], 0.5)
    params = []
    solved("group_weights", largest(data), max_iter=1, callback=lambda record: params.append(record["params"]))
    problem = largest(data)
    worst = problem.objective.means_at(problem.scores(params[0])).argmax()
    assert weights[1][worst] > 0.5
    assert weights[1].sum() == pytest.approx(1)


def test_corners(data):
    result = solved("group_weights", largest(data, "hinge", Hinge()), max_iter=10)
    assert result.objective < 1.0


def test_the_same_run_twice_a_start_and_an_end(data):
    problem = largest(data)
    one, other = (solved("group_weights", problem, max_iter=3) for _ in range(2))
    np.testing.assert_array_equal(one.model_state, other.model_state)
    start = np.full(problem.n_params, 0.1)
    solved("group_weights", problem, start=Start(start), max_iter=1)
    np.testing.assert_array_equal(start, 0.1)

    def stop(record):
        if record["n_iter"] == 2:
            raise StopTraining(np.zeros(problem.n_params))

    stopped = solved("group_weights", problem, callback=stop)
    assert stopped.n_iter == 2
    np.testing.assert_array_equal(stopped.model_state, 0)


def test_other_problems_are_refused(data):
    plain = Problem(Logistic().bind(data), (), data, model=LinearModel(data.n_features))
    with pytest.raises(IncompatibleProblem, match="largest of several mean losses"):
        make_solver("group_weights", {}, plain)
    problem = largest(data)
    bound = GroupRates("log_loss", rule="ceiling", kappa=0.6).unchecked(data)
    with pytest.raises(IncompatibleProblem, match="no bounds beside"):
        make_solver("group_weights", {}, Problem(problem.objective, (bound,), data, model=problem.model))


def test_the_gradient_of_the_largest_mean_and_of_weighted_means(data):
    objective = largest(data).objective
    rng = np.random.default_rng(0)
    scores, weights = rng.normal(size=data.n_samples), np.array([0.3, 0.7])
    means = objective.means_at(scores)
    at = torch.from_numpy(scores).requires_grad_()
    value = objective.values(at, at.new_empty(0))
    assert value.item() == pytest.approx(means.max())
    (slopes,) = torch.autograd.grad(value.sum(), at)
    rows = np.where(data.codes == means.argmax(), data.weights.numpy(), 0.0)
    expected = rows / rows.sum() * Logistic().slope(at.detach(), data.y).numpy()
    np.testing.assert_allclose(slopes, expected, atol=1e-15)
    weighted = objective.weighted(weights)
    assert weighted.values(at, at.new_empty(0)).item() == pytest.approx(weights @ means)
