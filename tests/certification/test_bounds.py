"""The bounds: by hand, by other libraries, by enumeration, and at other sample sizes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import special
from scipy.stats import binom, binomtest, entropy, multinomial

from fairconstrained.certification._binomial import binomial_ends
from fairconstrained.certification._bounded_means import least_mean
from fairconstrained.certification._dkw import band_width
from fairconstrained.certification._ustatistics import chernoff_upper
from fairconstrained.certification.evidence import NotOffered, evidence_of

#: Metrics with some parameters, one case for every branch of the bounds.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("independence_gap", {}),
    ("independence_gap", {"agg": "mean"}),
    ("equal_opportunity_gap", {}),
    ("separation_gap", {}),
    ("separation_gap", {"agg_labels": "sum"}),
    ("separation_gap", {"agg": "mean"}),
    ("separation_gap", {"agg": "mean", "agg_labels": "sum"}),
    ("sufficiency_gap", {}),
    ("inaccuracy", {}),
    ("rate_gap", {}),
    ("rate_gap", {"constraint": "equal_opportunity"}),
    ("rate_gap", {"constraint": "equalized_odds", "rate": "sigmoid"}),
    ("rate_gap", {"constraint": "intersectional"}),
    ("rate_gap", {"constraint": "intersectional", "agg": "mean"}),
    ("parity_pair", {"beta": 0.5}),
    ("parity_pair", {"rate": "sigmoid"}),
    ("minority_share", {"minority": "c"}),
    ("partial_demographic_parity_gap", {"interval": (0.1, 0.6)}),
    ("partial_demographic_parity_gap", {"interval": {"a": (0.1, 0.6), "b": (0, 0.5), "c": [(0, 0.2), (0.4, 0.7)]}}),
    ("partial_equal_opportunity_gap", {"interval": (0.1, 0.8)}),
    ("partial_equalized_odds_gap", {"interval": (0.1, 0.8), "agg": "mean"}),
    ("statistical_parity_gap", {}),
    ("statistical_parity_gap", {"agg": "mean"}),
    ("partial_statistical_parity_gap", {"interval": [(0, 0.2), (0.5, 0.7)]}),
    ("wasserstein_gap", {}),
    ("wasserstein_gap", {"agg": "mean"}),
    ("partial_group_auc_gap", {"interval": (0, 0.3)}),
    ("partial_group_auc_gap", {"agg": "mean"}),
    ("group_auc_gap", {}),
    ("group_auc_gap", {"protected": "b"}),
    ("inter_group_auc_gap", {}),
    ("inter_group_auc_gap", {"protected": "a"}),
    ("intra_group_auc_gap", {"agg": "mean"}),
    ("positive_equality_gap", {}),
    ("negative_equality_gap", {"protected": "c"}),
    ("bpsn_bnsp_gap", {}),
    ("loss_parity_gap", {"loss": "log_loss"}),
    ("loss_parity_gap", {"constraint": "equalized_odds", "loss": "hinge"}),
    ("loss_parity_gap", {"constraint": "equalized_odds", "loss": "hinge", "agg_labels": "sum"}),
    ("loss_parity_gap", {"constraint": "equal_opportunity", "reference": "overall"}),
    ("rate_gap", {"constraint": "intersectional", "rate": "hinge"}),
    ("demographic_parity_ratio_gap", {}),
    ("demographic_parity_ratio_gap", {"agg": "mean"}),
    ("equalized_odds_ratio_gap", {}),
    ("predictive_parity_gap", {}),
    ("predictive_parity_ratio_gap", {}),
    ("error_rate_parity_gap", {}),
    ("group_rates", {"rate": "true_positive", "rule": "floor"}),
    ("group_rates", {"rate": "false_positive", "rule": "ceiling"}),
    ("group_rates", {"rate": "error", "rule": "to_overall"}),
    ("group_rates", {"rate": "log_loss", "rule": "ceiling"}),
]


@pytest.mark.parametrize(("hits", "count"), [(0, 7), (3, 11), (11, 11), (40, 900)])
def test_binomial_ends_are_those_of_scipy(hits, count):
    exact = binomtest(hits, count).proportion_ci(0.9, method="exact")
    np.testing.assert_allclose(binomial_ends(np.array(hits), np.array(count), 0.05), (exact.low, exact.high))


@pytest.mark.parametrize("delta", [1e-100, 1e-200, 1e-300])
def test_binomial_ends_exist_for_any_confidence(delta):
    hits, count = np.arange(41), np.full(41, 40)
    lower, upper = binomial_ends(hits, count, delta)
    assert (lower >= 0).all()
    assert (lower <= hits / count).all()
    assert (upper >= hits / count).all()
    assert (upper <= 1).all()


def test_no_rows_say_nothing():
    assert binomial_ends(np.array(0), np.array(0), 0.05) == (0.0, 1.0)


def test_chernoff_bound_solves_its_equation():
    theta = chernoff_upper(0.3, 50, 0.01)
    assert theta > 0.3
    assert entropy([0.3, 0.7], [theta, 1 - theta]) == pytest.approx(np.log(100) / 50)
    assert chernoff_upper(0.0, 20, 0.05) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert chernoff_upper(1.0, 20, 0.05) == 1.0


def test_chernoff_bound_is_wider_than_the_exact_one_for_a_mean_of_indicators():
    """For a kernel of zeros and ones, and one row of the other set for each, the statistic is a proportion."""
    for hits in range(0, 31, 5):
        assert chernoff_upper(hits / 30, 30, 0.05) >= binomial_ends(np.array(hits), np.array(30), 0.05)[1]


def test_limits_of_means_by_hand():
    """The first share is three quarters; after a value of 0.6, so is the second one."""
    assert least_mean(np.array([0.6]), 0.05) == pytest.approx(0.75 * 0.6 / (20 - 0.25))
    assert least_mean(np.full(2, 0.6), 0.05) == pytest.approx(0.75 * 0.6 / (np.sqrt(20) - 0.25))
    assert least_mean(np.zeros(9), 0.05) == 0
    # of many rows, the square of the distance is 2 v log(1 / delta) / n
    values = np.tile([0.2, 0.4], 50_000)
    assert 0.3 - least_mean(values, 0.05) == pytest.approx(0.1 * np.sqrt(2 * np.log(20) / 1e5), rel=0.01)


@pytest.mark.parametrize(
    ("mean", "draw"),
    [
        (0.1, lambda rng: 1.0 * (rng.random(40) < 0.1)),
        (0.9, lambda rng: 1.0 * (rng.random(40) < 0.9)),
        (1 / 3, lambda rng: rng.beta(0.3, 0.6, 40)),
    ],
    ids=["mostly 0", "mostly 1", "between"],
)
def test_limits_of_means_hold_as_often_as_they_say(mean, draw):
    rng = np.random.default_rng(0)
    limits = np.array([least_mean(draw(rng), 0.2) for _ in range(600)])
    assert 0 < (limits > mean).mean() <= 0.2


def test_band_width_by_hand():
    assert band_width(100, 0.025) == pytest.approx(np.sqrt(np.log(40) / 200))


def test_independence_of_two_groups_by_hand(sample):
    """Two ends, at half of delta each."""
    groups, predicted = np.repeat(["a", "b"], [40, 60]), np.repeat([1, 0, 1, 0], [12, 28, 30, 30])
    evidence = evidence_of(sample("independence_gap", {}, predicted, predicted - 0.5, groups), "binomial")
    high = binomtest(30, 60).proportion_ci(0.95, method="exact").high
    low = binomtest(12, 40).proportion_ci(0.95, method="exact").low
    assert evidence.gap == pytest.approx(0.2)
    assert evidence.upper(0.05) == pytest.approx(high - low)
    table = evidence.cells(0.05)
    assert table.loc["b", "upper"] == pytest.approx(high)
    assert table.loc["a", ["n_samples", "n_hits"]].tolist() == [40, 12]


def test_ratio_of_two_groups_by_hand(sample):
    """The lower end of one rate over the upper end of the other, at half of delta each."""
    groups, predicted = np.repeat(["a", "b"], [40, 60]), np.repeat([1, 0, 1, 0], [12, 28, 30, 30])
    evidence = evidence_of(sample("demographic_parity_ratio_gap", {}, predicted, predicted - 0.5, groups), "binomial")
    high = binomtest(30, 60).proportion_ci(0.95, method="exact").high
    low = binomtest(12, 40).proportion_ci(0.95, method="exact").low
    assert evidence.gap == pytest.approx(0.4)
    assert evidence.upper(0.05) == pytest.approx(1 - low / high)


def test_floor_by_hand(sample):
    """One minus the lower end of the least rate, at delta."""
    groups, y = np.repeat(["a", "b"], [40, 60]), np.ones(100, dtype=int)
    scores = np.repeat([0.5, -0.5, 0.5, -0.5], [32, 8, 54, 6])
    taken = sample("group_rates", {"rate": "true_positive", "rule": "floor", "pos_label": 1}, y, scores, groups)
    low = binomtest(32, 40).proportion_ci(0.9, method="exact").low
    assert taken.gap == pytest.approx(0.2)
    assert taken.name == "1 - group_rates"
    assert evidence_of(taken, "binomial").upper(0.05) == pytest.approx(1 - low)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "params", "true"),
    [
        ("demographic_parity_ratio_gap", {}, 1 - 0.35 / 0.5),
        ("predictive_parity_gap", {}, 0.1),
        ("predictive_parity_ratio_gap", {}, 1 - 0.7 / 0.8),
        ("group_rates", {"rate": "selection", "rule": "floor"}, 1 - 0.35),
    ],
)
def test_bounds_of_new_rates_cover(name, params, true, sample):
    """In 400 samples of a known population the bound is below the truth in at most the share that it allows."""
    rng, delta, n_draws, missed = np.random.default_rng(0), 0.1, 400, 0
    selection, precision = np.array([0.5, 0.42, 0.35]), np.array([0.75, 0.8, 0.7])
    for _ in range(n_draws):
        groups = rng.integers(0, 3, 300)
        scores = np.where(rng.random(300) < selection[groups], 1.0, -1.0)
        y = (rng.random(300) < np.where(scores > 0, precision[groups], 0.2)).astype(int)
        missed += evidence_of(sample(name, params, y, scores, groups)).upper(delta) < true
    assert missed / n_draws <= delta + 2 * np.sqrt(delta * (1 - delta) / n_draws)


def test_separation_of_two_groups_by_hand(draw, sample):
    """The sum over both labels takes four ends."""
    y, scores, groups = draw(300)
    kept = groups != "c"
    y, scores, groups = y[kept], scores[kept], groups[kept]
    expected = 0.0
    for label in (0, 1):
        ends = []
        for group in "ab":
            rows = (groups == group) & (y == label)
            exact = binomtest(int((scores[rows] > 0).sum()), int(rows.sum())).proportion_ci(0.975, method="exact")
            ends.append((exact.low, exact.high))
        expected += max(ends[0][1] - ends[1][0], ends[1][1] - ends[0][0])
    taken = sample("separation_gap", {"agg_labels": "sum"}, y, scores, groups)
    assert evidence_of(taken, "binomial").upper(0.05) == pytest.approx(expected)


def test_rank_gap_counts_where_either_rank_may_be_inside(sample):
    """Two thresholds: at 0.5 the ranks are 0.1 and 0.9, outside of the interval, but one interval reaches into it."""
    groups, scores = np.repeat(["a", "b"], 10), np.repeat([1.0, 0.0, 1.0, 0.0], [1, 9, 9, 1])
    params = {"interval": (0.3, 0.4), "normalize": False}
    taken = sample("partial_demographic_parity_gap", params, (scores > 0.5).astype(int), scores, groups)
    evidence = evidence_of(taken)
    low, high = binomial_ends(np.array([1, 9]), np.array([10, 10]), 0.05 / 4)
    assert evidence.gap == 0
    assert (evidence.n_events, high[0] > 0.4, low[1] > 0.4) == (4, True, True)
    assert evidence.upper(0.05) == pytest.approx(high[1] - 0.3)  # a at the lower end of the interval, b at its highest
    assert evidence.upper(0.05, scale=100) == 0


@pytest.mark.parametrize(("name", "params"), CASES)
def test_bounds_go_to_the_metric_with_the_number_of_rows(name, params, evidences, draw):
    """The metric comes from its own function, the bound from the families'."""
    for method, evidence in evidences(name, params, *draw()).items():
        far = evidence.upper(0.05, 1e10)
        assert far == pytest.approx(evidence.gap, abs=2e-4), method
        assert evidence.gap < evidence.upper(0.2) <= evidence.upper(0.05), method


