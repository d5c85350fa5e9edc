"""Every notion on intervals, unions of them, and one of these for every group: the metric, and the surrogates of it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fairconstrained.constraints import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    StatisticalParity,
)
from fairconstrained.metrics import (
    partial_demographic_parity_gap,
    partial_equal_opportunity_gap,
    partial_equalized_odds_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)

GAPS = {
    StatisticalParity: partial_statistical_parity_gap,
    DemographicParity: partial_demographic_parity_gap,
    EqualOpportunity: partial_equal_opportunity_gap,
    EqualizedOdds: partial_equalized_odds_gap,
    GroupAUC: partial_group_auc_gap,
}
RATES = [DemographicParity, EqualOpportunity, EqualizedOdds]
#: By the number of groups where it matters.
INTERVALS = {
    "whole": lambda labels: (0.0, 1.0),
    "interval": lambda labels: (0.15, 0.7),
    "union": lambda labels: [(0.1, 0.4), (0.55, 0.9)],
    "by group": lambda labels: {g: [(0.0, 0.3), (0.5, 0.85)] if g == "b" else (0.1, 0.6) for g in labels},
}
each_interval = pytest.mark.parametrize("interval", INTERVALS.values(), ids=INTERVALS.keys())
each_form = pytest.mark.parametrize("normalize", [True, False], ids=["normalized", "rank gap"])
#: Narrow enough for the surrogate to be the indicator on scores that differ by more.
NARROW = 1e-9


@pytest.fixture(scope="module", params=[(59, 71), (55, 60, 80)], ids=["2 groups", "3 groups"])
def data(request, make_data):
    return make_data(counts=request.param, weighted=True)


@each_interval
@pytest.mark.parametrize("notion", GAPS, ids=lambda notion: notion.__name__)
def test_metric_is_the_public_one(notion, data, draw_scores, interval):
    names = {"weighted": data.weights.numpy(), "labels": np.array(data.labels)[data.codes]}
    options = [{}] if notion is GroupAUC else [{"normalize": True}, {"normalize": False}]
    options = [{"threshold": 0.4, **o} for o in options] if notion in RATES else options
    if notion in (EqualOpportunity, EqualizedOdds):
        options = [{**o, "ranks": ranks} for o in options for ranks in ("group_and_label", "group")]
    found = []
    for chosen in options:
        constraint = notion(0.4, interval=interval(data.labels), **chosen).unchecked(data)
        for seed in range(4):
            scores = draw_scores(data, seed, shift=0.3 * seed)
            expected = GAPS[notion](
                data.y.numpy(),
                scores,
                sensitive_features=names["labels"],
                sample_weight=names["weighted"],
                interval=interval(data.labels),
                **chosen,
            )
            found.append(expected)
            assert constraint.metric(scores) == pytest.approx(expected, abs=1e-12)
            assert constraint.exact(scores) == pytest.approx(expected - 0.4, abs=1e-12)
    assert max(found) > 0


# --- rates at a threshold


def rates_by_hand(data, scores, target):
    """Shares of the rows of a target above 0.3, by group."""
    weights, y = data.weights.numpy(), data.y.numpy()
    cells = [(data.codes == group) & ((y == target) | (target is None)) for group in range(data.n_groups)]
    return [weights[rows] @ (scores[rows] > 0.3) / weights[rows].sum() for rows in cells]


@each_interval
@pytest.mark.parametrize(
    ("notion", "targets"), [(DemographicParity, [None]), (EqualOpportunity, [1.0]), (EqualizedOdds, [1.0, -1.0])]
)
def test_components_are_differences_of_clipped_rates(data, draw_scores, evaluate, interval, notion, targets):
    """Components on any side of the interval; the term of the restoring slope adds to violations only."""
    bound = notion(0.4, interval=interval(data.labels), threshold=0.3, surrogate="ramp", surrogate_width=NARROW)
    bound = bound.unchecked(data)
    lengths = np.broadcast_to(bound.intervals.length, data.n_groups)
    for seed in range(6):
        scores = draw_scores(data, seed, shift=0.5 * seed - 1)
        expected = []
        for target in targets:
            rates = np.array(rates_by_hand(data, scores, target))
            shares = bound.intervals.clip(rates) / lengths
            expected += [a - b for i, a in enumerate(shares) for j, b in enumerate(shares) if i != j]
        excess = np.array(expected) - 0.4
        values = evaluate(bound, "values", scores) / bound.scale
        np.testing.assert_allclose(values, excess, atol=1e-9)
        assert (values.max() > 1e-9) == (bound.exact(scores) > 1e-9)
        added = evaluate(bound.with_restoring_slopes(), "values", scores) / bound.scale - excess
        assert (added >= -1e-9).all()
        np.testing.assert_allclose(added[excess <= 0], 0, atol=1e-9)


def test_names_tell_the_cells_apart(make_data):
    data = make_data(counts=(60, 70))
    assert EqualOpportunity(0.3).unchecked(data).component_names == (
        "equal_opportunity[a, y=+1 - b, y=+1]",
        "equal_opportunity[b, y=+1 - a, y=+1]",
    )
    assert EqualizedOdds(0.3).unchecked(data).component_names[2:] == (
        "equalized_odds[a, y=-1 - b, y=-1]",
        "equalized_odds[b, y=-1 - a, y=-1]",
    )


def test_a_cell_too_small_for_kappa_prints_the_counts(make_data):
    data = make_data(counts=(60, 70))
    cells = data.groups_with_label(1.0)
    counts = {label: rows.stop - rows.start for label, rows in zip(cells.labels, cells.slices, strict=True)}
    fewest = min(counts.values())
    assert fewest == counts["a, y=+1"] < counts["b, y=+1"]
    EqualOpportunity(1 / fewest).bind(data)
    with pytest.raises(ValueError, match=rf"equal_opportunity with kappa=.*'a, y=\+1': {fewest}"):
        EqualOpportunity(0.99 / fewest).bind(data)
    with pytest.raises(ValueError, match=r"'b, y=-1'"):
        EqualizedOdds(0.01).bind(data)


@each_interval
@each_form
@pytest.mark.parametrize("notion", [StatisticalParity, *RATES], ids=lambda notion: notion.__name__)
def test_views_agree(notion, data, draw_scores, evaluate, interval, normalize):
    """The convex parts differ by the value, wherever the rates lie."""
    bound = notion(0.5, interval=interval(data.labels), normalize=normalize, surrogate="ramp", surrogate_width=0.5)
    bound = bound.unchecked(data)
    for seed in range(4):
        scores = draw_scores(data, seed, shift=0.2)
        values, plus, minus = (evaluate(bound, view, scores) for view in ("values", "plus", "minus"))
        np.testing.assert_allclose(plus - minus, values, atol=1e-10)


@each_interval
@pytest.mark.parametrize("notion", RATES, ids=lambda notion: notion.__name__)
@pytest.mark.parametrize("view", ["plus", "minus"])
def test_parts_are_convex(notion, data, draw_scores, evaluate, interval, view):
    bound = notion(0.5, interval=interval(data.labels), surrogate="ramp", surrogate_width=0.5).unchecked(data)
    bends = []
    for seed in range(10):
        first, second = draw_scores(data, seed), draw_scores(data, seed + 100, -0.5)
        ends = evaluate(bound, view, first), evaluate(bound, view, second)
        bends.append((ends[0] + ends[1]) / 2 - evaluate(bound, view, (first + second) / 2))
    assert np.min(bends) > -1e-12
    assert np.max(bends) > 1e-4


# --- Lemma 5.1 for unions and intervals by group


def feasible_levels(constraint, scores):
    """Which levels have a threshold at which every group's component holds, by trying all thresholds."""
    distinct = np.unique(scores)
    candidates = np.concatenate([[distinct[0] - 1], (distinct[1:] + distinct[:-1]) / 2, [distinct[-1] + 1]])
    found = np.zeros(constraint.levels.size, dtype=bool)
    for theta in candidates:
        aux = torch.full((constraint.n_aux,), theta, dtype=torch.float64)
        values = constraint.values(torch.from_numpy(scores), aux).numpy()
        found |= (values.reshape(constraint.n_aux, -1) <= 1e-12).all(axis=1)
    return found


