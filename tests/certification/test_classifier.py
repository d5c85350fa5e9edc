"""`CertifiedFairClassifier`: what it fits on, what it tests, and what it says."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairconstrained import (
    CertifiedFairClassifier,
    CorrelationPenaltyClassifier,
    FairnessWarning,
    NeymanPearsonClassifier,
    PartialParityClassifierCV,
    RateParityClassifier,
)
from fairconstrained.certification import certify
from fairconstrained.certification._binomial import binomial_ends
from fairconstrained.certification._planning import Ladder, Part, _folds, calibration_rows
from fairconstrained.certification._planning import fitted as fit_with_metadata
from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import group_rates, independence_gap
from fairconstrained.postprocessing import GroupThresholdClassifier


class Dial(ClassifierMixin, BaseEstimator):
    """A model with a gap of exactly ``kappa`` in the population; columns of X: row number, group, uniform noise.

    With ``jump`` the gap is so many times larger when it is fitted on ``many`` rows or more.
    """

    def __init__(self, kappa=0.5, jump=1.0, many=0):
        self.kappa = kappa
        self.jump = jump
        self.many = many

    def fit(self, X, y, sample_weight=None):
        self.rows_, self.weights_ = X[:, 0].astype(int), sample_weight
        self.classes_ = np.unique(y)
        self.gap_ = self.kappa * (self.jump if len(X) >= self.many else 1.0)
        return self

    def predict(self, X):
        return self.classes_[(X[:, 2] < 0.4 + self.gap_ * X[:, 1]).astype(int)]


def dialled(n_samples, seed=0):
    rng = np.random.default_rng(seed)
    groups = (rng.random(n_samples) < 0.4).astype(int)
    X = np.column_stack([np.arange(n_samples), groups, rng.random(n_samples)])
    return X, rng.integers(2, size=n_samples), np.array(["a", "b"])[groups]


def fitted(rows, **options):
    X, y, groups = rows
    settings = {"kappa": 0.2, "metric": "independence_gap", "random_state": 0, "n_resamples": 200} | options
    return CertifiedFairClassifier(**settings).fit(X, y, sensitive_features=groups)


def test_the_fit_never_sees_the_rows_of_the_test():
    rows = dialled(4000)
    model = fitted(rows, estimator=Dial(), kappas=[0.05])
    assert model.plan_ is None
    held = model.calibration_rows_
    assert held.size == pytest.approx(1200, abs=2)
    np.testing.assert_array_equal(np.sort(np.concatenate([held, model.estimator_.rows_])), np.arange(4000))
    X, _, groups = (column[held] for column in rows)
    assert model.certificate_.n_samples == held.size
    assert model.certificate_.gap == independence_gap(None, model.predict(X), sensitive_features=groups)
    # the same share of both groups, which the certificate takes as given
    assert (groups == "a").sum() == round(0.3 * (rows[2] == "a").sum())


@pytest.mark.slow
def test_the_loosest_inner_bound_with_a_good_plan_is_taken():
    rows = dialled(4000)
    model = fitted(rows, estimator=Dial(), method="binomial")
    plan = model.plan_
    good = plan["planned"] <= 0.2
    assert (model.status_, model.n_tests_) == ("certified", 1)
    assert model.kappa_ == plan["kappa"][good].max() < plan["kappa"].max()
    assert model.certificate_.passed
    assert model.certificate_.delta == 0.05
    # the held-out gaps are those of the dial, up to chance
    np.testing.assert_allclose(plan["gap"], plan["kappa"], atol=3 * plan["std"].max())
    # the bound of as many rows as were set aside, with the estimates of the others
    X, _, groups = (np.delete(column, model.calibration_rows_, axis=0) for column in rows)
    row = plan.iloc[2]
    counts = np.array([(groups == g).sum() for g in "ab"])
    hits = np.array([(X[groups == g, 2] < 0.4 + row["kappa"] * (g == "b")).sum() for g in "ab"])
    scale = model.calibration_rows_.size / counts.sum()
    low, high = binomial_ends(hits * scale, counts * scale, 0.025)
    assert row["bound"] == pytest.approx(high[1] - low[0])
    rates = hits / counts
    assert row["std"] == pytest.approx(np.sqrt((rates * (1 - rates) / counts).sum()), rel=0.35)
    assert row["planned"] == pytest.approx(row["bound"] + norm.ppf(0.8) * row["std"] * np.sqrt(1 / scale + 2))


def test_the_inner_bounds_are_shares_of_kappa():
    with pytest.warns(FairnessWarning, match="300 calibration rows"):
        plan = fitted(dialled(1000), estimator=Dial(), method="binomial", cv=2).plan_
    # every second one of 1, 0.85, 0.7, 0.55, 0.4, 0.3, 0.2, 0.1; none of them is good
    np.testing.assert_allclose(plan["kappa"], 0.2 * np.array([0.85, 0.55, 0.3, 0.1]))


def test_the_bound_before_the_first_good_one_is_looked_at_too():
    kappas = [0.3, 0.2, 0.06, 0.02, 0.01, 0.005]
    model = fitted(dialled(4000), estimator=Dial(), kappas=kappas, cv=2)
    assert model.plan_["kappa"].tolist() == [0.2, 0.06, 0.02, 0.005]
    assert (model.plan_["planned"] <= 0.2).tolist()[0::2] == [False, True]
    assert model.kappa_ in (0.06, 0.02)


FLOOR = {"metric": "group_rates", "metric_params": {"rate": "selection", "rule": "floor"}, "method": "binomial"}


class Floor(Dial):
    """A model that accepts a share of exactly ``kappa`` of all groups in the population."""

    def decision_function(self, X):
        return self.kappa - X[:, 2]


def test_inner_bounds_of_a_floor_are_larger():
    model = fitted(dialled(3000), estimator=Floor(), kappa=0.6, cv=2, **FLOOR)
    # every second one, with a share of the room up to 1
    planned = model.plan_.set_index("kappa")["planned"]
    assert set(np.round(1 - 0.4 * np.array([0.85, 0.55, 0.3, 0.1]), 10)) <= set(planned.index)
    assert planned.index.is_monotonic_increasing
    np.testing.assert_allclose(model.plan_["gap"], 1 - model.plan_["kappa"], atol=0.05)
    assert model.kappa_ == planned.index[planned <= 0.4].min() > 0.6
    assert model.status_ == "certified"


def test_advice_about_a_floor_is_to_lower_it():
    with pytest.warns(FairnessWarning, match="lower kappa; larger kappas make a tighter model"):
        fitted(dialled(1000), estimator=Floor(), kappa=0.6, kappas=[0.5], **FLOOR)


def test_the_floor_of_an_estimator_of_the_package_is_tightened(data):
    floor = GroupRates("true_positive", rule="floor", kappa=0.5)
    bounds = {
        "constraint__kappa": floor,
        "constraint__floor__kappa": [("floor", floor), ("parity", GroupRates("selection", kappa=0.3))],
    }
    for name, constraint in bounds.items():
        ladder = Ladder(RateParityClassifier(constraint=constraint, new_row_folds=None), is_floor=True)
        assert ladder.has_bound
        assert ladder.rises
        loose, tight = ladder.fit(Part(*data), [0.5, 0.8])
        assert (loose.get_params()[name], tight.get_params()[name]) == (0.5, 0.8)
        X, y, groups = data
        rate = group_rates(y, tight.decision_function(X), sensitive_features=groups, rate="true_positive", rule="floor")
        assert rate >= 0.8 - 0.01
    assert not Ladder(RateParityClassifier(constraint=floor)).has_bound  # of a gap
    assert not Ladder(RateParityClassifier(), is_floor=True).rises


@pytest.mark.slow
def test_more_power_is_tighter():
    rows = dialled(4000)
    bold, careful = (
        fitted(rows, estimator=Dial(), power=power, kappas=[0.12, 0.09, 0.06], cv=2).kappa_ for power in (0.5, 0.99)
    )
    assert careful < bold


@pytest.mark.slow
def test_a_pipeline_of_others_is_tightened_too():
    rows = dialled(3000)
    pipeline = make_pipeline(FunctionTransformer(), Dial())
    model, alone = (fitted(rows, estimator=inner, kappas=[0.3, 0.01], cv=2) for inner in (pipeline, Dial()))
    assert model.estimator_[-1].kappa == model.kappa_ == alone.kappa_ == 0.01
    assert model.certificate_.upper_bound == alone.certificate_.upper_bound


def test_inner_bounds_that_the_folds_cannot_tell_from_zero_are_left_out():
    X, y, groups = make_biased_classification(n_samples=600, random_state=0)
    groups = np.where(np.arange(600) < 30, "few", groups.astype(str))  # 21 of them are fitted on, and 14 in every fold
    model = CertifiedFairClassifier(
        GroupThresholdClassifier(LogisticRegression()), kappa=0.1, metric="independence_gap", random_state=0
    )
    with pytest.warns(FairnessWarning, match="could not be certified"):
        model.fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(model.plan_["kappa"], [0.1, 0.085])  # 0.07 is less than what one of 14 rows counts


def test_inner_bounds_that_a_fit_of_a_fold_refuses_are_left_out():
    """Smooth rates have no granularity that would tell; the rows of a group are 23 or 24 in a fold."""
    X, y, groups = make_biased_classification(n_samples=300, random_state=0)
    groups = np.where(np.arange(300) < 50, "few", groups.astype(str))  # 35 of them are fitted on
    inner = RateParityClassifier(rate="sigmoid", new_row_folds=None)
    model = CertifiedFairClassifier(inner, kappa=0.3, metric="independence_gap", max_tests=9, random_state=0)
    with pytest.warns(FairnessWarning, match="could not be certified"):
        model.fit(X, y, sensitive_features=groups)
    assert model.plan_["kappa"].iloc[-1] == pytest.approx(0.06)  # 0.03 is less than what one of 24 rows counts
    assert model.kappa_ == pytest.approx(0.06)  # the last test, too, has an inner bound that was looked at


def test_errors_of_the_fits_say_whose_kappa_they_name_and_which_fold_it_is():
    X, y, groups = make_biased_classification(n_samples=150, random_state=0)
    model = CertifiedFairClassifier(RateParityClassifier(), kappa=0.02, metric="independence_gap", random_state=0)
    whose = r"or raise kappa\. \(kappa of RateParityClassifier is an inner bound here, one of the kappas of Cert"
    with pytest.raises(ValueError, match=rf"{whose}.*\(this is fold 1 of 3 .*; a single one of kappas is used without"):
        model.fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=rf"{whose}[^()]*\)$"):
        model.set_params(kappas=[0.02]).fit(X, y, sensitive_features=groups)


def test_given_inner_bounds():
    model = fitted(dialled(3000), estimator=Dial(), kappas=[0.01, 0.3, 0.05])
    plan = model.plan_
    assert plan["kappa"].tolist() == [0.3, 0.05, 0.01]
    assert model.kappa_ in (0.05, 0.01)
    # rates of 0.4 and 0.4 + kappa, of 60 % and 40 % of the 2,100 rows that the plan is made from
    deviations = [np.sqrt(0.24 / 1260 + (0.4 + kappa) * (0.6 - kappa) / 840) for kappa in plan["kappa"]]
    np.testing.assert_allclose(plan["std"], deviations, rtol=0.35)
    # 80 % of a normal distribution; variances of the gap on 900 rows, and twice on 2,100
    np.testing.assert_allclose(
        plan["planned"] - plan["bound"], 0.8416 * np.sqrt(2100 / 900 + 2) * plan["std"], rtol=1e-3
    )


@pytest.mark.slow
def test_a_failed_test_is_paid_for():
    """The final fit has six times the gap of the folds' fits: the first test fails."""
    rows = dialled(4000)
    options = {"estimator": Dial(jump=6.0, many=2500), "kappas": [0.05, 0.035, 0.005]}
    with pytest.warns(FairnessWarning, match=r"could not be certified to be at most kappa=0.2.*\(1 test\)"):
        once = fitted(rows, **options)
    assert (once.status_, once.kappa_, once.certificate_.passed) == ("uncertified", 0.05, False)
    again = fitted(rows, **options, max_tests=5)  # there are only three inner bounds
    assert again.status_ == "certified"
    assert again.n_tests_ == 3
    assert again.kappa_ == 0.005
    assert again.certificate_.delta == pytest.approx(0.05 / 3)
    assert again.certificate_.upper_bound > certify(
        again.estimator_, *(column[again.calibration_rows_] for column in rows[:2]),
        sensitive_features=rows[2][again.calibration_rows_], metric="independence_gap",
    ).upper_bound  # fmt: skip


