"""The correlation penalty: its value by numpy, its slope by finite differences, and its limits."""

import numpy as np
import pytest
import torch

from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.objectives import CorrelationPenalty, Hinge, Logistic, PairwiseAUC, ZeroOne
from fairconstrained.views import DifferenceOfConvex


def weighted_correlation(scores, member, weights):
    covariance = np.cov(scores, np.where(member, 1.0, -1.0), aweights=weights, ddof=0)
    return covariance[0, 1] / np.sqrt(covariance[0, 0] * covariance[1, 1])


@pytest.mark.parametrize("counts", [(23, 31), (9, 20, 14)])
@pytest.mark.parametrize("protected", ["a", "b"])
@pytest.mark.parametrize("weighted", [False, True])
def test_value(make_data, counts, protected, weighted):
    data = make_data(counts, weighted=weighted)
    scores = torch.from_numpy(np.random.default_rng(1).normal(size=data.n_samples) + data.codes)
    bound = CorrelationPenalty(Logistic(), 0.7, protected, smoothing=1e-6).bind(data)
    member = data.codes == data.labels.index(protected)
    expected = weighted_correlation(scores.numpy(), member, data.weights.numpy())
    assert float(bound.correlation(scores)) == pytest.approx(expected, abs=1e-12)
    value = Logistic().bind(data).values(scores, scores[:0]) + 0.7 * abs(expected)
    assert bound.values(scores, scores[:0]).item() == pytest.approx(value.item(), abs=1e-6)


@pytest.mark.parametrize("base", [Logistic(), PairwiseAUC()], ids=["logistic", "auc"])
@pytest.mark.parametrize("smoothing", [1e-3, 0.1])
def test_gradient(make_data, base, smoothing):
    data = make_data(weighted=True)
    bound = CorrelationPenalty(base, 2.0, smoothing=smoothing).bind(data)
    scores = torch.from_numpy(np.random.default_rng(2).normal(size=data.n_samples)).requires_grad_()
    bound.values(scores, scores[:0]).sum().backward()
    step = 1e-6
    with torch.no_grad():
        ends = [
            [bound.values(scores + sign * step * row, scores[:0]).item() for sign in (1, -1)]
            for row in torch.eye(data.n_samples, dtype=torch.float64)
        ]
    slopes = [(up - down) / (2 * step) for up, down in ends]
    np.testing.assert_allclose(scores.grad.numpy(), slopes, atol=1e-7)


def test_rounding_is_below_by_at_most_the_smoothing(make_data):
    data = make_data()
    bound = CorrelationPenalty(weight=3.0, smoothing=0.05).bind(data)
    for shift in (-1.0, -0.1, 0.0, 0.3):
        scores = torch.from_numpy(np.random.default_rng(0).normal(size=data.n_samples) + shift * data.codes)
        penalty = (bound.values(scores, scores[:0]) - bound.base.values(scores, scores[:0])).item()
        exact = 3.0 * abs(float(bound.correlation(scores)))
        assert exact - 3.0 * 0.05 <= penalty <= exact


def test_scale_and_shift_of_the_scores_do_not_matter(make_data):
    data = make_data()
    bound = CorrelationPenalty().bind(data)
    scores = torch.from_numpy(np.random.default_rng(0).normal(size=data.n_samples))
    assert float(bound.correlation(-3 * scores + 7)) == pytest.approx(-float(bound.correlation(scores)))


@pytest.mark.parametrize("level", [0.0, 0.1, 1e9])
def test_constant_scores_have_no_correlation(make_data, level):
    bound = CorrelationPenalty().bind(make_data())
    scores = torch.full((54,), level, dtype=torch.float64, requires_grad=True)
    value = bound.correlation(scores)
    value.backward()
    assert value.item() == 0.0
    assert not scores.grad.any()


def test_nothing_to_penalise_is_the_objective_itself(make_data):
    one, two = make_data((40,)), make_data()
    assert CorrelationPenalty(Logistic(), 1.0).bind(one).loss == Logistic()
    assert CorrelationPenalty(Logistic(), 0.0).bind(two).loss == Logistic()


def test_path_ends_at_the_objective():
    penalty = CorrelationPenalty(Hinge(), 2.0)
    path = penalty.path()
    assert path[: len(Hinge().path())] == Hinge().path()
    assert path[-1] == penalty
    assert path[-2].smoothing > penalty.smoothing
    assert CorrelationPenalty(smoothing=0.5).path() == (Logistic(), CorrelationPenalty(smoothing=0.5))


def test_groups_are_not_moved_on_their_own_behind_the_penalty(make_data):
    data = make_data()
    assert ZeroOne().bind(data).counts_errors
    bound = CorrelationPenalty(ZeroOne()).bind(data)
    assert bound.gains is not None
    assert not bound.counts_errors


def test_errors(make_data):
    with pytest.raises(ValueError, match="weight must be a finite number of at least 0"):
        CorrelationPenalty(weight=-1.0)
    with pytest.raises(ValueError, match="smoothing must be a finite number above 0"):
        CorrelationPenalty(smoothing=0.0)
    with pytest.raises(ValueError, match=r"one of the groups \['a', 'b'\] or None, got 'x'"):
        CorrelationPenalty(protected="x").bind(make_data())
    with pytest.raises(ValueError, match="more than two groups"):
        CorrelationPenalty().bind(make_data((9, 9, 9)))


def test_solvers_of_differences_of_convex_functions_do_not_take_it(make_data, make_problem):
    problem = make_problem(make_data(), loss=CorrelationPenalty())
    assert {"idca", "stochastic_idca"}.isdisjoint(problem.working_solvers())
    with pytest.raises(IncompatibleProblem, match="DifferenceOfConvex, which 'correlation_penalty' does not offer"):
        problem.view(DifferenceOfConvex)
