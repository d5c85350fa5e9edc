"""Percentile intervals: the three ways to write them, and the mistakes they refuse."""

import numpy as np
import pytest

from fairconstrained.metrics import PercentileIntervals

LABELS = ("a", "b")


def test_clip_of_one_interval():
    intervals = PercentileIntervals.parse((0.25, 0.75), LABELS)
    ranks = np.array([[0.0, 0.25], [0.5, 0.7], [0.75, 1.0]])
    # min(F, 0.75) - min(F, 0.25)
    expected = [[0.0, 0.0], [0.25, 0.45], [0.5, 0.5]]
    np.testing.assert_allclose(intervals.clip(ranks), expected)
    np.testing.assert_allclose(intervals.length, 0.5)


def test_clip_of_a_union_adds_the_pieces_in_any_order():
    intervals = PercentileIntervals.parse([(0.6, 1.0), (0.0, 0.2)], LABELS)
    # Rank 0.7 holds all of [0, 0.2) and 0.1 of [0.6, 1).
    np.testing.assert_allclose(intervals.clip(np.array([0.1, 0.7])), [0.1, 0.3])
    np.testing.assert_allclose(intervals.length, 0.6)


def test_intervals_by_group_with_different_numbers_of_pieces():
    intervals = PercentileIntervals.parse({"b": [(0.0, 0.2), (0.6, 1.0)], "a": (0.5, 1.0)}, LABELS)
    np.testing.assert_allclose(intervals.clip(np.array([[0.7, 0.7], [0.1, 0.1]])), [[0.2, 0.3], [0.0, 0.1]])
    np.testing.assert_allclose(intervals.length, [0.5, 0.6])
    inside = intervals.contains(np.array([[0.0, 0.0], [0.5, 0.5], [0.6, 0.6]]))
    assert inside.tolist() == [[False, True], [True, False], [True, True]]


def test_contains_is_half_open_and_forgives_rounding():
    intervals = PercentileIntervals.parse((0.1 + 0.2, 0.9), ("a",))
    assert 0.1 + 0.2 != 0.3
    ranks = np.array([[0.29], [0.3], [0.899], [0.9], [0.3 * 3]])
    assert intervals.contains(ranks).ravel().tolist() == [False, True, True, False, False]


def test_adjacent_pieces_are_disjoint():
    pieces = PercentileIntervals.parse([(0.0, 0.1 + 0.2), (0.3, 0.5)], LABELS)
    np.testing.assert_allclose(pieces.length, 0.5)


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        ((0.3, 0.3), "alpha < beta"),
        ((0.5, 0.2), "alpha < beta"),
        ((0.2, 1.5), r"must lie in \[0, 1\]"),
        ((-0.1, 0.5), r"must lie in \[0, 1\]"),
        ((5, 30), "Write 5% as 0.05"),
        ((0.1, np.nan), r"must lie in \[0, 1\]"),
        ([(0.0, 0.4), (0.3, 0.6)], "must not overlap"),
        ([(0.5, 0.6), (0.0, 1.0)], "must not overlap"),
        (0.3, "must be a pair"),
        ([], "must be a pair"),
        ((0.1, 0.2, 0.3), "must be a pair"),
        ([(0.1, 0.2), (0.3,)], "must be a pair"),
        (("low", "high"), "must be a pair"),
        (None, "must be a pair"),
        ({"a": (0.0, 0.5)}, r"one entry for each of the groups \['a', 'b'\]"),
        ({"a": (0.0, 0.5), "b": (0.0, 0.5), "c": (0.0, 0.5)}, "got entries for .*'c'"),
        ({"a": (0.0, 0.5), "b": (0.5, 0.0)}, "alpha < beta"),
    ],
)
def test_mistakes_are_named(interval, message):
    with pytest.raises(ValueError, match=message):
        PercentileIntervals.parse(interval, LABELS)


# --- the inverse of the clipped rank

UNIONS = {
    "whole": (0.0, 1.0),
    "one interval": (0.2, 0.6),
    "union": [(0.1, 0.3), (0.5, 0.9)],
    "touching": [(0.0, 0.4), (0.4, 0.7)],
    "by group": {"a": (0.2, 0.6), "b": [(0.0, 0.1), (0.3, 0.5), (0.8, 1.0)]},
}


@pytest.mark.parametrize("interval", UNIONS.values(), ids=UNIONS.keys())
@pytest.mark.parametrize("side", ["left", "right"])
def test_rank_at_is_the_inverse_of_the_share_of_the_interval(interval, side):
    intervals = PercentileIntervals.parse(interval, LABELS)
    shares = np.linspace(0, 1, 61)
    ranks = intervals.rank_at(shares, side)
    assert ranks.shape == (intervals.alpha.shape[1], 61)
    back = intervals.clip(np.broadcast_to(ranks.T, (61, 2))) / intervals.length
    np.testing.assert_allclose(back, np.broadcast_to(shares[:, None], (61, 2)), atol=1e-12)


@pytest.mark.parametrize("interval", UNIONS.values(), ids=UNIONS.keys())
def test_rank_at_is_the_outermost_rank_of_its_side(interval):
    """Against all ranks of a fine grid that have the share."""
    intervals = PercentileIntervals.parse(interval, LABELS)
    grid = np.linspace(0, 1, 2001)
    of_grid = intervals.clip(np.repeat(grid[:, None], 2, axis=1)) / intervals.length
    # the ends of pieces are where many ranks have one share
    for share in np.unique(np.round(np.concatenate([[0.0, 1.0, 0.37], of_grid[(grid * 10 % 1) < 1e-9].ravel()]), 12)):
        sides = [np.broadcast_to(intervals.rank_at(np.array([share]), side)[:, 0], 2) for side in ("left", "right")]
        for group, (left, right) in enumerate(zip(*sides, strict=True)):
            having = grid[np.abs(of_grid[:, group] - share) < 1e-9]
            assert left <= having.min(initial=1.0) + 1e-9
            assert right >= having.max(initial=0.0) - 1e-9
            assert left <= right + 1e-12


def test_rank_at_by_hand():
    union = PercentileIntervals.parse([(0.1, 0.3), (0.5, 0.9)], LABELS)
    shares = np.array([-1.0, 0.0, 1 / 6, 1 / 3, 2 / 3, 1.0, 2.0])
    np.testing.assert_allclose(union.rank_at(shares, "left")[0], [0.0, 0.0, 0.2, 0.3, 0.7, 0.9, 0.9])
    np.testing.assert_allclose(union.rank_at(shares, "right")[0], [0.1, 0.1, 0.2, 0.5, 0.7, 1.0, 1.0])
