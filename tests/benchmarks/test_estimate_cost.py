"""The benchmark of what estimates for new rows take: a small run of it."""

import pytest

from benchmarks import estimate_cost

pytestmark = pytest.mark.slow


def test_estimates_are_counted_apart_from_fits():
    table = estimate_cost.table("generated", kappas=(0.05,))
    assert list(table.bound) == list(estimate_cost.models())
    assert (table[["fit", "estimate"]] > 0).all(axis=None)
    assert table.times.tolist() == pytest.approx((table.estimate / table.fit).tolist())
