"""The exact search against all cells of small grids, every AUC of them from its definition."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from fairconstrained.metrics.auc_sets import AUC_METRICS, auc_differences
from fairconstrained.postprocessing._search import ROUNDING, ShiftedAUCs, best_shift

METRICS = sorted(set(AUC_METRICS) - {"intra_group"})
SLOPES, SHIFTS = np.array([0.0, 0.3, 0.5, 1.0, 2.0]), np.arange(-5, 6) / 2
KAPPAS = [None, 0.3, 0.1, 0.03, 0.0]


def sample(seed, n=60, ties=True, weighted=True):
    """Scores, weights, moved, positive; scores in steps of 1/2 have ties before and after shifts of the grid."""
    rng = np.random.default_rng(seed)
    moved = np.arange(n) % 3 == 0
    positive = rng.random(n) < np.where(moved, 0.3, 0.6)
    scores = rng.normal(size=n) + positive - 0.8 * moved
    scores = np.round(2 * scores) / 2 if ties else scores
    return scores, rng.integers(1, 4, n).astype(float) if weighted else np.ones(n), moved, positive


def area(scores, weights, above, below):
    """AUC of two sets of rows, which may overlap, by all pairs."""
    first, second = scores[above][:, None], scores[below]
    wins = (first > second) + 0.5 * (first == second)
    return weights[above] @ wins @ weights[below] / (weights[above].sum() * weights[below].sum())


def sets(metric, a, positive):
    """The two AUCs of a metric as four masks, written out once more from the paper; a is the protected side."""
    b, negative = ~a, ~positive
    every = np.ones_like(a)
    return {
        "group_auc": (a, b, every, every),
        "inter_group": (a & positive, b & negative, b & positive, a & negative),
        "positive_equality": (a & positive, positive, every, every),
        "negative_equality": (a & negative, negative, every, every),
        "bpsn_bnsp": (positive, a & negative, a & positive, negative),
    }[metric]


def by_definition(metric, scores, weights, moved, positive, slope, shift):
    """Overall AUC, and the signed difference."""
    shifted = np.where(moved, slope * scores + shift, scores)
    first, second, third, fourth = sets(metric, moved, positive)
    difference = area(shifted, weights, first, second) - area(shifted, weights, third, fourth)
    return area(shifted, weights, positive, ~positive), difference


def bound(metric, rows, protected=0):
    return ShiftedAUCs(*rows, auc_differences(metric, 2, protected)[1])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("ties", [True, False])
def test_every_cell_of_the_grid(metric, ties):
    rows = sample(0, ties=ties)
    aucs = bound(metric, rows)
    for slope in SLOPES:
        for shift in SHIFTS:
            auc, difference = by_definition(metric, *rows, slope, shift)
            shifted = np.where(rows[2], slope * rows[0] + shift, rows[0])
            assert auc == pytest.approx(roc_auc_score(rows[3], shifted, sample_weight=rows[1]))
            values = aucs.linear(slope).at(aucs.cross(slope, shift))
            np.testing.assert_allclose(values, [auc, difference], atol=1e-12)
            assert aucs.auc_and_gap(slope, shift) == pytest.approx((auc, abs(difference)), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [True, False])
def test_the_search_finds_what_all_cells_have(metric, seed, weighted):
    rows = sample(seed, weighted=weighted)
    aucs = bound(metric, rows)
    cells = np.array([by_definition(metric, *rows, slope, shift) for slope in SLOPES for shift in SHIFTS])
    auc, gap = cells[:, 0], np.abs(cells[:, 1])
    for kappa in KAPPAS:
        best = best_shift(aucs, kappa, SLOPES, SHIFTS)
        limits = [np.inf] if kappa is None else [kappa, kappa + aucs.granularity]
        limit = next((limit for limit in limits if (gap <= limit + ROUNDING).any()), None)
        if limit is None:
            assert best.gap == pytest.approx(gap.min(), abs=1e-12)
        else:
            assert best.gap <= limit + ROUNDING
            assert best.auc == pytest.approx(auc[gap <= limit + ROUNDING].max(), abs=1e-12)
        assert (best.auc, best.gap) == pytest.approx(aucs.auc_and_gap(best.slope, best.shift))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kappa", [None, 0.2, 0.05, 0.0])
def test_all_shifts_are_at_least_as_good_as_any_fine_grid(metric, kappa):
    rows = sample(1, n=40, ties=False)
    aucs = bound(metric, rows)
    slopes = np.array([0.5, 1.0, 2.0])
    free = best_shift(aucs, kappa, slopes)
    fine = best_shift(aucs, kappa, slopes, np.linspace(-12, 12, 4001))
    assert free.auc >= fine.auc - 1e-5 or free.gap < fine.gap
    assert free.gap <= max(fine.gap, (1.0 if kappa is None else kappa) + aucs.granularity) + ROUNDING


def test_both_sides_are_compared_with_everything_unless_one_is_named():
    rows = sample(2)
    one, other, both = (bound("positive_equality", rows, protected) for protected in (0, 1, None))
    for shift in (-1.0, 0.0, 2.0):
        gaps = [aucs.auc_and_gap(1.0, shift)[1] for aucs in (one, other, both)]
        assert gaps[2] == max(gaps[:2])
        assert gaps[0] != gaps[1]


def test_few_cells_are_looked_at():
    rng = np.random.default_rng(0)
    moved = rng.random(3000) < 0.4
    positive = rng.random(3000) < 0.3
    rows = rng.normal(size=3000) + positive - moved, np.ones(3000), moved, positive
    best = best_shift(bound("group_auc", rows), 0.05, np.arange(101) / 20, np.arange(-30, 31) / 10)
    assert best.n_evaluations < 1000  # of 6161
    assert best.gap <= 0.05


def test_a_slope_and_a_shift_of_the_scores_themselves_come_first():
    scores = np.array([3.0, 2.0, 1.0, 0.0] * 2)
    rows = scores, np.ones(8), np.repeat([True, False], 4), np.tile([True, True, False, False], 2)
    best = best_shift(bound("group_auc", rows), 0.1, SLOPES, np.array([0.0]))
    assert (best.slope, best.shift, best.auc, best.gap) == (1.0, 0.0, 1.0, 0.0)


def test_granularity_is_the_largest_share_of_a_row():
    scores, _, moved, positive = sample(0)
    weights = np.where(moved, 3.0, 1.0)
    aucs = bound("group_auc", (scores, weights, moved, positive))
    assert aucs.granularity == pytest.approx(1 / min(moved.sum(), (~moved).sum()))
    cells = [(moved & positive).sum(), (moved & ~positive).sum(), (~moved & positive).sum(), (~moved & ~positive).sum()]
    assert bound("inter_group", (scores, weights, moved, positive)).granularity == pytest.approx(1 / min(cells))


def test_an_empty_set_prints_the_counts():
    scores, weights, moved, positive = sample(0)
    with pytest.raises(ValueError, match=r"protected group 0 positive, 20 negative; others \d+ positive"):
        bound("inter_group", (scores, weights, moved, positive & ~moved))
    assert np.isfinite(bound("group_auc", (scores, weights, moved, positive & ~moved)).auc_and_gap(1.0, 0.0)).all()
