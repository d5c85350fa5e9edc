"""The ACS data of the loss parity benchmark: all rows where they can be had, the sample otherwise."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.loss_parity import acs_income_ok
from fairconstrained.datasets import make_acs_like

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _no_table_is_kept():
    acs_income_ok.load.cache_clear()
    yield
    acs_income_ok.load.cache_clear()


def unreachable(*arguments, **options):
    raise ConnectionError("Could not download.")


def test_all_rows_where_they_can_be_had(monkeypatch, capsys):
    asked, acs = [], make_acs_like(50, random_state=0)

    def fetch(*arguments, **options):
        asked.append((arguments, options))
        return acs

    monkeypatch.setattr(acs_income_ok, "fetch_acs_income", fetch)
    table = acs_income_ok.load()
    assert acs_income_ok.load() is table
    assert asked == [(("OK", 2018), {"sensitive": "RAC1P"})]
    assert capsys.readouterr().out == "acs_income_ok: all rows.\n"
    np.testing.assert_array_equal(table.X, acs.data)
    np.testing.assert_array_equal(table.y > 0, acs.target == 1)
    np.testing.assert_array_equal(table.groups == "white", acs.sensitive_features == 1)


def test_the_sample_otherwise_and_a_word_about_it(monkeypatch, tmp_path, capsys):
    acs = make_acs_like(50, random_state=0)
    frame = acs.data.assign(RAC1P=acs.sensitive_features, PINCP_gt_50000=acs.target)
    frame.to_parquet(tmp_path / acs_income_ok.SAMPLE)
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(tmp_path))
    monkeypatch.setattr(acs_income_ok, "fetch_acs_income", unreachable)
    table = acs_income_ok.load()
    assert "the sample of 46 % of the rows. Could not download." in capsys.readouterr().out
    np.testing.assert_array_equal(table.X, acs.data)
    np.testing.assert_array_equal(table.y > 0, acs.target == 1)
    assert pd.unique(table.groups).tolist() == ["white", "non-white"]


def test_neither_of_them(monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRCONSTRAINED_DATA", str(tmp_path))
    monkeypatch.setattr(acs_income_ok, "fetch_acs_income", unreachable)
    with pytest.raises(SystemExit, match=r"There is no acs_income_2018_OK_sample.parquet .*; Could not download\."):
        acs_income_ok.load()