def test_tests_that_there_cannot_be_are_not_paid_for():
    """The plan of the tightest bound is the best one; an estimator without a bound is tested once."""
    rows = dialled(400)
    for estimator in (Dial(), LogisticRegression()):
        with pytest.warns(FairnessWarning, match=r"\(1 test\)"):
            model = fitted(rows, estimator=estimator, kappa=0.01, kappas=[0.3, 0.2], cv=2, max_tests=50)
        assert model.certificate_.delta == 0.05


def test_uncertified_models_say_what_would_be_needed():
    rows = dialled(600)
    with pytest.warns(FairnessWarning) as caught:
        model = fitted(rows, estimator=Dial(), kappa=0.1, kappas=[0.05])
    (message,) = (str(warning.message) for warning in caught)
    needed = model.certificate_.sufficient_n
    assert (
        f"the bound is {model.certificate_.upper_bound:.4g} on {model.calibration_rows_.size} calibration rows"
        in message
    )
    assert f"{needed:,} calibration rows would be needed, about {int(np.ceil(needed / 0.3)):,} rows in all" in message
    assert (caught[0].filename, caught[0].lineno) == (__file__, fitted.__code__.co_firstlineno + 3)
    assert set(model.predict(rows[0])) == {0, 1}
    assert "rows in all; smaller kappas make a tighter model." in message
    with pytest.warns(FairnessWarning, match=r"; more max_tests try tighter models\.$"):
        fitted(dialled(4000), estimator=Dial(jump=6.0, many=2500), kappas=[0.05, 0.005])
    with pytest.warns(FairnessWarning, match=r"too large for any number of rows: raise kappa\.$"):
        fitted(rows, estimator=DummyClassifier(strategy="uniform", random_state=0), kappa=0.0)
    with pytest.warns(FairnessWarning, match="too large for any number of rows: raise kappa; smaller kappas make"):
        fitted(dialled(3000), estimator=Dial(), kappas=[0.3])


