"""Generated rows with the layout of the census data; shares and rates are those that the docstring states."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained.datasets import make_acs_like
from fairconstrained.datasets._acs_income import acs_income_from_table

FEATURES = ["AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"]
N = 200_000
# Percentages have a standard error of at most 0.12 in all rows and of 0.3 in the smallest cell, the women who are not
# White; four of each, and the rounding of the docstring.
SHARE_TOLERANCE = 0.55
RATE_TOLERANCE = 1.2


@pytest.fixture(scope="module")
def large():
    return make_acs_like(N, ("RAC1P", "SEX"), include_sensitive=True, random_state=0)


@pytest.fixture
def census(files):
    """Data that `fetch_acs_income` makes of a small file of the census."""
    table = pd.read_csv(files / "psam_p40.csv")
    return lambda **arguments: acs_income_from_table(table, **arguments)


@pytest.mark.parametrize("as_frame", [True, False])
@pytest.mark.parametrize("include_sensitive", [True, False])
@pytest.mark.parametrize("sensitive", ["RAC1P", "SEX", "AGEP", ("SEX", "MAR", "RAC1P")])
def test_layout_is_that_of_the_census_data(census, sensitive, include_sensitive, as_frame):
    arguments = {"sensitive": sensitive, "include_sensitive": include_sensitive, "as_frame": as_frame}
    expected = census(**arguments)
    acs = make_acs_like(7, random_state=0, **arguments)
    assert list(acs) == list(expected)
    assert acs.feature_names == expected.feature_names
    assert acs.sensitive_names == expected.sensitive_names
    assert acs.target_names.tolist() == expected.target_names.tolist()
    assert acs.categories == expected.categories
    for name in ("data", "target", "sensitive_features", "frame"):
        made, real = acs[name], expected[name]
        assert type(made) is type(real)
        if made is not None:
            assert made.shape == (7, *real.shape[1:])
        if isinstance(made, np.ndarray):
            assert made.dtype == real.dtype
        elif isinstance(made, pd.Series):
            assert (made.name, made.dtype) == (real.name, real.dtype)
        elif isinstance(made, pd.DataFrame):
            pd.testing.assert_series_equal(made.dtypes, real.dtypes)


def test_default_has_the_size_of_oklahoma_and_X_y_are_returned():
    X, y = make_acs_like(return_X_y=True, random_state=0)
    assert X.columns.tolist() == FEATURES[:-1]
    assert X.shape == (17_917, 9)
    assert y.shape == (17_917,)


def test_seed_fixes_the_rows():
    first, again, other = (make_acs_like(500, random_state=seed) for seed in (3, 3, 4))
    pd.testing.assert_frame_equal(first.frame, again.frame)
    assert not first.frame.equals(other.frame)
    arrays = make_acs_like(500, as_frame=False, random_state=np.random.RandomState(3))
    np.testing.assert_array_equal(arrays.data, first.data)
    np.testing.assert_array_equal(arrays.target, first.target)
    np.testing.assert_array_equal(arrays.sensitive_features, first.sensitive_features)


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        ("AGEP", range(17, 95)),
        ("COW", range(1, 9)),
        ("SCHL", range(1, 25)),
        ("MAR", range(1, 6)),
        ("RELP", range(18)),
        ("WKHP", range(1, 100)),
        ("SEX", range(1, 3)),
        ("RAC1P", range(1, 10)),
        ("OCCP", range(10, 9831)),
        ("POBP", range(1, 555)),
    ],
)
def test_codes_are_those_of_the_census(large, column, codes):
    assert set(large.data[column]) <= set(codes)


@pytest.mark.parametrize(
    ("column", "shares"),
    [
        ("RAC1P", {1: 74.5, 2: 5.3, 3: 8.6, 4: 0.1, 5: 0.4, 6: 1.7, 7: 0.1, 8: 2.4, 9: 6.9}),
        ("SEX", {1: 53.0, 2: 47.0}),
        ("AGEP", {(17, 24): 14.9, (25, 34): 19.7, (35, 44): 20.0, (45, 54): 19.5, (55, 64): 18.1, (65, 94): 7.8}),
        ("MAR", {1: 55.5, 2: 2.9, 3: 12.9, 4: 1.9, 5: 26.8}),
        ("SCHL", {(1, 15): 9.3, (16, 17): 31.0, (18, 20): 34.8, 21: 16.2, (22, 24): 8.7}),
        ("WKHP", {(5, 30): 20.6, 35: 5.5, 40: 47.5, (45, 50): 16.3, (55, 80): 10.1}),
        ("COW", {1: 64.8, 2: 6.4, 3: 5.9, 4: 7.6, 5: 4.9, 6: 6.9, 7: 3.1, 8: 0.4}),
        ("RELP", {0: 50.8, 1: 25.3, 2: 8.6, 13: 3.3, 17: 3.3}),
    ],
)
def test_shares_are_the_documented_ones(large, column, shares):
    values = large.data[column]
    observed = [100 * values.between(*(key if isinstance(key, tuple) else (key, key))).mean() for key in shares]
    assert observed == pytest.approx(list(shares.values()), abs=SHARE_TOLERANCE)


def test_positive_rates_are_the_documented_ones(large):
    positive, white, man = large.target, large.data["RAC1P"] == 1, large.data["SEX"] == 1
    cells = [(slice(None), 28.9), (white, 31.6), (~white, 21.2), (man, 37.8), (~man, 18.9)]
    cells += [(white & man, 41.4), (white & ~man, 20.5), (~white & man, 27.4), (~white & ~man, 14.3)]
    for rows, rate in cells:
        assert 100 * positive[rows].mean() == pytest.approx(rate, abs=RATE_TOLERANCE)


def test_labels_follow_the_documented_log_odds(large):
    """A logistic regression on the terms of the docstring finds their coefficients."""
    age, schooling, hours = (large.data[name] for name in ("AGEP", "SCHL", "WKHP"))
    married, woman, other = large.data["MAR"] == 1, large.data["SEX"] == 2, large.data["RAC1P"] != 1
    terms = [
        ((age.clip(upper=55) - 55) / 10) ** 2,
        schooling.clip(lower=12) - 16,
        (schooling - 19).clip(lower=0),
        (hours.clip(upper=50) - 40) / 10,
        married,
        woman,
        married & woman,
        other,
        woman & other,
    ]
    model = LogisticRegression(C=np.inf, max_iter=1000).fit(np.column_stack(terms).astype(float), large.target)
    # The standard errors, from the inverse Fisher information, are at most 0.03.
    assert model.coef_[0] == pytest.approx([-0.18, 0.18, 0.35, 0.9, 0.9, -0.6, -0.8, -0.4, 0.2], abs=0.1)
    assert model.intercept_ == pytest.approx([-1.2], abs=0.1)


def test_features_depend_on_race_without_the_column_itself(large):
    """So that dropping the group does not make a model fair."""
    white = large.data["RAC1P"] == 1
    assert large.data["AGEP"][white].mean() > large.data["AGEP"][~white].mean() + 3
    assert (large.data["SCHL"][white] >= 21).mean() > (large.data["SCHL"][~white] >= 21).mean() + 0.05
    assert (large.data["POBP"][white] == 40).mean() < (large.data["POBP"][~white] == 40).mean() - 0.05


def test_logistic_regression_beats_the_majority_with_unequal_losses_of_the_groups():
    acs = make_acs_like(random_state=0)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(acs.data, acs.target)
    assert max(acs.target.mean(), 1 - acs.target.mean()) < 0.73
    assert model.score(acs.data, acs.target) > 0.74
    probability = model.predict_proba(acs.data)[:, 1]
    white = acs.sensitive_features == 1
    losses = [log_loss(acs.target[rows], probability[rows]) for rows in (white, ~white)]
    assert losses[0] > losses[1] + 0.03


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be at least 1; got 0"),
        ({"n_samples": -5}, "n_samples must be at least 1; got -5"),
        ({"sensitive": ("SEX", "CIT")}, r"sensitive must be .* of \['AGEP', .*\], each once; got \('SEX', 'CIT'\)"),
        ({"sensitive": ()}, r"sensitive must be one or several of .*, each once; got \(\)"),
        ({"sensitive": ("SEX", "SEX")}, "sensitive must be one or several of"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_acs_like(**arguments)


def test_one_row_is_enough():
    assert make_acs_like(1, random_state=0).data.shape == (1, 9)
