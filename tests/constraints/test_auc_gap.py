"""The bound on a difference of two AUCs: the exact metric by scikit-learn, the smooth one by all pairs of rows."""

from itertools import combinations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from fairconstrained.constraints import AUCGap
from fairconstrained.constraints.auc_sets import RESOLUTION, AUCSets
from fairconstrained.data import FairData
from fairconstrained.metrics.auc_gaps import centred_aucs
from fairconstrained.sampling import Sampler
from fairconstrained.surrogates import SURROGATES
from fairconstrained.views import Exact, FullBatch, Stochastic
from tests.batches import assert_unbiased, on_batches

#: The four sets as the paper writes them, for the group a and the other rows b; P and N are positive and negative.
PAPER = {
    "group_auc": lambda a, b, P, N: (a, b, a | b, a | b),
    "inter_group": lambda a, b, P, N: (a & P, b & N, b & P, a & N),
    "intra_group": lambda a, b, P, N: (a & P, a & N, b & P, b & N),
    "positive_equality": lambda a, b, P, N: (a & P, P, P | N, P | N),
    "negative_equality": lambda a, b, P, N: (a & N, N, P | N, P | N),
    "bpsn_bnsp": lambda a, b, P, N: (P, a & N, a & P, N),
}
OF_PAIRS = {"group_auc", "inter_group", "intra_group"}
NO_AUX = torch.empty(0, dtype=torch.float64)

each_metric = pytest.mark.parametrize("metric", PAPER)
each_count = pytest.mark.parametrize("counts", [(24, 31), (25, 20, 30)], ids=["two groups", "three groups"])
each_protected = pytest.mark.parametrize("protected", [None, "b"])


def sets_of(metric, data, protected):
    """Masks of every difference, and the names of its two sides."""
    P, groups = data.y.numpy() > 0, [data.codes == code for code in range(data.n_groups)]
    if protected is not None:
        sides = [(data.labels.index(protected), None)]
    elif metric in OF_PAIRS:
        sides = list(combinations(range(data.n_groups), 2))
    else:
        sides = [(code, None) for code in range(data.n_groups)]
    sets = [PAPER[metric](groups[a], ~groups[a] if b is None else groups[b], P, ~P) for a, b in sides]
    if metric == "group_auc":  # everything against everything is one half, also where two of three groups are compared
        sets = [(*four[:2], np.ones_like(P), np.ones_like(P)) for four in sets]
    names = [(data.labels[a], "others" if b is None else data.labels[b]) for a, b in sides]
    return sets, names


def auc(scores, weights, above, below):
    """scikit-learn's AUC, for sets that may overlap: a row of both counts in both."""
    first, second = np.flatnonzero(above), np.flatnonzero(below)
    rows = np.concatenate([first, second])
    labels = np.repeat([1, 0], [first.size, second.size])
    return roc_auc_score(labels, scores[rows], sample_weight=weights[rows])


def smooth_auc(constraint, scores, above, below):
    """The surrogate of an AUC, all pairs formed; a set is exactly even with itself."""
    if np.array_equal(above, below):
        return 0.5
    kernel, width = constraint.surrogate.value, constraint.surrogate.width
    weights = constraint.data.weights.numpy()
    values = kernel(torch.from_numpy((scores[above][:, None] - scores[below]) / width)).numpy()
    pairs = np.outer(weights[above], weights[below])
    return (pairs * values).sum() / pairs.sum()


def signed_gaps(of, sets):
    return np.array([of(*four[:2]) - of(*four[2:]) for four in sets])


def exact_gaps(data, scores, sets):
    return signed_gaps(lambda a, b: auc(scores, data.weights.numpy(), a, b), sets)


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(counts=(25, 20, 30), weighted=True)


# --- exact


@each_metric
@each_count
@each_protected
def test_metric_is_scikit_learn_on_the_sets_of_the_paper(make_data, draw_scores, metric, counts, protected):
    data = make_data(counts=counts, weighted=True)
    sets, _ = sets_of(metric, data, protected)
    constraint = AUCGap(0.1, constraint=metric, protected=protected).unchecked(data)
    for decimals in (8, 1):  # without and with ties
        scores = draw_scores(data, decimals).round(decimals)
        expected = np.abs(exact_gaps(data, scores, sets)).max()
        assert constraint.metric(scores) == pytest.approx(expected, abs=1e-12)
        assert constraint.exact(scores) == pytest.approx(expected - 0.1, abs=1e-12)


