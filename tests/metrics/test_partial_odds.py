"""Partial gaps among rows of equal label, against arithmetic done by hand and against what they generalise."""

import numpy as np
import pytest

from fairconstrained.metrics import (
    equal_opportunity_gap,
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    separation_gap,
)

METRICS = [partial_equal_opportunity_gap, partial_equalized_odds_gap]
# Positives: a {8, 7, 4, 3}, b {8, 6, 2, 1}. Negatives: a {9, 5}, b {5, 0}.
GROUP = list("aaaabbbbaabb")
SCORE = np.array([8, 7, 4, 3, 8, 6, 2, 1, 9, 5, 5, 0])
LABEL = np.array([1] * 8 + [0] * 4)


def draw(seed):
    rng = np.random.default_rng(seed)
    return {
        "y_true": rng.integers(0, 2, 300),
        "y_score": rng.normal(size=300).round(2),
        "sensitive_features": rng.choice(["a", "b", "c"], 300, p=[0.5, 0.3, 0.2]),
        "sample_weight": rng.uniform(0.1, 3, 300),
    }


@pytest.mark.parametrize(
    ("interval", "threshold", "opportunity", "odds"),
    [
        # Positives of a and b above the threshold, within the interval; then negatives.
        ((0, 1), 6.5, 0.25, 0.5),  # 2/4 - 1/4; {9} of 2 - none
        ((0, 0.5), 6.5, 0.5, 1.0),  # {8, 7} and {8, 6}; {9} and {5}
        ((0.5, 1), 6.5, 0.0, 0.0),  # nobody
        ((0.5, 1), 2.5, 1.0, 1.0),  # {4, 3} and {2, 1}; {5} and {0}
        ((0, 0.5), 2.5, 0.0, 0.0),  # everybody
        ([(0, 0.25), (0.75, 1)], 1.0, 0.5, 0.5),  # {8, 3} and {8, 1}; halves of {9, 5} and of {5, 0}
        ({"a": (0, 0.5), "b": (0.5, 1)}, 4.5, 1.0, 1.0),  # {8, 7} and {2, 1}; {9} and {0}
    ],
)
def test_by_hand(interval, threshold, opportunity, odds):
    options = {"sensitive_features": GROUP, "interval": interval, "threshold": threshold}
    assert partial_equal_opportunity_gap(LABEL, SCORE, **options) == pytest.approx(opportunity)
    assert partial_equalized_odds_gap(LABEL, SCORE, **options) == pytest.approx(odds)


@pytest.mark.parametrize(
    ("interval", "threshold", "opportunity", "odds"),
    [
        ((0, 0.3), 6.5, 0.25, 0.5),  # ranks of the positives (2/4, 1/4), of the negatives (1/2, 0)
        ((0.3, 0.4), 6.5, 0.0, 0.0),  # no rank inside
        ((0.5, 0.6), 6.5, 0.25, 0.5),
        ((0.8, 0.9), 2.5, 0.0, 0.0),  # (1, 2/4) and (1, 1/2)
    ],
)
def test_rank_gap_by_hand(interval, threshold, opportunity, odds):
    options = {"sensitive_features": GROUP, "interval": interval, "threshold": threshold, "normalize": False}
    assert partial_equal_opportunity_gap(LABEL, SCORE, **options) == pytest.approx(opportunity)
    assert partial_equalized_odds_gap(LABEL, SCORE, **options) == pytest.approx(odds)


@pytest.mark.parametrize("agg", ["max", "mean"])
def test_the_whole_interval_gives_the_gaps_of_predictions(agg):
    for seed in range(3):
        data = draw(seed)
        y_true, score = data.pop("y_true"), data.pop("y_score")
        predicted = (score > 0.3).astype(int)
        value = partial_equal_opportunity_gap(y_true, score, threshold=0.3, agg=agg, **data)
        assert value == pytest.approx(equal_opportunity_gap(y_true, predicted, agg=agg, **data))
        value = partial_equalized_odds_gap(y_true, score, threshold=0.3, agg=agg, **data)
        assert value == pytest.approx(separation_gap(y_true, predicted, agg=agg, **data))


def test_same_as_fairlearn():
    fairlearn = pytest.importorskip("fairlearn.metrics")
    for seed in range(3):
        data = draw(seed)
        theirs = {key: data[key] for key in ("y_true", "sensitive_features", "sample_weight")}
        theirs["y_pred"] = data["y_score"] > 0
        expected = fairlearn.equal_opportunity_difference(**theirs)
        assert partial_equal_opportunity_gap(**data) == pytest.approx(expected, abs=1e-12)
        expected = fairlearn.equalized_odds_difference(**theirs, agg="worst_case")
        assert partial_equalized_odds_gap(**data) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(
    "interval", [(0.1, 0.4), [(0, 0.2), (0.5, 0.9)], {"a": (0, 0.5), "b": (0, 1), "c": (0.3, 0.6)}]
)
def test_are_partial_demographic_parity_among_rows_of_a_label(normalize, interval):
    data = draw(4)
    options = {"interval": interval, "normalize": normalize, "threshold": 0.2}
    by_label = []
    for label in (0, 1):
        rows = data["y_true"] == label
        chosen = {key: column[rows] for key, column in data.items()}
        by_label.append(partial_demographic_parity_gap(**chosen, **options))
    assert partial_equal_opportunity_gap(**data, **options) == pytest.approx(by_label[1])
    assert partial_equal_opportunity_gap(**data, **options, pos_label=0) == pytest.approx(by_label[0])
    assert partial_equalized_odds_gap(**data, **options) == pytest.approx(max(by_label))
    assert max(by_label) > 0


