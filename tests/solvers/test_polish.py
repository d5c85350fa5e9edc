"""Random search around a solution: within the exact bounds, as good as a grid, and the same every time."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic, ZeroOne
from fairconstrained.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, polished

CONSTRAINTS = {"at once": DemographicParity(0.02), "one by one": StatisticalParity(0.25)}


def problem_of(constraint, n_samples=150, objective=None):
    """Two features, of which the first one tells the group."""
    rng = np.random.default_rng(0)
    codes = (rng.random(n_samples) < 0.4).astype(int)
    X = rng.normal(size=(n_samples, 2)) + np.outer(codes, [1.0, 0.2])
    y = np.where(rng.random(n_samples) < 1 / (1 + np.exp(-X @ [1.5, 1.0])), 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    bound = (objective or Logistic()).bind(data)
    return Problem(bound, (constraint.unchecked(data),), data, model=LinearModel(2, 1, alpha=1e-4))


def objective(problem, params):
    return problem.objective_at(params, problem.scores(params))


@pytest.fixture(params=list(CONSTRAINTS))
def problem(request):
    return problem_of(CONSTRAINTS[request.param])


@pytest.fixture
def free(problem):
    unbounded = problem.without_constraints()
    return AugmentedLagrangian().solve(unbounded, None, np.random.default_rng(0)).model_state


@pytest.fixture
def start(problem, free):
    """A small coefficient of the second feature alone, and an intercept with which it keeps the bounds."""
    tries = [np.array([0.0, 0.2 * free[1], intercept]) for intercept in np.linspace(-2, 2, 101)]
    return min((one for one in tries if problem.holds(problem.scores(one))), key=lambda one: objective(problem, one))


def test_the_result_is_about_as_good_as_the_best_point_of_a_grid(problem, free, start):
    found = polished(problem, start, [free, 2 * free])
    assert problem.holds(problem.scores(found))
    assert objective(problem, found) < 0.99 * objective(problem, start)
    shares = np.linspace(-0.25, 1.25, 13)
    points = [free * [a, b, 1] + [0, 0, c] for a, b, c in product(shares, shares, np.linspace(-1.5, 1.5, 16))]
    best = min(objective(problem, one) for one in points if problem.holds(problem.scores(one)))
    assert objective(problem, found) <= 1.005 * best


def test_the_search_is_the_same_every_time(problem, free, start):
    first, second = (polished(problem, start, [free]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_nothing_is_done_without_a_better_point_outside_of_the_bounds(problem, start):
    for others in ([], [np.zeros(3)], [start]):
        assert polished(problem, start, others) is start


@pytest.mark.parametrize(
    "unsuited",
    [problem_of(DemographicParity(0.02), n_samples=2001), problem_of(DemographicParity(0.02), objective=ZeroOne())],
    ids=["many rows", "not convex"],
)
def test_problems_that_do_not_suit_are_left_alone(unsuited):
    start = np.array([0.0, 0.1, 0.0])
    assert polished(unsuited, start, [np.array([1.5, 1.0, 0.0])]) is start


def test_metrics_of_several_models_are_those_of_each():
    rng = np.random.default_rng(1)
    data = problem_of(DemographicParity(0.1)).data
    scores = rng.normal(size=(5, data.n_samples))
    for interval, normalize in product([(0.0, 1.0), (0.2, 0.5)], [True, False]):
        bound = DemographicParity(0.1, interval=interval, normalize=normalize, threshold=0.2).unchecked(data)
        assert bound.measures_at_once
        np.testing.assert_allclose(bound.metrics(scores), [bound.metric(one) for one in scores])


def test_a_run_of_few_rows_ends_better_than_its_iterates():
    """The iterates of the augmented Lagrangian are in its history; the result is a neighbour of the best one."""
    problem = problem_of(DemographicParity(0.02))
    result = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0))
    allowed = 0.02 + problem.constraints[0].granularity
    within = [one["objective"] for one in result.history if one["demographic_parity"] <= allowed]
    assert result.constraint_values["demographic_parity"] <= allowed
    assert result.objective < min(within)
    assert result.objective == pytest.approx(objective(problem, result.model_state))
    looser = replace(problem, constraints=tuple(c.with_kappa(1.0) for c in problem.constraints))
    assert result.objective > AugmentedLagrangian().solve(looser, None, np.random.default_rng(0)).objective
