"""Perceptron: the network of torch by products written out, and the last layer of any module."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import approx_fprime
from torch import nn

from fairconstrained.models.layers import ACTIVATIONS, mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.models.perceptron import Perceptron

LAYERS = {"no hidden layer": (), "one": (5,), "two": (6, 4)}
each_activation = pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
each_depth = pytest.mark.parametrize("layers", LAYERS.values(), ids=LAYERS.keys())
each_heads = pytest.mark.parametrize("n_outputs", [1, 3])
each_chunk = pytest.mark.parametrize("chunk_size", [4, 8192], ids=["chunks across groups", "one chunk"])


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "csr"])
def data(request, make_data):
    return make_data(counts=(9, 5, 7), sparse=request.param)


def both(layers, activation="tanh", n_outputs=1, **options):
    """The perceptron, and the same network by torch."""
    module = partial(mlp, hidden_layer_sizes=layers, activation=activation)
    options = {"device": "cpu", **options}
    perceptron = Perceptron(module, 3, n_outputs, activation=activation, **options)
    return perceptron, ModuleModel(module, 3, n_outputs, **options)


def draw(model, seed=0):
    return np.random.default_rng(seed).normal(size=model.n_params)


def cotangents(data, n=2):
    return torch.from_numpy(np.random.default_rng(1).normal(size=(n, data.n_samples)))


# --- scores and gradients


def test_units_of_features_are_those_of_the_parameters(data):
    """With parameters for features that are divided by 4: on the CPU, by torch, and as a module of the features."""
    model, plain = both((5,), n_outputs=3)
    in_units, params = replace(model, unit=4.0), draw(model)
    (scores, pullback), (expected, pull) = (
        in_units.forward(params, data),
        plain.forward(params, replace(data, X=data.X / 4)),
    )
    of_torch, pull_of_torch = ModuleModel._forward(in_units, params, data.X, data.codes)
    for found in (scores, of_torch, in_units.scores(params, data.X, data.codes)):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    for cotangent in cotangents(data):
        for own in (pullback, pull_of_torch):
            np.testing.assert_allclose(own(cotangent), pull(cotangent), rtol=1e-12, atol=1e-12)
    X = torch.from_numpy(data.X.toarray() if sp.issparse(data.X) else data.X)
    with torch.no_grad():
        outputs = in_units.fitted(params)(X)
    np.testing.assert_allclose(outputs, in_units.outputs(params, data.X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("size", "unit"), [(0.1, 0.1), (10.0, 1.0)])
def test_the_unit_is_that_of_the_largest_feature(data, size, unit):
    model, _ = both((5,))
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    X = np.column_stack([size * (X[:, 0] - X[:, 0].mean()) / X[:, 0].std(), np.full(len(X), 7.0), np.zeros(len(X))])
    found = model.enlarging(replace(data, X=sp.csr_array(X) if sp.issparse(data.X) else X))
    assert found.unit == pytest.approx(unit)


@each_chunk
@each_heads
@each_depth
@each_activation
def test_scores_and_pullback_are_those_of_torch(data, layers, activation, n_outputs, chunk_size):
    model, plain = both(layers, activation, n_outputs, chunk_size=chunk_size)
    params = draw(model)
    (scores, pullback), (expected, pull) = model.forward(params, data), plain.forward(params, data)
    assert not scores.requires_grad
    assert scores.dtype == torch.float64
    assert scores.std() > 0.01
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)
    for cotangent in cotangents(data):  # a pullback may be asked more than once
        np.testing.assert_allclose(pullback(cotangent), pull(cotangent), atol=1e-12)
    codes = data.codes if n_outputs > 1 else None
    np.testing.assert_allclose(model.scores(params, data.X, codes), expected, rtol=1e-12, atol=1e-12)


@each_heads
@each_depth
@each_activation
def test_pullback_against_finite_differences(data, layers, activation, n_outputs):
    model, _ = both(layers, activation, n_outputs)
    params, (cotangent,) = draw(model), cotangents(data, 1)
    _, pullback = model.forward(params, data)
    numeric = approx_fprime(params, lambda w: float(cotangent @ model.forward(w, data)[0]), 1e-7)
    np.testing.assert_allclose(pullback(cotangent), numeric, atol=1e-5)


@each_chunk
@each_heads
def test_nothing_is_changed_and_a_pullback_may_be_asked_again(data, n_outputs, chunk_size):
    model, _ = both((6, 4), "silu", n_outputs, chunk_size=chunk_size)
    params, (one, other) = draw(model), cotangents(data)
    before = params.copy(), one.clone()
    scores, pullback = model.forward(params, data)
    kept = scores.clone()
    first = pullback(one)
    assert np.abs(pullback(other) - first).max() > 0.1
    np.testing.assert_array_equal(pullback(one), first)
    np.testing.assert_allclose(pullback(one + 2 * other), first + 2 * pullback(other), atol=1e-12)
    np.testing.assert_array_equal(params, before[0])
    assert torch.equal(one, before[1])
    assert torch.equal(scores, kept)


@each_depth
@each_activation
def test_at_the_start(data, layers, activation):
    """All weights of the last layer are zero, and so are half the units of a rectifier for rows of zeros."""
    model, plain = both(layers, activation)
    params = model.init(np.random.default_rng(0))
    np.testing.assert_array_equal(params, plain.init(np.random.default_rng(0)))
    at_zero = replace(data, X=0 * data.X)
    params[model.last_layer(params, data).coef] = 1.0
    for rows in (data, at_zero):
        (scores, pullback), (expected, pull) = model.forward(params, rows), plain.forward(params, rows)
        np.testing.assert_allclose(scores, expected, atol=1e-12)
        np.testing.assert_allclose(pullback(cotangents(data)[0]), pull(cotangents(data)[0]), atol=1e-12)


def test_the_corner_of_the_rectifier_has_the_slope_of_torch(make_data):
    data = make_data(counts=(4, 3))
    model, plain = both((5,), "relu")
    params = draw(model)
    params[:20] = 0.0  # weights and biases of the hidden layer
    ones = torch.ones(data.n_samples, dtype=torch.float64)
    gradient = model.forward(params, data)[1](ones)
    np.testing.assert_allclose(gradient, plain.forward(params, data)[1](ones), atol=1e-12)
    assert not gradient[:20].any()


@each_activation
def test_large_sums_are_finite(make_data, activation):
    data = make_data(counts=(9, 5))
    model, plain = both((5,), activation)
    params = 1e4 * draw(model)
    (scores, pullback), (expected, pull) = model.forward(params, data), plain.forward(params, data)
    assert torch.isfinite(scores).all()
    np.testing.assert_allclose(scores, expected, rtol=1e-9)
    ones = torch.ones_like(scores)
    np.testing.assert_allclose(pullback(ones), pull(ones), rtol=1e-9, atol=1e-6)


@each_heads
@pytest.mark.parametrize("features", [np.float32, np.float64])
def test_float32_inside_float64_outside(data, n_outputs, features):
    data = replace(data, X=data.X.astype(features))
    model, _ = both((6, 4), n_outputs=n_outputs, dtype=torch.float32)
    exact, _ = both((6, 4), n_outputs=n_outputs)
    params, (cotangent,) = draw(model), cotangents(data, 1)
    (rough, pull_rough), (scores, pullback) = model.forward(params, data), exact.forward(params, data)
    assert rough.dtype == torch.float64
    assert pull_rough(cotangent).dtype == np.float64
    np.testing.assert_allclose(rough, scores, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pull_rough(cotangent), pullback(cotangent), rtol=1e-3, atol=1e-4)
    assert (rough != scores).any()
    new = model.scores(params, data.X, data.codes)
    assert new.dtype == np.float64
    np.testing.assert_allclose(new, scores, rtol=1e-4, atol=1e-5)


@each_heads
def test_mini_batches(data, n_outputs):
    model, plain = both((5,), n_outputs=n_outputs)
    params = draw(model)
    for batch in data.batches(np.array([[0, 3, 3, 10, 20], [1, 2, 9, 14, 15]])):
        (scores, pullback), (expected, pull) = model.forward(params, batch), plain.forward(params, batch)
        np.testing.assert_allclose(scores, expected, atol=1e-12)
        np.testing.assert_allclose(pullback(expected), pull(expected), atol=1e-12)


@each_heads
@each_depth
def test_mini_batches_at_once_are_those_one_by_one(data, layers, n_outputs):
    model, _ = both(layers, "silu", n_outputs)
    params, parts = draw(model), [data.at(np.array(rows)) for rows in ([0, 3, 3, 10, 20], [1, 2, 9], [14])]
    for part, (scores, pullback) in zip(parts, model.forward_each(params, parts), strict=True):
        expected, pull = model.forward(params, part)
        np.testing.assert_allclose(scores, expected, atol=1e-12)
        for cotangent in cotangents(part):
            np.testing.assert_allclose(pullback(cotangent), pull(cotangent), atol=1e-12)


@each_chunk
def test_csr_rows_are_not_densified(make_data, monkeypatch, chunk_size):
    data = make_data(counts=(9, 5, 7), sparse=True)
    dense = replace(data, X=data.X.toarray())
    model, _ = both((5,), chunk_size=chunk_size)
    params, (cotangent,) = draw(model), cotangents(data, 1)
    expected, pull = model.forward(params, dense)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sp.csr_array, name, lambda self: pytest.fail("densified"))
    scores, pullback = model.forward(params, data)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    np.testing.assert_allclose(pullback(cotangent), pull(cotangent), atol=1e-12)
    np.testing.assert_allclose(model.scores(params, data.X), expected, atol=1e-12)


def test_no_rows(data):
    model, _ = both((5,))
    assert model.scores(draw(model), data.X[:0]).shape == (0,)


def test_what_users_get_is_the_network_of_torch(data):
    model, plain = both((6, 4), "softplus", 3)
    params = draw(model)
    assert model.layout == plain.layout
    module = model.attributes(params, 0.0, 1.0)["module_"]
    X = torch.from_numpy(data.X.toarray() if sp.issparse(data.X) else data.X)
    outputs = module(X).detach().numpy()[np.arange(data.n_samples), data.codes]
    np.testing.assert_allclose(model.forward(params, data)[0], outputs, atol=1e-12)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@each_heads
@each_activation
def test_the_same_on_cuda(data, activation, n_outputs):
    model, plain = both((6, 4), activation, n_outputs)
    params, (cotangent,) = draw(model), cotangents(data, 1)
    scores, pullback = model.forward(params, data)
    for other in (replace(model, device="cuda"), replace(plain, device="cuda"), replace(model, device="auto")):
        assert other._device.type == "cuda"
        moved, pull = other.forward(params, data)
        assert moved.device.type == "cpu"
        np.testing.assert_allclose(moved, scores, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(pull(cotangent), pullback(cotangent), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(other.scores(params, data.X, data.codes), scores, rtol=1e-9, atol=1e-9)
        placed = other.placed(data)
        assert sp.issparse(data.X) or placed.X.device.type == "cuda"
        for rows, own in ((placed, data), (placed.at(np.arange(0, 20, 2)), data.at(np.arange(0, 20, 2)))):
            moved, pull = other.forward(params, rows)
            same, pull_same = model.forward(params, own)
            np.testing.assert_allclose(moved, same, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(pull(same), pull_same(same), rtol=1e-9, atol=1e-9)
        if n_outputs == 1:
            layer, expected = other.last_layer(params, data), model.last_layer(params, data)
            np.testing.assert_allclose(layer.features, expected.features, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(layer.entries, expected.entries)


# --- the last layer


class Twice(nn.Module):
    """Its last linear layer is applied two times."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.first, self.last = nn.Linear(n_features, 1), nn.Linear(1, n_outputs)

    def forward(self, x):
        return self.last(self.last(self.first(x)))


