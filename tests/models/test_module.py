"""ModuleModel: scores and gradients against plain autograd, and what the solver relies on."""

import copy
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import approx_fprime
from torch import nn

from fairconstrained.models import LinearModel
from fairconstrained.models.layers import ACTIVATIONS, mlp
from fairconstrained.models.module import ModuleModel, make_module
from fairconstrained.sampling import Sampler

small = partial(mlp, hidden_layer_sizes=(5, 4), activation="tanh")
MODELS = {"shared": ModuleModel(small, 3, alpha=0.3), "heads": ModuleModel(small, 3, 3, alpha=0.3)}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


class Convolution(nn.Module):
    """With normalisation, dropout, a buffer and a parameter that is frozen; one output of shape (n_rows,)."""

    def __init__(self, n_features, n_outputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(1, 4, 2), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5))
        self.last = nn.Linear(4 * (n_features - 1), 1)
        self.frozen = nn.Parameter(torch.tensor([0.7]), requires_grad=False)
        self.register_buffer("scale", torch.tensor(2.0))

    def forward(self, x):
        return self.scale * self.frozen * self.last(self.layers(x[:, None]).flatten(1)).squeeze(1)


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "csr"])
def data(request, make_data):
    return make_data(counts=(9, 5, 7), sparse=request.param)


def draw(model, seed=0):
    return np.random.default_rng(seed).normal(size=model.n_params)


def stacked(data):
    return torch.from_numpy(data.X.toarray() if sp.issparse(data.X) else data.X)


def plain(model, params, data):
    """Scores and parameters of a network of its own, with a graph."""
    net = model.fitted(params)
    outputs = net(stacked(data)).reshape(data.n_samples, -1)
    columns = torch.from_numpy(data.codes) if model.n_outputs > 1 else torch.zeros(data.n_samples, dtype=torch.int64)
    return outputs[torch.arange(data.n_samples), columns], [p for p in net.parameters() if p.requires_grad]


# --- scores and gradients


@each_model
@pytest.mark.parametrize("chunk_size", [1, 4, 8192], ids=["row by row", "chunks across groups", "one chunk"])
def test_scores_and_pullback_are_those_of_plain_autograd(model, data, chunk_size):
    model = ModuleModel(model.module, 3, model.n_outputs, chunk_size=chunk_size)
    params = draw(model)
    scores, pullback = model.forward(params, data)
    expected, parameters = plain(model, params, data)
    assert not scores.requires_grad
    np.testing.assert_allclose(scores.numpy(), expected.detach().numpy(), rtol=1e-12)
    for seed in (1, 2):  # a pullback may be asked more than once
        cotangent = torch.from_numpy(np.random.default_rng(seed).normal(size=data.n_samples))
        gradient = torch.autograd.grad(expected, parameters, cotangent, retain_graph=True)
        np.testing.assert_allclose(
            pullback(cotangent), torch.cat([g.reshape(-1) for g in gradient]).numpy(), atol=1e-12
        )


@each_model
def test_pullback_against_finite_differences(model, data):
    params = draw(model)
    cotangent = np.random.default_rng(1).normal(size=data.n_samples)
    _, pullback = model.forward(params, data)
    numeric = approx_fprime(params, lambda w: cotangent @ model.forward(w, data)[0].numpy(), 1e-7)
    np.testing.assert_allclose(pullback(torch.from_numpy(cotangent)), numeric, atol=1e-5)


@each_model
def test_dense_and_csr_agree(model, make_data):
    csr = make_data(counts=(9, 5, 7), sparse=True)
    dense = replace(csr, X=csr.X.toarray())
    params, cotangent = draw(model), torch.ones(csr.n_samples, dtype=torch.float64)
    for chunk_size in (4, 100):
        chunked = ModuleModel(model.module, 3, model.n_outputs, chunk_size=chunk_size)
        (one, pull_one), (other, pull_other) = chunked.forward(params, csr), chunked.forward(params, dense)
        np.testing.assert_array_equal(one.numpy(), other.numpy())
        np.testing.assert_array_equal(pull_one(cotangent), pull_other(cotangent))


