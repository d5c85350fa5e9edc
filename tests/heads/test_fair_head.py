"""Heads keep their bounds on cross-fitted scores of any estimator, and behave as meta-estimators of scikit-learn do."""

from __future__ import annotations

import pickle
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC

from fairconstrained import (
    AUCFairClassifier,
    CertifiedFairClassifier,
    FairBoostingClassifier,
    FairHeadClassifier,
    FairHeadRegressor,
    FairnessPathCV,
    FairnessReport,
    FairnessWarning,
    FairRanker,
    GroupLossClassifier,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    ParityPairClassifier,
    PartialParityClassifier,
    PartialParityClassifierCV,
    PartialParityRegressor,
    RateParityClassifier,
    certify,
    fairness_path,
)
from fairconstrained.constraints import DemographicParity, EqualOpportunity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.groups import MERGED
from fairconstrained.heads import CrossFittedScores
from fairconstrained.heads._basis import ScoreBasis
from fairconstrained.metrics import independence_gap
from fairconstrained.model_selection import get_fairness_scorer
from fairconstrained.model_selection.cell_folds import cell_folds

BASE = GaussianNB()
PARITY = PartialParityClassifier(0.05, constraint="demographic_parity")


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(
        1200, 4, group_proportions=(0.6, 0.4), group_shift=(0.8, 0.0), separation=(1.0, 2.0), random_state=0
    )


def fitted(rows, estimator=BASE, head=PARITY, **params):
    X, y, groups = rows
    return FairHeadClassifier(estimator, head, **{"random_state": 0, **params}).fit(X, y, sensitive_features=groups)


@pytest.fixture(scope="module")
def model(rows):
    return fitted(rows)


class NeverFitted(GaussianNB):
    def fit(self, X, y):
        raise AssertionError("the model was fitted before the head was checked")


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (PARITY, "fewer rows: {'c': 8}.*small_groups"),
        (LossParityClassifier(0.02), "fewer rows.*'c'"),
        (RateParityClassifier(0.02, constraint="nonsense"), "constraint must be one of"),
        (PartialParityClassifier(7.0, constraint="demographic_parity"), "'kappa' parameter"),
        (PartialParityClassifier(0.02, constraint=DemographicParity(3.0)), r"kappa must be in \[0, 1\]"),
        (PartialParityClassifier(0.5, constraint="demographic_parity", solver="nonsense"), "solver must be one of"),
        (NeymanPearsonClassifier(priority_class=7), "priority_class is"),
    ],
)
def test_what_a_head_refuses_is_said_before_its_models_are_fitted(rows, head, message):
    X, y, groups = rows
    groups = np.where(np.arange(y.size) < 8, "c", groups.astype(str))
    given = {} if isinstance(head, NeymanPearsonClassifier) else {"sensitive_features": groups}
    with pytest.raises(ValueError, match=message):
        FairHeadClassifier(NeverFitted(), head, random_state=0).fit(X, y, **given)


def test_a_ranker_says_what_it_refuses_before_its_models_are_fitted(rows):
    X, y, groups = rows

    class Never(LinearRegression):
        def fit(self, X, y):
            raise AssertionError("the model was fitted before the head was checked")

    head = FairHeadRegressor(Never(), FairRanker(0.05), random_state=0)
    with pytest.raises(ValueError, match="fewer rows"):
        head.fit(X[:30], y[:30], sensitive_features=groups[:30], qid=np.repeat([0, 1, 2], 10))


def test_a_head_that_knows_its_number_of_features_is_checked_without_them(rows):
    X, y, groups = rows
    n_features = CrossFittedScores(BASE, random_state=0).fit_transform(X, y, sensitive_features=groups).shape[1]
    head = FairBoostingClassifier(None, n_estimators=5, monotonic_cst=[1] + [0] * (n_features - 1))
    assert fitted(rows, head=head).head_.n_features_in_ == n_features > 1


class NeedsValidation(GaussianNB):
    """A model that stops early, and so needs a validation set."""

    def fit(self, X, y, eval_set=None):
        if eval_set is None:
            raise ValueError("a validation set is required")
        return super().fit(X, y)


