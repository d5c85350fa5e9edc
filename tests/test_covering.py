"""Covering arrays: everything that they promise to contain is there, in few rows."""

from itertools import combinations, product

import pytest

from tests.covering import covering_array, each_value, every_pair


@pytest.mark.parametrize("sizes", [(3,), (2, 2, 2), (5, 4, 3), (4, 2, 3, 2), (6, 1, 5), (3, 3, 3, 3)])
@pytest.mark.parametrize("strength", [1, 2])
def test_all_combinations_of_any_columns_appear(sizes, strength):
    rows = covering_array(sizes, strength)
    assert rows == covering_array(sizes, strength)
    for columns in combinations(range(len(sizes)), strength):
        found = {tuple(row[column] for column in columns) for row in rows}
        assert found == set(product(*(range(sizes[column]) for column in columns)))


def test_there_are_few_rows():
    assert len(covering_array((24, 3, 2), 1)) == 24
    assert len(covering_array((5, 4, 3), 2)) <= 24  # of 60, and 20 pairs of the first two need a row each
    assert len(covering_array((3, 3, 3, 3), 2)) <= 15  # of 81


def test_rows_to_begin_with_are_kept():
    begin = [(0, 1, 1), (1, 0, 2)]
    rows = covering_array((4, 3, 3), 2, begin)
    assert rows[:2] == begin
    assert {row[:2] for row in rows} == set(product(range(4), range(3)))


def test_pairs_and_tiers():
    values = {"a": "xyz", "b": (1, 2), "c": (True, False)}
    pairs, tiers = (make(**values).args for make in (every_pair, each_value))
    assert pairs[0] == tiers[0] == ("a", "b", "c")
    assert not any(case.marks for case in pairs[1])
    for places in combinations(range(3), 2):
        every = set(product(*(list(values.values())[place] for place in places)))
        for _, cases in (pairs, tiers):
            assert {tuple(case.values[place] for place in places) for case in cases} == every
    fast = [case.values for case in tiers[1] if not case.marks]
    assert len(fast) == 3
    assert [set(column) for column in zip(*fast, strict=True)] == [set(column) for column in values.values()]
    assert {mark.name for case in tiers[1] for mark in case.marks} == {"slow"}
