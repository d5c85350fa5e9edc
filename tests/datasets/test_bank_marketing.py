import numpy as np
import pytest

from fairconstrained.datasets import fetch_bank_marketing
from fairconstrained.datasets._bank_marketing import (
    OPENML_ID,
    OTHER_AGE,
    WORKING_AGE,
    bank_marketing_from_table,
)


@pytest.fixture
def home(openml_cache):
    return openml_cache("bank_marketing.arff", OPENML_ID, "Class")


def test_small_file_in_the_format_of_openml(home):
    bank = fetch_bank_marketing(data_home=home)
    assert bank.data.shape == (10, 15)
    assert bank.feature_names[:3] == ["job", "marital", "education"]
    assert bank.target.tolist() == [1, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    assert bank.target_names.tolist() == ["no", "yes"]
    assert bank.data["balance"].tolist()[:3] == [310, -40, 2143]
    assert bank.data["poutcome"].cat.categories.tolist() == ["failure", "other", "success", "unknown"]
    assert bank.frame.columns.tolist()[-2:] == ["age", "y"]


def test_age_groups_include_both_ends(home):
    bank = fetch_bank_marketing(data_home=home)
    ages = [24, 25, 60, 61, 44, 38, 52, 71, 33, 47]
    by_hand = [OTHER_AGE if age in (24, 61, 71) else WORKING_AGE for age in ages]
    assert bank.sensitive_features.tolist() == by_hand


def test_include_sensitive_keeps_the_age_in_years(home):
    bank = fetch_bank_marketing(data_home=home, include_sensitive=True)
    assert bank.data["age"].tolist() == [24, 25, 60, 61, 44, 38, 52, 71, 33, 47]
    assert bank.sensitive_features.nunique() == 2
    assert bank.frame.columns.is_unique


def test_marital_status_alone_and_with_age(home):
    marital = fetch_bank_marketing(data_home=home, sensitive="marital")
    assert marital.sensitive_features.value_counts().to_dict() == {"married": 5, "single": 3, "divorced": 2}
    assert "age" in marital.feature_names
    both = fetch_bank_marketing(data_home=home, sensitive=["age", "marital"], as_frame=False)
    assert both.sensitive_features[0].tolist() == [OTHER_AGE, "single"]
    assert both.data.shape == (10, 14)
    assert np.isfinite(both.data).all()


def test_return_X_y(home):
    X, y = fetch_bank_marketing(data_home=home, return_X_y=True, as_frame=False)
    assert X.shape == (10, 15)
    assert y.sum() == 4


def test_wrong_tables_are_refused(home):
    table = fetch_bank_marketing(data_home=home, include_sensitive=True).frame
    with pytest.raises(ValueError, match=r"'y' has the values \['0', '1'\]; expected only \['no', 'yes'\]"):
        bank_marketing_from_table(table)
    with pytest.raises(ValueError, match=r"lacks the columns \['V1', 'V2'"):
        bank_marketing_from_table(table.assign(Class="1"))
    with pytest.raises(ValueError, match=r"lacks the columns \['age'\]"):
        bank_marketing_from_table(table.drop(columns="age"))


def test_published_counts_on_the_real_table_of_uci(real_data):
    bank = bank_marketing_from_table(real_data("bank_additional_full.parquet"))
    working = bank.sensitive_features == WORKING_AGE
    assert working.sum() == 39_210
    assert (~working).sum() == 1_978
    assert round(100 * bank.target.mean(), 2) == 11.27
    assert round(100 * bank.target[working].mean(), 2) == 10.12
    assert round(100 * bank.target[~working].mean(), 2) == 33.87