def test_a_copy_for_the_groups_that_cannot_be_fitted_names_the_remedy(rows):
    X, y, groups = rows
    given = {"sensitive_features": groups, "eval_set": [(X[:50], y[:50])]}
    head = FairHeadClassifier(NeedsValidation(), PARITY, random_state=0, cv=2)
    with pytest.raises(ValueError, match=r"copy of NeedsValidation.*\(a validation set.*\).*group_estimator="):
        head.fit(X, y, **given)
    with pytest.raises(ValueError, match=r"^a validation set is required"):  # the model of the target itself
        head.fit(X, y, sensitive_features=groups)
    head.set_params(group_estimator=GaussianNB()).fit(X, y, **given)
    assert isinstance(head.scores_.models_[0].groups[0], GaussianNB)
    with pytest.raises(ValueError, match=r"^a validation set is required"):  # an estimator that the user chose
        head.set_params(group_estimator=NeedsValidation()).fit(X, y, **given)


BASES = {
    "forest": RandomForestClassifier(10, random_state=0),
    "boosting": HistGradientBoostingClassifier(max_iter=10),
    "neighbours": KNeighborsClassifier(20),
    "margins": LinearSVC(),
    "logistic": LogisticRegression(),
}


@pytest.mark.parametrize("name", BASES)
def test_any_classifier_with_scores_keeps_the_bound_on_rows_that_it_has_not_seen(rows, name):
    model = fitted(rows, BASES[name])
    X, y, _groups = rows
    features = model.scores_.transform(X)
    assert features.shape[1] == 3
    assert model.status_ in ("optimal", "max_iter")
    assert model.violation_ <= model.granularity_["demographic_parity"]
    assert model.prices_["demographic_parity"] > 0
    assert (model.predict(X) == y).mean() > 0.54


def test_the_bound_is_about_the_cross_fitted_rows(rows):
    X, y, groups = rows
    model = FairHeadClassifier(BASES["forest"], PARITY, random_state=0)
    (_, scores), (_, head) = model.own_steps()
    features = scores.fit_transform(X, y, sensitive_features=groups)
    head.fit(features, y, sensitive_features=groups)
    model.fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(head.coef_, model.head_.coef_)
    gap = independence_gap(y, head.predict(features), sensitive_features=groups)
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(gap, abs=1e-12)}
    assert not np.allclose(features, model.scores_.transform(X))  # those of models that have seen the rows


HEADS = {
    "rates": (RateParityClassifier(0.05, constraint="equalized_odds"), "equalized_odds"),
    "auc": (AUCFairClassifier(0.02), "inter_group"),
    "losses": (LossParityClassifier(0.01, hidden_layer_sizes=(), solver="augmented_lagrangian"), "loss_parity"),
    "group loss": (GroupLossClassifier(0.64), "bounded_group_loss"),
    "share": (MinorityRateClassifier(), "majority_share"),
    "pair": (ParityPairClassifier(), "parity_pair"),
    "interval": (PartialParityClassifier(0.2, interval=(0.0, 0.4)), "statistical_parity"),
    "two": (
        PartialParityClassifier(constraint=[("rate", DemographicParity(0.1)), ("tpr", EqualOpportunity(0.1))]),
        "rate",
    ),
    "chosen": (
        PartialParityClassifierCV(bound=0.1, constraint="demographic_parity", kappas=[0.2, 0.1], cv=2),
        "demographic_parity",
    ),
}


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")  # smooth shares are not those of decisions
def test_every_head_keeps_its_bound(rows, name):
    head, constraint = HEADS[name]
    model = fitted(rows, head=head)
    X, y, groups = rows
    assert constraint in model.constraint_values_
    assert model.status_ in ("optimal", "max_iter", "completed")
    assert model.violation_ <= max(model.granularity_.values())
    values = model.constraint_values(X, y, sensitive_features=groups)
    assert values.keys() == model.constraint_values_.keys()
    assert model.decision_function(X).shape == y.shape


def test_rates_of_single_classes_need_no_groups(rows):
    X, y, _ = rows
    y = np.array(["low", "middle", "high"])[y + (X[:, 0] > 1)]
    model = FairHeadClassifier(BASE, NeymanPearsonClassifier(), random_state=0).fit(X, y)
    assert model.classes_.tolist() == ["high", "low", "middle"]
    assert model.predict_proba(X).shape == (1200, 3)
    assert (model.predict(X) == y).mean() > 0.6


def test_a_share_on_other_rows_is_bounded_on_their_scores(rows):
    X, y, groups = rows
    model = FairHeadClassifier(BASE, MinorityRateClassifier(rate="indicator"), random_state=0)
    model.fit(X, y, sensitive_features=groups, X_constraint=X[:500], sensitive_features_constraint=groups[:500])
    known = FairHeadClassifier(BASE, MinorityRateClassifier(rate="indicator"), use_groups=True, random_state=0)
    known.fit(X, y, sensitive_features=groups, X_constraint=X[:500], sensitive_features_constraint=groups[:500])
    assert known.status_ == "optimal"
    positive = model.predict(X[:500]) == 1
    minority = groups[:500] == 1
    assert positive[minority].sum() >= 0.2 * positive.sum() - 1