@each_metric
@each_count
@each_protected
def test_names_of_the_components(make_data, metric, counts, protected):
    data = make_data(counts=counts)
    constraint = AUCGap(0.1, constraint=metric, protected=protected).unchecked(data)
    _, names = sets_of(metric, data, protected)
    expected = [f"{metric}[{a} - {b}]" for a, b in names] + [f"{metric}[{b} - {a}]" for a, b in names]
    assert list(constraint.component_names) == expected
    assert constraint.name == metric
    assert constraint.bounds_metric


def test_rows_are_sorted_once_for_all_that_is_asked_at_the_same_scores(make_data, draw_scores, monkeypatch):
    """Under any bound: sorting is most of the time that the metric takes."""
    sorted_scores = []

    def counted(scores, *others):
        sorted_scores.append(scores.copy())
        return centred_aucs(scores, *others)

    monkeypatch.setattr("fairconstrained.constraints.auc_sets.centred_aucs", counted)
    data = make_data(counts=(25, 20, 30))
    constraint, scores = AUCGap(0.1).unchecked(data), draw_scores(data)
    looser = constraint.with_kappa(0.2).refined(scores, blur=0.1, margin=0.0)
    assert constraint.exact(scores) == pytest.approx(looser.exact(scores) + 0.1)
    assert constraint.metric(scores) == constraint.differences(scores).max()
    scores *= -1  # the same array
    assert constraint.metric(scores) == AUCGap(0.1).unchecked(data).metric(scores)
    assert len(sorted_scores) == 3
    np.testing.assert_array_equal(sorted_scores[1], -sorted_scores[0])


def test_by_hand(make_data):
    """a+ {8, 6}, a- {7, 2}; b+ {6, 3}, b- {4, 1}: xAUC 4/4 and 2/4."""
    y, codes = np.array([1, 1, -1, -1, 1, 1, -1, -1.0]), np.repeat([0, 1], 4)
    data = FairData.from_arrays(np.zeros((8, 1)), y, codes, ("a", "b"))
    scores = np.array([8, 6, 7, 2, 6, 3, 4, 1.0])[data.order]
    constraint = AUCGap(0.25).unchecked(data)
    assert constraint.metric(scores) == 0.5
    assert constraint.exact(scores) == 0.25
    assert constraint.granularity == pytest.approx(2 / 4)  # one of four pairs, in either AUC


@each_metric
def test_constant_scores_are_fair_to_the_last_bit(make_data, evaluate, metric):
    data = make_data(counts=(7, 9, 12), weighted=True)
    scores = np.full(data.n_samples, 0.3)
    constraint = AUCGap(0.2, constraint=metric).unchecked(data)
    for each in (constraint, constraint.refined(scores, blur=0.1, margin=0.0)):
        assert each.metric(scores) == 0.0
        np.testing.assert_allclose(evaluate(each, "values", scores), -0.2, atol=1e-9)


@each_metric
def test_granularity_is_what_a_pair_of_rows_counts(data, metric):
    weights = data.weights.numpy()

    def heaviest(above, below):
        if np.array_equal(above, below):  # everything against itself is one half
            return 0.0
        return weights[above].max() * weights[below].max() / (weights[above].sum() * weights[below].sum())

    sets, _ = sets_of(metric, data, "a")
    (expected,) = signed_gaps(lambda a, b: heaviest(a, b), sets) + 2 * np.array([heaviest(*sets[0][2:])])
    constraint = AUCGap(0.1, constraint=metric, protected="a").unchecked(data)
    assert constraint.granularity == pytest.approx(expected)
    assert 0 < constraint.granularity < 0.1


# --- masks


def draw_masks(rng, n):
    """Four overlapping sets in the caller's order; some rows are in none of them."""
    masks = [rng.random(n) < share for share in (0.4, 0.5, 0.3, 0.4)]
    nowhere = rng.random(n) < 0.2
    return [mask & ~nowhere for mask in masks]


@pytest.fixture(scope="module")
def caller():
    """Rows as the caller has them, not sorted by anything; a tenth has no weight."""
    rng = np.random.default_rng(5)
    n = 70
    X, codes = rng.normal(size=(n, 2)), rng.integers(0, 2, n)
    weights = rng.uniform(0.2, 3.0, n) * (rng.random(n) > 0.1)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"), weights)
    assert (np.diff(data.order) < 0).any()
    assert data.n_samples < n
    return data, weights, draw_masks(rng, n), rng.normal(size=n).round(1)


