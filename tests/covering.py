"""Parametrisations that cover every value, or every pair of values, instead of all combinations.

Most faults need one or two certain values, not a certain combination of all. ``every_pair(a=range(5), b=range(4),
c=range(3))`` makes 20 tests of the 60 combinations; ``each_value`` makes the same number, of which 5 are in the fast
tier and the others in the second one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from allpairspy import AllPairs

__all__ = ["each_value", "every_pair"]


def _parametrize(values: dict[str, Iterable[Any]], fast: list[tuple[int, ...]]) -> pytest.MarkDecorator:
    """Test the rows of indices ``fast`` in the fast tier, and the others that all pairs need in the second one.

    Without any ``fast``, all are in the fast tier.
    """
    columns = [list(column) for column in values.values()]
    others = map(tuple, AllPairs([range(len(column)) for column in columns], previously_tested=fast))
    cases = [(row, ()) for row in fast] + [(row, pytest.mark.slow if fast else ()) for row in others]
    return pytest.mark.parametrize(
        tuple(values),
        [
            pytest.param(*(column[i] for column, i in zip(columns, row, strict=True)), marks=marks)
            for row, marks in sorted(cases, key=lambda case: case[0])
        ],
    )


def every_pair(**values: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise a test such that any value of one parameter meets any value of another one."""
    return _parametrize(values, [])


def each_value(**values: Iterable[Any]) -> pytest.MarkDecorator:
    """Parametrise a test such that every value appears in the fast tier, and every pair of values in both together."""
    sizes = [len(list(column)) for column in values.values()]
    return _parametrize(values, [tuple(i % size for size in sizes) for i in range(max(sizes))])
