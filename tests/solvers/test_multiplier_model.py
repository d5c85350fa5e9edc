"""The multiplier model: its steps against a restatement, its features, and an optimum that is known."""

import numpy as np
import pytest

from fairconstrained.constraints import RateGap
from fairconstrained.data import FairData
from fairconstrained.groups import Groups
from fairconstrained.solvers import MultiplierModel
from fairconstrained.solvers._stochastic import Source
from fairconstrained.solvers.multiplier_model import _features
from fairconstrained.views import FullBatch, Stochastic


@pytest.fixture(scope="module")
def overlapping(make_problem):
    """Thirty overlapping groups of 400 rows, whose rates are compared with that of all."""
    rng = np.random.default_rng(0)
    members = rng.random((400, 30)) < 0.2
    groups = Groups.of(members, overlapping=True)
    X = rng.normal(size=(400, 3)) + members[:, :3]
    y = np.where(rng.random(400) < 1 / (1 + np.exp(-X[:, 0])), 1.0, -1.0)
    data = FairData.from_arrays(X, y, groups.codes, groups.labels, unions=groups.unions)
    return make_problem(data, RateGap(0.05, constraint="intersectional").bind(data)), members


def test_features_are_in_proportion_to_the_difference_of_means(overlapping):
    problem, members = overlapping
    features = _features(problem)
    X = np.empty((400, 3))
    X[problem.data.order] = problem.data.X
    assert features.shape == (60, 3)
    ratios = []
    for group in range(30):
        difference = X[members[:, group]].mean(axis=0) - X.mean(axis=0)
        ratios.append(features[group] / difference)
        np.testing.assert_allclose(features[group + 30], -features[group])
    np.testing.assert_allclose(ratios, np.tile(ratios[0], (30, 1)))
    np.testing.assert_allclose((features**2).mean(axis=0), 1.0)


def test_the_multipliers_are_moved_up_where_constraints_are_violated(overlapping):
    problem, _ = overlapping
    options = MultiplierModel(batch_size=400, multiplier_rate=0.05, learning_rate=1e-9)
    method = options._method(problem, np.array([2.0, 0.0, 0.0, 0.0]), np.random.default_rng(0))
    assert method.multipliers.max() < 0.5

    whole = Source(problem.view(Stochastic), np.random.default_rng(0), None, 0.0)
    values = whole.batch().at(method.z).constraints
    before = method.multipliers @ values
    for _ in range(50):
        method.step(whole, problem)
    assert method.multipliers @ values > before
    assert method.multipliers.max() <= options.radius
    worst, best = values.argmax(), values.argmin()
    assert method.multipliers[worst] > method.multipliers[best]


def test_the_bound_is_kept_about(overlapping):
    problem, _ = overlapping
    options = MultiplierModel(max_epochs=1000, batch_size=400, learning_rate=0.01, multiplier_rate=0.01, radius=50.0)
    free = options.solve(problem.without_constraints(), None, np.random.default_rng(0))
    result = options.solve(problem, None, np.random.default_rng(0))
    unbounded = problem.constraints[0].metric(problem.scores(free.params))
    assert unbounded > 0.12
    assert result.constraint_values["intersectional"] < 0.08
    assert result.objective < np.log(2) - 0.01


def test_the_seed_decides_and_no_constraints_are_no_players(overlapping, known):
    problem, _ = overlapping
    options = MultiplierModel(max_epochs=2, batch_size=64)
    one, same, other = (options.solve(problem, None, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.params, same.params)
    assert not np.array_equal(one.params, other.params)
    alone = known.problem.without_constraints()
    result = options.solve(alone, None, np.random.default_rng(0))
    assert result.multipliers == {}
    assert result.objective < alone.view(FullBatch).at(np.zeros(alone.n_params)).objective
