"""The minority's share and parity pairs as constraints: values, the metric, gradients, refinement, mini-batches."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone

from fairconstrained.constraints import MinorityShare, ParityPair
from fairconstrained.constraints._blur import blurred, within_reach
from fairconstrained.metrics import minority_share, parity_pair
from fairconstrained.objectives import PositiveRate
from fairconstrained.sampling import Sampler
from fairconstrained.surrogates import SURROGATES
from fairconstrained.views import RowLosses, Stochastic
from tests.batches import assert_unbiased, on_batches

NOTHING = np.empty(0)
each_rate = pytest.mark.parametrize("rate", ["sigmoid", "indicator"])


def constraint_of(kind, rate="sigmoid"):
    return {
        "minority": MinorityShare(0.4, minority="b", rate=rate),
        "pair": ParityPair(1.1, beta=0.7, rate=rate),
    }[kind]


@pytest.fixture(params=["minority", "pair"])
def kind(request):
    return request.param


@pytest.fixture
def data(make_data):
    return make_data((30, 17, 24), weighted=True)


@pytest.fixture
def scores(data):
    return np.random.default_rng(1).normal(size=data.n_samples) + 0.3


@pytest.mark.parametrize("smooth", [PositiveRate(), SURROGATES["smoothstep"]], ids=["sigmoid", "smoothstep"])
def test_the_blur_has_the_units_of_the_scores(data, scores, smooth):
    """Tiny scores are no constant ones, and constant ones leave the width as it is, also where rounding differs."""
    weights = data.weights.numpy()
    widths = [blurred(smooth, unit * scores, weights, 0.1).width / unit for unit in (1e-20, 1.0, 1e20)]
    np.testing.assert_allclose(widths, widths[1])
    for constant in (0.0, 1e-20, 0.3):
        assert blurred(smooth, np.full(scores.size, constant), weights, 0.1) is smooth
    assert blurred(smooth, 0.3 + 1e-16 * (scores > 0), weights, 0.1) is smooth


def test_a_margin_counts_after_values_without_one(kind, data, scores):
    """Refining keeps the sums of the rows that are known, and computes the limits anew."""
    bound, losses = constraint_of(kind).bind(data), expit(scores)
    before = bound.of_losses(losses, NOTHING)
    tightened = bound.refined(scores, blur=0.1, margin=0.01)
    assert (tightened.of_losses(losses, NOTHING) - before > 1e-4).any()


def test_a_wide_blur_reaches_all_rows_and_no_more(data, scores):
    weights = data.weights.numpy()
    wide, wider = (within_reach(PositiveRate(), scores, weights, blur) for blur in (20.0, 40.0))
    assert wider.width == pytest.approx(2 * wide.width)


def test_the_blur_is_the_deviation_of_the_slope(data, scores):
    """The slope of the stand-in, as a density, has a tenth of the deviation of the scores."""
    smooth = blurred(PositiveRate(), scores, data.weights.numpy(), 0.1)
    x = torch.linspace(-40 * smooth.width, 40 * smooth.width, 20001, dtype=torch.float64)
    density = smooth.slope(x, x).numpy()
    deviation = np.sqrt(density @ x.numpy() ** 2 / density.sum())
    mean = np.average(scores, weights=data.weights.numpy())
    expected = 0.1 * np.sqrt(np.average((scores - mean) ** 2, weights=data.weights.numpy()))
    np.testing.assert_allclose(deviation, expected, rtol=1e-6)


def measured(kind, data, scores, rate):
    rows = {"sensitive_features": data.codes, "sample_weight": data.weights.numpy(), "rate": rate}
    if kind == "minority":
        return 1 - minority_share(None, scores, minority=1, **rows)
    return parity_pair(None, scores, beta=0.7, **rows)


@each_rate
def test_the_metric_is_that_of_the_package(kind, data, scores, rate):
    bound = constraint_of(kind, rate).unchecked(data)
    value = measured(kind, data, scores, rate)
    assert bound.metric(scores) == pytest.approx(value)
    assert bound.exact(scores) == pytest.approx(value - bound.kappa)
    assert isinstance(bound, RowLosses)
    assert isinstance(bound, Stochastic)


def test_the_minority_component_is_the_formula_of_the_paper(data, scores):
    bound = constraint_of("minority").unchecked(data)
    rates = data.weights.numpy() * expit(scores)
    by_hand = 0.4 * rates.sum() - rates[data.slices[1]].sum()
    (value,) = bound.of_losses(expit(scores), NOTHING)
    assert value == pytest.approx(by_hand)
    assert np.sign(value) == np.sign(bound.exact(scores))


def test_a_refined_minority_component_is_about_the_share(data, scores):
    bound = constraint_of("minority").unchecked(data).refined(scores, blur=0.1, margin=0.0)
    assert bound.of_losses(expit(scores), NOTHING) == pytest.approx([bound.exact(scores)])


def test_the_largest_pair_component_is_the_metric(data, scores):
    bound = constraint_of("pair").unchecked(data)
    values = bound.of_losses(expit(scores), NOTHING)
    assert values.size == len(bound.component_names) == 6
    assert values.max() == pytest.approx(bound.exact(scores))
    assert bound.component_names[0] == "parity_pair[a + not b]"


def test_a_refined_indicator_has_the_values_of_the_metric(kind, data, scores):
    bound = constraint_of(kind, "indicator").unchecked(data).refined(scores, blur=0.05, margin=0.03)
    values = bound.values(torch.from_numpy(scores), torch.empty(0)).numpy()
    assert values.max() == pytest.approx(bound.exact(scores) + 0.03)
    assert bound.row_loss.width < 0.1
    again = bound.refined(np.zeros(data.n_samples), blur=0.05, margin=0.0)
    assert np.isfinite(again.row_loss.width)


@each_rate
def test_gradients(kind, data, scores, rate):
    bound = constraint_of(kind, rate).unchecked(data).refined(scores, blur=0.5, margin=0.01)
    multipliers = np.random.default_rng(2).uniform(size=len(bound.component_names))
    slope = bound.row_weights(multipliers)[0] * bound.row_loss.slope(torch.from_numpy(scores), data.y).numpy()
    for row in (0, 31, 60):
        step = np.zeros_like(scores)
        step[row] = 1e-5
        ends = [bound.values(torch.from_numpy(scores + way * step), torch.empty(0)).numpy() for way in (1, -1)]
        assert slope[row] == pytest.approx(multipliers @ (ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_mini_batches_are_unbiased(kind, data, scores):
    bound = constraint_of(kind).unchecked(data)
    batches = Sampler.of(data, 20).batches(np.random.default_rng(0), 2000)
    assert_unbiased(on_batches(bound, data, scores, batches), bound.of_losses(expit(scores), NOTHING))


def test_ignored_groups_do_not_take_part(data, scores):
    bound = MinorityShare(0.4, minority="b", ignored_groups=("c",)).unchecked(data)
    moved = scores.copy()
    moved[data.slices[2]] += 5.0
    assert bound.metric(moved) == bound.metric(scores)
    assert bound.of_losses(expit(moved), NOTHING) == pytest.approx(bound.of_losses(expit(scores), NOTHING))
    weights = data.weights.numpy()
    rates = weights * expit(scores)
    of_b, of_both = rates[data.slices[1]].sum(), rates[data.codes < 2].sum()
    assert bound.metric(scores) == pytest.approx(1 - of_b / of_both)


def test_the_smallest_group_is_the_minority(data, scores):
    assert MinorityShare(0.4).unchecked(data).minority == "b"
    assert MinorityShare(None).unchecked(data).exact(scores) <= 0


@each_rate
def test_granularity(kind, data, rate):
    bound, weights = constraint_of(kind, rate).unchecked(data), data.weights.numpy()
    of_rows = {"minority": weights, "pair": weights / np.bincount(data.codes, weights)[data.codes]}[kind]
    assert bound.granularity == pytest.approx(1e-6 if rate == "sigmoid" else of_rows.max())


def test_without_a_bound_there_is_no_component(data, scores):
    bound = ParityPair(None).unchecked(data)
    assert bound.component_names == ()
    assert bound.of_losses(expit(scores), NOTHING).size == 0
    assert bound.metric(scores) > 0


def test_the_complaint_is_about_the_minority(data):
    text = constraint_of("minority").unchecked(data).complaint(0.75)
    assert "the minority 'b' has a share of 0.25" in text
    assert "min_share=0.4" in text


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (MinorityShare(0.0), r"'min_share' parameter of MinorityShare must be a float in the range \(0.0, 1.0\)"),
        (MinorityShare(1.0), r"'min_share' parameter of MinorityShare must be a float in the range \(0.0, 1.0\)"),
        (MinorityShare(minority="z"), r"minority must be one of the groups \['a', 'b', 'c'\] or None, got 'z'"),
        (MinorityShare(minority="c", ignored_groups=("c",)), r"one of the groups \['a', 'b'\] or None, got 'c'"),
        (MinorityShare(rate="hinge"), "'rate' parameter of MinorityShare"),
        (ParityPair(-0.1), "kappa must be"),
        (ParityPair(beta=0.0), r"'beta' parameter of ParityPair must be a float in the range \(0.0, inf\)"),
        (ParityPair(beta=-0.5), r"'beta' parameter of ParityPair must be a float in the range \(0.0, inf\)"),
        (ParityPair(rate="hinge"), "'rate' parameter of ParityPair"),
    ],
)
def test_bad_input(data, constraint, message):
    with pytest.raises(ValueError, match=message):
        constraint.unchecked(data)


def test_overlapping_groups_are_refused(kind, data):
    overlapping = replace(data, unions=object())
    with pytest.raises(ValueError, match=r"do not overlap. Pass one column with the group"):
        constraint_of(kind).unchecked(overlapping)


def test_parameters_are_stored_untouched(kind):
    constraint = constraint_of(kind)
    assert clone(constraint).get_params() == constraint.get_params()
