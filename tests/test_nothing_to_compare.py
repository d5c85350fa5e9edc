"""Whoever forgets ``sensitive_features`` under a bound is warned, and no model claims to be fair."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

from fairconstrained import (
    AUCFairClassifier,
    AUCFairClassifierCV,
    CertifiedFairClassifier,
    CorrelationPenaltyClassifier,
    FairBoostingClassifier,
    FairBoostingRegressor,
    FairHeadClassifier,
    FairHeadRegressor,
    FairnessPathCV,
    FairRanker,
    GroupLossClassifier,
    GroupLossRegressor,
    LossParityClassifier,
    MinorityRateClassifier,
    PairwiseParityClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    PartialParityClassifierCV,
    PartialParityRegressor,
    RateParityClassifier,
    RegularizedParityClassifier,
    fairness_path,
    fairness_report,
)
from fairconstrained.constraints import AUCGap, GroupRates, StatisticalParity
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.postprocessing import GroupThresholdClassifier, ScoreShiftPostprocessor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 2))
Y = (X[:, 0] + RNG.normal(size=200) > 0).astype(int)
QID = np.repeat(np.arange(20), 10)
NETWORK = LossParityClassifier(kappa=0.1, hidden_layer_sizes=(4,), max_epochs=2, random_state=0)
STREAM = AUCFairClassifier(kappa=0.1, surrogate="quadratic", objective="auc")

ESTIMATORS = [
    AUCFairClassifier(kappa=0.1),
    AUCFairClassifierCV(kappas=[None, 0.1], cv=2),
    CorrelationPenaltyClassifier(),
    FairBoostingClassifier(kappa=0.1, n_estimators=3),
    FairBoostingRegressor(kappa=0.1, n_estimators=3),
    FairHeadClassifier(LogisticRegression(), RateParityClassifier(kappa=0.1), cv=2, random_state=0),
    FairHeadRegressor(LinearRegression(), PartialParityRegressor(kappa=0.1), cv=2, random_state=0),
    GroupLossClassifier(kappa=0.5),
    GroupLossClassifier(kappa="minimax"),
    GroupLossRegressor(kappa=0.5),
    GroupThresholdClassifier(LogisticRegression(), cv=2, random_state=0),
    MinorityRateClassifier(),
    NETWORK,
    PairwiseParityClassifier(),
    ParityPairClassifier(),
    PartialParityClassifier(kappa=0.1),
    PartialParityClassifierCV(cv=2),
    PartialParityRegressor(kappa=0.1),
    RateParityClassifier(kappa=0.1),
    RateParityClassifier(kappa=0.1, promise="new_rows"),
    RegularizedParityClassifier(max_iter=5),
    ScoreShiftPostprocessor(LogisticRegression()),
]


@pytest.mark.parametrize("model", ESTIMATORS, ids=str)
def test_every_estimator_says_that_it_is_unconstrained(model):
    with pytest.warns(FairnessWarning, match="There is nothing to compare"):
        model.fit(X, Y)
    assert model.status_ == "unconstrained"
    assert model.constraint_values_ == {}


BOUNDS = [
    ("found", GroupRates("true_positive", kappa=0.05, small_groups="ignore")),
    ("right", GroupRates("accuracy", rule="floor", kappa=0.2)),
]


@pytest.mark.parametrize(
    "model",
    [
        RateParityClassifier(constraint=BOUNDS),
        PartialParityClassifier(constraint=BOUNDS),
        GroupThresholdClassifier(LogisticRegression(), constraint=BOUNDS, cv=None),
    ],
    ids=str,
)
def test_one_of_several_bounds_that_compares_nothing_is_said(model):
    groups = np.repeat(["a", "b"], [188, 12])
    with pytest.warns(FairnessWarning, match=r"found bounds nothing: its small_groups leaves no .*: \['b'\]"):
        model.fit(X, Y, sensitive_features=groups)
    assert list(model.constraint_values_) == ["right"]
    assert model.status_ != "unconstrained"


FLOOR = ("hits", GroupRates("true_positive", rule="floor", kappa=0.9))
GAPS = [GroupRates(kappa=0.05), StatisticalParity(0.05), AUCGap(0.05)]


@pytest.mark.parametrize(
    "model",
    [
        *(RateParityClassifier(constraint=[FLOOR, ("gap", gap)]) for gap in GAPS),
        GroupThresholdClassifier(LogisticRegression(), constraint=[FLOOR, ("gap", GAPS[0])], cv=None),
    ],
    ids=str,
)
def test_a_floor_of_a_single_group_is_kept_beside_a_gap(model):
    with pytest.warns(FairnessWarning, match="^([A-Za-z]+: )?gap bounds nothing: .* there is only one") as caught:
        model.fit(X, Y, sensitive_features=np.full(200, "a"))
    assert len(caught) == 1
    found = X[Y == 1], {"sensitive_features": np.full(Y.sum(), "a")}
    hits = np.mean(model.predict(found[0], **found[1] if isinstance(model, GroupThresholdClassifier) else {}))
    assert model.constraint_values_ == {"hits": pytest.approx(hits)}
    assert hits >= 0.9 - model.granularity_["hits"] > np.mean(LogisticRegression().fit(X, Y).predict(found[0])) + 0.05


def test_a_floor_of_a_single_group_by_itself_is_nothing_to_warn_of():
    model = GroupThresholdClassifier(LogisticRegression(), constraint=[FLOOR], cv=None)
    assert model.fit(X, Y, sensitive_features=np.full(200, "a")).constraint_values_["hits"] >= 0.9


def test_groups_that_a_constraint_has_merged_into_one_are_said():
    groups, strata = np.repeat(["a", "b"], 100), np.tile([0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 20)
    bound = GroupRates(kappa=0.05, within="strata", small_groups="merge")
    with pytest.warns(FairnessWarning, match=r"'merge' leaves a single group \(it put \['a', 'b'\] together\)"):
        model = RateParityClassifier(constraint=bound).fit(X, Y, sensitive_features=groups, strata=strata)
    assert model.status_ == "unconstrained"


def test_a_ranker():
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        assert FairRanker(kappa=0.1).fit(X, Y, qid=QID).status_ == "unconstrained"


@pytest.mark.parametrize("model", [NETWORK, STREAM], ids=str)
def test_streams(model):
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        assert clone(model).partial_fit(X, Y, classes=[0, 1]).status_ == "unconstrained"


def test_a_floor_of_the_single_group_of_a_stream_is_nothing_to_warn_of():
    model = clone(NETWORK).set_params(constraint=FLOOR[1])
    for _ in range(30):
        model.partial_fit(X, Y, classes=[0, 1], sensitive_features=np.full(200, "a"))
    (hits,) = model.constraint_values_.values()
    assert hits == np.mean(model.predict(X[Y == 1])) > 0.85
    with pytest.warns(FairnessWarning, match="sensitive_features was not given. Nothing is bounded"):
        model = clone(model).partial_fit(X, Y, classes=[0, 1])
    assert model.constraint_values_ == {}


def test_paths():
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        path = fairness_path(RateParityClassifier(), X, Y, sensitive_features=None, kappas=[None, 0.1])
    assert path.table["status"].tolist() == ["optimal", "unconstrained"]
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        chosen = FairnessPathCV(RateParityClassifier(), kappas=[0.2, 0.1], cv=2).fit(X, Y)
    assert chosen.best_estimator_.status_ == "unconstrained"


def test_a_certificate_is_not_given():
    model = CertifiedFairClassifier(RateParityClassifier(), kappa=0.1, metric="independence_gap", random_state=0)
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        assert model.fit(X, Y).status_ == "uncertified"


@pytest.mark.parametrize(("rule", "advice"), [("floor", "one group suffices"), ("difference", "at least two groups")])
def test_a_certificate_asks_for_as_many_groups_as_it_needs(rule, advice):
    model = CertifiedFairClassifier(
        LogisticRegression(), kappa=0.1, metric="group_rates", metric_params={"rate": "selection", "rule": rule}
    )
    with pytest.warns(FairnessWarning, match=f"sensitive_features was not given.*{advice}"):
        assert model.fit(X, Y).status_ == "uncertified"


def test_a_report_of_such_a_model_says_so():
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        model = RateParityClassifier(kappa=0.1).fit(X, Y)
    groups = np.repeat(["a", "b"], 100)
    report = fairness_report(
        Y, model.decision_function(X), sensitive_features=groups, model=model, n_resamples=0
    ).to_html()
    assert "the model has no bound (status “unconstrained”)" in report


def test_whoever_asks_for_no_bound_is_not_warned():
    model = RateParityClassifier(kappa=None).fit(X, Y)
    assert model.status_ == "optimal"
    assert GroupThresholdClassifier(LogisticRegression(), kappa=None, cv=2).fit(X, Y).status_ == "optimal"