def test_decisions_are_searched_exactly_where_errors_are_counted(rows):
    X, y, _groups = rows
    head = PartialParityClassifier(0.03, constraint="equalized_odds", objective="zero_one")
    model = fitted(rows, head=head)
    assert "n_sweeps" in model.history_[-1]
    assert model.multipliers_ is None
    assert np.isnan(model.prices_["equalized_odds"])
    assert (model.predict(X) == y).mean() > 0.65
    assert model.constraint_values_["equalized_odds"] <= 0.03 + model.granularity_["equalized_odds"]


def _cross_fitted(model, rows):
    """Scores and probabilities of the groups by which the head was fitted."""
    X, y, groups = rows
    scores = np.zeros((y.size, 1))
    shares = np.zeros((y.size, 1))
    seed = sklearn.utils.check_random_state(0).randint(2**31)
    for train, test in cell_folds(5, 2 * y + groups, seed):
        odds = np.clip(GaussianNB().fit(X[train], y[train]).predict_proba(X[test])[:, [1]], 1e-5, 1 - 1e-5)
        scores[test] = np.log(odds / (1 - odds))
        shares[test] = GaussianNB().fit(X[train], groups[train]).predict_proba(X[test])[:, [1]]
    return scores, shares


def test_scores_and_groups_are_those_of_models_of_the_other_folds(rows, model):
    features = model.scores_.basis_.features(*_cross_fitted(model, rows))
    margins = features @ model.head_.coef_[0] + model.head_.intercept_[0]
    gap = independence_gap(rows[1], margins > 0, sensitive_features=rows[2])
    assert model.constraint_values_["demographic_parity"] == pytest.approx(gap, abs=1e-9)
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(features.std(axis=0), 1)


def test_scores_alone_and_with_groups_that_are_known(rows):
    X, y, groups = rows
    alone = fitted(rows, group_estimator=None)
    assert alone.scores_.transform(X).shape[1] == 1
    known = fitted(rows, use_groups=True)
    with pytest.raises(ValueError, match=r"predictions need the group of every row.*turn metadata routing on"):
        known.predict(X)
    decided = known.predict(X, sensitive_features=groups)
    assert independence_gap(y, decided, sensitive_features=groups) <= 0.08
    assert not np.array_equal(decided, known.predict(X, sensitive_features=1 - groups))
    with pytest.raises(ValueError, match=r"groups that were not seen in fit: \[7\]"):
        known.predict(X, sensitive_features=np.full(1200, 7))
    with pytest.raises(ValueError, match="sensitive_features has 1199 rows in place of 1200"):
        known.predict(X, sensitive_features=groups[1:])
    # who knows the group need not give up more
    assert known.objective_ <= alone.objective_


def test_columns_for_the_model_of_the_group_can_be_chosen(rows):
    X, _y, _groups = rows
    some = make_pipeline(make_column_transformer(("passthrough", [0])), GaussianNB())
    model = fitted(rows, group_estimator=some)
    changed = X.copy()
    changed[:, 1:] += 1.0
    features = [model.scores_.transform(each)[:, 1] for each in (X, changed)]
    np.testing.assert_array_equal(*features)


@pytest.mark.slow
def test_groups_that_overlap_and_several_columns(rows):
    X, y, groups = rows
    table = pd.DataFrame({"a": groups == 1, "b": X[:, 1] > 0})
    model = FairHeadClassifier(BASE, RateParityClassifier(0.1), random_state=0).fit(X, y, sensitive_features=table)
    assert model.scores_.transform(X).shape[1] == 1 + 2 + 2
    known = FairHeadClassifier(BASE, RateParityClassifier(0.1), use_groups=True, random_state=0)
    known.fit(X, y, sensitive_features=table)
    assert known.predict(X, sensitive_features=table).shape == y.shape
    with pytest.raises(ValueError, match="has 1 columns, in fit it had 2"):
        known.predict(X, sensitive_features=table[["a"]])
    combined = fitted((X, y, np.column_stack([groups, X[:, 1] > 0])))
    assert combined.head_.groups_.shape == (4,)
    assert combined.scores_.transform(X).shape[1] == 1 + 3 + 3


