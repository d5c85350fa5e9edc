"""Parametrisations that cover every value, or every pair of values, instead of all combinations.

Most faults need one or two certain values, not a certain combination of all. ``every_pair(a=range(5), b=range(4),
c=range(3))`` makes 20 tests of the 60 combinations; ``each_value`` makes the same number, of which 5 are in the fast
tier and the others in the second one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

__all__ = ["covering_array", "each_value", "every_pair"]

Row = tuple[int, ...]


def covering_array(sizes: Sequence[int], strength: int, begin: Sequence[Row] = ()) -> list[Row]:
    """Rows of indices such that any ``strength`` columns contain all combinations of their indices; deterministic.

    Greedy: after those to ``begin`` with, each row is, among all combinations that contain the most that is not
    covered yet, the first one whose indices were used least.
    """
    columns = list(combinations(range(len(sizes)), min(strength, len(sizes))))

    def covered(row: Row) -> set[tuple[Row, Row]]:
        return {(places, tuple(row[place] for place in places)) for places in columns}

    # the diagonals first: neighbours in the order of the cross share most of their values
    candidates = {row: covered(row) for row in sorted(product(*map(range, sizes)), key=_diagonal)}
    rows = list(begin)
    left = set().union(*candidates.values()).difference(*map(covered, rows))
    used = Counter((place, i) for row in rows for place, i in enumerate(row))
    while left:
        best = max(candidates, key=lambda row: (len(left & candidates[row]), -sum(used[p] for p in enumerate(row))))
        left -= candidates.pop(best)
        used.update(enumerate(best))
        rows.append(best)
    return rows


def _diagonal(row: Row) -> list[int]:
    return [i - row[0] for i in row[1:]]


def _parametrize(values: dict[str, Iterable[Any]], fast: int) -> pytest.MarkDecorator:
    columns = [list(column) for column in values.values()]
    sizes = [len(column) for column in columns]
    in_fast_tier = covering_array(sizes, fast)
    cases = [
        pytest.param(
            *(column[i] for column, i in zip(columns, row, strict=True)),
            marks=() if row in in_fast_tier else pytest.mark.slow,
        )
        for row in sorted(covering_array(sizes, 2, in_fast_tier))
    ]
    return pytest.mark.parametrize(tuple(values), cases)


def every_pair(**values: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise a test such that any value of one parameter meets any value of another one."""
    return _parametrize(values, 2)


def each_value(**values: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise a test such that every value appears in the fast tier, and every pair of values in both together."""
    return _parametrize(values, 1)
