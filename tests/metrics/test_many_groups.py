"""Metrics of many groups: the largest gap of all pairs, found without all pairs, is that of the plain definition."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairconstrained import metrics
from fairconstrained.metrics import cell_aucs, ranks, transport
from fairconstrained.metrics.intervals import PercentileIntervals


@pytest.fixture(params=["distinct", "tied", "weighted"])
def rows(request):
    """Labels, scores, 40 groups of 7 to 60 rows with both labels, and weights."""
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(40), rng.integers(7, 60, size=40))
    scores = rng.normal(size=groups.size) + 0.4 * rng.normal(size=40)[groups]
    labels = (scores + rng.logistic(size=groups.size) > 0).astype(int)
    first = np.searchsorted(groups, np.arange(40))
    labels[first], labels[first + 1] = 0, 1
    weights = rng.uniform(0.1, 3, size=groups.size) if request.param == "weighted" else np.ones(groups.size)
    return labels, scores.round(1) if request.param == "tied" else scores, groups, weights


def auc(rows, above, below):
    """scikit-learn's AUC of two disjoint sets."""
    _, scores, _, weights = rows
    both = above | below
    return roc_auc_score(above[both], scores[both], sample_weight=weights[both])


def share(rows, event, among):
    return np.average(event[among], weights=rows[3][among])


#: By name the metric, what it reads, and the gap of two groups (as masks of rows) by its definition.
PLAIN = {
    "group_auc_gap": lambda rows, a, b, y: abs(auc(rows, a, b) - 0.5),
    "inter_group_auc_gap": lambda rows, a, b, y: abs(auc(rows, a & y, b & ~y) - auc(rows, b & y, a & ~y)),
    "intra_group_auc_gap": lambda rows, a, b, y: abs(auc(rows, a & y, a & ~y) - auc(rows, b & y, b & ~y)),
    "separation_gap": lambda rows, a, b, y: sum(
        abs(share(rows, rows[1] > 0, a & part) - share(rows, rows[1] > 0, b & part)) for part in (y, ~y)
    ),
    "statistical_parity_gap": lambda rows, a, b, y: max(
        abs(share(rows, rows[1] > threshold, a) - share(rows, rows[1] > threshold, b))
        for threshold in np.unique(rows[1][a | b])
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("block_entries", [None, 600])
@pytest.mark.parametrize("name", PLAIN)
def test_largest_gap_is_that_of_the_plain_definition(monkeypatch, rows, name, block_entries):
    """With small blocks the bounds for many groups and many scores are in use."""
    labels, scores, groups, weights = rows
    if block_entries:
        for module in (cell_aucs, ranks):
            monkeypatch.setattr(module, "_BLOCK_ENTRIES", block_entries)
    members = [groups == group for group in range(40)]
    expected = max(PLAIN[name](rows, a, b, labels == 1) for a, b in combinations(members[:12], 2))
    chosen = groups < 12
    response = (scores > 0).astype(int) if name == "separation_gap" else scores
    options = {"agg_labels": "sum"} if name == "separation_gap" else {}
    value = getattr(metrics, name)(
        labels[chosen],
        response[chosen],
        sensitive_features=groups[chosen],
        sample_weight=weights[chosen],
        **options,
    )
    assert value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("interval", [(0.1, 0.4), [(0.0, 0.2), (0.5, 0.9)]])
def test_partial_group_auc_is_that_of_the_table_of_all_pairs(monkeypatch, rows, interval):
    _, scores, groups, weights = rows
    options = {"sensitive_features": groups, "sample_weight": weights, "interval": interval}
    whole, table = metrics.partial_group_auc_gap(None, scores, return_groups=True, **options)
    monkeypatch.setattr(cell_aucs, "_BLOCK_ENTRIES", 600)
    assert metrics.partial_group_auc_gap(None, scores, **options) == pytest.approx(whole, abs=1e-12)
    assert np.abs(table["auc"] - 0.5).max() == pytest.approx(whole, abs=1e-12)


def test_groups_that_are_scored_apart_are_as_far_apart_as_can_be(monkeypatch):
    """Many pairs attain the largest gap, so that no group has to be looked at closely."""
    monkeypatch.setattr(cell_aucs, "_BLOCK_ENTRIES", 600)
    groups, labels = np.repeat(np.arange(200), 10), np.tile([0, 1], 1000)
    scores = groups + np.random.default_rng(0).uniform(size=2000)
    assert metrics.group_auc_gap(None, scores, sensitive_features=groups) == 0.5
    assert metrics.inter_group_auc_gap(labels, scores, sensitive_features=groups) == 1.0


def test_wasserstein_visits_few_pairs(monkeypatch, rows):
    _, scores, groups, weights = rows
    options = {"sensitive_features": groups, "sample_weight": weights}
    probabilities = 1 / (1 + np.exp(-scores))
    calls, original = [], transport.squared_wasserstein
    expected, table = metrics.wasserstein_gap(None, probabilities, return_groups=True, **options)
    monkeypatch.setattr(transport, "squared_wasserstein", lambda *pair: calls.append(1) or original(*pair))
    assert metrics.wasserstein_gap(None, probabilities, **options) == pytest.approx(expected, abs=1e-15)
    assert table["gap"].max() == expected
    assert len(calls) < 40 * 39 / 2 / 5


@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.1, 0.4)])
def test_worst_threshold_is_that_of_the_whole_table_though_few_blocks_are_made(monkeypatch, rows, interval):
    _, scores, groups, weights = rows
    intervals = PercentileIntervals.parse(interval, range(40))
    whole = ranks.worst_gap(scores, groups, weights, 40, intervals)
    monkeypatch.setattr(ranks, "_BLOCK_ENTRIES", 400)
    n_blocks, made, original = len(ranks.RankTable(scores, groups, weights, 40)), [], ranks.RankTable.block
    monkeypatch.setattr(ranks.RankTable, "block", lambda table, place: made.append(place) or original(table, place))
    found = ranks.worst_gap(scores, groups, weights, 40, intervals)
    assert found.gap == pytest.approx(whole.gap, abs=1e-12)
    assert found.threshold == whole.threshold
    np.testing.assert_allclose(found.ranks, whole.ranks, atol=1e-12)
    assert len(made) < n_blocks / 2


def test_areas_of_many_groups_are_those_of_scikit_learn(monkeypatch, rows):
    """Areas with a heavy group beside light ones, and where groups and scores have more cells than rows."""
    labels, scores, groups, weights = rows
    weights = weights * np.where(groups == 0, 1e12, 1.0)
    monkeypatch.setattr(cell_aucs, "_BLOCK_ENTRIES", 100)
    _, table = metrics.intra_group_auc_gap(
        labels, scores, sensitive_features=groups, sample_weight=weights, return_groups=True
    )
    scored = cell_aucs.ScoredRows.of(scores, groups, weights, 40)
    found = 0.5 + scored.among(labels == 1).within(scored.among(labels == 0))
    for group in range(40):
        own = groups == group
        expected = roc_auc_score(labels[own], scores[own], sample_weight=weights[own])
        assert found[group] == pytest.approx(expected, abs=1e-12)
        assert table.loc[group, "auc"] == pytest.approx(expected, abs=1e-12)