def test_masks_are_in_the_order_of_the_caller(caller):
    data, weights, masks, scores = caller
    constraint = AUCGap(0.05, constraint=masks).unchecked(data)
    aucs = [auc(scores, weights, *pair) for pair in (masks[:2], masks[2:])]
    assert constraint.metric(scores[data.order]) == pytest.approx(abs(aucs[0] - aucs[1]), abs=1e-12)
    assert constraint.name == "subset_auc"
    assert constraint.component_names == ("subset_auc[first - second]", "subset_auc[second - first]")


@pytest.mark.parametrize("convert", [np.array, lambda masks: [m.tolist() for m in masks]], ids=["array", "lists"])
def test_formats_of_masks(caller, convert):
    data, _, masks, scores = caller
    one, other = (AUCGap(0.05, constraint=metric).unchecked(data) for metric in (masks, convert(masks)))
    assert one.metric(scores[data.order]) == other.metric(scores[data.order])


def test_a_function_gets_the_rows_with_weight_as_the_caller_has_them(caller):
    data, weights, masks, scores = caller
    there, asked = weights > 0, []

    def metric(positive, groups):
        asked.append((positive, groups))
        return [mask[there] for mask in masks]  # knows the rows by their place

    constraint = AUCGap(0.05, constraint=metric).unchecked(data)
    places = np.argsort(data.order)
    ((positive, groups),) = asked
    np.testing.assert_array_equal(positive, data.y.numpy()[places] > 0)
    assert groups.tolist() == [data.labels[code] for code in data.codes[places]]
    expected = AUCGap(0.05, constraint=masks).unchecked(data).metric(scores[data.order])
    assert constraint.metric(scores[data.order]) == pytest.approx(expected)
    # asked no more for a mini-batch, whose rows a function that knows all rows by their place knows nothing of
    batch = constraint.on(next(Sampler.of(data, 40).batches(np.random.default_rng(0), 1)))
    assert len(asked) == 1
    by_array = AUCGap(0.05, constraint=masks).unchecked(data).on(batch.data)
    assert batch.metric(scores[batch.data.order]) == by_array.metric(scores[batch.data.order])


def test_a_function_of_labels_and_groups_is_a_metric_by_name(data, draw_scores, evaluate):
    def xauc(positive, groups):
        a = groups == "a"
        return a & positive, ~a & ~positive, ~a & positive, a & ~positive

    scores = draw_scores(data)
    one, other = AUCGap(0.1, constraint=xauc).unchecked(data), AUCGap(0.1, protected="a").unchecked(data)
    assert one.metric(scores) == pytest.approx(other.metric(scores))
    assert one.granularity == pytest.approx(other.granularity)
    np.testing.assert_allclose(evaluate(one, "values", scores), evaluate(other, "values", scores), atol=1e-12)


# --- surrogate


@each_metric
@each_count
@each_protected
def test_values_are_means_over_pairs(make_data, draw_scores, evaluate, metric, counts, protected):
    data = make_data(counts=counts, weighted=True)
    scores = draw_scores(data)
    sets, _ = sets_of(metric, data, protected)
    for surrogate in SURROGATES:
        options = {"constraint": metric, "protected": protected, "surrogate": surrogate, "surrogate_width": 0.6}
        constraint = AUCGap(0.1, **options).unchecked(data)
        gaps = signed_gaps(lambda a, b, constraint=constraint: smooth_auc(constraint, scores, a, b), sets)
        np.testing.assert_allclose(evaluate(constraint, "values", scores), np.append(gaps, -gaps) - 0.1, atol=1e-6)


def test_values_with_masks(caller, evaluate):
    data, _, masks, scores = caller
    constraint = AUCGap(0.1, constraint=masks, surrogate_width=0.6).unchecked(data)
    own = scores[data.order]
    (gap,) = signed_gaps(lambda a, b: smooth_auc(constraint, own, a, b), [[mask[data.order] for mask in masks]])
    np.testing.assert_allclose(evaluate(constraint, "values", own), [gap - 0.1, -gap - 0.1], atol=1e-9)


