"""The level-set method for modules."""

from functools import partial

import numpy as np
import pytest

from fairconstrained.constraints import QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.models import LinearModel
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.objectives import Logistic, PairwiseAUC
from fairconstrained.problem import Problem
from fairconstrained.solvers import Status, make_solver
from fairconstrained.views import FullBatch
from tests.history import comparable

QUICK = {"max_iter": 3, "level_iter": 2, "inner_iter": 100, "batch_size": 50, "step": 1.0}


@pytest.fixture(scope="module")
def data():
    """Labels that depend on the size of a feature, which no linear score sees, and on the group."""
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    X[:, 1] += groups
    y = np.where(np.abs(X[:, 0]) + 0.3 * X[:, 1] + 0.3 * rng.normal(size=300) > 1, 1.0, -1.0)
    return FairData.from_arrays(X, y, groups, ("a", "b"))


def make_problem(data, kappa=0.4, c1=0.5, model=None):
    network = ModuleModel(partial(mlp, hidden_layer_sizes=(10,), activation="logistic"), 3)
    bound = QuadraticAUCGap(kappa, c1=c1).unchecked(data)
    return Problem(PairwiseAUC(loss="quadratic").bind(data), (bound,), data, model=model or network)


def solve(problem, seed=0, **options):
    solver = make_solver("iqrc", {**QUICK, **options}, problem)
    return solver.solve(problem, None, np.random.default_rng(seed))


@pytest.mark.slow
def test_it_ends_feasible_and_better_than_any_linear_score(data):
    problem = make_problem(data)
    linear = make_problem(data, model=LinearModel(3))
    optimum = make_solver("moments", {}, linear).solve(linear, None, np.random.default_rng(0))
    result = solve(problem, max_iter=4, level_iter=3, inner_iter=150)
    assert result.status == Status.COMPLETED
    assert result.surrogate_violation <= 0
    assert result.objective < optimum.objective - 0.02
    assert all(record["surrogate_violation"] <= 0 for record in result.history)
    assert all(value >= 0 for value in result.multipliers.values())
    assert set(result.multipliers) == set(problem.component_names)


@pytest.mark.slow
def test_result_is_the_best_of_what_is_recorded(data):
    problem = make_problem(data)
    result = solve(problem)
    point = problem.view(FullBatch).at(result.model_state)
    assert result.objective == point.objective == min(record["objective"] for record in result.history)
    assert point.constraints.max() <= 0
    assert result.history[0]["level"] == pytest.approx(0.5)
    firsts = {record["n_iter"]: record["level"] for record in reversed(result.history)}
    assert sorted(firsts) == [1, 2, 3]
    best = min(record["objective"] for record in result.history if record["n_iter"] == 1)
    assert firsts[2] == best  # the objective at the best iterate so far


@pytest.mark.slow
def test_a_strong_proximal_term_keeps_the_network_where_it_is(data):
    free, held = (solve(make_problem(data), proximity=rho, max_iter=1).objective for rho in (1e-5, 10.0))
    assert free < held <= 0.5


@pytest.mark.slow
def test_a_solved_subproblem_does_not_end_it(data):
    result = solve(make_problem(data), tol=1.0)  # every level is good enough
    assert [record["n_iter"] for record in result.history] == [1, 2, 3]


def test_nothing_below_the_level_ends_it(data):
    result = solve(make_problem(data, kappa=0.0), inner_iter=10, max_doublings=1)
    assert result.n_iter == 1
    assert result.objective == pytest.approx(0.5)


def test_infeasible_where_constant_scores_are(data):
    assert solve(make_problem(data, kappa=0.3, c1=1.0)).status == Status.INFEASIBLE


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(data):
    problem = make_problem(data)
    one, other, third = (solve(problem, seed, max_iter=1) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.model_state, other.model_state)
    assert comparable(one.history) == comparable(other.history)
    assert (one.model_state != third.model_state).any()


def test_linear_models_work_too(data):
    problem = make_problem(data, model=LinearModel(3))
    result = solve(problem, step=0.3)
    assert result.surrogate_violation <= 0
    assert result.objective < 0.5


@pytest.mark.slow
def test_a_loss_of_rows(data):
    pairs = make_problem(data)
    problem = Problem(Logistic().bind(data), pairs.constraints, data, model=pairs.model)
    result = solve(problem, step=1.0)
    assert result.surrogate_violation <= 0
    share = float(data.weights @ (data.y > 0).double())
    assert result.objective < -share * np.log(share) - (1 - share) * np.log(1 - share) - 0.02  # of the best constant


def test_readable_errors(data):
    problem = make_problem(data)
    with pytest.raises(IncompatibleProblem, match=r"'iqrc' needs the view SingleRows"):
        solve(Problem(PairwiseAUC(loss="logistic").bind(data), problem.constraints, data, model=problem.model))
    with pytest.raises(ValueError, match=r"solver 'iqrc' has no option \['c'\]; its options are"):
        solve(problem, c=1.0)
