"""Rates by any rule in estimators: by name, in lists, in heads and boosted trees, within strata; and what is said."""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    ConvergenceWarning,
    FairBoostingClassifier,
    FairHeadClassifier,
    FairnessWarning,
    LossParityClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import GroupRates
from fairconstrained.constraints.group_rates import NAMED_RATES
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import conditional_parity_gap, find_metric, group_rates


@pytest.fixture(scope="module")
def rows():
    X, y, group = make_biased_classification(n_samples=1500, n_features=4, random_state=0)
    return X, y, group


@pytest.fixture(scope="module")
def departments(rows):
    """Strata in which the groups have other shares."""
    rng = np.random.default_rng(0)
    return np.where(rng.random(1500) < np.where(rows[2] == rows[2][0], 0.3, 0.6), "research", "sales")


def free(rate, rule="difference", **options):
    return RateParityClassifier(constraint=GroupRates(rate, rule=rule, kappa=None, **options), new_row_folds=None)


@pytest.mark.parametrize(
    "name", [name for name in NAMED_RATES if name not in ("conditional_parity", "bounded_group_loss")]
)
def test_a_name_bounds_the_metric_of_the_name(name, rows):
    X, y, group = rows
    unbounded = free(**NAMED_RATES[name]).fit(X, y, sensitive_features=group)
    info, _ = find_metric(name)
    before = info.function(y, unbounded.predict(X), sensitive_features=group)
    # One linear score can bring precisions together by few positive decisions only; that is not what is tested here.
    kappa = before * (0.85 if name.startswith("predictive_parity") else 0.5)
    model = RateParityClassifier(kappa, constraint=name, new_row_folds=None)
    model.fit(X, y, sensitive_features=group)
    value = info.function(y, model.predict(X), sensitive_features=group)
    assert model.constraint_values_ == {name: pytest.approx(value)}
    assert value <= kappa + model.granularity_[name] < before
    assert model.status_ == "optimal"
    assert model.objective_ > unbounded.objective_


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("false_positive_rate_difference", "predictive_equality"),
        ("accuracy_parity", "error_rate_parity"),
        ("selection_rate_ratio", "demographic_parity_ratio"),
        ("precision_score_difference", "predictive_parity"),
    ],
)
def test_names_of_other_packages(given, name, rows):
    X, y, group = rows
    model = RateParityClassifier(0.3, constraint=given, new_row_folds=None).fit(X, y, sensitive_features=group)
    assert list(model.constraint_values_) == [name]


@pytest.mark.parametrize(
    ("rate", "rule"), [("true_positive", "floor"), ("false_positive", "ceiling"), ("accuracy", "floor")]
)
def test_floors_and_ceilings_are_kept_exactly_and_have_a_price_of_their_sign(rate, rule, rows):
    X, y, group = rows
    unbounded = free(rate, rule).fit(X, y, sensitive_features=group)
    (before,) = unbounded.constraint_values_.values()
    kappa = before + (0.01 if rate == "accuracy" else 0.03) if rule == "floor" else before / 2
    model = RateParityClassifier(constraint=GroupRates(rate, rule=rule, kappa=kappa), new_row_folds=None)
    model.fit(X, y, sensitive_features=group)
    value = group_rates(y, model.decision_function(X), sensitive_features=group, rate=rate, rule=rule)
    ((name, known),) = model.constraint_values_.items()
    assert known == pytest.approx(value)
    assert (value >= kappa - 1e-8) if rule == "floor" else (value <= kappa + 1e-8)
    assert model.violation_ <= 1e-8
    price = model.prices_[name]
    assert price < 0 if rule == "floor" else price > 0
    assert model.objective_ >= unbounded.objective_


@pytest.mark.slow
def test_a_floor_that_cannot_be_kept_is_said(rows):
    X, y, group = rows
    bounds = [
        ("caught", GroupRates("true_positive", rule="floor", kappa=0.99)),
        ("few", GroupRates(rule="ceiling", kappa=0.1)),
    ]
    model = RateParityClassifier(constraint=bounds, new_row_folds=None)
    with pytest.warns(ConvergenceWarning, match=r"caught is .* is below kappa=0.99|few is .* exceeds kappa=0.1"):
        model.fit(X, y, sensitive_features=group)
    assert model.status_ == "infeasible"
    assert model.violation_ > 0.1


