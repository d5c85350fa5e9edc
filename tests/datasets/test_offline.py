"""Without a network every ``fetch_*`` fails with one sentence that says what to do."""

import sys
import types
import warnings
from http.client import IncompleteRead
from urllib.error import URLError

import pytest

from fairconstrained.datasets import fetch_acs_income, fetch_adult, fetch_bank_marketing, fetch_compas
from fairconstrained.datasets._download import or_connection_error

OPENML = "fairconstrained.datasets._download.fetch_openml"


def unreachable(*args, **kwargs):
    # scikit-learn warns at every retry before it gives up
    warnings.warn("A network error occurred while downloading https://example.org. Retrying...", stacklevel=2)
    raise URLError("Name or service not known")


def assert_one_helpful_sentence(error: BaseException, *parts: str) -> None:
    message = str(error)
    assert "\n" not in message
    assert message.endswith(".")
    assert ". " not in message
    assert message.startswith("Could not download ")
    assert "connect this machine to the internet and call again, or copy " in message
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("fetch", "what"),
    [
        (fetch_adult, "the Adult data (OpenML dataset 1590)"),
        (fetch_bank_marketing, "the bank marketing data (OpenML dataset 1461)"),
        (fetch_compas, "the COMPAS data (OpenML dataset 42193)"),
    ],
)
def test_openml_out_of_reach(fetch, what, monkeypatch, tmp_path):
    monkeypatch.setattr(OPENML, unreachable)
    with pytest.raises(ConnectionError) as caught:
        fetch(data_home=tmp_path)
    assert_one_helpful_sentence(caught.value, what, "Name or service not known", str(tmp_path))
    assert isinstance(caught.value.__cause__, URLError)


def test_propublica_out_of_reach(monkeypatch, tmp_path):
    monkeypatch.setattr("fairconstrained.datasets._compas.fetch_file", unreachable)
    with pytest.raises(ConnectionError) as caught:
        fetch_compas(source="propublica", data_home=tmp_path)
    folder = str(tmp_path / "compas")
    assert_one_helpful_sentence(caught.value, "ProPublica's compas-scores-two-years.csv", folder)


def test_census_out_of_reach(monkeypatch, tmp_path, capsys):
    class ACSDataSource:
        def __init__(self, **arguments):
            pass

        def get_data(self, **arguments):
            print("Exception: no route to host")  # folktables prints the failure and goes on ...
            raise FileNotFoundError(2, "No such file or directory", "psam_p40.csv")  # ... to the missing file

    module = types.ModuleType("folktables")
    module.ACSDataSource = ACSDataSource
    monkeypatch.setitem(sys.modules, "folktables", module)
    with pytest.raises(ConnectionError) as caught:
        fetch_acs_income(("OK", "TX"), data_home=tmp_path)
    assert_one_helpful_sentence(caught.value, "of OK, TX for 2018", str(tmp_path / "folktables"))
    assert "psam_p40" not in str(caught.value)
    assert isinstance(caught.value.__cause__, FileNotFoundError)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("error", [TimeoutError("timed out"), ConnectionResetError("reset"), IncompleteRead(b"")])
def test_every_kind_of_network_failure_becomes_a_connection_error(error):
    def fail():
        raise error

    with pytest.raises(ConnectionError, match=r"^Could not download the data because of") as caught:
        or_connection_error(fail, what="the data", remedy="copy it")
    assert caught.value.__cause__ is error


@pytest.mark.parametrize("error", [PermissionError("read-only folder"), ValueError("bad checksum")])
def test_failures_that_no_connection_repairs_pass_unchanged(error):
    def fail():
        raise error

    with pytest.raises(type(error)) as caught:
        or_connection_error(fail, what="the data", remedy="copy it")
    assert caught.value is error


def test_other_warnings_of_the_download_are_kept():
    def fetch():
        warnings.warn("Version 3 of dataset is inactive", UserWarning, stacklevel=2)
        return 1

    with pytest.warns(UserWarning, match="inactive"):
        assert or_connection_error(fetch, what="the data", remedy="copy it") == 1
