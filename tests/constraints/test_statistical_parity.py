"""StatisticalParity: its components, the equivalence with the gap (Lemma 5.1), and its cuts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fairconstrained.constraints import BoundConstraint, StatisticalParity
from fairconstrained.data import FairData
from fairconstrained.metrics.ranks import rank_table

FORMS = [(interval, normalize) for interval in [(0.0, 1.0), (0.0, 0.33), (0.27, 0.71)] for normalize in (True, False)]
each_form = pytest.mark.parametrize(("interval", "normalize"), FORMS, ids=str)
#: Half of all combinations, such that any two of the three choices meet.
each_form_and_weighting = pytest.mark.parametrize(
    ("interval", "normalize", "weighted"),
    [(interval, normalize, (i // 2) % 2 == normalize) for i, (interval, normalize) in enumerate(FORMS)],
    ids=str,
)
#: Narrow enough for the surrogate to be the indicator on scores that differ by more.
NARROW = 1e-9


def feasible_levels(constraint, scores):
    """Which levels have a threshold at which every group's component holds, by trying all thresholds."""
    distinct = np.unique(scores)
    candidates = np.concatenate([[distinct[0] - 1], (distinct[1:] + distinct[:-1]) / 2, [distinct[-1] + 1]])
    n_groups = constraint.data.n_groups
    found = np.zeros(constraint.levels.size, dtype=bool)
    for theta in candidates:
        aux = torch.full((constraint.n_aux,), theta, dtype=torch.float64)
        values = constraint.values(torch.from_numpy(scores), aux).numpy()
        found |= (values.reshape(constraint.n_aux, 2 * n_groups) <= 1e-12).all(axis=1)
    return found


def with_kappa(kappa, data, interval, normalize, n_levels):
    constraint = StatisticalParity(
        1.0, interval=interval, normalize=normalize, surrogate="ramp", surrogate_width=NARROW, n_levels=n_levels
    )
    # Without the check of the resolution, which is tested elsewhere: these kappas are as fine as one row.
    constraint.kappa = max(kappa, 0.5)
    return replace(constraint.unchecked(data), kappa=kappa)


@pytest.mark.parametrize("decimals", [8, 1], ids=["distinct", "ties"])
def test_rows_are_sorted_once_for_all_draws_of_weights(make_data, draw_scores, monkeypatch, decimals):
    data = make_data(counts=(50, 70))
    constraint, scores = StatisticalParity(0.5, interval=(0.1, 0.6)).unchecked(data), draw_scores(data).round(decimals)
    weights = np.random.default_rng(0).dirichlet(np.ones(data.n_samples), size=3)
    expected = BoundConstraint.metrics_with_weights(constraint, scores, weights)
    seen = []

    def recorded(scores, *others):
        seen.append(scores)
        return rank_table(scores, *others)

    monkeypatch.setattr("fairconstrained.constraints.statistical_parity.rank_table", recorded)
    np.testing.assert_allclose(constraint.metrics_with_weights(scores, weights), expected, rtol=1e-12, atol=1e-15)
    assert len(seen) == 3
    assert all((np.diff(own) <= 0).all() for own in seen)


def test_levels_beyond_the_reach_of_the_interval_keep_their_windows(make_data):
    """Windows of length 0.1 may start at ranks 0.1 to 0.5; those of cuts do outside as well."""
    constraint = with_kappa(0.1, make_data(), (0.2, 0.5), False, 5)
    starts = np.array([0.02, 0.1, 0.3, 0.5, 0.62, 0.9])
    levels, _ = constraint._levels_from(starts)
    assert levels.min() < 0
    assert levels.max() > 1
    centres, width, _ = replace(constraint, levels=levels)._window
    np.testing.assert_allclose(centres, starts + 0.05)
    assert width == 0.1


def test_thresholds_of_two_distinct_scores_lie_between_them(make_data):
    data = make_data()
    constraint = with_kappa(0.1, data, (0.0, 1.0), True, 3)
    np.testing.assert_array_equal(constraint.initial_aux(np.where(np.arange(data.n_samples) % 2, 1.0, 3.0)), 2.0)


def test_windows_meet_the_intervals_of_all_groups(make_data):
    """Windows of length 0.1 may start at 0 to 0.6, as the second group's interval lies in the first one's."""
    intervals = {"a": (0.05, 0.6), "b": (0.2, 0.3)}
    constraint = with_kappa(0.1, make_data(), intervals, False, 4)
    starts = constraint._window[0] - 0.05
    levels, unit = constraint._levels_from(starts)
    np.testing.assert_allclose(levels, constraint.levels)
    assert unit == pytest.approx(0.6)
    assert 0 <= starts.min() < starts.max() <= 0.6
    assert starts.max() > 0.3


# --- layout


