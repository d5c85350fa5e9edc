"""Threshold metrics against arithmetic done by hand and against Fairlearn."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import (
    equal_opportunity_gap,
    inaccuracy,
    independence_gap,
    loss_parity_gap,
    partial_equalized_odds_gap,
    rate_gap,
    separation_gap,
    sufficiency_gap,
)

GAPS = [independence_gap, separation_gap, equal_opportunity_gap, sufficiency_gap]

# Group a: selection 2/4, fpr 1/2, tpr 1/2, P(y|0) = 1/2, P(y|1) = 1/2, 2 of 4 wrong.
# Group b: selection 4/5, fpr 2/3, tpr 2/2, P(y|0) = 0/1, P(y|1) = 2/4, 2 of 5 wrong.
GROUP = list("aaaabbbbb")
Y_TRUE = np.array([1, 1, 0, 0, 1, 1, 0, 0, 0])
Y_PRED = np.array([1, 0, 1, 0, 1, 1, 1, 1, 0])


@pytest.fixture
def random_labels():
    rng = np.random.default_rng(0)
    n_samples = 600
    return {
        "y_true": rng.integers(0, 2, n_samples),
        "y_pred": rng.integers(0, 2, n_samples),
        "sensitive_features": rng.choice(["a", "b", "c", "d"], n_samples),
        "sample_weight": rng.uniform(0.1, 3.0, n_samples),
    }


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (independence_gap, 0.3),  # |2/4 - 4/5|
        (separation_gap, 0.5),  # max(|1/2 - 2/3|, |1/2 - 1|)
        (equal_opportunity_gap, 0.5),  # |1/2 - 1|
        (sufficiency_gap, 0.5),  # |1/2 - 0| + |1/2 - 1/2|
        (inaccuracy, 4 / 9),
    ],
)
def test_two_groups_by_hand(metric, expected):
    assert metric(Y_TRUE, Y_PRED, sensitive_features=GROUP) == pytest.approx(expected)


def test_separation_as_the_sum_of_the_two_differences():
    # |1/2 - 2/3| + |1/2 - 1|
    gap = separation_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, agg_labels="sum")
    assert gap == pytest.approx(2 / 3)


@pytest.mark.parametrize("agg", ["max", "mean"])
def test_equalized_odds_has_one_meaning(random_labels, agg):
    """The larger of the differences in both labels, by default and in every metric of that name."""
    scores = 2.0 * random_labels.pop("y_pred") - 1
    y_true, rows = random_labels.pop("y_true"), random_labels | {"agg": agg}
    gap = separation_gap(y_true, (scores > 0).astype(int), **rows)
    assert gap == pytest.approx(partial_equalized_odds_gap(y_true, scores, **rows))
    assert gap == pytest.approx(rate_gap(y_true, scores, constraint="equalized_odds", **rows))
    errors = loss_parity_gap(y_true, scores, constraint="equalized_odds", loss="absolute", **rows)  # losses of 0 and 2
    assert gap == pytest.approx(errors / 2)
    summed = separation_gap(y_true, (scores > 0).astype(int), agg_labels="sum", **rows)
    errors = loss_parity_gap(y_true, scores, constraint="equalized_odds", loss="absolute", agg_labels="sum", **rows)
    assert gap < summed == pytest.approx(errors / 2)


def test_sufficiency_adds_the_two_rates():
    # a: P(y|0) = 1/2, P(y|1) = 1/2. b, predicting one row fewer positive: P(y|0) = 0/2, P(y|1) = 2/3.
    y_pred = [1, 0, 1, 0, 1, 1, 1, 0, 0]
    assert sufficiency_gap(Y_TRUE, y_pred, sensitive_features=GROUP) == pytest.approx(1 / 2 + 1 / 6)


def test_weights_by_hand():
    # The second row of a, (y, yhat) = (1, 0), counts three times: selection of a = 2 / 6, tpr of a = 1 / 4,
    # P(y | yhat=0) of a = 3 / 4, errors of a = 4 / 6.
    weight = [1, 3, 1, 1, 1, 1, 1, 1, 1]

    def value(metric):
        return metric(Y_TRUE, Y_PRED, sensitive_features=GROUP, sample_weight=weight)

    assert value(independence_gap) == pytest.approx(4 / 5 - 1 / 3)
    assert value(equal_opportunity_gap) == pytest.approx(3 / 4)
    assert value(separation_gap) == pytest.approx(3 / 4)
    assert value(sufficiency_gap) == pytest.approx(3 / 4)
    assert value(inaccuracy) == pytest.approx(6 / 11)


def test_three_groups_take_the_worst_pair_or_the_mean_pair():
    group = [*GROUP, "c", "c"]
    y_true, y_pred = [*Y_TRUE, 1, 0], [*Y_PRED, 1, 1]
    # Selection rates 0.5, 0.8, 1.0: pairs 0.3, 0.2, 0.5.
    assert independence_gap(y_true, y_pred, sensitive_features=group) == pytest.approx(0.5)
    assert independence_gap(y_true, y_pred, sensitive_features=group, agg="mean") == pytest.approx(1 / 3)


@pytest.mark.parametrize("metric", GAPS)
def test_several_columns_become_their_combinations(metric, random_labels):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"sex": rng.choice(["f", "m"], 600), "old": rng.choice([True, False], 600)})
    joined = table["sex"] + table["old"].astype(str)
    labels = random_labels["y_true"], random_labels["y_pred"]
    assert metric(*labels, sensitive_features=table) == metric(*labels, sensitive_features=joined)


def test_tables_by_group():
    _, table = separation_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, return_groups=True)
    expected = pd.DataFrame(
        {
            "n_samples": [4, 5],
            "weight": [4.0, 5.0],
            "false_positive_rate": [1 / 2, 2 / 3],
            "true_positive_rate": [1 / 2, 1.0],
        },
        index=pd.Index(["a", "b"], name="group"),
    )
    pd.testing.assert_frame_equal(table, expected)

    _, table = sufficiency_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, return_groups=True)
    assert table["false_omission_rate"].tolist() == [0.5, 0.0]
    assert table["precision"].tolist() == [0.5, 0.5]
    _, table = independence_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, return_groups=True)
    assert table["selection_rate"].tolist() == [0.5, 0.8]
    _, table = equal_opportunity_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, return_groups=True)
    assert table["true_positive_rate"].tolist() == [0.5, 1.0]
    value, table = inaccuracy(Y_TRUE, Y_PRED, sensitive_features=GROUP, return_groups=True)
    assert value == pytest.approx(4 / 9)
    assert table["inaccuracy"].tolist() == [0.5, 0.4]


@pytest.mark.parametrize("weighted", [False, True])
def test_same_as_fairlearn(random_labels, weighted):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    if not weighted:
        del random_labels["sample_weight"]
    pairs = [
        (independence_gap(**random_labels), fairlearn.demographic_parity_difference),
        (separation_gap(**random_labels), fairlearn.equalized_odds_difference),
        (equal_opportunity_gap(**random_labels), fairlearn.equal_opportunity_difference),
    ]
    for value, theirs in pairs:
        assert value == pytest.approx(theirs(**random_labels), abs=1e-12)


def test_inaccuracy_is_one_minus_accuracy_for_any_number_of_classes():
    accuracy_score = pytest.importorskip("sklearn.metrics").accuracy_score
    rng = np.random.default_rng(2)
    y_true, y_pred = rng.choice(["x", "y", "z"], (2, 50))
    weight = rng.uniform(size=50)
    expected = 1 - accuracy_score(y_true, y_pred, sample_weight=weight)
    assert inaccuracy(y_true, y_pred, sample_weight=weight) == pytest.approx(expected)


def test_inaccuracy_without_groups_has_no_table():
    with pytest.raises(ValueError, match="needs sensitive_features"):
        inaccuracy([0, 1], [1, 1], return_groups=True)


@pytest.mark.parametrize("metric", GAPS)
def test_empty_cells_of_one_group(metric):
    with pytest.warns(FairnessWarning, match="only one group"):
        value, table = metric([1, 0, 0], [0, 0, 0], sensitive_features=["a"] * 3, return_groups=True)
    assert np.isnan(value)
    assert table.index.tolist() == ["a"]


class TestEmptyCells:
    # Group b has no positive label and no positive prediction.
    y_true = (1, 0, 1, 0, 0)
    y_pred = (1, 0, 0, 0, 0)
    group = ("a", "a", "a", "b", "b")

    @pytest.mark.parametrize(
        ("metric", "heading", "counts"),
        [
            (separation_gap, "y_true=0 +y_true=1", "a +1 +2\nb +2 +0"),
            (equal_opportunity_gap, "y_true=0 +y_true=1", "a +1 +2\nb +2 +0"),
            (sufficiency_gap, "y_pred=0 +y_pred=1", "a +2 +1\nb +2 +0"),
        ],
    )
    def test_raise_with_the_counts(self, metric, heading, counts):
        with pytest.raises(ValueError, match=rf"no rows(.|\n)*{heading}(.|\n)*{counts}"):
            metric(self.y_true, self.y_pred, sensitive_features=self.group)

    @pytest.mark.parametrize("metric", [separation_gap, equal_opportunity_gap, sufficiency_gap])
    @pytest.mark.parametrize("agg", ["max", "mean"])
    def test_nan_on_request(self, metric, agg):
        options = {"sensitive_features": self.group, "on_empty": "nan", "agg": agg}
        assert np.isnan(metric(self.y_true, self.y_pred, **options))

    def test_equal_opportunity_needs_no_negatives(self):
        # tpr: a 1/2, b 1/1
        assert equal_opportunity_gap([1, 1, 1], [1, 0, 1], sensitive_features=["a", "a", "b"]) == 0.5

    def test_rows_of_weight_zero_do_not_fill_a_cell(self):
        y_true, y_pred, group = [1, 0, 1, 0], [1, 0, 1, 0], ["a", "a", "b", "b"]
        with pytest.raises(ValueError, match=r"b +1 +0"):
            separation_gap(y_true, y_pred, sensitive_features=group, sample_weight=[1, 1, 0, 1])


@pytest.mark.parametrize(
    ("metric", "option"),
    [
        (independence_gap, {"agg": "median"}),
        (separation_gap, {"agg_labels": "mean"}),
        (separation_gap, {"on_empty": "ignore"}),
        (sufficiency_gap, {"on_empty": "ignore"}),
    ],
)
def test_unknown_options_are_named(metric, option):
    (name,) = option
    with pytest.raises(ValueError, match=f"{name} must be one of"):
        metric(Y_TRUE, Y_PRED, sensitive_features=GROUP, **option)
