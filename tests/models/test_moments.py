"""Moments of a linear model: they give the mean and the variance of the scores in any cells of rows."""

import numpy as np
import pytest
import torch

from fairconstrained.models import LinearModel


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


def test_a_large_offset_costs_no_digits(make_data):
    data = make_data(counts=(9, 5))
    shares = data.group_weights
    _, expected = LinearModel(3).moments(data, data.slices, shares)
    shifted = type(data)(tuple(block + 1e6 for block in data.blocks), data.y, data.weights, data.labels, data.order)
    _, covariances = LinearModel(3).moments(shifted, data.slices, shares)
    np.testing.assert_allclose(covariances, expected, atol=1e-8)
