"""The solver of `solver="auto"` with a network: the exact metric is bounded as it is for linear models."""

from functools import partial

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.models import LinearModel
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import Status, make_solver

KAPPA = 0.1


@pytest.fixture(scope="module")
def data():
    """Labels that depend on the size of a feature, which no linear score sees."""
    X, y, groups = make_biased_classification(400, 4, n_informative=1, random_state=0)
    X[:, 0] = np.where(np.arange(400) % 2, 1, -1) * np.exp(X[:, 0] / 2)
    return FairData.from_arrays((X - X.mean(0)) / X.std(0), np.where(y > 0, 1.0, -1.0), groups, ("a", "b"))


def solve(model, constraint, data):
    problem = Problem(Logistic().bind(data), (constraint.unchecked(data),), data, model=model)
    result = make_solver("augmented_lagrangian", {"max_iter": 12}, problem).solve(
        problem, None, np.random.default_rng(0)
    )
    (bound,) = problem.constraints
    return result, bound.metric(problem.scores(result.model_state)) - bound.granularity


@pytest.mark.slow
@pytest.mark.parametrize(
    ("notion", "n_outputs"), [(DemographicParity, 1), (StatisticalParity, 2)], ids=["pDP shared", "pSP heads"]
)
def test_kappa_is_met_and_the_network_earns_its_keep(data, notion, n_outputs):
    network = ModuleModel(partial(mlp, hidden_layer_sizes=(5,), activation="tanh"), 4, n_outputs, alpha=1e-3)
    result, metric = solve(network, notion(KAPPA), data)
    linear, _ = solve(LinearModel(4, n_outputs, alpha=1e-3), notion(KAPPA), data)
    assert result.status != Status.INFEASIBLE
    assert metric <= KAPPA
    assert result.objective < linear.objective - 0.05