def test_csr_is_never_densified_as_a_whole(make_data, monkeypatch):
    data = make_data(counts=(9, 5, 7), sparse=True)
    seen = []
    toarray = sp.csr_array.toarray
    monkeypatch.setattr(sp.csr_array, "toarray", lambda self: seen.append(self.shape[0]) or toarray(self))
    model = ModuleModel(small, 3, chunk_size=4)
    model.forward(draw(model), data)[1](torch.ones(data.n_samples, dtype=torch.float64))
    assert max(seen) <= 4
    assert sum(seen) == 2 * data.n_samples  # once for the scores, once for the gradient


def test_without_hidden_layers_it_is_the_linear_model(data):
    """Parameters: the matrix of all heads, then their biases."""
    for n_copies in (1, 3):
        linear = LinearModel(3, n_copies, alpha=0.3)
        network = ModuleModel(partial(mlp, hidden_layer_sizes=()), 3, n_copies, alpha=0.3)
        params = draw(linear)
        coefficients, intercepts = linear.unpack(params)
        same = np.concatenate([coefficients.ravel(), intercepts])
        np.testing.assert_allclose(network.forward(same, data)[0].numpy(), linear.forward(params, data)[0].numpy())
        assert network.penalty(same)[0] == pytest.approx(linear.penalty(params)[0])


def test_mini_batches(data):
    model = MODELS["heads"]
    params, batch = draw(model), next(Sampler.of(data, 6).batches(np.random.default_rng(0), 1))
    expected, _ = plain(model, params, batch)
    np.testing.assert_allclose(model.forward(params, batch)[0].numpy(), expected.detach().numpy())


