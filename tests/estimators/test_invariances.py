"""Changes of the data that must not change the model."""

import numpy as np
import pytest

from fairconstrained import PartialParityClassifier, PartialParityRegressor

each_parity = pytest.mark.parametrize(
    "parity", [pytest.param("statistical_parity", marks=pytest.mark.slow), "demographic_parity"]
)


def fit(sample, constraint="statistical_parity", kappa=0.15, weights=None, **options):
    X, y, groups = sample
    model = PartialParityClassifier(kappa, interval=(0.0, 0.5), constraint=constraint, **options)
    return model.fit(X, y, sensitive_features=groups, sample_weight=weights)


@pytest.fixture(scope="module")
def plain(classes):
    """From the parity to the fits with the bound and without, to which those of changed data are compared."""
    return {
        parity: (fit(classes, parity), fit(classes, parity, None))
        for parity in ("statistical_parity", "demographic_parity")
    }


def check_as_good(one, other, tolerance):
    """Equally fair and equally good. Rounding errors grow along the path of a solver that refines itself, so that
    the parameters of two runs may differ by more than the objectives that they attain."""
    assert one.status_ == other.status_ == "optimal"
    assert one.objective_ == pytest.approx(other.objective_, rel=tolerance)


def check_equal_when_unconstrained(one, other):
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=1e-5)


@each_parity
def test_relabelled_groups(classes, plain, parity):
    relabelled = classes._replace(groups=np.array(["z", "a"])[classes.groups])  # in the opposite order
    (one, free), other = plain[parity], fit(relabelled, parity)
    assert list(other.groups_) == ["a", "z"]
    check_as_good(one, other, 0.01)
    check_equal_when_unconstrained(free, fit(relabelled, parity, None))


def test_relabelled_groups_with_coefficients_of_their_own(classes):
    relabelled = classes._replace(groups=np.array(["z", "a"])[classes.groups])
    one, other = (fit(sample, kappa=None, group_interactions=True) for sample in (classes, relabelled))
    np.testing.assert_allclose(one.coef_, other.coef_[::-1], atol=1e-5)
    np.testing.assert_allclose(
        one.decision_function(classes.X, sensitive_features=classes.groups),
        other.decision_function(classes.X, sensitive_features=relabelled.groups),
        atol=1e-4,
    )


@each_parity
def test_permuted_rows(classes, plain, parity):
    order = np.random.default_rng(0).permutation(classes.y.size)
    permuted = type(classes)(*(column[order] for column in classes))
    one, free = plain[parity]
    check_as_good(one, fit(permuted, parity), 0.01)
    check_equal_when_unconstrained(free, fit(permuted, parity, None))


@pytest.mark.slow
@each_parity
def test_integer_weights_are_repeated_rows(classes, parity):
    weights = np.random.default_rng(0).integers(1, 4, classes.y.size)
    repeated = type(classes)(*(np.repeat(column, weights, axis=0) for column in classes))
    # A row that counts three times is coarser than three rows: one row more or less is allowed on either side.
    check_as_good(fit(classes, parity, weights=weights), fit(repeated, parity), 0.03)
    check_equal_when_unconstrained(fit(classes, parity, None, weights=weights), fit(repeated, parity, None))


@each_parity
def test_rows_of_weight_zero_are_removed(classes, parity):
    keep = np.random.default_rng(0).random(classes.y.size) < 0.8
    kept = type(classes)(*(column[keep] for column in classes))
    one, other = fit(classes, parity, weights=keep.astype(float)), fit(kept, parity)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.constraint_values_ == other.constraint_values_


@pytest.mark.slow
@each_parity
def test_the_scale_of_the_weights_does_not_matter(classes, plain, parity):
    weights = np.random.default_rng(0).uniform(0.3, 2.0, classes.y.size)
    one, other = fit(classes, parity, weights=weights), fit(classes, parity, weights=weights * 1024)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    constant = fit(classes, parity, weights=np.full(classes.y.size, 4.0))
    np.testing.assert_array_equal(constant.coef_, plain[parity][0].coef_)


def test_swapped_classes(classes):
    one = fit(classes, kappa=None)
    other = fit(classes._replace(y=1 - classes.y), kappa=None)
    np.testing.assert_allclose(one.coef_, -other.coef_, atol=1e-5)


# --- units of the target of a regression


@each_parity
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_units_of_the_target(numbers, parity, fit_intercept):
    X, y, groups = numbers
    shift = 5.0 if fit_intercept else 0.0  # without an intercept a shift of y changes the problem
    options = {"constraint": parity, "fit_intercept": fit_intercept}
    one = PartialParityRegressor(0.1, threshold=-0.3, **options).fit(X, y, sensitive_features=groups)
    other = PartialParityRegressor(0.1, threshold=-300.0 + shift, **options)
    other.fit(X, 1000 * y + shift, sensitive_features=groups)
    np.testing.assert_allclose((other.predict(X) - shift) / 1000, one.predict(X), atol=1e-6)
    assert other.constraint_values_ == {name: pytest.approx(v) for name, v in one.constraint_values_.items()}
    assert other.objective_ == pytest.approx(1e6 * one.objective_, rel=1e-6)


def test_width_of_the_surrogate_is_in_units_of_the_target(numbers):
    X, y, groups = numbers
    one = PartialParityRegressor(0.2, surrogate_width=0.1).fit(X, y, sensitive_features=groups)
    other = PartialParityRegressor(0.2, surrogate_width=100.0).fit(X, 1000 * y, sensitive_features=groups)
    np.testing.assert_allclose(other.predict(X) / 1000, one.predict(X), atol=1e-6)
