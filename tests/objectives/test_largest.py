"""The largest of several mean losses: its rounded form, and what trees take of it."""

import numpy as np
import pytest
import torch

from fairconstrained.constraints import GroupRates
from fairconstrained.data import FairData
from fairconstrained.objectives import BoundLargestMean, Logistic


@pytest.fixture
def largest():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], 20)
    y = rng.choice([-1.0, 1.0], codes.size)
    data = FairData.from_arrays(np.zeros((codes.size, 1)), y, codes, ("a", "b", "c"), rng.uniform(0.5, 2, codes.size))
    means = GroupRates("log_loss", rule="ceiling", kappa=0.0, min_group_size=1).unchecked(data)
    return BoundLargestMean(Logistic(), data, means=means)


def value(objective, scores):
    return objective.values(scores, torch.empty(0, dtype=torch.float64)).sum()


def test_the_rounded_one_exceeds_it_by_half_a_percent_at_most(largest):
    rounded, rng = largest.smoothed(), np.random.default_rng(1)
    assert rounded.smoothed() is rounded
    most = 0.005 * np.log(2)  # the log loss of scores that are zero
    for _ in range(20):
        scores = torch.from_numpy(rng.normal(size=60))
        assert -1e-12 <= float(value(rounded, scores) - value(largest, scores)) <= most
    equal = torch.zeros(60, dtype=torch.float64)
    assert float(value(rounded, equal) - value(largest, equal)) == pytest.approx(most)


def test_its_curvature_is_that_of_the_mean_with_its_present_weights(largest):
    rounded = largest.smoothed()
    scores = torch.from_numpy(np.random.default_rng(2).normal(scale=0.05, size=60)).requires_grad_()
    (slopes,) = torch.autograd.grad(value(rounded, scores), scores)
    y, at = largest.data.y, scores.detach()
    losses = torch.sigmoid(-y * at)  # minus the slope of the log loss, in the direction of y
    weights = -slopes * y / losses
    assert float(weights.min()) > 0
    torch.testing.assert_close(rounded.curvature(scores), weights * losses * (1 - losses))