@pytest.mark.parametrize(("name", "params"), CASES)
def test_a_scale_stands_for_repeated_rows(name, params, evidences, draw):
    y, scores, groups = draw(150)
    once, thrice = (evidences(name, params, *(np.repeat(column, k) for column in (y, scores, groups))) for k in (1, 3))
    assert once.keys() == thrice.keys() != set()
    for method in once.keys() - {"betting"}:
        assert once[method].upper(0.1, scale=3) == pytest.approx(thrice[method].upper(0.1), rel=1e-9), method
    if "betting" in once:  # by a rule of thumb, or with the rows in another order
        assert once["betting"].upper(0.1, scale=3) == pytest.approx(thrice["betting"].upper(0.1), rel=0.1)


@pytest.mark.parametrize(
    ("name", "params", "method", "n_events"),
    [
        ("independence_gap", {}, "binomial", 2),
        ("independence_gap", {}, "unconditional", 5),
        ("independence_gap", {"agg": "mean"}, "binomial", 6),
        ("separation_gap", {}, "binomial", 2),
        ("separation_gap", {}, "unconditional", 5),
        ("separation_gap", {"agg_labels": "sum"}, "binomial", 4),
        ("separation_gap", {"agg_labels": "sum"}, "hoeffding", 1),
        ("separation_gap", {"agg": "mean", "agg_labels": "sum"}, "hoeffding", 3),
        ("inter_group_auc_gap", {"protected": "a"}, "hoeffding", 1),
        ("inaccuracy", {}, "binomial", 1),
        ("demographic_parity_ratio_gap", {}, "binomial", 2),
        ("group_rates", {"rate": "true_positive", "rule": "floor"}, "binomial", 1),
        ("minority_share", {"minority": "a"}, "binomial", 1),
        ("rate_gap", {"constraint": "intersectional", "agg": "mean"}, "binomial", 6),
        ("loss_parity_gap", {"constraint": "equalized_odds"}, "betting", 2),
        ("loss_parity_gap", {"constraint": "equalized_odds", "agg_labels": "sum"}, "betting", 4),
        ("statistical_parity_gap", {}, "dkw", 2),
        ("partial_statistical_parity_gap", {"normalize": False}, "dkw", 4),
        ("wasserstein_gap", {}, "dkw", 4),
        ("wasserstein_gap", {"agg": "mean"}, "dkw", 12),
        ("group_auc_gap", {}, "ustatistic", 1),
        ("group_auc_gap", {}, "betting", 1),
        ("intra_group_auc_gap", {"agg": "mean"}, "betting", 3),
        ("positive_equality_gap", {}, "betting", 2),
        ("group_auc_gap", {}, "dkw", 2),
        ("intra_group_auc_gap", {"agg": "mean"}, "ustatistic", 6),
        ("positive_equality_gap", {}, "ustatistic", 2),
        ("bpsn_bnsp_gap", {}, "dkw", 4),
    ],
)
def test_number_of_events(name, params, method, n_events, evidences, draw):
    evidence = evidences(name, params, *draw())[method]
    assert evidence.n_events == n_events
    assert evidence.union.startswith(("1 ", "2 ", "4 ", f"{n_events} ", "the difference of one pair"))


