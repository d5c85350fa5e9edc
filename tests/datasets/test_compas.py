import hashlib
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fairconstrained.datasets import fetch_compas
from fairconstrained.datasets._compas import (
    OPENML_ID,
    PROPUBLICA_FILE,
    compas_from_openml,
    compas_from_propublica,
)

COLUMNS = [
    "age",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "sex",
    "age_cat",
    "c_charge_degree",
]


HASH = "fairconstrained.datasets._compas.PROPUBLICA_SHA256"
DOWNLOAD = "sklearn.datasets._base.urlretrieve"


@pytest.fixture
def home(openml_cache, files, monkeypatch):
    """A cache that holds both sources; the hash that is expected is that of the small file."""
    monkeypatch.setattr(HASH, hashlib.sha256((files / PROPUBLICA_FILE).read_bytes()).hexdigest())
    folder = openml_cache("compas_two_years.arff", OPENML_ID, "twoyearrecid")
    (folder / "compas").mkdir()
    shutil.copy(files / PROPUBLICA_FILE, folder / "compas")
    return folder


def test_small_file_in_the_format_of_openml(home):
    compas = fetch_compas(data_home=home)
    assert compas.feature_names == COLUMNS
    assert compas.target.tolist() == [1, 1, 1, 0, 1, 0, 1, 0]
    assert compas.sensitive_features.tolist() == [
        *["African-American"] * 2,
        *["Caucasian"] * 4,
        *["African-American"] * 2,
    ]
    assert compas.data.iloc[0].tolist() == [34, 0, 0, 0, 0, "Male", "25 - 45", "F"]
    assert compas.data.iloc[7].tolist() == [63, 0, 0, 0, 0, "Female", "Greater than 45", "M"]
    assert compas.frame.columns.tolist() == [*COLUMNS, "race", "two_year_recid"]


def test_small_file_of_propublica_is_filtered_as_they_did(home):
    compas = fetch_compas(source="propublica", data_home=home)
    # Kept: rows 1-4 (both ends of the 30 days). Dropped: +31 days, -31 days, days missing, degree O,
    # is_recid -1, no score.
    assert compas.data["age"].tolist() == [34, 24, 39, 69]
    assert compas.sensitive_features.tolist() == [
        "African-American",
        "African-American",
        "Caucasian",
        "Other",
    ]
    assert compas.target.tolist() == [1, 1, 0, 0]
    assert compas.data.index.tolist() == [0, 1, 2, 3]


def test_both_sources_have_the_same_columns_and_types(home):
    openml, propublica = fetch_compas(data_home=home), fetch_compas(source="propublica", data_home=home)
    assert openml.feature_names == propublica.feature_names
    assert openml.categories["age_cat"] == propublica.categories["age_cat"]
    for name in COLUMNS:
        assert openml.data[name].dtype.kind == propublica.data[name].dtype.kind


def test_other_sensitive_features_and_arrays(home):
    compas = fetch_compas(data_home=home, sensitive=("race", "sex"), as_frame=False)
    assert compas.sensitive_features[3].tolist() == ["Caucasian", "Female"]
    assert compas.feature_names == [name for name in COLUMNS if name != "sex"]
    assert compas.data.dtype == np.float64
    with_race = fetch_compas(data_home=home, include_sensitive=True)
    assert with_race.feature_names == [*COLUMNS, "race"]
    X, y = fetch_compas(data_home=home, return_X_y=True)
    assert X.shape == (8, 8)
    assert y.shape == (8,)


def test_the_file_of_one_revision_is_downloaded(files, tmp_path, monkeypatch):
    content, urls = (files / PROPUBLICA_FILE).read_bytes(), []

    def retrieve(url, path):
        urls.append(url)
        Path(path).write_bytes(content)

    monkeypatch.setattr(DOWNLOAD, retrieve)
    monkeypatch.setattr(HASH, hashlib.sha256(content).hexdigest())
    first, second = (fetch_compas(source="propublica", data_home=tmp_path) for _ in range(2))
    pd.testing.assert_frame_equal(first.data, second.data)
    (url,) = urls  # the second time from the cache
    assert re.search(rf"/propublica/compas-analysis/[0-9a-f]{{40}}/{PROPUBLICA_FILE}$", url)


def test_another_file_is_not_read_in_its_place(files, tmp_path, monkeypatch):
    """Neither from the cache nor from the network."""
    folder = tmp_path / "compas"
    folder.mkdir()
    shutil.copy(files / PROPUBLICA_FILE, folder)  # not the whole file
    monkeypatch.setattr(DOWNLOAD, lambda url, path: Path(path).write_bytes(b"age,sex\n30,Male\n"))
    with (
        pytest.warns(UserWarning, match="of existing local file .* differs from expected"),
        pytest.raises(ConnectionError, match=r"SHA256 checksum of .* differs from expected \(c451db85\w+\); connect"),
    ):
        fetch_compas(source="propublica", data_home=tmp_path)
    assert [path.name for path in folder.iterdir()] == [PROPUBLICA_FILE]


def test_unknown_source_and_sensitive_features_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"source must be one of \['openml', 'propublica'\]; got 'kaggle'"):
        fetch_compas(source="kaggle", data_home=tmp_path)
    with pytest.raises(ValueError, match="sensitive must be one or several of"):
        fetch_compas(sensitive="zip", data_home=tmp_path)


def test_inconsistent_one_hot_columns_are_refused(files):
    header, rows = (files / "compas_two_years.arff").read_text().split("@DATA\n")
    names = [line.split()[1] for line in header.splitlines() if line.startswith("@ATTRIBUTE")]
    table = pd.DataFrame([row.split(",") for row in rows.splitlines()], columns=names)
    assert compas_from_openml(table).data.shape == (8, 8)
    with pytest.raises(ValueError, match=r"race_\* must hold exactly one 1"):
        compas_from_openml(table.assign(race_Caucasian="1"))
    with pytest.raises(ValueError, match=r"lacks the columns \['race_Caucasian'\]"):
        compas_from_openml(table.drop(columns="race_Caucasian"))


def test_published_counts_on_the_real_table(real_data):
    table = real_data("compas_two_years.parquet")
    compas = compas_from_propublica(table)
    counts = compas.sensitive_features.value_counts()
    assert len(compas.target) == 6_172
    assert counts["African-American"] == 3_175
    assert counts["Caucasian"] == 2_103
    assert round(100 * compas.target.mean(), 2) == 45.51
    two = compas.sensitive_features.isin(["African-American", "Caucasian"])
    assert round(100 * compas.target[two].mean(), 2) == 47.04  # what DESCR says of OpenML's 5278 rows
