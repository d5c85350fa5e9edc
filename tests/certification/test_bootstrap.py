"""The bootstrap: against scipy's, near zero, and with weights."""

from __future__ import annotations

import inspect
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import bootstrap, norm

from fairconstrained import metrics
from fairconstrained.certification import gap_interval
from fairconstrained.certification.bootstrap import BootstrapEvidence, Replicates, statistic_of
from fairconstrained.certification.evidence import evidence_of
from fairconstrained.certification.resampling import _JACKKNIFE_BLOCKS, acceleration, jackknife_blocks
from fairconstrained.certification.sample import strata_of


@pytest.fixture(scope="module")
def skewed():
    """Two small samples of skewed numbers, as one column and its strata."""
    rng = np.random.default_rng(0)
    values, strata = rng.exponential(size=90) ** 2, np.repeat([0, 1], [40, 50])
    return values, strata


def difference(values, strata, rows):
    return values[rows][strata[rows] == 1].mean() - values[rows][strata[rows] == 0].mean()


def test_bca_quantiles_are_those_of_scipy(skewed):
    values, strata = skewed
    found = Replicates.of(lambda rows: difference(values, strata, rows), strata, 6000, 0)
    seed = {"rng" if "rng" in inspect.signature(bootstrap).parameters else "random_state": np.random.default_rng(1)}
    reference = bootstrap(
        (values[strata == 1], values[strata == 0]),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        n_resamples=6000, method="BCa", confidence_level=0.9, vectorized=True, **seed,
    ).confidence_interval  # fmt: skip
    spread = reference.high - reference.low
    assert found.corrected_quantile(0.95) == pytest.approx(reference.high, abs=0.05 * spread)
    assert found.corrected_quantile(0.05) == pytest.approx(reference.low, abs=0.05 * spread)
    # the correction is worth something here, so that the comparison is one
    assert abs(found.corrected_quantile(0.95) - np.quantile(found.resampled, 0.95)) > 0.03 * spread


def test_acceleration_of_blocks_is_near_that_of_rows():
    rng = np.random.default_rng(0)
    values, strata = rng.exponential(size=4000) ** 2, np.repeat([0, 1], 2000)
    found = Replicates.of(lambda rows: values[rows].mean(), strata, 10, 0)
    deviations = values - np.repeat([values[:2000].mean(), values[2000:].mean()], 2000)
    exact = (deviations**3).sum() / (6 * (deviations**2).sum() ** 1.5)
    assert found.acceleration == pytest.approx(exact, rel=0.5)
    assert exact > 0.01


def test_gap_interval_of_a_smooth_gap(draw):
    """Around the estimate, about as wide as the normal interval."""
    _, scores, groups = draw(900)
    scores[groups == "b"] += 0.3
    kept = groups != "c"
    predicted = (scores[kept] > 0).astype(int)
    low, high = gap_interval(
        "independence_gap", None, predicted, sensitive_features=groups[kept], random_state=0, n_resamples=400
    )
    rates, sizes = zip(*((predicted[groups[kept] == g].mean(), (groups == g).sum()) for g in "ab"), strict=True)
    gap = abs(rates[0] - rates[1])
    error = np.sqrt(sum(rate * (1 - rate) / size for rate, size in zip(rates, sizes, strict=True)))
    assert gap > 2.5 * error
    assert low == pytest.approx(gap - 1.96 * error, abs=0.25 * error)
    assert high == pytest.approx(gap + 1.96 * error, abs=0.25 * error)