def test_components_are_levels_by_groups_by_sides(make_data, draw_scores, evaluate):
    data = make_data(counts=(25, 20, 40), weighted=True)
    constraint = StatisticalParity(0.2, interval=(0.1, 0.6), surrogate="logistic", n_levels=4, surrogate_width=0.5)
    constraint = constraint.unchecked(data)
    scores, aux = draw_scores(data), np.array([1.0, 0.4, 0.1, -0.3])
    assert constraint.n_aux == 4
    assert len(constraint.component_names) == 4 * 3 * 2
    values = evaluate(constraint, "values", scores, aux).reshape(4, 3, 2)
    for level, (p, theta) in enumerate(zip(constraint.ranks, aux, strict=True)):
        for group, rows in enumerate(data.slices):
            rate = data.group_weights.numpy()[rows] @ (1 / (1 + np.exp((theta - scores[rows]) / 0.5)))
            np.testing.assert_allclose(values[level, group], [p - rate, rate - (p + 0.2 * 0.5)])


def test_names_say_level_group_and_side(make_data):
    constraint = StatisticalParity(0.5, n_levels=2).unchecked(make_data())
    assert constraint.component_names == (
        "statistical_parity[p=0.125, a, lower]",
        "statistical_parity[p=0.125, a, upper]",
        "statistical_parity[p=0.125, b, lower]",
        "statistical_parity[p=0.125, b, upper]",
        "statistical_parity[p=0.375, a, lower]",
        "statistical_parity[p=0.375, a, upper]",
        "statistical_parity[p=0.375, b, lower]",
        "statistical_parity[p=0.375, b, upper]",
    )


@each_form
def test_levels_lie_where_the_lemma_wants_them(make_data, interval, normalize):
    alpha, beta = interval
    constraint = StatisticalParity(0.25, interval=interval, normalize=normalize).unchecked(make_data(counts=(40, 50)))
    lowest = alpha if normalize else max(0.0, alpha - 0.25)
    highest = beta - 0.25 * (beta - alpha) if normalize else min(beta, 0.75)
    steps = (np.arange(10) + 0.5) / 10
    np.testing.assert_allclose(constraint.ranks, lowest + steps * (highest - lowest))


def test_a_kappa_of_one_leaves_no_level(make_data):
    constraint = StatisticalParity(1.0).unchecked(make_data())
    assert constraint.n_aux == 0
    assert constraint.with_components(np.array([0.3, 0.6])).n_aux == 0
    assert StatisticalParity(0.9).unchecked(make_data()).with_components(np.array([0.3, 0.6])).n_aux == 2
    assert constraint.component_names == ()


@pytest.mark.parametrize("surrogate", ["logistic", "ramp", "smoothstep"])
@pytest.mark.parametrize("view", ["values", "plus", "minus"])
def test_without_levels_every_view_is_empty(make_data, draw_scores, evaluate, surrogate, view):
    constraint = StatisticalParity(1.0, surrogate=surrogate).unchecked(make_data())
    assert evaluate(constraint, view, draw_scores(constraint.data)).shape == (0,)


# --- Lemma 5.1


@each_form_and_weighting
def test_a_gap_within_kappa_has_thresholds_for_all_levels(make_data, draw_scores, interval, normalize, weighted):
    """Ranks of samples move in steps of one row, by which the two sides of the lemma may differ."""
    data = make_data(counts=(29, 23, 31), weighted=weighted)
    for seed in range(6):
        scores = draw_scores(data, seed, shift=0.15 * seed)
        loose = with_kappa(0.5, data, interval, normalize, 1)
        kappa = loose.metric(scores) + loose.granularity
        if kappa >= 1:
            continue
        constraint = with_kappa(kappa, data, interval, normalize, 60)
        assert constraint.exact(scores) < 0
        assert feasible_levels(constraint, scores).all()


@each_form_and_weighting
def test_thresholds_for_all_levels_bound_the_gap(make_data, draw_scores, interval, normalize, weighted):
    """No step to allow for in this direction, only the distance between two of the finitely many levels."""
    data = make_data(counts=(29, 23, 31), weighted=weighted)
    n_levels = 60
    for seed in range(6):
        scores = draw_scores(data, seed, shift=0.15 * seed)
        gap = with_kappa(0.5, data, interval, normalize, 1).metric(scores)
        constraint = with_kappa(gap - 1.5 / n_levels, data, interval, normalize, n_levels)
        assert constraint.exact(scores) > 0
        assert not feasible_levels(constraint, scores).all()


@each_form
def test_initial_thresholds_of_fair_scores_are_feasible_up_to_one_row(
    make_data, draw_scores, evaluate, interval, normalize
):
    data = make_data(counts=(59, 73), weighted=True)
    for seed in range(6):
        scores = draw_scores(data, seed, shift=0.1 * seed)
        kappa = with_kappa(0.5, data, interval, normalize, 1).metric(scores) + 1e-6
        constraint = with_kappa(kappa, data, interval, normalize, 50)
        values = evaluate(constraint, "values", scores, constraint.initial_aux(scores))
        assert values.max() <= constraint.granularity * constraint.scale


