"""Costs of decisions: of losses that count, and the smooth loss whose scores follow them."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from fairconstrained.data import FairData
from fairconstrained.objectives import F1, ZeroOne
from fairconstrained.solvers._decision_costs import costs_of, follow_costs

DATA = FairData.from_arrays(np.zeros((5, 1)), np.array([1.0, 1.0, -1.0, -1.0, -1.0]), np.array(["a"] * 5), ("a",))
LABELS = DATA.y.numpy()


def test_an_error_costs_its_weight():
    decisions = ZeroOne().bind(DATA).decisions
    np.testing.assert_allclose(costs_of(decisions, LABELS > 0), -LABELS / 5)


def test_costs_are_those_of_turning_a_decision_to_first_order():
    decisions = F1().bind(DATA).decisions
    one_right_one_wrong = np.isin(np.arange(5), [LABELS.argmax(), LABELS.argmin()])
    costs = costs_of(decisions, one_right_one_wrong)
    # F1 is 2 tp / (tp + p + fp); at tp = fp = 1/5, p = 2/5 its slopes are 15/8 and -5/8, of rows that weigh 1/5.
    np.testing.assert_allclose(costs, np.where(LABELS > 0, -3 / 8, 1 / 8))


def test_where_all_decisions_agree_half_of_each_class_is_taken():
    decisions = F1().bind(DATA).decisions
    none, every = costs_of(decisions, LABELS > 9), costs_of(decisions, LABELS < 9)
    np.testing.assert_array_equal(none, every)
    assert (none * LABELS < 0).all()


@pytest.mark.parametrize("score", [-30.0, -1.0, 0.0, 2.0, 30.0])
def test_slopes_and_curvature_are_derivatives_of_the_weighted_logistic_loss(score):
    costs = np.array([0.3, -2.0, 0.0])
    at = torch.full((3,), score, dtype=torch.float64, requires_grad=True)
    signs = torch.from_numpy(np.sign(costs))
    loss = (torch.from_numpy(np.abs(costs)) * torch.nn.functional.softplus(signs * at)).sum()
    (first,) = torch.autograd.grad(loss, at, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), at)
    slopes, curvature = follow_costs(costs, np.full(3, expit(score)))
    np.testing.assert_allclose(slopes, first.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(curvature, second.numpy(), atol=1e-12)
