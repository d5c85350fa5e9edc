import gzip
import hashlib
from importlib import resources

import numpy as np
import pandas as pd
import pytest

from fairconstrained.datasets import load_law_school
from fairconstrained.datasets._law_school import law_school_from_table

FEATURES = ["decile1b", "decile3", "lsat", "ugpa", "zfygpa", "zgpa", "fulltime", "fam_inc", "male", "tier"]
DATA = resources.files("fairconstrained.datasets") / "data"


def test_group_sizes_and_pass_rates_are_the_published_ones():
    law = load_law_school()
    white = law.sensitive_features == "White"
    assert len(law.target) == 20_798
    assert white.sum() == 17_491
    assert (law.sensitive_features == "Non-White").sum() == 3_307
    assert law.target.sum() == 18_505
    assert 100 * law.target.mean() == pytest.approx(88.98, abs=0.01)  # 88.975, published as 88.98
    assert round(100 * law.target[white].mean(), 2) == 92.13
    assert round(100 * law.target[~white].mean(), 2) == 72.30


def test_arrays_are_numeric_finite_and_without_race():
    law = load_law_school()
    assert law.data.shape == (20_798, 10)
    assert law.data.dtype == np.float64
    assert np.isfinite(law.data).all()
    assert law.feature_names == FEATURES
    assert law.sensitive_names == ["race"]
    assert law.target.dtype == np.int64
    assert set(law.target) == {0, 1}
    assert law.target_names.tolist() == ["failed", "passed"]
    assert law.frame is None
    assert law.categories == {}


def test_columns_stay_in_the_ranges_that_the_description_gives():
    data = load_law_school(as_frame=True).data
    ranges = {
        "decile1b": (1, 10),
        "decile3": (1, 10),
        "lsat": (11, 48),
        "ugpa": (1.5, 4.0),
        "zfygpa": (-3.35, 3.48),
        "zgpa": (-6.44, 4.01),
        "fulltime": (1, 2),
        "fam_inc": (1, 5),
        "male": (0, 1),
        "tier": (1, 6),
    }
    assert {name: (column.min(), column.max()) for name, column in data.items()} == ranges
    assert data.groupby("tier")["lsat"].mean().is_monotonic_increasing  # what the description says of tier


def test_frame_holds_the_same_values_as_the_arrays():
    arrays, frames = load_law_school(), load_law_school(as_frame=True)
    np.testing.assert_array_equal(frames.data.to_numpy(), arrays.data)
    np.testing.assert_array_equal(frames.target.to_numpy(), arrays.target)
    np.testing.assert_array_equal(frames.sensitive_features.to_numpy(dtype=object), arrays.sensitive_features)
    assert isinstance(frames.sensitive_features, pd.Series)
    assert frames.frame.columns.tolist() == [*FEATURES, "race", "pass_bar"]


def test_include_sensitive_appends_race_as_category_or_code():
    frames = load_law_school(as_frame=True, include_sensitive=True)
    assert frames.feature_names == [*FEATURES, "race"]
    assert frames.data["race"].dtype == "category"
    assert frames.frame.columns.tolist() == [*FEATURES, "race", "pass_bar"]
    arrays = load_law_school(include_sensitive=True)
    assert arrays.categories == {"race": ["Non-White", "White"]}
    np.testing.assert_array_equal(arrays.data[:, 10], arrays.sensitive_features == "White")


def test_return_X_y_gives_data_and_target():
    X, y = load_law_school(return_X_y=True)
    law = load_law_school()
    np.testing.assert_array_equal(X, law.data)
    np.testing.assert_array_equal(y, law.target)


def test_every_column_is_described():
    descr = load_law_school().DESCR
    for name in [*FEATURES, "race", "pass_bar"]:
        assert name in descr


def test_the_bundled_file_is_the_one_of_virny_and_carries_its_licence():
    content = gzip.decompress((DATA / "law_school.csv.gz").read_bytes())
    assert hashlib.sha256(content).hexdigest() == "23c1b173f3480beb7afc4957b107a9917dfc4a8dc9d87ea6034ec35222152452"
    notice = (DATA / "law_school.LICENSE").read_text()
    for words in ("virny 0.6.0", "Wightman", "BSD 3-Clause License", "Copyright (c) 2023, DataResponsibly"):
        assert words in notice


def test_it_equals_the_shared_copy(real_data):
    shared = real_data("law_school.parquet")
    law = load_law_school(as_frame=True)
    np.testing.assert_array_equal(law.data.to_numpy(), shared[FEATURES].to_numpy())
    np.testing.assert_array_equal(law.target.to_numpy(), shared["pass_bar"].to_numpy())
    assert law.sensitive_features.tolist() == shared["race"].tolist()


def test_another_table_is_refused_by_name_of_its_missing_columns():
    with pytest.raises(ValueError, match=r"not the law school table: it lacks the columns .*'lsat'"):
        law_school_from_table(pd.DataFrame({"race": ["White"]}))
