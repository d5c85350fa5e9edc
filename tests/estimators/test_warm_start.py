"""Warm starts: where the last fit applies, it saves work and changes little; where it does not, it is ignored."""

import numpy as np
import pytest
from sklearn.base import clone

from fairconstrained import PartialParityClassifier
from fairconstrained.constraints import DemographicParity, EqualizedOdds, EqualOpportunity, StatisticalParity
from fairconstrained.datasets import make_biased_classification


def classifier(**options):
    return PartialParityClassifier(**{"kappa": 0.2, "constraint": "demographic_parity", **options})


def fit(model, sample, **extra):
    return model.fit(sample.X, sample.y, sensitive_features=sample.groups, **extra)


@pytest.mark.slow
def test_from_the_last_fit(classes):
    model = fit(classifier(kappa=0.1, warm_start=True), classes)
    cold = model.objective_
    fit(model, classes)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(cold, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("parity", ["statistical_parity", "demographic_parity", "group_auc"])
def test_from_a_looser_kappa_it_is_no_dearer_and_as_good(classes, parity):
    cold = fit(classifier(constraint=parity, kappa=0.08), classes)
    warm = fit(classifier(constraint=parity, kappa=0.15, warm_start=True), classes)
    fit(warm.set_params(kappa=0.08), classes)
    assert warm.status_ == "optimal"
    assert warm.n_evaluations_ <= cold.n_evaluations_
    assert warm.objective_ == pytest.approx(cold.objective_, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("parity", ["statistical_parity", "demographic_parity", "equal_opportunity"])
def test_along_a_path_of_kappas(classes, parity):
    model = classifier(warm_start=True, constraint=parity)
    for kappa in (None, 0.3, 0.15, 1.0, 0.2, None):
        fit(model.set_params(kappa=kappa), classes)
        assert model.status_ == "optimal"
        cold = fit(classifier(kappa=kappa, constraint=parity), classes)
        assert model.objective_ == pytest.approx(cold.objective_, rel=0.03)


#: What is bounded in turn, and its names.
CONSTRAINTS = [
    ([("top", StatisticalParity(0.3, n_levels=3)), ("rate", DemographicParity(0.3))], ["top", "rate"]),
    ([("rate", DemographicParity(0.3)), ("top", StatisticalParity(0.3))], ["rate", "top"]),
    (
        [
            ("tpr", EqualOpportunity(0.2)),
            ("top", StatisticalParity(0.3, interval=(0.0, 0.4))),
            ("odds", EqualizedOdds(0.3)),
        ],
        ["tpr", "top", "odds"],
    ),
    ([("rate", DemographicParity(0.2))], ["rate"]),
    (DemographicParity(0.2), ["demographic_parity"]),
    ("statistical_parity", ["statistical_parity"]),
]


@pytest.mark.slow
def test_with_other_constraints(classes):
    """After fits with other constraints, a fit is as good as one without a warm start."""
    model = classifier(warm_start=True, constraint="statistical_parity")
    for constraint, names in CONSTRAINTS:
        fit(model.set_params(constraint=constraint), classes)
        assert model.status_ == "optimal"
        assert list(model.constraint_values_) == names
    cold = fit(clone(model).set_params(warm_start=False), classes)
    assert model.objective_ == pytest.approx(cold.objective_, rel=0.03)


@pytest.mark.slow
def test_on_other_rows(classes):
    half = type(classes)(*(column[::2] for column in classes))
    model = fit(classifier(warm_start=True, constraint="statistical_parity"), half)
    fit(model, classes)
    cold = fit(classifier(constraint="statistical_parity"), classes)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(cold.objective_, rel=0.02)


CHANGES = {
    "fewer features": (lambda s: s._replace(X=s.X[:, :3]), {}),
    "more features": (lambda s: s._replace(X=np.hstack([s.X, s.X[:, :1] ** 2])), {}),
    "other groups": (lambda s: s._replace(groups=s.groups + 1), {}),
    "coefficients by group": (lambda s: s, {"group_interactions": True}),
    "no intercept": (lambda s: s, {"fit_intercept": False}),
    "a module": (lambda s: s, {"hidden_layer_sizes": (2,), "activation": "tanh", "random_state": 0}),
}


@pytest.mark.parametrize(("change", "options"), CHANGES.values(), ids=CHANGES.keys())
def test_where_the_last_fit_does_not_apply(classes, change, options):
    model = fit(classifier(warm_start=True, kappa=0.3), classes)
    fit(model.set_params(**options), change(classes))
    fresh = fit(classifier(kappa=0.3, **options), change(classes))
    columns = change(classes)
    np.testing.assert_array_equal(
        model.decision_function(columns.X, sensitive_features=columns.groups),
        fresh.decision_function(columns.X, sensitive_features=columns.groups),
    )


# --- fewer rows first


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parity", "group_interactions"),
    [("statistical_parity", False), ("demographic_parity", True), ("equalized_odds", False)],
)
def test_many_rows_are_solved_from_some_of_them(parity, group_interactions):
    X, y, groups = make_biased_classification(2100, 4, group_shift=(0.0, -0.5), random_state=0)
    options = {"constraint": parity, "group_interactions": group_interactions, "random_state": 0}
    plain, coarse = (
        PartialParityClassifier(0.08, solver_options={"coarse_rows": rows}, **options).fit(
            X, y, sensitive_features=groups
        )
        for rows in (50_000, 200)
    )
    cells = [np.flatnonzero((groups == g) & (y == label)) for g in (0, 1) for label in (0, 1)]
    (gap,) = coarse.constraint_values_.values()
    assert coarse.status_ == "optimal"
    assert gap <= 0.08 + 1 / min(map(len, cells))
    assert coarse.objective_ == pytest.approx(plain.objective_, rel=0.03)
    assert not np.array_equal(coarse.coef_, plain.coef_)  # it went another way
    again = clone(coarse).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(again.coef_, coarse.coef_)