def test_the_union_names_the_pairs_whose_gaps_are_averaged(evidences, draw):
    evidence = evidences("wasserstein_gap", {"agg": "mean"}, *draw())["dkw"]
    assert evidence.union == "4 sides of the bands of one pair of groups, for each of 3 pairs of groups"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["partial_equal_opportunity_gap", "partial_equalized_odds_gap"])
def test_ranks_in_the_whole_group_have_the_bootstrap_only(name, draw, sample):
    """The ends of the interval among the rows of a label are estimates then, which binomial bounds take as known."""
    options = {"interval": (0.1, 0.8), "ranks": "group"}
    given = sample(name, options, *draw(300))
    with pytest.raises(ValueError, match="with ranks='group' its ends within a label are estimates"):
        evidence_of(given, "binomial")
    evidence = evidence_of(given)
    assert evidence.method == "bootstrap"
    assert evidence.gap < evidence.upper(0.05)
    assert evidence_of(sample(name, options | {"ranks": "group_and_label"}, *draw(300))).method == "binomial"


def test_sums_over_labels_by_hand(draw, sample):
    """One event; four counts of rows."""
    y, scores, groups = draw(300)
    kept = groups != "c"
    y, scores, groups = y[kept], scores[kept], groups[kept]
    evidence = evidence_of(sample("separation_gap", {"agg_labels": "sum"}, y, scores, groups))
    counts = [((groups == group) & (y == label)).sum() for group in "ab" for label in (0, 1)]
    assert evidence.method == "hoeffding"
    assert evidence.upper(0.05) == pytest.approx(evidence.gap + np.sqrt(np.log(20) / 2 * sum(1 / n for n in counts)))
    assert sorted(evidence.cells(0.05)["n_samples"]) == sorted(counts)