@pytest.mark.slow
def test_mean_of_the_models_of_the_folds(rows):
    X, _y, _groups = rows
    model = fitted(rows, ensemble=True)
    assert len(model.scores_.models_) == 5
    scores = np.mean([models.base.predict_proba(X)[:, 1] for models in model.scores_.models_], axis=0)
    assert np.corrcoef(scores, fitted(rows).scores_.models_[0].base.predict_proba(X)[:, 1])[0, 1] > 0.99
    np.testing.assert_array_equal(model.head_.coef_, fitted(rows).head_.coef_)  # the rows of the head are the same


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_finished_model_is_not_fitted_again(rows, wrapped):
    X, y, groups = rows
    base = GaussianNB().fit(X[:600], y[:600])
    before = base.theta_.copy()
    params = {"estimator": FrozenEstimator(base)} if wrapped else {"estimator": base, "cv": "prefit"}
    model = fitted((X[600:], y[600:], groups[600:]), **params)
    assert model.scores_.models_[0].base is base
    np.testing.assert_array_equal(base.theta_, before)
    assert model.violation_ <= model.granularity_["demographic_parity"]
    alone = fitted((X[600:], y[600:], groups[600:]), **params, group_estimator=None)
    np.testing.assert_array_equal(alone.predict(X[600:]), alone.head_.predict(alone.scores_.transform(X[600:])))


class Foreign:
    """A finished model that is none of scikit-learn's kind."""

    def predict_proba(self, X):
        share = 1 / (1 + np.exp(-X[:, 0]))
        return np.column_stack([1 - share, share])


@pytest.mark.slow
def test_a_finished_model_of_any_kind(rows):
    X = rows[0]
    model = fitted(rows, Foreign(), cv="prefit")
    assert model.violation_ <= model.granularity_["demographic_parity"]
    assert is_classifier(model)
    np.testing.assert_array_equal(fitted(rows, FrozenEstimator(Foreign())).predict(X), model.predict(X))
    assert model.scores_.transform(X).shape[1] == 3


@pytest.mark.slow
def test_groups_are_not_estimated_by_a_model_under_a_bound(rows):
    model = fitted(rows, PartialParityClassifier(0.2), cv=2)
    assert isinstance(model.scores_.models_[0].groups[0][-1], HistGradientBoostingClassifier)


def test_frames_with_categories_and_missing_values(rows):
    X, y, groups = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["a"] = frame["a"].mask(frame["a"] > 2)
    frame["kind"] = pd.Categorical(np.where(X[:, 1] > 0, "left", "right"))
    base = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough"),
        HistGradientBoostingClassifier(max_iter=10),
    )
    model = fitted((frame, y, groups), base)
    assert model.feature_names_in_.tolist() == [*"abcd", "kind"]
    assert model.predict(frame).shape == y.shape
    with pytest.raises(ValueError, match="100% of the rows are among those that FairHeadClassifier was fitted on"):
        certify(model, frame, y, sensitive_features=groups, metric="independence_gap", kappa=0.1)


def test_a_path_fits_the_model_once(rows, monkeypatch):
    X, y, groups = rows
    fits = []
    original = GaussianNB.fit
    monkeypatch.setattr(GaussianNB, "fit", lambda self, *args, **more: fits.append(1) or original(self, *args, **more))
    path = fairness_path(
        FairHeadClassifier(BASE, PARITY, random_state=0), X, y, sensitive_features=groups, kappas=[None, 0.1, 0.02]
    )
    assert len(fits) == 12  # of the target and of the group, for five folds and all rows
    assert path.table["gap"].is_monotonic_decreasing
    for model, kappa in zip(path.models[1:], (0.1, 0.02), strict=True):
        assert isinstance(model, FairHeadClassifier)
        assert model.named_kappas() == {"demographic_parity": kappa}
        assert model.scores_ is path.models[0].scores_
        np.testing.assert_array_equal(model.predict(X), model.head_.predict(model.scores_.transform(X)))
    alone = fitted(rows, head=PartialParityClassifier(0.1, constraint="demographic_parity"))
    assert path.models[1].objective_ == pytest.approx(alone.objective_, rel=0.01)
    path.forget_rows()
    assert path.models[0]._rows_seen is None


def test_a_path_of_a_fitted_model_has_its_present_parameters(rows):
    X, y, groups = rows
    model = fitted(rows, head=clone(PARITY)).set_params(head__alpha=0.5)
    path = fairness_path(model, X, y, sensitive_features=groups, kappas=[0.1])
    assert path.models[0].head_.alpha == 0.5
    assert model.head_.alpha != 0.5