@pytest.fixture(scope="module")
def data():
    X, y, groups = make_biased_classification(n_samples=3000, random_state=0)
    return X, np.array(["no", "yes"])[(y == y.max()).astype(int)], groups


@pytest.fixture(scope="module")
def rate_parity(data):
    return fitted(data, estimator=RateParityClassifier(), kappa=0.3, kappas=[0.1, 0.05], cv=2)


@pytest.mark.slow
def test_an_estimator_of_the_package(data, rate_parity):
    X, y, groups = data
    model = rate_parity
    assert model.status_ == "certified"
    assert isinstance(model.estimator_, RateParityClassifier)
    assert model.estimator_.kappa == model.kappa_ == 0.1
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.n_features_in_ == X.shape[1]
    assert model.score(X, y) == (model.predict(X) == y).mean() > 0.7
    np.testing.assert_array_equal(model.predict_proba(X), model.estimator_.predict_proba(X))
    np.testing.assert_array_equal(model.decision_function(X), model.estimator_.decision_function(X))
    copy = pickle.loads(pickle.dumps(model))
    assert copy.certificate_.upper_bound == model.certificate_.upper_bound
    with pytest.raises(ValueError, match="of the rows are among those that RateParityClassifier was fitted on"):
        certify(model, X, y, sensitive_features=groups, metric="independence_gap")