def test_the_larger_of_two_labels_is_bounded_label_by_label(draw, sample):
    """By default a certificate of separation is the worse of two, one for the rows of each label."""
    y, scores, groups = draw(300)
    both = evidence_of(sample("separation_gap", {}, y, scores, groups))
    positives = evidence_of(sample("equal_opportunity_gap", {}, y, scores, groups))
    negatives = evidence_of(sample("equal_opportunity_gap", {}, 1 - y, -scores, groups))
    assert both.method == positives.method == "unconditional"
    assert both.upper(0.05) == pytest.approx(max(part.upper(0.05) for part in (positives, negatives)), abs=1e-9)
    with pytest.raises(ValueError, match="agg_labels='sum'"):
        evidence_of(sample("separation_gap", {}, y, scores, groups), "hoeffding")


def test_means_of_losses_by_hand(draw, sample):
    """Limits of the cells' own losses, each at a half of delta."""
    y, scores, groups = draw()
    evidence = evidence_of(sample("loss_parity_gap", {"loss": "log_loss"}, y, scores, groups, loss_bound=(0.0, 8.0)))
    losses, table = np.log1p(np.exp(np.where(y == 1, -scores, scores))), evidence.cells(0.1)
    for group in "abc":
        own = losses[groups == group]
        assert table.loc[group, "estimate"] == pytest.approx(own.mean())
        assert table.loc[group, "lower"] == pytest.approx(8 * least_mean(own / 8, 0.05))
        assert table.loc[group, "upper"] == pytest.approx(8 - 8 * least_mean(1 - own / 8, 0.05))


