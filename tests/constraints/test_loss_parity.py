"""Loss parity: components against a plain restatement, the metric, small groups, and mini-batches without bias."""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import torch
from sklearn.base import clone

from fairconstrained.constraints import GroupRates, LossParity
from fairconstrained.data import FairData
from fairconstrained.metrics import loss_parity_gap
from fairconstrained.sampling import Sampler
from fairconstrained.views import DifferenceOfConvex, Exact, RowLosses, Stochastic
from tests.batches import assert_unbiased, of_view, on_batches
from tests.covering import every_pair

KAPPA = 0.07
#: Labels of the rows that are compared.
NOTIONS = {
    "demographic_parity": [None],
    "equal_opportunity": [1.0],
    "equalized_odds": [1.0, -1.0],
    "sum of the odds": [1.0, -1.0],
}
#: Signs of these labels' means in what components compare.
SIGNS = {"equalized_odds": [(1, 0), (0, 1)], "sum of the odds": [(1, 1), (1, -1)]}
LOSSES = {
    "log_loss": lambda s, y: torch.log1p(torch.exp(-y * s)),
    "hinge": lambda s, y: torch.clamp(1 - y * s, min=0),
    "absolute": lambda s, y: torch.abs(s - y),
    "squared": lambda s, y: (s - y) ** 2 / 2,
}
REFERENCES = ["pairwise", "overall"]
COUNTS = [2, 3, 8, 9]
each_notion = pytest.mark.parametrize("notion", NOTIONS)
each_reference = pytest.mark.parametrize("reference", REFERENCES)
#: Corner of the hinge that the solvers see.
ROUNDED = 1e-8


