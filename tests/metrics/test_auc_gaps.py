"""The AUC gaps of named sets against arithmetic done by hand, scikit-learn and each other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import (
    bpsn_bnsp_gap,
    group_auc_gap,
    inter_group_auc_gap,
    intra_group_auc_gap,
    negative_equality_gap,
    partial_group_auc_gap,
    positive_equality_gap,
)
from fairconstrained.metrics.auc_gaps import centred_aucs, difference_aucs
from fairconstrained.metrics.auc_sets import AUC_METRICS, auc_differences

METRICS = {
    "group_auc": group_auc_gap,
    "inter_group": inter_group_auc_gap,
    "intra_group": intra_group_auc_gap,
    "positive_equality": positive_equality_gap,
    "negative_equality": negative_equality_gap,
    "bpsn_bnsp": bpsn_bnsp_gap,
}
BY_LABEL = [metric for name, metric in METRICS.items() if AUC_METRICS[name].by_label]
OF_PAIRS = {"group_auc", "inter_group", "intra_group"}

# the four sets as the paper writes them, for the group a and the other one b; P and N are positive and negative
PAPER = {
    "group_auc": lambda a, b, P, N: (a, b, a | b, a | b),
    "inter_group": lambda a, b, P, N: (a & P, b & N, b & P, a & N),
    "intra_group": lambda a, b, P, N: (a & P, a & N, b & P, b & N),
    "positive_equality": lambda a, b, P, N: (a & P, P, P | N, P | N),
    "negative_equality": lambda a, b, P, N: (a & N, N, P | N, P | N),
    "bpsn_bnsp": lambda a, b, P, N: (P, a & N, a & P, N),
}

# a+ {8, 6}, a- {7, 2}; b+ {6, 3}, b- {4, 1}
SCORE, LABEL, GROUP = [8, 6, 7, 2, 6, 3, 4, 1], [1, 1, 0, 0, 1, 1, 0, 0], list("aaaabbbb")


def auc(score, weight, above, below):
    """scikit-learn's AUC, for sets that may overlap: a row of both counts in both."""
    first, second = np.flatnonzero(above), np.flatnonzero(below)
    rows = np.concatenate([first, second])
    return roc_auc_score(np.repeat([1, 0], [first.size, second.size]), score[rows], sample_weight=weight[rows])


def expected_gap(name, label, score, group, weight, one):
    """Gap of one group or value of ``group`` against all other rows."""
    a, positive = group == one, label == 1
    sets = PAPER[name](a, ~a, positive, ~positive)
    return abs(auc(score, weight, *sets[:2]) - auc(score, weight, *sets[2:]))


def draw(seed, sizes, decimals=8):
    rng = np.random.default_rng(seed)
    group = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    score = (rng.normal(size=group.size) * (1 + 0.3 * group) + 0.4 * group).round(decimals)
    return rng.integers(0, 2, group.size), score, group, rng.uniform(0.1, 3, group.size)


def test_the_names_are_all_there_are():
    assert set(METRICS) == set(PAPER) == set(AUC_METRICS)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 8: 4 of b; 6: 3.5; 7: 4; 2: 1, of 16
        ("group_auc", 12.5 / 16 - 1 / 2),
        # a+ above b-: all; b+ above a-: 6 and 3 above 2 only
        ("inter_group", 1 - 2 / 4),
        # a: 2 + 1 of 4; b: 2 + 1 of 4
        ("intra_group", 0.0),
        # a+ {8, 6} against {8, 6, 6, 3}: 3.5 + 2 of 8
        ("positive_equality", 5.5 / 8 - 1 / 2),
        # a- {7, 2} against {7, 2, 4, 1}: 3.5 + 1.5 of 8
        ("negative_equality", 5 / 8 - 1 / 2),
        # a: {8, 6, 6, 3} above {7, 2}: 5 of 8; {8, 6} above {7, 2, 4, 1}: 7 of 8
        # b: {8, 6, 6, 3} above {4, 1}: 7 of 8; {6, 3} above {7, 2, 4, 1}: 3 + 2 of 8
        ("bpsn_bnsp", 2 / 8),
    ],
)
def test_by_hand(name, expected):
    assert METRICS[name](LABEL, SCORE, sensitive_features=GROUP) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("decimals", [8, 1, 0], ids=["distinct", "tied", "coarse"])
