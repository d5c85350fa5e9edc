"""The benchmark of boosted trees: a small run of all of it."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("lightgbm")

from benchmarks import boosting_speed
from benchmarks.any_model.data import Case, Part
from fairconstrained.datasets import make_biased_classification

pytestmark = pytest.mark.slow


@pytest.fixture
def rows(monkeypatch):
    X, y, groups = make_biased_classification(3000, 4, group_proportions=(0.6, 0.4), random_state=0)
    table = pd.DataFrame(X).add_prefix("x")
    table["kind"] = pd.Categorical(np.where(y, "a", "b"))
    is_train = np.arange(3000) < 2000
    part = Part(table, np.asarray(y > 0, dtype=int), groups)
    cases = {"made": Case(lambda: (part, is_train), "made", False)}
    monkeypatch.setattr(boosting_speed, "CASES", cases)
    return is_train


def test_a_line_for_every_method_and_split(rows):
    table = boosting_speed.table(["made"], n_splits=2, n_trees=20)
    assert table.groupby(["data", "split"])["method"].nunique().eq(1 + len(boosting_speed.VARIANTS)).all()
    bounded = table[table.method.str.startswith("training rows")]
    assert (bounded.excess <= bounded.granularity).all()
    assert (bounded.train_gap <= boosting_speed.KAPPA + bounded.granularity + 1e-9).all()
    assert bounded.times_lightgbm.gt(0).all()
    assert table.test_accuracy.between(0.5, 1).all()


def test_splits_have_the_size_of_the_official_one(rows):
    first, second = boosting_speed.splits(rows, 2)
    np.testing.assert_array_equal(first, rows)
    assert first.sum() == second.sum()
    assert (first != second).any()


def test_a_quick_run_prints_and_writes_its_table(rows, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("benchmarks._common.RESULTS", tmp_path)
    monkeypatch.setattr(boosting_speed, "set_threads", lambda threads: None)
    boosting_speed.main(["made", "--quick"])
    assert (tmp_path / "boosting_speed_quick.csv").is_file()
    assert "training rows" in capsys.readouterr().out
