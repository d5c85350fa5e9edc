"""LinearModel: scores, their pull-back, the penalty, and the directions that shift scores."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.optimize import approx_fprime

from fairconstrained.models import LinearModel

MODELS = {
    "shared": LinearModel(3, alpha=0.3),
    "shared, no intercept": LinearModel(3, fit_intercept=False, alpha=0.3),
    "by group": LinearModel(3, n_copies=3, alpha=0.3),
    "by group, no intercept": LinearModel(3, n_copies=3, fit_intercept=False, alpha=0.3),
}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "csr"])
def data(request, make_data):
    return make_data(counts=(9, 5, 7), sparse=request.param)


def design_matrix(model, data):
    """Scores as one explicit matrix times the parameters: for copies, the matrix of all interactions."""
    X = data.X.toarray() if sp.issparse(data.X) else data.X
    if model.fit_intercept:
        X = np.hstack([X, np.ones((data.n_samples, 1))])
    if model.n_copies == 1:
        return X
    return np.hstack([X * (data.codes == group)[:, None] for group in range(model.n_copies)])


@each_model
def test_scores_equal_the_explicit_product_matrix(model, data):
    params = np.random.default_rng(0).normal(size=model.n_params)
    scores, _ = model.forward(params, data)
    np.testing.assert_allclose(scores.numpy(), design_matrix(model, data) @ params)


@each_model
def test_pullback_is_the_transpose(model, data):
    rng = np.random.default_rng(1)
    cotangent = rng.normal(size=data.n_samples)
    _, pullback = model.forward(rng.normal(size=model.n_params), data)
    np.testing.assert_allclose(pullback(torch.from_numpy(cotangent)), design_matrix(model, data).T @ cotangent)


@each_model
def test_curvature_is_a_sum_of_outer_products(model, data):
    weights = np.random.default_rng(3).uniform(size=data.n_samples)
    matrix = design_matrix(model, data)
    np.testing.assert_allclose(model.curvature(data, weights), matrix.T @ (weights[:, None] * matrix), atol=1e-12)


@each_model
def test_scores_of_models_in_columns(model, data):
    every = np.random.default_rng(4).normal(size=(5, model.n_params))
    columns = [np.hstack(part) for part in zip(*(model.score_columns(params) for params in every), strict=True)]
    np.testing.assert_allclose(model.column_scores(columns, data), design_matrix(model, data) @ every.T)


@each_model
def test_sums_of_scores_have_their_gradients(model, data):
    rng = np.random.default_rng(5)
    params, weights = rng.normal(size=(model.n_params, 2)), rng.uniform(size=data.n_samples)
    matrix = design_matrix(model, data)

    def halved_squares(scores, weights):
        return weights @ scores**2 / 2, weights[:, None] * scores

    sums, gradients = model.sums(params, data, halved_squares, weights)
    np.testing.assert_allclose(sums, weights @ (matrix @ params) ** 2 / 2)
    np.testing.assert_allclose(gradients, matrix.T @ (weights[:, None] * (matrix @ params)), atol=1e-12)


@each_model
def test_pullback_is_adjoint_to_forward(model, data):
    rng = np.random.default_rng(2)
    params, direction = rng.normal(size=(2, model.n_params))
    cotangent = torch.from_numpy(rng.normal(size=data.n_samples))
    scores, pullback = model.forward(params, data)
    moved, _ = model.forward(params + direction, data)
    assert (cotangent @ (moved - scores)).item() == pytest.approx(pullback(cotangent) @ direction)


@each_model
def test_dense_and_csr_agree(model, make_data):
    csr = make_data(counts=(9, 5, 7), sparse=True)
    dense = replace(csr, X=csr.X.toarray())
    params = np.random.default_rng(3).normal(size=model.n_params)
    cotangent = torch.linspace(-1, 1, csr.n_samples, dtype=torch.float64)
    (scores, pullback), (expected, expected_pullback) = model.forward(params, csr), model.forward(params, dense)
    torch.testing.assert_close(scores, expected)
    np.testing.assert_allclose(pullback(cotangent), expected_pullback(cotangent))


def test_copies_span_the_interactions_of_the_paper(data):
    """<w, (1, x, g, g x)> with indicators of the groups, for any w, is a model with one copy per group."""
    X = design_matrix(LinearModel(3), data)
    indicators = (data.codes[:, None] == np.arange(3)).astype(float)
    product = np.hstack([X, *(X * indicators[:, [group]] for group in range(3))])
    w = np.random.default_rng(4).normal(size=product.shape[1]).reshape(4, 4)
    scores, _ = LinearModel(3, n_copies=3).forward((w[0] + w[1:]).ravel(), data)
    np.testing.assert_allclose(scores.numpy(), product @ w.ravel())


@each_model
def test_penalty_spares_the_intercepts(model):
    params = np.random.default_rng(5).normal(size=model.n_params)
    coefficients, intercepts = model.unpack(params)
    assert coefficients.shape == (model.n_copies, 3)
    assert intercepts.shape == (model.n_copies,)
    value, gradient = model.penalty(params)
    assert value == pytest.approx(0.15 * (coefficients**2).sum())
    np.testing.assert_allclose(gradient, approx_fprime(params, lambda p: model.penalty(p)[0]), atol=1e-6)


@each_model
def test_starts_at_equal_scores(model, data):
    scores, _ = model.forward(model.init(np.random.default_rng(0)), data)
    assert torch.equal(scores, torch.zeros_like(scores))


@each_model
def test_unpacked_parameters_are_the_model(model, data):
    params = np.random.default_rng(6).normal(size=model.n_params)
    coefficients, intercepts = model.unpack(params)
    scores, _ = model.forward(params, data)
    for group, (block, rows) in enumerate(zip(data.blocks, data.slices, strict=True)):
        copy = group if model.n_copies > 1 else 0
        np.testing.assert_allclose(scores[rows].numpy(), block @ coefficients[copy] + intercepts[copy])


# --- coordinates for solvers


@each_model
def test_coordinates_are_a_linear_bijection_and_its_transpose(model, data):
    rng = np.random.default_rng(7)
    coordinates = model.coordinates(data)
    params, gradient, u, v = rng.normal(size=(4, model.n_params))
    np.testing.assert_allclose(coordinates.to_params(coordinates.from_params(params)), params)
    np.testing.assert_allclose(coordinates.from_params(coordinates.to_params(u)), u)
    np.testing.assert_allclose(
        coordinates.to_params(2 * u - v), 2 * coordinates.to_params(u) - coordinates.to_params(v), atol=1e-12
    )
    assert coordinates.pull(gradient) @ u == pytest.approx(gradient @ coordinates.to_params(u))
    before = params.copy()
    coordinates.from_params(params)
    coordinates.to_params(params)
    coordinates.pull(params)
    np.testing.assert_array_equal(params, before)


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e8])  # times and years are far from zero
@pytest.mark.parametrize("n_copies", [1, 3])
def test_coordinates_standardise_the_features(make_data, n_copies, offset):
    """One unit of a coordinate moves the scores by one standard deviation and their mean not at all."""
    raw = make_data(counts=(9, 5, 7), weighted=True)
    scale = np.array([1e-3, 1.0, 1e4])
    data = replace(raw, X=(raw.X + offset) * scale)
    model = LinearModel(3, n_copies=n_copies)
    coordinates = model.coordinates(data)
    for group in range(n_copies):
        rows = data.slices[group] if n_copies > 1 else slice(None)
        weights = data.weights.numpy()[rows] / data.weights.numpy()[rows].sum()
        for feature in range(3):
            unit = np.zeros((n_copies, 4))
            unit[group, feature] = 1.0
            scores = model.forward(coordinates.to_params(unit.ravel()), data)[0].numpy()[rows]
            assert weights @ scores == pytest.approx(0.0, abs=1e-4)
            assert weights @ scores**2 == pytest.approx(1.0, rel=1e-4)


@pytest.mark.parametrize("unit", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_factors_make_features_of_one_size(make_data, fit_intercept, unit):
    """Along its own parameter alone, every feature moves the scores by a root mean square of one."""
    raw = make_data(counts=(9, 5, 7), weighted=True)
    data = replace(raw, X=(raw.X + 3) * unit * np.array([1e-3, 1.0, 1e4]))
    model = LinearModel(3, fit_intercept=fit_intercept)
    factors = model.coordinates(data).factors(model.n_params)
    sizes = np.sqrt(data.weights.numpy() @ data.X**2)
    np.testing.assert_allclose(factors, [*sizes, 1.0] if fit_intercept else sizes)


def test_coordinates_allow_for_the_penalty(make_data):
    """Loss and penalty together bend the objective about alike in all coordinates, however small the features are."""
    raw = make_data(counts=(40, 30))
    data = replace(raw, X=raw.X * np.array([1e-8, 1e-2, 1e3]))
    model = LinearModel(3, alpha=1e-3)
    coordinates = model.coordinates(data, penalised=True)
    units = np.stack([coordinates.to_params(unit) for unit in np.eye(4)])
    for unit in units[:3]:
        scores = model.forward(unit, data)[0].numpy()
        assert data.weights.numpy() @ scores**2 / 4 + 1e-3 * unit[:3] @ unit[:3] == pytest.approx(0.25)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_coordinates_of_constant_features_are_finite(data, fit_intercept):
    model = LinearModel(5, fit_intercept=fit_intercept)
    coordinates = model.coordinates(with_columns(data, (2, 2, 2), (0, 0, 0)))
    params = np.random.default_rng(8).normal(size=model.n_params)
    assert np.isfinite(coordinates.from_params(params)).all()
    np.testing.assert_allclose(coordinates.to_params(coordinates.from_params(params)), params)


@each_model
def test_coordinates_of_dense_and_csr_agree(model, make_data):
    csr = make_data(counts=(9, 5, 7), sparse=True, weighted=True)
    dense = replace(csr, X=csr.X.toarray())
    u = np.random.default_rng(9).normal(size=model.n_params)
    np.testing.assert_allclose(model.coordinates(csr).to_params(u), model.coordinates(dense).to_params(u))


# --- shift directions


def effects(model, data):
    """Change of the scores for one step in every direction."""
    return [model.forward(direction, data)[0].numpy() for direction in model.shift_directions(data)]


def with_columns(data, *columns):
    """``data`` with more features, given as one value per group or per row."""
    own = data.X.toarray() if sp.issparse(data.X) else data.X
    new = [np.asarray(c)[data.codes] if len(c) == data.n_groups else np.asarray(c) for c in columns]
    table = np.column_stack([own, *new])
    return replace(data, X=sp.csr_array(table) if sp.issparse(data.X) else table)


def check_moves_groups_apart(model, data):
    added = effects(model, data)
    assert len(added) == data.n_groups
    for group, effect in enumerate(added):
        np.testing.assert_allclose(effect, data.codes == group, atol=1e-9)


def check_moves_all_alike(model, data):
    added = effects(model, data)
    assert len(added) == 1
    np.testing.assert_allclose(added[0], 1.0, atol=1e-9)


def test_one_intercept_moves_all_groups_alike(data):
    check_moves_all_alike(LinearModel(3), data)


def test_intercepts_of_their_own_move_the_groups_apart(data):
    check_moves_groups_apart(LinearModel(3, n_copies=3), data)


def test_indicators_of_the_groups_move_them_apart(data):
    check_moves_groups_apart(LinearModel(5), with_columns(data, (1, 0, 0), (0, 1, 0)))
    check_moves_groups_apart(LinearModel(6, fit_intercept=False), with_columns(data, (1, 0, 0), (0, 1, 0), (0, 0, 1)))


def test_one_indicator_among_three_groups_is_not_enough(data):
    check_moves_all_alike(LinearModel(4), with_columns(data, (1, 0, 0)))


def test_a_constant_feature_is_an_intercept(data):
    check_moves_all_alike(LinearModel(4, fit_intercept=False), with_columns(data, (2, 2, 2)))


@pytest.mark.parametrize("model", [LinearModel(3, fit_intercept=False), LinearModel(3, 3, fit_intercept=False)])
def test_without_intercept_nothing_shifts(model, data):
    directions = model.shift_directions(data)
    assert directions.shape == (0, model.n_params)


@pytest.mark.parametrize("model", [LinearModel(3000), LinearModel(3000, 3)])
@pytest.mark.parametrize("shared", [False, True])
def test_directions_of_many_features_take_no_table_of_their_squares(model, shared, data):
    wide = replace(data, X=sp.csr_array((data.n_samples, 3000)))
    tracemalloc.start()
    try:
        directions = model.shift_directions(wide, shared)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(directions) == (1 if shared else model.n_copies)
    np.testing.assert_array_equal(directions.sum(axis=0)[model.n_features :: model.n_features + 1], 1.0)
    assert peak < 50 * directions.size * 8
