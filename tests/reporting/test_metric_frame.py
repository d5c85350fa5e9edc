"""Numbers of a report against those of Fairlearn and scikit-learn."""

import sys

import numpy as np
import pandas as pd
import pytest

from fairconstrained.reporting import fairness_report


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scored", [False, True])
def test_numbers_agree(rows, weighted, scored):
    pytest.importorskip("fairlearn")
    y_true, scores, groups = rows
    y_true = np.where(groups == "b", 0, y_true)  # no positives in b, where nothing but NaN will do
    report = fairness_report(
        y_true,
        scores if scored else None,
        y_pred=None if scored else (scores > 0).astype(int),
        sensitive_features=groups,
        sample_weight=np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else None,
        n_resamples=0,
    )
    frame = report.to_metric_frame()
    table = report.table.drop(columns="share")
    assert set(frame.by_group.columns) == set(table.columns)
    pd.testing.assert_frame_equal(
        frame.by_group[table.columns].astype(float), table.iloc[:-1].astype(float), check_names=False
    )
    pd.testing.assert_series_equal(
        frame.overall[table.columns].astype(float), table.iloc[-1].astype(float), check_names=False
    )
    assert frame.difference()["positive_rate"] == pytest.approx(report.gaps.loc["independence_gap", "value"])


def test_several_columns(rows):
    pytest.importorskip("fairlearn")
    y_true, scores, groups = rows
    table = pd.DataFrame({"sex": groups, "age": np.arange(600) % 2})
    report = fairness_report(y_true, scores, sensitive_features=table, n_resamples=0)
    by_group = report.to_metric_frame().by_group
    assert by_group.index.names == ["sex", "age"]
    for label in report.table.index[:-1]:
        assert by_group.loc[label, "accuracy"] == report.table["accuracy"].loc[[label]].item()


def test_missing_fairlearn_says_how_to_install_it(monkeypatch, report):
    monkeypatch.setitem(sys.modules, "fairlearn.metrics", None)
    with pytest.raises(ImportError, match=r"needs Fairlearn.*pip install fairlearn"):
        report.to_metric_frame()


def test_rows_without_weight_are_not_there(rows):
    pytest.importorskip("fairlearn")
    y_true, scores, groups = rows
    weights = np.where((groups == "b") & (y_true == 1), 0.0, 1.0)  # no positives in b that count
    report = fairness_report(y_true, scores, sensitive_features=groups, sample_weight=weights, n_resamples=0)
    by_group = report.to_metric_frame().by_group
    for name in ("auc", "true_positive_rate"):
        assert np.isnan(by_group.loc["b", name])
        assert np.isnan(report.table.loc["b", name])
        assert by_group.loc["a", name] == pytest.approx(report.table.loc["a", name])