@pytest.mark.slow
def test_same_rows_same_model_whatever_the_rows_set_aside(data, rate_parity):
    """Neither the model nor its plan depends on features and labels of the rows of the test."""
    X, y, groups = (column.copy() for column in data)
    held = rate_parity.calibration_rows_
    X[held], y[held] = 100 * X[held][::-1], y[held][::-1]
    again = fitted((X, y, groups), estimator=RateParityClassifier(), kappa=0.3, kappas=[0.1, 0.05], cv=2)
    np.testing.assert_array_equal(again.calibration_rows_, held)
    np.testing.assert_array_equal(again.estimator_.coef_, rate_parity.estimator_.coef_)
    pd.testing.assert_frame_equal(again.plan_, rate_parity.plan_)
    assert again.certificate_.gap != rate_parity.certificate_.gap
    other = fitted(data, estimator=RateParityClassifier(), kappa=0.3, kappas=[0.1], cv=2, random_state=1)
    assert not np.array_equal(other.calibration_rows_, again.calibration_rows_)


@pytest.mark.slow
def test_pipelines_inside_and_outside(data):
    X, y, groups = data
    options = {"kappa": 0.3, "kappas": [0.1], "cv": 2}
    inside = fitted(data, estimator=make_pipeline(StandardScaler(), RateParityClassifier()), **options)
    assert inside.status_ == "certified"
    assert inside.estimator_[-1].kappa == 0.1
    scaler = inside.estimator_[0]
    np.testing.assert_allclose(scaler.mean_, np.delete(X, inside.calibration_rows_, axis=0).mean(axis=0))
    outer = CertifiedFairClassifier(RateParityClassifier(), metric="independence_gap", random_state=0, **options)
    with config_context(enable_metadata_routing=True):
        outside = make_pipeline(StandardScaler(), outer).fit(X, y, sensitive_features=groups)
        search = GridSearchCV(clone(outer), {"calibration_fraction": [0.3, 0.5]}, cv=2)
        search.fit(X, y, sensitive_features=groups)
    assert outside[-1].status_ == "certified"
    assert set(outside.predict(X)) == {"no", "yes"}
    assert search.best_estimator_.status_ == "certified"


