"""Reports of several classes: each of them against all others, and what needs no positive label."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss, precision_score, recall_score, roc_auc_score

from fairconstrained import RateParityClassifier, metrics
from fairconstrained.metrics.classes import class_margins
from fairconstrained.reporting import FairnessReport, fairness_report

CLASSES = ["high", "low", "mid"]


@pytest.fixture(scope="module")
def rows():
    """Labels, scores and groups of 300 rows; "high" is scored higher in b."""
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 300), rng.choice(["a", "b"], 300)
    scores = rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[y]
    scores[:, 0] += 0.7 * (groups == "b")
    return np.array(CLASSES)[y], scores, groups


def report_on(rows, **options):
    y, scores, groups = rows
    return fairness_report(y, scores, **({"sensitive_features": groups, "n_resamples": 0} | options))


def softmax(scores):
    return np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def report(rows):
    return report_on(rows)


def test_the_table_by_group_needs_no_positive_label(rows, report):
    y, scores, groups = rows
    own = groups == "b"
    assert report.table.columns.tolist() == ["n_samples", "share", "accuracy", "log_loss"]
    said = np.array(CLASSES)[scores.argmax(axis=1)]
    assert report.table.loc["b", "accuracy"] == pytest.approx(accuracy_score(y[own], said[own]))
    assert report.table.loc["b", "log_loss"] == pytest.approx(log_loss(y[own], softmax(scores)[own], labels=CLASSES))


def test_every_class_has_a_table_of_its_own(rows, report):
    y, scores, groups = rows
    said, own = np.array(CLASSES)[scores.argmax(axis=1)], groups == "b"
    assert list(report.class_tables) == CLASSES
    for k, label in enumerate(CLASSES):
        of_b = report.class_tables[label].loc["b"]
        is_label, is_said = y[own] == label, said[own] == label
        expected = {
            "base_rate": is_label.mean(),
            "positive_rate": is_said.mean(),
            "true_positive_rate": recall_score(is_label, is_said),
            "false_positive_rate": is_said[~is_label].mean(),
            "precision": precision_score(is_label, is_said),
            "auc": roc_auc_score(is_label, class_margins(scores)[own, k]),
        }
        assert of_b.to_dict() == pytest.approx(expected)


def test_gaps_are_those_of_the_metrics_and_say_which_class(rows, report):
    y, scores, groups = rows
    responses = {"decisions": np.array(CLASSES)[scores.argmax(axis=1)], "probabilities": softmax(scores)}
    for name in report.gaps.index:
        info = metrics.METRICS[name]
        said = responses.get(info.reads, scores)
        value = info.function(y, said, sensitive_features=groups, **info.report_params)
        assert report.gaps.loc[name, "value"] == pytest.approx(value), name
    assert report.gaps.loc["independence_gap", "class"] == "high"
    assert report.gaps.loc["loss_parity_gap", "class"] is None
    assert "Largest for the class “high”" in report.gaps.loc["independence_gap", "description"]


def test_intervals_hold_the_largest_gap_of_the_classes(rows):
    names = ["independence_gap", "loss_parity_gap"]
    found = report_on(rows, metrics=names, n_resamples=400).gaps
    assert (found["lower"] < found["value"]).all()
    assert (found["value"] < found["upper"]).all()
    y, scores, groups = rows
    alone = fairness_report(
        y == "high", class_margins(scores)[:, 0], sensitive_features=groups, metrics=names[:1], n_resamples=400
    )
    # the largest is nearly always that of one class
    np.testing.assert_allclose(found.loc[names[0], ["lower", "upper"]].astype(float),
                               alone.gaps.loc[names[0], ["lower", "upper"]].astype(float), atol=0.02)  # fmt: skip


def test_a_report_on_one_of_the_classes(rows):
    y, scores, groups = rows
    one = report_on(rows, pos_label="low")
    alone = fairness_report(y == "low", class_margins(scores)[:, 1], sensitive_features=groups, n_resamples=0)
    assert one.rows.labels == ("not low", "low")
    columns = ["base_rate", "positive_rate", "true_positive_rate", "precision", "accuracy", "auc"]
    np.testing.assert_array_equal(one.table[columns], alone.table[columns])
    share = softmax(scores)[:, 1]
    assert one.table.loc["overall", "log_loss"] == pytest.approx(log_loss(y == "low", share))
    # a score that speaks for the class already
    given = report_on((y, class_margins(scores)[:, 1], groups), pos_label="low")
    assert given.rows.labels == one.rows.labels
    np.testing.assert_array_equal(given.table[columns], one.table[columns])
    with pytest.raises(ValueError, match="pos_label='none' is not among"):
        report_on(rows, pos_label="none")


def test_probabilities_and_decisions(rows, report):
    y, scores, groups = rows
    of_probabilities = report_on((y, softmax(scores), groups))
    for label in CLASSES:
        np.testing.assert_allclose(of_probabilities.class_tables[label], report.class_tables[label])
    np.testing.assert_allclose(of_probabilities.gaps["value"], report.gaps["value"])
    said = np.roll(y, 1)
    decided = report_on(rows, y_pred=said)
    different = np.count_nonzero(said != np.array(CLASSES)[scores.argmax(axis=1)])
    assert f"In {different} of 300 rows the decision is not the class of the largest score." in str(decided)
    only = report_on((y, None, groups), y_pred=said)
    assert only.table.columns.tolist() == ["n_samples", "share", "accuracy"]
    assert "statistical_parity_gap" not in only.gaps.index


def test_of_an_estimator_also_with_a_class_that_no_row_has(rows):
    y, X, groups = rows
    model = RateParityClassifier(0.3).fit(X, y, sensitive_features=groups)
    kept = y != "mid"
    found = FairnessReport.from_estimator(model, X[kept], y[kept], sensitive_features=groups[kept], n_resamples=0)
    assert list(found.class_tables) == CLASSES
    assert found.class_tables["mid"]["base_rate"].tolist() == [0, 0, 0]
    assert "Class “mid”: True positive rate is not defined for a, b: no positives." in str(found)
    assert found.bounds[0].here == pytest.approx(
        metrics.independence_gap(y[kept], model.predict(X[kept]), sensitive_features=groups[kept])
    )


def test_the_page_says_which_class(report):
    page = report.to_html()
    assert "Decisions are among 3 classes: high, low, mid." in page
    assert page.count("<summary>The class “") == 3
    assert "Curves and densities show the score of one class" in page
    assert "<figure" not in page
    assert "for the class “high” against all others" in report.verdict[0]
    assert "each of them in turn is positive" in report.settings["Labels"]


def test_a_metric_frame_needs_one_positive_label(report):
    pytest.importorskip("fairlearn")
    with pytest.raises(ValueError, match="make the report with pos_label"):
        report.to_metric_frame()