@each_metric
@pytest.mark.parametrize("surrogate", sorted(SURROGATES))
def test_a_narrow_surrogate_is_the_metric(data, draw_scores, evaluate, metric, surrogate):
    scores = draw_scores(data)
    constraint = AUCGap(0.2, constraint=metric, surrogate=surrogate, surrogate_width=1e-9).unchecked(data)
    gaps = exact_gaps(data, scores, sets_of(metric, data, None)[0])
    np.testing.assert_allclose(evaluate(constraint, "values", scores), np.append(gaps, -gaps) - 0.2, atol=1e-6)
    assert evaluate(constraint, "values", scores).max() == pytest.approx(constraint.exact(scores), abs=1e-6)


@each_metric
@pytest.mark.parametrize("surrogate", sorted(SURROGATES))
def test_refined_values_are_the_exact_signed_gaps(data, draw_scores, evaluate, metric, surrogate):
    scores = draw_scores(data).round(1)
    gaps = exact_gaps(data, scores, sets_of(metric, data, None)[0])
    constraint = AUCGap(0.25, constraint=metric, surrogate=surrogate).unchecked(data)
    for blur, margin in [(1.0, 0.0), (0.05, 0.1)]:
        refined = constraint.refined(scores, blur=blur, margin=margin)
        expected = np.append(gaps, -gaps) - (0.25 - margin)
        np.testing.assert_allclose(evaluate(refined, "values", scores), expected, atol=1e-9)
        assert refined.surrogate.width * refined.surrogate.spread == pytest.approx(
            blur * np.sqrt(np.cov(scores, aweights=data.weights, ddof=0))
        )
        assert refined.exact(scores) == constraint.exact(scores)


@each_metric
def test_gaps_on_rows_not_seen_are_bounded_as_well(data, draw_scores, evaluate, metric):
    scores, rng = draw_scores(data), np.random.default_rng(0)
    constraint = AUCGap(0.1, constraint=metric).unchecked(data).refined(scores, blur=0.1, margin=0.0)
    signed = constraint.differences(scores)
    gaps = exact_gaps(data, scores, sets_of(metric, data, None)[0])
    np.testing.assert_allclose(signed, np.append(gaps, -gaps), atol=1e-12)
    assert signed.max() == constraint.metric(scores)
    optimism = np.where(rng.random(signed.size) < 0.5, 0.0, 0.3)
    stricter = constraint.with_optimism(optimism)
    assert stricter.exact(scores) == pytest.approx(max(signed.max(), (signed + optimism).max()) - 0.1)
    assert stricter.metric(scores) == constraint.metric(scores)
    assert constraint.bounds_metric
    assert not stricter.bounds_metric
    moved = evaluate(stricter, "values", scores) - evaluate(constraint, "values", scores)
    np.testing.assert_allclose(moved, optimism, atol=1e-12)


def test_a_width_that_the_user_chose_stays(data, draw_scores):
    constraint = AUCGap(0.3, surrogate_width=0.7).unchecked(data)
    assert constraint.refined(draw_scores(data), blur=0.01, margin=0.0).surrogate.width == 0.7


def test_a_margin_above_kappa_leaves_no_tolerance(data, draw_scores, evaluate):
    scores = draw_scores(data)
    tight, none = (AUCGap(0.1).unchecked(data).refined(scores, blur=0.1, margin=margin) for margin in (0.1, 0.4))
    np.testing.assert_array_equal(evaluate(tight, "values", scores), evaluate(none, "values", scores))


@each_metric
@pytest.mark.parametrize("surrogate", sorted(SURROGATES))
def test_gradients(make_data, draw_scores, metric, surrogate):
    data = make_data(counts=(5, 6), weighted=True, seed=1)
    constraint = AUCGap(0.1, constraint=metric, surrogate=surrogate, surrogate_width=0.7).unchecked(data)
    scores = torch.from_numpy(draw_scores(data, shift=0.2)).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: constraint.values(s, NO_AUX), (scores,), atol=1e-6)


def test_granularity_among_many_rows_is_a_small_constant_and_never_more_than_a_row(make_data):
    assert AUCGap(0.1).unchecked(make_data(counts=(900, 1100))).granularity == RESOLUTION
    few = AUCGap(0.1, constraint="group_auc").unchecked(make_data(counts=(1, 1)))
    assert few.granularity == 1.0  # one row decides


def test_one_group_has_no_components(make_data, evaluate):
    data = make_data(counts=(30,))
    scores = np.arange(30.0)
    constraint = AUCGap(0.2).unchecked(data).refined(scores, blur=0.1, margin=0.0)
    assert constraint.component_names == ()
    assert constraint.metric(scores) == constraint.granularity == 0.0
    assert evaluate(constraint, "values", scores).shape == (0,)


