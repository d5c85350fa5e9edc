"""Scorers: what they measure and request, and what reaches the metric and the estimator in a search."""

import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score, fbeta_score, get_scorer, get_scorer_names
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.metadata_routing import get_routing_for_object

from fairconstrained import RateParityClassifier
from fairconstrained.exceptions import FairnessWarning
from fairconstrained.metrics import (
    METRICS,
    conditional_parity_gap,
    inaccuracy,
    independence_gap,
    loss_parity_gap,
    partial_demographic_parity_gap,
    partial_statistical_parity_gap,
    separation_gap,
    statistical_parity_gap,
    wasserstein_gap,
)
from fairconstrained.metrics.classes import class_margins
from fairconstrained.metrics.registry import info_of
from fairconstrained.model_selection import (
    best_feasible,
    get_fairness_scorer,
    get_fairness_scorer_names,
    make_fairness_scorer,
    make_performance_scorer,
)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    groups = rng.choice(["a", "b"], size=300, p=[0.6, 0.4])
    X = rng.normal(size=(300, 3)) + 0.8 * (groups == "a")[:, None]
    y = (X[:, 0] + rng.normal(size=300) > 0.4).astype(int)
    return X, y, groups


def test_strata_reach_a_metric_that_needs_them_and_no_other(data, routing):
    X, y, groups = data
    strata = np.where(X[:, 2] > 0, "high", "low")
    scorer = get_fairness_scorer("neg_conditional_parity")
    model = RateParityClassifier(constraint="conditional_parity", new_row_folds=None, random_state=0)
    scoring = {"accuracy": get_fairness_scorer("accuracy"), "gap": scorer}
    search = GridSearchCV(model, {"kappa": [0.15, None]}, scoring=scoring, refit="gap", cv=2)
    search.fit(X, y, sensitive_features=groups, strata=strata)
    _, test = list(StratifiedKFold(2).split(X, y))[1]
    train = np.delete(np.arange(300), test)
    free = (
        clone(model)
        .set_params(kappa=None)
        .fit(X[train], y[train], sensitive_features=groups[train], strata=strata[train])
    )
    gap = conditional_parity_gap(y[test], free.predict(X[test]), sensitive_features=groups[test], strata=strata[test])
    assert search.cv_results_["split1_test_gap"][1] == pytest.approx(-gap)
    assert search.best_params_ == {"kappa": 0.15}
    with pytest.raises(ValueError, match="needs strata"):
        scorer(free, X, y, sensitive_features=groups)


class PerGroup(ClassifierMixin, BaseEstimator):
    """One threshold on the first feature per group: it cannot predict without the groups."""

    __metadata_request__fit = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__predict = {"sensitive_features": True}  # noqa: RUF012
    __metadata_request__decision_function = {"sensitive_features": True}  # noqa: RUF012

    def __init__(self, quantile=0.5):
        self.quantile = quantile

    def fit(self, X, y, *, sensitive_features):
        self.classes_ = np.unique(y)
        self.thresholds_ = {
            group: np.quantile(X[sensitive_features == group, 0], self.quantile)
            for group in np.unique(sensitive_features)
        }
        return self

    def decision_function(self, X, *, sensitive_features):
        assert len(sensitive_features) == len(X)
        return X[:, 0] - np.array([self.thresholds_[group] for group in sensitive_features])

    def predict(self, X, *, sensitive_features):
        return self.classes_[(self.decision_function(X, sensitive_features=sensitive_features) > 0).astype(int)]


class NotGiven(LogisticRegression):
    """Takes sensitive features but does not ask for them."""

    def predict(self, X, sensitive_features=None):
        assert sensitive_features is None
        return super().predict(X)


# --- what is measured