def with_kappa(kappa, data, interval, normalize, n_levels):
    """Without the check of the resolution: these kappas are as fine as one row."""
    constraint = StatisticalParity(
        0.5, interval=interval, normalize=normalize, surrogate="ramp", surrogate_width=NARROW, n_levels=n_levels
    )
    return replace(constraint.unchecked(data), kappa=kappa)


#: Half of all combinations, such that any two of the three choices meet.
LEMMA = {
    "2 groups-union-normalized": ((59, 71), "union", True),
    "2 groups-by group-rank gap": ((59, 71), "by group", False),
    "3 groups-union-rank gap": ((55, 60, 80), "union", False),
    "3 groups-by group-normalized": ((55, 60, 80), "by group", True),
}


@pytest.mark.parametrize(("data", "interval", "normalize"), LEMMA.values(), ids=LEMMA.keys(), indirect=["data"])
def test_levels_hold_if_and_only_if_the_gap_is_within_kappa(data, draw_scores, interval, normalize):
    """Ranks move in steps of one row, and there are finitely many levels: as much lies between the two kappas."""
    interval, n_levels, checked = INTERVALS[interval](data.labels), 40, 0
    for seed in range(3):
        scores = draw_scores(data, seed, shift=0.1 * seed)
        loose = with_kappa(0.5, data, interval, normalize, 1)
        gap = loose.metric(scores)
        if gap + loose.granularity < 1:
            within = with_kappa(gap + loose.granularity, data, interval, normalize, n_levels)
            assert feasible_levels(within, scores).all()
            checked += 1
        if gap > 2 / n_levels:
            beyond = with_kappa(gap - 1.5 / n_levels, data, interval, normalize, n_levels)
            assert not feasible_levels(beyond, scores).all()
            checked += 1
    assert checked >= 4


@each_form
@pytest.mark.parametrize("interval", [INTERVALS["union"], INTERVALS["by group"]], ids=["union", "by group"])
def test_cuts_stand_where_the_gap_is(make_data, draw_scores, interval, normalize):
    """A level that refinement adds cannot hold at the scores it was added for."""
    data = make_data(counts=(150, 190))
    constraint = with_kappa(0.1, data, interval(data.labels), normalize, 1)
    scores = draw_scores(data, shift=0.7)
    assert constraint.exact(scores) > constraint.granularity
    refined = constraint.refined(scores, blur=0.05, margin=0.0)
    assert refined.levels.size > 1
    assert not feasible_levels(refined, scores)[1:].any()
