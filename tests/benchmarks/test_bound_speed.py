"""The benchmark of the seconds of bounds: a small run of all of it, on generated rows."""

import numpy as np
import pytest

from benchmarks import bound_speed
from benchmarks._common import Table
from fairconstrained.datasets import make_biased_classification

pytestmark = pytest.mark.slow


@pytest.fixture
def few_rows(monkeypatch):
    def rows():
        made = make_biased_classification(3000, 3, group_proportions=(0.6, 0.4), separation=1.0, random_state=0)
        return Table("generator", *made)

    for name in ("TWO", "SIXTY", "NETWORKS"):
        monkeypatch.setattr(bound_speed, name, {"generator": rows})


def test_a_line_for_every_bound_of_two_and_of_many_groups(few_rows):
    table = bound_speed.aucs(None)
    assert len(table) == len(bound_speed.TWO_BOUNDS) + len(bound_speed.SIXTY_BOUNDS)
    assert (table.seconds > 0).all()
    assert (table.status == "optimal").all()
    assert (table.gap <= np.where(table.groups == 2, 0.02, 0.2) + 0.01).all()


def test_networks_with_their_bounds_and_without(few_rows):
    table = bound_speed.networks(2000, 1, hidden_layer_sizes=(4,))
    assert table.bound.tolist() == list(bound_speed.NETWORK_BOUNDS)
    assert (table.times * table.free).to_numpy() == pytest.approx(table.bounded.to_numpy())
    assert (table.gap <= [0.0051, 0.025]).all()
    assert (table["new accuracy"] > 0.5).all()
