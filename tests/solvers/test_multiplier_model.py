"""The multiplier model: its steps against a restatement, its features, and an optimum that is known."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from fairconstrained import ConvergenceWarning, FairRanker
from fairconstrained.constraints import RateGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_ranking
from fairconstrained.groups import Groups
from fairconstrained.models import LinearModel, ModuleModel, mlp
from fairconstrained.models.margins import MarginData, MarginModel
from fairconstrained.models.pairs import PairModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import MultiplierModel
from fairconstrained.solvers.published.multiplier_model import _features
from fairconstrained.solvers.source import Source
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
    return make_problem(data, RateGap(0.05, constraint="intersectional", rate="sigmoid").unchecked(data)), members


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


@pytest.fixture(scope="module")
def items(make_data):
    return make_data(counts=(40, 60), n_features=4)


def pairs_of(items, base):
    """Pairs of documents of which the first is the better one; one constraint for two groups of pairs."""
    first = np.random.default_rng(0).permutation(items.n_samples)
    codes = np.arange(items.n_samples) % 2
    data = FairData.from_arrays(np.column_stack([first, np.roll(first, 1)]), np.ones(100), codes, ("x", "y"))
    bound = RateGap(0.05).unchecked(data)
    return Problem(Logistic().bind(data), (bound,), data, model=PairModel(base, items))


def test_features_of_pairs_are_differences_of_documents(items):
    problem = pairs_of(items, LinearModel(4))
    pairs = problem.data.X
    differences = np.asarray(items.X)[pairs[:, 0]] - np.asarray(items.X)[pairs[:, 1]]
    x, y = (differences[problem.data.codes == code].mean(axis=0) for code in (0, 1))
    features = _features(problem)
    assert features.shape == (2, 4)
    np.testing.assert_allclose(np.abs(features), 1.0)  # of two opposite components, in units of their root mean square
    np.testing.assert_array_equal(np.sign(features[0]) * np.sign(features[0, 0]), np.sign((x - y) * (x - y)[0]))


def test_features_of_margins_are_those_of_the_items(items):
    items = replace(items, y=torch.from_numpy(np.arange(100) % 3).sort().values.double())
    margins = MarginData.of(items, ("a", "b", "c"))
    model = MarginModel(LinearModel(4, 3), items)
    np.testing.assert_array_equal(model.row_features(margins), np.asarray(items.X)[margins.X[:, 0]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_features_of_rows_that_were_placed_as_tensors(items, dtype):
    """As on a device, whose rows are tensors."""
    network = ModuleModel(partial(mlp, hidden_layer_sizes=(3,)), 4, dtype=dtype, device="cpu")
    placed = replace(items, X=torch.from_numpy(np.ascontiguousarray(items.X)).to(dtype))
    bound = RateGap(0.05).unchecked(items)
    plain, other = (Problem(Logistic().bind(items), (bound,), rows, model=network) for rows in (items, placed))
    np.testing.assert_allclose(_features(other), _features(plain), atol=1e-5)


def test_a_ranker_takes_it():
    X, y, query, group = make_biased_ranking(40, 6, random_state=0)
    model = FairRanker(0.1, solver="multiplier_model", max_iter=3, solver_options={"batch_size": 64}, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y, qid=query, sensitive_features=group)
    assert model.multipliers_ is not None
    assert np.isfinite(model.objective_)


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


@pytest.mark.slow
def test_the_bound_is_kept_about(overlapping):
    problem, _ = overlapping
    options = MultiplierModel(max_epochs=1000, batch_size=400, learning_rate=0.01, multiplier_rate=0.01, radius=50.0)
    free = options.solve(problem.without_constraints(), None, np.random.default_rng(0))
    result = options.solve(problem, None, np.random.default_rng(0))
    unbounded = problem.constraints[0].metric(problem.scores(free.model_state))
    assert unbounded > 0.12
    assert result.constraint_values["intersectional"] < 0.08
    assert result.objective < np.log(2) - 0.01


def test_the_seed_decides_and_no_constraints_are_no_players(overlapping, known):
    problem, _ = overlapping
    options = MultiplierModel(max_epochs=2, batch_size=64)
    one, same, other = (options.solve(problem, None, np.random.default_rng(seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.model_state, same.model_state)
    assert not np.array_equal(one.model_state, other.model_state)
    alone = known.problem.without_constraints()
    result = options.solve(alone, None, np.random.default_rng(0))
    assert result.multipliers == {}
    assert result.objective < alone.view(FullBatch).at(np.zeros(alone.n_params)).objective
