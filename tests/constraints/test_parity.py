"""Promises of both parity constraints: the exact metric, views that agree, readable errors."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.metrics import granularity, partial_demographic_parity_gap, partial_statistical_parity_gap
from fairconstrained.sampling import Sampler
from fairconstrained.surrogates import SURROGATES, Surrogate
from fairconstrained.views import DifferenceOfConvex, Exact, FullBatch, Stochastic
from tests.batches import assert_unbiased, of_view, on_batches
from tests.covering import every_pair

INTERVALS = [(0.0, 1.0), (0.0, 0.3), (0.25, 0.7)]
PARITIES = [StatisticalParity, DemographicParity]
FORMS = [True, False]
each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=str)
each_form = pytest.mark.parametrize("normalize", FORMS, ids=["normalized", "rank gap"])
GAPS = {StatisticalParity: partial_statistical_parity_gap, DemographicParity: partial_demographic_parity_gap}


@pytest.fixture(scope="module", params=[(24, 31), (25, 20, 40)], ids=["2 groups", "3 groups"])
def data(request, make_data):
    return make_data(counts=request.param, weighted=True)


# --- exact


@every_pair(notion=PARITIES, interval=INTERVALS, normalize=FORMS)
def test_metric_is_the_one_of_the_metrics_package(notion, data, draw_scores, interval, normalize):
    constraint = notion(0.2, interval=interval, normalize=normalize).unchecked(data)
    for seed in range(5):
        scores = draw_scores(data, seed)
        expected = GAPS[notion](
            None,
            scores,
            sensitive_features=data.codes,
            sample_weight=data.weights.numpy(),
            interval=interval,
            normalize=normalize,
        )
        assert constraint.metric(scores) == pytest.approx(expected, abs=1e-12)
        assert constraint.exact(scores) == pytest.approx(expected - 0.2, abs=1e-12)


def test_smooth_rates_at_the_scores_of_a_refinement_are_computed_once(data, draw_scores, monkeypatch):
    calls, rates_at = [], Surrogate.rates_at
    monkeypatch.setattr(Surrogate, "rates_at", lambda *given: calls.append(1) or rates_at(*given))
    bound = DemographicParity(0.2).unchecked(data)
    here, there = draw_scores(data, 0), draw_scores(data, 1)
    refined = bound.refined(here, blur=0.3, margin=0.0)
    values, pull = refined.with_slopes(here.copy(), np.empty(0))
    slopes, _ = pull(np.ones(values.size))
    assert len(calls) == 1
    # without what is known, and at other scores, they are computed
    again, other_pull = replace(refined).with_slopes(here, np.empty(0))
    np.testing.assert_array_equal(again, values)
    np.testing.assert_array_equal(other_pull(np.ones(values.size))[0], slopes)
    elsewhere = refined.with_slopes(there, np.empty(0))[0]
    np.testing.assert_array_equal(elsewhere, replace(refined).with_slopes(there, np.empty(0))[0])
    assert np.abs(elsewhere - values).max() > 0.01
    here[:] = there  # as where a solver writes new scores into its array
    np.testing.assert_array_equal(refined.with_slopes(here, np.empty(0))[0], elsewhere)


def test_demographic_parity_at_a_threshold(data, draw_scores):
    scores = draw_scores(data)
    expected = partial_demographic_parity_gap(
        None, scores, sensitive_features=data.codes, sample_weight=data.weights.numpy(), threshold=0.7
    )
    assert expected > 0
    assert DemographicParity(0.2, threshold=0.7).unchecked(data).metric(scores) == pytest.approx(expected)


@every_pair(notion=PARITIES, interval=INTERVALS, normalize=FORMS)
def test_granularity_is_the_one_of_the_metrics_package(notion, data, interval, normalize):
    constraint = notion(0.4, interval=interval, normalize=normalize).unchecked(data)
    weights = data.weights.numpy()
    expected = granularity(data.codes, sample_weight=weights, interval=interval, normalize=normalize)
    assert constraint.granularity == pytest.approx(expected)


@each_form
def test_one_row_moves_the_metric_by_at_most_the_granularity(notion, data, draw_scores, normalize):
    # on the whole interval: elsewhere a pair may enter or leave the rank gap
    constraint = notion(0.2, normalize=normalize).unchecked(data)
    scores = draw_scores(data)
    before, rng = constraint.metric(scores), np.random.default_rng(0)
    changes = []
    for row in rng.permutation(data.n_samples)[:25]:
        moved = scores.copy()
        moved[row] = rng.normal(scale=3)
        changes.append(abs(constraint.metric(moved) - before))
    assert 0 < max(changes) <= constraint.granularity + 1e-12


# --- views


def test_offers_every_view_its_solvers_need(notion, data):
    constraint = notion(0.3).unchecked(data)
    assert all(isinstance(constraint, view) for view in (FullBatch, DifferenceOfConvex, Stochastic, Exact))


@every_pair(notion=PARITIES, interval=INTERVALS, normalize=FORMS, surrogate=sorted(SURROGATES))
def test_plus_minus_minus_is_the_value(notion, data, draw_scores, evaluate, interval, normalize, surrogate):
    constraint = notion(0.25, interval=interval, normalize=normalize, surrogate=surrogate, surrogate_width=0.4)
    constraint = constraint.unchecked(data)
    for seed, shift in [(0, 0.3), (1, -1.0), (2, 6.0)]:
        scores = draw_scores(data, seed, shift)
        values, plus, minus = (evaluate(constraint, view, scores) for view in ("values", "plus", "minus"))
        np.testing.assert_allclose(plus - minus, values, atol=1e-10)


@each_form
def test_views_of_a_refined_constraint_agree(notion, data, draw_scores, evaluate, normalize):
    scores = draw_scores(data, shift=0.2)
    constraint = notion(0.25, normalize=normalize).unchecked(data).refined(scores, blur=0.1, margin=0.05)
    values, plus, minus = (evaluate(constraint, view, scores) for view in ("values", "plus", "minus"))
    np.testing.assert_allclose(plus - minus, values, atol=1e-10)


def slope_of_worst(constraint, scores):
    """Gradient in the scores of the largest component."""
    scores = torch.from_numpy(scores).requires_grad_()
    values = constraint.values(scores, torch.empty(0, dtype=torch.float64))
    return torch.autograd.grad(values.max(), scores)[0].numpy()


def test_a_restoring_slope_leads_to_the_interval(data, draw_scores, evaluate):
    """With the interval between two rates, eq. 21 is constant; a step down its restoring slope lowers it."""
    constraint = DemographicParity(0.4, interval=(0.4, 0.6), surrogate_width=0.1).unchecked(data)
    scores = draw_scores(data, shift=0.0) + 4.0 * (data.codes == 1) - 2.0
    assert not slope_of_worst(constraint, scores).any()
    constraint = constraint.with_restoring_slopes()
    slope = slope_of_worst(constraint, scores)
    step = scores - 1e-3 * slope / np.abs(slope).max()
    assert evaluate(constraint, "values", step).max() < evaluate(constraint, "values", scores).max()


@every_pair(notion=PARITIES, normalize=FORMS, surrogate=sorted(SURROGATES), view=["plus", "minus"])
def test_parts_are_convex(notion, data, draw_scores, evaluate, normalize, surrogate, view):
    constraint = notion(0.25, interval=(0.25, 0.7), normalize=normalize, surrogate=surrogate, surrogate_width=0.5)
    constraint = constraint.unchecked(data)
    rng = np.random.default_rng(0)
    bends = []
    for seed in range(20):
        first, second = draw_scores(data, seed), draw_scores(data, seed + 100, -0.5)
        aux = rng.normal(size=(2, constraint.n_aux))
        ends = evaluate(constraint, view, first, aux[0]), evaluate(constraint, view, second, aux[1])
        middle = evaluate(constraint, view, (first + second) / 2, aux.mean(axis=0))
        bends.append((ends[0] + ends[1]) / 2 - middle)
    assert np.min(bends) > -1e-12
    assert np.max(bends) > 1e-4


@every_pair(notion=PARITIES, normalize=FORMS, surrogate=sorted(SURROGATES), view=["values", "plus", "minus"])
def test_gradients(notion, make_data, draw_scores, normalize, surrogate, view):
    data = make_data(counts=(7, 9), weighted=True)
    constraint = notion(0.5, interval=(0.1, 0.9), normalize=normalize, surrogate=surrogate, surrogate_width=0.7)
    constraint = constraint.unchecked(data)
    scores = torch.from_numpy(draw_scores(data, shift=0.2)).requires_grad_()
    aux = torch.from_numpy(np.random.default_rng(1).normal(size=constraint.n_aux)).requires_grad_()
    assert torch.autograd.gradcheck(lambda s, a: getattr(constraint, view)(s, a), (scores, aux))


@pytest.mark.parametrize(
    "constraint",
    [
        StatisticalParity(0.3, surrogate_width=0.3),
        StatisticalParity(0.3, interval=(0.25, 0.7), surrogate_width=0.3),
        StatisticalParity(0.3, interval=(0.25, 0.7), normalize=False, surrogate_width=0.3),
        DemographicParity(0.3, surrogate_width=0.3),
        DemographicParity(0.3, interval=(0.25, 0.7), normalize=False, surrogate_width=0.3),
    ],
)
def test_batches_are_unbiased_and_signed(constraint, make_data, draw_scores):
    """pSP everywhere; pDP where it clips no rate, for what is not linear in the rates is biased."""
    data = make_data(counts=(14, 18, 25), weighted=True)
    constraint = constraint.unchecked(data)
    scores = draw_scores(data)
    values = of_view(constraint.initial_aux(scores))
    batches = Sampler.of(data, 12).batches(np.random.default_rng(0), 600)
    assert_unbiased(on_batches(constraint, data, scores, batches, values), values(constraint, scores))


@pytest.mark.slow
def test_no_absolute_value_hides_the_sign_of_a_gap(make_data, draw_scores):
    """With a true gap of zero, the two sides of a pair average to -kappa; |gap| - kappa would stay above."""
    data = make_data(counts=(16, 16))
    constraint = DemographicParity(0.1, surrogate_width=0.1).unchecked(data)
    half = draw_scores(data)[:16]
    scores = np.concatenate([half, half])
    draws = on_batches(constraint, data, scores, Sampler.of(data, 16).batches(np.random.default_rng(0), 800))
    np.testing.assert_allclose(np.sum(draws, axis=1), -0.2, atol=1e-12)
    np.testing.assert_allclose(np.mean(draws, axis=0), -0.1, atol=0.03)


def test_a_batch_keeps_surrogate_levels_and_names(notion, data, draw_scores):
    constraint = notion(0.3).unchecked(data).refined(draw_scores(data), blur=0.1, margin=0.05)
    batch = constraint.on(next(Sampler.of(data, 20).batches(np.random.default_rng(0), 1)))
    assert batch.component_names == constraint.component_names
    assert batch.n_aux == constraint.n_aux
    assert batch.surrogate == constraint.surrogate


@each_form
@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.25, 0.7)], ids=str)
def test_integer_weights_are_repeated_rows(notion, make_data, draw_scores, evaluate, interval, normalize):
    data = make_data(counts=(25, 20, 40))
    scores = draw_scores(data)
    repeats = np.random.default_rng(0).integers(1, 4, data.n_samples)
    X, y = np.vstack(data.blocks), data.y.numpy()
    weighted = FairData.from_arrays(X, y, data.codes, data.labels, repeats.astype(float))
    columns = [np.repeat(column, repeats, axis=0) for column in (X, y, data.codes, scores)]
    repeated = FairData.from_arrays(*columns[:3], data.labels)
    one, other = (notion(0.3, interval=interval, normalize=normalize).unchecked(d) for d in (weighted, repeated))
    assert one.metric(scores) == pytest.approx(other.metric(columns[3]))
    np.testing.assert_allclose(one.initial_aux(scores), other.initial_aux(columns[3]))
    one, other = one.refined(scores, blur=0.1, margin=0.0), other.refined(columns[3], blur=0.1, margin=0.0)
    aux = np.random.default_rng(1).normal(size=min(one.n_aux, other.n_aux))
    for view in ("values", "plus", "minus"):
        first, second = (
            evaluate(c, view, s, aux if c.n_aux == aux.size else np.append(aux, np.zeros(c.n_aux - aux.size)))
            for c, s in ((one, scores), (other, columns[3]))
        )
        count = min(first.size, second.size)  # a cut that is finer than one row is made by the repeated rows only
        np.testing.assert_allclose(first[:count], second[:count], atol=1e-9)


# --- starts and refinement


@every_pair(notion=PARITIES, interval=INTERVALS, normalize=FORMS, surrogate=sorted(SURROGATES), kappa=[0.0, 0.2, 1.0])
def test_fair_aux_is_feasible_where_all_scores_are_zero(notion, data, evaluate, interval, normalize, surrogate, kappa):
    constraint = notion(kappa, interval=interval, normalize=normalize, surrogate=surrogate).unchecked(data)
    values = evaluate(constraint, "values", np.zeros(data.n_samples), constraint.fair_aux())
    assert constraint.fair_aux().shape == (constraint.n_aux,)
    assert values.max(initial=-np.inf) <= 1e-9


def test_the_papers_start_of_the_ramp(data):
    """Section G.2.2: theta_p = 1/2 - p - kappa (beta - alpha) / 2."""
    constraint = StatisticalParity(0.2, interval=(0.2, 0.7), surrogate="ramp").unchecked(data)
    np.testing.assert_allclose(constraint.fair_aux(), 0.5 - constraint.ranks - 0.2 * 0.5 / 2, atol=1e-9)


@each_form
def test_refined_surrogate_takes_its_values_from_the_exact_rates(notion, data, draw_scores, evaluate, normalize):
    scores = draw_scores(data, shift=0.2)
    refined = notion(0.25, normalize=normalize).unchecked(data).refined(scores, blur=1.0, margin=0.0)
    values = evaluate(refined, "values", scores)
    thresholds = refined.initial_aux(scores) if notion is StatisticalParity else [0.0]
    rates = np.array([[data.group_weights.numpy()[r] @ (scores[r] > t) for r in data.slices] for t in thresholds])
    if notion is DemographicParity:
        assert values.max() == pytest.approx(np.ptp(rates) - 0.25)
    else:
        upper = values.reshape(len(thresholds), data.n_groups, 2)[:, :, 1]
        np.testing.assert_allclose(upper, rates - (refined.ranks + 0.25)[:, None], atol=1e-9)


@each_form
def test_refined_constraint_is_the_same_bound_with_a_closer_surrogate(notion, data, draw_scores, normalize):
    constraint = notion(0.3, normalize=normalize).unchecked(data)
    scores = draw_scores(data, shift=2.0)
    errors = []
    for blur in (1.0, 0.1, 0.01):
        refined = constraint.refined(scores, blur=blur, margin=0.1)
        assert refined.exact(scores) == constraint.exact(scores)
        assert (refined.kappa, refined.granularity) == (constraint.kappa, constraint.granularity)
        assert refined.component_names[: len(constraint.component_names)] == constraint.component_names
        errors.append(refined.surrogate.width)
    assert errors == sorted(errors, reverse=True)
    assert constraint.surrogate.width == 1.0  # the paper's; nothing was changed in place


def test_margin_tightens_the_surrogate(notion, data, draw_scores, evaluate):
    constraint = notion(0.3).unchecked(data)
    scores = draw_scores(data, shift=0.0)
    values = [
        evaluate(constraint.refined(scores, blur=0.1, margin=margin), "values", scores, aux=None).max()
        for margin in (-0.1, 0.0, 0.1)
    ]
    assert values[0] < values[1] < values[2]


def test_a_width_that_the_user_chose_stays(notion, data, draw_scores):
    constraint = notion(0.3, surrogate_width=0.7).unchecked(data)
    assert constraint.surrogate.width == 0.7
    assert constraint.refined(draw_scores(data), blur=0.01, margin=0.0).surrogate.width == 0.7


def test_constant_scores_can_be_refined(notion, data):
    constraint = notion(0.3).unchecked(data)
    scores = np.full(data.n_samples, 0.4)
    refined = constraint.refined(scores, blur=0.1, margin=0.0)
    assert refined.metric(scores) == 0.0
    assert np.isfinite(refined.surrogate.width)
    assert refined.surrogate.width > 0


# --- errors


@pytest.mark.parametrize("kappa", [-0.1, 1.5, float("nan"), "0.1", True])
def test_kappa_out_of_range(notion, data, kappa):
    with pytest.raises(ValueError, match=r"kappa must be (a number )?in \[0, 1\]"):
        notion(kappa).unchecked(data)


def test_kappa_none_bounds_nothing_and_needs_no_resolution(notion, make_data, draw_scores):
    data = make_data(counts=(3, 60))
    constraint = notion(None, interval=(0.0, 0.1)).bind(data)
    for shift in (0.0, 9.0):
        assert constraint.exact(draw_scores(data, shift=shift)) <= 0


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ((0.5, 0.2), "alpha < beta"),
        ((0.2, 0.2), "alpha < beta"),
        ((0.0, 5.0), r"lie in \[0, 1\]"),
        ((0.0, float("nan")), r"lie in \[0, 1\]"),
        ([(0.0, 0.3), (0.2, 0.6)], "not overlap"),
        ("top", "pair"),
        (None, "pair"),
    ],
)
def test_interval_that_is_none(notion, data, interval, message):
    with pytest.raises(ValueError, match=message):
        notion(0.3, interval=interval).unchecked(data)


def test_unknown_surrogate_lists_the_known_ones(notion, data):
    with pytest.raises(ValueError, match=r"'surrogate' parameter of .*'ramp'.* Got 'sigmoid' instead"):
        notion(0.3, surrogate="sigmoid").unchecked(data)


@pytest.mark.parametrize("width", [0.0, -1.0, "wide", float("nan")])
def test_surrogate_width_must_be_positive(notion, data, width):
    with pytest.raises(ValueError, match=rf"'surrogate_width' parameter of .*'auto'.* Got {width!r} instead"):
        notion(0.3, surrogate_width=width).unchecked(data)


@pytest.mark.parametrize("n_levels", [0, -3, "many"])
def test_number_of_levels(data, n_levels):
    with pytest.raises(ValueError, match=rf"'n_levels' parameter of .* Got {n_levels!r} instead"):
        StatisticalParity(0.3, n_levels=n_levels).unchecked(data)


def test_a_kappa_that_the_groups_cannot_resolve_prints_the_counts(notion, make_data):
    data = make_data(counts=(9, 60))
    message = r"no row counts more than 0.1, that is at least 10 rows .* fewer rows: \{'a': 9\}. "
    with pytest.raises(ValueError, match=message + "Pass more rows, or raise kappa"):
        notion(0.1).bind(data)
    with pytest.raises(ValueError, match=r"at least 20 rows .* \{'a': 19\}.*, widen the interval, or raise kappa"):
        notion(0.1, interval=(0.0, 0.5)).bind(make_data(counts=(19, 60)))
    notion(0.1).bind(make_data(counts=(10, 60)))
    notion(0.1, interval=(0.0, 0.5), normalize=False).bind(make_data(counts=(10, 60)))


def test_parameters_are_stored_untouched_and_cloned(notion):
    constraint = notion(0.1, interval=[0.0, 0.5], surrogate="ramp", surrogate_width=2)
    assert constraint.interval == [0.0, 0.5]
    assert clone(constraint).get_params() == constraint.get_params()
