"""Measured bounds of fitted estimators: exact values on any rows, granularity, and the price of a bound."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import fairconstrained as fc
from fairconstrained.constraints import DemographicParity, RateGap, StatisticalParity
from fairconstrained.datasets import make_biased_classification, make_biased_ranking
from fairconstrained.metrics import (
    group_auc_gap,
    group_rates,
    independence_gap,
    inter_group_auc_gap,
    loss_parity_gap,
    minority_share,
    pairwise_ranking_gap,
    partial_statistical_parity_gap,
    rate_gap,
)

X, y, GROUP = make_biased_classification(n_samples=1200, random_state=0)
TRAIN, TEST = np.arange(800), np.arange(800, 1200)
TOP = (0.0, 0.3)
TWO = [("top", StatisticalParity(0.1, interval=TOP)), ("rate", DemographicParity(0.1))]


def top_gap(s, y, g):
    return partial_statistical_parity_gap(y, s, sensitive_features=g, interval=TOP)


#: Estimator, and the metrics that it bounds as functions of scores, labels and groups.
CASES = {
    "statistical_parity": (
        fc.PartialParityClassifier(0.1, interval=TOP),
        {"statistical_parity": top_gap},
    ),
    "heads": (
        fc.PartialParityClassifier(0.1, interval=TOP, group_interactions=True),
        {"statistical_parity": top_gap},
    ),
    "several": (
        fc.PartialParityClassifier(constraint=TWO),
        {
            "top": lambda s, y, g: partial_statistical_parity_gap(y, s, sensitive_features=g, interval=TOP),
            "rate": lambda s, y, g: independence_gap(y, s > 0, sensitive_features=g),
        },
    ),
    "pairwise": (
        fc.PairwiseParityClassifier(0.5),
        {"group_auc": lambda s, y, g: group_auc_gap(y, s, sensitive_features=g)},
    ),
    "penalty": (
        fc.RegularizedParityClassifier(0.3, max_iter=20),
        {"statistical_parity": lambda s, y, g: partial_statistical_parity_gap(y, s, sensitive_features=g)},
    ),
    "correlation": (
        fc.CorrelationPenaltyClassifier(0.1),
        {"group_auc": lambda s, y, g: group_auc_gap(y, s, sensitive_features=g)},
    ),
    "auc": (
        fc.AUCFairClassifier(0.05),
        {"inter_group": lambda s, y, g: inter_group_auc_gap(y, s, sensitive_features=g)},
    ),
    "loss": (
        fc.LossParityClassifier(0.05, hidden_layer_sizes=(4,), max_epochs=5, random_state=0),
        {"loss_parity": lambda s, y, g: loss_parity_gap(y, s, sensitive_features=g)},
    ),
    "group loss": (
        fc.GroupLossClassifier("minimax"),
        {
            "bounded_group_loss": lambda s, y, g: group_rates(
                y, s, sensitive_features=g, rate="log_loss", rule="ceiling"
            )
        },
    ),
    "rates": (
        fc.RateParityClassifier(
            constraint=[(name, RateGap(constraint=name)) for name in ("demographic_parity", "equalized_odds")]
        ),
        {
            name: lambda s, y, g, name=name: rate_gap(y, s, sensitive_features=g, constraint=name)
            for name in ("demographic_parity", "equalized_odds")
        },
    ),
    "minority": (
        fc.MinorityRateClassifier(0.3, minority="b", rate="indicator"),
        {"minority_share": lambda s, y, g: 1 - minority_share(y, s, sensitive_features=g, minority="b")},
    ),
}
NAMES = dict(zip(np.unique(GROUP), "ab", strict=True))
LETTERS = np.array([NAMES[g] for g in GROUP.tolist()])


@pytest.fixture(scope="module")
def fitted():
    models = {}

    def fit(name):
        if name not in models:
            model = CASES[name][0]
            models[name] = model.fit(X[TRAIN], y[TRAIN], sensitive_features=LETTERS[TRAIN])
        return models[name]

    return fit


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_metrics(fitted, name):
    model, metrics = fitted(name), CASES[name][1]
    known = dict(vars(model))
    heads = {"sensitive_features": LETTERS[TEST]} if name == "heads" else {}
    scores = model.decision_function(X[TEST], **heads)
    expected = list(metrics.values())
    found = model.constraint_values(X[TEST], y[TEST], sensitive_features=LETTERS[TEST])
    assert list(found) == list(model.constraint_values_)
    assert list(found.values()) == pytest.approx([m(scores, y[TEST], LETTERS[TEST]) for m in expected], abs=1e-12)
    assert vars(model) == known  # nothing was set
    on_train = model.constraint_values(X[TRAIN], y[TRAIN], sensitive_features=LETTERS[TRAIN])
    assert on_train == pytest.approx(model.constraint_values_, abs=1e-9)
    assert list(model.granularity_) == list(model.prices_)


@pytest.mark.slow
def test_weights_stand_for_repeated_rows_and_sparse_for_dense(fitted):
    model, weights = fitted("statistical_parity"), np.random.default_rng(0).integers(0, 3, TEST.size)
    rows = np.repeat(TEST, weights)
    weighted = model.constraint_values(
        sp.csr_array(X[TEST]), y[TEST], sensitive_features=LETTERS[TEST], sample_weight=weights
    )
    repeated = model.constraint_values(X[rows], y[rows], sensitive_features=LETTERS[rows])
    assert weighted == pytest.approx(repeated)


@pytest.mark.slow
def test_regression_is_measured_in_the_units_of_the_target():
    target = 50 + 10 * X[:, 0] + (LETTERS == "a")
    model = fc.PartialParityRegressor(0.1, constraint="demographic_parity", threshold=50.0)
    model.fit(X[TRAIN], target[TRAIN], sensitive_features=LETTERS[TRAIN])
    above = model.predict(X[TEST]) > 50
    expected = independence_gap(None, above, sensitive_features=LETTERS[TEST])
    found = model.constraint_values(X[TEST], target[TEST], sensitive_features=LETTERS[TEST])
    assert found == {"demographic_parity": pytest.approx(expected)}


def test_classes_have_their_own_values():
    model = fc.NeymanPearsonClassifier({0: 0.1}, constraint="error").fit(X[TRAIN], y[TRAIN])
    found = model.constraint_values(X[TEST], y[TEST])
    wrong = model.predict(X[TEST])[y[TEST] == 0] == 1
    assert list(found.values()) == [pytest.approx(wrong.mean())]
    assert list(found) == list(model.constraint_values_)
    with pytest.raises(ValueError, match=r"classes \[1\] have no rows"):
        model.constraint_values(X[y == 0], y[y == 0])


@pytest.mark.slow
def test_pairs_have_their_own_values():
    X, y, qid, group = make_biased_ranking(n_queries=60, random_state=0)
    first = qid < 40
    fitted_on, others = ({"qid": qid[rows], "sensitive_features": group[rows]} for rows in (first, ~first))
    model = fc.FairRanker(0.05).fit(X[first], y[first], **fitted_on)
    gap = pairwise_ranking_gap(y[~first], model.predict(X[~first]), **others)
    found = model.constraint_values(X[~first], y[~first], **others)
    assert found == {"pairwise_ranking": pytest.approx(gap)}
    with pytest.raises(ValueError, match="pass sensitive_features, the group of every row"):
        model.constraint_values(X, y, qid=qid)


def test_errors(fitted):
    model = fitted("statistical_parity")
    with pytest.raises(ValueError, match="unknown classes"):
        model.constraint_values(X[TEST], y[TEST] + 5, sensitive_features=LETTERS[TEST])
    with pytest.raises(ValueError, match="features"):
        model.constraint_values(X[TEST, :2], y[TEST], sensitive_features=LETTERS[TEST])
    with pytest.raises(ValueError, match="pass sensitive_features, the group of every row"):
        model.constraint_values(X[TEST], y[TEST])
    assert model.constraint_values(X[TEST], y[TEST], sensitive_features=["a"] * TEST.size) == {}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* probabilities:fairconstrained.FairnessWarning")
@pytest.mark.parametrize(
    ("estimator", "tolerance"),
    [
        (
            fc.PartialParityClassifier(constraint="demographic_parity"),
            0.2,
        ),  # of rates, whose surrogates see few rows at a time
        (fc.PartialParityClassifier(constraint="group_auc"), 0.2),
        (fc.RateParityClassifier(), 0.2),
        (fc.RateParityClassifier(rate="sigmoid"), 0.02),
        (fc.AUCFairClassifier(constraint="group_auc"), 0.2),
    ],
    ids=["demographic_parity", "group_auc", "indicator", "sigmoid", "auc"],
)
def test_price_is_the_slope_of_the_least_objective(estimator, tolerance):
    """Between bounds so far apart that it does not matter which rows are next to a threshold."""
    X, y, group = make_biased_classification(n_samples=6000, random_state=0)
    models = [
        clone(estimator).set_params(kappa=kappa, tol=1e-5).fit(X, y, sensitive_features=group)
        for kappa in (0.14, 0.10, 0.06)
    ]
    slope = (models[2].objective_ - models[0].objective_) / 0.08
    first, price, last = (sum(model.prices_.values()) for model in models)
    assert slope > 0.1
    assert price == pytest.approx(slope, rel=tolerance)
    assert (first + 2 * price + last) / 4 == pytest.approx(slope, rel=0.2)  # no price is lost


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
def test_a_method_without_multipliers_has_no_price():
    model = fc.PartialParityClassifier(0.1, constraint="demographic_parity", solver="idca", max_iter=2)
    model.fit(X, y, sensitive_features=GROUP)
    assert model.multipliers_ is None
    assert np.isnan(model.prices_["demographic_parity"])
    path = fc.fairness_path(model, X, y, sensitive_features=GROUP, kappas=[0.3, 0.1])
    assert path.table["price"].isna().all()
    assert path.table["multipliers"].tolist() == [None, None]
    assert "NaN" in repr(path)


def test_a_search_over_thresholds_has_no_price():
    options = {"constraint": "demographic_parity", "objective": "zero_one", "group_interactions": True}
    free, fair = (
        fc.PartialParityClassifier(kappa, **options).fit(X, y, sensitive_features=GROUP) for kappa in (None, 0.05)
    )
    assert free.objective_ < fair.objective_  # so that a price of zero would be false
    assert fair.multipliers_ is None
    assert np.isnan(fair.prices_["demographic_parity"])


def test_the_values_of_a_weight_have_no_price():
    path = fc.fairness_path(
        fc.CorrelationPenaltyClassifier(), X, y, sensitive_features=GROUP, param="weight", kappas=[0.0, 1.0]
    )
    assert path.table["price"].isna().all()


def test_price_is_zero_where_the_bound_does_not_bind():
    model = fc.RateParityClassifier(0.9).fit(X, y, sensitive_features=LETTERS)
    assert model.prices_ == {"demographic_parity": 0.0}


@pytest.mark.parametrize("name", ["penalty", "correlation"])
def test_a_penalty_has_no_kappa(name):
    model = CASES[name][0]
    assert model._bound_params(None) == {"weight": 0.0}
    with pytest.raises(ValueError, match="a weight in place of a bound"):
        model._bound_params(0.1)


def test_parameters_of_a_bound():
    assert fc.AUCFairClassifier()._bound_params(0.1) == {"kappa": 0.1}
    assert fc.MinorityRateClassifier()._bound_params(0.6) == {"min_share": pytest.approx(0.4)}
    assert fc.MinorityRateClassifier()._bound_params(None) == {"min_share": None}
    assert fc.NeymanPearsonClassifier({0: 0.2, 2: 0.3})._bound_params(0.1) == {"bounds": {0: 0.1, 2: 0.1}}
    assert fc.NeymanPearsonClassifier(0.3)._bound_params(0.1) == {"bounds": 0.1}
    several = fc.PartialParityClassifier(constraint=TWO)._bound_params(0.1)
    assert several == {"constraint__top__kappa": 0.1, "constraint__rate__kappa": 0.1}


def test_rows_of_the_fit_are_remembered():
    model = fc.AUCFairClassifier(surrogate="quadratic", objective="auc")
    model.fit(X[TRAIN], y[TRAIN], sensitive_features=LETTERS[TRAIN])
    assert model._rows_seen.share_seen(X[TRAIN]) == 1.0
    assert model._rows_seen.share_seen(X[TEST]) == 0.0
    for part in (TRAIN[:50], TEST[:50]):
        model.partial_fit(X[part], y[part], np.unique(y), LETTERS[part])
    assert model._rows_seen.share_seen(X[TEST][:50]) == 1.0
    assert model._rows_seen.share_seen(X[TEST][50:]) == 0.0
    model.forget_rows().partial_fit(X[TEST], y[TEST], np.unique(y), LETTERS[TEST])
    assert model._rows_seen is None  # what was forgotten stays so, and a part of the rows would say too much
    assert model.fit(X[TEST], y[TEST], sensitive_features=LETTERS[TEST])._rows_seen.share_seen(X[TEST]) == 1.0