@pytest.mark.parametrize(
    "make",
    [
        lambda bounds: PartialParityClassifier(constraint=bounds, new_row_folds=None),
        lambda bounds: FairBoostingClassifier(constraint=bounds, n_estimators=40, new_row_folds=None),
        lambda bounds: FairHeadClassifier(
            LogisticRegression(), head=RateParityClassifier(constraint=bounds, new_row_folds=None), random_state=0
        ),
        lambda bounds: LossParityClassifier(
            constraint=bounds, hidden_layer_sizes=(4,), max_epochs=5, random_state=0, new_row_folds=None
        ),
        lambda bounds: RateParityClassifier(constraint=bounds, group_interactions=True, new_row_folds=None),
    ],
    ids=["partial", "boosting", "head", "network", "by group"],
)
def test_every_estimator_takes_a_list_of_them(make, rows):
    X, y, group = rows
    bounds = [
        ("four fifths", GroupRates(rule="ratio", kappa=0.2)),
        ("caught", GroupRates("true_positive", rule="floor", kappa=0.6)),
        ("errors", GroupRates("error", kappa=0.1)),
    ]
    model = make(bounds).fit(X, y, sensitive_features=group)
    values = model.constraint_values_
    assert values["four fifths"] <= 0.2 + 1e-8
    assert values["caught"] >= 0.6 - 1e-8
    assert values["errors"] <= 0.1 + model.granularity_["errors"]
    assert set(model.prices_) == set(values)
    clone(model).set_params(**{k: v for k, v in model.get_params().items() if k.endswith("kappa")})


def test_rows_without_weight_are_as_if_they_had_no_stratum(rows, departments):
    X, y, group = rows
    closed = np.where(np.arange(1500) < 150, "closed", departments)
    model = RateParityClassifier(0.1, constraint="conditional_parity", new_row_folds=None)
    model.fit(X, y, sensitive_features=group, strata=closed, sample_weight=(closed != "closed").astype(float))
    kept = slice(150, None)
    alone = clone(model).fit(X[kept], y[kept], sensitive_features=group[kept], strata=departments[kept])
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.constraint_values_ == alone.constraint_values_


def test_a_network_within_strata_is_not_said_to_have_lost_its_scores():
    rng = np.random.default_rng(0)
    X, group, strata = rng.normal(size=(1500, 6)), rng.integers(0, 3, 1500), rng.integers(0, 3, 1500)
    X[:, 0] += 0.7 * (group == 1)
    X[:, 1] += 0.5 * strata * (group == 0)
    y = X[:, 0] + 0.6 * X[:, 1] + rng.logistic(size=1500) > 1.0
    bound = GroupRates(kappa=0.15, within="strata")
    model = LossParityClassifier(constraint=bound, max_epochs=15, random_state=0)
    model.fit(X, y, sensitive_features=group, strata=strata)  # a warning is an error here
    assert np.ptp(model.decision_function(X)) > 1
    assert model.violation_ <= model.granularity_["conditional_parity"]


def test_the_table_of_rates_names_the_strata(rows, departments):
    X, y, group = rows
    sites = pd.DataFrame({"department": departments, "site": np.where(X[:, 0] > 0, "north", "south")})
    model = free("selection", within="strata").fit(X, y, sensitive_features=group, strata=sites)
    table = model.group_rates_.filter(like="selection")
    assert list(table) == [f"selection_{(d, s)}" for d in ("research", "sales") for s in ("north", "south")]
    decisions = pd.Series(model.predict(X) == y.max())
    in_sales = decisions[(departments == "sales") & (X[:, 0] <= 0)]
    expected = in_sales.groupby(group[in_sales.index]).mean()
    pd.testing.assert_series_equal(table["selection_('sales', 'south')"], expected, check_names=False)


@pytest.mark.slow
def test_conditional_parity(rows, departments):
    X, y, group = rows
    columns = {"sensitive_features": group, "strata": departments}
    model = RateParityClassifier(0.05, constraint="conditional", new_row_folds=2).fit(X, y, **columns)
    value = conditional_parity_gap(y, model.predict(X), **columns)
    assert model.constraint_values_ == {"conditional_parity": pytest.approx(value)}
    assert value <= 0.05 + model.granularity_["conditional_parity"]
    assert model.constraint_values(X, y, **columns) == {"conditional_parity": pytest.approx(value)}
    assert np.isfinite(model.new_row_gaps_["conditional_parity"].estimate)
    assert {"conditional_parity"} == set(model.prices_)
    # Bounded within departments, the shares of all rows need not agree.
    assert model.constraint_values_ != RateParityClassifier(0.05).fit(X, y, sensitive_features=group).constraint_values_


