"""The benchmark of imports measures new interpreters, in turns."""

import pandas as pd

from benchmarks import import_time


def test_an_import_takes_longer_than_none(monkeypatch, tmp_path):
    monkeypatch.setattr("benchmarks._common.RESULTS", tmp_path)
    monkeypatch.setattr(import_time, "BASE", "pass")
    monkeypatch.setattr(import_time, "IMPORTS", ("pass", "sum(range(3_000_000))"))
    import_time.main(["--repeats", "3"])
    found = pd.read_csv(tmp_path / "import_time.csv").set_index("import")
    assert found.loc["pass", "beyond"] == 0
    assert (found["beyond"].drop("pass") > 0).all()
    assert (found["seconds"] > 0).all()
