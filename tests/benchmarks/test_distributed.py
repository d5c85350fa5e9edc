"""The benchmark of fits past one machine: a fit from a file, and the model of costs."""

from __future__ import annotations

import pandas as pd
import pytest

from benchmarks import distributed

pytestmark = pytest.mark.slow


def test_fits_from_a_file_keep_the_bound(monkeypatch, tmp_path):
    monkeypatch.setattr(distributed, "RESULTS", tmp_path)
    table = distributed.measure_disk(quick=True)
    assert (table["train_gap"] <= distributed.KAPPA + 1e-3).all()
    assert (table["peak_gib"] < 2).all()


def test_the_model_of_costs_adds_up_what_was_measured(monkeypatch, tmp_path):
    monkeypatch.setattr(distributed, "RESULTS", tmp_path)
    pd.DataFrame({"rounds": [100], "bytes_per_row_and_round": [8.0]}).to_csv(
        tmp_path / "distributed_traffic.csv", index=False
    )
    timed = {"rows": [1000], "features": [50], "processor_seconds_1": [4.0], "share_of_products": [0.5]}
    pd.DataFrame(timed).to_csv(tmp_path / "distributed_processes.csv", index=False)
    pd.DataFrame({"bytes_per_row": [200.0]}).to_csv(tmp_path / "distributed_disk.csv", index=False)
    table = distributed.measure_machines(quick=False).set_index(["rows", "machines"])
    # two of four seconds are shared by all processes, and two by the first two
    assert table.loc[(1e7, 8), "seconds_of_products"] == pytest.approx(2 / 1000 * 1e7 / 8)
    assert table.loc[(1e7, 1), "seconds_of_the_first"] == pytest.approx(2 / 1000 * 1e7)
    assert table.loc[(1e7, 8), "seconds_of_the_first"] == pytest.approx(2 / 1000 * 1e7)
    assert table.loc[(1e7, 2), "seconds_of_sending"] == pytest.approx(100 * (50e-6 + 8e7 / 1.25e9))
    assert table.loc[(1e7, 1), "seconds_of_sending"] == 0
    assert table.loc[(1e7, 2), "gib_of_the_first"] == pytest.approx(200 * 1e7 / 2**30)


def test_the_first_of_two_processes_may_hold_no_rows():
    halves, none = (distributed.in_processes(2, distributed.dense, 600, 4, share=share) for share in (0.5, 0.0))
    assert halves["rank"].tolist() == none["rank"].tolist() == [0, 1]
    assert (halves["of_rows"] > 0).all()
    assert none["of_rows"][0] == 0 < none["of_rows"][1]
    assert halves["bytes"][0] < none["bytes"][0]  # they are sent for the rows of the second process
    assert none["objective"][0] == pytest.approx(halves["objective"][0], rel=1e-9)