def test_offsets_are_one_for_all_groups(data, draw_scores):
    constraint = AUCGap(0.2).unchecked(data)
    scores, gains = draw_scores(data, shift=2.0) - 5.0, (data.weights * data.y).numpy()
    offsets = constraint.offsets(scores, gains, 0.0, shared=False)
    assert np.ptp(offsets) == 0
    assert gains @ (scores + offsets[0] > 0) > gains @ (scores > 0)
    assert constraint.metric(scores + offsets[0]) == pytest.approx(constraint.metric(scores))


def test_integer_weights_are_repeated_rows(make_data, draw_scores, evaluate):
    data = make_data(counts=(25, 20))
    scores = draw_scores(data).round(1)
    repeats = np.random.default_rng(0).integers(1, 4, data.n_samples)
    X, y = np.vstack(data.blocks), data.y.numpy()
    masks = draw_masks(np.random.default_rng(1), data.n_samples)
    weighted = FairData.from_arrays(X, y, data.codes, data.labels, repeats.astype(float))
    columns = [np.repeat(column, repeats, axis=0) for column in (X, y, data.codes, scores)]
    repeated = FairData.from_arrays(*columns[:3], data.labels)
    for metric in (*PAPER, masks):
        again = metric if isinstance(metric, str) else [np.repeat(mask, repeats) for mask in metric]
        one, other = (
            AUCGap(0.3, constraint=metric).unchecked(weighted),
            AUCGap(0.3, constraint=again).unchecked(repeated),
        )
        assert one.metric(scores) == pytest.approx(other.metric(columns[3]))
        first, second = evaluate(one, "values", scores), evaluate(other, "values", columns[3])
        np.testing.assert_allclose(first, second, atol=1e-9)


# --- mini-batches


def test_views(data):
    constraint = AUCGap().unchecked(data)
    assert all(isinstance(constraint, view) for view in (FullBatch, Exact, Stochastic))


@pytest.mark.parametrize("metric", ["group_auc", "bpsn_bnsp", "masks"])
def test_the_mean_over_mini_batches_is_the_value(make_data, draw_scores, metric):
    data = make_data(counts=(60, 80), weighted=True)
    scores = draw_scores(data)
    if metric == "masks":
        metric = draw_masks(np.random.default_rng(1), data.n_samples)
    constraint = AUCGap(0.3, constraint=metric, surrogate_width=0.3).unchecked(data)
    constraint = constraint.refined(scores, blur=0.1, margin=0.05)
    full = constraint.values(torch.from_numpy(scores), NO_AUX).numpy()
    batches = Sampler.of(data, 40).batches(np.random.default_rng(0), 150)
    assert_unbiased(on_batches(constraint, data, scores, batches), full, tolerance=0.01)


def test_of_a_batch_without_rows_of_a_set_none_is_ahead(make_data, evaluate):
    """A sample of positives only: the AUCs of positives against negatives count one half."""
    data = make_data(counts=(20, 20))
    constraint = AUCGap(0.1, surrogate_width=0.5).unchecked(data)
    rows = np.flatnonzero(data.y.numpy() > 0)
    batch = FairData.from_arrays(np.vstack(data.blocks)[rows], data.y.numpy()[rows], data.codes[rows], data.labels)
    part = constraint.on(batch)
    scores = np.arange(float(rows.size))
    assert part.metric(scores) == 0.0
    np.testing.assert_allclose(evaluate(part, "values", scores), [-0.1, -0.1])


# --- kappa


def test_no_bound_is_never_violated(data, draw_scores):
    constraint = AUCGap(None).unchecked(data)
    for shift in (0.0, 9.0):
        scores = draw_scores(data, shift=shift)
        assert constraint.exact(scores) <= 0
        assert constraint.metric(scores) == AUCGap(0.1).unchecked(data).metric(scores)


@pytest.mark.parametrize("kappa", [-0.1, 1.5, float("nan"), "0.1", True])
def test_kappa_out_of_range(data, kappa):
    with pytest.raises(ValueError, match=r"kappa must be (a number )?in \[0, 0.5\]"):
        AUCGap(kappa).unchecked(data)


def test_kappa_above_one_half(data):
    with pytest.raises(ValueError, match=r"kappa must be in \[0, 0.5\], got 0.6: it bounds a gap of AUCs"):
        AUCGap(0.6).unchecked(data)
    assert AUCGap(0.5).unchecked(data).kappa == 0.5


# --- errors


