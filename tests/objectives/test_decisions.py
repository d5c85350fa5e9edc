"""Objectives of the decisions: class weights, costs, and functions of the four counts."""

import numpy as np
import pytest
import torch
from sklearn.metrics import balanced_accuracy_score, confusion_matrix, f1_score

from fairconstrained.objectives import (
    F1,
    ClassLoss,
    ClassWeights,
    CorrelationPenalty,
    CostMatrix,
    DecisionUtility,
    Logistic,
    PairwiseAUC,
    PositiveRate,
    TruncatedLogistic,
    ZeroOne,
)
from fairconstrained.objectives.decisions import CountedLoss, GainLoss

NOTHING = torch.empty(0, dtype=torch.float64)
SHARP = 1e-9


def geometric_mean(tn, fp, fn, tp):
    return (tn / (tn + fp) * tp / (tp + fn)) ** 0.5


@pytest.fixture
def rows(make_data):
    data = make_data((23, 31), weighted=True)
    return data, torch.from_numpy(np.random.default_rng(0).normal(size=data.n_samples))


def value(objective, data, scores):
    return objective.bind(data).values(scores, NOTHING).item()


def by_sklearn(metric, data, scores):
    return metric(data.y.numpy(), np.where(scores.numpy() > 0, 1.0, -1.0), sample_weight=data.weights.numpy())


@pytest.mark.parametrize("classes", [ClassWeights((1.0, 3.0)), ClassWeights(balanced=True)])
def test_a_class_loss_is_the_mean_of_reweighted_rows(rows, classes):
    data, scores = rows
    y, weights = data.y.numpy(), data.weights.numpy()
    factors = np.where(y > 0, 3.0, 1.0)
    if classes.balanced:
        factors = np.where(y > 0, 1 / weights[y > 0].sum(), 1 / weights[y < 0].sum())
    losses = Logistic().of(scores, data.y).numpy()
    expected = np.average(losses, weights=weights * factors)
    assert value(Logistic().weighing_classes(classes), data, scores) == pytest.approx(expected)


def test_mini_batches_have_the_factors_of_all_rows(rows):
    data, scores = rows
    bound = Logistic().weighing_classes(ClassWeights(balanced=True)).bind(data)
    few = np.array([1, 2, 40])
    means = [bound.on(data.at(few[[i]])).values(scores[few[[i]]], NOTHING).item() for i in range(3)]
    whole = bound.on(data.at(few)).values(scores[few], NOTHING).item()
    assert whole == pytest.approx(np.mean(means))
    shares = bound.shares.numpy() / data.weights.numpy()
    assert bound.on(data.at(few)).shares.numpy() == pytest.approx(shares[few] / 3)


def test_factors_multiply_and_even_ones_change_nothing():
    twice = Logistic().weighing_classes(ClassWeights((1.0, 2.0))).weighing_classes(ClassWeights((3.0, 5.0)))
    assert twice == ClassLoss(Logistic(), ClassWeights((3.0, 10.0)))
    assert Logistic().weighing_classes(ClassWeights((2.0, 2.0))) == Logistic()
    assert TruncatedLogistic().weighing_classes(ClassWeights((1.0, 2.0))).path()[0].loss == Logistic()


@pytest.mark.parametrize("factors", [(1.0, -1.0), (1.0, np.nan), (0.0, 0.0), (1.0, "2")])
def test_factors_of_classes_that_are_no_weights(factors):
    with pytest.raises(ValueError, match=r"factors must be finite numbers of at least 0, .* got \("):
        ClassWeights(factors)


def test_rows_of_classes_without_weight_are_refused(rows):
    data, _ = rows
    positives = data.part(np.flatnonzero(data.y.numpy() > 0))
    with pytest.raises(ValueError, match=r"the factors \(1.0, 0.0\) of the classes leave no weight to any row"):
        Logistic().weighing_classes(ClassWeights((1.0, 0.0))).bind(positives)


def test_costs_are_those_of_the_decisions(rows):
    data, scores = rows
    costs = np.array([[-1.0, 2.0], [4.0, 0.5]])
    counts = by_sklearn(confusion_matrix, data, scores)
    right = costs[[0, 1], [0, 1]] @ counts.sum(axis=1)
    worst = costs[[0, 1], [1, 0]] @ counts.sum(axis=1) - right
    assert value(CostMatrix(costs, SHARP), data, scores) == pytest.approx(((costs * counts).sum() - right) / worst)


def test_only_the_ratio_of_the_costs_matters(rows):
    data, scores = rows
    one, other = CostMatrix([[0, 1], [5, 0]]), CostMatrix([[3, 13], [50, 0]])
    assert value(one, data, scores) == pytest.approx(value(other, data, scores))


