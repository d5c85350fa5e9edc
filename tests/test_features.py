"""Products with rows of any type of numbers: those of a float64 copy, without making one."""

import gc
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import fairconstrained.features as features
from fairconstrained import RateParityClassifier
from fairconstrained.tables import array_table, torch_table

LAYOUTS = {"dense": np.asarray, "csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 64 rows, so that a small table has several of them."""
    monkeypatch.setattr(features, "_BLOCK", 16)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("numbers", features.NUMBERS, ids=str)
def test_products_are_those_of_a_float64_copy(layout, numbers):
    rng = np.random.default_rng(0)
    table = np.where(rng.random((230, 4)) < 0.7, rng.integers(-128, 128, (230, 4)), 0).astype(numbers)
    X, exact, weights, columns = layout(table), table.astype(float), rng.random(230), rng.normal(size=(4, 3))
    slopes, about = rng.normal(size=(230, 2)), exact - columns[:, 0]
    for found, expected in (
        (features.product(X, columns[:, 0]), exact @ columns[:, 0]),
        (features.product(X, columns), exact @ columns),
        (features.sums_of_products(X, weights), exact.T @ weights),
        (features.sums_of_products(X, slopes), exact.T @ slopes),
        (features.as_dense(features.sums_of_products(X, sp.csc_array(slopes))), exact.T @ slopes),
        (features.squares(X, weights), (exact**2).T @ weights),
        (features.weighted_gram(X, weights), exact.T @ (exact * weights[:, None])),
        (features.weighted_gram(X, weights, columns[:, 0]), about.T @ (about * weights[:, None])),
        (np.stack(features.extremes(X)), np.stack([exact.min(axis=0), exact.max(axis=0)])),
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def test_numbers_at_the_same_place_of_a_sparse_row_are_added_before_they_are_squared():
    X = sp.csr_array(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    np.testing.assert_array_equal(features.squares(X, np.ones(2)), [9.0, 9.0])
    np.testing.assert_array_equal(features.weighted_gram(X, np.ones(2), np.ones(2)), [[5.0, -4.0], [-4.0, 5.0]])


def test_places_of_64_bits_become_short_ones_where_they_fit():
    X = sp.csr_array(np.eye(3))
    long = sp.csr_array(X)
    long.indices, long.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    short = features.narrowed(long)
    assert short.indices.dtype == short.indptr.dtype == np.int32
    assert np.shares_memory(short.data, long.data)
    np.testing.assert_array_equal(short.toarray(), np.eye(3))
    assert long.indices.dtype == np.int64  # that of the user stays as it is
    assert features.narrowed(X) is X


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_blocks_are_the_rows_in_turn_without_a_copy(layout):
    X = layout(np.arange(1.0, 921).reshape(230, 4))
    blocks = list(features.row_blocks(X))
    assert len(blocks) == 4
    np.testing.assert_array_equal(np.concatenate([np.arange(230)[rows] for rows, _ in blocks]), np.arange(230))
    for rows, block in blocks:
        np.testing.assert_array_equal(features.as_dense(block), features.as_dense(X[rows]))
        assert np.shares_memory(getattr(block, "data", block), X.data if sp.issparse(X) else X)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("numbers", ["float32", "int8"])
def test_scores_do_not_depend_on_blocks(numbers):
    rng = np.random.default_rng(0)
    X, w = (rng.normal(size=(1280, 9)) * 20).astype(numbers), rng.normal(size=9)
    np.testing.assert_array_equal(features.product(X, w), X.astype(float) @ w)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_no_rows_have_products_of_the_right_shape(layout):
    X = layout(np.empty((0, 4), dtype=np.float32))
    assert features.product(X, np.ones((4, 2))).shape == (0, 2)
    np.testing.assert_array_equal(features.sums_of_products(X, np.empty(0)), np.zeros(4))


@pytest.mark.parametrize("numbers", ["float32", "int8"])
def test_products_need_a_fraction_of_the_memory_of_a_float64_copy(numbers):
    X, w, r = np.ones((100_000, 40), dtype=numbers), np.ones(40), np.ones(100_000)
    tracemalloc.start()
    try:
        features.product(X, w), features.sums_of_products(X, r), features.squares(X, r), features.weighted_gram(X, r)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * X.size / 3


def rows(numbers, n_samples=600, n_features=9):
    rng = np.random.default_rng(0)
    X = rng.normal(scale=3, size=(n_samples, n_features)).round(1).astype(numbers)
    scores = X.astype(float) @ rng.normal(scale=0.2, size=n_features)
    groups = np.where(rng.random(n_samples) < 1 / (1 + np.exp(-scores)), "a", "b")
    return X, (scores + rng.logistic(size=n_samples) > 0).astype(int), groups


@pytest.mark.parametrize(
    ("model", "numbers", "layout"),
    [
        (RateParityClassifier(kappa=0.02, new_row_folds=None, random_state=0), "float32", np.asarray),
        (RateParityClassifier(kappa=0.02, solver="span", new_row_folds=None), "int8", sp.csr_array),
        (RateParityClassifier(kappa=0.02, group_interactions=True, new_row_folds=None), "float32", sp.csr_array),
    ],
    ids=["cross-fitted", "span", "by group"],
)
def test_a_fit_is_that_of_a_float64_copy(model, numbers, layout):
    table, y, groups = rows(numbers)
    X, copy = layout(table), layout(table.astype(float))
    given = {"sensitive_features": groups} if model.group_interactions else {}
    one, other = (np.copy(model.fit(A, y, sensitive_features=groups).decision_function(A, **given)) for A in (X, copy))
    np.testing.assert_array_equal(one, other)  # all rows are in one block, so that even rounding is the same
    assert X.dtype == numbers
    assert model.status_ in ("optimal", "completed")


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_the_bound_holds_for_the_predictions_whatever_the_blocks(layout, monkeypatch):
    table, y, groups = rows("float32")
    X = layout(table)
    monkeypatch.setattr(features, "_BLOCK", 1024)
    model = RateParityClassifier(kappa=0.02, solver="span", new_row_folds=None).fit(X, y, sensitive_features=groups)
    predicted = model.predict(X)
    gap = abs(predicted[groups == "a"].mean() - predicted[groups == "b"].mean())
    assert model.constraint_values_["demographic_parity"] == pytest.approx(gap, abs=1e-12)
    assert gap <= 0.02 + model.granularity_["demographic_parity"]
    shuffled = np.random.default_rng(1).permutation(600)
    np.testing.assert_array_equal(model.predict(X[shuffled]), predicted[shuffled])
    monkeypatch.setattr(features, "_BLOCK", 2**18)
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_a_fit_of_float32_rows_copies_them_once_and_leaves_nothing_behind():
    X, y, groups = rows("float32", n_samples=20_000, n_features=60)
    model = RateParityClassifier(kappa=None, random_state=0)
    model.fit(X[:500], y[:500], sensitive_features=groups[:500])  # what is imported and compiled at first
    tracemalloc.start()
    try:
        model.fit(X, y, sensitive_features=groups)
        peak = tracemalloc.get_traced_memory()[1]
        gc.collect()  # cycles of older versions of SciPy hold what was minimised
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    of_rows = 8 * len(X)
    assert peak < X.nbytes + 2 * features._BLOCK * 8 + 20 * of_rows  # a copy in order, blocks, and numbers of rows
    assert left < 4 * of_rows


def laid_out(X, layout):
    """Return X in a layout; "CSR, twice" stores every number in two parts at the same place."""
    n, d = X.shape
    parts = np.tile(X / 2, 2).ravel(), np.tile(np.arange(d), 2 * n), 2 * d * np.arange(n + 1)
    return {
        "dense": lambda: X,
        "CSR": lambda: sp.csr_array(X),
        "CSR, twice": lambda: sp.csr_array(parts, shape=X.shape),
        "table": lambda: array_table(X),
        "torch": lambda: torch_table(X, "cpu"),
        "torch, CSR": lambda: torch_table(sp.csr_array(X), "cpu"),
    }[layout]()


@pytest.mark.parametrize("layout", ["dense", "CSR", "CSR, twice", "table", "torch", "torch, CSR"])
def test_squares_about_a_centre_keep_their_digits(layout):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(50, 4)), rng.random(50)
    X[rng.random(X.shape) < 0.5] = 0.0
    X[:, 3] = rng.normal(size=50) + 2.0**30
    centre = np.array([0.3, -2.0, 0.0, 2.0**30])
    expected = weights @ (X - centre) ** 2
    np.testing.assert_allclose(features.squares(laid_out(X, layout), weights, centre), expected, rtol=1e-12)


@pytest.mark.parametrize("layout", ["dense", "CSR", "CSR, twice", "table", "torch", "torch, CSR"])
def test_a_row_of_weight_zero_takes_no_digits_from_sums_about_a_centre(layout):
    rng = np.random.default_rng(1)
    X, weights = rng.normal(size=(50, 2)), rng.random(50)
    X[:, 1] = rng.normal(size=50) + 2.0**26
    X[7], weights[7] = 0.0, 0.0  # the only row in which the second feature is not stored
    centre = np.array([0.3, 2.0**26])
    expected = (weights[:, None] * (X - centre)).T @ (X - centre)
    stored = laid_out(X, layout)
    np.testing.assert_allclose(features.squares(stored, weights, centre), np.diag(expected), rtol=1e-12)
    np.testing.assert_allclose(features.weighted_gram(stored, weights, centre), expected, rtol=1e-12)
