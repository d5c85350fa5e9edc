import numpy as np
import pandas as pd
import pytest

from fairconstrained.datasets import fetch_adult
from fairconstrained.datasets._adult import OPENML_ID, adult_from_table


@pytest.fixture
def home(openml_cache):
    return openml_cache("adult.arff", OPENML_ID, "class")


def test_small_file_in_the_format_of_openml(home):
    adult = fetch_adult(data_home=home)
    assert adult.data.shape == (12, 13)
    assert "sex" not in adult.feature_names
    assert "race" in adult.feature_names
    assert adult.sensitive_features.name == "sex"
    assert adult.sensitive_features.value_counts().to_dict() == {"Male": 7, "Female": 5}
    assert adult.target.tolist() == [0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0, 0]
    assert adult.target_names.tolist() == ["<=50K", ">50K"]
    assert adult.data["fnlwgt"].tolist() == list(range(100_001, 100_013))
    assert adult.frame.columns.tolist()[-2:] == ["sex", "class"]


def test_question_mark_is_a_category_of_its_own(home):
    data = fetch_adult(data_home=home).data
    assert data.notna().all(axis=None)
    assert (data["workclass"] == "?").tolist() == [i in (3, 6) for i in range(12)]
    assert (data["occupation"] == "?").sum() == 2
    assert (data["native-country"] == "?").tolist() == [i == 5 for i in range(12)]
    assert data["workclass"].cat.categories[0] == "?"
    assert "?" not in data["education"].cat.categories


def test_two_sensitive_features_become_columns(home):
    adult = fetch_adult(data_home=home, sensitive=("race", "sex"))
    assert adult.sensitive_features.columns.tolist() == ["race", "sex"]
    assert adult.sensitive_features.iloc[4].tolist() == ["Asian-Pac-Islander", "Female"]
    assert adult.data.shape == (12, 12)
    assert not {"race", "sex"} & set(adult.feature_names)
    arrays = fetch_adult(data_home=home, sensitive=("race", "sex"), as_frame=False)
    assert arrays.sensitive_features.shape == (12, 2)
    assert arrays.sensitive_features[4].tolist() == ["Asian-Pac-Islander", "Female"]


def test_include_sensitive_keeps_every_column_once(home):
    adult = fetch_adult(data_home=home, include_sensitive=True)
    assert adult.data.shape == (12, 14)
    assert adult.frame.columns.is_unique
    assert adult.frame.shape == (12, 15)
    assert adult.data["sex"].tolist() == adult.sensitive_features.tolist()


def test_arrays_code_categories_by_position(home):
    frames, arrays = fetch_adult(data_home=home), fetch_adult(data_home=home, as_frame=False)
    assert arrays.data.dtype == np.float64
    assert arrays.frame is None
    for position, name in enumerate(arrays.feature_names):
        codes = arrays.data[:, position]
        if name in arrays.categories:
            decoded = [arrays.categories[name][int(code)] for code in codes]
            assert decoded == frames.data[name].tolist()
        else:
            np.testing.assert_array_equal(codes, frames.data[name])
    assert len(arrays.categories) == 7


def test_return_X_y(home):
    X, y = fetch_adult(data_home=home, return_X_y=True)
    assert X.shape == (12, 13)
    assert y.sum() == 4


@pytest.mark.parametrize("sensitive", ["age", (), ("sex", "sex"), "Sex"])
def test_unknown_sensitive_features_are_refused_before_any_download(sensitive, tmp_path):
    with pytest.raises(ValueError, match=r"sensitive must be one or several of \['sex', 'race'\]"):
        fetch_adult(sensitive=sensitive, data_home=tmp_path)


def test_unknown_labels_and_missing_columns_are_named(home):
    table = fetch_adult(data_home=home, include_sensitive=True).frame.drop(columns="class")
    with pytest.raises(ValueError, match=r"lacks the columns \['class'\]"):
        adult_from_table(table)
    with pytest.raises(ValueError, match=r"'class' has the values \['rich'\]"):
        adult_from_table(table.assign(**{"class": "rich"}))


def test_published_counts_on_the_real_table(real_data):
    table = real_data("adult.parquet").rename(columns={"income": "class"})
    adult = adult_from_table(table)
    female = adult.sensitive_features == "Female"
    assert adult.data.shape == (48_842, 13)
    assert female.sum() == 16_192
    assert round(100 * adult.target.mean(), 2) == 23.93
    assert round(100 * adult.target[female].mean(), 2) == 10.93
    assert round(100 * adult.target[~female].mean(), 2) == 30.38
    assert (adult.data == "?").any(axis=1).sum() == 3_620
    assert isinstance(adult.frame, pd.DataFrame)
