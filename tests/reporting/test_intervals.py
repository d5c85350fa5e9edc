"""Intervals: rows that are alike as one row, and what comes out against the normal approximation."""

import numpy as np
import pytest

from fairconstrained.certification import gap_interval
from fairconstrained.metrics import METRICS, group_auc_gap
from fairconstrained.reporting import fairness_report
from fairconstrained.reporting._condensed import Condensed
from fairconstrained.reporting._gaps import GAPS, READS, _options
from fairconstrained.reporting._rows import ReportRows


def captured(monkeypatch, condensed, name, rows):
    """What the bootstrap is given for a gap: a function of cells of rows, and these."""
    given = []

    def interval(function, y_true, cells, *, sensitive_features, sample_weight, **kwargs):
        given.append((function, cells, sensitive_features, sample_weight))
        return 0.0, 1.0

    monkeypatch.setattr("fairconstrained.reporting._condensed.gap_interval", interval)
    function, options = METRICS[name].function, _options(name, rows)
    condensed.interval(lambda *args, **kwargs: function(*args, **kwargs, **options), 0.95, 400, 0)
    return given[0]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", GAPS)
def test_few_levels_lose_nothing(monkeypatch, rows, name, weighted):
    y_true, scores, groups = rows
    weights = np.random.default_rng(0).uniform(0.5, 2, 600) if weighted else None
    given = ReportRows.of(
        y_true, np.round(scores, 1), sensitive_features=groups, sample_weight=weights, interval=(0, 0.3)
    )
    response = READS[GAPS[name].reads](given)
    function, cells, strata, mass = captured(monkeypatch, Condensed.of(given, response), name, given)
    drawn = np.random.default_rng(1).integers(600, size=600)
    condensed = function(None, cells[drawn], sensitive_features=strata[drawn],
                         sample_weight=None if weights is None else mass[drawn])  # fmt: skip
    exact = METRICS[name].function(
        y_true[drawn],
        response[drawn],
        sensitive_features=groups[drawn],
        sample_weight=None if weights is None else weights[drawn],
        **_options(name, given),
    )
    assert condensed == pytest.approx(exact, abs=1e-12)


def test_many_levels_become_quantiles():
    rng = np.random.default_rng(0)
    scores, groups = rng.normal(size=5000), rng.integers(2, size=5000)
    rows = ReportRows.of(groups, scores, sensitive_features=groups)
    condensed = Condensed.of(rows, scores)
    assert condensed.values.size == 1001  # one of the thousand has the threshold inside
    sizes = np.bincount(condensed.levels)
    assert np.sum(sizes == 5) == 999
    assert sizes[sizes != 5].sum() == 5
    np.testing.assert_array_equal(condensed.values[condensed.levels] > 0, scores > 0)
    rounded = condensed.values[condensed.levels]
    assert np.corrcoef(rounded, scores)[0, 1] > 0.999
    exact = group_auc_gap(None, scores, sensitive_features=groups)
    assert group_auc_gap(None, rounded, sensitive_features=groups) == pytest.approx(exact, abs=1e-4)
    many = ReportRows.of(groups, scores, sensitive_features=np.arange(5000) % 50)
    assert Condensed.of(many, scores).values.size == 201


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


def test_interval_is_that_of_gap_interval(rows):
    """Within groups, which are the strata of this gap in `gap_interval` as well."""
    y_true, scores, groups = rows
    report = fairness_report(
        y_true, scores, sensitive_features=groups, metrics=["group_auc_gap"], random_state=5, level=0.9
    )
    expected = gap_interval(
        "group_auc_gap", y_true, scores, sensitive_features=groups, level=0.9, n_resamples=201, random_state=5
    )
    np.testing.assert_allclose(report.gaps.loc["group_auc_gap", ["lower", "upper"]].astype(float), expected)
    assert "90% interval" in report.to_html()


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