def test_distance_of_quantile_bands_by_hand(sample):
    """All scores are 0.2 in one group and 0.6 in the other; the bands are a tenth of the levels wide."""
    n_rows, delta = 200, 4 * np.exp(-2 * 200 * 0.01)
    scores, groups = np.repeat([0.2, 0.6], n_rows), np.repeat(["a", "b"], n_rows)
    evidence = evidence_of(sample("wasserstein_gap", {}, None, special.logit(scores), groups), "dkw")
    # quantiles of the lowest tenth may be 0, those of the highest one 1
    assert evidence.gap == pytest.approx(0.16)
    assert evidence.upper(delta) == pytest.approx(0.1 * 0.6**2 + 0.8 * 0.4**2 + 0.1 * 0.8**2)


@pytest.mark.parametrize("method", ["ustatistic", "dkw"])
@pytest.mark.parametrize(
    ("name", "protected", "expected"),
    [
        ("group_auc_gap", None, [("a", "b")]),
        ("group_auc_gap", "b", [("b", "a")]),
        ("inter_group_auc_gap", None, [("a, positive", "b, negative"), ("b, positive", "a, negative")]),
        ("intra_group_auc_gap", None, [("a, positive", "a, negative"), ("b, positive", "b, negative")]),
        ("negative_equality_gap", "b", [("b, negative", "all, negative")]),
        ("positive_equality_gap", None, [("a, positive", "all, positive"), ("b, positive", "all, positive")]),
    ],
)
def test_aucs_are_named_after_the_rows_that_they_rank(name, protected, expected, method, draw, sample):
    y, scores, groups = draw()
    y, scores, groups = (column[groups != "c"] for column in (y, scores, groups))
    table = evidence_of(sample(name, {"protected": protected}, y, scores, groups), method).cells(0.1)
    assert list(zip(table["above"], table["below"], strict=True)) == expected

    def rows_of(cell):
        group, *sign = cell.split(", ")
        of_sign = y == (sign == ["positive"]) if sign else np.full(y.size, True)
        return scores[of_sign & ((groups == group) | (group == "all"))]

    for row in table.itertuples():
        above, below = rows_of(row.above), rows_of(row.below)
        assert (row.n_above, row.n_below) == (above.size, below.size)
        assert row.estimate == pytest.approx((np.sign(above[:, None] - below) + 1).mean() / 2)


