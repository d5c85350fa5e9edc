"""The suggested interval against arithmetic done by hand and against the metric, candidate by candidate."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained.metrics import partial_statistical_parity_gap
from fairconstrained.model_selection import suggest_interval

# The ranks of a and b as the threshold falls: 8 (0, 0), 7 (1/4, 1/4), 6 (2/4, 1/4), 4 (2/4, 2/4), 3 (3/4, 2/4),
# 2 (1, 2/4), 1 (1, 3/4), -inf (1, 1).
GROUP = list("aaaabbbb")
SCORE = [8, 7, 4, 3, 8, 6, 2, 1]


def suggest(**options):
    return suggest_interval(SCORE, sensitive_features=GROUP, **options)


def random_scores(sizes, seed=0):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    score = rng.normal(size=group.size) * (1 + 0.3 * group) + 0.2 * group
    return score, group, rng.uniform(0.2, 3.0, group.size)


def test_by_hand():
    suggestion = suggest(threshold=3, width=0.5, step=0.25)
    assert suggestion.rate == 5 / 8
    # [1/4, 3/4): 7, 4 against 6, 2; above 6: 1/2 against 0. [1/2, 1): 4, 3 against 2, 1; above 2: 1 against 0.
    assert suggestion.interval == (0.5, 1.0)
    assert (suggestion.gap, suggestion.rank_gap) == (1.0, 0.5)
    # The rank gap of both is that at 2, where the rank of b is 2/4.
    expected = {"alpha": [0.5, 0.25], "beta": [1.0, 0.75], "gap": [1.0, 0.5], "rank_gap": [0.5, 0.5]}
    pd.testing.assert_frame_equal(suggestion.table, pd.DataFrame(expected))


def test_the_rate_is_given_or_counted_by_weight():
    assert suggest(threshold=1).rate == 7 / 8
    assert suggest(threshold=6.5).rate == 3 / 8
    # of the total weight 10 the rows above 6.5 have 1 + 1 + 1
    assert suggest(threshold=6.5, sample_weight=[1, 1, 1, 1, 1, 1, 1, 3]).rate == pytest.approx(0.3)
    assert suggest(rate=0.1, threshold=6.5).rate == 0.1


def test_candidates_cover_the_rate_and_are_half_open():
    table = suggest(rate=0.5, width=0.25, step=0.05).table
    # 0.25 + 0.25 is the open end; 0.5 itself belongs to the interval that starts there
    assert sorted(table["alpha"]) == [0.3, 0.35, 0.4, 0.45, 0.5]
    assert np.array_equal(table["beta"], (table["alpha"] + 0.25).round(12))


def test_the_grid_reaches_the_last_ranks():
    # The last multiple of 0.1 that leaves room for 0.35 is 0.6; the candidate that ends at 1 is added.
    table = suggest(rate=0.97, width=0.35, step=0.1).table
    assert table[["alpha", "beta"]].to_numpy().tolist() == [[0.65, 1.0]]
    assert suggest(rate=0.3, width=1.0).interval == (0.0, 1.0)


def test_candidates_of_the_caller():
    suggestion = suggest(rate=0.6, candidates=[(0, 0.5), (0.25, 0.75), (0.55, 0.65)])
    assert sorted(suggestion.table["alpha"]) == [0.25, 0.55]
    # 4 against 2 (both the third of four), above 2: 1 against 0
    assert suggestion.interval == (0.55, 0.65)
    assert suggestion.gap == pytest.approx(1.0)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("sizes", [(60, 40), (50, 30, 40)])
def test_brute_force(sizes, normalize):
    score, group, weight = random_scores(sizes)
    options = {"sensitive_features": group, "sample_weight": weight}
    rate = np.average(score > 0, weights=weight)
    expected = {}
    for length in (0.15, 0.4):
        for start in range(20):
            pair = (start / 20, start / 20 + length)
            if pair[0] <= rate < pair[1] <= 1:
                gaps = [
                    partial_statistical_parity_gap(None, score, interval=pair, normalize=form, **options)
                    for form in (True, False)
                ]
                expected[round(pair[0], 9), round(pair[1], 9)] = gaps
    suggestion = suggest_interval(score, width=(0.4, 0.15), normalize=normalize, **options)
    assert suggestion.rate == pytest.approx(rate)
    found = {(row.alpha, row.beta): [row.gap, row.rank_gap] for row in suggestion.table.itertuples()}
    assert len(expected) >= 8
    assert found.keys() == expected.keys()
    for pair in expected:
        assert found[pair] == pytest.approx(expected[pair])
    best = max(expected.values(), key=lambda gaps: gaps if normalize else gaps[::-1])
    assert [suggestion.gap, suggestion.rank_gap] == pytest.approx(best)
    assert np.all(np.diff(suggestion.table["gap" if normalize else "rank_gap"]) <= 1e-9)
    assert suggestion.interval == tuple(suggestion.table.loc[0, ["alpha", "beta"]])


@pytest.mark.parametrize("normalize", [True, False])
def test_the_other_gap_decides_between_equals_then_the_distance_to_the_rate(normalize):
    group = np.repeat([0, 1], 100)
    place = np.arange(100)
    # Group 1 lies 30 places behind, its lower half 45: further than an interval of 20 is long.
    score = -np.r_[place, place + np.where(place < 50, 30.5, 45.5)]
    suggestion = suggest_interval(score, sensitive_features=group, rate=0.45, width=0.2, normalize=normalize)
    assert np.allclose(suggestion.table["gap"], 1.0)
    # The last one ends before the rank of group 1 at which it has fallen behind further.
    assert suggestion.table["alpha"].tolist() == [0.35, 0.4, 0.45, 0.3]
    assert suggestion.table["rank_gap"].tolist() == pytest.approx([0.46, 0.46, 0.46, 0.31])


def test_normalize_changes_the_order():
    score, group, _ = random_scores((300, 200))
    chosen = {
        form: suggest_interval(score, sensitive_features=group, width=(0.1, 0.5), normalize=form)
        for form in (True, False)
    }
    assert chosen[True].gap > chosen[False].gap
    assert chosen[True].rank_gap < chosen[False].rank_gap


def test_short_intervals_win_by_the_normalised_gap_and_long_ones_by_the_rank_gap():
    for seed in range(5):
        score, group, _ = random_scores((300, 200), seed)
        options = {"sensitive_features": group, "rate": 0.5, "candidates": [(0.2, 0.8), (0.2, 0.55), (0.45, 0.8)]}
        parts_and_whole = suggest_interval(score, **options).table.set_index("alpha")
        whole = parts_and_whole["beta"] - parts_and_whole.index > 0.5
        assert parts_and_whole.loc[whole, "rank_gap"].item() == pytest.approx(parts_and_whole["rank_gap"].max())
        # two halves of [0.2, 0.8), of which the second covers 0.5
        halves = [
            partial_statistical_parity_gap(None, score, sensitive_features=group, interval=pair)
            for pair in ((0.2, 0.5), (0.5, 0.8))
        ]
        assert max(halves) >= parts_and_whole.loc[whole, "gap"].item() - 1e-12


def test_weights_count_as_repeated_rows():
    score, group, _ = random_scores((40, 30))
    times = np.random.default_rng(1).integers(1, 4, score.size)
    weighted = suggest_interval(score, sensitive_features=group, sample_weight=times)
    repeated = suggest_interval(np.repeat(score, times), sensitive_features=np.repeat(group, times))
    pd.testing.assert_frame_equal(weighted.table, repeated.table)
    assert weighted.rate == pytest.approx(repeated.rate)


def test_only_the_order_of_scores_matters_with_a_given_rate():
    score, group, _ = random_scores((40, 30))
    first = suggest_interval(score, sensitive_features=group, rate=0.4)
    second = suggest_interval(np.exp(score), sensitive_features=np.where(group, "x", "y"), rate=0.4)
    pd.testing.assert_frame_equal(first.table, second.table)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rate": 0.0}, "strictly between 0 and 1; got 0.0"),
        ({"rate": 40}, "Write 5% as 0.05"),
        ({"rate": float("nan")}, "strictly between"),
        ({"threshold": 8}, "no scores exceed threshold=8"),
        ({}, r"all scores exceed threshold=0.0.*0.5 for probabilities"),
        ({"rate": 0.5, "width": 25}, "Write 25% as 0.25"),
        ({"rate": 0.5, "width": []}, "one or several lengths"),
        ({"rate": 0.5, "width": [0.5, 0.0]}, r"lengths in \(0, 1\]"),
        ({"rate": 0.5, "step": 0.3}, r"at most the smallest width, 0.25, .* got 0.3"),
        ({"rate": 0.5, "step": 0}, "step must be positive"),
        ({"rate": 0.5, "candidates": [(0, 0.5), (0.6, 1)]}, r"\(0.6, 1.0\)\] covers the positive rate 0.5"),
        ({"rate": 0.5, "candidates": (0, 0.6)}, "list of pairs"),
        ({"rate": 0.5, "candidates": []}, "list of pairs"),
        ({"rate": 0.5, "candidates": [(0.6, 0.4)]}, "alpha < beta"),
        ({"rate": 0.5, "candidates": [(0, 60)]}, "Write 5% as 0.05"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        suggest(**options)


def test_errors_of_groups_and_scores():
    with pytest.raises(ValueError, match="one group only, 'a'"):
        suggest_interval(SCORE, sensitive_features=["a"] * 8, rate=0.5)
    with pytest.raises(ValueError, match="8 rows"):
        suggest_interval(SCORE[:5], sensitive_features=GROUP, rate=0.5)
    with pytest.raises(ValueError, match="one score per row"):
        suggest_interval(np.ones((8, 2)), sensitive_features=GROUP, rate=0.5)