def draw_data(n_groups, per_group=7, weighted=True, seed=0):
    """Groups g0, g1, ... of ``per_group`` rows or a few more, each with both labels."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.repeat(np.arange(n_groups), per_group), rng.integers(0, n_groups, 2 * n_groups))
    y = np.where(rng.random(codes.size) < 0.4, 1.0, -1.0)
    y[: per_group * n_groups : per_group], y[1 : per_group * n_groups : per_group] = 1.0, -1.0
    weights = rng.uniform(0.3, 3.0, codes.size) if weighted else None
    order = rng.permutation(codes.size)
    X = rng.normal(size=(codes.size, 2))
    labels = tuple(f"g{code}" for code in range(n_groups))
    return FairData.from_arrays(X[order], y[order], codes[order], labels, weights[order] if weighted else None)


def named(notion):
    """Parameters that ask for a notion."""
    if notion == "sum of the odds":
        return {"constraint": "equalized_odds", "agg_labels": "sum"}
    return {"constraint": notion}


def cells_of(sizes):
    """Data with this many rows (positive, negative) in every group; groups a, b, ..."""
    codes = np.repeat(np.arange(len(sizes)), [sum(size) for size in sizes])
    y = np.concatenate([np.repeat([1.0, -1.0], size) for size in sizes])
    labels = tuple("abcdefghijklmnopqrstuvwxyz"[: len(sizes)])
    return FairData.from_arrays(np.zeros((y.size, 1)), y, codes, labels)


def restated(notion, reference, data, losses, aux, kappa=KAPPA):
    """The components, cell by cell, in the order of their names."""

    def mean(rows):
        rows = torch.from_numpy(rows)
        return (data.weights[rows] * losses[rows]).sum() / data.weights[rows].sum()

    def signed(rows, signs):
        blocks = [rows if label is None else rows & (data.y.numpy() == label) for label in NOTIONS[notion]]
        return sum(sign * mean(block) for sign, block in zip(signs, blocks, strict=True) if sign)

    groups, share = [data.codes == code for code in range(data.n_groups)], 1.0
    gaps = []
    for number, signs in enumerate(SIGNS.get(notion, [(1,)])):
        values = [signed(rows, signs) for rows in groups]
        if reference == "pairwise" and len(groups) <= 8:
            gaps += [a - b for a, b in permutations(values, 2)]
            continue
        other = signed(np.ones(data.n_samples, dtype=bool), signs) if reference == "overall" else aux[number]
        share = 1.0 if reference == "overall" else 0.5
        gaps += [value - other for value in values] + [other - value for value in values]
    return torch.stack(gaps) - share * kappa


def bound(data, kappa=KAPPA, **options):
    return LossParity(kappa, **options).unchecked(data)


def metric_of(data, scores, notion, rows=slice(None), codes=None, **options):
    codes = data.codes if codes is None else codes
    columns = {"sensitive_features": codes[rows], "sample_weight": data.weights.numpy()[rows]}
    return loss_parity_gap(data.y.numpy()[rows], scores[rows], **named(notion), **columns, **options)


# --- components and the metric


@every_pair(notion=NOTIONS, loss=LOSSES, reference=REFERENCES, n_groups=COUNTS)
def test_the_largest_component_is_the_metric(draw_scores, evaluate, notion, loss, reference, n_groups):
    data = draw_data(n_groups)
    scores = draw_scores(data, shift=0.2)
    constraint = bound(data, **named(notion), loss=loss, reference=reference)
    gap = metric_of(data, scores, notion, loss=loss, reference=reference)
    assert gap > 0.01
    assert constraint.metric(scores) == pytest.approx(gap)
    assert constraint.exact(scores) == pytest.approx(gap - KAPPA)
    largest = evaluate(constraint, "values", scores).max()
    if reference == "pairwise" and n_groups > 8:  # at the middle of the groups' losses
        assert largest == pytest.approx(gap / 2 - KAPPA / 2, abs=ROUNDED)
    else:
        assert largest == pytest.approx(gap - KAPPA, abs=ROUNDED)


@each_notion
def test_no_other_centre_is_better(draw_scores, evaluate, notion):
    data = draw_data(11)
    scores = draw_scores(data)
    constraint = bound(data, **named(notion))
    aux = constraint.initial_aux(scores)
    best = evaluate(constraint, "values", scores, aux).reshape(aux.size, -1).max(axis=1)  # of every centre
    for step in (-0.3, -1e-3, 1e-3, 0.3):
        moved = evaluate(constraint, "values", scores, aux + step).reshape(aux.size, -1).max(axis=1)
        np.testing.assert_allclose(moved, best + abs(step))


@every_pair(notion=NOTIONS, loss=LOSSES, reference=REFERENCES, n_groups=COUNTS)
def test_values_and_slopes_are_those_of_the_restatement(draw_scores, notion, loss, reference, n_groups):
    data = draw_data(n_groups)
    constraint = bound(data, **named(notion), loss=loss, reference=reference)
    rng = np.random.default_rng(1)
    scores = torch.from_numpy(draw_scores(data)).requires_grad_()
    aux = torch.from_numpy(rng.normal(size=constraint.n_aux)).requires_grad_()
    losses = LOSSES[loss](scores, data.y)
    expected = restated(notion, reference, data, losses, aux)
    values = constraint.values(scores, aux)
    np.testing.assert_allclose(values.detach(), expected.detach(), atol=ROUNDED)
    np.testing.assert_allclose(constraint.of_losses(losses.detach().numpy(), aux.detach().numpy()), expected.detach())

    multipliers = rng.normal(size=values.shape[0])
    combined = torch.from_numpy(multipliers) @ expected
    by_row = torch.autograd.grad(combined, (losses, aux), retain_graph=True, materialize_grads=True)
    for own, plain in zip(constraint.row_weights(multipliers), by_row, strict=True):
        np.testing.assert_allclose(own, plain, atol=1e-12)
    own = torch.autograd.grad(values, (scores, aux), torch.from_numpy(multipliers))
    for one, other in zip(own, torch.autograd.grad(combined, (scores, aux), materialize_grads=True), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)


@every_pair(notion=NOTIONS, loss=LOSSES, reference=REFERENCES, n_groups=[3, 9])
def test_finite_differences(draw_scores, notion, loss, reference, n_groups):
    data = draw_data(n_groups, per_group=2)
    constraint = bound(data, **named(notion), loss=loss, reference=reference)
    scores = torch.from_numpy(draw_scores(data)).requires_grad_()
    aux = torch.linspace(0.1, 0.6, constraint.n_aux, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda s, t: constraint.values(s, t), (scores, aux))


def test_by_hand(evaluate):
    """Scores 3, 1 (a), 0 (b), -2 (c), all positive: absolute losses 1, 1 and 3."""
    data = FairData.from_arrays(np.zeros((4, 1)), np.ones(4), np.array([0, 0, 1, 2]), ("a", "b", "c"))
    scores = np.array([3.0, 1.0, 0.0, -2.0])[data.order]
    constraint = bound(data, 0.5, loss="absolute")
    expected = {"a - b": 0.0, "a - c": -2.0, "b - a": 0.0, "b - c": -2.0, "c - a": 2.0, "c - b": 2.0}
    assert constraint.component_names == tuple(f"loss_parity[{sides}]" for sides in expected)
    np.testing.assert_allclose(evaluate(constraint, "values", scores), np.array([*expected.values()]) - 0.5)
    weights, _ = constraint.row_weights(np.array([0.0, 1.0, 0.0, 0.0, 0.0, 0.0]))
    np.testing.assert_allclose(weights, [0.5, 0.5, 0.0, -1.0])


# --- components by name


def test_component_names(draw_scores, evaluate):
    few, many = draw_data(3), draw_data(9)
    overall = bound(few, reference="overall").component_names
    assert overall == tuple(
        f"loss_parity[{s}]" for s in ("g0 - all", "g1 - all", "g2 - all", "all - g0", "all - g1", "all - g2")
    )
    centre = bound(many).component_names
    assert centre[:9] == tuple(f"loss_parity[g{k} - centre]" for k in range(9))
    assert centre[9:] == tuple(f"loss_parity[centre - g{k}]" for k in range(9))
    odds = bound(few, constraint="equalized_odds").component_names
    assert odds[:2] == ("loss_parity[g0 - g1, y=+1]", "loss_parity[g0 - g2, y=+1]")
    assert odds[6:8] == ("loss_parity[g0 - g1, y=-1]", "loss_parity[g0 - g2, y=-1]")
    odds = bound(few, constraint="equalized_odds", agg_labels="sum").component_names
    assert odds[:2] == ("loss_parity[g0 - g1, sum]", "loss_parity[g0 - g2, sum]")
    assert odds[6:8] == ("loss_parity[g0 - g1, difference]", "loss_parity[g0 - g2, difference]")
    assert bound(few).renamed("mine").component_names[0] == "mine[g0 - g1]"


@every_pair(notion=NOTIONS, reference=REFERENCES, n_groups=COUNTS)
def test_every_component_has_a_name_of_its_own(draw_scores, evaluate, notion, reference, n_groups):
    data = draw_data(n_groups)
    constraint = bound(data, **named(notion), reference=reference)
    names = constraint.component_names
    assert evaluate(constraint, "values", draw_scores(data)).shape == (len(names),)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("notion", "n_signs"), [("demographic_parity", 1), ("equalized_odds", 2), ("sum of the odds", 2)]
)
def test_components_grow_with_the_groups_and_not_with_their_square(draw_scores, evaluate, notion, n_signs):
    data = draw_data(500, per_group=2)
    scores = draw_scores(data, shift=0.002)
    constraint = bound(data, **named(notion))
    assert constraint.n_aux == n_signs
    assert len(constraint.component_names) == 1000 * n_signs
    gap = metric_of(data, scores, notion)
    assert evaluate(constraint, "values", scores).max() == pytest.approx(gap / 2 - KAPPA / 2)


@each_reference
@each_notion
def test_no_bound_no_components(draw_scores, evaluate, notion, reference):
    for n_groups in (3, 9):
        data = draw_data(n_groups)
        scores = draw_scores(data)
        options = {**named(notion), "reference": reference}
        free = bound(data, None, **options)
        assert free.component_names == ()
        assert free.n_aux == 0
        assert evaluate(free, "values", scores).shape == (0,)
        weights, aux = free.row_weights(np.empty(0))
        np.testing.assert_array_equal(weights, np.zeros(data.n_samples))
        assert aux.shape == (0,)
        assert free.exact(scores) == -np.inf
        assert free.metric(scores) == bound(data, **options).metric(scores)


@each_reference
@each_notion
def test_one_group_has_nothing_to_compare(draw_scores, evaluate, notion, reference):
    data = draw_data(1, per_group=20)
    constraint = bound(data, 0.0, **named(notion), reference=reference)
    assert constraint.component_names == ()
    assert not constraint.compares
    assert np.isnan(constraint.metric(draw_scores(data)))
    assert evaluate(constraint, "values", draw_scores(data)).shape == (0,)


@every_pair(notion=NOTIONS, loss=LOSSES, n_groups=COUNTS)
def test_equal_scores_are_fair(evaluate, notion, loss, n_groups):
    """At scores of zero all rows have the same loss, and the auxiliary variables of a fair start are that."""
    data = draw_data(n_groups)
    constraint = bound(data, **named(notion), loss=loss)
    scores = np.zeros(data.n_samples)
    assert constraint.metric(scores) == pytest.approx(0, abs=1e-12)
    share = 0.5 if n_groups > 8 else 1.0
    np.testing.assert_allclose(evaluate(constraint, "values", scores, constraint.fair_aux()), -share * KAPPA)


@pytest.mark.parametrize(("n_groups", "share"), [(3, 1.0), (9, 0.5)])
def test_the_margin_tightens_the_bound(draw_scores, evaluate, n_groups, share):
    data = draw_data(n_groups)
    scores = draw_scores(data)
    constraint = bound(data)
    for margin, less in ((0.03, 0.03), (-0.5, -0.5), (1.0, KAPPA)):  # not below zero
        tight = constraint.refined(scores, blur=0.1, margin=margin)
        values = evaluate(constraint, "values", scores) + share * less
        np.testing.assert_allclose(evaluate(tight, "values", scores), values)
        assert tight.exact(scores) == constraint.exact(scores)


def test_views(draw_scores):
    constraint = bound(draw_data(3))
    for view in (RowLosses, Stochastic, Exact):
        assert isinstance(constraint, view)
    assert not isinstance(constraint, DifferenceOfConvex)
    assert constraint.granularity < 1e-6
    assert constraint.bounds_metric


# --- invariances


@every_pair(notion=NOTIONS, reference=REFERENCES, n_groups=[3, 10])
def test_names_of_groups_and_order_of_rows_do_not_matter(draw_scores, evaluate, notion, reference, n_groups):
    data = draw_data(n_groups)
    scores = draw_scores(data)
    options = {**named(notion), "reference": reference}
    rng = np.random.default_rng(3)
    order, names = rng.permutation(data.n_samples), rng.permutation(n_groups)
    arrays = data.X[order], data.y.numpy()[order], names[data.codes][order]
    other = FairData.from_arrays(*arrays, tuple(range(n_groups)), data.weights.numpy()[order])
    moved = scores[order][other.order]
    one, two = bound(data, **options), bound(other, **options)
    assert two.metric(moved) == pytest.approx(one.metric(scores))
    values, turned = evaluate(one, "values", scores), evaluate(two, "values", moved)
    np.testing.assert_allclose(np.sort(turned), np.sort(values), atol=1e-12)


@every_pair(notion=NOTIONS, reference=REFERENCES, n_groups=[3, 10])
def test_integer_weights_are_repeated_rows(draw_scores, evaluate, notion, reference, n_groups):
    data = draw_data(n_groups, weighted=False)
    scores = draw_scores(data)
    counts = np.random.default_rng(4).integers(1, 4, data.n_samples)
    arrays = data.X, data.y.numpy(), data.codes
    weighted = FairData.from_arrays(*arrays, data.labels, counts.astype(float))
    repeated = FairData.from_arrays(*(np.repeat(values, counts, axis=0) for values in arrays), data.labels)
    options = {**named(notion), "reference": reference}
    one, other = bound(weighted, **options), bound(repeated, **options)
    at = scores[weighted.order], np.repeat(scores, counts)[repeated.order]
    assert one.metric(at[0]) == pytest.approx(other.metric(at[1]))
    np.testing.assert_allclose(evaluate(one, "values", at[0]), evaluate(other, "values", at[1]), atol=1e-12)
    assert one.metric(at[0]) != pytest.approx(bound(data, **options).metric(scores))


# --- small groups


def test_small_groups_are_an_error_with_their_sizes():
    data = cells_of([(20, 20), (2, 3), (9, 1), (1, 2)])
    assert bound(data, min_group_size=3).groups.labels == ("a", "b", "c", "d")
    with pytest.raises(
        ValueError, match=re.escape("{'b': 5, 'd': 3}. Merge groups, set small_groups='merge' or 'ignore'")
    ) as raised:
        bound(data, min_group_size=6)
    assert "min_group_size=6" in str(raised.value)


@pytest.mark.parametrize(
    ("notion", "counts"),
    [("equal_opportunity", "{'b': 2, 'd': 0}"), ("equalized_odds", "{'b': 2, 'c': 1, 'd': 0}")],
)
def test_the_rows_of_the_labels_that_are_compared_have_to_be_enough(notion, counts):
    data = cells_of([(20, 20), (2, 30), (30, 1), (0, 20)])
    assert bound(data, min_group_size=3).groups.labels == ("a", "b", "c", "d")
    with pytest.raises(ValueError, match=re.escape(counts)):
        bound(data, **named(notion), min_group_size=3)


@pytest.mark.parametrize("min_group_size", [1, 2])
def test_an_empty_cell_is_always_too_small(min_group_size):
    data = cells_of([(20, 20), (0, 30)])
    for notion in ("equal_opportunity", "equalized_odds"):
        with pytest.raises(ValueError, match=r"\{'b': 0\}"):
            bound(data, **named(notion), min_group_size=min_group_size)


def test_of_many_small_groups_some_are_listed():
    data = cells_of([(20, 20)] + [(2, 2)] * 14)
    with pytest.raises(ValueError, match=r"'b': 4.*'k': 4, \.\.\. and 4 more}") as raised:
        bound(data, min_group_size=5)
    assert "'l'" not in str(raised.value)


@each_reference
@each_notion
def test_merged_groups_are_one_group(draw_scores, evaluate, notion, reference):
    data = cells_of([(3, 3), (20, 20), (2, 3), (15, 11)])
    scores = draw_scores(data)
    options = {**named(notion), "reference": reference}
    least = 7 if notion == "demographic_parity" else 4  # rows of a group, or rows of a label
    constraint = bound(data, min_group_size=least, small_groups="merge", **options)
    assert constraint.groups.labels == ("b", "d", "(small groups)")
    other = "all" if reference == "overall" else "(small groups)"
    assert any(name.startswith(f"loss_parity[b - {other}") for name in constraint.component_names)
    codes = np.array([2, 0, 2, 1])[data.codes]
    gap = metric_of(data, scores, notion, codes=codes, reference=reference)
    assert constraint.metric(scores) == pytest.approx(gap)
    assert evaluate(constraint, "values", scores).max() == pytest.approx(gap - KAPPA)
    assert gap != pytest.approx(metric_of(data, scores, notion, reference=reference))


def test_merged_groups_that_are_still_too_small():
    data = cells_of([(20, 20), (2, 3), (1, 2)])
    bound(data, min_group_size=8, small_groups="merge")
    with pytest.raises(ValueError, match=r"still have fewer than min_group_size=9 rows: \{'b': 5, 'c': 3\}"):
        bound(data, min_group_size=9, small_groups="merge")
    with pytest.raises(ValueError, match=r"still have fewer .* \{'b': 2, 'c': 1\}"):
        bound(data, constraint="equal_opportunity", min_group_size=4, small_groups="merge")


def test_merging_changes_the_number_of_components():
    data = cells_of([(5, 5)] * 7 + [(2, 2)] * 6)
    constraint = bound(data, min_group_size=6, small_groups="merge")
    assert len(constraint.component_names) == 8 * 7  # few enough for every pair
    assert constraint.n_aux == 0


@each_notion
def test_ignored_rows_stay_out(draw_scores, evaluate, notion):
    data = cells_of([(3, 3), (20, 20), (2, 3), (15, 11)])
    scores = draw_scores(data)
    least = 7 if notion == "demographic_parity" else 4
    constraint = bound(data, **named(notion), min_group_size=least, small_groups="ignore")
    assert constraint.groups.labels == ("b", "d")
    kept = np.isin(data.codes, [1, 3])
    gap = metric_of(data, scores, notion, rows=kept)
    assert constraint.metric(scores) == pytest.approx(gap)
    values = evaluate(constraint, "values", scores)
    assert values.max() == pytest.approx(gap - KAPPA)
    moved = np.where(kept, scores, 50.0)
    np.testing.assert_array_equal(evaluate(constraint, "values", moved), values)
    assert constraint.metric(moved) == constraint.metric(scores)
    weights, _ = constraint.row_weights(np.ones(values.size) * np.arange(1, values.size + 1))
    assert not weights[~kept].any()
    assert weights[kept].any()


def test_ignored_rows_are_among_all_rows(draw_scores, evaluate):
    data = cells_of([(3, 3), (20, 20), (15, 11)])
    scores = draw_scores(data)
    constraint = bound(data, min_group_size=7, small_groups="ignore", reference="overall")
    _, table = loss_parity_gap(
        data.y.numpy(), scores, sensitive_features=data.codes, reference="overall", return_groups=True
    )
    assert constraint.metric(scores) == pytest.approx(table.loc[[1, 2], "gap"].max())
    assert evaluate(constraint, "values", scores).max() == pytest.approx(table.loc[[1, 2], "gap"].max() - KAPPA)


@every_pair(notion=NOTIONS, reference=REFERENCES, n_groups=[1, 2, 9])
def test_all_groups_ignored(draw_scores, evaluate, notion, reference, n_groups):
    data = draw_data(n_groups)
    scores = draw_scores(data)
    constraint = bound(data, **named(notion), reference=reference, min_group_size=1000, small_groups="ignore")
    assert constraint.component_names == ()
    assert constraint.fair_aux().shape == constraint.initial_aux(scores).shape == (0,)
    assert not constraint.compares
    assert np.isnan(constraint.metric(scores))
    assert evaluate(constraint, "values", scores).shape == (0,)
    weights, _ = constraint.row_weights(np.empty(0))
    assert not weights.any()


# --- mini-batches


def positions(batch, data):
    """Where the rows of the batch stand in the data."""
    places = np.empty(data.order.max() + 1, dtype=int)
    places[data.order] = np.arange(data.n_samples)
    return places[batch.order]


@every_pair(reference=REFERENCES, n_groups=[3, 10], balance=[0.0, 1.0])
def test_batches_are_unbiased(draw_scores, reference, n_groups, balance):
    data = draw_data(n_groups)
    scores = draw_scores(data)
    constraint = bound(data, reference=reference)
    values = of_view(constraint.initial_aux(scores))
    batches = Sampler.of(data, 2 * n_groups, balance).batches(np.random.default_rng(0), 1000)
    assert_unbiased(on_batches(constraint, data, scores, batches, values), values(constraint, scores))


@every_pair(reference=REFERENCES, small_groups=["merge", "ignore"], size=[3, 12])
def test_batches_of_merged_and_ignored_groups_are_unbiased(draw_scores, evaluate, reference, small_groups, size):
    """Small groups stand between the others, and only together do they have a whole number of rows in a batch."""
    data = cells_of([(2, 3), (25, 20), (3, 2), (11, 15), (2, 4)])
    scores = draw_scores(data)
    constraint = bound(data, reference=reference, min_group_size=10, small_groups=small_groups)
    assert constraint.groups.labels[:2] == ("b", "d")
    batches = Sampler.of(data, size, 0.0, constraint.strata).batches(np.random.default_rng(0), 1000)
    draws = on_batches(constraint, data, scores, batches)
    assert_unbiased(draws, evaluate(constraint, "values", scores))
    # no comparison is ever without rows, of which the value would be -kappa
    assert np.abs(draws + KAPPA).min() > 1e-9


@every_pair(notion=NOTIONS, reference=REFERENCES, n_groups=[3, 10])
def test_a_batch_does_not_depend_on_the_batches_before(draw_scores, evaluate, notion, reference, n_groups):
    """Whatever is kept from one batch to the next: batches of the same groups, with other targets or weights."""
    data = draw_data(n_groups)
    scores = draw_scores(data)
    constraint = bound(data, **named(notion), reference=reference)
    aux = constraint.initial_aux(scores)
    rng = np.random.default_rng(0)
    batches = [
        batch
        for balance in (0.0, 1.0, 0.0)
        for batch in Sampler.of(data, 3 * n_groups, balance, constraint.strata).batches(rng, 3)
    ]
    multipliers = rng.normal(size=len(constraint.component_names))

    def evaluated(term, batch):
        return evaluate(term, "values", scores[positions(batch, data)], aux), *term.row_weights(multipliers)

    chained = constraint
    other_weights = replace(data, weights=data.weights**2)
    for batch in [*batches, data, other_weights, batches[0]]:
        chained = chained.on(batch)
        for one, other in zip(evaluated(chained, batch), evaluated(constraint.on(batch), batch), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_gradient_of_batches_is_unbiased():
    data = draw_data(3)
    constraint, multipliers = bound(data), np.linspace(-1, 1, 6)
    draws = np.zeros((1000, data.n_samples))
    for draw, batch in zip(draws, Sampler.of(data, 9).batches(np.random.default_rng(0)), strict=False):
        np.add.at(draw, positions(batch, data), constraint.on(batch).row_weights(multipliers)[0])
    expected, _ = constraint.row_weights(multipliers)
    assert (np.abs(draws.mean(axis=0) - expected) < 4.5 * draws.std(axis=0) / np.sqrt(len(draws))).all()
    assert expected.any()


@every_pair(notion=NOTIONS, reference=REFERENCES, n_groups=[4, 9])
def test_groups_that_are_missing_count_as_equal(draw_scores, evaluate, notion, reference, n_groups):
    """A batch without the first group, and of the second only the negative rows."""
    data = draw_data(n_groups)
    scores = draw_scores(data)
    constraint = bound(data, **named(notion), reference=reference)
    kept = np.flatnonzero((data.codes > 1) | ((data.codes == 1) & (data.y.numpy() < 0)))
    batch = data.at(kept, data.weights[kept])
    on_batch = constraint.on(batch)
    aux = constraint.initial_aux(scores)
    values = evaluate(on_batch, "values", scores[kept], aux)
    # of the second group, what compares all rows or the negative ones is still there
    is_there = ["y=-1" in name or notion == "demographic_parity" for name in constraint.component_names]
    missing = [{"g0"} if there else {"g0", "g1"} for there in is_there]
    sides = [set(re.split(r"[^\w]+", name)) for name in constraint.component_names]
    equal = np.array([bool(gone & names) for gone, names in zip(missing, sides, strict=True)])
    assert 0 < equal.sum() < equal.size
    share = 0.5 if constraint.n_aux else 1.0
    np.testing.assert_allclose(values[equal], -share * KAPPA)
    losses = LOSSES["log_loss"](torch.from_numpy(scores[kept]), batch.y)
    expected = restated(notion, reference, batch, losses, torch.from_numpy(aux)).numpy()
    assert np.isnan(expected[equal]).all()
    np.testing.assert_allclose(values[~equal], expected[~equal])
    for part in on_batch.row_weights(equal.astype(float)):
        assert not part.any()
    if constraint.n_aux:
        signs = np.arange(values.size).reshape(constraint.n_aux, 2, n_groups)
        _, slopes = on_batch.row_weights(np.isin(np.arange(values.size), signs[:, 0]).astype(float))
        counts = [n_groups - len(gone) for gone in missing[:: 2 * n_groups]]
        np.testing.assert_allclose(slopes, -np.array(counts, dtype=float))


def test_a_batch_knows_merged_groups(draw_scores, evaluate):
    data = cells_of([(3, 3), (20, 20), (2, 3)])
    constraint = bound(data, min_group_size=7, small_groups="merge")
    scores = draw_scores(data)
    batch = data.at(np.flatnonzero(data.codes > 0))  # of the two small groups, one is there
    losses = np.logaddexp(0, -data.y.numpy() * scores)
    gap = losses[data.codes == 1].mean() - losses[data.codes == 2].mean()
    values = evaluate(constraint.on(batch), "values", scores[data.codes > 0])
    np.testing.assert_allclose(values, [gap - KAPPA, -gap - KAPPA])


# --- parameters


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kappa": -0.1}, "kappa must be a finite number of at least 0 or None"),
        ({"kappa": np.inf}, "kappa must be a finite number"),
        ({"kappa": np.nan}, "kappa must be a finite number"),
        ({"kappa": "1"}, "kappa must be a finite number"),
        ({"constraint": "parity"}, "'constraint' parameter of .*'equalized_odds'.* Got 'parity'"),
        ({"loss": "logistic"}, "'loss' parameter of .*'absolute'.* Got 'logistic'"),
        ({"agg_labels": "mean"}, "'agg_labels' parameter of .* Got 'mean'"),
        ({"reference": "centre"}, "'reference' parameter of .* Got 'centre'"),
        ({"small_groups": "drop"}, "'small_groups' parameter of .* Got 'drop'"),
        ({"min_group_size": -1}, "'min_group_size' parameter of .* Got -1"),
        ({"min_group_size": 2.5}, "'min_group_size' parameter of .* Got 2.5"),
        ({"min_group_size": "5"}, "'min_group_size' parameter of .* Got '5'"),
    ],
)
def test_parameters_out_of_range(parameters, message):
    constraint = LossParity(**parameters)
    with pytest.raises(ValueError, match=message):
        constraint.unchecked(draw_data(3))


def test_parameters_are_stored_untouched():
    parameters = {
        "kappa": 0.02,
        "constraint": "equalized_odds",
        "loss": "hinge",
        "reference": "overall",
        "agg_labels": "sum",
        "min_group_size": np.int64(3),
        "small_groups": "merge",
    }
    constraint = LossParity(**parameters)
    assert constraint.unchecked(cells_of([(3, 3), (3, 4)])).groups.labels == ("a", "b")
    assert constraint.get_params() == parameters
    assert clone(constraint).get_params() == parameters
    assert clone(constraint).set_params(kappa=0.3).kappa == 0.3


# --- rows that the model has not seen


@each_notion
@each_reference
def test_the_metric_is_the_largest_difference(notion, reference):
    data = draw_data(3)
    constraint = LossParity(KAPPA, reference=reference, **named(notion)).unchecked(data)
    scores = np.random.default_rng(0).normal(size=data.n_samples)
    differences = constraint.differences(scores)
    assert differences.max() == pytest.approx(constraint.metric(scores))
    np.testing.assert_allclose(np.sort(differences), np.sort(-differences), atol=1e-12)


@pytest.mark.parametrize(
    "constraint",
    [
        GroupRates("selection", kappa=KAPPA),
        GroupRates("selection", rule="ratio", kappa=KAPPA),
        GroupRates("log_loss", rule="ceiling", kappa=0.6),
        LossParity(None),
    ],
    ids=["a step", "a ratio", "one-sided", "no bound"],
)
def test_other_metrics_have_no_differences(constraint):
    data = draw_data(3)
    assert constraint.unchecked(data).differences(np.zeros(data.n_samples)) is None


def test_many_groups_have_no_differences():
    data = draw_data(9)
    assert LossParity(KAPPA).unchecked(data).differences(np.zeros(data.n_samples)) is None


def test_with_an_optimism_both_kinds_of_rows_are_within_kappa():
    data = draw_data(2)
    constraint = LossParity(KAPPA).unchecked(data)
    scores = np.random.default_rng(0).normal(size=data.n_samples)
    first, second = constraint.differences(scores)
    assert first == pytest.approx(-second)
    for optimism in ([0.0, 0.0], [0.0, 0.3], [0.3, 0.0]):
        stricter = constraint.with_optimism(np.array(optimism))
        largest = max(first, second, first + optimism[0], second + optimism[1])
        assert stricter.exact(scores) == pytest.approx(largest - KAPPA)
        assert stricter.metric(scores) == constraint.metric(scores)
        losses = constraint.row_loss.of(torch.from_numpy(scores), data.y).numpy()
        moved = stricter.of_losses(losses, np.empty(0)) - constraint.of_losses(losses, np.empty(0))
        np.testing.assert_allclose(moved, optimism, atol=1e-12)
