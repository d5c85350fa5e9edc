"""Partial metrics against arithmetic done by hand and against restatements of their definitions."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from fairconstrained.metrics import (
    granularity,
    partial_demographic_parity_gap,
    partial_statistical_parity_gap,
)

GROUP = list("aaaabbbb")
SCORE = [8, 7, 4, 3, 8, 6, 2, 1]


def psp(score, group, interval, **options):
    return partial_statistical_parity_gap(None, score, sensitive_features=group, interval=interval, **options)


def psp_by_definition(score, group, interval):
    """Equation (6) with the rows in the interval picked one by one, over all thresholds and pairs."""
    inside = {}
    for label in np.unique(group):
        ordered = np.sort(score[group == label])[::-1]
        first, last = (int(np.ceil(end * ordered.size - 1e-9)) for end in interval)
        inside[label] = ordered[first:last]
    return max(
        abs(np.mean(inside[g] > theta) - np.mean(inside[h] > theta))
        for theta in score
        for g, h in permutations(inside, 2)
    )


def rank_gap_by_definition(score, group, pieces_of):
    def rank(label, theta):
        return np.mean(score[group == label] > theta)

    def counts(label, theta):
        return any(low <= rank(label, theta) < high for low, high in pieces_of[label])

    return max(
        abs(rank(g, theta) - rank(h, theta)) * (counts(g, theta) or counts(h, theta))
        for theta in [*score, -np.inf]
        for g, h in permutations(pieces_of, 2)
    )


def random_scores(seed, sizes):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(len(sizes)), sizes)
    score = rng.normal(size=group.size) * (1 + 0.3 * group) + 0.2 * group
    return score, group


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # Rows in the interval, a against b, and the threshold of the largest difference:
        ((0, 0.5), 0.5),  # {8, 7} and {8, 6}; above 6: 2/2 - 1/2
        ((0, 0.25), 0.0),  # {8} and {8}
        ((0.5, 1), 1.0),  # {4, 3} and {2, 1}; above 2: 2/2 - 0/2
        ((0.25, 0.75), 0.5),  # {7, 4} and {6, 2}; above 6: 1/2 - 0/2
        ([(0, 0.25), (0.75, 1)], 0.5),  # {8, 3} and {8, 1}; above 1: 2/2 - 1/2
        ({"a": (0, 0.5), "b": (0.5, 1)}, 1.0),  # {8, 7} and {2, 1}
        ({"a": (0, 0.25), "b": (0, 0.5)}, 0.5),  # {8} and {8, 6}; above 7: 1/1 - 1/2
    ],
)
def test_psp_by_hand(interval, expected):
    assert psp(SCORE, GROUP, interval) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        # Ranks (a, b) as theta falls: 8 (0, 0), 7 (1/4, 1/4), 6 (2/4, 1/4), 4 (2/4, 2/4), 3 (3/4, 2/4),
        # 2 (1, 2/4), 1 (1, 3/4), -inf (1, 1).
        ((0, 0.5), 0.25),  # counts down to 6
        ((0.5, 1), 0.5),  # at 2
        ((0, 0.2), 0.0),  # counts at 8 only
        ([(0.25, 0.3), (0.75, 0.8)], 0.25),  # counts at 7, 6, 3, 1
        ({"a": (0, 0.25), "b": (0.5, 0.6)}, 0.5),  # b counts at 4, 3, 2
    ],
)
def test_rank_gap_by_hand(interval, expected):
    assert psp(SCORE, GROUP, interval, normalize=False) == pytest.approx(expected)


def test_ties_across_the_end_of_the_interval_count_with_their_fraction():
    # Above 0: a 2/4, b 1/4. The other half of b's top half is any of its zeros, so 1 - 1/2.
    score = [1, 1, 0, 0, 1, 0, 0, 0]
    assert psp(score, GROUP, (0, 0.5)) == pytest.approx(0.5)


def test_weights_by_hand():
    # Weight of a: 8 -> 3, 5 -> 1; its top half is the row 8 alone. b: 9, 2; its top half is 9.
    score, group, weight = [8, 5, 9, 2], list("aabb"), [3, 1, 1, 1]
    assert psp(score, group, (0, 0.5), sample_weight=weight) == pytest.approx(1.0)
    # Lower halves: a is half 8, half 5; b is 2; above 2: 1 - 0.
    assert psp(score, group, (0.5, 1), sample_weight=weight) == pytest.approx(1.0)
    # Ranks (a, b) at 8: (0, 1/2); at 5: (3/4, 1/2); at 2: (1, 1/2).
    assert psp(score, group, (0.6, 0.8), sample_weight=weight, normalize=False) == pytest.approx(0.25)


@pytest.mark.parametrize("sizes", [(20, 20), (20, 40), (40, 20, 60)])
@pytest.mark.parametrize("interval", [(0, 0.25), (0.05, 0.3), (0.35, 0.9), (0.7, 1), (0, 1)])
def test_psp_is_equation_6(sizes, interval):
    # Every size times every end is an integer, so that no row straddles an end.
    for seed in range(3):
        score, group = random_scores(seed, sizes)
        assert psp(score, group, interval) == pytest.approx(psp_by_definition(score, group, interval))


@pytest.mark.parametrize("sizes", [(37, 23), (31, 53, 17)])
def test_rows_that_straddle_an_end_matter_less_than_the_granularity(sizes):
    for seed in range(10):
        score, group = random_scores(seed, sizes)
        low, high = interval = (0.13, 0.13 + 0.07 * (seed + 2))
        difference = abs(psp(score, group, interval) - psp_by_definition(score, group, interval))
        assert difference <= granularity(group, interval=interval) == 1 / min(sizes) / (high - low)


@pytest.mark.parametrize("sizes", [(30, 20), (20, 13, 40), (9, 12, 7, 15, 11)])
@pytest.mark.parametrize("pieces", [[(0.1, 0.4)], [(0.0, 0.1), (0.45, 0.77)], [(0.8, 1.0)]])
def test_rank_gap_is_its_definition(sizes, pieces):
    for seed in range(3):
        score, group = random_scores(seed, sizes)
        labels = range(len(sizes))
        expected = rank_gap_by_definition(score, group, dict.fromkeys(labels, pieces))
        assert psp(score, group, pieces, normalize=False) == pytest.approx(expected)
        by_group = {label: pieces if label % 2 else [(0.2, 0.3)] for label in labels}
        expected = rank_gap_by_definition(score, group, by_group)
        assert psp(score, group, by_group, normalize=False) == pytest.approx(expected)


@pytest.mark.parametrize("normalize", [True, False])
def test_many_groups_are_the_worst_or_the_mean_of_their_pairs(normalize):
    score, group = random_scores(0, (25, 20, 31, 18))
    pairs = [
        psp(score[rows], group[rows], (0.1, 0.6), normalize=normalize)
        for g in range(4)
        for h in range(g)
        for rows in [np.isin(group, [g, h])]
    ]
    assert psp(score, group, (0.1, 0.6), normalize=normalize) == pytest.approx(max(pairs))
    assert psp(score, group, (0.1, 0.6), normalize=normalize, agg="mean") == pytest.approx(np.mean(pairs))


def test_table_at_the_worst_threshold():
    gap, table = psp(SCORE, GROUP, (0, 0.5), return_groups=True)
    expected = pd.DataFrame(
        {
            "n_samples": [4, 4],
            "weight": [4.0, 4.0],
            "threshold": [6.0, 6.0],
            "rank": [0.5, 0.25],
            "partial_rank": [1.0, 0.5],
        },
        index=pd.Index(["a", "b"], name="group"),
    )
    assert gap == pytest.approx(0.5)
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize("metric", [partial_statistical_parity_gap, partial_demographic_parity_gap])
@pytest.mark.parametrize("normalize", [True, False])
def test_a_constant_score_is_fair(metric, normalize):
    options = {"interval": (0.1, 0.4), "normalize": normalize}
    assert metric(None, [0.3] * 8, sensitive_features=GROUP, **options) == 0.0
    # Weights whose sum depends on the order of summation.
    weight = np.random.default_rng(0).uniform(size=8)
    assert metric(None, [0.3] * 8, sensitive_features=GROUP, sample_weight=weight, **options) == 0.0


class TestDemographicParity:
    @staticmethod
    def gap(interval, threshold, **options):
        return partial_demographic_parity_gap(
            None, SCORE, sensitive_features=GROUP, interval=interval, threshold=threshold, **options
        )

    @pytest.mark.parametrize(
        ("interval", "threshold", "expected"),
        [
            ((0, 1), 6.5, 0.25),  # 2/4 - 1/4
            ((0, 0.5), 6.5, 0.5),  # {8, 7} and {8, 6}: 2/2 - 1/2
            ((0.5, 1), 6.5, 0.0),  # {4, 3} and {2, 1}: nobody
            ((0.5, 1), 2.5, 1.0),  # all against none
            ((0, 0.5), 2.5, 0.0),  # everybody
            ([(0, 0.25), (0.75, 1)], 1.0, 0.5),  # {8, 3} and {8, 1}: 2/2 - 1/2
            ({"a": (0, 0.5), "b": (0.5, 1)}, 5.0, 1.0),  # {8, 7} and {2, 1}
        ],
    )
    def test_by_hand(self, interval, threshold, expected):
        assert self.gap(interval, threshold) == pytest.approx(expected)

    def test_the_threshold_is_strict_and_zero_by_default(self):
        score = [1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]
        # 3/4 - 1/4
        assert partial_demographic_parity_gap(None, score, sensitive_features=GROUP) == pytest.approx(0.5)

    @pytest.mark.parametrize(
        ("interval", "threshold", "expected"),
        [
            ((0, 0.3), 6.5, 0.25),  # ranks (2/4, 1/4): b is inside
            ((0.3, 0.4), 6.5, 0.0),  # neither is inside
            ((0.5, 0.6), 2.5, 0.5),  # ranks (1, 2/4): b is inside
        ],
    )
    def test_rank_gap_by_hand(self, interval, threshold, expected):
        assert self.gap(interval, threshold, normalize=False) == pytest.approx(expected)

    @pytest.mark.parametrize("normalize", [True, False])
    def test_psp_is_the_worst_threshold(self, normalize):
        score, group = random_scores(1, (20, 30, 25))
        gaps = [
            partial_demographic_parity_gap(
                None,
                score,
                sensitive_features=group,
                interval=(0.2, 0.7),
                threshold=theta,
                normalize=normalize,
            )
            for theta in score
        ]
        assert psp(score, group, (0.2, 0.7), normalize=normalize) == pytest.approx(max(gaps))

    def test_mean_over_pairs_and_table(self):
        # Positive rates 1, 1/2, 0: pairs 1/2, 1, 1/2.
        score, group = [1, 1, 1, -1, -1, -1], list("aabbcc")
        gap, table = partial_demographic_parity_gap(
            None, score, sensitive_features=group, agg="mean", return_groups=True, interval=(0, 0.5)
        )
        # Within the top half the rates are 1, 1, 0: pairs 0, 1, 1.
        assert gap == pytest.approx(2 / 3)
        assert table["rank"].tolist() == [1.0, 0.5, 0.0]
        assert table["partial_rank"].tolist() == [1.0, 1.0, 0.0]
        assert table["threshold"].tolist() == [0.0] * 3


class TestGranularity:
    def test_by_hand(self):
        group = list("aaaabb")
        assert granularity(group) == 1 / 2
        assert granularity(group, interval=(0.2, 0.6)) == pytest.approx(1 / 2 / 0.4)
        assert granularity(group, interval=(0.2, 0.6), normalize=False) == 1 / 2
        # a: 1/4 / 0.1 = 2.5; b: 1/2 / 1
        assert granularity(group, interval={"a": (0, 0.1), "b": (0, 1)}) == pytest.approx(2.5)
        # a: 5/8; b: 1/2
        assert granularity(group, sample_weight=[5, 1, 1, 1, 1, 1]) == 5 / 8

    @pytest.mark.parametrize("interval", [(0, 1), (0.2, 0.6), [(0, 0.25), (0.5, 0.75)]])
    def test_is_the_most_that_moving_one_row_can_change(self, interval):
        score, group = random_scores(2, (12, 17))
        before = psp(score, group, interval)
        after = [
            psp(np.where(np.arange(score.size) == row, value, score), group, interval)
            for row in range(score.size)
            for value in (-9, 0, 9)
        ]
        change = np.abs(np.array(after) - before).max()
        assert 0.5 * granularity(group, interval=interval) <= change
        assert change <= granularity(group, interval=interval) + 1e-12

    def test_errors(self):
        with pytest.raises(ValueError, match="alpha < beta"):
            granularity(GROUP, interval=(0.4, 0.1))
        with pytest.raises(ValueError, match="must have shape"):
            granularity(GROUP, sample_weight=[1.0])


@pytest.mark.parametrize("metric", [partial_statistical_parity_gap, partial_demographic_parity_gap])
def test_unknown_agg(metric):
    with pytest.raises(ValueError, match="agg must be one of"):
        metric(None, SCORE, sensitive_features=GROUP, agg="median")
