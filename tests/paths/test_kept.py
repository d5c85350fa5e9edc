"""A looser bound never has a worse model than a tighter one."""

import pickle
import warnings

import numpy as np
import pytest

from fairconstrained import (
    ConvergenceWarning,
    FairnessWarning,
    NeymanPearsonClassifier,
    PartialParityClassifier,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import DemographicParity, EqualOpportunity, GroupRates, RateGap
from fairconstrained.paths._kept import better_kept
from fairconstrained.paths._walk import Plan, Walk

KAPPAS = [None, 0.3, 0.2, 0.1, 0.05]


@pytest.fixture(scope="module")
def noisy():
    """Rows, labels and groups for which a search over thresholds finds fewer errors under a bound than without."""
    rng = np.random.default_rng(0)
    groups = np.arange(224) % 2
    X = rng.normal(size=(224, 5)) + rng.normal(size=(2, 5))[groups]
    return X, (X[:, 0] + 2 * rng.normal(size=224) > 0).astype(int), groups


def path_of(estimator, rows, **options):
    X, y, groups = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FairnessWarning)  # of decisions, where probabilities are bounded
        return fairness_path(estimator, X, y, sensitive_features=groups, **{"kappas": KAPPAS, **options})


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator",
    [
        PartialParityClassifier(objective="zero_one", constraint="demographic_parity"),
        RateParityClassifier(rate="sigmoid", solver="proxy_lagrangian", max_iter=30),
    ],
    ids=["search", "proxy Lagrangian"],
)
def test_the_objective_never_rises_with_kappa(noisy, estimator):
    X, y, groups = noisy
    path = path_of(estimator, noisy)
    table = path.table
    assert not table["status"].str.startswith("infeasible").any()
    assert table["objective"].is_monotonic_increasing  # from loose to tight
    assert table["objective"].duplicated().any()  # a tighter model was kept
    for model, row, kappa in zip(path.models, table.itertuples(), KAPPAS, strict=True):
        assert (model.kappa, model.objective_, model.status_) == (kappa, row.objective, row.status)
        values = model.constraint_values(X, y, sensitive_features=groups)
        assert values == pytest.approx(model.constraint_values_)
        bound = np.inf if kappa is None else kappa
        assert model.violation_ == pytest.approx(max(0.0, *(value - bound for value in values.values())), abs=1e-9)
        assert row.gap == max(values.values()) <= bound + max(model.granularity_.values())
        assert row.train_accuracy == pytest.approx(model.score(X, y))
        assert np.isnan(row.price) == (row.multipliers is None) == (model.multipliers_ is None)
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert len({id(model) for model in path.models}) == len(KAPPAS)


def record(kappa, objective, value, status="optimal", **more):
    return {
        "kappa": kappa,
        "objective": objective,
        "gap": value,
        "status": status,
        "price": 0.5,
        "multipliers": {"a": 0.5},
        "n_evaluations": 7,
        "seconds": 0.1,
        "granularity": {"a": 0.01},
        "excess": {"a": value - kappa},
        "warned": ["a warning"],
        **more,
    }


def kept(*records, param=None):
    plan = Plan(RateParityClassifier(), param, ())
    return better_kept(plan, Walk(records=list(records))).records


def test_a_model_that_missed_its_bound_serves_a_looser_one_that_it_keeps():
    loose, tight = kept(record(0.2, 0.5, 0.2), record(0.05, 0.4, 0.15, "infeasible"))
    assert (loose["objective"], loose["gap"], loose["status"]) == (0.4, 0.15, "optimal")
    assert loose["excess"]["a"] == pytest.approx(-0.05)
    assert (loose["price"], loose["multipliers"]) == (0.5, {"a": 0.5})  # of the fit for this bound
    assert (tight["objective"], tight["status"]) == (0.4, "infeasible")


def test_a_fit_that_missed_its_bound_is_replaced_by_a_tighter_one_that_kept_its_own():
    loose, tight = kept(record(0.2, 0.3, 0.3, "infeasible"), record(0.1, 0.4, 0.1, "completed"))
    assert (loose["kappa"], loose["objective"], loose["gap"], loose["status"]) == (0.2, 0.4, 0.1, "completed")
    assert np.isnan(loose["price"])  # nothing is known of what the looser bound costs
    assert loose["multipliers"] is None
    assert loose["warned"] == []
    assert tight["price"] == 0.5


def test_what_is_not_within_the_bound_or_not_better_is_left():
    records = [record(np.inf, 0.3, 0.5), record(0.2, 0.45, 0.2), record(0.1, 0.4, 0.25, "infeasible")]
    assert kept(*records) == records