@pytest.mark.parametrize("name", ["group_auc_gap", "partial_group_auc_gap"])
def test_no_gap_of_two_groups_exceeds_a_half(name, sample):
    """All rows of one group are above those of the other; 1/2 is known, as is that an AUC is at most 1."""
    y, groups = np.arange(60) % 2, np.repeat(["a", "b"], 30)
    evidence = evidence_of(sample(name, {}, y, np.arange(60.0), groups), "dkw")
    assert evidence.gap == evidence.upper(0.05) == 0.5


def test_difference_of_aucs_by_hand(draw, sample):
    y, scores, groups = draw(300)
    evidence = evidence_of(sample("intra_group_auc_gap", {"agg": "mean"}, y, scores, groups), "hoeffding")
    smaller = {g: min(((groups == g) & (y == 0)).sum(), ((groups == g) & (y == 1)).sum()) for g in "abc"}
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    margins = [np.sqrt(np.log(3 / 0.05) / 2 * (1 / smaller[a] + 1 / smaller[b])) for a, b in pairs]
    assert evidence.upper(0.05) == pytest.approx(evidence.gap + np.mean(margins))


def test_sums_over_labels_hold_exactly():
    """All outcomes of four cells of four rows: without any union the bound fails with at most delta."""
    n, delta = 4, 0.3
    outcomes = np.array(list(product(range(n + 1), repeat=4))) / n
    gaps = np.abs(outcomes[:, 0] - outcomes[:, 1]) + np.abs(outcomes[:, 2] - outcomes[:, 3])
    bound = gaps + np.sqrt(np.log(1 / delta) / 2 * 4 / n)
    worst = 0.0
    for rates in product(np.linspace(0, 1, 9), repeat=4):
        gap = abs(rates[0] - rates[1]) + abs(rates[2] - rates[3])
        failed = bound < gap - 1e-12
        if failed.any():
            worst = max(worst, float(binom.pmf(outcomes[failed] * n, n, rates).prod(axis=1).sum()))
    assert 0.0 < worst <= delta


def test_the_largest_gap_needs_no_union_over_pairs_exactly(sample):
    """All outcomes of three groups of six rows: the bound fails with at most delta, whatever the rates."""
    n, delta = 6, 0.3
    outcomes = np.array(list(product(range(n + 1), repeat=3)))
    low, high = binomial_ends(outcomes, np.full(outcomes.shape, n), delta / 2)
    bound = np.max([high[:, a] - low[:, b] for a in range(3) for b in range(3) if a != b], axis=0)
    # the bound of the package, on one outcome
    chosen = 100
    groups = np.repeat(["a", "b", "c"], n)
    predicted = np.concatenate([np.repeat([1, 0], [hits, n - hits]) for hits in outcomes[chosen]])
    package = evidence_of(sample("independence_gap", {}, np.tile([0, 1], 9), predicted - 0.5, groups), "binomial")
    assert package.upper(delta) == pytest.approx(bound[chosen])
    worst = 0.0
    for rates in product(np.linspace(0.02, 0.98, 13), repeat=3):
        failed = bound < np.ptp(rates) - 1e-12
        worst = max(worst, float(binom.pmf(outcomes, n, rates).prod(axis=1)[failed].sum()))
    assert 0.02 < worst <= delta


def test_the_largest_threshold_needs_no_band_exactly(sample):
    """All outcomes of five rows with one of three scores in two groups: the bound fails with at most delta."""
    n, delta = 5, 0.4
    kinds = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    above = np.cumsum(kinds, axis=1)[:, :2]  # rows above each of two thresholds
    low, high = binomial_ends(above, np.full(above.shape, n), delta / 2)
    bound = np.maximum(high[:, None] - low[None], high[None] - low[:, None]).max(axis=-1)
    scores = [np.repeat([2.0, 1.0, 0.0], kind) for kind in kinds[[4, 13]]]
    groups, y = np.repeat(["a", "b"], n), np.tile([0, 1], n)
    taken = sample("statistical_parity_gap", {}, y, np.concatenate(scores), groups)
    assert evidence_of(taken).upper(delta) == pytest.approx(bound[4, 13])
    rng, worst = np.random.default_rng(0), 0.0
    for shares in rng.dirichlet([0.5] * 3, size=(300, 2)):
        probabilities = [_multinomial(kinds, share) for share in shares]
        gap = np.abs(np.diff(np.cumsum(shares, axis=1), axis=0)).max()
        worst = max(worst, float(probabilities[0] @ (bound < gap - 1e-12) @ probabilities[1]))
    assert 0.02 < worst <= delta