def test_the_mean_is_over_pairs_after_the_larger_label():
    # Positives above 0: a 1/1, b 0/1, c 0/1; negatives: a 0/1, b 1/1, c 0/1. Pairs ab 1, ac 1, bc 1.
    score, label, group = [1, -1, -1, -1, 1, -1], [1, 1, 1, 0, 0, 0], list("abcabc")
    options = {"sensitive_features": group, "agg": "mean"}
    assert partial_equalized_odds_gap(label, score, **options) == 1.0
    assert partial_equal_opportunity_gap(label, score, **options) == pytest.approx(2 / 3)


def test_tables():
    options = {"sensitive_features": GROUP, "interval": (0, 0.5), "threshold": 6.5, "return_groups": True}
    _, table = partial_equal_opportunity_gap(LABEL, SCORE, **options)
    assert table["n_samples"].tolist() == [6, 6]
    assert list(table.columns[2:]) == ["true_positive_rate", "partial_true_positive_rate"]
    assert table["true_positive_rate"].tolist() == [0.5, 0.25]
    assert table["partial_true_positive_rate"].tolist() == [1.0, 0.5]
    _, table = partial_equalized_odds_gap(LABEL, SCORE, **options)
    assert table["false_positive_rate"].tolist() == [0.5, 0.0]
    assert table["partial_false_positive_rate"].tolist() == [1.0, 0.0]
    assert table["true_positive_rate"].tolist() == [0.5, 0.25]
    assert table["partial_true_positive_rate"].tolist() == [1.0, 0.5]


@pytest.mark.parametrize("metric", METRICS)
def test_a_constant_score_is_fair(metric):
    for threshold in (0.0, 0.3, 1.0):
        options = {"interval": (0.1, 0.4), "threshold": threshold}
        assert metric(LABEL, [0.3] * 12, sensitive_features=GROUP, **options) == 0.0
        assert metric(LABEL, [0.3] * 12, sensitive_features=GROUP, **options, ranks="group") == 0.0


# --- ranks in the whole group


def brute_force(y_true, y_score, groups, weights, interval, threshold, labels):
    """Eqs. 42 and 45 row by row: the part of a row, or of its tie, whose rank in its group lies in the interval."""
    rates = []
    for group in np.unique(groups):
        own = groups == group
        score, weight, label = y_score[own], weights[own], y_true[own]
        pieces = interval[group] if isinstance(interval, dict) else interval
        parts = []
        for s in score:
            above = weight[score > s].sum() / weight.sum()
            reached = weight[score >= s].sum() / weight.sum()
            inside = sum(max(0.0, min(reached, b) - max(above, a)) for a, b in np.atleast_2d(pieces))
            parts.append(inside / (reached - above))
        counted = weight * np.array(parts)
        rates.append([counted[(label == v) & (score > threshold)].sum() / counted[label == v].sum() for v in labels])
    return float(np.ptp(np.array(rates), axis=0).max())


@pytest.mark.parametrize(
    "interval", [(0, 1), (0.1, 0.4), [(0, 0.2), (0.5, 0.9)], {"a": (0, 0.5), "b": [(0, 1)], "c": (0.3, 0.6)}]
)
def test_ranks_in_the_whole_group_restated(interval):
    found = []
    for seed in range(4):
        data = draw(seed)
        options = {"interval": interval, "threshold": 0.1 * seed}
        restated = [*data.values(), interval, 0.1 * seed]
        value = partial_equal_opportunity_gap(**data, **options, ranks="group")
        assert value == pytest.approx(brute_force(*restated, [1]), abs=1e-12)
        odds = partial_equalized_odds_gap(**data, **options, ranks="group")
        assert odds == pytest.approx(brute_force(*restated, [1, 0]), abs=1e-12)
        found.append(abs(value - partial_equal_opportunity_gap(**data, **options)))
    # on the whole interval both are the equal opportunity gap
    assert max(found) > 0.01 if interval != (0, 1) else max(found) < 1e-12


