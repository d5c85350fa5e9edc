"""The benchmark of linear fits against the reduction: a small run of all methods."""

import numpy as np
import pytest

from benchmarks import speed
from benchmarks._common import Table
from fairconstrained.datasets import make_biased_classification

pytestmark = pytest.mark.slow


def test_ours_are_within_the_gap_of_the_reduction():
    X, y, groups = make_biased_classification(2000, 10, group_proportions=(0.6, 0.4), random_state=0)
    train, new = speed.parts_of(Table("generated", X, 2 * y - 1, groups))
    reduction, *ours = speed.lines(train, new, "demographic_parity", 0.05, repeats=1)
    assert [row["method"] for row in ours] == [
        "logistic",
        "logistic, by group",
        "zero_one",
        "zero_one, by group",
    ]
    one_row = 1 / np.unique(train.groups, return_counts=True)[1].min()
    for row in ours:
        assert row["gap"] <= reduction["gap"] + one_row
        assert row["times faster"] == pytest.approx(reduction["seconds"] / row["seconds"])
        assert row["passes"] > 5


def test_passes_count_the_numbers_that_are_read():
    X = np.ones((6, 4))
    with speed.counted_passes(X.size) as read:
        speed.linear.product(X, np.ones(4))
        speed.linear.sums_of_products(X[:3], np.ones((3, 2)))
    assert read == [1.0, 0.5]
