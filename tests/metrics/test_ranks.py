"""The array functions that other layers call: rank tables, worst gaps, rates."""

import numpy as np
import pytest

from fairconstrained.metrics import PercentileIntervals
from fairconstrained.metrics.ranks import RankTable, gaps_by_threshold, pair_gaps, rank_table, worst_gap
from fairconstrained.metrics.validation import check_groups

SCORES = np.array([8.0, 7, 4, 3, 8, 6, 2, 1])
CODES = np.repeat([0, 1], 4)
ONES = np.ones(8)


def random_rows(seed, n_groups, n_samples=400):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_groups), rng.integers(0, n_groups, n_samples - n_groups)])
    scores = (rng.normal(size=n_samples) + 0.5 * codes / n_groups).round(2)
    return scores, codes, rng.uniform(0.1, 2, n_samples), n_groups


def test_rank_table_by_hand():
    thresholds, ranks = rank_table(SCORES, CODES, ONES, 2)
    assert thresholds.tolist() == [8, 7, 6, 4, 3, 2, 1, -np.inf]
    expected = [[0, 1, 2, 2, 3, 4, 4, 4], [0, 1, 1, 2, 2, 2, 3, 4]]
    assert ranks.tolist() == (np.transpose(expected) / 4).tolist()


def test_rank_table_is_its_definition():
    scores, codes, weights, n_groups = random_rows(0, 5)
    thresholds, ranks = rank_table(scores, codes, weights, n_groups)
    for theta, row in zip(thresholds, ranks, strict=True):
        expected = [weights[(codes == g) & (scores > theta)].sum() / weights[codes == g].sum() for g in range(n_groups)]
        np.testing.assert_allclose(row, expected, atol=1e-14)
    # The ends are exact whatever the rounding in between.
    assert (ranks[0] == 0).all()
    assert (ranks[-1] == 1).all()


@pytest.mark.parametrize("max_entries", [1, 7, 64, 10**6])
def test_blocks_put_together_are_the_table(monkeypatch, max_entries):
    rows = random_rows(1, 4)
    monkeypatch.setattr("fairconstrained.metrics.ranks._BLOCK_ENTRIES", max_entries)
    blocks = list(RankTable(*rows))
    thresholds, ranks = rank_table(*rows)
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), thresholds)
    np.testing.assert_allclose(np.concatenate([block[1] for block in blocks]), ranks, atol=1e-14)
    assert max(block[1].size for block in blocks) <= max(max_entries, 4)


def test_worst_gap_by_hand():
    # Ranks (a, b) of 6 are (2/4, 1/4); within the top half they are (1, 1/2).
    intervals = PercentileIntervals.parse((0, 0.5), "ab")
    for normalize, gap in [(True, 0.5), (False, 0.25)]:
        worst = worst_gap(SCORES, CODES, ONES, 2, intervals, normalize)
        assert worst.gap == pytest.approx(gap)
        assert worst.threshold == 6
        assert worst.ranks.tolist() == [0.5, 0.25]


@pytest.mark.parametrize("sign", [1, -1])
def test_rank_gap_is_attained_where_a_rank_lies_inside(sign):
    # In decreasing order c b b a, or a b b c: at the first b the ranks of the outer groups are 0 and 1 but
    # only b's, 1/2, is in [0.4, 0.6). Elsewhere no rank is.
    scores, codes = sign * np.array([1.0, 3, 7, 9]), np.array([0, 1, 1, 2])
    intervals = PercentileIntervals.parse((0.4, 0.6), "abc")
    worst = worst_gap(scores, codes, np.ones(4), 3, intervals, normalize=False)
    assert worst.gap == 0.5
    assert sorted(worst.ranks.tolist()) == [0.0, 0.5, 1.0]
    assert worst.ranks[1] == 0.5


@pytest.mark.parametrize("share", [1 / 4, 3 / 4])
def test_rank_gap_is_that_of_the_member_inside_and_the_farther_extreme(share):
    # At theta = 0 the ranks are 0, share and 1; only the middle one is in the interval.
    scores = np.concatenate([-np.ones(4), np.where(np.arange(4) < 4 * share, 2.0, -2.0), 3 * np.ones(4)])
    intervals = PercentileIntervals.parse((share, share + 0.1), "abc")
    worst = worst_gap(scores, np.repeat([0, 1, 2], 4), np.ones(12), 3, intervals, normalize=False)
    assert worst.gap == 0.75
    assert worst.ranks.tolist() == [0.0, share, 1.0]


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("n_groups", [1, 2, 6])
def test_worst_gap_is_attained_where_it_says(normalize, n_groups):
    for seed in range(5):
        rows = random_rows(seed, n_groups)
        scores, codes, weights, _ = rows
        intervals = PercentileIntervals.parse([(0.05, 0.2), (0.5, 0.6)], range(n_groups))
        worst = worst_gap(*rows, intervals, normalize)
        expected = [weights[(codes == g) & (scores > worst.threshold)].sum() for g in range(n_groups)]
        np.testing.assert_allclose(worst.ranks, expected / np.bincount(codes, weights), atol=1e-14)
        assert worst.gap == pytest.approx(pair_gaps(worst.ranks[None], intervals, normalize).max())
        ranks = rank_table(*rows)[1]
        assert worst.gap == pytest.approx(gaps_by_threshold(ranks, intervals, normalize).max())
        assert worst.gap == pytest.approx(pair_gaps(ranks, intervals, normalize).max())


def test_worst_gap_over_many_blocks(monkeypatch):
    rows = random_rows(3, 6)
    intervals = PercentileIntervals.parse((0.1, 0.4), range(6))
    whole = worst_gap(*rows, intervals)
    monkeypatch.setattr("fairconstrained.metrics.ranks._BLOCK_ENTRIES", 10)
    pieces = worst_gap(*rows, intervals)
    assert pieces.gap == pytest.approx(whole.gap)
    assert pieces.threshold == whole.threshold


def test_no_rank_inside_means_no_rank_gap():
    # With two rows a group the ranks are 0, 1/2 and 1.
    scores, codes = np.array([1.0, 2, 3, 4]), np.array([0, 0, 1, 1])
    intervals = PercentileIntervals.parse((0.1, 0.4), "ab")
    worst = worst_gap(scores, codes, np.ones(4), 2, intervals, normalize=False)
    assert worst.gap == 0.0


def test_means_by_label_leave_empty_cells_open():
    rows = check_groups(["a", "a", "b"], [3.0, 1.0, 2.0])
    means = rows.means(np.array([True, False, True]), np.array([False, False, True]))
    np.testing.assert_array_equal(means, [[0.75, np.nan], [np.nan, 1.0]])
