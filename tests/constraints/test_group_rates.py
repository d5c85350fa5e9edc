"""Any rate by any rule among any rows: the metric, components, gradients, cuts, and what is refused."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from fairconstrained.constraints import GroupRates
from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.data import FairData
from fairconstrained.groups import Groups, Strata
from fairconstrained.metrics import find_metric, group_rates
from fairconstrained.metrics.group_rates import GROUP_RATES, RULE_NAMES
from fairconstrained.sampling import Sampler
from tests.covering import each_value

KAPPA = 0.1
KINDS = ("two", "partition", "overlapping", "many overlapping")
RATES = [name for name in GROUP_RATES if name != "score"]  # of scores, which may be negative, there are no ratios
DECISIONS = [name for name, rate in GROUP_RATES.items() if rate.counts_rows]


def draw(kind="partition", n=240, seed=0, strata=False):
    """Data, and what the metrics take for ``sensitive_features`` and ``strata`` in the order of the data."""
    rng = np.random.default_rng(seed)
    n_groups = {"two": 2, "partition": 3, "overlapping": 4, "many overlapping": 11}[kind]
    apart = kind in ("two", "partition")
    features = rng.integers(0, n_groups, n) if apart else rng.random((n, n_groups)) < 0.4
    groups = Groups.of(features, overlapping=True)
    y = np.where(rng.random(n) < 0.45, 1.0, -1.0)
    X = rng.normal(size=(n, 2)) + 0.5 * np.atleast_2d(features.T)[0][:, None] + 0.3 * y[:, None]
    weights, columns = rng.uniform(0.3, 3.0, n), rng.integers(0, 2, n)
    found = Strata.of(columns) if strata else None
    data = FairData.from_arrays(X, y, groups.codes, groups.labels, weights, groups.unions, strata=found)
    return data, features[data.order], columns[data.order]


def scores_of(data, seed=3):
    return np.random.default_rng(seed).normal(size=data.n_samples) + 0.3 * data.X[:, 0] - 0.1


def value_of(data, features, scores, rate, rule, **options):
    columns = {"sensitive_features": features, "sample_weight": data.weights.numpy()}
    return group_rates(data.y.numpy(), scores, **columns, rate=rate, rule=rule, **options)


def components(constraint, scores, aux=None):
    aux = constraint.initial_aux(scores) if aux is None else aux
    return constraint.values(torch.from_numpy(scores), torch.from_numpy(aux)).numpy()


@each_value(rate=RATES, rule=list(RULE_NAMES), kind=KINDS, within=[None, "strata"])
def test_the_metric_and_the_largest_component(rate, rule, kind, within):
    data, features, strata = draw(kind, strata=within is not None)
    scores = scores_of(data)
    bound = GroupRates(rate, rule=rule, kappa=KAPPA, within=within).unchecked(data)
    value = value_of(data, features, scores, rate, rule, strata=strata if within else None)
    assert bound.metric(scores) == pytest.approx(value)
    excess = KAPPA - value if rule == "floor" else value - KAPPA
    assert bound.exact(scores) == pytest.approx(excess)
    refined = bound.refined(scores, blur=0.1, margin=0.0)
    values = components(refined, scores)
    assert len(refined.component_names) == len(set(refined.component_names)) == values.size
    share = 0.5 if bound.n_aux else 1.0
    if rule == "ratio":  # logarithms are compared
        assert (values.max() > 0) == (excess > 0)
        assert values.max() == pytest.approx(-bound.unit * share * np.log((1 - value) / (1 - KAPPA)), abs=1e-9)
    else:
        assert values.max() == pytest.approx(share * excess)


@each_value(rate=RATES, rule=list(RULE_NAMES), kind=KINDS, within=[None, "strata"])
def test_linear_components_are_above_zero_where_the_metric_is_beyond_its_bound(rate, rule, kind, within):
    data, _, _ = draw(kind, strata=within is not None)
    bound = GroupRates(rate, rule=rule, kappa=0.6, within=within).unchecked(data)
    linear = bound.with_linear_components()
    all_scores = [scores_of(data) + shift for shift in (-0.5, 0.0, 0.5)]
    for scores in all_scores:
        assert (linear.exact(scores) > 0) == (bound.exact(scores) > 0)
        values = components(linear.refined(scores, blur=0.1, margin=0.0), scores)
        assert (values.max() > 0) == (bound.exact(scores) > 0)
    predicts_values = rate in ("positive_predictive_value", "negative_predictive_value")
    if rule == "ratio" and bound.decision_threshold is not None and not predicts_values and not bound.n_aux:
        assert linear.scale == 1.0
        middle = np.mean([linear.means(scores) for scores in all_scores], axis=0).ravel()
        mean = np.mean([linear._exact_components(scores) for scores in all_scores], axis=0)
        assert linear._compared(middle, np.empty(0), np.empty(0)) == pytest.approx(mean)
    else:
        assert linear is bound


def test_linear_ratios_of_rates_of_zero_do_not_keep_their_bound():
    bound = GroupRates(rule="ratio", kappa=0.2).unchecked(draw()[0]).with_linear_components()
    assert bound.exact(np.full(240, -1.0)) > 0
    assert bound.exact(np.full(240, 1.0)) < 0


@each_value(rate=RATES, rule=list(RULE_NAMES), kind=KINDS, within=[None, "strata"])
def test_gradients(rate, rule, kind, within):
    data, _, _ = draw(kind, strata=within is not None)
    scores = scores_of(data)
    bound = GroupRates(rate, rule=rule, kappa=KAPPA, within=within).unchecked(data).refined(scores, blur=0.3, margin=0)
    aux = torch.from_numpy(bound.initial_aux(scores)).requires_grad_()
    given = torch.from_numpy(scores).requires_grad_()
    rng = np.random.default_rng(1)
    multipliers = torch.from_numpy(rng.random(len(bound.component_names)))
    with torch.enable_grad():
        slopes = torch.autograd.grad(multipliers @ bound.values(given, aux), (given, aux))
    step, eps = rng.normal(size=scores.size), 1e-6
    ends = [components(bound, scores + side * eps * step, aux.detach().numpy()) for side in (1, -1)]
    change = multipliers.numpy() @ (ends[0] - ends[1]) / (2 * eps)
    assert change == pytest.approx(float(slopes[0].numpy() @ step), rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("kind", ["partition", "overlapping"])
@pytest.mark.parametrize("rule", RULE_NAMES)
@pytest.mark.parametrize("rate", DECISIONS)
def test_values_at_cuts_are_the_metric_of_shifted_scores(rate, rule, kind):
    data, features, _ = draw(kind)
    scores = scores_of(data)
    bound = GroupRates(rate, rule=rule, kappa=KAPPA).unchecked(data)
    cuts = np.array([-0.7, 0.0, 0.4, 1.1])
    expected = [value_of(data, features, scores - cut, rate, rule) for cut in cuts]
    np.testing.assert_allclose(bound.values_at_cuts(scores, cuts), expected, atol=1e-12)


def test_predictive_values_are_exact_where_they_were_refined():
    data, features, _ = draw()
    scores = scores_of(data)
    bound = GroupRates("positive_predictive_value", rule="floor", kappa=0.0).unchecked(data)
    refined = bound.refined(scores, blur=0.1, margin=0.0)
    at = components(refined, scores)
    decisions = (scores > 0).astype(float)
    weights, hit = data.weights.numpy(), data.y.numpy() > 0
    for group, value in enumerate(at):
        rows = features == group
        own = weights[rows] @ (decisions * hit)[rows] / (weights[rows] @ decisions[rows])
        assert value == pytest.approx(-own)
    # One more row among those of a smooth decision changes the rate by its weight over theirs, to first order.
    smooth = refined.function.smooth.of(torch.from_numpy(scores), data.y).numpy()
    slopes, _ = refined.row_weights(np.array([-1.0, 0.0, 0.0]))
    rows = features == 0
    total = weights[rows] @ smooth[rows]
    rate = weights[rows] @ (smooth * hit)[rows] / total
    expected = np.where(rows, weights * (hit - rate) / total, 0.0)
    np.testing.assert_allclose(slopes, expected, atol=1e-12)


def test_rules_by_hand():
    y = [1, 1, 0, 0, 1, 1, 0, 0, 0]
    score = np.array([1, -1, 1, -1, 1, 1, 1, 1, -1.0])
    rows = {"sensitive_features": list("aaaabbbbb")}
    # Group a: selection 2/4, tpr 1/2, fpr 1/2, precision 1/2, 2 of 4 wrong; b: 4/5, 2/2, 2/3, 2/4, 2 of 5 wrong.
    expected = {
        ("selection", "difference"): 0.3,
        ("selection", "ratio"): 1 - 0.5 / 0.8,
        ("selection", "floor"): 0.5,
        ("selection", "ceiling"): 0.8,
        ("selection", "to_overall"): 6 / 9 - 0.5,
        ("true_positive", "ratio"): 0.5,
        ("false_negative", "ceiling"): 0.5,
        ("true_negative", "floor"): 1 / 3,
        ("true_and_false_positive", "ratio"): 0.5,
        ("error", "difference"): 0.1,
        ("accuracy", "floor"): 0.5,
        ("positive_predictive_value", "difference"): 0.0,
        ("negative_predictive_value", "ratio"): 0.5,
        ("score", "floor"): 0.0,
    }
    for (rate, rule), value in expected.items():
        assert group_rates(y, score, **rows, rate=rate, rule=rule) == pytest.approx(value), (rate, rule)
    assert group_rates(y, score, **rows, among="positives", rule="ratio") == pytest.approx(0.5)
    strata = [0, 0, 1, 1, 0, 0, 0, 1, 1]
    assert group_rates(y, score, **rows, strata=strata) == pytest.approx(0.5)  # 1/2 and 1/2 of a, 3/3 and 1/2 of b


def test_a_value_that_does_not_exist():
    y, rows = [1, 0, 1, 0], {"sensitive_features": list("aabb")}
    nobody = [-1.0, -1.0, -1.0, -1.0]
    with pytest.raises(ValueError, match="no group has a rate above 0"):
        group_rates(y, nobody, **rows, rule="ratio")
    with pytest.raises(ValueError, match=r"these groups.*'b'"):
        group_rates(y, [1.0, -1.0, -1.0, -1.0], **rows, rate="positive_predictive_value")
    with pytest.raises(ValueError, match=r"'b' \(1\), 'a' \(2\)"):
        group_rates(y, nobody, **rows, strata=[1, 1, 2, 2])
    assert np.isnan(group_rates(y, nobody, **rows, rule="ratio", on_empty="nan"))
    bound = GroupRates(rule="ratio", kappa=0.2).unchecked(draw()[0])
    assert bound.exact(np.full(240, -1.0)) == 0.8  # as if one rate were none of the other
    assert "does not exist" in bound.caveat(np.full(240, -1.0))
    assert "does not exist" in bound.complaint(bound.at_excess(bound.exact(np.full(240, -1.0))))
    assert "does not exist" not in bound.complaint(0.4)


@pytest.mark.parametrize("rate", ["true_positive", "error", "positive_predictive_value", "log_loss"])
@pytest.mark.parametrize("rule", ["difference", "ratio"])
def test_mini_batches_of_all_rows_are_the_whole(rate, rule):
    data, _, _ = draw()
    scores = scores_of(data)
    bound = GroupRates(rate, rule=rule, kappa=KAPPA).unchecked(data).refined(scores, blur=0.1, margin=0.0)
    rows = np.arange(data.n_samples)
    part = data.at(rows, data.weights)
    np.testing.assert_allclose(components(bound.on(part), scores), components(bound, scores), atol=1e-12)
    batch = next(Sampler.of(data, 60).batches(np.random.default_rng(0), 1))
    assert np.isfinite(components(bound.on(batch), np.zeros(batch.n_samples))).all()


def test_a_mask_of_rows():
    data, features, _ = draw(n=400)
    scores = scores_of(data)
    mask = np.random.default_rng(5).random(400) < 0.6
    bound = GroupRates("error", kappa=KAPPA, among=mask).unchecked(data)
    inside = mask[data.order]
    expected = group_rates(
        data.y.numpy()[inside],
        scores[inside],
        sensitive_features=features[inside],
        sample_weight=data.weights.numpy()[inside],
        rate="error",
    )
    assert bound.metric(scores) == pytest.approx(expected)
    part = np.arange(0, 400, 2)
    of_part = bound.on(data.part(part))
    assert of_part.metric(scores[part]) != pytest.approx(expected)
    assert not bound.sees_cells_only
    for other in (mask[:100], np.concatenate([mask, mask])):
        with pytest.raises(ValueError, match=f"among has {other.size} entries, but 400 rows were given"):
            GroupRates(among=other).unchecked(data)
    with pytest.raises(ValueError, match="must have a boolean for each row"):
        GroupRates(among=mask.astype(int)).unchecked(data)


@pytest.mark.parametrize(("name", "params"), NAMED_RATES.items())
def test_names_are_those_of_the_metrics(name, params):
    data, features, strata = draw(strata="within" in params)
    scores = scores_of(data)
    bound = GroupRates(**params, kappa=KAPPA).unchecked(data)
    assert bound.name == name
    if name == "bounded_group_loss":
        return  # a loss has a metric under its own name
    info, _ = find_metric(name)
    more = {"strata": strata} if "within" in params else {}
    decisions = np.where(scores > 0, 1, -1)
    weights = data.weights.numpy()
    expected = info.function(
        data.y.numpy().astype(int), decisions, sensitive_features=features, sample_weight=weights, **more
    )
    assert bound.metric(scores) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rate": "gain"}, "rate must be one of"),
        ({"rate": "true_positive", "among": "negatives"}, "leave among='all'"),
        ({"rate": "positive_predictive_value", "among": "positives"}, "leave among='all'"),
        ({"rule": "largest"}, "rule"),
        ({"among": "women"}, "among must be one of"),
        ({"within": "strata"}, r"fit\(strata=...\)"),
        ({"kappa": 1.2}, r"kappa must be in \[0, 1\]"),
        ({"rate": "log_loss", "kappa": -1}, "kappa"),
        ({"rate": "score", "rule": "ratio"}, "rule='difference'"),
        ({"rate": "log_loss", "rule": "ratio", "kappa": 3}, r"kappa must be in \[0, 1\]"),
    ],
)
def test_what_is_refused(params, message):
    with pytest.raises(ValueError, match=message):
        GroupRates(**params).bind(draw()[0])


def test_strata_that_lack_a_group_are_named():
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], 100)
    strata = Strata.of(np.where(codes == 1, rng.integers(0, 2, 200), 0))
    data = FairData.from_arrays(
        rng.normal(size=(200, 1)), rng.choice([-1.0, 1.0], 200), codes, ("a", "b"), strata=strata
    )
    # two groups are all that there is to compare
    for small in ("error", "merge"):
        with pytest.raises(
            ValueError, match=r"'a, 1': 0.*\. Merge strata, in each of which groups are compared, or (bound|lower)"
        ):
            GroupRates(within="strata", small_groups=small).bind(data)


@pytest.mark.parametrize(
    ("sizes", "rule", "advice"),
    [
        ((5, 100), "difference", "Pass more rows"),
        ((5, 100), "floor", "Merge groups, set small_groups='merge' or 'ignore' (in the"),
        (
            (5, 100, 100),
            "difference",
            "Merge groups, set small_groups='merge' or 'ignore' (in the constraint, where that",
        ),
        ((5, 6, 100), "difference", "Merge groups, set small_groups='merge' (in the constraint"),
        ((3, 4, 100), "difference", "Pass more rows, or lower"),
        ((1, 2), "floor", "Pass more rows, or lower"),
        ((5, 6, 7), "difference", "Pass more rows, or lower"),
        ((5, 6, 7, 8), "difference", "Merge groups, or lower"),
    ],
    ids=[
        "two",
        "two floors",
        "three",
        "two of three",
        "too few of three",
        "too few for a floor",
        "three of three",
        "four of four",
    ],
)
def test_advice_on_small_groups_leaves_enough_to_compare(sizes, rule, advice):
    codes = np.repeat(np.arange(len(sizes)), sizes)
    y = np.where(np.arange(codes.size) % 2, 1.0, -1.0)
    data = FairData.from_arrays(np.zeros((y.size, 1)), y, codes, tuple("abcd"[: len(sizes)]))
    constraint = GroupRates(rule=rule, kappa=0.5, min_group_size=10)
    with pytest.raises(ValueError, match=re.escape(f"}}. {advice}")):
        constraint.bind(data)
    for setting in re.findall("'(.*?)'", advice):
        assert constraint.set_params(small_groups=setting).bind(data).compares


def test_one_group_has_a_floor_but_no_difference():
    data, _, _ = draw()
    alone = FairData.from_arrays(data.X, data.y.numpy(), np.zeros(240, dtype=int), ("all",))
    floor = GroupRates("true_positive", rule="floor", kappa=0.5).unchecked(alone)
    assert floor.compares
    assert not GroupRates("true_positive").unchecked(alone).compares


def test_a_sparse_membership_is_as_good_as_a_dense_one():
    rng = np.random.default_rng(0)
    members = rng.random((60, 3)) < 0.5
    y, scores = rng.integers(0, 2, 60), rng.normal(size=60)
    dense = group_rates(y, scores, sensitive_features=members, rate="error", rule="ratio")
    assert dense == group_rates(y, scores, sensitive_features=sp.csr_array(members), rate="error", rule="ratio")