def test_ties_with_the_estimate_count_one_half():
    few = Replicates(2.0, np.array([1.0, 2.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 0.0)
    assert few.bias == pytest.approx(norm.ppf(2.5 / 8))
    assert Replicates(9.0, few.resampled, 0.0).bias == pytest.approx(norm.ppf(1 - 0.5 / 8))  # not infinite


def test_near_zero_the_end_is_not_below_the_gap():
    """Equal rates in the sample: every resampled gap is larger, and BCa alone would end at zero."""
    groups, predicted = np.repeat(["a", "b"], 100), np.tile([0, 1], 100)
    low, high = gap_interval(
        "independence_gap", None, predicted, sensitive_features=groups, random_state=0, n_resamples=400
    )
    assert low == 0
    # the quantile of an absolute value
    assert high == pytest.approx(norm.ppf((1 + 0.975) / 2) * np.sqrt(2 * 0.25 / 100), rel=0.15)


@pytest.mark.slow
def test_weights_are_drawn_with_the_rows(draw):
    y, scores, groups = draw(300)
    weights = np.random.default_rng(0).integers(1, 4, size=300)
    options = {"metric_params": {"agg": "mean"}, "n_resamples": 40, "level": 0.5, "random_state": 0}
    weighted = gap_interval(
        metrics.group_auc_gap, y, scores, sensitive_features=groups, sample_weight=weights, **options
    )
    plain = gap_interval(metrics.group_auc_gap, y, scores, sensitive_features=groups, **options)
    gap = metrics.group_auc_gap(y, scores, sensitive_features=groups, sample_weight=weights, agg="mean")
    assert weighted[0] < gap < weighted[1]
    assert weighted != plain
    repeated = [np.repeat(column, weights) for column in (y, scores, groups)]
    narrower = gap_interval(metrics.group_auc_gap, *repeated[:2], sensitive_features=repeated[2], **options)
    assert narrower[1] - narrower[0] < weighted[1] - weighted[0]  # repeated rows pretend to be independent


@pytest.mark.slow
def test_same_state_same_interval(draw):
    y, scores, groups = draw(200)
    first, second, other = (
        gap_interval(
            "group_auc_gap", y, scores, sensitive_features=groups, n_resamples=40, level=0.5, random_state=state
        )
        for state in (0, 0, 1)
    )
    assert first == second != other


@pytest.mark.parametrize(
    ("name", "params", "columns"),
    [
        ("independence_gap", {}, ["group"]),
        ("separation_gap", {}, ["group", "label"]),
        ("sufficiency_gap", {}, ["group", "response"]),
        ("positive_equality_gap", {}, ["label"]),
        ("loss_parity_gap", {}, ["group"]),
        ("loss_parity_gap", {"constraint": "equalized_odds"}, ["group", "label"]),
        ("partial_equalized_odds_gap", {}, ["group", "label"]),
        ("partial_equalized_odds_gap", {"ranks": "group"}, ["group"]),
        ("rate_gap", {"constraint": "intersectional"}, []),
        ("inaccuracy", {}, []),
    ],
)
def test_strata_are_what_the_metric_takes_as_given(draw, name, params, columns):
    y, scores, groups = draw(300)
    predicted = (scores > 0).astype(int)
    codes, table = strata_of(getattr(metrics, name), params, groups, y, predicted)
    known = {"group": groups, "label": y, "response": predicted}
    kinds = {tuple(known[column][row] for column in columns) for row in range(300)}
    assert [column for column in table if column != "n_samples"] == columns
    assert len(kinds) == len(table) == codes.max() + 1
    np.testing.assert_array_equal(np.bincount(codes), table["n_samples"])


@pytest.mark.parametrize("name", ["group_auc_gap", "inter_group_auc_gap"])
def test_groups_among_the_others_are_left_to_chance(draw, name):
    """All but the protected group are draws from one mixture; their numbers in it are not given."""
    y, scores, groups = draw(300)
    codes, table = strata_of(getattr(metrics, name), {"protected": "b"}, groups, y, scores)
    assert table["side"].unique().tolist() == ["others", "protected"]
    for code in range(len(table)):
        inside = set(groups[codes == code])
        assert inside in ({"b"}, {"a", "c"})
        assert len(set(y[codes == code])) == (1 if name == "inter_group_auc_gap" else 2)


def test_overlapping_groups_are_left_to_chance(draw):
    y, scores, groups = draw(300)
    members = np.column_stack([groups != "a", groups != "b"])
    codes, _ = strata_of(metrics.rate_gap, {}, members, y, scores)
    assert set(codes) == {0}
    codes, table = strata_of(metrics.rate_gap, {"constraint": "equalized_odds"}, members, y, scores)
    assert table.columns.tolist() == ["label", "n_samples"]
    # other metrics compare the combinations of the columns
    codes, _ = strata_of(metrics.independence_gap, {}, members, y, scores)
    assert [len(set(groups[codes == code])) for code in np.unique(codes)] == [1, 1, 1]


def test_cells_that_are_often_empty_are_an_error():
    groups = np.array(["a"] * 50 + ["b"] * 51)
    y = np.array([0, 1] * 50 + [0])
    scores = np.linspace(0, 1, 101)
    y[50:] = 0
    y[50] = 1  # one positive of 51 rows: one in e resamples by group has none

    def positives_auc(y_true, y_score, *, sensitive_features):
        return metrics.intra_group_auc_gap(y_true, y_score, sensitive_features=sensitive_features)

    with pytest.raises(ValueError, match="resamples have an empty cell"):
        gap_interval(positives_auc, y, scores, sensitive_features=groups, random_state=0, n_resamples=400)
    # in strata of group and label the row is in all of them
    low, high = gap_interval(
        "intra_group_auc_gap", y, scores, sensitive_features=groups, random_state=0, n_resamples=40, level=0.5
    )
    assert low < high


def test_bad_arguments():
    arguments = {"sensitive_features": list("ab") * 10}
    with pytest.raises(ValueError, match="level must lie strictly between 0 and 1"):
        gap_interval("independence_gap", None, [0, 1] * 10, level=1.0, **arguments)
    with pytest.raises(ValueError, match=r"n_resamples=100 are too few for a quantile of 0\.025"):
        gap_interval("independence_gap", None, [0, 1] * 10, n_resamples=100, **arguments)
    for unfit in (0, 2.5, "many"):
        with pytest.raises(ValueError, match="The 'n_resamples' parameter of gap_interval must be an int"):
            gap_interval("independence_gap", None, [0, 1] * 10, n_resamples=unfit, **arguments)
    with pytest.raises(ValueError, match=r"metric must be one of .*got 'gap'"):
        gap_interval("gap", None, [0, 1] * 10, **arguments)
    with pytest.raises(ValueError, match=r"NaN on these rows, for example because there is a single group.* Pass rows"):
        gap_interval("independence_gap", None, [0, 1] * 10, sensitive_features=["a"] * 20)
    with pytest.raises(ValueError, match="sensitive_features has 20 rows in place of 10"):
        gap_interval("independence_gap", None, [0, 1] * 5, **arguments)
    with pytest.raises(ValueError, match="'sample_weight' is no argument to give"):
        gap_interval("independence_gap", None, [0, 1] * 10, metric_params={"sample_weight": [1] * 20}, **arguments)


def test_the_least_number_of_resamples_is_enough():
    """20 / (1 - level) of them, whatever rounding makes of it."""
    groups = list("ab") * 20
    low, high = gap_interval(
        "independence_gap", None, [0, 1, 1, 1] * 10, sensitive_features=groups, level=0.9, n_resamples=200
    )
    assert low <= high


def test_arguments_with_an_entry_for_every_row_are_drawn_along(draw):
    y, scores, groups = draw()
    rng = np.random.default_rng(0)
    rows, strata, masks = rng.integers(0, len(y), len(y)), rng.choice(["s", "t"], len(y)), rng.random((4, len(y))) < 0.5
    said = (scores > 0).astype(int)
    conditional = statistic_of(
        lambda y, response, **given: metrics.conditional_parity_gap(y, response, **given),
        None, said, groups, params={"strata": strata},
    )  # fmt: skip
    expected = metrics.conditional_parity_gap(None, said[rows], sensitive_features=groups[rows], strata=strata[rows])
    assert conditional(rows) == expected
    for subsets in (masks, lambda positive, groups: [positive, ~positive, groups == "a", groups != "a"]):
        statistic = statistic_of(metrics.subset_auc_gap, y, scores, groups, params={"subsets": subsets, "other": 3})
        drawn = subsets if callable(subsets) else masks[:, rows]
        given = {"subsets": drawn, "sensitive_features": groups[rows]}
        assert statistic(rows) == metrics.subset_auc_gap(y[rows], scores[rows], **given)


def test_acceleration_by_hand():
    """Influences 2 (3 - (1, 2, 6)) and (2 - (1, 3)); a stratum of a single value has none."""
    several = [np.array([1.0, 2.0, 6.0]), np.array([1.0, np.nan, 3.0]), np.array([4.0])]
    cubes, squares = (64 + 8 - 216) / 27, (16 + 4 + 36) / 9 + (1 + 1) / 4
    assert acceleration(several) == pytest.approx(cubes / (6 * squares**1.5))
    assert acceleration([np.array([2.0, 2.0])]) == 0.0


def test_blocks_of_the_jackknife():
    few = np.array([0, 0, 0, 1, 2, 2])
    assert jackknife_blocks(few) == [3, 0, 2]  # rows one by one; the only row of a stratum stays
    sizes = [3 * _JACKKNIFE_BLOCKS, _JACKKNIFE_BLOCKS, 1, 2]
    many = np.repeat(np.arange(4), sizes)
    shares = [round(_JACKKNIFE_BLOCKS * size / many.size) for size in sizes[:2]]
    assert jackknife_blocks(many) == [*shares, 0, 2]


def test_the_bound_of_other_numbers_of_rows_is_as_near_as_their_root_says(draw, sample):
    y, scores, groups = draw()
    evidence = evidence_of(sample("independence_gap", {}, y, scores, groups, n_resamples=200), "bootstrap")
    assert evidence.upper(0.1) == evidence.replicates.upper(0.9) > evidence.gap
    assert evidence.upper(0.1, 4.0) - evidence.gap == pytest.approx((evidence.upper(0.1) - evidence.gap) / 2)


@pytest.mark.parametrize(
    ("kappa", "expected"),
    [(0.1, None), (0.15, 16.0), (0.3, 1.0), (0.5, 0.25), (0.9, 0.0625), (9.0, 1 / 400), (0.1 + 1e-6, None)],
)
def test_rows_that_suffice_where_the_margin_falls_with_their_root(kappa, expected):
    """The gap is 0.1, the bound of these 400 rows 0.3; answers are one row at least, and 1e8 times as many at most."""
    known = SimpleNamespace(upper=lambda share: 0.3)
    evidence = BootstrapEvidence(gap=0.1, n_samples=400, replicates=known, strata=pd.DataFrame(), n_resamples=1000)
    found = evidence.sufficient_scale(0.05, kappa)
    assert found is None if expected is None else found == pytest.approx(expected, rel=1e-3)
