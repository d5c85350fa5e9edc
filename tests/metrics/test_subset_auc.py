"""The AUC gap of any four sets: by hand, against scikit-learn and the named gaps, and as a scorer."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV

from fairconstrained.metrics import bpsn_bnsp_gap, group_auc_gap, inter_group_auc_gap, subset_auc_gap
from fairconstrained.model_selection import make_fairness_scorer

SCORE = np.array([5, 4, 3, 3, 2, 1])
MASKS = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 1, 0, 0, 1], [0, 1, 0, 1, 1, 0]], dtype=bool)


def cross_auc(positive, groups):
    a = groups == "a"
    return a & positive, ~a & ~positive, ~a & positive, a & ~positive


def draw(seed, n=80, decimals=1):
    rng = np.random.default_rng(seed)
    score, label = rng.normal(size=n).round(decimals), rng.integers(0, 2, n)
    return label, score, np.array(["a", "b"])[rng.integers(0, 2, n)], rng.uniform(0.1, 3, n)


def test_by_hand():
    # {5, 4} above {3, 3}: all; {3, 1} above {4, 3, 2}: (0.5 + 1) of 6
    assert subset_auc_gap(None, SCORE, subsets=MASKS) == pytest.approx(1 - 1.5 / 6)
    # 3 twice as often as 1: (0.5 + 1) * 2 of 9
    assert subset_auc_gap(None, SCORE, subsets=MASKS, sample_weight=[1, 1, 2, 1, 1, 1]) == pytest.approx(1 - 3 / 9)
    assert subset_auc_gap(None, SCORE, subsets=[pd.Series(mask) for mask in MASKS]) == pytest.approx(0.75)


@pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "tied"])
@pytest.mark.parametrize("seed", range(3))
def test_same_as_scikit_learn_for_sets_that_overlap(seed, decimals):
    label, score, _, weight = draw(seed, decimals=decimals)
    masks = np.random.default_rng(seed).uniform(size=(4, label.size)) < 0.4

    def auc(above, below):
        rows = np.concatenate([np.flatnonzero(above), np.flatnonzero(below)])
        kind = np.repeat([1, 0], [above.sum(), below.sum()])
        return roc_auc_score(kind, score[rows], sample_weight=weight[rows])

    expected = abs(auc(masks[0], masks[1]) - auc(masks[2], masks[3]))
    assert subset_auc_gap(label, score, subsets=masks, sample_weight=weight) == pytest.approx(expected)


@pytest.mark.slow
@given(
    rows=st.lists(st.tuples(st.integers(0, 15), st.integers(0, 5), st.integers(1, 3)), max_size=20),
    seed=st.integers(0, 99),
)
def test_invariances(rows, seed):
    # a row in all sets keeps them from being empty
    membership, score, weight = np.array([(15, 2, 1), *rows]).T
    masks = (membership & 2 ** np.arange(4)[:, None]) > 0
    gap = subset_auc_gap(None, score, subsets=masks, sample_weight=weight)
    assert 0 <= gap <= 1
    order = np.random.default_rng(seed).permutation(score.size)
    shuffled = subset_auc_gap(None, score[order], subsets=masks[:, order], sample_weight=weight[order])
    assert shuffled == pytest.approx(gap, abs=1e-12)
    repeated = subset_auc_gap(None, np.repeat(score, weight), subsets=np.repeat(masks, weight, axis=1))
    assert repeated == pytest.approx(gap, abs=1e-12)
    assert subset_auc_gap(None, score, subsets=masks[[2, 3, 0, 1]], sample_weight=weight) == pytest.approx(gap)
    # both AUCs become their complements
    assert subset_auc_gap(None, score, subsets=masks[[1, 0, 3, 2]], sample_weight=weight) == pytest.approx(gap)
    assert subset_auc_gap(None, -score, subsets=masks, sample_weight=weight) == pytest.approx(gap)
    assert subset_auc_gap(None, np.full(score.size, 0.3), subsets=masks, sample_weight=weight) == 0.0


class TestCallable:
    def test_is_the_named_gap_of_the_same_sets(self):
        label, score, group, weight = draw(0)
        options = {"sensitive_features": group, "sample_weight": weight}
        value = subset_auc_gap(label, score, subsets=cross_auc, **options)
        assert value == pytest.approx(inter_group_auc_gap(label, score, **options))
        value = subset_auc_gap(label, score, subsets=lambda y, g: (y, (g == "b") & ~y, (g == "b") & y, ~y), **options)
        assert value == pytest.approx(bpsn_bnsp_gap(label, score, protected="b", **options))

        def one_group(positive, groups):
            every = np.ones(positive.size, dtype=bool)
            return groups == "a", groups == "b", every, every

        assert subset_auc_gap(label, score, subsets=one_group, **options) == pytest.approx(
            group_auc_gap(None, score, **options)
        )

    def test_any_labels(self):
        label, score, group, _ = draw(1)
        expected = subset_auc_gap(label, score, subsets=cross_auc, sensitive_features=group)
        named = np.where(label, "yes", "no")
        assert subset_auc_gap(named, score, subsets=cross_auc, sensitive_features=group) == expected
        seen = []

        def subsets(positive, groups):
            seen.append(positive)
            return cross_auc(positive, groups)

        subset_auc_gap(named, score, subsets=subsets, sensitive_features=group, pos_label="no")
        np.testing.assert_array_equal(seen, [named == "no"])

    def test_groups_of_one_column_are_its_values(self):
        label, score, _, _ = draw(2)
        age = np.arange(80) % 5
        seen = []

        def subsets(positive, groups):
            seen.append((positive, groups))
            return positive & (groups > 2), ~positive, positive & (groups <= 2), ~positive

        subset_auc_gap(label, score, subsets=subsets, sensitive_features=pd.Series(age))
        positive, groups = seen[0]
        np.testing.assert_array_equal(positive, label == 1)
        np.testing.assert_array_equal(groups, age)

    def test_groups_of_several_columns_stay_apart(self):
        label, score, group, _ = draw(3)
        features = pd.DataFrame({"sex": group, "age": np.arange(80) % 5})

        def subsets(positive, groups):
            old = (groups[:, 0] == "a") & (groups[:, 1] >= 3)
            return positive & old, ~positive, positive & ~old, ~positive

        expected = ((features["sex"] == "a") & (features["age"] >= 3)).to_numpy()
        masks = [(label == 1) & expected, label == 0, (label == 1) & ~expected, label == 0]
        assert subset_auc_gap(label, score, subsets=subsets, sensitive_features=features) == subset_auc_gap(
            None, score, subsets=masks
        )

    def test_without_sensitive_features(self):
        def halves(positive, groups):
            assert groups is None
            first = np.arange(positive.size) < 40
            return first & positive, ~positive, ~first & positive, ~positive

        label, score, _, _ = draw(4)
        assert 0 < subset_auc_gap(label, score, subsets=halves) < 1

    def test_scores_every_fold_of_a_search(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        group = np.array(["a", "b"])[(X[:, 0] > 0).astype(int)]
        y = np.where(X.sum(axis=1) + rng.normal(size=300) > 0, "yes", "no")
        scorer = make_fairness_scorer(subset_auc_gap, subsets=cross_auc)
        assert scorer.response == "decision_function"
        assert "subset_auc_gap" in repr(scorer)
        with sklearn.config_context(enable_metadata_routing=True):
            search = GridSearchCV(LogisticRegression(), {"C": [0.01, 1.0]}, scoring=scorer, cv=3)
            search.fit(X, y, sensitive_features=group)
        assert np.all(search.cv_results_["mean_test_score"] < 0)
        # the metric sees the whole data as it sees a fold
        expected = inter_group_auc_gap(y, search.decision_function(X), sensitive_features=group)
        assert scorer(search.best_estimator_, X, y, sensitive_features=group) == pytest.approx(-expected)


class TestErrors:
    @pytest.mark.parametrize(("place", "name"), list(enumerate(["G1", "G1'", "G2", "G2'"])))
    def test_an_empty_subset_is_named_with_all_counts(self, place, name):
        masks = MASKS.copy()
        masks[place] = False
        counts = [2, 2, 2, 3]
        counts[place] = 0
        listed = ", ".join(f"{n} {c}" for n, c in zip(["G1", "G1'", "G2", "G2'"], counts, strict=True))
        with pytest.raises(ValueError, match=rf"subset {name} has no rows .* Rows per subset: {listed}\."):
            subset_auc_gap(None, SCORE, subsets=masks)
        assert np.isnan(subset_auc_gap(None, SCORE, subsets=masks, on_empty="nan"))

    def test_rows_without_weight_are_not_there(self):
        with pytest.raises(ValueError, match=r"subset G1 has no rows .* G1 0, G1' 2, G2 2, G2' 2\."):
            subset_auc_gap(None, SCORE, subsets=MASKS, sample_weight=[0, 0, 1, 1, 1, 1])
        with pytest.raises(ValueError, match="sums to zero"):
            subset_auc_gap(None, SCORE, subsets=MASKS, sample_weight=np.zeros(6))

    def test_a_label_that_does_not_occur(self):
        with pytest.raises(ValueError, match="subset G1 and G2 has no rows"):
            subset_auc_gap([0] * 6, SCORE, subsets=cross_auc, sensitive_features=list("aaabbb"))

    @pytest.mark.parametrize(
        ("masks", "message"),
        [
            (MASKS[:3], r"four boolean masks of shape \(6,\).* got 3 of shapes"),
            (MASKS[:, :5], r"got 4 of shapes \[\(5,\)"),
            (MASKS.astype(int), r"and types \['int64'"),
            (SCORE, r"got 6 of shapes \[\(\)"),
        ],
    )
    def test_what_is_no_mask(self, masks, message):
        with pytest.raises(ValueError, match=message):
            subset_auc_gap(None, SCORE, subsets=masks)
        with pytest.raises(ValueError, match=message):
            subset_auc_gap([0, 1, 0, 1, 0, 1], SCORE, subsets=lambda positive, groups: masks)

    def test_a_callable_needs_labels(self):
        with pytest.raises(ValueError, match="y_true must be given"):
            subset_auc_gap(None, SCORE, subsets=cross_auc, sensitive_features=list("aaabbb"))
        with pytest.raises(ValueError, match="on_empty must be one of"):
            subset_auc_gap(None, SCORE, subsets=MASKS, on_empty="ignore")
