"""Covering arrays: every pair of values is tested, in few tests, and every value in the fast tier."""

from itertools import combinations, product

import pytest

from tests.covering import each_value, every_pair


def pairs(cases, places):
    return {tuple(case.values[place] for place in places) for case in cases}


@pytest.mark.parametrize("sizes", [(4, 2), (2, 2, 2), (5, 4, 3), (4, 2, 3, 2), (6, 1, 5), (3, 3, 3, 3), (24, 3, 2)])
@pytest.mark.parametrize("make", [every_pair, each_value])
def test_every_pair_of_values_meets_in_few_tests(make, sizes):
    values = {name: range(size) for name, size in zip("abcd", sizes, strict=False)}
    names, cases = make(**values).args
    assert names == tuple(values)
    assert all(pairs(cases, places) == set(product(*(range(sizes[i]) for i in places))) for places in pairs_of(sizes))
    largest, next_largest = sorted(sizes)[-2:]
    assert len(cases) <= 1.3 * largest * next_largest
    assert len({case.values for case in cases}) == len(cases)


def pairs_of(sizes):
    return combinations(range(len(sizes)), 2)


def test_tiers():
    assert not any(case.marks for case in every_pair(a="xyz", b=(1, 2), c=(True, False)).args[1])
    cases = each_value(a="xyz", b=(1, 2), c=(True, False)).args[1]
    fast = [case.values for case in cases if not case.marks]
    assert len(fast) == 3
    assert [set(column) for column in zip(*fast, strict=True)] == [set("xyz"), {1, 2}, {True, False}]
    assert {mark.name for case in cases for mark in case.marks} == {"slow"}