def test_an_unknown_metric_lists_the_names(data):
    with pytest.raises(ValueError, match=r"constraint must be one of \[.*'inter_group'.*\] or four masks, got 'xauc'"):
        AUCGap(constraint="xauc").unchecked(data)


def test_protected_must_be_a_group(data):
    with pytest.raises(ValueError, match=r"protected must be one of the groups \['a', 'b', 'c'\].* got 'd'"):
        AUCGap(protected="d").unchecked(data)


def test_labels_are_needed_where_they_are_compared(make_data, draw_scores):
    data = make_data(classes=False)
    assert AUCGap(constraint="group_auc").unchecked(data).metric(draw_scores(data)) > 0
    for metric in set(PAPER) - {"group_auc"}:
        with pytest.raises(ValueError, match=rf"constraint='{metric}' compares positives with negatives"):
            AUCGap(constraint=metric).unchecked(data)


def test_a_group_of_one_class_is_named_with_the_counts():
    y = np.array([1, 1, 1, -1, 1, -1, -1.0])
    data = FairData.from_arrays(np.zeros((7, 1)), y, np.array([0, 0, 0, 1, 1, 1, 1]), ("a", "b"))
    for metric in ("inter_group", "intra_group", "negative_equality", "bpsn_bnsp"):
        message = rf"{metric} compares .*these have no rows: \{{'a, y=-1': 0\}}. Pass more rows"
        with pytest.raises(ValueError, match=message):
            AUCGap(None, constraint=metric).bind(data)
    # only the sets that are compared have to have rows
    for metric in ("group_auc", "positive_equality"):
        assert AUCGap(None, constraint=metric).bind(data).metric(np.arange(7.0)) > 0
    # here the set is of all other groups
    with pytest.raises(ValueError, match=r"intra_group compares .* these have no rows: \{'a, y=-1': 0\}"):
        AUCGap(None, constraint="intra_group", protected="b").bind(data)


def test_an_empty_mask_is_named_with_the_counts(caller):
    data, weights, masks, _ = caller
    gone = [*masks[:3], weights == 0]  # rows without weight are not there
    with pytest.raises(ValueError, match=r"these have no rows: \{\"mask G2'\": 0\}. Merge small sets of rows"):
        AUCGap(None, constraint=gone).bind(data)
    with pytest.raises(ValueError, match=r"at least 20 rows of equal weight .* \{\"mask G2'\": 0, "):
        AUCGap(0.05, constraint=gone).bind(data)


WRONG = {
    "three": (lambda masks: masks[:3], "four boolean masks"),
    "numbers": (lambda masks: [mask.astype(int) for mask in masks], "four boolean masks"),
    "tables": (lambda masks: [mask[:, None] for mask in masks], "four boolean masks"),
    "too short": (lambda masks: [mask[:5] for mask in masks], "masks have 5 entries, but 70 rows were given"),
    "too long": (lambda masks: [np.append(mask, True) for mask in masks], "masks have 71 entries, but 70 rows"),
    "ragged": (lambda masks: [masks[0][:5], *masks[1:]], r"got 4 of shapes \[\(5,\), \(70,\)"),
    "three by a function": (lambda masks: lambda positive, groups: [positive] * 3, "four boolean masks"),
    "short by a function": (
        lambda masks: lambda positive, groups: [positive[:9]] * 4,
        r"four boolean masks of shape \(60,\).* \[\(9,\)",
    ),
}


@pytest.mark.parametrize(("change", "message"), WRONG.values(), ids=WRONG)
def test_masks_that_do_not_fit(caller, change, message):
    data, _, masks, _ = caller
    with pytest.raises(ValueError, match=message):
        AUCGap(constraint=change(masks)).unchecked(data)


def test_protected_with_masks(caller):
    data, _, masks, _ = caller
    with pytest.raises(ValueError, match="masks say which rows are compared"):
        AUCGap(constraint=masks, protected="a").unchecked(data)


def test_surrogate_out_of_range(data):
    with pytest.raises(ValueError, match="'surrogate' parameter of AUCGap"):
        AUCGap(surrogate="step").unchecked(data)
    with pytest.raises(ValueError, match="width"):
        AUCGap(surrogate_width=0.0).unchecked(data)


def test_every_row_is_in_one_cell(data):
    sets = AUCSets.of(data, "positive_equality", "b")
    assert sorted(np.concatenate([np.arange(data.n_samples)[r] for r in sets.cell_rows])) == list(range(75))