@pytest.mark.slow
def test_models_with_coefficients_by_group(data):
    X, y, groups = data
    inner = RateParityClassifier(group_interactions=True)
    model = fitted(data, estimator=inner, kappa=0.3, kappas=[0.1], cv=2)
    assert model.status_ == "certified"
    assert model.score(X, y, sensitive_features=groups) > 0.7
    with pytest.raises(ValueError, match="no sensitive_features arrived at predict"):
        model.predict(X)


def test_other_classifiers_are_fitted_as_they_are(data):
    model = fitted(data, estimator=LogisticRegression(C=0.1), kappa=0.4)
    assert (model.status_, model.kappa_, model.plan_) == ("certified", None, None)
    X, y, _ = (np.delete(column, model.calibration_rows_, axis=0) for column in data)
    np.testing.assert_allclose(model.estimator_.coef_, LogisticRegression(C=0.1).fit(X, y).coef_)


@pytest.mark.slow
def test_what_has_no_bound_to_tighten_is_fitted_as_it_is(data):
    """A penalty; a choice of kappa by folds; a bound that needs no groups is tightened."""
    model = fitted(data, estimator=CorrelationPenaltyClassifier(), kappa=0.4)
    assert (model.kappa_, model.plan_, model.n_tests_) == (None, None, 1)
    assert not Ladder(PartialParityClassifierCV()).has_bound
    inner = NeymanPearsonClassifier(priority_class="yes", max_iter=20)
    model = fitted(data, estimator=inner, kappa=0.9, kappas=[0.2])
    assert model.estimator_.bounds == model.kappa_ == 0.2


def test_weights_are_for_the_fit():
    X, y, groups = dialled(2000)
    weights = np.random.default_rng(0).random(2000)
    model = CertifiedFairClassifier(Dial(), kappa=0.3, metric="independence_gap", kappas=[0.05], random_state=0)
    model.fit(X, y, sensitive_features=groups, sample_weight=weights)
    np.testing.assert_array_equal(model.estimator_.weights_, weights[model.estimator_.rows_])
    assert model.certificate_.n_samples == model.calibration_rows_.size


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("sensitive_features", "sensitive_features has 90 rows in place of 100"),
        ("sample_weight", r"inconsistent numbers of samples: \[100, 100, 90\]"),
    ],
)
def test_columns_of_other_lengths_are_refused_before_anything_is_fitted(column, message):
    X, y, groups = dialled(100)
    columns = {"sensitive_features": groups, "sample_weight": np.ones(100)}
    columns[column] = columns[column][:90]
    model = CertifiedFairClassifier(Dial(), kappa=0.1, metric="independence_gap")
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **columns)


def test_weights_that_a_step_of_a_pipeline_requests_reach_it_with_routing_off(data):
    X, y, _ = data
    weights = np.random.default_rng(0).random(y.size)
    with config_context(enable_metadata_routing=True):
        model = make_pipeline(FunctionTransformer(), LogisticRegression().set_fit_request(sample_weight=True))
    found = fit_with_metadata(model, Part(X, y, weights=weights))
    np.testing.assert_allclose(found[-1].coef_, LogisticRegression().fit(X, y, weights).coef_)


def test_without_groups_nothing_is_certified(data):
    X, y, _ = data
    model = CertifiedFairClassifier(LogisticRegression(), kappa=0.1, metric="independence_gap")
    with pytest.warns(FairnessWarning, match="nothing to compare: .* Nothing is certified") as caught:
        model.fit(X, y)
    assert caught[0].filename == __file__
    assert (model.status_, model.certificate_, model.n_tests_) == ("uncertified", None, 0)
    np.testing.assert_array_equal(model.estimator_.coef_, LogisticRegression().fit(X, y).coef_)


def test_a_single_group_is_said_once(data):
    X, y, _ = data
    model = CertifiedFairClassifier(RateParityClassifier(), kappa=0.1, metric="independence_gap")
    with pytest.warns(FairnessWarning) as caught:
        model.fit(X, y, sensitive_features=np.zeros(y.size))
    assert len(caught) == 1