def _multinomial(kinds, shares):
    return multinomial.pmf(kinds, kinds[0].sum(), shares)


def test_auc_bounds_hold_exactly_with_ties(sample):
    """All outcomes of four rows with one of three scores in two groups; the kernel counts ties one half."""
    n, delta = 4, 0.5
    kinds = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    kernel = np.array([[0.5, 1, 1], [0, 0.5, 1], [0, 0, 0.5]])
    estimates = kinds @ kernel @ kinds.T / n**2
    high = np.vectorize(lambda auc: chernoff_upper(auc, n, delta))(estimates)
    bound = np.maximum(high - 0.5, np.vectorize(lambda auc: chernoff_upper(1 - auc, n, delta))(estimates) - 0.5)
    groups, y = np.repeat(["a", "b"], n), np.tile([0, 1], n)
    scores = np.concatenate([np.repeat([2.0, 1.0, 0.0], kind) for kind in kinds[[3, 9]]])
    evidence = evidence_of(sample("group_auc_gap", {}, y, scores, groups), "ustatistic")
    assert evidence.upper(delta) == pytest.approx(bound[3, 9])
    bands = evidence_of(sample("group_auc_gap", {}, y, scores, groups), "dkw")
    assert bands.upper(delta) >= evidence.gap
    rng, worst = np.random.default_rng(0), 0.0
    for shares in rng.dirichlet([0.5] * 3, size=(200, 2)):
        probabilities = [_multinomial(kinds, share) for share in shares]
        gap = abs(shares[0] @ kernel @ shares[1] - 0.5)
        worst = max(worst, float(probabilities[0] @ (bound < gap - 1e-12) @ probabilities[1]))
    assert 0.01 < worst <= delta


@pytest.mark.parametrize("name", ["partial_group_auc_gap", "wasserstein_gap", "positive_equality_gap", "bpsn_bnsp_gap"])
def test_bands_hold_for_every_population_inside_them(name, evidences, draw, sample):
    """Samples of the sample are populations near it: where all their ranks are within the bands, so is the gap."""
    y, scores, groups = draw(300)
    params = {"interval": (0.1, 0.5)} if name == "partial_group_auc_gap" else {}
    evidence = evidences(name, params, y, scores, groups)["dkw"]
    delta, rng, n_inside = 0.3, np.random.default_rng(1), 0
    for _ in range(40):
        rows = rng.integers(300, size=300)
        other = sample(name, params, y[rows], scores[rows], groups[rows])
        inside = True
        for group, label in product([None, *"abc"], [None, 0, 1]):
            here = np.ones(300, bool) if group is None else groups == group
            here = here if label is None else here & (y == label)
            there = here[rows]
            thresholds = np.unique(scores)[:, None]
            apart = (scores[here] > thresholds).mean(axis=1) - (scores[rows][there] > thresholds).mean(axis=1)
            inside &= bool(np.abs(apart).max() <= band_width(here.sum(), delta / evidence.n_events))
        n_inside += inside
        assert other.gap <= evidence.upper(delta) + 1e-12 or not inside
    assert n_inside >= 5


def test_auc_of_a_group_over_everybody_from_the_auc_over_the_rest(draw, sample):
    """Moved towards 1/2 by the share of the group, which is binomial."""
    y, scores, groups = draw(600)
    evidence = evidence_of(sample("positive_equality_gap", {"protected": "c"}, y, scores, groups), "ustatistic")
    positive = y == 1
    here, rest = scores[positive & (groups == "c")], scores[positive & (groups != "c")]
    auc = ((here[:, None] > rest) + (here[:, None] == rest) / 2).mean()
    share = binomtest(rest.size, int(positive.sum())).proportion_ci(0.95, method="exact").high
    high, low = (chernoff_upper(value, min(here.size, rest.size), 0.025) for value in (auc, 1 - auc))
    assert evidence.upper(0.05) == pytest.approx(share * max(high - 0.5, low - 0.5))


