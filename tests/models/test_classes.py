"""Scores of several classes: gradients, coordinates, and what a model of them hands on."""

import copy

import numpy as np
import pytest
import torch

from fairconstrained.data import FairData
from fairconstrained.models import ClassModel, LinearModel, ModuleModel, Perceptron, mlp


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(40, 3)) * [1, 10, 0.1] + [0, 5, 1], np.repeat([0, 1], 20)
    return FairData.from_arrays(X, rng.integers(0, 4, 40).astype(float), codes, ("a", "b"))


BASES = {
    "linear": LinearModel(3, 4, alpha=0.1),
    "without intercept": LinearModel(3, 4, fit_intercept=False),
    "perceptron": Perceptron(mlp, 3, 4, alpha=0.1, device="cpu"),
    "module": ModuleModel(
        lambda n, k: torch.nn.Sequential(torch.nn.Linear(n, 5), torch.nn.Tanh(), torch.nn.Linear(5, k)),
        3,
        4,
        device="cpu",
    ),
}


@pytest.mark.parametrize("base", BASES.values(), ids=BASES)
def test_scores_of_all_classes_and_their_gradient(data, base):
    model = ClassModel(base)
    rng = np.random.default_rng(1)
    params = model.init(rng) + 0.3 * rng.normal(size=model.n_params)
    scores, pullback = model.forward(params, data)
    assert scores.shape == (40, 4)
    np.testing.assert_allclose(model.training_scores(params, data), scores.numpy())
    np.testing.assert_allclose(model.scores(params, data.X), scores.numpy(), rtol=1e-9)
    weights, direction = rng.normal(size=(40, 4)), rng.normal(size=model.n_params)
    ends = [(weights * model.training_scores(params + step * direction, data)).sum() for step in (1e-6, -1e-6)]
    gradient = pullback(torch.from_numpy(weights))
    assert gradient @ direction == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5)
    assert model.penalty_at(params) == base.penalty(params)[0]
    assert model.layout != base.layout  # a start of groups is none of classes


def test_coordinates_standardise_the_features_of_every_class(data):
    model = ClassModel(LinearModel(3, 4))
    coordinates = model.coordinates(data)
    u = np.random.default_rng(2).normal(size=model.n_params)
    params = coordinates.to_params(u)
    np.testing.assert_allclose(coordinates.from_params(params), u, rtol=1e-9)
    standard = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
    table = u.reshape(4, 4)
    np.testing.assert_allclose(model.training_scores(params, data), standard @ table[:, :3].T + table[:, 3], rtol=1e-9)


def test_every_class_can_be_that_of_all_rows(data):
    model = ClassModel(LinearModel(3, 4))
    states = model.one_class_states(data)
    assert [np.unique(model.training_scores(state, data).argmax(axis=1)).tolist() for state in states] == [
        [0],
        [1],
        [2],
        [3],
    ]
    assert not ClassModel(LinearModel(3, 4, fit_intercept=False)).one_class_states(data)
    perceptron = ClassModel(Perceptron(mlp, 3, 4, device="cpu"))
    assert len(perceptron.one_class_states(data)) == 4


def test_its_columns_are_the_parameters_of_single_scores(data):
    model = ClassModel(LinearModel(3, 4))
    params = np.random.default_rng(3).normal(size=model.n_params)
    (columns,) = model.score_columns(params)
    found = [model.of_one_score.training_scores(column, data) for column in columns.T]
    np.testing.assert_allclose(np.column_stack(found), model.training_scores(params, data), rtol=1e-12)
    np.testing.assert_allclose(model.column_scores([columns], data), model.training_scores(params, data), rtol=1e-12)
    assert model.with_features(2).n_params == 12
    assert model.is_linear
    assert not ClassModel(BASES["perceptron"]).is_linear


def test_it_travels():
    model = ClassModel(BASES["perceptron"])
    assert model.portable().base.device == "cpu"
    assert copy.deepcopy(model).n_params == model.n_params
    assert model.name == "module of 4 classes"
    assert model.uses_threads
