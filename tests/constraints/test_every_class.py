"""Constraints on two classes for every one of several: against the two-class constraint and the metrics."""

import numpy as np
import pytest
import torch
from scipy.special import expit, softmax

from fairconstrained import RateParityClassifier, metrics
from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    GroupRates,
    LossParity,
    RateGap,
    StatisticalParity,
)
from fairconstrained.constraints.every_class import EveryClass, _margins
from fairconstrained.data import FairData
from fairconstrained.groups import Strata
from fairconstrained.objectives import Logistic
from fairconstrained.terms import DifferentiatedPoint, Terms
from fairconstrained.views import Stochastic

NAMES = ["ash", "birch", "cedar"]
#: Constraints on two classes, with the metric of several.
KNOWN = {
    "statistical parity": (StatisticalParity(0.1), metrics.statistical_parity_gap, {}),
    "interval": (
        StatisticalParity(0.1, interval=(0.0, 0.4)),
        metrics.partial_statistical_parity_gap,
        {"interval": (0.0, 0.4)},
    ),
    "demographic parity": (DemographicParity(0.1), metrics.partial_demographic_parity_gap, {}),
    "opportunity": (EqualOpportunity(0.1), metrics.partial_equal_opportunity_gap, {}),
    "odds": (EqualizedOdds(0.1), metrics.partial_equalized_odds_gap, {}),
    "group auc": (GroupAUC(0.1), metrics.partial_group_auc_gap, {}),
    "auc": (AUCGap(0.1), metrics.inter_group_auc_gap, {}),
    "rates": (RateGap(0.1, constraint="equalized_odds"), metrics.rate_gap, {"constraint": "equalized_odds"}),
    "sigmoid": (RateGap(0.1, rate="sigmoid"), metrics.rate_gap, {"rate": "sigmoid"}),
}
each_known = pytest.mark.parametrize(("constraint", "metric", "options"), KNOWN.values(), ids=KNOWN)


