"""Intervals: rows that are alike as one row, and what comes out against the normal approximation."""

from functools import partial

import numpy as np
import pytest

from fairconstrained.certification import gap_interval
from fairconstrained.metrics import METRICS, group_auc_gap
from fairconstrained.reporting import fairness_report
from fairconstrained.reporting._condensed import Condensed, Gap
from fairconstrained.reporting._gaps import READS, options_of, report_gaps
from fairconstrained.reporting._rows import ReportRows


def condense(rows):
    return Condensed.of(rows, {reads: response(rows) for reads, response in READS.items()})


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [info.name for info in report_gaps()])
def test_few_levels_lose_nothing(rows, name, weighted):
    y_true, scores, groups = rows
    weights = np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else np.ones(600)
    decisions = (scores + np.random.default_rng(2).normal(size=600) > 0).astype(int)  # not those of the threshold
    given = ReportRows.of(
        y_true,
        np.round(scores, 1),
        y_pred=decisions,
        sensitive_features=groups,
        sample_weight=weights,
        interval=(0, 0.3),
    )
    metric, reads, options = METRICS[name].function, METRICS[name].reads, options_of(METRICS[name], given)
    drawn = np.random.default_rng(1).integers(600, size=600)
    (condensed,) = condense(given).gaps([Gap(reads, partial(metric, **options))], drawn, weights)
    exact = metric(
        y_true[drawn],
        READS[reads](given)[drawn],
        sensitive_features=groups[drawn],
        sample_weight=weights[drawn],
        **options,
    )
    assert condensed == pytest.approx(exact, abs=1e-12)


def test_many_levels_become_quantiles():
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(size=5000), rng.integers(2, size=5000)
    decisions = rng.integers(2, size=5000)
    condensed = condense(ReportRows.of(groups, scores, y_pred=decisions, sensitive_features=groups))
    values, levels = np.unique(condensed.responses["scores"], return_inverse=True)
    assert values.size == 1001  # one of the thousand has the threshold inside
    sizes = np.bincount(levels[condensed.cells])
    assert np.sum(sizes == 5) == 999
    assert sizes[sizes != 5].sum() == 5
    rounded = condensed.responses["scores"][condensed.cells]
    np.testing.assert_array_equal(rounded > 0, scores > 0)
    np.testing.assert_array_equal(condensed.responses["decisions"][condensed.cells], decisions)
    assert np.corrcoef(rounded, scores)[0, 1] > 0.999
    exact = group_auc_gap(None, scores, sensitive_features=groups)
    assert group_auc_gap(None, rounded, sensitive_features=groups) == pytest.approx(exact, abs=1e-4)
    many = ReportRows.of(groups, scores, sensitive_features=np.arange(5000) % 50)
    assert np.unique(condense(many).responses["scores"]).size == 201


def test_interval_of_positive_rates_is_the_normal_one():
    rng = np.random.default_rng(1)
    groups = np.repeat([0, 1], [3000, 1500])
    decisions = rng.random(4500) < np.where(groups == 0, 0.6, 0.4)
    y_true = rng.integers(2, size=4500)
    report = fairness_report(
        y_true, None, y_pred=decisions.astype(int), sensitive_features=groups, metrics="independence_gap"
    )
    rates = [decisions[groups == g].mean() for g in (0, 1)]
    spread = np.sqrt(sum(p * (1 - p) / n for p, n in zip(rates, (3000, 1500), strict=True)))
    lower, upper = report.gaps.loc["independence_gap", ["lower", "upper"]]
    gap = rates[0] - rates[1]
    assert report.n_resamples == 400
    # quantiles of 400 resamples: their own standard error is about 0.13 of the spread
    assert lower == pytest.approx(gap - 1.96 * spread, abs=0.45 * spread)
    assert upper == pytest.approx(gap + 1.96 * spread, abs=0.45 * spread)


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_those_of_gap_interval(rows, weighted):
    """Within groups, which are the strata of these gaps in `gap_interval` as well; all from the same resamples."""
    y_true, scores, groups = rows
    given = {"sensitive_features": groups, "level": 0.9, "n_resamples": 240, "random_state": 5}
    if weighted:
        given["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2, 600)
    scores = np.round(scores, 1)
    report = fairness_report(y_true, scores, metrics=["independence_gap", "group_auc_gap"], **given)
    for name, response in {"independence_gap": (scores > 0).astype(int), "group_auc_gap": scores}.items():
        expected = gap_interval(name, y_true, response, **given)
        np.testing.assert_allclose(report.gaps.loc[name, ["lower", "upper"]].astype(float), expected)
    assert "90%, two-sided; bootstrap of 240" in report.settings["Intervals"]


@pytest.mark.parametrize("ends", [(0.0, 0.01), (0.98, 0.99)])
def test_value_of_all_scores_is_inside_of_the_interval_of_rounded_ones(monkeypatch, rows, ends):
    y_true, scores, groups = rows
    monkeypatch.setattr("fairconstrained.reporting._gaps.gap_intervals", lambda *args: [ends])
    gaps = fairness_report(y_true, scores, sensitive_features=groups, metrics="group_auc_gap").gaps
    value, lower, upper = gaps.loc["group_auc_gap", ["value", "lower", "upper"]]
    assert (lower, upper) == (min(value, ends[0]), max(value, ends[1]))


def test_same_seed_same_intervals(rows):
    y_true, scores, groups = rows
    first, second, other = (
        fairness_report(y_true, scores, sensitive_features=groups, metrics=["separation_gap"], random_state=seed).gaps
        for seed in (0, 0, 1)
    )
    assert first.equals(second)
    assert not first.equals(other)


def test_no_interval_where_resamples_lose_a_cell(rows):
    y_true, scores, groups = rows
    y_true = np.where((groups == "b") & (np.cumsum(groups == "b") > 1), 0, 1)  # one positive in b
    report = fairness_report(y_true, scores, sensitive_features=groups, metrics="equal_opportunity_gap")
    gap = report.gaps.loc["equal_opportunity_gap"]
    assert np.isfinite(gap["value"])
    assert np.isnan(gap["lower"])
    assert "No interval, as a cell is empty in too many resamples: True positive rate" in str(report)


def test_no_interval_where_resamples_lose_a_group(rows):
    """A single row of b has weight."""
    y_true, scores, groups = rows
    weights = np.where((groups == "b") & (np.cumsum(groups == "b") > 1), 0, 1)
    metrics = ["independence_gap", "statistical_parity_gap"]
    gaps = fairness_report(y_true, scores, sensitive_features=groups, sample_weight=weights, metrics=metrics).gaps
    assert np.isfinite(gaps["value"]).all()
    assert gaps[["lower", "upper"]].isna().all(axis=None)


def test_progress_is_shown_only_where_it_is_asked_for(rows, capsys):
    y_true, scores, groups = rows
    asked = {"sensitive_features": groups, "metrics": "independence_gap"}
    fairness_report(y_true, scores, **asked)
    assert capsys.readouterr() == ("", "")
    fairness_report(y_true, scores, **asked, verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert "gaps" in err
    assert "/501" in err  # the estimate, 400 resamples, and the jackknife over 67 + 33 blocks
