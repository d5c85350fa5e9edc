"""The argument ``constraint`` of all estimators: a name, an alias, a constraint, or several with names."""

import numpy as np
import pytest
from sklearn.base import clone

import fairconstrained as fc
from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    GroupRates,
    LossParity,
    ParityPair,
    RateGap,
    StatisticalParity,
)
from fairconstrained.groups import threshold_groups

#: What a bound on smooth rates says where that of the decisions is larger, which is tested elsewhere.
pytestmark = pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")

rng = np.random.default_rng(0)
GROUP = rng.integers(0, 2, 400)
X = rng.normal(size=(400, 3)) + 0.7 * GROUP[:, None]
Y = (X[:, 0] + rng.normal(size=400) > 0.4).astype(int)
QUERY = np.repeat(np.arange(20), 20)

NETWORK = {"hidden_layer_sizes": (3,), "max_epochs": 3, "random_state": 0}
#: An estimator with the name of a constraint, and the constraint that this name stands for.
NAMED = {
    "partial": (fc.PartialParityClassifier(0.1), StatisticalParity(0.1)),
    "rates": (fc.RateParityClassifier(0.1), RateGap(0.1)),
    "losses": (fc.LossParityClassifier(0.05, **NETWORK), LossParity(0.05)),
    "group losses": (
        fc.GroupLossClassifier(0.65),
        GroupRates("log_loss", rule="ceiling", kappa=0.65),
    ),
    "auc": (fc.AUCFairClassifier(0.1), AUCGap(0.1, constraint="inter_group")),
    "pair": (fc.ParityPairClassifier(1.1), ParityPair(1.1, rate="sigmoid")),
    "ranker": (fc.FairRanker(0.1, constraint="all"), RateGap(0.1)),
}


def fitted(model, **params):
    own = {"qid": QUERY} if isinstance(model, fc.FairRanker) else {}
    return clone(model).set_params(**params).fit(X, Y, sensitive_features=GROUP, **own)


def scores_of(model):
    return model.predict(X) if isinstance(model, fc.FairRanker) else model.decision_function(X)


@pytest.mark.parametrize("name", NAMED)
def test_a_name_and_the_constraint_that_it_stands_for_give_the_same_model(name):
    model, constraint = NAMED[name]
    by_name, by_instance = fitted(model), fitted(model, constraint=constraint)
    np.testing.assert_allclose(scores_of(by_name), scores_of(by_instance), rtol=1e-9)
    assert list(by_name.constraint_values_.values()) == pytest.approx(list(by_instance.constraint_values_.values()))
    assert by_instance.named_kappas() == dict.fromkeys(by_instance.constraint_values_, constraint.kappa)


@pytest.mark.parametrize("name", NAMED)
def test_several_constraints_have_names_and_bounds_of_their_own(name):
    model, constraint = NAMED[name]
    pairs = [("own", clone(constraint)), ("shares", RateGap(0.5))]
    model = fitted(model, constraint=pairs, constraint__shares__kappa=0.4)
    assert list(model.constraint_values_) == ["own", "shares"]
    assert model.named_kappas() == {"own": constraint.kappa, "shares": 0.4}
    assert model.violation_ == pytest.approx(
        max(0.0, *(value - model.named_kappas()[key] for key, value in model.constraint_values_.items())), abs=1e-9
    )
    own = {"qid": QUERY} if name == "ranker" else {}
    assert model.constraint_values(X, Y, sensitive_features=GROUP, **own) == pytest.approx(model.constraint_values_)


@pytest.mark.parametrize(
    ("model", "alias"),
    [
        (fc.RateParityClassifier(0.1), "demographic_parity_difference"),
        (fc.RateParityClassifier(0.1, constraint="equalized_odds"), "equalized_odds_difference"),
        (fc.PartialParityClassifier(0.1, constraint="demographic_parity"), "demographic_parity_difference"),
        (fc.LossParityClassifier(0.05, **NETWORK), "demographic_parity_difference"),
    ],
)
def test_other_names_of_a_notion(model, alias):
    by_name, by_alias = fitted(model), fitted(model, constraint=alias)
    np.testing.assert_array_equal(scores_of(by_name), scores_of(by_alias))
    assert by_name.constraint_values_ == by_alias.constraint_values_


