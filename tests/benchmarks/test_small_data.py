"""The benchmark of small data: a small run of all models."""

import pytest

from benchmarks import small_data

pytestmark = pytest.mark.slow


def test_every_bound_has_a_line():
    found = small_data.table(1, (300, 4), repeats=1)
    assert list(found["bound"]) == list(small_data.MODELS)
    assert (found["times"] > 0).all()
    assert (found["least"] == found["most"]).all()  # of one set of rows