def test_strata_go_through_a_pipeline_and_a_path(rows, departments):
    X, y, group = rows
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(
            StandardScaler(), RateParityClassifier(0.05, constraint="conditional", new_row_folds=None)
        )
        pipeline.fit(X, y, sensitive_features=group, strata=departments)
    assert pipeline[-1].constraint_values_["conditional_parity"] <= 0.06
    path = fairness_path(
        RateParityClassifier(constraint="conditional", new_row_folds=None),
        X,
        y,
        sensitive_features=group,
        fit_params={"strata": departments},
        kappas=[None, 0.1],
        cv=2,
    )
    assert path.table["gap"].iloc[1] <= 0.11 < path.table["gap"].iloc[0]
    assert np.isfinite(path.table["mean_test_gap"]).all()


def test_strata_that_nobody_asked_for_or_that_are_missing(rows, departments):
    X, y, group = rows
    with pytest.raises(ValueError, match="no constraint compares groups within them"):
        RateParityClassifier().fit(X, y, sensitive_features=group, strata=departments)
    with pytest.raises(ValueError, match=r"pass the stratum of every row to fit\(strata=...\)"):
        RateParityClassifier(constraint="conditional").fit(X, y, sensitive_features=group)
    with pytest.raises(ValueError, match="strata has 10 rows, y has 1500"):
        RateParityClassifier(constraint="conditional").fit(X, y, sensitive_features=group, strata=departments[:10])
    with pytest.raises(ValueError, match="strata contains NaN"):
        RateParityClassifier(constraint="conditional").fit(
            X, y, sensitive_features=group, strata=np.where(np.arange(1500) == 3, np.nan, 1.0)
        )


def test_rows_of_a_label_by_its_own_name(rows):
    X, y, group = rows
    names = np.where(y == y.max(), "hired", "rejected")  # sorted, "rejected" is the positive class
    model = RateParityClassifier(constraint=GroupRates("selection", kappa=0.1, among="hired"), new_row_folds=None)
    model.fit(X, names, sensitive_features=group)
    among = names == "hired"
    expected = group_rates(
        names[among] == "rejected",
        model.decision_function(X)[among],
        sensitive_features=group[among],
        pos_label=True,
    )
    assert list(model.constraint_values_.values()) == [pytest.approx(expected)]
    with pytest.raises(ValueError, match="among must be one of"):
        clone(model).set_params(constraint__among="fired").fit(X, names, sensitive_features=group)


def test_a_mask_goes_with_the_rows_of_the_fit_alone(rows):
    X, y, group = rows
    mask = X[:, 0] > 0
    model = RateParityClassifier(constraint=GroupRates(kappa=0.1, among=mask), new_row_folds=None)
    weights = np.repeat([0.0, 1.0], [100, 1400])  # rows without weight are rows that were given
    model.fit(X, y, sensitive_features=group, sample_weight=weights)
    kept = mask & (weights > 0)
    expected = group_rates(None, model.decision_function(X)[kept], sensitive_features=group[kept])
    assert model.constraint_values_["selection_gap"] == pytest.approx(expected)
    with pytest.raises(ValueError, match="among has 1500 entries, but 700 rows were given"):
        model.constraint_values(X[:700], y[:700], sensitive_features=group[:700])
    with pytest.raises(ValueError, match=r"among has 1500 entries, but 750 rows were given.*folds of a search"):
        fairness_path(model, X, y, sensitive_features=group, kappas=[0.2, 0.1], cv=2)


def test_a_rate_of_its_own_is_not_mixed_with_another(rows):
    X, y, group = rows
    with pytest.raises(ValueError, match="has a rate of its own"):
        RateParityClassifier(constraint="predictive_equality", rate="sigmoid").fit(X, y, sensitive_features=group)


def test_a_regressor_bounds_means_and_losses_in_the_units_of_the_target():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 1200)
    X = rng.normal(size=(1200, 3)) + 0.4 * group[:, None]
    y = 100 + 30 * (X @ [1.0, 0.5, 0.2]) + (5 + 5 * group) * rng.normal(size=1200)
    bounds = [("means", GroupRates("score", kappa=8.0)), ("losses", GroupRates("squared", rule="ceiling", kappa=250.0))]
    model = PartialParityRegressor(constraint=bounds, new_row_folds=None).fit(X, y, sensitive_features=group)
    predicted = model.predict(X)
    means = [predicted[group == g].mean() for g in (0, 1)]
    losses = [((predicted - y)[group == g] ** 2).mean() / 2 for g in (0, 1)]
    assert model.constraint_values_["means"] == pytest.approx(abs(means[0] - means[1]))
    assert model.constraint_values_["losses"] == pytest.approx(max(losses))
    assert model.constraint_values_["means"] <= 8.0 + 1e-4
    assert max(losses) <= 250.0 + 1e-4
    assert model.constraint_values(X, y, sensitive_features=group) == pytest.approx(model.constraint_values_)
    with pytest.raises(ValueError, match="about the decisions of a classifier"):
        PartialParityRegressor(constraint=GroupRates("error")).fit(X, y, sensitive_features=group)


