"""Equal opportunity and equalized odds with ranks in the whole group (eqs. 42 and 45)."""

import numpy as np
import pytest
import torch

from fairconstrained.constraints import EqualizedOdds, EqualOpportunity
from fairconstrained.constraints._label_parity import BoundGroupRanks
from fairconstrained.views import DifferenceOfConvex, Stochastic
from tests.covering import each_value

NOTIONS = {EqualOpportunity: [1.0], EqualizedOdds: [1.0, -1.0]}
INTERVALS = [
    (0.0, 1.0),
    (0.0, 0.4),
    (0.25, 0.7),
    (0.6, 1.0),
    [(0.1, 0.3), (0.5, 0.9)],
    {"a": (0.0, 0.5), "b": (0.2, 0.8)},
]
each_notion = pytest.mark.parametrize("notion", NOTIONS)
each_interval = pytest.mark.parametrize("interval", INTERVALS)


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(counts=(70, 80), weighted=True)


def bound(data, notion=EqualOpportunity, kappa=0.2, **options):
    return notion(kappa, ranks="group", threshold=0.2, **options).unchecked(data)


def rates_by_hand(data, scores, interval, targets):
    """Share of the rows of every target and group at ranks in the interval that score above 0.2."""
    weights, y = data.weights.numpy(), data.y.numpy()
    rates = []
    for target in targets:
        for rows, group in zip(data.slices, data.labels, strict=True):
            pieces = np.atleast_2d(interval[group] if isinstance(interval, dict) else interval)
            own, mass = scores[rows], weights[rows] / weights[rows].sum()
            above = np.array([mass[own > s].sum() for s in own])
            parts = sum(np.clip(above + mass, a, b) - np.clip(above, a, b) for a, b in pieces)
            counted = parts * (y[rows] == target)
            rates.append(counted @ (own > 0.2) / counted.sum())
    return np.array(rates)


@each_interval
@each_notion
def test_a_refined_surrogate_is_the_gap_row_by_row(data, draw_scores, evaluate, notion, interval):
    """Its values are those of the metric where it was refined, whatever its width is."""
    targets, largest = NOTIONS[notion], []
    for seed in range(6):
        scores = draw_scores(data, seed, shift=0.2 * seed)
        rates = rates_by_hand(data, scores, interval, targets).reshape(len(targets), 2)
        expected = np.concatenate([[a - b - 0.2, b - a - 0.2] for a, b in rates])
        constraint = bound(data, notion, interval=interval).refined(scores, blur=0.1, margin=0.0)
        np.testing.assert_allclose(evaluate(constraint, "values", scores), expected, atol=1e-9)
        assert constraint.exact(scores) == pytest.approx(expected.max(), abs=1e-9)
        largest.append(expected.max())
    assert max(largest) > 0


@each_value(surrogate=["logistic", "smoothstep"], interval=INTERVALS, notion=NOTIONS)
def test_gradient_by_finite_differences(make_data, draw_scores, notion, interval, surrogate):
    """Also through the scores at the ends of the interval, which all rows next to them move."""
    data = make_data(counts=(25, 30), weighted=True)
    constraint = bound(data, notion, interval=interval, surrogate=surrogate, surrogate_width=0.7)
    combination = torch.from_numpy(np.random.default_rng(0).normal(size=len(constraint.component_names)))

    def value(s):
        return float(combination @ constraint.values(torch.from_numpy(s), torch.empty(0)))

    steepest = []
    for move in (-0.5, 0.8):  # so that the threshold is at ranks of every interval
        scores = draw_scores(data, 3) + move
        z = torch.from_numpy(scores).requires_grad_()
        (combination @ constraint.values(z, torch.empty(0))).backward()
        numeric = np.array([(value(scores + h) - value(scores - h)) / 2e-6 for h in 1e-6 * np.eye(scores.size)])
        np.testing.assert_allclose(z.grad.numpy(), numeric, atol=1e-7)
        steepest.append(np.abs(numeric).max())
    assert max(steepest) > 1e-3


def test_the_ends_of_the_interval_matter_to_the_gradient(data, draw_scores):
    """A row of the other label moves the gap, since it moves the ranks."""
    constraint = bound(data, interval=(0.25, 0.7), surrogate_width=0.5)
    scores = torch.from_numpy(draw_scores(data)).requires_grad_()
    constraint.values(scores, torch.empty(0))[0].backward()
    assert np.abs(scores.grad.numpy()[data.y.numpy() < 0]).max() > 1e-4


def test_scores_at_the_ends_are_means_of_the_rows_around_them(make_data):
    """In rows in falling order, 0.25 reaches from 0.20 to 0.30, 0.98 only from 0.96 to 1, and 0 nowhere."""
    data = make_data(counts=(100, 50))
    scores = np.random.default_rng(0).normal(size=150)
    constraint = bound(data, interval={"a": (0.25, 0.98), "b": (0.0, 0.5)})
    first, second = (np.sort(scores[rows])[::-1] for rows in data.slices)
    middle = (second[22] / 2 + second[23:27].sum() + second[27] / 2) / 5
    expected = [[first[20:30].mean(), first[96:].mean()], [0.0, middle]]
    np.testing.assert_allclose(constraint._scores_at_ends(torch.from_numpy(scores)).numpy(), expected)


def test_on_the_whole_interval_it_is_equal_opportunity(data, draw_scores, evaluate):
    plain = EqualOpportunity(0.2, threshold=0.2, surrogate_width=0.3).unchecked(data)
    constraint = bound(data, surrogate_width=0.3)
    for seed in range(3):
        scores = draw_scores(data, seed)
        np.testing.assert_allclose(
            evaluate(constraint, "values", scores), evaluate(plain, "values", scores), atol=1e-12
        )
        assert constraint.exact(scores) == pytest.approx(plain.exact(scores), abs=1e-12)


def test_a_gap_that_is_not_defined_keeps_no_bound(data, evaluate):
    """All positives of group a are in the lower half of its ranks."""
    scores = np.linspace(1, 2, data.n_samples) - 5.0 * ((data.codes == 0) & (data.y.numpy() > 0))
    fewer = int((data.y.numpy()[data.slices[0]] > 0).sum())
    assert fewer < 42  # of 70
    constraint = bound(data, interval=(0.0, 0.4))
    assert np.isnan(constraint.metric(scores))
    assert constraint.exact(scores) == pytest.approx(0.8)
    assert "no rows of a label at the ranks of the interval" in constraint.complaint(1.0)
    assert "no rows of a label" not in constraint.complaint(0.9)
    refined = constraint.refined(scores, blur=0.1, margin=0.0)
    assert np.isfinite(evaluate(refined, "values", scores)).all()
    # no bound is kept whatever the ranks are, and none is broken
    assert bound(data, kappa=None, interval=(0.0, 0.4)).exact(scores) == 0.0


def test_views_and_options(data):
    constraint = bound(data)
    assert isinstance(constraint, BoundGroupRanks)
    assert not isinstance(constraint, (DifferenceOfConvex, Stochastic))
    assert isinstance(EqualOpportunity(0.2).unchecked(data), (DifferenceOfConvex, Stochastic))
    with pytest.raises(ValueError, match=r"'ranks' parameter of EqualOpportunity .* Got 'label'"):
        EqualOpportunity(0.2, ranks="label").bind(data)
