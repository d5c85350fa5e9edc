"""Metrics of several classes: the largest gap of a class against all others."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import log_loss

from fairconstrained import metrics
from fairconstrained.metrics.classes import class_log_loss, class_margins
from fairconstrained.metrics.registry import METRICS

TRUE = np.array(["low", "low", "mid", "high", "low", "mid", "mid", "high"])
PREDICTED = np.array(["low", "mid", "mid", "high", "low", "low", "mid", "low"])
GROUP = np.array(["a"] * 4 + ["b"] * 4)
#: Those that take any number of labels in their own way.
OWN_WAY = {"inaccuracy", "loss_parity_gap"}


@pytest.fixture(scope="module")
def drawn():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 400)
    scores = rng.normal(size=(400, 4)) + 1.5 * (y[:, None] == np.arange(4))
    return y, scores, rng.integers(0, 3, 400), rng.uniform(0.5, 2, 400)


def test_by_hand():
    # high: 1 of 4 and 0 of 4; low: 1 and 3 of 4; mid: 2 and 1 of 4
    assert metrics.independence_gap(TRUE, PREDICTED, sensitive_features=GROUP) == 0.5
    # of a, low 1 of 2, mid 1 of 1, high 1 of 1; of b, low 1 of 1, mid 1 of 2, high 0 of 1
    assert metrics.equal_opportunity_gap(TRUE, PREDICTED, sensitive_features=GROUP) == 1.0
    # rows that are not low: none of 2 is called low in a, 2 of 3 in b
    _, table = metrics.separation_gap(TRUE, PREDICTED, sensitive_features=GROUP, return_groups=True)
    assert table.loc[("low", "b"), "false_positive_rate"] == pytest.approx(2 / 3)
    assert table.loc[("low", "a"), "false_positive_rate"] == 0.0
    assert table.index.names == ["class", "group"]


def test_margins_are_positive_where_a_class_is_predicted_also_for_ties():
    scores = np.array([[1.0, 3.0, 2.0], [0.0, 0.0, -1.0], [2.0, 2.0, 2.0]])
    margins = class_margins(scores)
    np.testing.assert_array_equal((margins > 0).argmax(axis=1), scores.argmax(axis=1))
    assert ((margins > 0).sum(axis=1) == 1).all()
    np.testing.assert_array_equal(margins[0], [-2.0, 1.0, -1.0])
    np.testing.assert_array_equal(scores, [[1.0, 3.0, 2.0], [0.0, 0.0, -1.0], [2.0, 2.0, 2.0]])  # as they were


def _several(info, y, scores):
    """The second argument of a metric for several classes, and for every class against the others."""
    if info.response == "predict":
        predicted = scores.argmax(axis=1)
        return predicted, [predicted == k for k in range(scores.shape[1])]
    if info.response == "decision_function":
        return scores, list(class_margins(scores).T)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return shares, list(shares.T)


@pytest.mark.parametrize("name", sorted(set(METRICS) - OWN_WAY))
def test_every_gap_is_the_largest_of_the_classes(drawn, name):
    y, scores, groups, weights = drawn
    info = METRICS[name]
    whole, parts = _several(info, y, scores)
    options = {"sensitive_features": groups, "sample_weight": weights}
    expected = [info.function(y == k, part, **options) for k, part in enumerate(parts)]
    assert info.function(y, whole, **options) == pytest.approx(max(expected), rel=1e-12)
    if "return_groups" in inspect.signature(info.function).parameters:
        value, table = info.function(y, whole, return_groups=True, **options)
        assert value == pytest.approx(max(expected), rel=1e-12)
        assert table.index.get_level_values("class").unique().tolist() == [0, 1, 2, 3]
        known = info.function(y == 2, parts[2], return_groups=True, **options)[1]
        pd.testing.assert_frame_equal(table.loc[2], known)


@pytest.mark.parametrize("name", sorted(set(METRICS) - OWN_WAY))
def test_two_labels_go_to_the_metric_as_they_are(drawn, name):
    y, scores, groups, _ = drawn
    info = METRICS[name]
    _, parts = _several(info, y, scores)
    plain = info.function.__wrapped__
    assert info.function(y == 1, parts[1], sensitive_features=groups) == plain(
        y == 1, parts[1], sensitive_features=groups
    )


def test_labels_of_any_kind_and_keywords(drawn):
    y, scores, groups, _ = drawn
    names = np.array(["d", "a", "c", "b"])[y]
    order = np.argsort(["d", "a", "c", "b"])
    gap = metrics.equal_opportunity_gap(y, scores.argmax(axis=1), sensitive_features=groups)
    told = np.array(["d", "a", "c", "b"])[scores.argmax(axis=1)]
    assert metrics.equal_opportunity_gap(y_true=names, y_pred=pd.Series(told), sensitive_features=groups) == gap
    assert metrics.equal_opportunity_gap(names, told.astype(object), sensitive_features=groups) == gap
    assert metrics.equal_opportunity_gap(y.astype(float), scores.argmax(axis=1), sensitive_features=groups) == gap
    rates = metrics.rate_gap(names, scores[:, order], sensitive_features=groups, constraint="equal_opportunity")
    assert rates == pytest.approx(gap, abs=1e-12)
    assert metrics.statistical_parity_gap(None, scores, sensitive_features=groups) == (
        metrics.statistical_parity_gap(y, scores, sensitive_features=groups)
    )
    assert metrics.independence_gap(None, told, sensitive_features=groups) == (
        metrics.independence_gap(names, told, sensitive_features=groups)
    )


def test_log_losses(drawn):
    y, scores, groups, weights = drawn
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    assert class_log_loss(scores, y).mean() == pytest.approx(log_loss(y, shares))
    means = [np.average(class_log_loss(scores, y)[groups == g], weights=weights[groups == g]) for g in range(3)]
    options = {"sensitive_features": groups, "sample_weight": weights}
    assert metrics.loss_parity_gap(y, scores, **options) == pytest.approx(np.ptp(means))
    value, table = metrics.loss_parity_gap(y, scores, return_groups=True, **options)
    assert value == pytest.approx(np.ptp(table["loss"]))
    by_class, tables = metrics.loss_parity_gap(y, scores, constraint="equalized_odds", return_groups=True, **options)
    assert by_class == pytest.approx(tables.groupby(level="class")["loss_positive"].agg(np.ptp).max())
    with pytest.raises(ValueError, match="each of more than two labels: set loss='log_loss'"):
        metrics.loss_parity_gap(y, scores, loss="hinge", **options)


def test_refusals(drawn):
    y, scores, groups, _ = drawn
    with pytest.raises(ValueError, match="y_score has 4 columns, and y_true 3 labels"):
        metrics.rate_gap(np.minimum(y, 2), scores, sensitive_features=groups)
    with pytest.raises(ValueError, match="one score per row"):
        metrics.rate_gap(y == 1, scores[:, :2], sensitive_features=groups)
    with pytest.raises(ValueError, match="NaN"):
        metrics.rate_gap(y, np.where(scores > 2, np.nan, scores), sensitive_features=groups)
    with pytest.raises(ValueError, match="must hold two labels; got 4"):
        metrics.rate_gap(y, scores[:, 0], sensitive_features=groups)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        metrics.rate_gap(y[:-1], scores, sensitive_features=groups)
    with pytest.raises(ValueError, match="cell that the metric compares has no rows"):
        metrics.equal_opportunity_gap(
            TRUE, PREDICTED, sensitive_features=np.where(TRUE == "high", "a", np.repeat(["b", "c"], 4))
        )


def test_an_empty_cell_of_one_class_makes_it_nan():
    groups = np.where(TRUE == "high", "a", np.repeat(["b", "c"], 4))
    assert np.isnan(metrics.equal_opportunity_gap(TRUE, PREDICTED, sensitive_features=groups, on_empty="nan"))