@pytest.mark.parametrize("costs", [[[0, 1]], [[0, 1], [np.nan, 0]], [[1, 0], [5, 0]], [[0, 1], [0, 0]], "costs"])
def test_costs_have_to_make_sense(costs):
    with pytest.raises(ValueError, match=r"costs must be|could not convert"):
        CostMatrix(costs)


def test_sharp_counts_give_the_metrics_of_scikit_learn(rows):
    data, scores = rows
    assert value(F1(width=SHARP), data, scores) == pytest.approx(-by_sklearn(f1_score, data, scores))
    balanced = ZeroOne(SHARP).weighing_classes(ClassWeights(balanced=True))
    assert value(balanced, data, scores) == pytest.approx(1 - by_sklearn(balanced_accuracy_score, data, scores))
    tn, fp, fn, tp = by_sklearn(confusion_matrix, data, scores).ravel()
    utility = DecisionUtility(geometric_mean, width=SHARP)
    assert value(utility, data, scores) == pytest.approx(-geometric_mean(tn, fp, fn, tp))


@pytest.mark.parametrize("objective", [F1(), DecisionUtility(geometric_mean), F1(classes=ClassWeights((1.0, 3.0)))])
def test_slopes_of_smooth_counts(rows, objective):
    data, scores = rows
    bound, at = objective.bind(data), scores.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(bound.values(at, NOTHING).sum(), at)
    for row in (0, 30, 50):
        step = torch.zeros_like(scores)
        step[row] = 1e-6
        difference = bound.values(scores + step, NOTHING) - bound.values(scores - step, NOTHING)
        assert slopes[row].item() == pytest.approx(difference.item() / 2e-6, abs=1e-8)


@pytest.mark.parametrize(
    "objective",
    [
        ZeroOne(SHARP),
        CostMatrix([[0, 1], [5, 0]], SHARP),
        ZeroOne(SHARP).weighing_classes(ClassWeights(balanced=True)),
        F1(width=SHARP),
        DecisionUtility(geometric_mean, width=SHARP).weighing_classes(ClassWeights((1.0, 2.0))),
    ],
)
def test_decisions_lose_as_much_as_the_objective_with_sharp_counts(rows, objective):
    data, scores = rows
    bound = objective.bind(data)
    assert bound.counts_errors
    differences = [
        bound.decisions.of((each > 0).numpy()) - bound.values(each, NOTHING).item() for each in (scores, scores - 0.5)
    ]
    assert differences[0] == pytest.approx(differences[1])  # the same up to a constant


def test_gains_are_slopes_in_the_decisions():
    rng = np.random.default_rng(0)
    weights, is_positive = rng.random(12) / 12, rng.random(12) < 0.4
    loss, decisions = CountedLoss(F1().of_counts, weights, is_positive), rng.random(12) < 0.5
    gains, sums = loss.gains(decisions), loss.columns[:, decisions].sum(axis=1)
    for row in range(12):
        step = 1e-6 * loss.columns[:, row]
        difference = loss.of_sums(sums - step) - loss.of_sums(sums + step)
        assert gains[row] == pytest.approx(difference / 2e-6, abs=1e-7)


def test_a_utility_without_a_value_is_never_the_best():
    precision = CountedLoss(
        lambda tn, fp, fn, tp: tp / (tp + fp), np.full(4, 0.25), np.array([True, True, False, False])
    )
    assert precision.of(np.zeros(4, dtype=bool)) == np.inf
    assert np.isfinite(precision.gains(np.zeros(4, dtype=bool))).all()


def test_the_size_of_f1_and_of_errors_is_one():
    even = np.arange(10) < 5
    assert CountedLoss(F1().of_counts, np.full(10, 0.1), even).unit == pytest.approx(1.0)
    assert GainLoss(np.full(10, 0.1)).unit == 1.0


def test_class_weights_move_the_shift_of_a_pairwise_objective(rows):
    data, scores = rows
    weighted = PairwiseAUC().weighing_classes(ClassWeights((1.0, 3.0))).bind(data)
    assert weighted.values(scores, NOTHING) == PairwiseAUC().bind(data).values(scores, NOTHING)
    ratio = weighted.gains / PairwiseAUC().bind(data).gains
    assert (ratio[data.y > 0] / ratio[data.y < 0].mean()).numpy() == pytest.approx(3.0)


def test_a_penalty_keeps_the_decisions_of_its_objective(rows):
    data, _ = rows
    bound = CorrelationPenalty(F1()).bind(data)
    assert isinstance(bound.decisions, CountedLoss)
    assert not bound.counts_errors


def test_objectives_without_classes_say_so():
    with pytest.raises(ValueError, match="CorrelationPenalty takes no class_weight"):
        CorrelationPenalty(PositiveRate()).weighing_classes(ClassWeights((1.0, 2.0)))
