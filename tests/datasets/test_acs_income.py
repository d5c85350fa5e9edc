import sys
import types

import numpy as np
import pandas as pd
import pytest

from fairconstrained.datasets import fetch_acs_income
from fairconstrained.datasets._acs_income import STATES, acs_income_from_table
from fairconstrained.groups import GroupEncoder

FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"]


@pytest.fixture
def table(files):
    return pd.read_csv(files / "psam_p40.csv")


@pytest.fixture
def folktables(monkeypatch, table):
    """A stand-in for folktables that records how it was asked and serves the small file."""
    asked = {}

    class ACSDataSource:
        def __init__(self, **arguments):
            asked.update(arguments)

        def get_data(self, **arguments):
            print("Downloading data ...")
            asked.update(arguments)
            return table

    module = types.ModuleType("folktables")
    module.ACSDataSource = ACSDataSource
    monkeypatch.setitem(sys.modules, "folktables", module)
    return asked


def test_small_file_of_the_census_is_filtered_and_labelled(table):
    # Kept: rows 1-5. Dropped: 16 years, no hours, income of just 100, weight 0, a child.
    acs = acs_income_from_table(table)
    assert acs.data["AGEP"].tolist() == [17, 45, 38, 52, 29]
    assert acs.target.tolist() == [0, 1, 0, 1, 0]  # 50,000 is not above 50,000
    assert acs.sensitive_features.tolist() == [1, 1, 2, 3, 8]
    assert acs.feature_names == FEATURES[:-1]
    assert (acs.data.dtypes == np.float64).all()
    assert acs.frame.columns.tolist() == [*FEATURES[:-1], "RAC1P", "PINCP"]


def test_include_sensitive_gives_the_ten_columns_of_folktables(table):
    acs = acs_income_from_table(table, include_sensitive=True, as_frame=False)
    assert acs.feature_names == FEATURES
    assert acs.data.shape == (5, 10)
    np.testing.assert_array_equal(acs.data[:, 9], acs.sensitive_features)
    assert acs.sensitive_features.dtype == np.int64


def test_several_sensitive_features(table):
    acs = acs_income_from_table(table, sensitive=("SEX", "RAC1P"), as_frame=False)
    assert acs.sensitive_features.tolist() == [[2, 1], [1, 1], [2, 2], [1, 3], [2, 8]]
    assert acs.feature_names == FEATURES[:-2]


def test_what_was_not_asked_is_zero_as_in_folktables(table):
    table.loc[0, "COW"] = np.nan
    acs = acs_income_from_table(table, sensitive=("SEX", "COW"), include_sensitive=True)
    assert acs.data["COW"].tolist() == [0, 6, 3, 1, 4]
    assert acs.sensitive_features["COW"].tolist() == [0, 6, 3, 1, 4]


def test_any_columns_of_the_person_file_are_sensitive(table):
    """Columns that are no features, with missing values: 0, but where 0 is an answer, and text."""
    table["MIL"] = [4, np.nan, 2, np.nan, 4, *[4] * 5]
    table["MLPK"] = [np.nan, np.nan, 1, np.nan, np.nan, *[0] * 5]
    table["SOCP"] = pd.Series(["439061", None, "291141", "119013", None, *["0"] * 5], dtype=object)
    names = ["SEX", "MIL", "MLPK", "SOCP", "ST"]
    acs = acs_income_from_table(table, sensitive=names)
    assert acs.sensitive_names == names
    assert acs.feature_names == [name for name in FEATURES if name != "SEX"]
    groups = acs.sensitive_features
    assert groups["MIL"].tolist() == [4, 0, 2, 0, 4]
    assert groups["MLPK"].tolist() == [-1, -1, 1, -1, -1]
    assert groups["SOCP"].tolist() == ["439061", "0", "291141", "119013", "0"]
    assert groups["ST"].tolist() == [40] * 5
    assert (groups[["SEX", "MIL", "MLPK", "ST"]].dtypes == np.int64).all()
    assert acs.frame.columns.tolist() == [*acs.feature_names, *names, "PINCP"]
    # the estimators see the combinations
    encoder = GroupEncoder(groups)
    assert encoder.labels[0] == (1, 0, -1, "0", 40)
    assert len(encoder.labels) == 5

    arrays = acs_income_from_table(table, sensitive=names, include_sensitive=True, as_frame=False)
    assert arrays.feature_names == [*FEATURES, "MIL", "MLPK", "SOCP", "ST"]
    assert arrays.categories == {"SOCP": ["0", "119013", "291141", "439061"]}
    np.testing.assert_array_equal(arrays.data[:, -2], [3, 0, 2, 1, 0])
    np.testing.assert_array_equal(arrays.sensitive_features[:, 1], groups["MIL"])


