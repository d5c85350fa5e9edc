"""The benchmark of training loops runs on few rows."""

import pytest

pytest.importorskip("humancompatible.train")
pytest.importorskip("tqdm")

from benchmarks import training_loop

pytestmark = pytest.mark.slow


def test_a_quick_run(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks._common.RESULTS", tmp_path)
    table = training_loop.main(["--quick"])
    assert (tmp_path / "training_loop_quick.csv").exists()
    assert set(table.loop) >= {"no constraint", *training_loop.PACKAGE.values(), "ours, loss parity"}
    assert (table.microseconds > 0).all()
    compared = table[table.loop.isin(training_loop.PACKAGE.values())]
    assert (compared.times_package == 1).all()