def test_gap_is_negated_and_equals_the_metric(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    score = make_fairness_scorer(independence_gap)(model, X, y, sensitive_features=groups)
    rate = [model.predict(X)[groups == group].mean() for group in "ab"]
    assert score == pytest.approx(-abs(rate[0] - rate[1]))
    assert score < -0.1


def test_greater_is_better_keeps_the_sign(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    scorer = make_fairness_scorer(independence_gap, greater_is_better=True)
    assert scorer(model, X, y, sensitive_features=groups) > 0.1


@pytest.mark.parametrize("metric", [statistical_parity_gap, partial_statistical_parity_gap])
def test_score_metrics_judge_the_decision_function(data, metric):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    expected = metric(y, model.decision_function(X), sensitive_features=groups)
    assert make_fairness_scorer(metric)(model, X, y, sensitive_features=groups) == pytest.approx(-expected)


def test_keyword_arguments_reach_the_metric(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    expected = partial_statistical_parity_gap(
        y, model.decision_function(X), sensitive_features=groups, interval=(0.1, 0.3)
    )
    for scorer in [
        make_fairness_scorer(partial_statistical_parity_gap, interval=(0.1, 0.3)),
        make_fairness_scorer(partial(partial_statistical_parity_gap, interval=(0.1, 0.3))),
        get_fairness_scorer("neg_partial_statistical_parity_gap", interval=(0.1, 0.3)),
    ]:
        assert scorer(model, X, y, sensitive_features=groups) == pytest.approx(-expected)


def test_sample_weight_reaches_the_metric(data):
    X, y, groups = data
    weight = np.where(y == 1, 3.0, 1.0)
    model = LogisticRegression().fit(X, y)
    expected = independence_gap(y, model.predict(X), sensitive_features=groups, sample_weight=weight)
    unweighted = independence_gap(y, model.predict(X), sensitive_features=groups)
    score = make_fairness_scorer(independence_gap)(model, X, y, sensitive_features=groups, sample_weight=weight)
    assert score == pytest.approx(-expected)
    assert abs(expected - unweighted) > 1e-3


def test_without_decision_function_the_log_odds_keep_the_threshold_at_zero(data):
    X, y, groups = data
    model = RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    probability = model.predict_proba(X)[:, 1]
    assert {0.0, 1.0} <= set(probability)  # certainty must not become infinity
    scorer = make_fairness_scorer(partial_demographic_parity_gap)
    expected = partial_demographic_parity_gap(y, probability, sensitive_features=groups, threshold=0.5)
    assert expected > 0.1
    assert scorer(model, X, y, sensitive_features=groups) == pytest.approx(-expected)
    whole = make_fairness_scorer(statistical_parity_gap)(model, X, y, sensitive_features=groups)
    assert whole == pytest.approx(-statistical_parity_gap(y, probability, sensitive_features=groups))


class Certain(ClassifierMixin, BaseEstimator):
    """Probabilities straight from the data."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])


def test_log_odds_are_finite_and_keep_every_order():
    seen = []
    probability = np.array([0.0, 1e-300, 1e-20, 0.3, 0.5, 0.7, np.nextafter(1, 0), 1.0])
    model = Certain().fit(probability[:, None], np.arange(8) % 2)
    scorer = make_performance_scorer(
        lambda y_true, y_score: float(bool(seen.append(y_score))), response="decision_function"
    )
    scorer(model, probability[:, None], np.arange(8) % 2)
    assert np.isfinite(seen[0]).all()
    assert (np.diff(seen[0]) > 0).all()
    assert seen[0][4] == 0


def test_probability_metrics_judge_the_positive_column(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    expected = wasserstein_gap(y, model.predict_proba(X)[:, 1], sensitive_features=groups)
    score = make_fairness_scorer(wasserstein_gap)(model, X, y, sensitive_features=groups)
    assert score == pytest.approx(-expected)


def test_probabilities_are_not_made_up(data):
    X, y, groups = data
    model = LinearSVC().fit(X, y)
    with pytest.raises(TypeError, match=r"LinearSVC has none of \['predict_proba'\].*response='predict'"):
        make_fairness_scorer(wasserstein_gap)(model, X, y, sensitive_features=groups)


def test_regressor_is_judged_by_its_predictions(data):
    X, y, groups = data
    model = LinearRegression().fit(X, X[:, 0] + y)
    expected = statistical_parity_gap(None, model.predict(X), sensitive_features=groups)
    score = make_fairness_scorer(statistical_parity_gap)(model, X, X[:, 0] + y, sensitive_features=groups)
    assert score == pytest.approx(-expected)


@pytest.mark.parametrize("name", ["neg_separation_gap", "neg_partial_statistical_parity_gap", "f1", "roc_auc"])
def test_string_labels_give_the_same_scores(data, name):
    X, y, groups = data
    words = np.where(y == 1, "yes", "no")
    numbers = get_fairness_scorer(name)(LogisticRegression().fit(X, y), X, y, sensitive_features=groups)
    strings = get_fairness_scorer(name)(LogisticRegression().fit(X, words), X, words, sensitive_features=groups)
    assert strings == pytest.approx(numbers)


def test_pos_label_turns_labels_and_scores_around(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    recall_of_0 = get_fairness_scorer("recall", pos_label=0)(model, X, y)
    assert recall_of_0 == pytest.approx((model.predict(X)[y == 0] == 0).mean())
    top = {"interval": (0.0, 0.2)}
    bottom = make_fairness_scorer(partial_statistical_parity_gap, pos_label=0, **top)
    expected = partial_statistical_parity_gap(y, -model.decision_function(X), sensitive_features=groups, **top)
    assert bottom(model, X, y, sensitive_features=groups) == pytest.approx(-expected)
    with pytest.raises(ValueError, match=r"pos_label=7 is not one of the classes \[0, 1\]"):
        get_fairness_scorer("recall", pos_label=7)(model, X, y)


def test_labels_the_model_never_saw_are_an_error(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"labels that the estimator was not fitted with: \[2\]"):
        get_fairness_scorer("accuracy")(model, X, y + 1, sensitive_features=groups)


def test_multiclass_labels_are_left_as_they_are(data):
    X, _, _ = data
    y = np.digitize(X[:, 0], [0, 1])
    model = LogisticRegression().fit(X, y)
    assert get_fairness_scorer("accuracy")(model, X, y) == pytest.approx((model.predict(X) == y).mean())


def test_missing_sensitive_features_are_explained(data):
    X, y, _ = data
    model = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match=r"independence_gap.*needs sensitive_features.*enable_metadata_routing"):
        make_fairness_scorer(independence_gap)(model, X, y)


# --- names


def test_every_metric_of_the_registry_has_a_scorer():
    names = get_fairness_scorer_names()
    assert names == sorted(names)
    assert {f"neg_{name}" for name in METRICS} <= set(names)
    for name, info in METRICS.items():
        scorer = get_fairness_scorer(f"neg_{name}")
        assert (scorer.metric, scorer.response, scorer.greater_is_better) == (
            info.function,
            info.response,
            False,
        )
        assert make_fairness_scorer(info.function).response == info.response


@pytest.mark.parametrize("symbol", ["Ind", "Sp", "Sf", "Ina", "Wd", "pSP", "pDP", "pGAUC", "pEOP", "pEOD"])
def test_symbols_of_the_papers_are_minus_their_gaps(data, symbol):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    predicted, score = model.predict(X), model.decision_function(X)

    def rates(of, given, value):
        return np.ptp([of[(groups == g) & (given == value)].mean() for g in np.unique(groups)])

    by_hand = {
        "Ind": lambda: rates(predicted, np.ones_like(y), 1),
        "Sp": lambda: sum(rates(predicted, y, value) for value in (0, 1)),
        "Sf": lambda: sum(rates(y, predicted, value) for value in (0, 1)),
        "Ina": lambda: np.mean(predicted != y),
    }
    functions = {info.symbol: info for info in METRICS.values()}
    response = model.predict_proba(X)[:, 1] if symbol == "Wd" else score
    expected = by_hand.get(symbol, lambda: functions[symbol].function(y, response, sensitive_features=groups))()
    assert -get_fairness_scorer(symbol)(model, X, y, sensitive_features=groups) == pytest.approx(expected)
    assert expected > 0


def test_arguments_override_those_of_a_symbol(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    larger = get_fairness_scorer("Sp", agg_labels="max")(model, X, y, sensitive_features=groups)
    assert larger == get_fairness_scorer("neg_separation_gap")(model, X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("neg_demographic_parity", "neg_independence_gap"),
        ("neg_equalized_odds_difference", "neg_separation_gap"),
        ("neg_inter_group", "neg_inter_group_auc_gap"),
    ],
)
def test_other_names_of_a_metric_are_names_of_its_scorer(data, alias, name):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    assert repr(get_fairness_scorer(alias)) == repr(get_fairness_scorer(name))
    assert get_fairness_scorer(alias)(model, X, y, sensitive_features=groups) < 0


PERFORMANCE = sorted(set(get_fairness_scorer_names()) & set(get_scorer_names()))


@pytest.mark.parametrize("name", PERFORMANCE)
def test_performance_scorers_agree_with_scikit_learn(data, name):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    assert get_fairness_scorer(name)(model, X, y, sensitive_features=groups) == pytest.approx(
        get_scorer(name)(model, X, y)
    )


def test_all_performance_names_are_names_of_scikit_learn():
    infos = [*METRICS.values(), info_of(conditional_parity_gap)]
    gaps = {f"neg_{name}" for info in infos for name in info.names}
    gaps |= {info.symbol for info in METRICS.values()}
    assert set(get_fairness_scorer_names()) - gaps == set(PERFORMANCE)
    assert len(PERFORMANCE) >= 10


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ValueError, match=r"no scorer 'independence_gap'.*'neg_independence_gap'"):
        get_fairness_scorer("independence_gap")


@pytest.mark.parametrize("make", [make_fairness_scorer, make_performance_scorer])
def test_a_name_in_place_of_a_metric_is_an_error_that_names_the_other_function(make):
    with pytest.raises(TypeError, match=r"metric must be a function.*got 'independence_gap'.*get_fairness_scorer"):
        make("independence_gap")


def test_auto_reads_the_argument_name():
    assert make_fairness_scorer(lambda y_true, y_pred: 0.0).response == "predict"
    assert make_fairness_scorer(lambda y_true, y_score: 0.0).response == "decision_function"
    assert make_fairness_scorer(lambda y_true, y_proba: 0.0).response == "predict_proba"
    with pytest.raises(ValueError, match=r"second argument \(stuff\).* names \['y_pred'.* by response="):
        make_fairness_scorer(lambda y_true, stuff: 0.0)
    with pytest.raises(ValueError, match="response must be one of"):
        make_fairness_scorer(independence_gap, response="scores")


# --- the object


def test_repr_reads_like_the_call():
    assert repr(make_fairness_scorer(statistical_parity_gap, agg="mean")) == (
        "make_fairness_scorer(statistical_parity_gap, response='decision_function', agg='mean')"
    )
    assert repr(make_performance_scorer(accuracy_score)) == (
        "make_performance_scorer(accuracy_score, response='predict')"
    )
    assert "greater_is_better=False" in repr(get_fairness_scorer("neg_log_loss"))
    assert "partial(fbeta_score, beta=2)" in repr(make_performance_scorer(partial(fbeta_score, beta=2)))


def test_pickle_and_clone_keep_scores_and_requests(data, routing):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    scorer = get_fairness_scorer("neg_partial_statistical_parity_gap", interval=(0.1, 0.3))
    scorer.set_score_request(sample_weight=True)
    for copy in [pickle.loads(pickle.dumps(scorer)), clone(scorer)]:
        assert copy is not scorer
        assert repr(copy) == repr(scorer)
        assert copy.get_metadata_routing().score.requests == {
            "sensitive_features": True,
            "sample_weight": True,
            "strata": False,
        }
        assert copy(model, X, y, sensitive_features=groups) == scorer(model, X, y, sensitive_features=groups)


def test_sensitive_features_are_requested_and_sample_weight_is_not(routing):
    requests = make_fairness_scorer(independence_gap).get_metadata_routing().score.requests
    assert requests == {"sensitive_features": True, "sample_weight": None, "strata": False}


# --- in scikit-learn


def held_out_gaps(search, X, y, groups, metric=independence_gap):
    """Gaps of the folds, by hand."""
    gaps = []
    for train, test in search.cv.split(X, y):
        model = clone(search.estimator).fit(X[train], y[train])
        gaps.append(metric(y[test], model.predict(X[test]), sensitive_features=groups[test]))
    return gaps


@pytest.mark.parametrize(
    "model",
    [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())],
    ids=["bare", "pipe"],
)
def test_single_metric_search(data, routing, model):
    X, y, groups = data
    parameter = "C" if isinstance(model, LogisticRegression) else "logisticregression__C"
    search = GridSearchCV(
        model, {parameter: [1.0]}, scoring=get_fairness_scorer("neg_independence_gap"), cv=KFold(3)
    ).fit(X, y, sensitive_features=groups)
    gaps = held_out_gaps(search, X, y, groups)
    for fold, gap in enumerate(gaps):
        assert search.cv_results_[f"split{fold}_test_score"][0] == pytest.approx(-gap)
    assert search.score(X, y, sensitive_features=groups) == pytest.approx(
        -independence_gap(y, search.predict(X), sensitive_features=groups)
    )
    clone(search).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("frame", [False, True])
def test_multi_metric_search_beside_scikit_learns_own_scorer(data, routing, frame):
    X, y, groups = data
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression__C": [1e-3, 1.0]},
        scoring={
            "accuracy": "accuracy",
            "ours": get_fairness_scorer("accuracy"),
            "pSP": make_fairness_scorer(partial_statistical_parity_gap, interval=(0.0, 0.5)),
            "Ind": make_fairness_scorer(independence_gap),
        },
        refit=best_feasible("Ind", 0.15, "accuracy"),
        cv=3,
        error_score="raise",
    )
    search.fit(X, y, sensitive_features=pd.DataFrame({"group": groups}) if frame else groups)
    results = search.cv_results_
    assert results["mean_test_Ind"][0] > -0.15 > results["mean_test_Ind"][1]
    assert search.best_index_ == 0
    assert (results["mean_test_pSP"] < 0).all()
    np.testing.assert_allclose(results["mean_test_ours"], results["mean_test_accuracy"])


def test_sample_weight_arrives_once_requested(data, routing):
    X, y, groups = data
    weight = np.where(y == 1, 3.0, 1.0)
    scorer = make_fairness_scorer(independence_gap).set_score_request(sample_weight=True)
    params = {"sensitive_features": groups, "sample_weight": weight}
    model = LogisticRegression().set_fit_request(sample_weight=False)
    out = cross_validate(
        model, X, y, scoring=scorer, cv=[(np.arange(300), np.arange(300))], params=params, error_score="raise"
    )
    expected = independence_gap(y, clone(model).fit(X, y).predict(X), **params)
    assert out["test_score"][0] == pytest.approx(-expected)


@pytest.mark.parametrize("model", [PerGroup(), make_pipeline(StandardScaler(), PerGroup())], ids=["bare", "pipe"])
def test_models_that_need_the_groups_get_them(data, routing, model):
    X, y, groups = data
    parameter = "quantile" if isinstance(model, PerGroup) else "pergroup__quantile"
    search = GridSearchCV(
        model,
        {parameter: [0.3, 0.5]},
        scoring={name: get_fairness_scorer(name) for name in ["accuracy", "roc_auc", "neg_independence_gap"]},
        refit="accuracy",
        cv=3,
        error_score="raise",
    ).fit(X, y, sensitive_features=groups)
    expected = accuracy_score(y, search.best_estimator_.predict(X, sensitive_features=groups))
    assert search.score(X, y, sensitive_features=groups) == pytest.approx(expected)
    # equal shares of each group are above its own quantile
    assert (search.cv_results_["mean_test_neg_independence_gap"] > -0.15).all()


def test_models_that_do_not_ask_are_not_told(data, routing):
    X, y, groups = data
    model = NotGiven().fit(X, y)
    assert get_routing_for_object(model).consumes("predict", ["sensitive_features"]) == set()
    assert get_fairness_scorer("accuracy")(model, X, y, sensitive_features=groups) == pytest.approx(
        accuracy_score(y, model.predict(X))
    )


def test_meta_estimators_without_routing_are_scored(data, routing):
    X, y, groups = data
    model = AdaBoostClassifier(n_estimators=3).fit(X, y)
    with pytest.raises(NotImplementedError):
        get_routing_for_object(model)
    assert get_fairness_scorer("neg_independence_gap")(model, X, y, sensitive_features=groups) < 0


def test_without_routing_the_search_says_what_to_do(data):
    X, y, _ = data
    search = GridSearchCV(
        LogisticRegression(), {"C": [1.0]}, scoring=get_fairness_scorer("neg_independence_gap"),
        error_score="raise",
    )  # fmt: skip
    with pytest.raises(ValueError, match="enable_metadata_routing=True"):
        search.fit(X, y)


def test_performance_scorer_works_without_routing(data):
    X, y, _ = data
    scoring = {"accuracy": get_fairness_scorer("accuracy"), "theirs": "accuracy"}
    search = GridSearchCV(LogisticRegression(), {"C": [1.0]}, scoring=scoring, refit="accuracy", cv=3)
    search.fit(X, y, sample_weight=np.where(y == 1, 2.0, 1.0))
    results = search.cv_results_
    assert results["mean_test_accuracy"][0] == pytest.approx(results["mean_test_theirs"][0])


# --- Fairlearn


def test_fairlearn_metric(data):
    fairlearn_metrics = pytest.importorskip("fairlearn.metrics")
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    scorer = make_fairness_scorer(fairlearn_metrics.equalized_odds_difference, agg="worst_case")
    expected = separation_gap(y, model.predict(X), sensitive_features=groups)
    assert scorer(model, X, y, sensitive_features=groups) == pytest.approx(-expected)
    ours, summed = (get_fairness_scorer("neg_separation_gap", **options) for options in ({}, {"agg_labels": "sum"}))
    assert ours(model, X, y, sensitive_features=groups) == pytest.approx(-expected)
    assert summed(model, X, y, sensitive_features=groups) < -expected


@pytest.mark.slow
def test_fairlearn_models(data, routing):
    pytest.importorskip("fairlearn")
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    np.random.seed(0)  # noqa: NPY002 -- Fairlearn's predict draws from the global generator
    X, y, groups = data
    optimizer = ThresholdOptimizer(
        estimator=LogisticRegression(), constraints="demographic_parity", predict_method="decision_function"
    ).fit(X, y, sensitive_features=groups)
    optimizer.set_predict_request(sensitive_features=True)
    unconstrained = LogisticRegression().fit(X, y)
    reduction = ExponentiatedGradient(LogisticRegression(), DemographicParity(), eps=0.02, max_iter=10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Fairlearn's reductions use what pandas 3 deprecates
        reduction.fit(X, y, sensitive_features=groups)
    gap = get_fairness_scorer("neg_independence_gap")
    before = gap(unconstrained, X, y, sensitive_features=groups)
    for model in (optimizer, reduction):
        assert gap(model, X, y, sensitive_features=groups) > before / 2
        assert 0.5 < get_fairness_scorer("accuracy")(model, X, y, sensitive_features=groups) < 1
    with pytest.raises(TypeError, match="ExponentiatedGradient has none of"):
        get_fairness_scorer("neg_statistical_parity_gap")(reduction, X, y, sensitive_features=groups)


def test_inaccuracy_is_one_minus_accuracy(data):
    X, y, groups = data
    model = LogisticRegression().fit(X, y)
    accuracy = get_fairness_scorer("accuracy")(model, X, y)
    score = make_fairness_scorer(inaccuracy)(model, X, y, sensitive_features=groups)
    assert score == pytest.approx(accuracy - 1)


def test_one_positive_label_of_three_and_probabilities_of_three():
    rng = np.random.default_rng(0)
    y, groups = rng.integers(0, 3, 200), rng.integers(0, 2, 200)
    X = rng.normal(size=(200, 3)) + np.eye(3)[y]
    linear, tree = LogisticRegression().fit(X, y), DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    margins = class_margins(linear.decision_function(X))[:, 2]
    scorer = make_fairness_scorer(statistical_parity_gap, pos_label=2)
    expected = statistical_parity_gap(y == 2, margins, sensitive_features=groups)
    assert -scorer(linear, X, y, sensitive_features=groups) == pytest.approx(expected)
    # a tree has probabilities only, some of them 0: the losses are -log of those of the true labels
    own = tree.predict_proba(X)[np.arange(200), y]
    losses = -np.log(own)
    assert tree.predict_proba(X).min() == 0 < own.min()
    gap = abs(losses[groups == 0].mean() - losses[groups == 1].mean())
    assert -make_fairness_scorer(loss_parity_gap)(tree, X, y, sensitive_features=groups) == pytest.approx(gap)


def test_a_fold_of_a_single_group_has_no_score(data, routing):
    X, y, group = data[:3]
    order = np.argsort(group, kind="stable")
    scorer, search = get_fairness_scorer("neg_independence_gap"), {"C": [0.1, 1.0]}
    with pytest.warns(FairnessWarning, match="only one group"), pytest.warns(UserWarning, match="non-finite"):
        found = GridSearchCV(LogisticRegression(), search, scoring=scorer, cv=KFold(4)).fit(
            X[order], y[order], sensitive_features=group[order]
        )
    assert np.isnan(found.cv_results_["mean_test_score"]).all()