@pytest.mark.parametrize("sensitive", ["PINCP", ("SEX", "RELSHIPP")])
def test_a_column_that_the_file_has_not_or_the_label_is_refused(table, sensitive):
    with pytest.raises(ValueError, match=r"sensitive must be one or several of \['RT', .*more\], each once; got"):
        acs_income_from_table(table, sensitive=sensitive)


def test_a_table_of_another_year_is_refused(table):
    with pytest.raises(ValueError, match=r"not an ACS person file of 2014 to 2018: .*\['RELP'\]"):
        acs_income_from_table(table.rename(columns={"RELP": "RELSHIPP"}))


def test_folktables_is_asked_for_the_right_files(folktables, tmp_path, capsys):
    acs = fetch_acs_income(["OK", "TX"], 2017, data_home=tmp_path)
    assert len(acs.target) == 5
    assert folktables == {
        "survey_year": "2017",
        "horizon": "1-Year",
        "survey": "person",
        "root_dir": str(tmp_path / "folktables"),
        "states": ["OK", "TX"],
        "download": True,
    }
    assert capsys.readouterr().out == ""


def test_one_state_may_be_a_string_and_X_y_are_returned(folktables, tmp_path):
    X, y = fetch_acs_income("OK", data_home=tmp_path, return_X_y=True)
    assert folktables["states"] == ["OK"]
    assert X.shape == (5, 9)
    assert y.sum() == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"states": "Oklahoma"}, "states must be two-letter codes"),
        ({"states": ("OK", "XX")}, "states must be two-letter codes"),
        ({"states": ()}, "states must be two-letter codes"),
        ({"year": 2019}, "year must be from 2014 to 2018; got 2019"),
        ({"sensitive": ()}, r"sensitive must be one or several of the columns, each once; got \(\)"),
        ({"sensitive": ("SEX", "SEX")}, "sensitive must be one or several of the columns, each once"),
    ],
)
def test_arguments_out_of_range_are_refused_before_any_download(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        fetch_acs_income(data_home=tmp_path, **arguments)


def test_without_folktables_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "folktables", None)
    with pytest.raises(ImportError, match=r"pip install 'fairconstrained\[datasets\]'"):
        fetch_acs_income(data_home=tmp_path)


@pytest.mark.parametrize("missing", [[], ["COW", "OCCP"]])
def test_the_real_folktables_agrees_on_the_small_file(table, tmp_path, missing):
    folktables = pytest.importorskip("folktables")
    folder = tmp_path / "folktables" / "2018" / "1-Year"
    folder.mkdir(parents=True)
    table.loc[0, missing] = np.nan
    table.to_csv(folder / "psam_p40.csv", index=False)
    acs = fetch_acs_income(data_home=tmp_path, include_sensitive=True, as_frame=False)
    X, y, groups = folktables.ACSIncome.df_to_numpy(table)
    np.testing.assert_array_equal(acs.data, X)
    np.testing.assert_array_equal(acs.target, y)
    np.testing.assert_array_equal(acs.sensitive_features, groups)


def test_state_codes_are_those_of_folktables():
    load_acs = pytest.importorskip("folktables.load_acs")
    assert set(STATES) == set(load_acs.state_list)


def test_real_rows_of_oklahoma_keep_their_published_rates(real_data):
    sample = real_data("acs_income_2018_OK_sample.parquet")
    # The sample is past the filter and has the label only, so income and weight are put back.
    income = np.where(sample["PINCP_gt_50000"] == 1, 50_001, 50_000)
    acs = acs_income_from_table(sample.assign(PINCP=income, PWGTP=1))
    white = acs.sensitive_features == 1
    assert len(acs.target) == 8_241
    assert white.sum() == 6_142
    assert round(100 * acs.target.mean(), 2) == 28.76
    assert round(100 * acs.target[white].mean(), 2) == 31.41
    assert round(100 * acs.target[~white].mean(), 2) == 21.01