@pytest.mark.parametrize("weighted", [False, True])
def test_protected_is_scikit_learn_on_the_sets_of_the_paper(name, decimals, weighted):
    label, score, group, weight = draw(1, (40, 30, 50), decimals)
    options = {"sample_weight": weight} if weighted else {}
    weight = weight if weighted else np.ones(group.size)
    for one in range(3):
        value = METRICS[name](label, score, sensitive_features=group, protected=one, **options)
        assert value == pytest.approx(expected_gap(name, label, score, group, weight, one), abs=1e-12)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "tied"])
def test_without_protected_all_pairs_or_all_groups_count(name, decimals):
    label, score, group, weight = draw(2, (40, 30, 50), decimals)
    if name in OF_PAIRS:
        pairs = [np.isin(group, pair) for pair in [(0, 1), (0, 2), (1, 2)]]
        gaps = [
            expected_gap(name, label[rows], score[rows], group[rows], weight[rows], group[rows].min()) for rows in pairs
        ]
    else:
        gaps = [expected_gap(name, label, score, group, weight, one) for one in range(3)]
    options = {"sensitive_features": group, "sample_weight": weight}
    assert METRICS[name](label, score, **options) == pytest.approx(max(gaps))
    assert METRICS[name](label, score, agg="mean", **options) == pytest.approx(np.mean(gaps))


@pytest.mark.parametrize("name", METRICS)
def test_protected_is_the_difference_that_a_constraint_bounds(name):
    label, score, group, weight = draw(3, (25, 35, 20), decimals=1)
    cells = group + 3 * (label == 0)
    for one in range(3):
        _, differences = auc_differences(name, 3, one)
        ((first, second),) = difference_aucs(score, cells, weight, 6, differences)
        value = METRICS[name](label, score, sensitive_features=group, sample_weight=weight, protected=one)
        assert value == pytest.approx(abs(first - second), abs=1e-14)


@pytest.mark.parametrize("name", METRICS)
def test_of_two_groups_either_is_the_protected_one(name):
    label, score, group, weight = draw(4, (30, 25), decimals=1)
    options = {"sensitive_features": np.array(["x", "y"])[group], "sample_weight": weight}
    gaps = [METRICS[name](label, score, protected=one, **options) for one in "xy"]
    assert METRICS[name](label, score, **options) == pytest.approx(max(gaps))
    if name in OF_PAIRS:
        assert gaps[0] == pytest.approx(gaps[1])


@pytest.mark.parametrize("name", METRICS)
def test_invariances_with_a_protected_group(name):
    metric = METRICS[name]
    label, score, group, _ = draw(5, (20, 25, 15), decimals=1)
    weight = np.random.default_rng(0).integers(0, 4, group.size)
    value = metric(label, score, sensitive_features=group, sample_weight=weight, protected=1)
    repeated = [np.repeat(column, weight) for column in (label, score, group)]
    assert metric(repeated[0], repeated[1], sensitive_features=repeated[2], protected=1) == pytest.approx(value)
    order = np.random.default_rng(1).permutation(group.size)
    shuffled = metric(
        label[order], score[order], sensitive_features=group[order], sample_weight=weight[order], protected=1
    )
    assert shuffled == pytest.approx(value)
    # sorted differently, and how the others are divided does not matter
    renamed = np.array(["z", "m", "a"])[group]
    assert metric(label, score, sensitive_features=renamed, sample_weight=weight, protected="m") == pytest.approx(value)
    merged = np.where(group == 1, "m", "other")
    assert metric(label, score, sensitive_features=merged, sample_weight=weight, protected="m") == pytest.approx(value)
    stretched = metric(label, np.exp(score), sensitive_features=group, sample_weight=weight, protected=1)
    assert stretched == pytest.approx(value)


def test_group_auc_is_the_partial_one_on_everything():
    label, score, group, weight = draw(6, (20, 30, 25), decimals=1)
    options = {"sensitive_features": group, "sample_weight": weight, "return_groups": True}
    gap, table = group_auc_gap(None, score, **options)
    expected, expected_table = partial_group_auc_gap(None, score, **options)
    assert gap == pytest.approx(expected)
    pd.testing.assert_frame_equal(table, expected_table)
    assert group_auc_gap(label, score, **options)[0] == gap


@pytest.mark.parametrize(("metric", "kind"), [(positive_equality_gap, 1), (negative_equality_gap, 0)])
def test_equality_gaps_are_the_group_gap_within_a_label_times_the_share_of_the_others(metric, kind):
    label, score, group, weight = draw(7, (20, 30, 25), decimals=1)
    rows = label == kind
    within = group_auc_gap(None, score[rows], sensitive_features=group[rows], sample_weight=weight[rows], protected=2)
    others = np.average(group[rows] != 2, weights=weight[rows])
    value = metric(label, score, sensitive_features=group, sample_weight=weight, protected=2)
    assert value == pytest.approx(others * within)