def test_float32_inside_float64_outside(data):
    params = draw(MODELS["shared"])
    cotangent = torch.ones(data.n_samples, dtype=torch.float64)
    exact, pull_exact = MODELS["shared"].forward(params, data)
    rough, pull_rough = ModuleModel(small, 3, dtype=torch.float32).forward(params, data)
    assert rough.dtype == torch.float64
    assert pull_rough(cotangent).dtype == np.float64
    np.testing.assert_allclose(rough.numpy(), exact.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(pull_rough(cotangent), pull_exact(cotangent), rtol=1e-3, atol=1e-4)
    assert (rough != exact).any()


@each_model
def test_scores_of_new_rows(model, data):
    params = draw(model)
    expected = model.forward(params, data)[0].numpy()
    chunked = ModuleModel(model.module, 3, model.n_outputs, chunk_size=4)
    codes = data.codes if model.n_outputs > 1 else None
    np.testing.assert_allclose(chunked.scores(params, data.X, codes), expected, rtol=1e-12)
    assert chunked.scores(params, data.X[:0], data.codes[:0]).shape == (0,)


def test_read_only_and_transposed_features(make_data):
    raw = make_data(counts=(9, 5))
    X = np.asfortranarray(raw.X)
    X.setflags(write=False)
    data = replace(raw, X=X)
    params = draw(MODELS["shared"])
    expected = MODELS["shared"].forward(params, raw)[0].numpy()
    np.testing.assert_array_equal(MODELS["shared"].forward(params, data)[0].numpy(), expected)


# --- what stays as it is


def test_frozen_parameters_and_buffers_stay(make_data):
    data = make_data(counts=(9, 5))
    model = ModuleModel(Convolution, 3)
    n_trained = 8 + 4 + 4 + 4 + 8 + 1  # convolution, normalisation, last layer; not the frozen one
    assert model.n_params == n_trained + 4 + 4  # and the running statistics
    params = draw(model)
    params[n_trained:] = [0.1, 0.2, 0.3, 0.4, 0.5, 1.0, 1.5, 2.0]
    scores, pullback = model.forward(params, data)
    expected, parameters = plain(model, params, data)
    np.testing.assert_allclose(scores.numpy(), expected.detach().numpy(), rtol=1e-12)
    gradient = torch.cat([g.reshape(-1) for g in torch.autograd.grad(expected.sum(), parameters)]).numpy()
    np.testing.assert_allclose(pullback(torch.ones_like(scores)), np.append(gradient, np.zeros(8)), atol=1e-12)
    np.testing.assert_array_equal(model.forward(params, data)[0].numpy(), scores.numpy())  # no dropout
    assert model.after_step(params) is params
    state = model.fitted(params).state_dict()
    assert state["frozen"] == torch.tensor([0.7]).double()
    assert state["scale"] == 2
    assert state["layers.1.running_mean"].tolist() == [0.1, 0.2, 0.3, 0.4]
    assert state["layers.1.running_var"].tolist() == [0.5, 1.0, 1.5, 2.0]
    assert model.shift_directions(data).shape == (0, model.n_params)


# --- training mode


def batch_of(data):
    return next(Sampler.of(data, 8).batches(np.random.default_rng(0), n_batches=1))


def test_mini_batches_run_in_training_mode(make_data):
    data = make_data(counts=(9, 5))
    model = ModuleModel(Convolution, 3)
    start, batch = model.init(np.random.default_rng(0)), batch_of(data)
    state = torch.get_rng_state()
    scores, pullback = model.forward(start, batch)
    again, _ = model.forward(start, batch)
    assert torch.equal(state, torch.get_rng_state())
    np.testing.assert_array_equal(scores.numpy(), again.numpy())  # the same is dropped
    evaluated = model.scores(start, batch.X)
    assert abs(scores.numpy() - evaluated).max() > 1e-3
    moved = model.after_step(start)
    np.testing.assert_array_equal(moved[:-8], start[:-8])
    net = model.fitted(start)
    with torch.no_grad():
        inner = net.layers[0](torch.from_numpy(batch.X)[:, None])
    momentum = 0.1  # of torch
    means = momentum * inner.mean(dim=(0, 2))
    variances = (1 - momentum) + momentum * inner.transpose(0, 1).reshape(4, -1).var(dim=1)
    np.testing.assert_allclose(moved[-8:], torch.cat([means, variances]).numpy(), rtol=1e-12)
    assert model.after_step(moved) is moved
    gradient = pullback(torch.ones_like(scores))
    assert (gradient[-8:] == 0).all()
    for k in range(0, start.size - 8, 5):
        step = np.zeros(start.size)
        step[k] = 1e-6
        ends = [model.forward(start + sign * step, batch)[0].sum().item() for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(gradient[k], abs=1e-6)


class Counts(nn.Module):
    """A layer with a buffer that training changes, and that nothing else knows of."""

    def __init__(self):
        super().__init__()
        self.register_buffer("factor", torch.ones(1))

    def forward(self, x):
        if self.training:
            self.factor.add_(1.0)
        return x * self.factor


@pytest.mark.parametrize("layer", [nn.InstanceNorm1d(1, track_running_stats=True), Counts()])
def test_training_leaves_nothing_in_the_module(make_data, layer):
    batch = batch_of(make_data(counts=(9, 5)))
    net = nn.Sequential(nn.Unflatten(1, (1, 3)), layer, nn.Flatten(), nn.Dropout(0.1), nn.Linear(3, 1))
    model = ModuleModel(net, 3)
    params = model.init(np.random.default_rng(0))
    before = model.scores(params, batch.X)
    model.forward(params, batch)
    np.testing.assert_array_equal(model.scores(params, batch.X), before)
    moved = model.after_step(params)
    with torch.no_grad():
        scores = model.fitted(moved)(torch.from_numpy(batch.X)).numpy().ravel()
    np.testing.assert_allclose(scores, model.scores(moved, batch.X), rtol=1e-12)


def test_the_gradient_of_chunks_drops_the_same(make_data):
    batch = batch_of(make_data(counts=(9, 5)))
    net = nn.Sequential(nn.Linear(3, 20), nn.Dropout(0.5), nn.Linear(20, 1))
    model = ModuleModel(net, 3, chunk_size=3)
    params = model.init(np.random.default_rng(0))
    scores, pullback = model.forward(params, batch)
    gradient = pullback(scores)
    for k in (0, 70, 100):
        step = np.zeros(params.size)
        step[k] = 1e-6
        ends = [(model.forward(params + sign * step, batch)[0] ** 2).sum().item() / 2 for sign in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(gradient[k], abs=1e-6)


def test_modules_without_noise_are_the_same_on_mini_batches(make_data):
    batch = batch_of(make_data(counts=(9, 5)))
    for net in (nn.Linear(3, 1), nn.Sequential(nn.LayerNorm(3), nn.Dropout(0.0), nn.Linear(3, 1))):
        model = ModuleModel(net, 3)
        params = model.init(np.random.default_rng(0))
        np.testing.assert_array_equal(model.forward(params, batch)[0].numpy(), model.scores(params, batch.X))
    attention = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.3, batch_first=True)
    net = nn.Sequential(nn.Unflatten(1, (3, 1)), nn.Linear(1, 4), attention, nn.Flatten(), nn.Linear(12, 1))
    model = ModuleModel(net, 3)
    params = model.init(np.random.default_rng(0))
    assert abs(model.forward(params, batch)[0].numpy() - model.scores(params, batch.X)).max() > 1e-3


def test_rows_of_any_shape(make_data):
    data = make_data(counts=(9, 5), n_features=8)
    pictures = replace(data, X=data.X.reshape(-1, 2, 2, 2))
    assert (pictures.row_shape, pictures.n_features, data.row_shape) == ((2, 2, 2), 8, 8)
    net = nn.Sequential(nn.Conv2d(2, 3, 2), nn.Flatten(), nn.Linear(3, 1))
    model = ModuleModel(net, (2, 2, 2))
    params = draw(model)
    scores, pullback = model.forward(params, pictures)
    expected = copy.deepcopy(net).double()
    nn.utils.vector_to_parameters(torch.from_numpy(params), expected.parameters())
    np.testing.assert_allclose(scores.numpy(), expected(torch.from_numpy(pictures.X)).detach().numpy()[:, 0])
    assert pullback(scores).shape == params.shape
    assert model.row_features(pictures).shape == (14, 8)
    with pytest.raises(ValueError, match=r"shape \(n_rows, 1, 2, 2\) to scores"):
        ModuleModel(net, (1, 2, 2))


def test_an_instance_is_copied_and_starts_where_it_is(make_data):
    net = nn.Linear(3, 1)
    before = copy.deepcopy(net.state_dict())
    model = ModuleModel(net, 3)
    one, other = (model.init(np.random.default_rng(seed)) for seed in (0, 1))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, torch.cat([net.weight[0], net.bias]).detach().numpy())
    model.forward(one + 1, make_data())
    assert net.training
    assert net.weight.dtype == torch.float32
    for name, value in net.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


def test_init_is_reproducible_and_leaves_the_global_generator_alone():
    model = ModuleModel(nn.Linear, 3)
    before = torch.random.get_rng_state()
    draws = [model.init(np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).all()
    torch.manual_seed(5)
    np.testing.assert_array_equal(model.init(np.random.default_rng(0)), draws[0])
    torch.random.set_rng_state(before)


@each_model
def test_mlp_starts_with_equal_scores_and_different_units(model, data):
    params = model.init(np.random.default_rng(0))
    np.testing.assert_array_equal(model.forward(params, data)[0].numpy(), 0)
    first = model.fitted(params)[0].weight
    assert (first[0] != first[1]).all()


@each_model
def test_copies_and_pickles_give_the_same_scores(model, data):
    params = draw(model)
    expected = model.forward(params, data)[0].numpy()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.layout == model.layout
        np.testing.assert_array_equal(other.forward(params, data)[0].numpy(), expected)


def test_layout_tells_models_apart():
    layouts = [
        ModuleModel(partial(mlp, hidden_layer_sizes=sizes), 3, outputs).layout
        for sizes in [(4,), (5,), (4, 4)]
        for outputs in (1, 2)
    ]
    assert len(set(layouts)) == len(layouts)
    assert ModuleModel(partial(mlp, hidden_layer_sizes=(4,)), 3).layout == layouts[0]


# --- penalty and shifts


@each_model
def test_penalty_is_on_matrices_only(model):
    params = draw(model)
    value, gradient = model.penalty(params)
    net = model.fitted(params)
    assert value == pytest.approx(
        0.3 / 2 * sum(float((p.detach() ** 2).sum()) for p in net.parameters() if p.ndim == 2)
    )
    np.testing.assert_allclose(gradient, approx_fprime(params, lambda w: model.penalty(w)[0], 1e-7), atol=1e-6)
    assert (gradient == 0).sum() == sum(p.numel() for p in net.parameters() if p.ndim == 1)


def test_the_bias_shifts_all_scores_alike(data):
    model = MODELS["shared"]
    params, directions = draw(model), model.shift_directions(data)
    assert directions.shape == (1, model.n_params)
    moved = model.forward(params + 2 * directions[0], data)[0] - model.forward(params, data)[0]
    np.testing.assert_allclose(moved.numpy(), 2.0)


def test_the_biases_of_heads_move_the_groups_apart(data):
    model = MODELS["heads"]
    params, directions = draw(model), model.shift_directions(data)
    assert directions.shape == (3, model.n_params)
    for group, direction in enumerate(directions):
        moved = model.forward(params + direction, data)[0] - model.forward(params, data)[0]
        np.testing.assert_allclose(moved.numpy(), data.codes == group, atol=1e-12)


# --- making modules


@pytest.mark.parametrize("activation", sorted(ACTIVATIONS))
def test_mlp_layers(activation):
    net = mlp(7, 2, (5, 4), activation)
    assert [p.shape for p in net.parameters()] == [(5, 7), (5,), (4, 5), (4,), (2, 4), (2,)]
    assert sum(type(layer) is ACTIVATIONS[activation] for layer in net) == 2


def test_make_module_calls_and_copies():
    assert make_module(mlp, 3, 2)[0].in_features == 3
    net = nn.Linear(3, 1)
    made = make_module(net, 3)
    assert made is not net
    assert torch.equal(made.weight, net.weight)
    assert make_module(lambda n_features, n_outputs: net, 3) is not net


@pytest.mark.parametrize(
    ("module", "n_outputs", "error", "message"),
    [
        (nn.Linear(3, 2), 1, ValueError, r"shape \(n_rows, 1\), but for 2 rows it returned shape \(2, 2\)"),
        (nn.Linear(3, 1), 2, ValueError, r"shape \(n_rows, 2\), but for 2 rows it returned shape \(2, 1\)"),
        (nn.Flatten(0), 1, ValueError, r"returned shape \(6,\)"),
        (nn.LSTM(3, 1), 1, ValueError, "it returned \\("),
        (
            nn.Linear(4, 1),
            1,
            ValueError,
            "for 2 rows of 3 features its forward raised RuntimeError",
        ),
        (lambda n_features, n_outputs: "net", 1, TypeError, r"takes \(n_features, n_outputs\).*returned 'net'"),
    ],
)
def test_modules_that_do_not_fit(module, n_outputs, error, message):
    with pytest.raises(error, match=message):
        make_module(module, 3, n_outputs)


def test_nothing_to_train():
    with pytest.raises(ValueError, match="nothing to train"):
        ModuleModel(nn.Linear(3, 1).requires_grad_(False), 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"activation": "step"}, r"one of \['logistic', 'relu', 'silu', 'softplus', 'tanh'\], got 'step'"),
        ({"hidden_layer_sizes": (4, 0)}, r"positive integers.*got \(4, 0\)"),
    ],
)
def test_mlp_says_what_it_does_not_know(options, message):
    with pytest.raises(ValueError, match=message):
        mlp(3, **options)


PARTS = {
    "mini-batch": lambda data, rng: next(Sampler.of(data, 12).batches(rng, 1)),
    "thinned": lambda data, rng: data.thinned(rng, 12),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_features_may_be_a_tensor(make_data, part):
    """As where a model has placed them on its device: mini-batches are gathered there."""
    data = make_data(counts=(9, 5, 7))
    placed = replace(data, X=torch.from_numpy(data.X))
    model = ModuleModel(partial(mlp, hidden_layer_sizes=(4,)), 3, chunk_size=4)
    params = draw(model)
    batches = [part(own, np.random.default_rng(0)) for own in (data, placed)]
    for one, other in ((data, placed), batches):
        assert isinstance(other.X, torch.Tensor)
        (scores, pullback), (expected, reference) = (model.forward(params, rows) for rows in (other, one))
        np.testing.assert_array_equal(scores.numpy(), expected.numpy())
        np.testing.assert_array_equal(pullback(expected), reference(expected))


def test_placed_data_stay_as_they_are_on_the_cpu(make_data):
    data = make_data(counts=(9, 5))
    assert replace(MODELS["shared"], device="cpu").placed(data) is data
