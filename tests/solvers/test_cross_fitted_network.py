"""Networks of small networks side by side, joined by numbers that are chosen on rows not seen."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest

from fairconstrained import LossParityClassifier
from fairconstrained.callbacks import TimeLimit
from fairconstrained.constraints import DemographicParity, LossParity
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.metrics import loss_parity_gap
from fairconstrained.models import LinearModel, Perceptron, mlp
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import AdamLagrangian, CrossFittedNetwork

pytestmark = pytest.mark.usefixtures("new_row_estimates")
QUICK = {"hidden_layer_sizes": (12, 8), "max_epochs": 15, "random_state": 0}
NAME = CrossFittedNetwork.name


def draw(n_samples, seed, n_groups=2, n_features=40):
    """Rows of many features, of which five tell the label and three the group; it is easier to tell in one group."""
    rng = np.random.default_rng(seed)
    groups = np.minimum((rng.random(n_samples) / 0.4).astype(int), n_groups - 1)
    X = rng.normal(size=(n_samples, n_features))
    X[:, :3] += 1.2 * groups[:, None]
    y = (X[:, :5].sum(axis=1) + (1 + 2 * groups) * rng.normal(size=n_samples) > 1).astype(int)
    return X, y, groups


@cache
def fitted(kappa=0.05, n_groups=2, n_samples=400, **options):
    X, y, groups = draw(n_samples, 0, n_groups)
    return LossParityClassifier(kappa, **(QUICK | options)).fit(X, y, sensitive_features=groups)


def problem_of(constraint=None, hidden=(12, 8), n_groups=2, n_samples=300, model=None):
    X, y, groups = draw(n_samples, 1, n_groups)
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, tuple(range(n_groups)))
    model = model or Perceptron(partial(mlp, hidden_layer_sizes=hidden), X.shape[1])
    return Problem(Logistic().bind(data), ((constraint or LossParity(0.05)).bind(data),), data, model=model)


@pytest.mark.parametrize(("hidden", "activation"), [((9,), "relu"), ((12, 8), "tanh"), ((8, 9, 11), "logistic")])
def test_a_network_has_others_side_by_side(hidden, activation):
    X = np.random.default_rng(0).normal(size=(20, 5))
    whole = Perceptron(partial(mlp, hidden_layer_sizes=hidden, activation=activation), 5, activation=activation)
    part = whole.divided(2, 4)
    networks = [np.random.default_rng(seed).normal(size=part.n_params) for seed in (1, 2)]
    params, heads = whole.side_by_side(part, networks), whole.last_layers(part, networks)
    np.testing.assert_array_equal(whole.scores(params, X), 0)
    for own, head in zip(networks, heads.T, strict=True):
        params[-heads.shape[0] :] = head
        np.testing.assert_allclose(whole.scores(params, X), part.scores(own, X), atol=1e-12)
    assert whole.divided(2, 5) is None


def test_bounds_hold_on_the_training_rows_and_on_rows_not_seen():
    model = fitted(batch_size=40)
    X, y, groups = draw(400, 0)
    assert model.solver_ == NAME
    gap = loss_parity_gap(y, model.decision_function(X), sensitive_features=groups, pos_label=1)
    assert gap == pytest.approx(model.constraint_values_["loss_parity"])
    assert gap <= 0.05 + 1e-9
    found = model.new_row_gaps_["loss_parity"]
    assert found.estimate <= 0.06
    assert found.how == "5-fold cross-fitting"
    assert model.score(X, y) > 0.7


@pytest.mark.filterwarnings("ignore:.*no iterate kept the bound")  # the small one
@pytest.mark.parametrize("kappa", [0.05, 1e-4])
def test_a_limit_of_time_ends_the_search_with_what_it_has(kappa):
    records = []
    X, y, groups = draw(400, 0)
    model = LossParityClassifier(kappa, callbacks=[TimeLimit(0.0), records.append], **QUICK, new_row_folds=None)
    model.fit(X, y, sensitive_features=groups)
    assert (model.solver_, model.n_iter_, len(model.history_)) == (NAME, 1, 1)
    assert records == []  # whoever comes after the limit is told nothing
    assert model.history_[0]["seconds"] > 0
    assert loss_parity_gap(y, model.decision_function(X), sensitive_features=groups) <= kappa + 1e-9


def test_the_networks_share_a_limit_of_time(monkeypatch):
    solve, seconds = AdamLagrangian.solve, []

    def watched(self, *arguments):
        seconds.append(self.max_time)
        return solve(self, *arguments)

    monkeypatch.setattr(AdamLagrangian, "solve", watched)
    solver = CrossFittedNetwork(n_folds=2, max_epochs=1, max_time=60.0)
    solver.solve(problem_of(), None, np.random.default_rng(0))
    assert 9 < seconds[0] <= 10  # two networks for all rows and for those without each fold
    assert 9 < seconds[0] <= seconds[5] <= 60


@pytest.mark.slow
def test_the_gap_on_new_rows_is_smaller_at_no_less_accuracy():
    X, y, groups = draw(20_000, 5)
    gaps, accuracies = [], []
    for options in ({}, {"solver": "adam_lagrangian"}):
        model = fitted(0.02, max_epochs=100, **options)
        gaps.append(model.constraint_values(X, y, sensitive_features=groups)["loss_parity"])
        accuracies.append(model.score(X, y))
    assert gaps[0] < 0.7 * gaps[1]
    assert accuracies[0] > accuracies[1]


def test_more_groups_have_a_network_each():
    model = fitted(n_groups=3, hidden_layer_sizes=(16, 16), n_samples=500)
    assert model.solver_ == NAME
    assert model.constraint_values_["loss_parity"] <= 0.05 + 1e-9


def test_what_no_numbers_keep_is_left_to_the_network_of_all_rows():
    model = fitted(0.0)
    assert model.solver_ == NAME
    assert model.constraint_values_["loss_parity"] <= 1e-8


@pytest.mark.slow
def test_with_another_kappa_a_warm_start_has_the_networks_already():
    X, y, groups = draw(400, 0)
    model = LossParityClassifier(0.1, **QUICK, warm_start=True).fit(X, y, sensitive_features=groups)
    networks = model._fitted.start.solver_state.networks
    model.set_params(kappa=0.05).fit(X, y, sensitive_features=groups)
    assert model._fitted.start.solver_state.networks is networks
    np.testing.assert_allclose(model.decision_function(X), fitted().decision_function(X), atol=1e-6)
    model.set_params(max_epochs=16).fit(X, y, sensitive_features=groups)
    assert model._fitted.start.solver_state.networks is not networks


@pytest.mark.parametrize(
    ("options", "suits"),
    [
        ({}, True),
        ({"n_samples": 1500}, True),
        ({"n_samples": 3000}, False),
        ({"constraint": DemographicParity(0.1)}, False),
        ({"hidden": (6,)}, False),
        ({"model": LinearModel(40)}, False),
    ],
)
def test_what_it_suits(options, suits):
    assert CrossFittedNetwork.suits(problem_of(**options)) == suits


@pytest.mark.parametrize("options", [{"max_time": 9.0}, {"early_stopping": True}, {"loss": "hinge"}, {"kappa": None}])
def test_it_is_not_chosen_for_other_fits(options):
    assert fitted(new_row_folds=None, **options).solver_ == "adam_lagrangian"


def test_errors_say_what_to_do():
    with pytest.raises(IncompatibleProblem, match="needs hidden layers of 8 units and more"):
        fitted(solver=NAME, hidden_layer_sizes=(7,))
    with pytest.raises(ValueError, match="Set early_stopping=False"):
        fitted(solver=NAME, early_stopping=True)
