"""Labels, scores, weights and groups that the metrics accept, and errors for all others."""

import numpy as np
import pandas as pd
import pytest

from fairconstrained.metrics import (
    accuracy_ratio_gap,
    demographic_parity_ratio_gap,
    equal_opportunity_gap,
    granularity,
    inaccuracy,
    independence_gap,
    statistical_parity_gap,
)

GROUP = ["a", "a", "a", "b", "b"]
Y_TRUE = np.array([1, 1, 0, 1, 0])
Y_PRED = np.array([1, 0, 0, 1, 1])


@pytest.mark.parametrize(
    "encode",
    [
        lambda y: 2 * y - 1,
        lambda y: y.astype(bool),
        lambda y: y.astype(float),
        lambda y: np.array(["no", "yes"])[y],
        lambda y: np.array(["no", "yes"], dtype=object)[y],
        lambda y: pd.Series(np.array(["no", "yes"])[y]).astype("category"),
        lambda y: pd.Series(y, dtype="Int64"),
        lambda y: (y + 1).tolist(),
        lambda y: y[:, None],
    ],
    ids=["signs", "bool", "float", "str", "object", "category", "Int64", "1/2", "column"],
)
def test_any_encoding_of_labels(encode):
    # tpr: a 1/2, b 1/1
    assert equal_opportunity_gap(encode(Y_TRUE), encode(Y_PRED), sensitive_features=GROUP) == 0.5


def test_true_and_predicted_labels_may_be_numbers_of_different_type():
    assert equal_opportunity_gap(Y_TRUE.astype(bool), Y_PRED.astype(float), sensitive_features=GROUP) == 0.5


def test_pos_label_chooses_the_class():
    # With 0 as the positive label the true positive rates are 1/1 and 0/1.
    assert equal_opportunity_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, pos_label=0) == 1.0


@pytest.mark.parametrize("low", [0, -1])
def test_constant_predictions_with_labels_of_known_meaning(low):
    for constant, rate in [(1, 1.0), (low, 0.0)]:
        _, table = independence_gap(None, [constant] * 5, sensitive_features=GROUP, return_groups=True)
        assert table["selection_rate"].tolist() == [rate, rate]


def test_constant_predictions_of_strings_need_the_true_labels_or_pos_label():
    constant = ["yes"] * 5
    truth = np.array(["no", "yes"])[Y_TRUE]
    for options in [{"y_true": truth}, {"y_true": None, "pos_label": "yes"}]:
        _, table = independence_gap(y_pred=constant, sensitive_features=GROUP, return_groups=True, **options)
        assert table["selection_rate"].tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="pass pos_label"):
        independence_gap(None, constant, sensitive_features=GROUP)


@pytest.mark.parametrize(
    ("y_true", "y_pred", "message"),
    [
        (Y_TRUE, [0.2, 0.7, 0.1, 0.9, 0.4], "y_pred holds continuous values"),
        (Y_TRUE, ["no", "yes", "no", "no", "no"], "both be numbers"),
        (Y_TRUE, [1.0, np.nan, 0.0, 0.0, 0.0], "y_pred contains NaN or missing values in 1 of 5 rows; drop these"),
        (["no", None, "no", "yes", "yes"], ["no"] * 5, "y_true contains NaN"),
        (Y_TRUE, [1, 0, 0], "inconsistent numbers of samples"),
        ([], [], "at least one row"),
    ],
)
def test_labels_that_are_refused(y_true, y_pred, message):
    with pytest.raises(ValueError, match=message):
        independence_gap(y_true, y_pred, sensitive_features=GROUP)


@pytest.mark.parametrize("metric", [independence_gap, equal_opportunity_gap, accuracy_ratio_gap])
@pytest.mark.parametrize("other", [Y_TRUE + 1, 2 * Y_TRUE - 1], ids=["1/2", "signs"])
def test_labels_in_two_encodings(metric, other):
    with pytest.raises(ValueError, match=r"y_true holds the labels .* and y_pred \[0, 1\]; write both in the same two"):
        metric(other, Y_PRED, sensitive_features=GROUP)
    with pytest.raises(ValueError, match="write both in the same two labels"):
        inaccuracy(other, Y_PRED)
    chosen = equal_opportunity_gap(other, Y_PRED, sensitive_features=GROUP, pos_label=1)
    assert chosen == equal_opportunity_gap(other == 1, Y_PRED == 1, sensitive_features=GROUP)


@pytest.mark.parametrize("metric", [independence_gap, demographic_parity_ratio_gap])
def test_missing_predictions_are_not_blamed_on_the_labels(metric):
    with pytest.raises(ValueError, match=r"^y_pred contains NaN"):
        metric(None, pd.array([1, 0, pd.NA, 1, 0], dtype="Int64"), sensitive_features=GROUP)


def test_one_positive_label_of_three_is_told_from_the_others():
    y_true, y_pred = np.array([0, 1, 2, 1, 0]), np.array([1, 2, 2, 1, 0])
    value = independence_gap(y_true, y_pred, sensitive_features=GROUP, pos_label=2)
    assert value == independence_gap(y_true == 2, y_pred == 2, sensitive_features=GROUP) > 0
    with pytest.raises(ValueError, match=r"pos_label=3 is not among the labels"):
        independence_gap(y_true, y_pred, sensitive_features=GROUP, pos_label=3)


def test_unknown_pos_label():
    with pytest.raises(ValueError, match="pos_label=2 is not among the labels"):
        independence_gap(Y_TRUE, Y_PRED, sensitive_features=GROUP, pos_label=2)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 1, -1, 1, 1], "must not be negative"),
        ([1, 1, np.nan, 1, 1], "sample_weight contains NaN"),
        ([1, 1, 1], r"must have shape \(5,\)"),
        ([1, 1, 1, 0, 0], r"sums to zero in a group(.|\n)*b +2 +0"),
    ],
)
def test_weights_that_are_refused(weight, message):
    for metric in (independence_gap, statistical_parity_gap, inaccuracy):
        with pytest.raises(ValueError, match=message):
            metric(Y_TRUE, Y_PRED, sensitive_features=GROUP, sample_weight=weight)


@pytest.mark.parametrize(
    ("y_score", "message"),
    [
        (np.ones((5, 2)), "one score per row"),
        ([1, 2, np.nan, 3, 4], "y_score contains NaN"),
        ([1, 2, np.inf, 3, 4], "y_score contains infinity"),
        ([1, 2, 3], "inconsistent numbers of samples"),
    ],
)
def test_scores_that_are_refused(y_score, message):
    with pytest.raises(ValueError, match=message):
        statistical_parity_gap(Y_TRUE, y_score, sensitive_features=GROUP)


def test_scores_may_be_one_column():
    score = np.array([3.0, 1.0, 0.0, 2.0, 2.0])
    expected = statistical_parity_gap(None, score, sensitive_features=GROUP)
    assert statistical_parity_gap(None, score[:, None], sensitive_features=GROUP) == expected > 0


@pytest.mark.parametrize("metric", [independence_gap, statistical_parity_gap])
def test_groups_of_another_length(metric):
    with pytest.raises(ValueError, match="sensitive_features has 2 rows in place of 5"):
        metric(Y_TRUE, Y_PRED, sensitive_features=["a", "b"])


def test_missing_group():
    with pytest.raises(ValueError, match="missing values in 1 rows"):
        granularity(["a", None, "b"])
