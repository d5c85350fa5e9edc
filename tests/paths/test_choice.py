"""The choice among the models of a path, by a rule and by the estimators that keep the chosen one."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from packaging.version import Version
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import (
    AUCFairClassifier,
    AUCFairClassifierCV,
    FairnessPath,
    FairnessPathCV,
    FairnessWarning,
    FairRanker,
    PartialParityClassifier,
    PartialParityClassifierCV,
    PartialParityRegressor,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import GroupRates, RateGap
from fairconstrained.metrics import rate_gap
from fairconstrained.model_selection import get_fairness_scorer


def table(**columns):
    """A path of five models that are called by their numbers."""
    values = {
        "kappa": [np.inf, 0.4, 0.2, 0.1, 0.05],
        "gap": [0.5, 0.4, 0.2, 0.1, 0.05],
        "train_accuracy": [0.95, 0.9, 0.85, 0.8, 0.7],
        "train_f1": [0.5, 0.6, 0.9, 0.7, 0.6],
        "multipliers": [{}] * 5,
        **columns,
    }
    return FairnessPath(pd.DataFrame(values), list("abcde"), ("accuracy", "f1"), ("gap",), 3 if len(columns) else 0)


HELD_OUT = {
    "mean_test_gap": [0.5, 0.42, 0.19, 0.12, 0.15],
    "mean_test_accuracy": [0.93, 0.90, 0.84, 0.83, 0.70],
    "std_test_accuracy": [0.03, 0.05, 0.02, 0.001, 0.001],
    "mean_test_f1": [0.5, 0.6, 0.7, 0.7, 0.6],
    "std_test_f1": [0.0, 0.0, 0.0, 0.0, 0.0],
}


@pytest.mark.parametrize(
    ("bound", "options", "expected"),
    [
        (1.0, {}, "a"),
        (0.3, {}, "c"),
        (0.18, {}, "d"),
        (0.19, {}, "c"),  # a gap at the bound is within it
        # one standard error of c is 0.02 / sqrt(2) = 0.014, and d is 0.01 worse
        (0.3, {"one_standard_error": True}, "d"),
        # one of b is 0.05 / sqrt(2) = 0.035: c at 0.84 is 0.06 worse
        (0.45, {"one_standard_error": True}, "b"),
        # that of the best counts: d's own, 0.0007, would leave out nothing else
        (0.18, {"one_standard_error": True}, "d"),
        # equal performance: the smaller gap
        (0.3, {"performance": "f1"}, "d"),
    ],
)
def test_the_rule_on_held_out_rows(bound, options, expected):
    path = table(**HELD_OUT)
    assert path.best(bound, **options) == expected
    assert path.models[path.best_index(bound, **options)] == expected


def test_without_folds_the_training_rows_decide():
    assert table().best(0.3) == "c"
    assert table().best(0.45, performance="f1") == "c"
    assert table().best(0.15, performance="f1") == "d"
    with pytest.raises(ValueError, match="one_standard_error needs at least two folds, and the path has 0"):
        table().best(0.3, one_standard_error=True)


@pytest.mark.parametrize(
    ("path", "expected", "message"),
    [(table(**HELD_OUT), "d", r"mean held-out gap of at most 0.01.*least gap, 0.12"), (table(), "e", "training gap")],
    ids=["folds", "none"],
)
def test_where_no_gap_is_within_the_bound(path, expected, message):
    for choose in (path.best, lambda bound: path.models[path.best_index(bound)]):
        with pytest.warns(FairnessWarning, match=message) as caught:
            assert choose(0.01) == expected
        assert [warning.filename for warning in caught] == [__file__]


def test_rounding_of_a_mean_is_no_violation():
    gaps = [0.5, 0.4, np.mean([0.1, 0.1, 0.1]), 0.3, 0.3]
    assert gaps[2] != 0.1
    assert table(**{**HELD_OUT, "mean_test_gap": gaps}).best(0.1) == "c"


def test_models_without_a_score_are_not_chosen():
    path = table(**{**HELD_OUT, "mean_test_accuracy": [0.93, 0.90, np.nan, np.nan, 0.70]})
    assert path.best(0.16) == path.best(0.2, one_standard_error=True) == "e"
    with pytest.warns(FairnessWarning, match=r"The one of least gap, 0.15,"):
        assert path.best(0.14) == "e"
    with pytest.raises(ValueError, match=r"mean_test_accuracy is NaN for every model.*with other scoring"):
        table(**{**HELD_OUT, "mean_test_accuracy": [np.nan] * 5}).best(0.2)


def test_models_without_a_gap_are_not_chosen():
    path = table(**{**HELD_OUT, "mean_test_gap": [np.nan, 0.42, 0.19, 0.12, 0.15]})
    assert path.best(0.3) == "c"
    with pytest.warns(FairnessWarning, match=r"No model of the path has a mean held-out gap of at most 0.01.*0.12,"):
        assert path.best(0.01) == "d"
    with pytest.raises(ValueError, match="the gaps do not exist, so that there is no gap to choose by"):
        table(**{**HELD_OUT, "mean_test_gap": [np.nan] * 5}).best(0.2)


def test_what_is_no_rule():
    with pytest.raises(ValueError, match="bound must be a gap of at least 0"):
        table().best(-0.1)
    with pytest.raises(ValueError, match=r"performance must be one of \['accuracy', 'f1'\]; got 'auc'"):
        table().best(0.1, performance="auc")


# --- the estimators that choose

CHOICE = {"bound": 0.18, "kappas": [None, 0.15, 0.05], "cv": 2}
RATES = {"constraint": [("rate", RateGap())]}


@pytest.fixture(scope="module")
def chosen(classes):
    model = PartialParityClassifierCV(**RATES, **CHOICE)
    return model.fit(classes.X, classes.y, sensitive_features=classes.groups)


@pytest.mark.slow
def test_the_chosen_model_is_that_of_the_path(classes, chosen):
    path = fairness_path(
        PartialParityClassifier(**RATES),
        classes.X,
        classes.y,
        sensitive_features=classes.groups,
        kappas=CHOICE["kappas"],
        cv=2,
    )
    best = path.best(0.18)
    assert chosen.kappa_ == best.constraint[0][1].kappa == 0.05
    assert chosen.path_.table["mean_test_gap"].tolist() == path.table["mean_test_gap"].tolist()
    assert 0 < chosen.best_index_ == path.best_index(0.18)
    np.testing.assert_array_equal(chosen.coef_, best.coef_)
    np.testing.assert_array_equal(chosen.decision_function(classes.X), best.decision_function(classes.X))
    np.testing.assert_array_equal(chosen.predict(classes.X), best.predict(classes.X))
    np.testing.assert_array_equal(chosen.predict_proba(classes.X), best.predict_proba(classes.X))
    assert chosen.score(classes.X, classes.y) == accuracy_score(classes.y, best.predict(classes.X))
    for name in ("constraint_values_", "multipliers_", "granularity_", "prices_", "status_", "objective_"):
        assert getattr(chosen, name) == getattr(best, name)
    scores = chosen.decision_function(classes.X)
    gap = rate_gap(classes.y, scores, sensitive_features=classes.groups, rate="indicator")
    measured = chosen.constraint_values(classes.X, classes.y, sensitive_features=classes.groups)
    assert measured == {"rate": pytest.approx(gap)}


@pytest.mark.parametrize(
    ("kind", "base"),
    [(PartialParityClassifierCV, PartialParityClassifier), (AUCFairClassifierCV, AUCFairClassifier)],
    ids=["partial", "auc"],
)
def test_parameters_are_those_of_the_estimator_and_of_the_choice(kind, base):
    own = {"bound": 0.05, "kappas": None, "n_kappas": 10, "cv": None, "scoring": None, "n_jobs": None}
    own |= {"one_standard_error": False, "param": None}
    expected = {**base().get_params(), **own}
    assert kind().get_params() == {
        name: expected[name] for name in sorted(expected) if name not in ("kappa", "warm_start")
    }
    assert list(inspect.signature(kind).parameters)[:3] == ["bound", "kappas", "n_kappas"]
    model = kind(bound=0.1, alpha=0.5)
    assert clone(model).get_params() == model.get_params()
    assert repr(model) == f"{kind.__name__}(alpha=0.5, bound=0.1)"
    assert model.set_params(alpha=0.2, cv=4).get_params()["cv"] == 4
    with pytest.raises(ValueError, match="Invalid parameter 'kappa'"):
        model.set_params(kappa=0.1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'gamma'"):
        kind(gamma=1)


@pytest.mark.slow
def test_fit_keeps_parameters_and_forgets_the_last_fit(classes, chosen):
    model = pickle.loads(pickle.dumps(chosen))
    model.set_params(hidden_layer_sizes=(2,), random_state=0, kappas=[None], bound=0.4)
    before = model.get_params()
    model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert model.get_params() == before
    assert hasattr(model, "module_")
    assert not hasattr(model, "coef_")
    state = dict(vars(model))
    with pytest.raises(ValueError, match=r"kappa=1.5: kappa must be in \[0, 1\]"):
        model.set_params(kappas=[None, 1.5]).fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert vars(model) == {**state, "kappas": [None, 1.5]}


@pytest.mark.slow
def test_one_standard_error_is_handed_on(classes):
    model = FairnessPathCV(RateParityClassifier(), bound=0.3, kappas=[None, 0.21, 0.2], cv=2, scoring="neg_log_loss")
    plain, tight = (
        clone(model).set_params(one_standard_error=tight).fit(classes.X, classes.y, sensitive_features=classes.groups)
        for tight in (False, True)
    )
    assert tight.best_index_ == plain.path_.best_index(0.3, one_standard_error=True)
    assert tight.best_index_ > plain.best_index_


@pytest.mark.slow
def test_a_bound_that_is_never_kept(classes):
    model = PartialParityClassifierCV(**RATES, bound=0.0, kappas=[None, 0.15], cv=2)
    with pytest.warns(FairnessWarning, match="No model of the path has a mean held-out gap of at most 0"):
        model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    gaps = model.path_.table["mean_test_gap"]
    assert model.best_index_ == gaps.argmin()
    assert model.kappa_ == [None, 0.15][gaps.argmin()]


def test_without_groups_it_is_the_unconstrained_model(classes):
    with pytest.warns(FairnessWarning, match="one model, the unconstrained one"):
        model = PartialParityClassifierCV(cv=2).fit(classes.X, classes.y)
    assert model.kappa_ is None
    free = PartialParityClassifier(None).fit(classes.X, classes.y)
    np.testing.assert_array_equal(model.coef_, free.coef_)


@pytest.mark.slow
def test_several_constraints_by_one_parameter(classes):
    constraints = [("rate", RateGap(0.3)), ("tpr", RateGap(None, constraint="equal_opportunity"))]
    model = PartialParityClassifierCV(
        bound=0.4, constraint=constraints, kappas=[0.2, 0.15], param="constraint__rate__kappa", cv=2
    )
    model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert model.constraint is constraints
    assert constraints[0][1].kappa == 0.3
    measured = model.constraint_values(classes.X, classes.y, sensitive_features=classes.groups)
    assert measured == pytest.approx(model.constraint_values_)


def test_strata_are_divided_into_folds(classes):
    columns = {"sensitive_features": classes.groups, "strata": np.where(np.arange(len(classes.y)) % 2, "day", "night")}
    model = PartialParityClassifierCV(
        bound=1.0, constraint=[("rate", GroupRates(within="strata"))], kappas=[0.2], cv=2, new_row_folds=None
    )
    model.fit(classes.X, classes.y, **columns)
    assert model.kappa_ == 0.2
    assert np.isfinite(model.path_.table["mean_test_gap"]).all()
    assert model.constraint_values(classes.X, classes.y, **columns) == pytest.approx(model.constraint_values_)
    with pytest.raises(ValueError, match="no constraint compares groups within them"):
        model.set_params(constraint="demographic_parity").fit(classes.X, classes.y, **columns)


def test_a_generator_of_folds_is_used_up_by_the_first_fit(classes):
    model = FairnessPathCV(RateParityClassifier(new_row_folds=None), bound=1.0, kappas=[None])
    model.set_params(cv=KFold(2).split(classes.X)).fit(classes.X, classes.y, sensitive_features=classes.groups)
    path = model.path_
    with pytest.raises(ValueError, match=r"has no folds.*cv=list\(splitter.split\(X, y\)\)"):
        model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert model.path_ is path


def test_auc(classes):
    model = AUCFairClassifierCV(bound=0.3, constraint="group_auc", kappas=[None], cv=2)
    model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert model.path_.scores == ("roc_auc",)
    assert list(model.constraint_values_) == ["group_auc"]
    assert not hasattr(model, "partial_fit")  # a stream has no folds
    with pytest.raises(ValueError, match="kappas must be given: kappa of AUCFairClassifier bounds a surrogate"):
        clone(model).set_params(surrogate="quadratic", objective="auc", kappas=None).fit(
            classes.X, classes.y, sensitive_features=classes.groups
        )


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("named", [True, False], ids=["named", "generic"])
def test_in_a_pipeline_and_a_search(classes, named):
    choice = {"bound": 0.4, "kappas": [0.2], "cv": 2}
    inner = (
        PartialParityClassifierCV(constraint=[("rate", RateGap())], group_interactions=True, **choice)
        if named
        else FairnessPathCV(RateParityClassifier(group_interactions=True), **choice)
    )
    step = type(inner).__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), inner),
        {f"{step}__bound": [0.4]},
        scoring={"accuracy": get_fairness_scorer("accuracy")},
        refit="accuracy",
        cv=2,
        error_score="raise",
    )
    search.fit(classes.X, classes.y, sensitive_features=classes.groups)
    best = search.best_estimator_
    assert best[-1].kappa_ == 0.2
    predicted = best.predict(classes.X, sensitive_features=classes.groups)
    assert search.cv_results_["mean_test_accuracy"][0] == pytest.approx(accuracy_score(classes.y, predicted), abs=0.05)
    assert is_classifier(search)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_any_estimator_and_pipelines(classes):
    inner = make_pipeline(StandardScaler(), RateParityClassifier(rate="sigmoid"))
    model = FairnessPathCV(inner, bound=0.12, kappas=[None, 0.1, 0.02], cv=3)
    model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    table, best = model.path_.table, model.best_estimator_
    within = table["mean_test_gap"] <= 0.12
    assert model.best_index_ == table["mean_test_accuracy"].where(within).idxmax()
    assert (model.kappa_, best[-1].kappa) == (0.1, 0.1)
    np.testing.assert_array_equal(model.predict(classes.X), best.predict(classes.X))
    np.testing.assert_array_equal(model.predict_proba(classes.X), best.predict_proba(classes.X))
    assert model.score(classes.X, classes.y) == accuracy_score(classes.y, model.predict(classes.X))
    assert model.classes_.tolist() == [0, 1]
    assert not hasattr(inner[-1], "status_")
    assert is_regressor(FairnessPathCV(PartialParityRegressor()))
    assert not hasattr(FairnessPathCV(PartialParityRegressor()), "predict_proba")
    with pytest.raises(TypeError, match="one of fairconstrained"):
        FairnessPathCV(StandardScaler()).fit(classes.X, classes.y)


def test_ranking(classes):
    queries = np.repeat(np.arange(40), 10)
    model = FairnessPathCV(FairRanker(rate="sigmoid"), bound=0.5, kappas=[None, 0.04], cv=2)
    model.fit(classes.X, classes.y, sensitive_features=classes.groups, qid=queries)
    expected = model.best_estimator_.score(classes.X, classes.y, qid=queries)
    assert model.score(classes.X, classes.y, qid=queries, sensitive_features=classes.groups) == expected


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.7"),
    reason="cross_val_score of scikit-learn 1.6 passes a score nothing that the estimator itself requests",
)
@pytest.mark.usefixtures("routing")
def test_what_the_estimator_requests_is_requested(classes):
    queries = np.repeat(np.arange(40), 10)
    model = FairnessPathCV(FairRanker(rate="sigmoid"), bound=0.5, kappas=[None], cv=2)
    params = {"qid": queries, "sensitive_features": classes.groups}
    splits = list(GroupKFold(2).split(classes.X, classes.y, queries))
    found = cross_val_score(model, classes.X, classes.y, params=params, cv=splits, error_score="raise")
    for (train, test), score in zip(splits, found, strict=True):
        inside = {name: column[train] for name, column in params.items()}
        ranker = FairRanker(None, rate="sigmoid").fit(classes.X[train], classes.y[train], **inside)
        assert score == ranker.score(classes.X[test], classes.y[test], qid=queries[test])
    assert "qid" not in FairnessPathCV(RateParityClassifier()).get_metadata_routing().fit.requests


@pytest.mark.parametrize("enabled", [False, True], ids=["plain", "routing"])
def test_score_of_a_pipeline_gets_groups_and_weights(classes, enabled):
    pipeline = make_pipeline(StandardScaler(), RateParityClassifier(group_interactions=True))
    model = FairnessPathCV(pipeline, bound=0.5, kappas=[None], cv=2)
    weights = 1.0 + classes.y
    with sklearn.config_context(enable_metadata_routing=enabled):
        model.fit(classes.X, classes.y, sensitive_features=classes.groups)
        score = model.score(classes.X, classes.y, weights, sensitive_features=classes.groups)
        predicted = model.predict(classes.X, sensitive_features=classes.groups)
    assert score == pytest.approx(accuracy_score(classes.y, predicted, sample_weight=weights))


def test_the_models_of_a_path_share_their_record_of_the_rows_and_forget_it_together(chosen):
    model = pickle.loads(pickle.dumps(chosen))
    records = {id(one._rows_seen) for one in (model, *model.path_.models)}
    assert len(records) == 1
    assert model._rows_seen.hashes.size > 0
    assert model.forget_rows() is model
    assert [one._rows_seen for one in (model, *model.path_.models)] == [None] * 4


def test_forgetting_reaches_the_last_step_of_pipelines(classes):
    model = FairnessPathCV(make_pipeline(StandardScaler(), RateParityClassifier()), bound=0.3, kappas=[0.3, 0.25], cv=2)
    model.fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert model.best_estimator_[-1]._rows_seen is not None
    assert model.forget_rows() is model
    assert model.best_estimator_[-1]._rows_seen is None