@pytest.mark.slow
def test_choice_of_kappa_certificates_and_reports(rows):
    X, y, groups = rows
    train, test = np.arange(900), np.arange(900, 1200)
    head = FairHeadClassifier(BASE, PARITY, cv=2, random_state=0)
    chosen = FairnessPathCV(head, bound=0.3, kappas=[0.2, 0.05], cv=2)
    chosen.fit(X[train], y[train], sensitive_features=groups[train])
    model = chosen.best_estimator_
    assert isinstance(model, FairHeadClassifier)
    assert chosen.score(X[test], y[test]) == pytest.approx((model.predict(X[test]) == y[test]).mean())
    certificate = certify(
        model, X[test], y[test], sensitive_features=groups[test], metric="independence_gap", kappa=0.5
    )
    assert certificate.passed
    with pytest.raises(ValueError, match="are among those that FairHeadClassifier was fitted on"):
        certify(model, X[train], y[train], sensitive_features=groups[train], metric="independence_gap", kappa=0.5)
    report = FairnessReport.from_estimator(model, X[test], y[test], sensitive_features=groups[test], n_resamples=0)
    gap = independence_gap(y[test], model.predict(X[test]), sensitive_features=groups[test])
    assert report.gaps.loc["independence_gap", "value"] == pytest.approx(gap)
    certified = CertifiedFairClassifier(head, kappa=0.4, metric="independence_gap", kappas=[0.2], random_state=0)
    certified.fit(X, y, sensitive_features=groups)
    assert certified.status_ == "certified"
    assert isinstance(certified.estimator_, FairHeadClassifier)


@pytest.mark.slow
def test_search_over_kappa_with_routing(rows):
    X, y, groups = rows
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            FairHeadClassifier(BASE, PARITY, cv=2, random_state=0),
            {"head__kappa": [0.3, 0.05]},
            scoring={"accuracy": "accuracy", "gap": get_fairness_scorer("neg_independence_gap")},
            refit="gap",
            cv=2,
        )
        search.fit(X, y, sensitive_features=groups)
    assert search.best_params_ == {"head__kappa": 0.05}
    assert search.cv_results_["mean_test_gap"][1] > search.cv_results_["mean_test_gap"][0]


