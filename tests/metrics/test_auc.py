"""AUC gaps against arithmetic done by hand, all pairs of rows, and scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from fairconstrained.metrics import (
    granularity,
    inter_group_auc_gap,
    intra_group_auc_gap,
    partial_group_auc_gap,
)

GROUP = list("aaaabbbb")
SCORE = [8, 7, 4, 3, 8, 6, 2, 1]
BY_LABEL = [inter_group_auc_gap, intra_group_auc_gap]


def pgauc(score, group, interval=(0.0, 1.0), **options):
    return partial_group_auc_gap(None, score, sensitive_features=group, interval=interval, **options)


def auc(first, second, first_weight=None, second_weight=None):
    """Share of the pairs in which the first is larger, ties one half."""
    difference = np.subtract.outer(first, second)
    return np.average(
        np.average((difference > 0) + 0.5 * (difference == 0), axis=0, weights=first_weight), weights=second_weight
    )


def parts_inside(score, weight, pieces, rng):
    """Part of each row inside the interval, in one order of the ties, row by row."""
    order = np.lexsort((rng.permutation(score.size), -score))
    inside, start, total = np.zeros(score.size), 0.0, weight.sum()
    for row in order:
        stop = start + weight[row] / total
        inside[row] = sum(max(0.0, min(stop, high) - max(start, low)) for low, high in pieces)
        start = stop
    return inside


def draw(seed, sizes, decimals=8):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    score = (rng.normal(size=group.size) * (1 + 0.3 * group) + 0.4 * group).round(decimals)
    return score, group, rng.integers(0, 2, group.size), rng.uniform(0.1, 3, group.size)


class TestPartialGroupAuc:
    @pytest.mark.parametrize(
        ("interval", "expected"),
        [
            # a {8, 7, 4, 3} against b {8, 6, 2, 1}: 3.5 + 3 + 2 + 2 of 16
            ((0, 1), 10.5 / 16 - 0.5),
            ((0, 0.5), 0.125),  # {8, 7} and {8, 6}: 1.5 + 1 of 4
            ((0, 0.25), 0.0),  # {8} and {8}
            ((0.5, 1), 0.5),  # {4, 3} and {2, 1}: all
            ([(0, 0.25), (0.75, 1)], 0.125),  # {8, 3} and {8, 1}: 1.5 + 1 of 4
            ({"a": (0.5, 1), "b": (0, 0.5)}, 0.5),  # {4, 3} and {8, 6}: none
            ({"a": (0.25, 0.75), "b": [(0, 0.5)]}, 0.25),  # {7, 4} and {8, 6}: 1 of 4
            ((0, 0.375), 1 / 18),  # 8 and half of 7, 8 and half of 6: (2/3)(2/3 + 1/3 - 1/3) + 1/3 * 1/3 = 5/9
        ],
    )
    def test_by_hand(self, interval, expected):
        assert pgauc(SCORE, GROUP, interval) == pytest.approx(expected, abs=1e-15)

    def test_weights_by_hand(self):
        # a: 8 with 3/4, 5 with 1/4; b: 6 and 2. Above: 8 both, 5 one: 3/4 + 1/8.
        score, group, weight = [8, 5, 6, 2], list("aabb"), [3, 1, 1, 1]
        assert pgauc(score, group, sample_weight=weight) == pytest.approx(7 / 8 - 1 / 2)
        # Lower halves: a is half 8, half 5; b is 2.
        assert pgauc(score, group, (0.5, 1), sample_weight=weight) == pytest.approx(1 / 2)

    @pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "tied"])
    @pytest.mark.parametrize("pieces", [[(0, 1)], [(0.13, 0.48)], [(0, 0.11), (0.4, 0.77)]])
    def test_is_the_mean_over_all_pairs_and_orders_of_ties(self, pieces, decimals):
        score, group, _, weight = draw(0, (31, 23), decimals)
        rng = np.random.default_rng(1)
        first, second = group == 0, group == 1
        # Tied rows share what their block has inside, which any order of the ties gives the block.
        inside = np.zeros(score.size)
        for rows in (first, second):
            part = parts_inside(score[rows], weight[rows], pieces, rng)
            assert part.sum() == pytest.approx(sum(high - low for low, high in pieces))
            inside[rows] = part
        expected = abs(auc(score[first], score[second], inside[first], inside[second]) - 0.5)
        assert expected > 0.01
        assert pgauc(score, group, pieces, sample_weight=weight) == pytest.approx(expected)

    @pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "tied"])
    def test_whole_groups_are_scikit_learns_auc(self, decimals):
        for seed in range(3):
            score, group, _, weight = draw(seed, (40, 55), decimals)
            expected = roc_auc_score(group, score, sample_weight=weight)
            assert pgauc(score, group, sample_weight=weight) == pytest.approx(abs(expected - 0.5))

    def test_rows_inside_are_scikit_learns_auc(self):
        # Every size times every end is an integer, so that no row straddles an end.
        score, group, _, _ = draw(3, (20, 40))
        inside = np.concatenate(
            [
                np.flatnonzero(group == g)[np.argsort(-score[group == g])][n // 10 : n // 2]
                for g, n in [(0, 20), (1, 40)]
            ]
        )
        expected = roc_auc_score(group[inside], score[inside])
        assert pgauc(score, group, (0.1, 0.5)) == pytest.approx(abs(expected - 0.5))

    def test_the_interval_of_every_group_is_its_own(self):
        score, group, _, _ = draw(4, (20, 40))
        top = np.sort(score[group == 0])[::-1][:5]
        middle = np.sort(score[group == 1])[::-1][10:30]
        gap = pgauc(score, group, {0: (0, 0.25), 1: (0.25, 0.75)})
        assert gap == pytest.approx(abs(auc(top, middle) - 0.5))

    def test_many_groups_are_the_worst_or_the_mean_of_their_pairs(self):
        score, group, _, weight = draw(5, (25, 20, 31, 18))
        pairs = {
            (g, h): pgauc(score[rows], group[rows], (0.1, 0.6), sample_weight=weight[rows])
            for g in range(4)
            for h in range(4)
            if g != h
            for rows in [np.isin(group, [g, h])]
        }
        gap, table = pgauc(score, group, (0.1, 0.6), sample_weight=weight, return_groups=True)
        assert gap == pytest.approx(max(pairs.values()))
        mean = pgauc(score, group, (0.1, 0.6), sample_weight=weight, agg="mean")
        assert mean == pytest.approx(np.mean(list(pairs.values())))
        for label in range(4):
            worst = max((h for h in range(4) if h != label), key=lambda other: pairs[label, other])
            assert table.loc[label, "against"] == worst
            assert abs(table.loc[label, "auc"] - 0.5) == pytest.approx(pairs[label, worst])

    def test_table(self):
        _, table = pgauc(SCORE, GROUP, (0, 0.5), return_groups=True)
        expected = pd.DataFrame(
            {"n_samples": [4, 4], "weight": [4.0, 4.0], "against": ["b", "a"], "auc": [0.625, 0.375]},
            index=pd.Index(["a", "b"], name="group"),
        )
        pd.testing.assert_frame_equal(table, expected)

    def test_several_columns_become_their_combinations(self):
        score, group, label, _ = draw(6, (30, 30))
        features = pd.DataFrame({"sex": group, "old": label.astype(bool)})
        gap, table = pgauc(score, features, (0.0, 0.4), return_groups=True)
        assert gap == pgauc(score, 2 * group + label, (0.0, 0.4))
        assert all(against in table.index for against in table["against"])
        first, other = table.index[0], table["against"].iloc[0]
        assert pgauc(score, features, dict.fromkeys(table.index, (0.0, 0.4))) == gap
        assert table.loc[[first], "auc"].item() != 0.5
        assert other != first

    def test_only_ranks_matter(self):
        score, group, _, weight = draw(7, (30, 25), decimals=1)
        gap = pgauc(score, group, (0.1, 0.7), sample_weight=weight)
        assert pgauc(np.exp(score), group, (0.1, 0.7), sample_weight=weight) == gap
        # Upside down, the interval is mirrored and the winner becomes the loser.
        assert pgauc(-score, group, (0.3, 0.9), sample_weight=weight) == pytest.approx(gap)

    @pytest.mark.parametrize("interval", [(0, 1), (0.1, 0.4), [(0, 0.07), (0.3, 0.9)]])
    def test_a_constant_score_is_fair(self, interval):
        weight = np.random.default_rng(0).uniform(size=8)
        assert pgauc([0.3] * 8, GROUP, interval, sample_weight=weight) == 0.0

    @pytest.mark.parametrize("interval", [(0, 1), (0.2, 0.6), [(0, 0.25), (0.5, 0.75)]])
    def test_granularity_is_the_most_that_moving_one_row_can_change(self, interval):
        score, group, _, weight = draw(8, (12, 17))
        before = pgauc(score, group, interval, sample_weight=weight)
        after = [
            pgauc(np.where(np.arange(score.size) == row, value, score), group, interval, sample_weight=weight)
            for row in range(score.size)
            for value in (-9, 0, 9)
        ]
        most = granularity(group, sample_weight=weight, interval=interval)
        change = np.abs(np.array(after) - before).max()
        assert 0.2 * most <= change <= most + 1e-12

    @pytest.mark.parametrize("n_blocks", [1, 2, 7])
    def test_blocks_of_groups_join(self, monkeypatch, n_blocks):
        score, group, _, weight = draw(9, (30, 20), decimals=1)
        whole = pgauc(score, group, (0.1, 0.6), sample_weight=weight)
        from fairconstrained.metrics import cell_aucs

        small = 2 * np.unique(score).size // n_blocks
        monkeypatch.setattr(cell_aucs, "_BLOCK_ENTRIES", small)
        assert pgauc(score, group, (0.1, 0.6), sample_weight=weight) == pytest.approx(whole)


class TestByLabel:
    # a+ {0.9, 0.2}, a- {0.5, 0.2}; b+ {0.8, 0.7}, b- {0.9, 0.1}
    score = (0.9, 0.2, 0.5, 0.2, 0.8, 0.7, 0.9, 0.1)
    label = (1, 1, 0, 0, 1, 1, 0, 0)

    def test_inter_group_by_hand(self):
        # a+ above b-: (0.5 + 1 + 0 + 1) / 4; b+ above a-: 4 / 4.
        gap, table = inter_group_auc_gap(self.label, self.score, sensitive_features=GROUP, return_groups=True)
        assert gap == pytest.approx(1 - 2.5 / 4)
        assert table["against"].tolist() == ["b", "a"]
        assert table["auc"].tolist() == [0.625, 1.0]
        assert table["reverse_auc"].tolist() == [1.0, 0.625]

    def test_intra_group_by_hand(self):
        # a: (1 + 1 + 0 + 0.5) / 4; b: (0 + 1 + 0 + 1) / 4.
        gap, table = intra_group_auc_gap(self.label, self.score, sensitive_features=GROUP, return_groups=True)
        assert gap == pytest.approx(2.5 / 4 - 2 / 4)
        assert table["auc"].tolist() == [0.625, 0.5]
        assert list(table.columns) == ["n_samples", "weight", "auc"]

    @pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "tied"])
    def test_same_as_scikit_learn_on_sub_sets(self, decimals):
        score, group, label, weight = draw(0, (40, 30, 50), decimals)

        def auc_of(positives, negatives):
            rows = ((group == positives) & (label == 1)) | ((group == negatives) & (label == 0))
            return roc_auc_score(label[rows], score[rows], sample_weight=weight[rows])

        pairs = [(0, 1), (0, 2), (1, 2)]
        inter = [abs(auc_of(g, h) - auc_of(h, g)) for g, h in pairs]
        intra = [abs(auc_of(g, g) - auc_of(h, h)) for g, h in pairs]
        options = {"sensitive_features": group, "sample_weight": weight}
        for metric, expected in ((inter_group_auc_gap, inter), (intra_group_auc_gap, intra)):
            assert metric(label, score, **options) == pytest.approx(max(expected))
            assert metric(label, score, agg="mean", **options) == pytest.approx(np.mean(expected))

    @pytest.mark.parametrize("metric", BY_LABEL)
    def test_any_encoding_of_the_labels(self, metric):
        expected = metric(self.label, self.score, sensitive_features=GROUP)
        named = np.where(self.label, "yes", "no")
        assert metric(named, self.score, sensitive_features=GROUP) == expected
        # With the other label positive and the scores upside down, everybody swaps places with everybody.
        swapped = metric(named, -np.array(self.score), sensitive_features=GROUP, pos_label="no")
        assert swapped == pytest.approx(expected)

    @pytest.mark.parametrize("metric", BY_LABEL)
    def test_constant_score(self, metric):
        assert metric(self.label, [2.0] * 8, sensitive_features=GROUP) == 0.0

    @pytest.mark.parametrize("metric", BY_LABEL)
    def test_empty_cells(self, metric):
        label, score, group = [1, 0, 1, 0, 0], [3, 2, 1, 0, 4], list("aaabb")
        with pytest.raises(ValueError, match=r"no rows(.|\n)*y_true=0 +y_true=1(.|\n)*a +1 +2\nb +2 +0"):
            metric(label, score, sensitive_features=group)
        weight = [1, 0, 1, 1, 1]
        with pytest.raises(ValueError, match=r"a +0 +2\nb +2 +0"):
            metric(label, score, sensitive_features=group, sample_weight=weight)
        value, table = metric(label, score, sensitive_features=group, on_empty="nan", return_groups=True)
        assert np.isnan(value)
        assert table["n_samples"].tolist() == [3, 2]

    @pytest.mark.parametrize("metric", BY_LABEL)
    def test_errors(self, metric):
        with pytest.raises(ValueError, match="y_true must be given"):
            metric(None, self.score, sensitive_features=GROUP)
        with pytest.raises(ValueError, match="y_true must hold two labels; got 3"):
            metric([0, 1, 2, 0, 1, 2, 0, 1], self.score, sensitive_features=GROUP)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            metric([0, 1], self.score, sensitive_features=GROUP)
        with pytest.raises(ValueError, match="on_empty must be one of"):
            metric(self.label, self.score, sensitive_features=GROUP, on_empty="ignore")


def test_unknown_agg_and_interval():
    for metric in (partial_group_auc_gap, *BY_LABEL):
        with pytest.raises(ValueError, match="agg must be one of"):
            metric(TestByLabel.label, SCORE, sensitive_features=GROUP, agg="median")
    with pytest.raises(ValueError, match="alpha < beta"):
        pgauc(SCORE, GROUP, (0.5, 0.2))
