"""MarginModel: the scores of the own class minus those of the others, dense and sparse, of all rows and of some."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fairconstrained.data import FairData
from fairconstrained.models import LinearModel, ModuleModel, Perceptron, mlp
from fairconstrained.models.margins import MarginData, MarginModel
from fairconstrained.models.pairs import PairModel
from fairconstrained.sampling import sampler_of

N_CLASSES, N_FEATURES = 4, 3
BASES = {
    "linear": lambda: LinearModel(N_FEATURES, N_CLASSES, True, 0.1),
    "no intercept": lambda: LinearModel(N_FEATURES, N_CLASSES, False),
    "module": lambda: ModuleModel(mlp, N_FEATURES, N_CLASSES, device="cpu"),
    "chunks": lambda: ModuleModel(mlp, N_FEATURES, N_CLASSES, device="cpu", chunk_size=7),
    "perceptron": lambda: Perceptron(mlp, N_FEATURES, N_CLASSES, device="cpu"),
    "perceptron, chunks": lambda: Perceptron(mlp, N_FEATURES, N_CLASSES, device="cpu", chunk_size=7),
}


def draw(n=40, sparse=False, seed=0):
    """Items, and which class each row has, in the order of the items."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_FEATURES))
    X = sp.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)) if sparse else X
    codes = np.append(np.arange(N_CLASSES), rng.integers(0, N_CLASSES, n - N_CLASSES))
    items = FairData.from_arrays(X, codes.astype(float), np.zeros(n, dtype=int), (None,), rng.uniform(0.5, 2, n))
    return items, MarginData.of(items, tuple("abcd"))


def params_of(base, seed=1):
    return np.random.default_rng(seed).normal(size=base.n_params)


def margins_by_hand(outputs, own):
    return np.array(
        [s[k] - s[rival] for s, k in zip(outputs, own, strict=True) for rival in range(s.size) if rival != k]
    )


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", BASES)
def test_margins_and_their_gradients(kind, sparse):
    items, data = draw(sparse=sparse)
    base = BASES[kind]()
    model, params = MarginModel(base, items), params_of(base)
    own = items.y.numpy().astype(int)
    outputs = base.outputs(params, items.X)
    assert outputs.shape == (40, N_CLASSES)
    margins, pullback = model.forward(params, data)
    np.testing.assert_allclose(margins.numpy(), margins_by_hand(outputs, own), atol=1e-12)
    some = data.at(np.r_[3:9, 30:33])  # three items
    few, few_pullback = model.forward(params, some)
    np.testing.assert_allclose(few.numpy(), margins.numpy()[np.r_[3:9, 30:33]], atol=1e-12)
    rng = np.random.default_rng(2)
    for rows, pull in ((data, pullback), (some, few_pullback)):
        cotangent, step = rng.normal(size=rows.n_samples), 1e-6 * rng.normal(size=params.size)
        change = cotangent @ (model.forward(params + step, rows)[0] - model.forward(params - step, rows)[0]).numpy()
        assert change == pytest.approx(2 * pull(torch.from_numpy(cotangent)) @ step, rel=1e-4)


@pytest.mark.parametrize("kind", BASES)
def test_outputs_are_those_that_groups_have_one_of(kind):
    items, _ = draw()
    base, codes = BASES[kind](), items.y.numpy().astype(int)
    params = params_of(base)
    outputs = base.outputs(params, items.X)
    np.testing.assert_allclose(base.forward_outputs(params, items)[0].numpy(), outputs, atol=1e-12)
    np.testing.assert_allclose(outputs[np.arange(40), codes], base.scores(params, items.X, codes), atol=1e-12)


def test_rows_are_ordered_by_class_and_item():
    items, data = draw()
    own = items.y.numpy().astype(int)
    assert data.n_samples == 40 * 3
    assert data.labels == tuple("abcd")
    np.testing.assert_array_equal(data.codes, np.repeat(own, 3))
    np.testing.assert_array_equal(data.clusters, np.repeat(np.arange(40), 3))
    rivals = data.X[:, 1].reshape(-1, 3)
    for k, row in zip(own, rivals, strict=True):
        assert row.tolist() == [c for c in range(N_CLASSES) if c != k]
    np.testing.assert_allclose(data.weights.reshape(-1, 3).sum(dim=1), items.weights)


def test_all_copies_share_the_scales_of_the_features():
    items, data = draw()
    base = LinearModel(N_FEATURES, N_CLASSES)
    coordinates = MarginModel(base, items).coordinates(data)
    u, weights = np.random.default_rng(0).normal(size=base.n_params), items.weights.numpy()
    centre = weights @ items.X
    scale = np.sqrt(weights @ (items.X - centre) ** 2)
    table = u.reshape(N_CLASSES, -1)
    expected = (items.X - centre) / scale @ table[:, :-1].T + table[:, -1]
    np.testing.assert_allclose(base.outputs(coordinates.to_params(u), items.X), expected, atol=1e-12)
    np.testing.assert_allclose(coordinates.from_params(coordinates.to_params(u)), u)


def test_some_rows_are_all_margins_of_some_items():
    _, data = draw(200)
    rng = np.random.default_rng(0)
    shares = np.bincount(data.codes, data.weights.numpy())
    mean = np.zeros(data.n_samples)
    for _ in range(500):
        thinned = data.thinned(rng, 60)
        assert 30 < thinned.n_samples < 90
        np.testing.assert_array_equal(
            thinned.clusters.reshape(-1, 3), np.repeat(thinned.clusters[::3], 3).reshape(-1, 3)
        )
        np.testing.assert_array_equal(thinned.X.reshape(-1, 3, 2)[:, :, 0].T, [thinned.clusters[::3]] * 3)
        np.testing.assert_allclose(np.bincount(thinned.codes, thinned.weights.numpy()), shares)
        np.add.at(mean, thinned.order, thinned.weights.numpy() / 500)
    # every row as often as its weight says
    np.testing.assert_allclose(mean[data.order.argsort()], data.weights.numpy()[data.order.argsort()], rtol=0.5)
    for batch in sampler_of(data, 30).batches(rng, 5):
        assert batch.n_samples == 30
        assert all(np.bincount(batch.clusters)[batch.clusters] == 3)


@pytest.mark.parametrize("kind", BASES)
def test_models_of_items_use_threads_where_those_of_the_items_do(kind):
    items, _ = draw()
    base = BASES[kind]()
    assert base.uses_threads == (not base.is_linear)
    for model in (MarginModel(base, items), PairModel(base, items)):
        assert model.uses_threads == base.uses_threads
