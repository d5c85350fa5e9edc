"""Moments of a linear model: they give the mean and the variance of the scores in any cells of rows."""

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fairconstrained.models import LinearModel, Moments


@pytest.fixture(scope="module", params=[False, True], ids=["dense", "csr"])
def data(request, make_data):
    return make_data(counts=(9, 5, 7), weighted=True, sparse=request.param)


@pytest.mark.parametrize("n_copies", [1, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(
    "slices", [(slice(0, 9), slice(9, 14), slice(14, 21)), (slice(0, 4), slice(2, 17), slice(0, 21))]
)
def test_mean_and_variance_of_the_scores(data, n_copies, fit_intercept, slices):
    """Cells that are groups, parts of groups, and unions of groups."""
    model = LinearModel(3, n_copies, fit_intercept)
    weights = data.weights
    for cell in slices:
        shares = torch.zeros_like(weights)
        shares[cell] = weights[cell] / weights[cell].sum()
        means, covariances = model.moments(data, (cell,), shares)
        assert means.shape == (1, model.n_params)
        assert covariances.shape == (1, model.n_params, model.n_params)
        for seed in range(3):
            params = np.random.default_rng(seed).normal(size=model.n_params)
            scores = model.forward(params, data)[0].numpy()
            mean = shares.numpy() @ scores
            assert means[0] @ params == pytest.approx(mean)
            assert params @ covariances[0] @ params == pytest.approx(shares.numpy() @ (scores - mean) ** 2)
        np.testing.assert_allclose(covariances[0], covariances[0].T, atol=1e-14)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_a_large_offset_costs_no_digits(make_data, sparse):
    data = make_data(counts=(9, 5))
    shares = data.group_weights
    _, expected = LinearModel(3).moments(data, data.slices, shares)
    shifted = replace(data, X=sp.csr_array(data.X + 1e6) if sparse else data.X + 1e6)
    _, covariances = LinearModel(3).moments(shifted, data.slices, shares)
    np.testing.assert_allclose(covariances, expected, atol=1e-8)


# --- moments of rows


@pytest.fixture(scope="module", params=["dense", "csr_array", "csr_matrix"])
def rows(request):
    """Rows of which most entries are zero, far from the origin in one column, and their weights."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((40, 3)) < 0.5, rng.normal(size=(40, 3)), 0.0) + np.array([0.0, 0.0, 5.0])
    convert = {"dense": np.array, "csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix}[request.param]
    return X, convert(X), rng.uniform(0.1, 3.0, 40)


def check_moments(moments, X, weights):
    assert moments.weight == pytest.approx(weights.sum())
    np.testing.assert_allclose(moments.mean, np.average(X, axis=0, weights=weights), atol=1e-13)
    np.testing.assert_allclose(moments.covariance, np.cov(X.T, aweights=weights, ddof=0), atol=1e-12)


def test_moments_are_numpys(rows):
    X, converted, weights = rows
    check_moments(Moments.of(converted, weights), X, weights)


@pytest.mark.parametrize("cuts", [[1], [20], [39], [5, 6, 30], range(1, 40)], ids=["1", "20", "39", "some", "singly"])
def test_merged_moments_are_those_of_all_rows(rows, cuts):
    X, converted, weights = rows
    order = np.random.default_rng(1).permutation(40)
    chunks = np.split(order, list(cuts))
    moments = [Moments.of(converted[chunk], weights[chunk]) for chunk in chunks]
    before = moments[0].covariance.copy()
    check_moments(reduce(Moments.merged, moments), X, weights)
    np.testing.assert_array_equal(moments[0].covariance, before)  # nothing is changed in place


def test_merging_far_from_the_origin_costs_no_digits():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(200, 3)), rng.uniform(0.1, 3.0, 200)
    shifted = reduce(Moments.merged, [Moments.of(X[[i]] + 1e6, weights[[i]]) for i in range(200)])
    np.testing.assert_allclose(shifted.covariance, np.cov(X.T, aweights=weights, ddof=0), atol=1e-8)


@pytest.mark.parametrize("n_copies", [1, 3])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_cells_of_scattered_rows(data, n_copies, fit_intercept):
    """Cells given by row numbers: across groups, within one, a single row, every row."""
    model, weights = LinearModel(3, n_copies, fit_intercept), data.weights
    cells = [np.array([0, 3, 8, 10, 13, 15, 20]), np.array([9, 11, 12]), np.array([14]), np.arange(21)]
    for cell in cells:
        shares = torch.zeros_like(weights)
        shares[cell] = weights[cell] / weights[cell].sum()
        means, covariances = model.moments(data, (cell,), shares)
        params = np.random.default_rng(0).normal(size=model.n_params)
        scores = model.forward(params, data)[0].numpy()
        mean = shares.numpy() @ scores
        assert means[0] @ params == pytest.approx(mean)
        assert params @ covariances[0] @ params == pytest.approx(shares.numpy() @ (scores - mean) ** 2, abs=1e-12)


def test_row_numbers_and_slices_are_the_same_cells(data):
    model, shares = LinearModel(3), data.weights
    slices = (slice(2, 17), slice(0, 21))
    one = model.moments(data, slices, shares)
    other = model.moments(data, [np.arange(cell.start, cell.stop) for cell in slices], shares)
    for first, second in zip(one, other, strict=True):
        np.testing.assert_allclose(first, second, atol=1e-14)