class Priced(GaussianNB):
    """A model with a further argument of `fit`; ``seen`` has the sums of those of all fits."""

    seen: ClassVar[list[float]] = []

    def fit(self, X, y, sample_weight=None, cost=None):
        self.seen.append(None if cost is None else cost.sum())
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("alias", [True, "price"])
@pytest.mark.parametrize("in_pipeline", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_what_the_estimator_requests_reaches_it(rows, routing, alias, in_pipeline, scores):
    X, y, groups = rows
    Priced.seen.clear()
    base = Priced().set_fit_request(cost=alias)
    base = make_pipeline(FunctionTransformer(), base) if in_pipeline else base
    params = {"group_estimator": None, "cv": GroupKFold(2), "random_state": 0}
    last = [CrossFittedScores(base, **params), PARITY] if scores else [FairHeadClassifier(base, PARITY, **params)]
    given = {"cost" if alias is True else alias: np.ones(y.size), "groups": np.arange(y.size) < 500}
    make_pipeline(FunctionTransformer(), *last).fit(X, y, sensitive_features=groups, **given)
    assert sorted(Priced.seen) == [500, 700, 1200]


@pytest.mark.parametrize(("requested", "error"), [(None, UnsetMetadataPassedError), (False, TypeError)])
def test_what_the_estimator_does_not_request_is_an_error(rows, routing, requested, error):
    X, y, groups = rows
    base = Priced().set_fit_request(cost=requested)
    model = FairHeadClassifier(base, PARITY, group_estimator=None, cv=2)
    for fitted in (model, make_pipeline(FunctionTransformer(), model)):
        with pytest.raises(error, match="cost"):
            fitted.fit(X, y, sensitive_features=groups, cost=np.ones(y.size))


def test_a_head_tells_its_solver_and_which_groups_it_compares(rows):
    X, y, groups = rows
    three = np.where(np.arange(groups.size) < 5, 2, groups)
    head = RateParityClassifier(0.05, small_groups="ignore")
    model = FairHeadClassifier(BASE, head, random_state=0).fit(X, y, sensitive_features=three)
    assert model.groups_.tolist() == [0, 1, 2]
    assert model.ignored_groups_ == [2]
    assert model.constraint_values_all_groups_["demographic_parity"] > model.constraint_values_["demographic_parity"]
    assert model.solver_ == "augmented_lagrangian"


def test_regressors(rows):
    X, _, groups = rows
    y = X @ [1.0, 2.0, 0.0, 1.0] + groups
    params = {"group_estimator": GaussianNB(), "random_state": 0}
    model = FairHeadRegressor(LinearRegression(), PartialParityRegressor(0.4), **params)
    assert is_regressor(model)
    assert not is_classifier(model)
    model.fit(X, y, sensitive_features=groups)
    assert model.violation_ <= model.granularity_["statistical_parity"]
    assert model.score(X, y) > 0.3
    assert not hasattr(model, "predict_proba")
    assert FairHeadRegressor(LinearRegression())._answering.get_params()["kappa"] == 0.02


def test_a_head_without_weights_says_what_to_do(rows):
    X, y, groups = rows
    ranker = FairHeadRegressor(LinearRegression(), FairRanker())
    with pytest.raises(TypeError, match=r"FairRanker, the head, does not take sample_weight.* Leave the weights out"):
        ranker.fit(X, y, sensitive_features=groups, sample_weight=np.ones(y.size), qid=np.arange(y.size) // 10)


def test_weights_are_repeated_rows_for_the_head(rows):
    X, y, groups = rows
    base = GaussianNB().fit(X, y)
    weights = np.random.default_rng(0).integers(1, 3, y.size)
    weighted = FairHeadClassifier(base, PARITY, cv="prefit", use_groups=True)
    weighted.fit(X, y, sensitive_features=groups, sample_weight=weights)
    again = np.repeat(np.arange(y.size), weights)
    decided = weighted.predict(X[again], sensitive_features=groups[again])
    gap = independence_gap(y[again], decided, sensitive_features=groups[again])
    assert weighted.constraint_values_["demographic_parity"] == pytest.approx(gap, abs=1e-9)
    with pytest.warns(UserWarning, match="KNeighborsClassifier does not take sample_weight"):
        FairHeadClassifier(KNeighborsClassifier(9), PARITY, cv=2, use_groups=True, random_state=0).fit(
            X, y, sensitive_features=groups, sample_weight=weights
        )


@pytest.mark.slow
def test_pickles_and_repeats(rows, model):
    X = rows[0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(fitted(rows).decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(fitted(rows, n_jobs=2).decision_function(X), model.decision_function(X))


def test_the_default_head_and_no_groups(rows):
    X, y, groups = rows
    model = FairHeadClassifier(BASE, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.named_kappas() == {"demographic_parity": 0.02}
    with pytest.warns(FairnessWarning, match="sensitive_features") as caught:
        free = FairHeadClassifier(BASE, random_state=0).fit(X, y)
    with pytest.warns(FairnessWarning, match="sensitive_features") as in_pipeline:
        make_pipeline(StandardScaler(), FairHeadClassifier(BASE, random_state=0)).fit(X, y)
    # the line of the user, not that of the head or of the pipeline
    assert {warning.filename for warning in [*caught, *in_pipeline]} == {__file__}
    assert free.status_ == "unconstrained"
    assert free.scores_.transform(X).shape[1] == 1


class NoScores(LogisticRegression):
    decision_function = predict_proba = predict_log_proba = property()


ERRORS = {
    "no folds": ({"cv": []}, ValueError, r"cv=\[\] has no folds"),
    "no scores": ({"estimator": NoScores()}, TypeError, "NoScores has neither decision_function nor predict_proba"),
    "not fitted": ({"cv": "prefit"}, sklearn.exceptions.NotFittedError, "GaussianNB instance is not fitted yet"),
    "overlap": ({"cv": ShuffleSplit(3, random_state=0)}, ValueError, "every row must be in exactly one"),
    "cv": ({"cv": "many"}, ValueError, "'cv' parameter"),
    "head": ({"head": LogisticRegression()}, ValueError, "'head' parameter"),
    "kind": ({"head": PartialParityRegressor()}, TypeError, "head must be a classifier of this package"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_cannot_be_fitted_is_refused(rows, name):
    params, error, words = ERRORS[name]
    X, y, groups = rows
    model = FairHeadClassifier(**{"estimator": BASE, "head": PARITY, **params})
    with pytest.raises(error, match=words):
        model.fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "status_")


def test_folds_that_lack_a_class_or_a_group_to_tell_apart_are_refused(rows):
    X, y, groups = rows
    order = np.argsort(groups)
    with pytest.raises(ValueError, match=r"a fold lack the groups \[.*1.*\], so that no model can tell"):
        fitted((X[order], y[order], groups[order] * (np.arange(1200) >= 600)), cv=KFold(2))
    order = np.argsort(y, kind="stable")
    labels = np.arange(1200) >= 600
    with pytest.raises(ValueError, match="lack 1 of 2 classes"):
        fitted((X[order], labels.astype(int), groups[order]), cv=KFold(2), group_estimator=None)


def test_groups_of_single_rows_do_not_end_a_fit(rows):
    X, y, groups = rows
    groups = groups.astype(object)
    groups[:3] = ["rare", "rarer", "rarest"]
    merging = clone(PARITY).set_params(small_groups="merge")
    model = fitted((X, y, groups), head=merging)
    assert model.scores_.groups_.labels == (0, 1, MERGED)
    assert model.constraint_values_["demographic_parity"] <= model.head.kappa + model.granularity_["demographic_parity"]
    assert model.predict(X).shape == (1200,)


def test_overlapping_groups_of_single_rows_have_no_column(rows):
    X, y, groups = rows
    members = np.column_stack([groups == 1, X[:, 0] > 0, np.arange(1200) == 7])
    scores = CrossFittedScores(BASE, random_state=0)
    features = scores.fit_transform(X, y, sensitive_features=members)
    assert scores.groups_.labels == (0, 1)
    assert features.shape == scores.transform(X).shape == (1200, 5)


def test_missing_values_that_the_base_refuses(rows):
    X, y, groups = rows
    X = np.where(X > 2, np.nan, X)
    with pytest.raises(ValueError, match="NaN"):
        fitted((X, y, groups))


def test_arguments_of_fit_that_the_head_does_not_take(rows):
    X, y, groups = rows
    words = "neither PartialParityClassifier, the head, nor GaussianNB, the estimator, takes qid in fit"
    with pytest.raises(TypeError, match=words):
        FairHeadClassifier(BASE, PARITY).fit(X, y, sensitive_features=groups, qid=groups)


class TakesMarks(GaussianNB):
    """Keeps what it gets besides."""

    def fit(self, X, y, marks=None):
        self.marks_ = np.asarray(marks)
        self.firsts_ = X[:, 0]
        return super().fit(X, y)


def test_arguments_of_the_fit_of_the_estimator_are_those_of_its_rows(rows):
    X, y, groups = rows
    model = FairHeadClassifier(TakesMarks(), PARITY, ensemble=True, cv=3).fit(
        X, y, sensitive_features=groups, marks=X[:, 0]
    )
    for models in model.scores_.models_:
        assert models.base.marks_.size == 2 * len(y) // 3
        np.testing.assert_array_equal(models.base.marks_, models.base.firsts_)
    with pytest.raises(TypeError, match="TakesMarks, the estimator, does not take marks in fit"):
        FairHeadClassifier(model.estimator_, PARITY, cv="prefit").fit(X, y, sensitive_features=groups, marks=X[:, 0])


def test_arguments_of_the_fit_of_the_estimator_without_a_value_for_every_row_are_handed_on(rows):
    X, y, groups = rows
    held_out = X[:5]  # as the validation set of boosted trees
    model = FairHeadClassifier(TakesMarks(), PARITY, cv=3).fit(X, y, sensitive_features=groups, marks=held_out)
    np.testing.assert_array_equal(model.estimator_.marks_, held_out)


def test_rows_that_a_splitter_keeps_together(rows):
    X, y, groups = rows
    families = np.arange(len(y)) // 4
    model = FairHeadClassifier(TakesMarks(), PARITY, ensemble=True, cv=GroupKFold(3))
    model.fit(X, y, sensitive_features=groups, marks=families, groups=families)
    known = [set(models.base.marks_) for models in model.scores_.models_]
    assert all(len(marks) == len(y) // 4 * 2 // 3 for marks in known)
    with pytest.raises(ValueError, match=r"which needs a splitter; set cv=GroupKFold\(5\)"):
        FairHeadClassifier(BASE, PARITY).fit(X, y, sensitive_features=groups, groups=families)


@pytest.mark.parametrize("columns", [[2, 3], ["c", "d"]])
def test_groups_are_estimated_from_the_columns_that_the_user_allows(rows, columns):
    X, y, groups = rows
    frame = pd.DataFrame(X, columns=list("abcd"))
    X = X if isinstance(columns[0], int) else frame
    model = FairHeadClassifier(BASE, PARITY, group_estimator=columns, random_state=0)
    model.fit(X, y, sensitive_features=groups)
    changed = frame.assign(a=0.0) if X is frame else np.column_stack([0 * X[:, 0], X[:, 1:]])
    of_groups = next(iter(model.scores_.models_[0].groups.values()))
    np.testing.assert_array_equal(of_groups.predict_proba(X), of_groups.predict_proba(changed))
    assert clone(model).group_estimator == columns


def test_groups_are_estimated_from_texts_that_the_user_allows(rows):
    X, y, groups = rows
    frame = pd.DataFrame(X, columns=list("abcd")).assign(region=np.where(groups == 1, "north", "south"))
    base = make_pipeline(make_column_transformer((OneHotEncoder(), ["region"]), remainder="passthrough"), GaussianNB())
    model = FairHeadClassifier(base, PARITY, group_estimator=["d", "region"], random_state=0)
    model.fit(frame, y, sensitive_features=groups)
    (of_groups,) = model.scores_.models_[0].groups.values()
    assert len(set(zip(of_groups.predict(frame), groups, strict=True))) == 2  # the text tells the group
    assert np.isfinite(of_groups.predict_proba(frame.assign(region="east"))).all()  # a text that is new


def test_a_fitted_model_stays_fitted_in_a_clone(rows):
    X, y, groups = rows
    base = clone(BASE).fit(X[:600], y[:600])
    model = FairHeadClassifier(base, PARITY, cv="prefit", random_state=0)
    assert clone(model).estimator is base
    assert clone(clone(model).fit(X[600:], y[600:], sensitive_features=groups[600:])).estimator is base
    path = fairness_path(model, X[600:], y[600:], sensitive_features=groups[600:], kappas=[0.1, 0.3])
    assert [each.estimator_ for each in path.models] == [base, base]
    assert clone(model.set_params(cv=3)).estimator is not base


def test_parameters_of_the_head_that_is_taken_where_none_is_given():
    model = FairHeadClassifier(BASE).set_params(head__kappa=0.3)
    assert (model.head.kappa, model.head.constraint) == (0.3, "demographic_parity")
    assert model.set_params(head=None).head is None


def test_a_failed_fit_leaves_the_model_as_it_was(rows):
    X, y, groups = rows
    model = fitted(rows)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full_like(X, np.nan), y, sensitive_features=groups)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_more_rows_have_more_functions_of_the_scores():
    rng = np.random.default_rng(0)
    for n_rows, n_functions in ((2999, 1), (6000, 2), (12_000, 4), (18_000, 6), (60_000, 6)):
        scores, groups = rng.normal(size=(n_rows, 1)), rng.random((n_rows, 1))
        basis = ScoreBasis.of(scores, groups)
        features = basis.features(scores, groups)
        assert features.shape == (n_rows, 2 * n_functions + 1)
        assert np.linalg.matrix_rank(features) == 2 * n_functions + 1
    levels = ScoreBasis.of(np.repeat([[0.0], [1.0], [2.0]], 9000, axis=0), np.empty((27_000, 0)))
    assert levels.features(np.array([[0.0], [1.0], [2.0]]), np.empty((3, 0))).shape[1] <= 6


def test_known_groups_of_few_rows_have_more_functions_of_the_scores():
    rng = np.random.default_rng(0)
    for n_smallest, n_functions in ((0, 1), (499, 1), (500, 2), (999, 3), (2000, 6)):
        scores, groups = rng.normal(size=(2500, 1)), rng.integers(0, 2, (2500, 1)).astype(float)
        assert ScoreBasis.of(scores, groups, n_smallest).features(scores, groups).shape[1] == 2 * n_functions + 1


def test_a_head_that_knows_groups_of_few_rows_makes_distributions_of_another_form_alike():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 1000)
    x = np.where(groups == 1, rng.lognormal(0.0, 1.0, 2000), -rng.lognormal(0.0, 1.0, 2000))
    y = x + 0.3 * rng.normal(size=2000)
    parity = PartialParityRegressor(0.05)
    head = FairHeadRegressor(LinearRegression(), parity, use_groups=True, cv=2, random_state=0)
    head.fit(x[:, None], y, sensitive_features=groups)
    assert head.status_ == "optimal"
    assert head.score(x[:, None], y, sensitive_features=groups) > 0.2


def test_models_under_a_head_forget_their_rows_with_it_but_finished_ones_keep_them(rows):
    X, y, groups = rows
    free = RateParityClassifier(kappa=None)
    model = FairHeadClassifier(free, cv=2, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.estimator_._rows_seen is not None
    model.forget_rows()
    assert model.estimator_._rows_seen is model._rows_seen is model.head_._rows_seen is None
    half = len(y) // 2
    finished = clone(free).fit(X[:half], y[:half])
    given = {"sensitive_features": groups[half:]}
    model = FairHeadClassifier(finished, cv="prefit", group_estimator=None).fit(X[half:], y[half:], **given)
    assert model.forget_rows().estimator_ is finished
    assert finished._rows_seen is not None