class TestTables:
    @pytest.mark.parametrize(
        ("name", "columns"),
        [
            ("group_auc", {"against": ["b", "a"], "auc": [12.5 / 16, 3.5 / 16]}),
            ("inter_group", {"against": ["b", "a"], "auc": [1.0, 0.5], "reverse_auc": [0.5, 1.0]}),
            ("intra_group", {"auc": [0.75, 0.75]}),
            ("positive_equality", {"auc": [5.5 / 8, 2.5 / 8]}),
            ("negative_equality", {"auc": [5 / 8, 3 / 8]}),
            ("bpsn_bnsp", {"bpsn_auc": [5 / 8, 7 / 8], "bnsp_auc": [7 / 8, 5 / 8]}),
        ],
    )
    def test_by_hand(self, name, columns):
        expected = pd.DataFrame(
            {"n_samples": [4, 4], "weight": [4.0, 4.0], **columns}, index=pd.Index(["a", "b"], name="group")
        )
        _, table = METRICS[name](LABEL, SCORE, sensitive_features=GROUP, return_groups=True)
        pd.testing.assert_frame_equal(table, expected)
        # with two groups the table is the same whichever is protected, but for the order
        _, table = METRICS[name](LABEL, SCORE, sensitive_features=GROUP, protected="b", return_groups=True)
        pd.testing.assert_frame_equal(table, expected.loc[["b", "a"]])

    @pytest.mark.parametrize("name", METRICS)
    def test_protected_against_many(self, name):
        label, score, group, weight = draw(8, (20, 30, 25))
        names = np.array(["a", "b", "c"])[group]
        options = {"sample_weight": weight, "return_groups": True}
        gap, table = METRICS[name](label, score, sensitive_features=names, protected="b", **options)
        assert table.index.tolist() == ["b", "not b"]
        assert table["n_samples"].tolist() == [30, 45]
        merged = np.where(names == "b", "b", "c")
        other_gap, other = METRICS[name](label, score, sensitive_features=merged, protected="b", **options)
        assert gap == other_gap
        numbers = table.columns.drop("against", errors="ignore")
        np.testing.assert_allclose(table[numbers], other[numbers])

    def test_the_worst_pair_of_many(self):
        label, score, group, weight = draw(9, (20, 30, 25, 40))
        gap, table = inter_group_auc_gap(
            label, score, sensitive_features=group, sample_weight=weight, return_groups=True
        )
        assert (table["auc"] - table["reverse_auc"]).abs().max() == pytest.approx(gap)
        for one, row in table.iterrows():
            above, below = (group == one) & (label == 1), (group == row["against"]) & (label == 0)
            assert row["auc"] == pytest.approx(auc(score, weight, above, below))

    @pytest.mark.parametrize("name", METRICS)
    def test_a_single_group_has_nobody_to_be_compared_with(self, name):
        with pytest.warns(FairnessWarning, match="only one group"):
            gap, table = METRICS[name](LABEL, SCORE, sensitive_features=["a"] * 8, return_groups=True)
        assert np.isnan(gap)
        assert table["n_samples"].tolist() == [8]
        assert np.isnan(table.iloc[:, -1]).all()
        with pytest.warns(FairnessWarning, match="only one group"):
            assert np.isnan(METRICS[name](LABEL, SCORE, sensitive_features=["a"] * 8, protected="a"))


def test_several_columns_are_protected_by_a_tuple():
    label, score, group, weight = draw(10, (30, 30))
    features = pd.DataFrame({"sex": np.where(group, "f", "m"), "old": np.arange(60) % 3 == 0})
    one = (features["sex"] == "f") & features["old"]
    value = inter_group_auc_gap(label, score, sensitive_features=features, sample_weight=weight, protected=("f", True))
    assert value == inter_group_auc_gap(label, score, sensitive_features=one, sample_weight=weight)


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("protected", [None, 1])
def test_a_constant_score_is_fair_to_the_last_bit(name, protected):
    label, _, group, weight = draw(11, (7, 9, 12, 8))
    options = {"sensitive_features": group, "sample_weight": weight, "protected": protected}
    assert METRICS[name](label, np.full(group.size, 0.3), **options) == 0.0


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_an_unknown_protected_group(metric):
    with pytest.raises(ValueError, match=r"protected must be one of the groups \['a', 'b'\] or None, got 'c'\."):
        metric(LABEL, SCORE, sensitive_features=GROUP, protected="c")


