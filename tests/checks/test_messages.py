"""Lists in messages stay short, and a number is what one can compute with."""

import numpy as np
import pytest

from fairconstrained.checks.messages import is_number, shortened


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], "[]"),
        (["a", 1, (2, "b")], "['a', 1, (2, 'b')]"),
        (np.arange(3), "[0, 1, 2]"),
        (range(10), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"),
        (range(12), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... and 2 more]"),
        ({"a": np.int64(3), "b": 4}, "{'a': 3, 'b': 4}"),
        (dict.fromkeys(range(12), 0), "{0: 0, 1: 0, 2: 0, 3: 0, 4: 0, 5: 0, 6: 0, 7: 0, 8: 0, 9: 0, ... and 2 more}"),
    ],
)
def test_shortened(values, expected):
    assert shortened(values) == expected


@pytest.mark.parametrize("value", [0, -1.5, np.float32(2), np.int64(3)])
def test_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", [True, np.True_, np.nan, np.inf, "1", None, 1j, [1], np.array([1.0])])
def test_what_is_no_number(value):
    assert not is_number(value)