def test_the_two_ranks_by_hand():
    """The upper halves: positives 8 and 7 of a, one of which is above 7.5, and the only positive 8 of b.

    Among the positives alone, the upper halves are {8, 7} and {8, 3}: one of two above 7.5 in both groups.
    """
    score = [8, 7, 6, 5, 4, 3, 2, 1] * 2
    label = [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1]
    options = {"sensitive_features": [*"aaaaaaaabbbbbbbb"], "interval": (0, 0.5), "threshold": 7.5}
    assert partial_equal_opportunity_gap(label, score, **options, ranks="group") == pytest.approx(0.5)
    assert partial_equal_opportunity_gap(label, score, **options) == pytest.approx(0.0)
    # negatives: {6, 5} of a and {7, 6, 5} of b, none above
    gap, table = partial_equalized_odds_gap(label, score, **options, ranks="group", return_groups=True)
    assert gap == pytest.approx(0.5)
    assert table["partial_true_positive_rate"].tolist() == pytest.approx([0.5, 1.0])
    assert table["partial_false_positive_rate"].tolist() == [0.0, 0.0]
    assert table["true_positive_rate"].tolist() == pytest.approx([0.25, 0.25])


def test_a_large_sample_of_known_gaps():
    """Scores of a group are uniform on (0, 1); the share of positives at score s is 1/2 in group a, and s in group b.

    The upper half of the ranks are the scores above 1/2. Above 3/4 are 1/2 of a's positives there, and of b's
    (1 - 9/16) / (1 - 1/4) = 7/12. Among the positives of b, the upper half are the scores above sqrt(1/2), so that
    (1 - 9/16) / (1/2) = 7/8 of them are above 3/4.
    """
    n = 20000
    score = np.tile((np.arange(n) + 0.5) / n, 2)
    # rows and not draws: in group b the positives are where the rounded sum of the shares goes up
    of_b = np.diff(np.round(np.cumsum(score[n:])), prepend=0)
    label = np.concatenate([np.arange(n) % 2, of_b]).astype(int)
    options = {"sensitive_features": np.repeat(["a", "b"], n), "interval": (0, 0.5), "threshold": 0.75}
    assert partial_equal_opportunity_gap(label, score, **options, ranks="group") == pytest.approx(1 / 12, abs=1e-3)
    assert partial_equal_opportunity_gap(label, score, **options) == pytest.approx(7 / 8 - 1 / 2, abs=1e-3)


@pytest.mark.parametrize("normalize", [True, False])
def test_no_positives_at_ranks_in_the_interval(normalize):
    """Group b has positives, but none in its upper half: the gap is not defined."""
    label, score, group = [1, 1, 0, 0, 0, 0, 1, 1], [4, 3, 2, 1] * 2, list("aaaabbbb")
    options = {"sensitive_features": group, "interval": (0, 0.5), "ranks": "group", "normalize": normalize}
    with pytest.raises(ValueError, match=r"no rows(.|\n)*y_true=0 +y_true=1(.|\n)*a +0 +2\nb +2 +0"):
        partial_equal_opportunity_gap(label, score, **options)
    for agg in ("max", "mean"):
        assert np.isnan(partial_equal_opportunity_gap(label, score, **options, on_empty="nan", agg=agg))
    assert partial_equal_opportunity_gap(label, score, sensitive_features=group, interval=(0, 0.5)) == 0.0


class TestEmptyCells:
    # Group b has no positives.
    label, score, group = (1, 0, 1, 0, 0), (3, 2, 1, 0, 4), list("aaabb")

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("normalize", [True, False])
    def test_raise_with_the_counts_or_nan(self, metric, normalize):
        options = {"sensitive_features": self.group, "normalize": normalize}
        with pytest.raises(ValueError, match=r"no rows(.|\n)*y_true=0 +y_true=1(.|\n)*a +1 +2\nb +2 +0"):
            metric(self.label, self.score, **options)
        for agg in ("max", "mean"):
            assert np.isnan(metric(self.label, self.score, on_empty="nan", agg=agg, **options))

    def test_equal_opportunity_needs_no_negatives(self):
        # above 2: a 1/2, b 1/1
        label, score, group = [1, 1, 1, 0], [3, 1, 4, 0], list("aaba")
        assert partial_equal_opportunity_gap(label, score, sensitive_features=group, threshold=2) == 0.5
        with pytest.raises(ValueError, match="no rows"):
            partial_equalized_odds_gap(label, score, sensitive_features=group)


@pytest.mark.parametrize("metric", METRICS)
def test_errors(metric):
    with pytest.raises(ValueError, match="y_true must be given"):
        metric(None, SCORE, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="alpha < beta"):
        metric(LABEL, SCORE, sensitive_features=GROUP, interval=(0.4, 0.1))
    with pytest.raises(ValueError, match="agg must be one of"):
        metric(LABEL, SCORE, sensitive_features=GROUP, agg="median")
    with pytest.raises(ValueError, match="on_empty must be one of"):
        metric(LABEL, SCORE, sensitive_features=GROUP, on_empty="ignore")
    with pytest.raises(ValueError, match=r"ranks must be one of \['group', 'group_and_label'\]; got 'label'"):
        metric(LABEL, SCORE, sensitive_features=GROUP, ranks="label")