def test_accuracy_is_certified_without_groups(data):
    X, y, _ = data
    model = CertifiedFairClassifier(LogisticRegression(), kappa=0.3, metric="inaccuracy", random_state=0).fit(X, y)
    assert model.status_ == "certified"
    assert model.certificate_.gap == (model.predict(X) != y)[model.calibration_rows_].mean()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kappa": -1}, "'kappa' parameter"),
        ({"delta": 0}, "'delta' parameter"),
        ({"calibration_fraction": 1.0}, "'calibration_fraction' parameter"),
        ({"max_tests": 0}, "'max_tests' parameter"),
        ({"power": 0.2}, "'power' parameter"),
        ({"method": "exact"}, "'method' parameter"),
        ({"metric": "parity"}, "metric must be one of .*got 'parity'"),
        ({"kappas": []}, "kappas must be one or more numbers of at least 0"),
        ({"kappas": [None]}, r"kappas must be one or more numbers of at least 0; got \[None\]"),
        ({"metric_params": {"sample_weight": [1.0]}}, "'sample_weight' is no argument to give"),
        ({"metric": "minority_share"}, r"minority_share needs the arguments \['minority'\]"),
        ({"method": "dkw"}, "has no bound for independence_gap"),
    ],
)
def test_bad_parameters_leave_the_model_as_it_was(options, message):
    rows = dialled(600)
    model = fitted(rows, estimator=Dial(), kappa=0.5, kappas=[0.05], cv=2)
    before = dict(vars(model))
    model.set_params(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(*rows[:2], sensitive_features=rows[2])
    assert vars(model) == before | options


def test_strata_are_divided_with_the_rows():
    X, y, groups = make_biased_classification(1000, random_state=0)
    strata = np.where(np.arange(1000) % 2, "day", "night")
    inner = make_pipeline(StandardScaler(), RateParityClassifier(constraint="conditional_parity", new_row_folds=None))
    model = CertifiedFairClassifier(inner, kappa=0.6, kappas=[0.2, 0.1], metric="conditional_parity", cv=2)
    model.set_params(random_state=0).fit(X, y, sensitive_features=groups, strata=strata)
    assert model.plan_ is not None
    held = model.calibration_rows_
    answers = {"sensitive_features": groups[held], "metric": "conditional_parity"}
    alone = certify(model.estimator_, X[held], y[held], metric_params={"strata": strata[held]}, **answers)
    assert model.certificate_.upper_bound == alone.upper_bound
    with pytest.raises(ValueError, match=r"compares groups within strata; pass the stratum of every row to fit"):
        model.fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match=r"metric_params must not hold strata.*pass fit\(strata=...\)"):
        model.set_params(metric_params={"strata": strata}).fit(X, y, sensitive_features=groups)


def test_cells_without_calibration_rows():
    X, y, groups = dialled(400)
    y = np.where(groups == "b", 0, y)
    y[np.flatnonzero(groups == "b")[0]] = 1
    model = CertifiedFairClassifier(Dial(), kappa=0.4, metric="separation_gap", cv=2, random_state=0)
    with pytest.raises(ValueError, match="Rows per cell"):
        model.fit(X, y, sensitive_features=groups)


def test_folds_have_a_share_of_every_cell_or_are_those_of_a_splitter():
    cells = np.repeat([0, 1, 2, 3], [40, 20, 12, 8])
    part = Part(np.zeros((80, 1)), cells % 2, np.array(["a", "b"])[cells // 2])
    for _, test in _folds(4, part):
        assert np.bincount(cells[test]).tolist() == [10, 5, 3, 2]
    for found, expected in zip(_folds(KFold(3), part), KFold(3).split(part.X), strict=True):
        np.testing.assert_array_equal(found[1], expected[1])


def test_calibration_rows_are_a_share_of_every_stratum():
    strata = np.repeat([0, 1, 2], [100, 10, 1])
    drawn = calibration_rows(strata, 0.3, np.random.default_rng(0))
    assert np.bincount(strata[drawn]).tolist() == [30, 3, 1]
    assert np.unique(drawn).size == drawn.size


# The checks pass no sensitive features, so there is one group, and each fit says so by a FairnessWarning.
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
@parametrize_with_checks([CertifiedFairClassifier(LogisticRegression(), kappa=0.1, metric="independence_gap")])
def test_estimator_check(estimator, check):
    check(estimator)
