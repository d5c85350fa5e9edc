"""The log loss of several classes, against scikit-learn, two classes, and torch's derivatives."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss

from fairconstrained.data import FairData
from fairconstrained.objectives import Logistic, MultinomialLogistic


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return torch.from_numpy(rng.normal(size=(50, 4)) * 3), torch.from_numpy(rng.integers(0, 4, 50).astype(float))


def test_its_mean_is_that_of_scikit_learn(rows):
    scores, targets = rows
    loss = MultinomialLogistic()
    weights = np.random.default_rng(1).uniform(size=50)
    probabilities = loss.probability(scores.numpy())
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    expected = log_loss(targets.numpy(), probabilities, sample_weight=weights)
    assert np.average(loss.of(scores, targets).numpy(), weights=weights) == pytest.approx(expected)


def test_slopes_and_curvature_are_its_derivatives(rows):
    scores, targets = rows
    loss, at = MultinomialLogistic(), rows[0].clone().requires_grad_()
    (slopes,) = torch.autograd.grad(loss.of(at, targets).sum(), at)
    np.testing.assert_allclose(loss.slope(scores, targets).numpy(), slopes.numpy(), atol=1e-12)
    step = torch.zeros_like(scores)
    step[:, 2] = 1e-5
    second = (loss.slope(scores + step, targets) - loss.slope(scores - step, targets))[:, 2] / 2e-5
    np.testing.assert_allclose(loss.curvature(scores, targets).numpy()[:, 2], second.numpy(), atol=1e-8)


def test_two_classes_are_the_logistic_loss(rows):
    scores, targets = rows[0][:, :2], (rows[1] > 1).double()
    difference = scores[:, 1] - scores[:, 0]
    expected = Logistic().of(difference, 2 * targets - 1)
    np.testing.assert_allclose(MultinomialLogistic().of(scores, targets).numpy(), expected.numpy(), rtol=1e-12)
    convex, nothing = MultinomialLogistic().split(scores, targets)
    np.testing.assert_allclose(convex.numpy(), expected.numpy(), rtol=1e-12)
    assert not nothing.any()


def test_the_slopes_of_an_objective_have_a_column_for_every_class(rows):
    scores, targets = rows
    codes = np.zeros(50, dtype=int)
    data = FairData.from_arrays(np.empty((50, 0)), targets.numpy(), codes, (None,), np.arange(1.0, 51.0))
    objective = MultinomialLogistic().bind(data)
    ordered = scores.numpy()[data.order]
    mean, slopes = objective.row_mean(ordered, data)
    assert mean == pytest.approx(float(objective.values(torch.from_numpy(ordered), torch.empty(0))))
    at = torch.from_numpy(ordered).requires_grad_()
    (expected,) = torch.autograd.grad(objective.values(at, torch.empty(0)).sum(), at)
    np.testing.assert_allclose(slopes, expected.numpy(), atol=1e-14)
    assert objective.curvature(torch.from_numpy(ordered)).shape == (50, 4)
