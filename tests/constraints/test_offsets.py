"""The exact search over intercepts, against every possibility on small data."""

from itertools import product

import numpy as np
import pytest

from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    GroupAUC,
    LossParity,
    QuadraticAUCGap,
    RateGap,
    StatisticalParity,
)
from fairconstrained.constraints.offsets import group_offsets, shared_offset


def draw_rows(seed, sizes, ties):
    """Scores, within-group weights and gains of every group."""
    rng = np.random.default_rng(seed)
    scores = [rng.integers(-2, 3, n).astype(float) if ties else rng.normal(size=n) for n in sizes]
    weights = [w / w.sum() for w in (rng.uniform(0.2, 2, n) for n in sizes)]
    gains = [rng.normal(size=n) for n in sizes]
    return scores, weights, gains


def outcomes(scores, weights, gains):
    """(rate, gain) of every way to cut a group's scores, tied rows staying together."""
    cuts = [np.inf, *np.unique(scores)]
    positive = [scores >= cut for cut in cuts]
    return [(float(weights[rows].sum()), float(gains[rows].sum())) for rows in positive]


def attained(scores, weights, gains, offset, threshold):
    positive = scores + offset > threshold
    return float(weights[positive].sum()), float(gains[positive].sum())


VALUES = {"rate": lambda rates: rates, "partial rate": lambda rates: np.clip(rates, 0.2, 0.6)}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES.keys())
@pytest.mark.parametrize("tolerance", [0.0, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("sizes", [(7,), (5, 8), (4, 5, 6)], ids=str)
def test_group_offsets_are_the_best_within_the_tolerance(sizes, tolerance, value, ties):
    for seed in range(8):
        rows = draw_rows(seed, sizes, ties)
        offsets = group_offsets(*rows, [value] * len(sizes), tolerance, threshold=0.3)
        groups = list(zip(*rows, strict=True))
        reached = [attained(*group, offset, 0.3) for group, offset in zip(groups, offsets, strict=True)]
        values = value(np.array([rate for rate, _ in reached]))
        assert np.ptp(values) <= tolerance + 1e-9
        best = max(
            sum(gain for _, gain in choice)
            for choice in product(*(outcomes(*group) for group in groups))
            if np.ptp(value(np.array([rate for rate, _ in choice]))) <= tolerance + 1e-9
        )
        assert sum(gain for _, gain in reached) == pytest.approx(best)


@pytest.mark.parametrize("ties", [False, True])
def test_shared_offset_is_the_best_that_is_allowed(ties):
    for seed in range(20):
        (scores,), _, (gains,) = draw_rows(seed, (12,), ties)

        def allowed(thresholds, scores=scores):
            share = (scores[:, None] > thresholds).mean(axis=0)
            return (share > 0.2) & (share < 0.7)

        offset = shared_offset(scores, gains, allowed, threshold=-0.4)
        candidates = [scores >= cut for cut in [np.inf, *np.unique(scores)]]
        best = max((gains[rows].sum() for rows in candidates if 0.2 < rows.mean() < 0.7), default=None)
        positive = scores + offset > -0.4
        assert best is not None
        assert 0.2 < positive.mean() < 0.7
        assert gains[positive].sum() == pytest.approx(best)


def test_shared_offset_without_anything_allowed_is_zero():
    (scores,), _, (gains,) = draw_rows(0, (12,), ties=False)
    assert shared_offset(scores, gains, lambda thresholds: np.zeros(thresholds.shape, dtype=bool), 0.0) == 0.0


@pytest.mark.parametrize("scores", [[1.0, -1e12], [1e12, 1.0], [-1.0, -1e12], [1e12, -1e12]])
@pytest.mark.parametrize("gain", [-1.0, 1.0])
def test_all_rows_or_none_whatever_the_size_of_the_scores(scores, gain):
    scores = np.array(scores)
    offset = shared_offset(scores, np.full(2, gain), np.ones_like, 0.0)
    assert ((scores + offset > 0) == (gain > 0)).all()


def test_offsets_leave_room_for_rounding():
    """A threshold between two scores, not on one of them: a rounding error must not move a row across."""
    scores = np.array([1.0, 2.0, 3.0])
    offset = shared_offset(scores, np.array([-1.0, 1.0, 1.0]), np.ones_like, threshold=0.0)
    assert np.abs(scores + offset).min() == pytest.approx(0.5)


# --- as the constraints use it


def gain_of(scores, gains, threshold=0.0):
    return gains[scores > threshold].sum()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("interval", [(0.0, 1.0), (0.2, 0.7)], ids=str)
@pytest.mark.parametrize("shared", [False, True])
def test_demographic_parity_finds_the_best_offsets_within_kappa(make_data, draw_scores, interval, normalize, shared):
    data = make_data(counts=(8, 11))
    constraint = DemographicParity(0.3, interval=interval, normalize=normalize, threshold=0.5).unchecked(data)
    for seed in range(6):
        scores, gains = draw_scores(data, seed), np.random.default_rng(seed).normal(size=data.n_samples)
        offsets = constraint.offsets(scores, gains, 0.5, shared)
        assert offsets.shape == (2,)
        moved = scores + offsets[data.codes]
        first, second = (np.array([np.inf, *np.unique(scores[rows])]) - 1e-9 for rows in data.slices)
        if shared:
            assert offsets[0] == offsets[1]
            choices = [(cut, cut) for cut in (*first, *second)]
        else:
            choices = list(product(first, second))
        candidates = [scores - np.array(cuts)[data.codes] + 0.5 for cuts in choices]
        allowed = [c for c in candidates if constraint.exact(c) <= 1e-9]
        assert constraint.exact(moved) <= 1e-9
        best = max(gain_of(c, gains, 0.5) for c in allowed)
        if normalize or interval == (0.0, 1.0) or shared:
            assert gain_of(moved, gains, 0.5) == pytest.approx(best)
        else:
            # the search bounds the difference of the rates wherever they lie, which is sufficient
            assert gain_of(moved, gains, 0.5) <= best + 1e-9


IGNORING_SHIFTS = [StatisticalParity(0.5), GroupAUC(0.5), AUCGap(0.5), QuadraticAUCGap(0.5)]


@pytest.mark.parametrize("constraint", [*IGNORING_SHIFTS, DemographicParity(0.5), RateGap(0.5), LossParity(0.5)])
def test_constraints_say_whether_they_ignore_a_shift_of_all_scores(make_data, draw_scores, constraint):
    data = make_data(counts=(12, 15))
    bound, scores = constraint.unchecked(data), draw_scores(data)
    assert bound.ignores_shifts == (constraint in IGNORING_SHIFTS)
    assert (bound.exact(scores + 0.7) == pytest.approx(bound.exact(scores))) == bound.ignores_shifts


@pytest.mark.parametrize("constraint", IGNORING_SHIFTS)
def test_constraints_that_ignore_shifts_move_all_scores_alike(make_data, draw_scores, constraint):
    data = make_data(counts=(12, 15))
    constraint, scores = constraint.unchecked(data), draw_scores(data)
    gains = np.random.default_rng(0).normal(size=data.n_samples)
    offsets = constraint.offsets(scores, gains, 0.0, False)
    assert offsets[0] == offsets[1]
    moved = scores + offsets[data.codes]
    assert constraint.metric(moved) == pytest.approx(constraint.metric(scores))
    assert gain_of(moved, gains) == pytest.approx(max(gain_of(scores - cut + 1e-9, gains) for cut in [*scores, np.inf]))