# --- cuts


def test_cuts_stand_behind_the_old_levels(make_data, draw_scores):
    data = make_data(counts=(150, 190))
    constraint = StatisticalParity(0.05, n_levels=2).unchecked(data)
    scores = draw_scores(data, shift=0.6)
    refined = constraint.refined(scores, blur=0.05, margin=0.0)
    added = refined.levels[2:]
    assert added.size > 0
    np.testing.assert_array_equal(refined.levels[:2], constraint.levels)
    assert refined.component_names[:8] == constraint.component_names
    assert refined.n_aux == 2 + added.size
    assert ((added > -0.5) & (added < 1.5)).all()


def test_a_cut_is_violated_where_it_was_added(make_data, draw_scores):
    data = make_data(counts=(150, 190))
    constraint = StatisticalParity(0.05, n_levels=2, surrogate="ramp", surrogate_width=NARROW).unchecked(data)
    scores = draw_scores(data, shift=0.6)
    assert constraint.exact(scores) > 0
    refined = constraint.refined(scores, blur=0.05, margin=0.0)
    assert not feasible_levels(refined, scores)[2:].any()


def test_scores_within_kappa_get_no_cuts(make_data, draw_scores):
    data = make_data(counts=(150, 190))
    scores = draw_scores(data, shift=0.2)
    constraint = StatisticalParity(0.9, n_levels=3).unchecked(data)
    assert constraint.exact(scores) < 0
    assert constraint.refined(scores, blur=0.05, margin=0.0).n_aux == 3


def test_refining_at_the_same_scores_adds_no_level_twice(make_data, draw_scores):
    data = make_data(counts=(150, 190))
    constraint, scores = StatisticalParity(0.05, n_levels=2).unchecked(data), draw_scores(data, shift=0.6)
    for _ in range(30):
        constraint = constraint.refined(scores, blur=0.05, margin=0.0)
    spacing = np.diff(np.sort(constraint.levels))
    assert spacing.min() > constraint.granularity * constraint.scale
    settled = constraint.refined(scores, blur=0.05, margin=0.0)
    assert settled.n_aux == constraint.n_aux


@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.05, 0.3), (0.7, 1.0)])
def test_the_solvers_of_the_paper_get_eq_15(make_data, draw_scores, evaluate, interval):
    """Both sides of eq. 15 with the ramp of Example D.3, at ten levels in the range of Lemma 5.1."""
    data, kappa = make_data(counts=(25, 40)), 0.2
    bound = StatisticalParity(kappa, interval=interval, surrogate="ramp", surrogate_width=1.0).unchecked(data)
    (alpha, beta), tolerance = interval, kappa * (interval[1] - interval[0])
    np.testing.assert_allclose(bound.ranks, alpha + (np.arange(10) + 0.5) / 10 * (beta - tolerance - alpha), atol=1e-12)
    for seed in range(5):
        scores, thresholds = 2 * draw_scores(data, seed), np.random.default_rng(seed).normal(size=10)
        expected = []
        for p, threshold in zip(bound.ranks, thresholds, strict=True):
            for group in (0, 1):
                rate = np.mean(np.clip(scores[data.codes == group] - threshold + 0.5, 0, 1))
                expected += [p - rate, rate - p - tolerance]
        np.testing.assert_allclose(evaluate(bound, "values", scores, thresholds), expected, atol=1e-12)
        parts = evaluate(bound, "plus", scores, thresholds) - evaluate(bound, "minus", scores, thresholds)
        np.testing.assert_allclose(parts, expected, atol=1e-12)


@pytest.mark.parametrize("normalize", [True, False])
def test_metrics_of_several_models_are_those_of_each(make_data, normalize):
    data, rng = make_data(counts=(90, 120), weighted=True), np.random.default_rng(0)
    constraint = StatisticalParity(0.1, interval=(0.1, 0.6), normalize=normalize).bind(data)
    scores = np.round(rng.normal(size=(3, data.n_samples)), 1)  # with ties
    scores[2] = rng.normal(size=data.n_samples)
    np.testing.assert_allclose(constraint.metrics(scores), [constraint.metric(own) for own in scores], atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_gap_by_chance_depends_on_neither_names_of_groups_nor_the_order_of_rows(weighted):
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1, 2], [60, 25, 40])
    weights = rng.uniform(0.5, 2, 125) if weighted else np.ones(125)
    found = []
    for names in ((0, 1, 2), (2, 0, 1)):
        order = rng.permutation(125)
        groups = np.array(names)[codes[order]]
        data = FairData.from_arrays(np.zeros((125, 1)), np.ones(125), groups, ("a", "b", "c"), weights[order])
        found.append(StatisticalParity(0.5, interval=(0, 0.5)).unchecked(data).value_by_chance)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert 0.05 < found[0] < 0.5