class Backwards(nn.Module):
    """The layer that is named last comes first."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.output, self.input = nn.Linear(4, n_outputs), nn.Linear(n_features, 4)

    def forward(self, x):
        return self.output(torch.tanh(self.input(x)))


class Product(nn.Module):
    """No linear layer."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n_features, n_outputs))

    def forward(self, x):
        return x @ self.weight


class Flat(nn.Module):
    """One score of shape (n_rows,), of a last layer without intercept."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.hidden, self.last = nn.Linear(n_features, 4), nn.Linear(4, n_outputs, bias=False)

    def forward(self, x):
        return self.last(torch.relu(self.hidden(x))).squeeze(1)


def frozen(*names):
    """A network of which these parameters are not trained."""
    net = mlp(3, 1, (4,))
    nn.init.ones_(net[2].weight)
    for name in names:
        net.get_parameter(name).requires_grad_(False)
    return net


def check_last_layer(model, data, atol=1e-12):
    """Scores are linear in the stated entries, wherever these are, and depend on no other in another way."""
    params = draw(model)
    layer = model.last_layer(params, data)
    assert layer.features.dtype == np.float64
    assert layer.features.shape == (data.n_samples, layer.coef.size)
    np.testing.assert_array_equal(layer.entries, [*layer.coef, *layer.intercept])
    assert np.unique(layer.entries).size == layer.entries.size
    for seed in (None, 1, 2):
        moved = params.copy()
        if seed is not None:
            moved[layer.entries] = 3 * np.random.default_rng(seed).normal(size=layer.entries.size)
        expected = layer.features @ moved[layer.coef] + moved[layer.intercept].sum()
        np.testing.assert_allclose(model.forward(moved, data)[0], expected, atol=atol)
    return layer


@each_chunk
@each_depth
def test_last_layer_of_a_perceptron(data, layers, chunk_size):
    for model in both(layers, "silu", chunk_size=chunk_size):
        layer = check_last_layer(model, data)
        assert layer.coef.size == [3, *layers][-1]
        assert layer.intercept.tolist() == [model.n_params - 1]
    if not layers:
        np.testing.assert_allclose(layer.features, data.X.toarray() if sp.issparse(data.X) else data.X)


def test_last_layer_in_float32(data):
    for model in both((6, 4), "silu", dtype=torch.float32):
        check_last_layer(model, data, atol=1e-4)


@pytest.mark.parametrize(
    ("module", "n_coefficients", "n_intercepts"),
    [(nn.Linear, 3, 1), (Flat, 4, 0), (frozen("0.weight", "0.bias"), 4, 1)],
    ids=["linear", "no intercept", "frozen hidden layer"],
)
def test_last_layer_of_other_modules(data, module, n_coefficients, n_intercepts):
    layer = check_last_layer(ModuleModel(module, 3, device="cpu"), data)
    assert (layer.coef.size, layer.intercept.size) == (n_coefficients, n_intercepts)


def test_last_layer_does_not_change_the_module(data):
    model, _ = both((5,))
    params = draw(model)
    model.last_layer(params, data)
    assert not any(layer._forward_hooks for layer in model._module.modules())


@pytest.mark.parametrize(
    "module",
    [
        lambda n, k: nn.Sequential(nn.Linear(n, 4), nn.Tanh(), nn.Linear(4, k), nn.Tanh()),
        lambda n, k: nn.Sequential(nn.Linear(n, k), nn.Softplus()),
        lambda n, k: nn.Sequential(nn.Linear(n, 4), nn.Flatten(), nn.AdaptiveAvgPool1d(1)),
        Twice,
        Backwards,
        Product,
        frozen("2.weight"),
        frozen("2.bias"),
        frozen("2.weight", "2.bias"),
    ],
    ids=["tanh", "softplus", "mean", "twice", "backwards", "product", "coefficients", "intercept", "all"],
)
def test_modules_without_a_last_layer_of_their_own(data, module):
    model = ModuleModel(module, 3, device="cpu")
    params = draw(model)
    assert model.forward(params, data)[0].std() > 0
    assert model.last_layer(params, data) is None


@each_depth
def test_several_heads_have_no_last_layer_by_itself(data, layers):
    for model in both(layers, n_outputs=3):
        assert model.last_layer(draw(model), data) is None
