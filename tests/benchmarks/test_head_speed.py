"""The benchmark of the seconds of heads: a small run of all of it."""

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from benchmarks import head_speed
from fairconstrained.datasets import make_biased_classification

pytestmark = pytest.mark.slow


def test_a_line_for_the_model_every_head_and_both_paths(monkeypatch):
    monkeypatch.setattr(head_speed, "KAPPAS", (0.1, 0.05))
    X, y, groups = make_biased_classification(2000, 4, group_proportions=(0.6, 0.4), random_state=0)
    table = head_speed.table(X, y, groups, n_trees=10)
    assert len(table) == len(head_speed.HEADS) + 3
    assert (table.seconds > 0).all()
    bounded = table.dropna(subset="status")
    assert np.isfinite(bounded["training gap"]).all()
    assert (bounded["training gap"] <= 0.05 + 0.01).all()
    assert (table.times.dropna() > 0).all()