def test_nobody_beside_the_group_among_the_positives(sample):
    """Then nothing is known of the AUC over the rest, and its share is small."""
    groups, y = np.repeat(["a", "b"], [30, 10]), np.repeat([1, 0, 0], [20, 10, 10])
    taken = sample("positive_equality_gap", {"protected": "a"}, y, np.linspace(-1, 1, 40), groups)
    share = binomtest(0, 20).proportion_ci(0.95, method="exact").high
    assert taken.gap == 0
    assert evidence_of(taken, "ustatistic").upper(0.05) == pytest.approx(share / 2)


@pytest.mark.slow
def test_sufficient_scale_is_the_least_one(draw, sample):
    y, scores, groups = draw()
    for name in ("independence_gap", "statistical_parity_gap", "intra_group_auc_gap"):
        evidence = evidence_of(sample(name, {}, y, scores, groups))
        least = 0.98 if evidence.method == "unconditional" else 0.999  # which rounds the counts
        for kappa in (evidence.gap + 0.03, evidence.upper(0.05) + 0.1):
            scale = evidence.sufficient_scale(0.05, kappa)
            assert evidence.upper(0.05, scale) <= kappa < evidence.upper(0.05, scale * least)
        assert evidence.sufficient_scale(0.05, evidence.gap) is None


def test_a_cell_of_one_row_needs_more_rows(sample):
    """Its limit is near the end of what losses may be."""
    groups, y, scores = ["a"] + ["b"] * 40, [1] + [0, 1] * 20, np.zeros(41)
    evidence = evidence_of(sample("loss_parity_gap", {}, np.array(y), scores, groups, loss_bound=(0.0, 2.0)))
    loss = np.log(2) / 2
    highest = 2 - 2 * 0.75 * (1 - loss) / (40 - 0.25)
    assert evidence.upper(0.05) == pytest.approx(highest - 2 * least_mean(np.full(40, loss), 0.025))
    scale = evidence.sufficient_scale(0.05, 1.0)
    lows = [least_mean(np.full(n, z), 0.025, scale) for n, z in ((1, 1 - loss), (40, loss))]
    assert 2 - 2 * sum(lows) == pytest.approx(1.0)


def test_groups_that_overlap(draw, sample):
    """Each group has its own interval, whatever rows it shares."""
    y, scores, groups = draw()
    members = np.column_stack([groups != "a", groups != "b", y == 1])
    evidence = evidence_of(sample("rate_gap", {}, y, scores, members))
    ends = []
    for column in members.T:
        exact = binomtest(int((scores[column] > 0).sum()), int(column.sum())).proportion_ci(0.95, method="exact")
        ends.append((exact.low, exact.high))
    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    assert evidence.upper(0.05) == pytest.approx(max(ends[a][1] - ends[b][0] for a, b in pairs))


def test_refusals_name_what_there_is(draw, sample):
    y, scores, groups = draw()
    taken = sample("loss_parity_gap", {}, y, scores, groups, n_resamples=30)
    with pytest.raises(ValueError, match=r"needs loss_bound.*'bootstrap'"):
        evidence_of(taken, "betting")
    assert evidence_of(taken).method == "bootstrap"
    with pytest.raises(
        ValueError, match=r"no bound for independence_gap; it has \['auto', 'unconditional', 'binomial'"
    ):
        evidence_of(sample("independence_gap", {}, y, scores, groups), "dkw")
    crossing = np.stack([groups != "a", groups != "b", y == 1, y == 0])
    taken = sample("subset_auc_gap", {"subsets": crossing}, y, scores, groups)
    with pytest.raises(ValueError, match="needs sets of rows that are disjoint"):
        evidence_of(taken, "ustatistic")
    assert evidence_of(taken).method == "dkw"
    assert issubclass(NotOffered, ValueError)


def test_losses_outside_the_bound(draw, sample):
    with pytest.raises(ValueError, match="losses of these rows lie between"):
        evidence_of(sample("loss_parity_gap", {}, *draw(), loss_bound=(0.0, 0.5)))


def test_subsets_given_by_a_function_are_those_given_by_masks(draw, sample):
    y, scores, groups = draw()

    def subsets(positive, codes):
        return positive & (codes == "a"), ~positive, positive, ~positive & (codes == "b")

    upper = [
        evidence_of(sample("subset_auc_gap", {"subsets": given}, y, scores, groups)).upper(0.05)
        for given in (subsets, subsets(y == 1, groups))
    ]
    assert upper[0] == upper[1]