def test_tables_of_groups_by_constraint():
    pairs = [("shares", RateGap(0.2)), ("ranks", StatisticalParity(None)), ("recalls", RateGap(0.3, rate="sigmoid"))]
    model = fitted(fc.RateParityClassifier(constraint=pairs))
    assert list(model.group_rates_) == ["shares", "recalls"]
    positive = model.decision_function(X) > 0
    rates = [positive[group == GROUP].mean() for group in (0, 1)]
    assert model.group_rates_["shares"].rate.tolist() == pytest.approx(rates)
    assert model.exact_gaps_["shares"] == pytest.approx(np.ptp(rates))
    assert model.exact_gaps_["recalls"] == pytest.approx(np.ptp(rates))
    assert model.exact_gaps_["ranks"] == model.constraint_values_["ranks"]
    losses = fitted(fc.LossParityClassifier(**NETWORK), constraint=[("losses", LossParity(0.1)), *pairs[1:2]])
    assert list(losses.group_losses_) == ["losses"]
    assert losses.group_losses_["losses"].compared_as.tolist() == ["0", "1"]


# --- groups that are too small


SMALL = np.where(np.arange(400) < 6, "c", np.where(GROUP == 0, "a", "b"))


def test_merged_groups_of_a_users_constraint_are_known_on_other_rows():
    constraint = RateGap(0.2, small_groups="merge", rate="sigmoid")
    groups = np.where(np.arange(400) < 40, np.where(np.arange(400) < 20, "c", "d"), SMALL)
    few = fc.RateParityClassifier(constraint=[("rates", constraint)])
    few.set_params(constraint__rates__min_group_size=30).fit(X, Y, sensitive_features=groups)
    (table,) = few.group_rates_.values()
    assert table.compared_as.to_dict() == {"a": "a", "b": "b", "c": "(small groups)", "d": "(small groups)"}
    probability = 1 / (1 + np.exp(-few.decision_function(X)))
    places = {"a": groups == "a", "b": groups == "b", "others": (groups == "c") | (groups == "d")}
    gap = np.ptp([probability[rows].mean() for rows in places.values()])
    assert few.constraint_values_["rates"] == pytest.approx(gap)
    # four times as many rows, of which every group would be large enough by itself
    again = [np.concatenate([part] * 4) for part in (X, Y, groups)]
    values = few.constraint_values(again[0], again[1], sensitive_features=again[2])
    assert values["rates"] == pytest.approx(gap)


@pytest.mark.parametrize("name", ["rates", "losses"])
def test_the_estimator_deals_with_small_groups_of_constraints_that_do_not(name):
    model = clone(NAMED[name][0]).set_params(constraint=DemographicParity(0.1), small_groups="ignore")
    model.fit(X, Y, sensitive_features=SMALL)
    assert model.ignored_groups_ == ["c"]
    model.set_params(small_groups="error")
    with pytest.raises(ValueError, match=r"demographic_parity .* needs .* at least 10 rows"):
        model.fit(X, Y, sensitive_features=SMALL)


def test_groups_that_overlap_are_dealt_with_by_the_constraint():
    members = threshold_groups(X, [0], quantiles=[0.0, 0.5])
    model = fc.RateParityClassifier(constraint=RateGap(0.4), small_groups="merge")
    with pytest.raises(ValueError, match=r"needs groups that do not overlap .* RateGap\(small_groups='merge'\)"):
        model.fit(X, Y, sensitive_features=members)
    model.set_params(small_groups="error", constraint__small_groups="merge").fit(X, Y, sensitive_features=members)
    assert model.constraint_values_["demographic_parity"] <= 0.4 + model.granularity_["demographic_parity"]
