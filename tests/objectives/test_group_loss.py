"""Losses with factors for groups: values, gradients, mini-batches, and what they share with constraints."""

import numpy as np
import pytest
import torch

from fairconstrained.objectives import GroupLoss, Logistic, TruncatedLogistic, ZeroOne

FACTORS = (2.0, 0.0, 0.5)


def bound_on(make_data, loss, **options):
    data = make_data((11, 7, 9), weighted=True, **options)
    return GroupLoss(loss, FACTORS).bind(data), np.random.default_rng(0).normal(size=data.n_samples)


def by_hand(term, scores, loss):
    data = term.data
    losses = loss.of(torch.from_numpy(scores), data.y).numpy()
    return sum(FACTORS[g] * data.weights.numpy()[rows] @ losses[rows] for g, rows in enumerate(data.slices))


@pytest.mark.parametrize("loss", [Logistic(), TruncatedLogistic(2.0), ZeroOne(0.3)])
def test_value_and_gradient(make_data, loss):
    term, scores = bound_on(make_data, loss)
    value = term.values(torch.from_numpy(scores), torch.empty(0)).item()
    assert value == pytest.approx(by_hand(term, scores, loss))
    slopes = term.row_weights(np.array([1.0]))[0] * loss.slope(torch.from_numpy(scores), term.data.y).numpy()
    for row in (0, 12, 20):
        step = np.zeros_like(scores)
        step[row] = 1e-5
        difference = (by_hand(term, scores + step, loss) - by_hand(term, scores - step, loss)) / 2e-5
        assert slopes[row] == pytest.approx(difference, abs=1e-8)


def test_plus_minus_and_gains_have_the_factors(make_data):
    loss = ZeroOne(0.3)
    term, scores = bound_on(make_data, loss)
    nothing = torch.empty(0)
    parts = (getattr(term, part)(torch.from_numpy(scores), nothing).item() for part in ("plus", "minus"))
    assert next(parts) - next(parts) == pytest.approx(by_hand(term, scores, loss))
    assert (term.gains.numpy()[term.data.slices[1]] == 0).all()
    assert term.gains.numpy()[0] == pytest.approx(2 * (term.data.weights * term.data.y).numpy()[0])


def test_other_rows_have_the_factors_of_their_groups(make_data):
    term, _ = bound_on(make_data, Logistic())
    rows = np.array([2, 12, 20])
    batch = term.on(term.data.at(rows))
    assert batch.shares.numpy() == pytest.approx(np.array(FACTORS) / 3)


def test_the_path_and_the_probability_are_those_of_the_loss():
    loss = GroupLoss(TruncatedLogistic(2.0), FACTORS)
    assert loss.path() == (GroupLoss(Logistic(), FACTORS), loss)
    assert loss.probability(np.zeros(1)) == 0.5


def test_it_shares_the_losses_of_the_rows(make_data):
    term, _ = bound_on(make_data, Logistic())
    assert term.row_loss == Logistic()