def test_values_that_are_no_bounds_are_left():
    records = [record(2.0, 0.5, 0.2), record(1.0, 0.4, 0.1)]
    assert kept(*records, param="alpha") == records
    assert kept(*records, param="constraint__a__kappa")[0]["objective"] == 0.4


def test_other_bounds_are_not_loosened():
    records = [
        record(0.2, 0.5, 0.2, excess={"a": 0.0, "b": 0.0}, granularity={"a": 0.01, "b": 0.01}),
        record(0.1, 0.4, 0.1, "infeasible", excess={"a": 0.0, "b": 0.05}, granularity={"a": 0.01, "b": 0.01}),
    ]
    assert kept(*records, param="constraint__a__kappa") == records
    assert kept(*records)[0]["objective"] == 0.4


def test_several_constraints_of_which_one_is_loosened(noisy):
    bounds = [("rate", DemographicParity(0.2)), ("tpr", EqualOpportunity(0.2))]
    estimator = PartialParityClassifier(constraint=bounds, objective="zero_one")
    path = path_of(estimator, noisy, param="constraint__rate__kappa", kappas=[0.4, 0.1])
    assert path.table["objective"].is_monotonic_increasing
    for model, kappa in zip(path.models, (0.4, 0.1), strict=True):
        excess = [model.constraint_values_["rate"] - kappa, model.constraint_values_["tpr"] - 0.2]
        assert model.violation_ == pytest.approx(max(0.0, *excess), abs=1e-9)


@pytest.mark.slow
def test_folds_keep_the_better_model_too(noisy):
    """Two folds of the same rows give what all rows give."""
    rows = np.arange(224)
    path = path_of(
        PartialParityClassifier(objective="zero_one", constraint="demographic_parity"),
        noisy,
        cv=[(rows, rows), (rows, rows)],
    )
    np.testing.assert_array_equal(path.table["mean_test_gap"], path.table["gap"])
    np.testing.assert_array_equal(path.table["mean_test_accuracy"], path.table["train_accuracy"])


@pytest.mark.slow
def test_the_table_of_classes_has_the_bounds_of_the_looser_fit():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.arange(200) % 2
    X[:, 0] += y
    loose, tight = (NeymanPearsonClassifier({0: bound}, alpha=1e-2).fit(X, y) for bound in (0.6, 0.5))
    model = tight.under_bounds_of(loose, {"loss[0]": -0.1})
    np.testing.assert_array_equal(model.class_table_["bound"], [0.6, np.nan])
    assert model.class_table_["multiplier"][0] == loose.multipliers_["loss[0]"]
    np.testing.assert_array_equal(model.class_table_["loss"], tight.class_table_["loss"])
    assert (model.bounds, model.violation_) == ({0: 0.6}, 0.0)
    assert tight.bounds == {0: 0.5}


def test_a_model_that_stands_in_for_a_looser_one_tells_how_that_fit_ended(noisy):
    X, y, groups = noisy
    loose, tight = (PartialParityClassifier(kappa).fit(X, y, sensitive_features=groups) for kappa in (0.3, 0.2))
    model = tight.under_bounds_of(loose, {"statistical_parity": -0.1})
    assert (model.kappa, model.violation_, model.objective_) == (0.3, 0.0, tight.objective_)
    assert (model.status_, model.multipliers_, model.prices_) == (loose.status_, loose.multipliers_, loose.prices_)
    loose.status_ = "infeasible"
    model = tight.under_bounds_of(loose, {"statistical_parity": 0.1})
    assert (model.status_, model.multipliers_, model.violation_) == (tight.status_, None, 0.1)
    assert np.isnan(model.prices_["statistical_parity"])


def test_a_larger_floor_is_no_looser_bound(noisy):
    floor = GroupRates("true_positive", rule="floor", kappa=0.5)
    path = path_of(RateParityClassifier(constraint=floor), noisy, param="constraint__kappa", kappas=[0.3, 0.9])
    loose, strict = (model.constraint_values_["true_positive_floor"] for model in path.models)
    assert loose < 0.9 <= strict
    assert path.table["gap"].isna().all()
    with pytest.raises(ValueError, match="from below"):
        path.best(0.1)


def test_a_path_over_all_bounds_refuses_a_floor(noisy):
    bounds = [("gap", RateGap(0.1)), ("floor", GroupRates("selection", rule="floor", kappa=0.1))]
    with pytest.raises(ValueError, match=r"kappa of a floor .* Name the parameter"):
        path_of(RateParityClassifier(constraint=bounds), noisy)
    path = path_of(RateParityClassifier(constraint=bounds), noisy, param="constraint__gap__kappa", kappas=[0.2])
    assert path.table["gap"].item() == path.models[0].constraint_values_["gap"]
