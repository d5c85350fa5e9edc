"""Losses: their values, gradients, convex splits, limits and probabilities."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy.special import expit

from fairconstrained.objectives import (
    F1,
    ROW_LOSS_OBJECTIVES,
    Absolute,
    DecisionUtility,
    Hinge,
    Logistic,
    Loss,
    PositiveRate,
    Squared,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.sampling import Sampler
from tests.batches import assert_unbiased, of_view, on_batches

LOSSES = {
    "logistic": Logistic(),
    "truncated": TruncatedLogistic(0.5),
    "hinge": Hinge(0.2),
    "squared": Squared(),
    "absolute": Absolute(),
    "zero-one": ZeroOne(0.3),
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
classification = pytest.mark.parametrize("name", ["logistic", "truncated", "hinge", "zero-one", "squared", "absolute"])


def column(*values):
    return torch.tensor(values, dtype=torch.float64)


SCORES = torch.linspace(-4, 4, 401, dtype=torch.float64)
POSITIVE, NEGATIVE = torch.ones_like(SCORES), -torch.ones_like(SCORES)


def test_values():
    scores, targets = column(2.0, -1.0, 0.0), column(1.0, 1.0, -1.0)
    margins = np.array([2.0, -1.0, 0.0])
    logistic = np.log(1 + np.exp(-margins))
    np.testing.assert_allclose(Logistic().of(scores, targets), logistic)
    np.testing.assert_allclose(TruncatedLogistic(0.5).of(scores, targets), 0.5 * np.log(1 + 2 * logistic))
    np.testing.assert_allclose(Hinge(1e-9).of(scores, targets), [0, 2, 1], atol=1e-8)
    np.testing.assert_allclose(Squared().of(scores, targets), [0.5, 2, 0.5])
    np.testing.assert_allclose(Absolute().of(scores, targets), [1, 2, 1])
    np.testing.assert_allclose(ZeroOne(0.5).of(scores, targets), expit(-margins / 0.5))


@each_loss
def test_large_scores_are_finite(loss):
    scores = column(1e3, -1e3).requires_grad_()
    value = loss.of(scores, column(-1.0, 1.0)).sum()
    (gradient,) = torch.autograd.grad(value, scores)
    assert torch.isfinite(value)
    assert torch.isfinite(gradient).all()


@each_loss
@pytest.mark.parametrize("part", ["values", "plus", "minus"])
def test_gradients(loss, part, make_data):
    objective = loss.bind(make_data(weighted=True))
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=objective.data.n_samples)).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: getattr(objective, part)(s, column()), scores)


@dataclass(frozen=True)
class Cubed(Loss):
    """A loss of somebody else, with no slope of its own."""

    def of(self, scores, targets):
        return (scores - targets).abs() ** 3

    def split(self, scores, targets):
        return self.of(scores, targets), torch.zeros_like(scores)


@pytest.mark.parametrize(
    "loss", [*LOSSES.values(), ROW_LOSS_OBJECTIVES["hinge"], TruncatedLogistic(5.0), Hinge(1.0), Cubed()], ids=str
)
def test_slope_is_that_of_autograd(loss):
    """Also where scores are large, and where the caller records a graph of its own or records none."""
    spread = torch.tensor([1.0, 30.0], dtype=torch.float64).repeat_interleave(60)
    scores = spread * torch.from_numpy(np.random.default_rng(0).normal(size=120))
    targets = column(1.0, -1.0).repeat(60)
    recorded = scores.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss.of(recorded, targets).sum(), recorded)
    assert expected.abs().max() > 0.1
    for given in (scores, recorded):
        with torch.no_grad():
            slope = loss.slope(given, targets)
        assert not slope.requires_grad
        # torch has log(1 + e^z) = z from z = 20 on, where the slope is 2e-9 short of one
        torch.testing.assert_close(slope, expected, rtol=3e-9, atol=1e-12)
    numeric = (loss.of(scores + 1e-7, targets) - loss.of(scores - 1e-7, targets)) / 2e-7
    torch.testing.assert_close(slope, numeric, rtol=1e-4, atol=1e-4)


@each_loss
def test_slope_is_finite_for_large_scores(loss):
    assert torch.isfinite(loss.slope(column(1e4, -1e4, 0.0), column(-1.0, 1.0, 1.0))).all()


@each_loss
def test_split_is_convex_and_adds_up(loss):
    for targets in (POSITIVE, NEGATIVE):
        plus, minus = loss.split(SCORES, targets)
        torch.testing.assert_close(plus - minus, loss.of(SCORES, targets))
        for part in (plus, minus):
            assert part.diff().diff().min() > -1e-12


@pytest.mark.parametrize("name", ["truncated", "zero-one"])
def test_losses_that_are_not_convex_need_their_split(name):
    assert LOSSES[name].of(SCORES, POSITIVE).diff().diff().min() < -1e-6


@pytest.mark.parametrize("name", ["logistic", "truncated", "hinge", "zero-one"])
def test_classification_losses_fall_with_the_margin_and_are_symmetric(name):
    loss = LOSSES[name]
    assert (loss.of(SCORES, POSITIVE).diff() <= 1e-12).all()
    torch.testing.assert_close(loss.of(SCORES, NEGATIVE), loss.of(-SCORES, POSITIVE))


def test_truncated_logistic_tends_to_the_logistic_loss():
    logistic = Logistic().of(SCORES, POSITIVE)
    gaps = [(logistic - TruncatedLogistic(a).of(SCORES, POSITIVE)).max().item() for a in (0.5, 5.0, 50.0, 5e6)]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 1
    assert gaps[-1] < 1e-5
    assert (TruncatedLogistic(0.5).of(SCORES, POSITIVE) <= logistic).all()


@pytest.mark.parametrize("smoothing", [0.01, 0.5])
def test_rounded_hinge_exceeds_the_hinge_by_at_most_a_quarter_of_its_smoothing(smoothing):
    excess = Hinge(smoothing).of(SCORES, POSITIVE) - (1 - SCORES).clamp(min=0)
    assert excess.min() >= -1e-15
    assert excess.max().item() == pytest.approx(smoothing / 4)
    assert (excess[(1 - SCORES).abs() > smoothing + 1e-9].abs() < 1e-15).all()


def test_narrow_zero_one_loss_counts_errors():
    scores = column(0.5, -0.5, 2.0)
    np.testing.assert_allclose(ZeroOne(1e-3).of(scores, column(1, 1, -1)), [0, 1, 1], atol=1e-12)


@each_loss
def test_path_ends_with_the_loss_itself(loss):
    assert loss.path()[-1] == loss


@each_loss
def test_gains_exist_for_losses_that_count_errors_only(loss):
    targets, weights = column(1, -1, 1), column(0.5, 0.2, 0.3)
    assert (loss.gains(targets, weights) is not None) == isinstance(loss, ZeroOne)


def test_gains_are_what_predicting_positive_saves():
    targets, weights = np.array([1.0, -1, 1, -1]), np.array([0.4, 0.1, 0.2, 0.3])
    gains = ZeroOne().gains(torch.from_numpy(targets), torch.from_numpy(weights)).numpy()
    for positive in np.ndindex(2, 2, 2, 2):
        predicted = np.where(np.array(positive), 1, -1)
        saved = weights[targets == 1].sum() - weights @ (predicted != targets)
        assert gains @ np.array(positive) == pytest.approx(saved)


# --- probabilities


@classification
def test_probability_rises_with_the_score_from_zero_to_one(name):
    probability = LOSSES[name].probability(np.linspace(-40, 40, 161))
    assert (np.diff(probability) >= 0).all()
    assert 0 <= probability[0] < 1e-12
    assert 1 - 1e-12 < probability[-1] <= 1
    assert LOSSES[name].probability(np.zeros(1)) == pytest.approx(0.5)


def test_logistic_probability_minimises_the_expected_loss():
    share = 0.3
    expected = share * Logistic().of(SCORES, POSITIVE) + (1 - share) * Logistic().of(SCORES, NEGATIVE)
    best = SCORES[expected.argmin()].numpy()
    assert Logistic().probability(best) == pytest.approx(share, abs=0.01)


def test_least_squares_score_estimates_the_expectation():
    np.testing.assert_allclose(Squared().probability(np.array([-3.0, -1.0, 0.2, 1.0, 3.0])), [0, 0, 0.6, 1, 1])


# --- bound to data


@each_loss
def test_objective_is_the_weighted_mean(loss, make_data):
    data = make_data(weighted=True)
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=data.n_samples))
    objective = loss.bind(data)
    by_row = loss.of(scores, data.y)
    assert objective.values(scores, column()).tolist() == pytest.approx([(data.weights * by_row).sum().item()])
    difference = objective.plus(scores, column()) - objective.minus(scores, column())
    torch.testing.assert_close(difference, objective.values(scores, column()))
    assert objective.counts_errors == isinstance(loss, ZeroOne)


@each_loss
def test_the_row_losses_of_an_objective(loss, make_data):
    data = make_data(weighted=True)
    objective = loss.bind(data)
    assert objective.row_loss == loss
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=data.n_samples))
    losses = loss.of(scores, data.y).numpy()
    none = np.empty(0)
    expected = sum(weight * value for weight, value in zip(data.weights.tolist(), losses.tolist(), strict=True))
    assert objective.of_losses(losses, none).tolist() == pytest.approx([expected])
    # of a linear function: the slopes times the losses are its value
    for factor in (0.0, 1.0, -2.5):
        weights, aux = objective.row_weights(np.array([factor]))
        np.testing.assert_allclose(weights, factor * data.weights.numpy())
        assert weights @ losses == pytest.approx(factor * expected)
        assert aux.shape == (0,)
    other = np.random.default_rng(2).normal(size=losses.size)
    together = objective.of_losses(losses + 3 * other, none)
    np.testing.assert_allclose(together, objective.of_losses(losses, none) + 3 * objective.of_losses(other, none))


@each_loss
def test_values_have_the_gradient_of_slopes_and_row_weights(loss, make_data):
    data = make_data(weighted=True)
    objective = loss.bind(data)
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=data.n_samples)).requires_grad_()
    (gradient,) = torch.autograd.grad(objective.values(scores, column()), scores)
    (expected,) = torch.autograd.grad(data.weights @ loss.of(scores, data.y), scores)
    torch.testing.assert_close(gradient, expected)
    weights, _ = objective.row_weights(np.ones(1))
    torch.testing.assert_close(loss.slope(scores, data.y) * torch.from_numpy(weights), expected)


def test_row_weights_are_not_those_of_the_data_themselves(make_data):
    """Who adds to them must not change the data."""
    data = make_data(weighted=True)
    before = data.weights.clone()
    weights, _ = Logistic().bind(data).row_weights(np.ones(1))
    weights += 1.0
    assert torch.equal(data.weights, before)


def test_objective_on_batches_is_unbiased(make_data):
    data = make_data(counts=(12, 20), weighted=True)
    scores, objective = np.random.default_rng(2).normal(size=data.n_samples), Logistic().bind(data)
    batches = Sampler.of(data, 10).batches(np.random.default_rng(3), 2000)
    assert_unbiased(on_batches(objective, data, scores, batches), of_view()(objective, scores))


@pytest.mark.parametrize("loss", [Logistic(), Squared()])
def test_curvature_is_the_second_derivative(loss):
    step = 1e-5
    numeric = (loss.slope(SCORES + step, POSITIVE) - loss.slope(SCORES - step, POSITIVE)) / (2 * step)
    torch.testing.assert_close(loss.curvature(SCORES, POSITIVE), numeric, atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(loss.curvature(SCORES, NEGATIVE), numeric, atol=1e-8, rtol=1e-6)


@each_loss
def test_curvature_is_positive_and_holds_newton_steps_short(loss):
    for targets in (POSITIVE, NEGATIVE):
        curvature = loss.curvature(SCORES, targets)
        assert (curvature > 0).all()
        if not isinstance(loss, Squared | Logistic):  # of these it is no bound, but the curvature itself
            assert (loss.slope(SCORES, targets).abs() <= curvature * (1 + 1e-9)).all()


def test_curvature_of_a_mean_counts_every_row_by_its_weight(make_data):
    data = make_data(counts=(30, 20))
    scores = torch.linspace(-1, 1, data.n_samples, dtype=torch.float64)
    expected = data.weights * Logistic().curvature(scores, data.y)
    torch.testing.assert_close(Logistic().bind(data).curvature(scores), expected)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), "1"])
@pytest.mark.parametrize("make", [Hinge, TruncatedLogistic, ZeroOne, PositiveRate, lambda width: F1(width=width)])
def test_widths_are_positive(make, value):
    with pytest.raises(ValueError, match="must be a finite number above 0"):
        make(value)


def test_a_utility_is_a_function():
    with pytest.raises(ValueError, match=r"function must be callable with \(tn, fp, fn, tp\); got 3"):
        DecisionUtility(3)


@pytest.mark.parametrize("objective", [PositiveRate(), F1()])
def test_probability_is_logistic_where_an_objective_has_no_other(objective):
    scores = np.array([-3.0, 0.0, 2.0])
    np.testing.assert_allclose(objective.probability(scores), expit(scores))