@pytest.mark.parametrize("metric", BY_LABEL)
def test_errors(metric):
    with pytest.raises(ValueError, match="y_true must be given"):
        metric(None, SCORE, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="y_true must hold two labels; got 3"):
        metric([0, 1, 2, 0, 1, 2, 0, 1], SCORE, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="on_empty must be one of"):
        metric(LABEL, SCORE, sensitive_features=GROUP, on_empty="ignore")
    with pytest.raises(ValueError, match="agg must be one of"):
        metric(LABEL, SCORE, sensitive_features=GROUP, agg="median")


class TestEmptySets:
    # b has no positives, c no negatives
    label, score, group = [1, 0, 1, 0, 0, 0, 1], [3, 2, 1, 0, 4, 5, 6], list("aaabbbc")

    @pytest.mark.parametrize("metric", BY_LABEL)
    def test_counts_are_printed(self, metric):
        with pytest.raises(ValueError, match=r"no rows(.|\n)*y_true=0 +y_true=1(.|\n)*a +1 +2\nb +3 +0\nc +0 +1"):
            metric(self.label, self.score, sensitive_features=self.group)
        assert np.isnan(metric(self.label, self.score, sensitive_features=self.group, on_empty="nan"))

    def test_only_the_sets_that_are_compared_have_to_have_rows(self):
        options = {"sensitive_features": self.group, "protected": "a"}
        # all positives {3, 1, 6}; negatives of the others {0, 4, 5}
        assert positive_equality_gap(self.label, self.score, **options) == pytest.approx(abs(2 / 6 - 1 / 2))
        # a+ {3, 1} against the negatives of the others: 1 + 1 of 6; positives of the others {6} against a- {2}
        assert inter_group_auc_gap(self.label, self.score, **options) == pytest.approx(1 - 2 / 6)
        assert negative_equality_gap(
            self.label, self.score, sensitive_features=self.group, protected="b"
        ) == pytest.approx(abs((0.5 + 2.5 + 3.5) / 12 - 1 / 2))  # {0, 4, 5} against {2, 0, 4, 5}
        with pytest.raises(ValueError, match=r"b +3 +0\nnot b +1 +3"):
            bpsn_bnsp_gap(self.label, self.score, sensitive_features=self.group, protected="b")

    def test_rows_without_weight_are_not_there(self):
        options = {"sensitive_features": GROUP, "protected": "a", "sample_weight": [0, 0, 1, 1, 1, 1, 1, 1]}
        with pytest.raises(ValueError, match=r"a +2 +0\nb +2 +2"):
            positive_equality_gap(LABEL, SCORE, **options)
        assert negative_equality_gap(LABEL, SCORE, **options) == pytest.approx(1 / 8)
        value, table = positive_equality_gap(LABEL, SCORE, on_empty="nan", return_groups=True, **options)
        assert np.isnan(value)
        assert np.isnan(table.loc["a", "auc"])
        assert table.loc["b", "auc"] == 0.5

    def test_no_labels_at_all(self):
        with pytest.raises(ValueError, match="no rows"):
            positive_equality_gap([0] * 8, SCORE, sensitive_features=GROUP)
        assert negative_equality_gap([0] * 8, SCORE, sensitive_features=GROUP) == pytest.approx(
            group_auc_gap(None, SCORE, sensitive_features=GROUP) / 2
        )


def test_many_rows_and_groups_need_one_sort(monkeypatch):
    from fairconstrained.metrics import cell_aucs

    calls = []
    original = cell_aucs.pair_aucs
    monkeypatch.setattr(cell_aucs, "pair_aucs", lambda *arguments: calls.append(1) or original(*arguments))
    rng = np.random.default_rng(0)
    group, label = rng.integers(0, 12, 20_000), rng.integers(0, 2, 20_000)
    for metric in METRICS.values():
        metric(label, rng.normal(size=20_000), sensitive_features=group, return_groups=True)
    assert len(calls) == len(METRICS)


@pytest.mark.parametrize("levels", [1, 4, 1000])
def test_few_cells_have_the_aucs_of_many(monkeypatch, levels):
    rng = np.random.default_rng(levels)
    scores, cells = rng.integers(levels, size=120) / 7, rng.integers(4, size=120)
    weights = rng.random(120) * np.array([1e-9, 1.0, 1e3, 1.0])[cells]
    found, mass = centred_aucs(scores, cells, weights, 4)
    monkeypatch.setattr("fairconstrained.metrics.cell_aucs.FEW_GROUPS", 0)
    expected, expected_mass = centred_aucs(scores, cells, weights, 4)
    assert found == pytest.approx(expected, abs=1e-12)
    assert (mass == expected_mass).all()
    assert (found == -found.T).all()
    assert levels > 1 or not found.any()
