"""The bound on the group AUC gap: the exact metric, views that agree, a split that is convex, solvers that use it."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from fairconstrained import AUCFairClassifier, PartialParityClassifier
from fairconstrained.constraints import GroupAUC
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import granularity, partial_group_auc_gap
from fairconstrained.sampling import Sampler
from fairconstrained.solvers import IDCA, AugmentedLagrangian, Status
from fairconstrained.surrogates import SURROGATES
from fairconstrained.views import DifferenceOfConvex, Exact, FullBatch, Stochastic
from tests.batches import assert_unbiased, on_batches

UNION = [(0.0, 0.15), (0.4, 0.75)]
BY_GROUP = {"a": (0.0, 0.5), "b": [(0.2, 0.45), (0.6, 1.0)]}
INTERVALS = [(0.0, 1.0), (0.0, 0.3), (0.25, 0.7), (0.6, 1.0), UNION]
each_interval = pytest.mark.parametrize("interval", INTERVALS, ids=str)
each_surrogate = pytest.mark.parametrize("surrogate", sorted(SURROGATES))
NO_AUX = torch.empty(0, dtype=torch.float64)


@pytest.fixture(scope="module", params=[(24, 31), (25, 20, 40)], ids=["2 groups", "3 groups"])
def data(request, make_data):
    return make_data(counts=request.param, weighted=True)


@pytest.fixture(scope="module")
def pair(make_data):
    return make_data(counts=(24, 31), weighted=True)


def gap(data, scores, interval):
    """The metric as the user computes it."""
    groups = np.array(data.labels)[data.codes]
    return partial_group_auc_gap(
        None, scores, sensitive_features=groups, sample_weight=data.weights.numpy(), interval=interval
    )


def within(scores, weights, pieces):
    """Weights of the rows inside the pieces, of sum one, for distinct scores."""
    order = np.argsort(-scores)
    ends = np.cumsum(weights[order])
    inside = sum(np.clip(ends, a, b) - np.clip(ends - weights[order], a, b) for a, b in pieces)
    weights = np.empty_like(scores)
    weights[order] = inside / inside.sum()
    return weights


def auc_by_pairs(constraint, scores, first, second, pieces):
    """The surrogate of one ordered pair of groups, all pairs of rows formed."""
    data = constraint.data
    own, other = (data.slices[g] for g in (first, second))
    weights = data.groups.weights.numpy()
    sigma = constraint.surrogate.value(
        torch.from_numpy((scores[own][:, None] - scores[other]) / constraint.surrogate.width)
    ).numpy()
    u, v = (within(scores[rows], weights[rows], pieces[g]) for rows, g in ((own, first), (other, second)))
    return u @ sigma @ v


# --- exact


@each_interval
def test_metric_and_granularity_are_those_of_the_metrics_package(data, draw_scores, interval):
    constraint = GroupAUC(0.3, interval=interval).unchecked(data)
    for seed in range(3):
        scores = draw_scores(data, seed).round(seed)  # with and without ties
        assert constraint.metric(scores) == pytest.approx(gap(data, scores, interval), abs=1e-12)
        assert constraint.exact(scores) == pytest.approx(gap(data, scores, interval) - 0.3, abs=1e-12)
    expected = granularity(data.codes, sample_weight=data.weights.numpy(), interval=interval)
    assert constraint.granularity == pytest.approx(expected)


def test_intervals_by_group(pair, draw_scores):
    constraint = GroupAUC(0.3, interval=BY_GROUP).unchecked(pair)
    scores = draw_scores(pair)
    assert constraint.metric(scores) == pytest.approx(gap(pair, scores, BY_GROUP))
    expected = granularity(np.array(pair.labels)[pair.codes], sample_weight=pair.weights.numpy(), interval=BY_GROUP)
    assert constraint.granularity == pytest.approx(expected)


# --- surrogate


@each_interval
@each_surrogate
def test_values_are_means_over_pairs(data, draw_scores, evaluate, interval, surrogate):
    constraint = GroupAUC(0.2, interval=interval, surrogate=surrogate, surrogate_width=0.4).unchecked(data)
    scores = draw_scores(data)
    pieces = [np.atleast_2d(interval)] * data.n_groups
    first, second = np.triu_indices(data.n_groups, 1)
    aucs = [auc_by_pairs(constraint, scores, g, h, pieces) for g, h in zip(first, second, strict=True)]
    mirrored = [auc_by_pairs(constraint, scores, h, g, pieces) for g, h in zip(first, second, strict=True)]
    expected = np.array([*aucs, *mirrored]) - 0.5 - 0.2
    np.testing.assert_allclose(evaluate(constraint, "values", scores), expected, atol=1e-6)


def test_values_with_intervals_by_group(pair, draw_scores, evaluate):
    constraint = GroupAUC(0.2, interval=BY_GROUP, surrogate_width=0.4).unchecked(pair)
    scores = draw_scores(pair)
    auc = auc_by_pairs(constraint, scores, 0, 1, [[(0.0, 0.5)], BY_GROUP["b"]])
    np.testing.assert_allclose(evaluate(constraint, "values", scores), [auc - 0.7, 0.3 - auc], atol=1e-9)


@each_interval
@each_surrogate
def test_a_narrow_surrogate_is_the_metric(data, draw_scores, evaluate, interval, surrogate):
    scores = draw_scores(data)
    constraint = GroupAUC(0.2, interval=interval, surrogate=surrogate, surrogate_width=1e-9).unchecked(data)
    assert evaluate(constraint, "values", scores).max() == pytest.approx(constraint.exact(scores), abs=1e-6)


def test_names(data):
    names = GroupAUC(0.2).unchecked(data).component_names
    if data.n_groups == 2:
        assert names == ("group_auc[a over b]", "group_auc[b over a]")
    else:
        assert names[1] == "group_auc[a over c]"
        assert names[4] == "group_auc[c over a]"
        assert len(set(names)) == 6


def test_one_group_has_no_components(make_data, evaluate):
    data = make_data(counts=(30,))
    scores = np.arange(30.0)
    constraint = GroupAUC(0.2, interval=(0.1, 0.5)).unchecked(data).refined(scores, blur=0.1, margin=0.0)
    assert constraint.component_names == ()
    assert constraint.metric(scores) == 0.0
    for view in ("values", "plus", "minus"):
        assert evaluate(constraint, view, scores).shape == (0,)


# --- views


def test_mini_batches_only_on_the_whole_interval(data):
    always = (FullBatch, DifferenceOfConvex, Exact)
    for interval, batches in [((0.0, 1.0), True), ([(0.0, 0.3), (0.3, 1.0)], True), ((0.0, 0.9), False)]:
        constraint = GroupAUC(0.3, interval=interval).unchecked(data)
        assert all(isinstance(constraint, view) for view in always)
        assert isinstance(constraint, Stochastic) is batches


@pytest.mark.parametrize("interval", [*INTERVALS, BY_GROUP], ids=str)
@each_surrogate
def test_plus_minus_minus_is_the_value(pair, draw_scores, evaluate, interval, surrogate):
    constraint = GroupAUC(0.1 if interval == (0.0, 1.0) else 0.3, interval=interval, surrogate=surrogate).unchecked(
        pair
    )
    for seed, shift, decimals in [(0, 0.3, 8), (1, -1.0, 1), (2, 6.0, 8)]:
        scores = draw_scores(pair, seed, shift).round(decimals)
        for refined in (constraint, constraint.refined(scores + 0.1 * scores**2, blur=0.3, margin=0.05)):
            values, plus, minus = (evaluate(refined, view, scores) for view in ("values", "plus", "minus"))
            assert values.shape == (2,)
            np.testing.assert_allclose(plus - minus, values, atol=1e-6)
            optimism = np.array([0.1, 0.0])
            stricter = refined.with_optimism(optimism)
            moved = evaluate(stricter, "plus", scores) - evaluate(stricter, "minus", scores)
            np.testing.assert_allclose(moved, values + optimism, atol=1e-6)


@pytest.mark.parametrize("interval", [*INTERVALS, BY_GROUP], ids=str)
@each_surrogate
@pytest.mark.parametrize("view", ["plus", "minus"])
def test_parts_are_convex(pair, draw_scores, evaluate, interval, surrogate, view):
    constraint = GroupAUC(0.3, interval=interval, surrogate=surrogate, surrogate_width=0.5).unchecked(pair)
    bends = []
    for seed in range(4):
        # half of the segments are long, half so short that few rows change their order
        first = draw_scores(pair, seed)
        second = first + (draw_scores(pair, seed + 100, -0.5) - first) * (1.0 if seed % 2 else 0.05)
        ends = evaluate(constraint, view, first), evaluate(constraint, view, second)
        bends.append((ends[0] + ends[1]) / 2 - evaluate(constraint, view, (first + second) / 2))
    assert np.min(bends) > -1e-6
    assert np.max(bends) > 1e-3


@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.2, 0.7), UNION], ids=str)
@each_surrogate
@pytest.mark.parametrize("view", ["values", "plus", "minus"])
def test_gradients(make_data, draw_scores, interval, surrogate, view):
    data = make_data(counts=(7, 9), weighted=True)
    constraint = GroupAUC(0.5, interval=interval, surrogate=surrogate, surrogate_width=0.7).unchecked(data)
    scores = torch.from_numpy(draw_scores(data, shift=0.2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: getattr(constraint, view)(s, NO_AUX), (scores,), atol=1e-6)


def test_batches_are_unbiased(make_data, draw_scores):
    data = make_data(counts=(14, 18, 25), weighted=True)
    constraint = GroupAUC(0.3, surrogate_width=0.3).unchecked(data)
    scores = draw_scores(data)
    constraint = constraint.refined(scores, blur=0.1, margin=0.05)
    full = constraint.values(torch.from_numpy(scores), NO_AUX).numpy()
    batches = Sampler.of(data, 12).batches(np.random.default_rng(0), 250)
    assert_unbiased(on_batches(constraint, data, scores, batches), full)


@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.25, 0.7)], ids=str)
def test_integer_weights_are_repeated_rows(make_data, draw_scores, evaluate, interval):
    data = make_data(counts=(25, 20, 40))
    scores = draw_scores(data)
    repeats = np.random.default_rng(0).integers(1, 4, data.n_samples)
    X, y = np.vstack(data.blocks), data.y.numpy()
    weighted = FairData.from_arrays(X, y, data.codes, data.labels, repeats.astype(float))
    columns = [np.repeat(column, repeats, axis=0) for column in (X, y, data.codes, scores)]
    repeated = FairData.from_arrays(*columns[:3], data.labels)
    one, other = (GroupAUC(0.3, interval=interval).unchecked(d) for d in (weighted, repeated))
    assert one.metric(scores) == pytest.approx(other.metric(columns[3]))
    one, other = one.refined(scores, blur=0.1, margin=0.0), other.refined(columns[3], blur=0.1, margin=0.0)
    for view in ("values", "plus", "minus"):
        first, second = evaluate(one, view, 1.1 * scores), evaluate(other, view, 1.1 * columns[3])
        np.testing.assert_allclose(first, second, atol=1e-9)


# --- refinement


@each_interval
@each_surrogate
def test_refined_surrogate_takes_its_value_from_the_metric(data, draw_scores, evaluate, interval, surrogate):
    scores = draw_scores(data, shift=0.2)
    for blur, margin in [(1.0, 0.0), (0.05, 0.1)]:
        refined = GroupAUC(0.25, interval=interval, surrogate=surrogate).unchecked(data)
        refined = refined.refined(scores, blur=blur, margin=margin)
        assert evaluate(refined, "values", scores).max() == pytest.approx(refined.exact(scores) + margin, abs=1e-9)
        assert refined.surrogate.width * refined.surrogate.spread == pytest.approx(
            blur * np.sqrt(np.cov(scores, aweights=data.weights, ddof=0))
        )


def test_a_width_that_the_user_chose_stays(data, draw_scores):
    constraint = GroupAUC(0.3, surrogate_width=0.7).unchecked(data)
    assert constraint.refined(draw_scores(data), blur=0.01, margin=0.0).surrogate.width == 0.7


def test_constant_scores_are_feasible_and_can_be_refined(data, evaluate):
    scores = np.full(data.n_samples, 0.4)
    constraint = GroupAUC(0.2, interval=(0.1, 0.4)).unchecked(data)
    refined = constraint.refined(scores, blur=0.1, margin=0.0)
    for each in (constraint, refined):
        assert each.metric(scores) == 0.0
        np.testing.assert_allclose(evaluate(each, "values", scores), -0.2, atol=1e-9)
    assert refined.surrogate.width > 0


def test_offsets_are_one_for_all_groups(data, draw_scores):
    constraint = GroupAUC(0.2).unchecked(data)
    scores, gains = draw_scores(data, shift=2.0) - 5.0, (data.weights * data.y).numpy()
    offsets = constraint.offsets(scores, gains, 0.0, shared=False)
    assert offsets.shape == (data.n_groups,)
    assert np.ptp(offsets) == 0
    assert gains @ (scores + offsets[0] > 0) > gains @ (scores > 0)


# --- solvers


@pytest.mark.slow
@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.0, 0.4), UNION], ids=str)
def test_augmented_lagrangian_meets_kappa(make_data, make_problem, interval):
    data = make_data(counts=(150, 200), shift=0.8, weighted=True)
    free = make_problem(data)
    unbounded = AugmentedLagrangian().solve(free, None, np.random.default_rng(0))
    constraint = GroupAUC(0.05, interval=interval).unchecked(data)
    before = constraint.metric(free.scores(unbounded.model_state))
    assert before > 0.15
    problem = make_problem(data, constraint)
    result = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0))
    reached = constraint.metric(problem.scores(result.model_state))
    assert reached <= 0.05 + constraint.granularity
    assert reached > 0.03  # no more is given away than was asked for
    assert unbounded.objective < result.objective < 0.6931  # better than constant scores
    assert max(result.multipliers.values()) > 0


def test_three_groups(make_data, make_problem):
    data = make_data(counts=(100, 120, 90), shift=0.6)
    constraint = GroupAUC(0.05).unchecked(data)
    problem = make_problem(data, constraint)
    result = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0))
    assert result.status == Status.OPTIMAL
    assert constraint.metric(problem.scores(result.model_state)) <= 0.05 + constraint.granularity


@pytest.mark.slow
@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.1, 0.6)], ids=str)
def test_idca_improves_from_constant_scores(make_data, make_problem, interval):
    data = make_data(counts=(40, 50), shift=0.8)
    constraint = GroupAUC(0.1, interval=interval, surrogate="ramp", surrogate_width=1.0).unchecked(data)
    problem = make_problem(data, constraint)
    result = IDCA(max_outer=4, max_inner=40).solve(problem, None, np.random.default_rng(0))
    scores = problem.scores(result.model_state)
    values = constraint.values(torch.from_numpy(scores), NO_AUX)
    assert result.objective < 0.69
    assert values.max() <= 2e-3


# --- errors


@pytest.mark.parametrize("model", [PartialParityClassifier(0.03, constraint="group_auc"), AUCFairClassifier(0.03)])
def test_slopes_need_no_graph(model, monkeypatch):
    """A graph takes longer than the arithmetic, and loads modules for a second in the first fit."""
    X, y, groups = make_biased_classification(1000, 10, random_state=0)
    monkeypatch.setattr(torch.autograd, "grad", lambda *arguments, **options: pytest.fail("a graph was used"))
    assert clone(model).fit(X, y, sensitive_features=groups).status_ == "optimal"


@pytest.mark.parametrize("kappa", [-0.1, 1.5, float("nan"), "0.1", True])
def test_kappa_out_of_range(data, kappa):
    with pytest.raises(ValueError, match=r"kappa must be (a number )?in \[0, 0.5\]"):
        GroupAUC(kappa).unchecked(data)


def test_kappa_above_one_half_says_why(data):
    with pytest.raises(ValueError, match=r"in \[0, 0.5\], got 0.6: it bounds a gap of AUCs"):
        GroupAUC(0.6).unchecked(data)
    GroupAUC(0.5).unchecked(data)


def test_kappa_none_bounds_nothing_and_needs_no_resolution(make_data, draw_scores):
    data = make_data(counts=(3, 60))
    constraint = GroupAUC(None, interval=(0.0, 0.1)).bind(data)
    for shift in (0.0, 9.0):
        assert constraint.exact(draw_scores(data, shift=shift)) <= 0


def test_a_kappa_that_the_groups_cannot_resolve_prints_the_counts(make_data):
    with pytest.raises(ValueError, match=r"group_auc (.*) at least 20 rows (.*) \{'a': 19\}.*, widen the interval, or"):
        GroupAUC(0.1, interval=(0.0, 0.5)).bind(make_data(counts=(19, 60)))
    GroupAUC(0.1, interval=(0.0, 0.5)).bind(make_data(counts=(20, 60)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": (0.5, 0.2)}, "alpha < beta"),
        ({"interval": {"a": (0.0, 0.5)}}, "one entry for each of the groups"),
        ({"surrogate": "sigmoid"}, "'surrogate' parameter of GroupAUC"),
        ({"surrogate_width": 0.0}, "'surrogate_width' parameter of GroupAUC"),
    ],
)
def test_options_that_are_none(data, options, message):
    with pytest.raises(ValueError, match=message):
        GroupAUC(0.2, **options).unchecked(data)


def test_parameters_are_stored_untouched_and_cloned():
    constraint = GroupAUC(0.1, interval=[0.0, 0.5], surrogate="ramp", surrogate_width=2)
    assert constraint.interval == [0.0, 0.5]
    assert clone(constraint).get_params() == constraint.get_params()
