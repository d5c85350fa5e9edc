"""The benchmark of exact heads: a small run of all of it."""

import pytest

from benchmarks import exact_heads

pytestmark = pytest.mark.slow


def test_an_exact_head_makes_as_few_errors_as_a_sweep_and_no_more_than_others():
    table = exact_heads.table("generated", 0, 1000, kappas=(0.02, 0.1))
    assert len(table) == 3 * len(exact_heads.METRICS) * 2
    errors = table.pivot(index=["constraint", "kappa"], columns="method", values="training errors")
    assert (errors["head, exact"] <= errors["head"]).all()
    assert (errors["head, exact"] <= errors["sweep"] + 20).all()  # two errors of a thousand rows
    assert table.loc[table.method == "sweep", "new errors"].isna().all()
