"""The population quantities that the docstrings promise, on samples large enough for the stated tolerance."""

import numpy as np
import pytest
from scipy.stats import ks_2samp, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from fairconstrained.datasets import make_biased_classification, make_biased_regression

N = 200_000
# A rate in a cell of at least 10,000 rows has a standard error of at most 0.005; four of them.
TOLERANCE = 0.02
SETTING = {
    "group_proportions": (0.5, 0.3, 0.2),
    "positive_rates": (0.6, 0.35, 0.5),
    "separation": (2.5, 1.5, 1.0),
    "group_shift": (0.0, -0.4, 0.3),
    "proxy_strength": 0.8,
    "n_informative": 3,
}


def score(X, n_informative):
    return X[:, :n_informative].sum(axis=1) / np.sqrt(n_informative)


@pytest.fixture(scope="module")
def large():
    return make_biased_classification(N, 6, random_state=0, **SETTING)


def test_group_sizes_and_label_rates(large):
    _, y, groups = large
    assert np.bincount(groups) / N == pytest.approx(SETTING["group_proportions"], abs=TOLERANCE)
    rates = [y[groups == g].mean() for g in range(3)]
    assert rates == pytest.approx(SETTING["positive_rates"], abs=TOLERANCE)
    assert max(rates) - min(rates) == pytest.approx(0.25, abs=TOLERANCE)  # the demographic parity gap


@pytest.mark.parametrize("threshold", [-0.5, 0.0, 0.7])
def test_error_and_selection_rates_of_the_score(large, threshold):
    X, y, groups = large
    selected = score(X, 3) > threshold
    for g in range(3):
        p, d, m = (SETTING[name][g] for name in ("positive_rates", "separation", "group_shift"))
        tpr, fpr = norm.cdf(m + d / 2 - threshold), norm.cdf(m - d / 2 - threshold)
        assert selected[(groups == g) & (y == 1)].mean() == pytest.approx(tpr, abs=TOLERANCE)
        assert selected[(groups == g) & (y == 0)].mean() == pytest.approx(fpr, abs=TOLERANCE)
        assert selected[groups == g].mean() == pytest.approx(p * tpr + (1 - p) * fpr, abs=TOLERANCE)


def test_auc_within_each_group(large):
    X, y, groups = large
    for g, d in enumerate(SETTING["separation"]):
        rows = groups == g
        assert roc_auc_score(y[rows], score(X, 3)[rows]) == pytest.approx(norm.cdf(d / 2**0.5), abs=TOLERANCE)


def test_auc_of_the_proxy_and_none_of_the_noise(large):
    X, _, groups = large
    rows = groups < 2
    assert roc_auc_score(groups[rows], X[rows, 3]) == pytest.approx(norm.cdf(0.8 / 2**0.5), abs=TOLERANCE)
    assert roc_auc_score(groups[rows], X[rows, 4]) == pytest.approx(0.5, abs=TOLERANCE)


def test_score_has_unit_variance_within_group_and_label(large):
    X, y, groups = large
    for g in range(3):
        for label in (0, 1):
            assert score(X, 3)[(groups == g) & (y == label)].std() == pytest.approx(1.0, abs=TOLERANCE)


def test_equal_separation_and_shift_leave_no_equalized_odds_gap():
    X, y, groups = make_biased_classification(N, random_state=1, positive_rates=(0.7, 0.2))
    selected = score(X, 2) > 0.3
    for label in (0, 1):
        rates = [selected[(groups == g) & (y == label)].mean() for g in (0, 1)]
        assert rates[0] == pytest.approx(rates[1], abs=TOLERANCE)
    assert selected[groups == 0].mean() - selected[groups == 1].mean() > 0.2


def test_dropping_the_group_does_not_remove_the_gap():
    X, y, groups = make_biased_classification(20_000, random_state=0)
    selected = LogisticRegression().fit(X, y).predict(X)
    assert selected[groups == 0].mean() - selected[groups == 1].mean() > 0.2


def test_regression_means_spread_and_distance():
    X, y, groups = make_biased_regression(
        N, 5, group_means=(0.0, -1.0), effect=1.2, noise=0.5, n_informative=2, random_state=0
    )
    assert [y[groups == g].mean() for g in (0, 1)] == pytest.approx([0.0, -1.0], abs=TOLERANCE)
    assert [y[groups == g].std() for g in (0, 1)] == pytest.approx([1.3, 1.3], abs=TOLERANCE)
    distance = ks_2samp(y[groups == 0], y[groups == 1]).statistic
    assert distance == pytest.approx(2 * norm.cdf(1 / 2.6) - 1, abs=TOLERANCE)
    residual = y - np.array([0.0, -1.0])[groups] - 1.2 * score(X, 2)
    assert np.mean(residual**2) == pytest.approx(0.25, abs=TOLERANCE)
    assert roc_auc_score(groups, X[:, 2]) == pytest.approx(norm.cdf(1 / 2**0.5), abs=TOLERANCE)


@pytest.mark.parametrize("make", [make_biased_classification, make_biased_regression])
class TestBoth:
    def test_shapes_and_types(self, make):
        X, y, groups = make(50, 4, random_state=0)
        assert X.shape == (50, 4)
        assert y.shape == groups.shape == (50,)
        assert X.dtype == np.float64
        assert y.dtype == (np.int64 if make is make_biased_classification else np.float64)
        assert set(groups) == {0, 1}

    def test_same_seed_same_data_and_another_seed_another(self, make):
        first, second, third = make(40, random_state=3), make(40, random_state=3), make(40, random_state=4)
        for one, two in zip(first, second, strict=True):
            np.testing.assert_array_equal(one, two)
        assert not np.array_equal(first[0], third[0])

    def test_the_global_generator_is_left_alone_by_a_seed(self, make):
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        make(10, random_state=0)
        np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"group_proportions": (0.5, 0.6)}, "group_proportions must be positive numbers with sum 1"),
            ({"group_proportions": (1.0, 0.0)}, "group_proportions must be positive numbers with sum 1"),
            ({"n_samples": 0}, "n_samples must be at least 1; got 0"),
            ({"n_informative": 0}, "n_informative must be at least 1"),
            ({"n_features": 2, "n_informative": 2}, r"at least n_informative \+ 1"),
            ({"group_proportions": (0.2, 0.3, 0.5)}, "one finite number for each of the 3 groups"),
        ],
    )
    def test_bad_arguments_are_named(self, make, arguments, message):
        with pytest.raises(ValueError, match=message):
            make(**arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"positive_rates": (0.5, 1.2)}, r"positive_rates must lie in \[0, 1\]"),
        ({"separation": -1.0}, "separation must not be negative"),
        ({"separation": (1.0, np.nan)}, "separation must hold one finite number"),
        ({"proxy_strength": np.nan}, "proxy_strength must be a finite number; got nan"),
        ({"group_shift": (1.0,)}, "group_shift must hold one finite number for each of the 2 groups"),
    ],
)
def test_bad_arguments_of_the_classification_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_biased_classification(**arguments)


def test_negative_noise_is_refused():
    with pytest.raises(ValueError, match="noise must not be negative"):
        make_biased_regression(noise=-1.0)