@pytest.mark.parametrize("n_groups", [8, 9])  # more than eight are compared with a centre of theirs
def test_predictive_parity_of_many_groups(n_groups):
    rng = np.random.default_rng(1)
    X, group = rng.normal(size=(4000, 3)), rng.integers(0, n_groups, 4000)
    X[:, 0] += group % 3
    y = X[:, 0] / 2 + X[:, 1] + rng.logistic(size=4000) > 0.5
    unbounded = free("positive_predictive_value").fit(X, y, sensitive_features=group)
    model = RateParityClassifier(0.08, constraint="predictive_parity", new_row_folds=None, random_state=0)
    model.fit(X, y, sensitive_features=group)
    assert model.constraint_values_["predictive_parity"] <= 0.08 + model.granularity_["predictive_parity"]
    assert unbounded.constraint_values_["predictive_parity"] > 0.1
    assert model.score(X, y) > 0.65


@pytest.mark.parametrize(("n_accepted", "is_said"), [(3, True), (5, False), (0, False)])
def test_a_rate_among_few_decisions_is_said(rows, n_accepted, is_said):
    X, y, group = rows
    data = FairData.from_arrays(X, np.where(y == y.max(), 1.0, -1.0), (group == group.max()).astype(int), ("a", "b"))
    bound = GroupRates("positive_predictive_value", kappa=0.2).bind(data)
    scores = np.full(1500, -1.0)
    scores[np.flatnonzero(data.codes == 0)[:n_accepted]] = 1.0
    scores[np.flatnonzero(data.codes == 1)[:50]] = 1.0
    text = bound.caveat(scores) or ""
    assert ("a group has only 3 here: each of them changes it by up to 0.33" in text) == is_said


def test_a_ratio_that_exists_for_no_model_is_said():
    rng = np.random.default_rng(0)
    X, group = rng.normal(size=(4000, 3)), rng.integers(0, 2, 4000)
    y = X[:, 0] + X[:, 1] / 2 + 0.3 * group + rng.logistic(size=4000) > 6.5  # a percent of the rows
    model = RateParityClassifier(0.1, constraint="demographic_parity_ratio", new_row_folds=None, random_state=0)
    with pytest.warns(FairnessWarning, match="one of which counts only . of a group's rows here: each .*='balanced'"):
        model.fit(X, y, sensitive_features=group)
    # with so large a penalty, runs from other decisions lead nowhere else
    with (
        pytest.warns(ConvergenceWarning, match="no group has a rate above 0: weigh the classes"),
        pytest.warns(FairnessWarning, match="one of which counts only"),
    ):
        clone(model).set_params(alpha=100.0).fit(X, y, sensitive_features=group)
    model.set_params(class_weight="balanced").fit(X, y, sensitive_features=group)
    assert model.constraint_values_["demographic_parity_ratio"] <= 0.1 + 0.01
    assert model.score(X, y) > 0.6


def test_predictive_parity_without_decisions_is_not_kept(rows):
    X, y, group = rows
    model = RateParityClassifier(
        constraint=GroupRates("positive_predictive_value", kappa=0.3), new_row_folds=None, alpha=1e6
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, np.where(np.arange(1500) % 50 == 0, y, y.min()), sensitive_features=group)
    assert (
        any("does not exist" in str(w.message) for w in caught) or model.constraint_values_["predictive_parity"] <= 0.3
    )


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.CostlyBoundWarning")
@pytest.mark.parametrize("seed", [0, 8, 14])
def test_two_bounds_that_a_run_misses_are_kept_from_other_decisions(seed):
    X, y, group = make_biased_classification(1000, 4, positive_rates=(0.6, 0.35), random_state=seed)
    bounds = [
        ("selection", GroupRates("selection", rule="ratio", kappa=0.2)),
        ("precision", GroupRates("positive_predictive_value", kappa=0.05)),
    ]
    model = RateParityClassifier(constraint=bounds, new_row_folds=None).fit(X, y, sensitive_features=group)
    assert model.status_ in ("optimal", "completed")
    assert model.constraint_values_["selection"] <= 0.2 + 1e-9
    assert model.constraint_values_["precision"] <= 0.05 + model.granularity_["precision"]
    # some rows are accepted, and more of them rightly so than by chance
    accepted = model.predict(X) == y.max()
    assert accepted.mean() > 0.05
    assert (y[accepted] == y.max()).mean() > (y == y.max()).mean() + 0.2