def make(n=240, n_classes=3, seed=0, weighted=True, **others):
    """Data of several classes in three groups, and scores in the order of the data."""
    rng = np.random.default_rng(seed)
    codes = np.repeat([0, 1, 2], [n // 2, n // 3, n - n // 2 - n // 3])
    y = rng.integers(0, n_classes, n).astype(float)
    weights = rng.uniform(0.5, 2.0, n) if weighted else None
    data = FairData.from_arrays(np.empty((n, 0)), y, codes, ("a", "b", "c"), weights, **others)
    scores = rng.normal(size=(n, n_classes)) + 0.5 * data.codes[:, None] * [1, 0, -1][:n_classes]
    scores[np.arange(n), data.y.numpy().astype(int)] += 1.0
    return data, scores


@pytest.fixture(scope="module")
def sample():
    return make()


def bound_to(constraint, data, classes=NAMES):
    return EveryClass(constraint, classes).unchecked(data)


def values_at(bound, scores, aux=None):
    aux = bound.initial_aux(scores) if aux is None else aux
    return bound.values(torch.from_numpy(scores), torch.from_numpy(aux)).detach().numpy()


@each_known
def test_its_metric_is_that_of_the_package(sample, constraint, metric, options):
    data, scores = sample
    bound = bound_to(constraint, data)
    expected = metric(
        data.y.numpy(), scores, sensitive_features=data.codes, sample_weight=data.weights.numpy(), **options
    )
    assert bound.metric(scores) == pytest.approx(expected, abs=1e-12)
    assert bound.exact(scores) == pytest.approx(expected - 0.1, abs=1e-12)
    assert max(bound.class_values(scores).values()) == bound.metric(scores)
    assert set(bound.class_values(scores)) == set(NAMES)
    by_chance = [inner.value_by_chance for inner in bound.inner]
    np.testing.assert_equal(bound.value_by_chance, max(by_chance))  # NaN where it is not known


@each_known
def test_of_two_classes_each_is_the_other_way_round(constraint, metric, options):
    data, scores = make(n_classes=2)
    several = bound_to(constraint, data, ["no", "yes"])
    signs, names = 2 * data.y.numpy() - 1, {-1.0: "not yes", 1.0: "yes"}
    two = FairData.from_arrays(
        np.empty((data.n_samples, 0)), signs, data.codes, data.labels, data.weights.numpy(), label_names=names
    )
    known = constraint.unchecked(two)
    margins = scores[two.order, 1] - scores[two.order, 0]
    assert several.class_values(scores)["yes"] == pytest.approx(known.metric(margins), abs=1e-12)
    half = len(known.component_names)
    assert [name.replace("[yes]", "", 1) for name in several.component_names[half:]] == list(known.component_names)
    aux = several.initial_aux(scores)
    own = aux[known.n_aux :] if known.n_aux else aux
    np.testing.assert_allclose(
        values_at(several, scores, aux)[half:],
        known.values(torch.from_numpy(margins), torch.from_numpy(own)).numpy(),
        atol=1e-12,
    )


@each_known
def test_refined_components_are_exact_and_their_slopes_those_of_the_values(sample, constraint, metric, options):
    data, scores = sample
    bound = bound_to(constraint, data).refined(scores, blur=0.5, margin=0.02)
    aux = bound.initial_aux(scores)
    if not bound.n_aux and bound.name != "group_auc":  # what is compared is the largest component
        assert values_at(bound, scores).max() == pytest.approx(bound.metric(scores) - (0.1 - 0.02), abs=1e-9)
    where = torch.from_numpy(scores).requires_grad_()
    chosen = torch.from_numpy(np.random.default_rng(1).uniform(size=len(bound.component_names)))
    (slopes,) = torch.autograd.grad(bound.values(where, torch.from_numpy(aux)) @ chosen, where)
    direction, step = np.random.default_rng(2).normal(size=scores.shape), 1e-6
    ends = [chosen.numpy() @ values_at(bound, scores + sign * step * direction, aux) for sign in (1, -1)]
    difference = (ends[0] - ends[1]) / (2 * step)
    assert (slopes.numpy() * direction).sum() == pytest.approx(difference, rel=2e-4, abs=1e-6)
    # a constant for all classes of a row changes nothing
    np.testing.assert_allclose(slopes.numpy().sum(axis=1), 0.0, atol=1e-12)


@pytest.mark.parametrize("width", [0.0, 0.7])
def test_slopes_of_margins_are_those_of_torch(sample, width):
    _, scores = sample
    margins, pull = _margins(scores, width)
    where = torch.from_numpy(scores).requires_grad_()
    known = torch.stack([where[:, k] - largest_of(where[:, np.arange(3) != k], width) for k in range(3)])
    np.testing.assert_allclose(margins, known.detach().numpy(), rtol=1e-9, atol=1e-12)
    slopes = np.random.default_rng(1).normal(size=margins.shape)
    known.backward(torch.from_numpy(slopes))
    np.testing.assert_allclose(pull(slopes), where.grad.numpy(), rtol=1e-9, atol=1e-12)


def largest_of(scores, width):
    """The largest score of every row, smooth or not."""
    return width * torch.logsumexp(scores / width, dim=1) if width else scores.amax(dim=1)


@each_known
def test_a_point_builds_no_graph(sample, constraint, metric, options):
    data, scores = sample
    bound = bound_to(constraint, data).refined(scores, blur=0.5, margin=0.02)
    terms = Terms(Logistic().of_several_classes().bind(data), (bound,), data)
    given, aux = torch.from_numpy(scores), bound.initial_aux(scores)
    point, known = terms.at_scores(given, aux), DifferentiatedPoint(terms, given.clone(), aux)
    assert not given.requires_grad
    np.testing.assert_allclose(point.constraints, known.constraints, atol=1e-12)
    multipliers = np.random.default_rng(3).uniform(size=point.constraints.size)
    for own, other in zip(point.slopes(1.0, multipliers), known.slopes(1.0, multipliers), strict=True):
        np.testing.assert_allclose(own, other, atol=1e-12)


def test_smooth_margins_tend_to_the_exact_ones_and_make_a_softmax(sample):
    data, scores = sample
    bound = bound_to(RateGap(0.1), data)
    few = bound.refined(scores, blur=1e-4, margin=0.0)
    assert 0 < few.width < 1e-3
    assert np.abs(few.correction).max() < 1e-2
    margins, _ = _margins(scores, 0.7)
    np.testing.assert_allclose(expit(margins.T / 0.7), softmax(scores / 0.7, axis=1), rtol=1e-9)
    far, _ = _margins(np.array([[1e5, 0.0, -1e5]]), 1e-3)
    np.testing.assert_allclose(far.T, [[1e5, -1e5, -2e5]])


def test_components_that_refinement_adds_stand_behind_all_others(sample):
    data, scores = sample
    bound = bound_to(StatisticalParity(0.02, n_levels=2), data)
    finer = bound.refined(scores, blur=0.1, margin=0.0)
    n_old = len(bound.component_names)
    assert len(finer.component_names) > n_old
    assert finer.component_names[:n_old] == bound.component_names
    assert len(set(finer.component_names)) == len(finer.component_names)
    by_class = [name for k, label in enumerate(NAMES) for name in finer.inner[k].component_names if label]
    assert sorted(by_class) == sorted(
        name.replace(f"[{label}]", "", 1) for name in finer.component_names for label in NAMES if f"[{label}]" in name
    )
    # every component is that of its class
    aux = finer.initial_aux(scores)
    values = dict(zip(finer.component_names, values_at(finer, scores, aux) - finer.correction, strict=True))
    exact = finer.__class__(**{**vars(finer), "width": 0.0, "correction": 0.0})
    plain = dict(zip(finer.component_names, values_at(exact, scores, aux), strict=True))
    first = 0
    for (inner, own), label in zip(finer._with_margins(scores), NAMES, strict=True):
        found = inner.values(torch.from_numpy(own), torch.from_numpy(aux[first : first + inner.n_aux])).numpy()
        first += inner.n_aux
        for name, value in zip(inner.component_names, found, strict=True):
            assert plain[name.replace(finer.name, f"{finer.name}[{label}]", 1)] == pytest.approx(value, abs=1e-12)
    assert set(values) == set(plain)


@each_known
def test_a_batch_of_all_rows_is_the_whole(sample, constraint, metric, options):
    data, scores = sample
    bound = bound_to(constraint, data)
    if not isinstance(bound, Stochastic):
        assert not isinstance(
            constraint.bind(
                FairData.from_arrays(
                    np.empty((data.n_samples, 0)), np.where(data.y.numpy() > 0, 1.0, -1.0), data.codes, data.labels
                )
            ),
            Stochastic,
        )
        return
    rows = np.arange(data.n_samples)
    same = bound.on(data.at(rows, data.weights))
    assert same.metric(scores) == pytest.approx(bound.metric(scores), abs=1e-12)
    aux = bound.initial_aux(scores)
    np.testing.assert_allclose(values_at(same, scores, aux), values_at(bound, scores, aux), atol=1e-12)
    half = rows[::2]
    part = bound.on(data.part(half))
    expected = metric(
        data.y.numpy()[half],
        scores[half],
        sensitive_features=data.codes[half],
        sample_weight=data.weights.numpy()[half],
        **options,
    )
    assert part.metric(scores[half]) == pytest.approx(expected, abs=1e-12)


def test_a_floor_counts_for_the_class_that_is_furthest_below_it(sample):
    data, scores = sample
    bound = bound_to(GroupRates("selection", rule="floor", kappa=0.3), data)
    shares = [
        np.average(scores[rows].argmax(axis=1)[:, None] == np.arange(3), axis=0, weights=data.weights.numpy()[rows])
        for rows in data.slices
    ]
    assert bound.metric(scores) == pytest.approx(np.min(shares))
    assert bound.exact(scores) == pytest.approx(0.3 - np.min(shares))
    assert bound.with_kappa(bound.tightened(0.05)).exact(scores) == pytest.approx(0.35 - np.min(shares))
    assert bound.at_excess(bound.exact(scores)) == pytest.approx(np.min(shares))
    assert "is below kappa" in bound.complaint(bound.metric(scores))
    assert bound.price({f"{bound.name}[a]": 2.0}) < 0


def test_a_group_that_is_too_small_in_one_class_is_left_out_of_all():
    data, _ = make(n=240, weighted=False)
    y = data.y.numpy().copy()
    last = np.flatnonzero(data.codes == 2)
    y[last] = 0.0
    y[last[:2]] = [1.0, 2.0]
    fewer = FairData.from_arrays(np.empty((240, 0)), y, data.codes, data.labels)
    constraint = RateGap(0.1, constraint="equal_opportunity", small_groups="ignore")
    bound = EveryClass(constraint, NAMES).unchecked(fewer)
    assert bound.compared_as == {"c": None}
    assert [inner.compared_as for inner in bound.inner] == [{"c": None}] * 3
    with pytest.raises(ValueError, match=r"'c, y=birch': 1"):
        EveryClass(RateGap(0.1, constraint="equal_opportunity"), NAMES).bind(fewer)
    counts = EveryClass(RateGap(0.1), NAMES).bind(fewer).compared_cells()
    assert list(counts.labels) == ["a", "b", "c"]  # where labels are not told apart, once for all classes


def test_strata_move_with_the_rows():
    strata = Strata.of(np.random.default_rng(5).integers(0, 2, 240))
    data, scores = make(strata=strata)
    bound = bound_to(GroupRates(within="strata", kappa=0.4), data)
    decided = scores.argmax(axis=1)
    gaps = []
    for stratum in (0, 1):
        for number in range(3):
            rows = data.strata.codes == stratum
            rates = [
                np.average(
                    (decided == number)[rows & (data.codes == g)],
                    weights=data.weights.numpy()[rows & (data.codes == g)],
                )
                for g in range(3)
            ]
            gaps.append(np.ptp(rates))
    assert bound.metric(scores) == pytest.approx(max(gaps))


def test_ignored_groups_take_no_part():
    data, scores = make()
    ignoring = FairData.from_arrays(
        np.empty((data.n_samples, 0)), data.y.numpy(), data.codes, data.labels, data.weights.numpy(), n_ignored=1
    )
    rows = data.codes < 2
    bound = EveryClass(RateGap(0.1), NAMES).bind(ignoring)
    expected = metrics.rate_gap(
        data.y.numpy()[rows],
        scores[rows],
        sensitive_features=data.codes[rows],
        sample_weight=data.weights.numpy()[rows],
    )
    assert bound.metric(scores) == pytest.approx(expected)
    assert bound.class_values(scores).keys() == set(NAMES)


def test_log_losses_of_several_classes_are_multinomial(sample):
    data, scores = sample
    losses = np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(240), data.y.numpy().astype(int)]
    weights, y = data.weights.numpy(), data.y.numpy()
    means = [np.average(losses[rows], weights=weights[rows]) for rows in data.slices]
    bound = LossParity(0.05).for_classes(NAMES).bind(data)
    assert bound.metric(scores) == pytest.approx(np.ptp(means))
    assert values_at(bound, scores).max() == pytest.approx(np.ptp(means) - 0.05)
    by_class = LossParity(0.05, constraint="equalized_odds").for_classes(NAMES).unchecked(data)
    gaps = [
        np.ptp(
            [
                np.average(losses[chosen], weights=weights[chosen])
                for chosen in ((data.codes == g) & (y == k) for g in range(3))
            ]
        )
        for k in range(3)
    ]
    assert by_class.metric(scores) == pytest.approx(max(gaps))
    assert any("y=birch" in name for name in by_class.component_names)
    ceiling = GroupRates("log_loss", rule="ceiling", kappa=0.5).for_classes(NAMES).bind(data)
    assert ceiling.metric(scores) == pytest.approx(max(means))
    assert LossParity(0.05, loss="hinge").for_classes(NAMES) is None
    with pytest.raises(ValueError, match="agg_labels='sum' is for two classes"):
        LossParity(0.05, agg_labels="sum").for_classes(NAMES)


def test_the_error_for_a_class_that_a_group_lacks_names_the_class():
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b"], 60)
    y = np.tile(["elm", "fir", "oak"], 40)
    y[(group == "b") & (y == "oak")] = "fir"
    model = RateParityClassifier(0.5, constraint="equal_opportunity")
    with pytest.raises(ValueError, match=r"Class 'oak' against all others: .* with a label that is compared.*'b': 0"):
        model.fit(rng.normal(size=(120, 2)), y, sensitive_features=group)
