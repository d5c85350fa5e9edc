"""The meta-estimator: what it promises, what it accepts, and the groups on their way through it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVR

from fairconstrained import ConvergenceWarning, FairnessWarning
from fairconstrained.constraints import GroupRates
from fairconstrained.datasets import make_biased_classification
from fairconstrained.metrics import group_rates
from fairconstrained.objectives import CostMatrix, Logistic
from fairconstrained.postprocessing import GroupThresholdClassifier

NAMES = {
    "demographic_parity": {"rate": "selection"},
    "equal_opportunity": {"rate": "true_positive"},
    "equalized_odds": {"rate": "true_and_false_positive"},
    "predictive_equality": {"rate": "false_positive"},
    "error_rate_parity": {"rate": "error"},
    "predictive_parity": {"rate": "positive_predictive_value"},
    "demographic_parity_ratio": {"rate": "selection", "rule": "ratio"},
    "equalized_odds_ratio": {"rate": "true_and_false_positive", "rule": "ratio"},
}


@pytest.fixture(scope="module")
def sample():
    return make_biased_classification(1500, 4, random_state=0)


@pytest.fixture(scope="module")
def three(sample):
    """Rows of three groups with names."""
    X, y, groups = sample
    rng = np.random.default_rng(0)
    return X, np.array(["no", "yes"])[y], np.array(["a", "b", "c"])[np.where(rng.random(y.size) < 0.3, 2, groups)]


def by_thresholds(**options):
    return GroupThresholdClassifier(LogisticRegression(), **{"cv": None, **options})


def test_rows_of_a_label_by_its_own_name(three):
    X, y, groups = three
    bound = GroupRates("selection", kappa=0.02, among="no")
    model = by_thresholds(constraint=bound).fit(X, y, sensitive_features=groups)
    as_named = by_thresholds(constraint="predictive_equality", kappa=0.02).fit(X, y, sensitive_features=groups)
    assert model.thresholds_ == as_named.thresholds_
    assert list(model.constraint_values_.values()) == list(as_named.constraint_values_.values())
    with pytest.raises(ValueError, match=r"one of the two labels in y, or a mask .* got 'maybe'"):
        clone(model).set_params(constraint=GroupRates(among="maybe")).fit(X, y, sensitive_features=groups)


def test_perfect_thresholds_keep_the_ratio_of_equalized_odds():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 1)), np.repeat(["a", "b"], 200)
    y = X[:, 0] > np.where(groups == "a", 0.3, -0.4)
    model = by_thresholds(kappa=0.1, constraint="equalized_odds_ratio").fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert model.constraint_values_ == {"equalized_odds_ratio": 0.0}
    assert model.score(X, y, sensitive_features=groups) == 1.0
    nobody = by_thresholds(kappa=0.1, constraint="equalized_odds_ratio", objective=lambda tn, fp, fn, tp: tn - tp - fp)
    nobody.fit(X, y, sensitive_features=groups)
    assert nobody.status_ == "optimal"
    assert nobody.predict(X, sensitive_features=groups).any()  # of no positive decision there is no ratio


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_kappa_bounds_the_metric_of_the_package(three, name, weighted):
    X, y, groups = three
    weights = np.random.default_rng(0).uniform(0.5, 2.0, y.size) if weighted else None
    model = by_thresholds(constraint=name, kappa=0.06).fit(X, y, sensitive_features=groups, sample_weight=weights)
    decided = np.where(model.predict(X, sensitive_features=groups) == "yes", 1.0, -1.0)
    value = group_rates(y, decided, sensitive_features=groups, sample_weight=weights, pos_label="yes", **NAMES[name])
    assert model.constraint_values_ == {name: pytest.approx(value)}
    assert value <= 0.06 + 1e-9
    assert (model.status_, model.violation_) == ("optimal", pytest.approx(0.0, abs=1e-9))
    assert model.named_kappas() == {name: 0.06}
    assert model.multipliers_ is None
    assert np.isnan(model.prices_[name])
    free = by_thresholds(constraint=name, kappa=None).fit(X, y, sensitive_features=groups, sample_weight=weights)
    assert free.objective_ <= model.objective_ + 1e-12
    assert model.objective_ == pytest.approx(1 - model.score(X, y, weights, sensitive_features=groups))


def test_thresholds_are_those_of_the_scores(three):
    X, y, groups = three
    model = by_thresholds(kappa=0.02).fit(X, y, sensitive_features=groups)
    scores = LogisticRegression().fit(X, y).decision_function(X)
    at = np.array([model.thresholds_[group] for group in groups])
    np.testing.assert_array_equal(model.predict(X, sensitive_features=groups) == "yes", scores > at)
    np.testing.assert_array_equal(model.decision_function(X, sensitive_features=groups), scores - at)
    probabilities = model.predict_proba(X, sensitive_features=groups)
    np.testing.assert_array_equal(probabilities.argmax(axis=1) == 1, scores > at)
    assert sorted(model.thresholds_) == model.groups_.tolist() == ["a", "b", "c"]


MEASURES = {
    "accuracy": accuracy_score,
    "balanced_accuracy": balanced_accuracy_score,
    "f1": f1_score,
    "costs": lambda y, p: -np.mean((y == 0) * (p == 1) + 4 * (y == 1) * (p == 0)),
    "youden": lambda y, p: p[y == 1].mean() - p[y == 0].mean(),
}
OBJECTIVES = {
    "costs": CostMatrix([[0, 1], [4, 0]]),
    "youden": lambda tn, fp, fn, tp: tp / (tp + fn) - fp / (tn + fp),
}


def test_each_objective_is_the_best_by_its_own_measure(sample):
    X, y, groups = sample
    options = {"kappa": 0.03, "constraint": "equal_opportunity"}
    found = {}
    for name in MEASURES:
        model = by_thresholds(objective=OBJECTIVES.get(name, name), **options).fit(X, y, sensitive_features=groups)
        predicted = model.predict(X, sensitive_features=groups)
        found[name] = {measure: score(y, predicted) for measure, score in MEASURES.items()}
    for measure in MEASURES:
        best = found[measure][measure]
        assert all(own[measure] <= best + 1e-12 for own in found.values())
    assert found["f1"]["f1"] > found["accuracy"]["f1"]
    assert found["costs"]["costs"] > found["accuracy"]["costs"]
    assert found["youden"]["balanced_accuracy"] == pytest.approx(found["balanced_accuracy"]["balanced_accuracy"])


def test_objectives_are_reported_as_elsewhere(sample):
    X, y, groups = sample
    for objective, expected in (
        ("balanced_accuracy", lambda p: 1 - balanced_accuracy_score(y, p)),
        ("f1", lambda p: -f1_score(y, p)),
        (OBJECTIVES["youden"], lambda p: -MEASURES["youden"](y, p)),
    ):
        model = by_thresholds(objective=objective).fit(X, y, sensitive_features=groups)
        assert model.objective_ == pytest.approx(expected(model.predict(X, sensitive_features=groups)))


def test_several_bounds_floors_and_ceilings(three):
    X, y, groups = three
    bounds = [
        ("rates", GroupRates(kappa=0.12)),
        ("hits", GroupRates("true_positive", rule="floor", kappa=0.75)),
        ("alarms", GroupRates("false_positive", rule="ceiling", kappa=0.35)),
        ("errors", GroupRates("error", kappa=None)),
    ]
    model = by_thresholds(constraint=bounds).fit(X, y, sensitive_features=groups)
    values = model.constraint_values_
    assert model.status_ == "optimal"
    assert values["rates"] <= 0.12
    assert values["hits"] >= 0.75
    assert values["alarms"] <= 0.35
    assert model.named_kappas() == {"rates": 0.12, "hits": 0.75, "alarms": 0.35, "errors": None}
    for name, constraint in bounds:
        alone = by_thresholds(constraint=constraint).fit(X, y, sensitive_features=groups)
        assert alone.objective_ <= model.objective_ + 1e-12, name


def test_what_cannot_be_kept_is_said(three):
    X, y, groups = three
    bounds = [
        ("rates", GroupRates("selection", rule="ceiling", kappa=0.1)),
        ("hits", GroupRates("true_positive", rule="floor", kappa=0.9)),
    ]
    with pytest.warns(ConvergenceWarning, match="exceed the bounds least") as caught:
        model = by_thresholds(constraint=bounds).fit(X, y, sensitive_features=groups)
    assert len(caught) == 2
    assert caught[0].filename == __file__
    assert model.status_ == "infeasible"
    excess = [model.constraint_values_["rates"] - 0.1, 0.9 - model.constraint_values_["hits"]]
    assert model.violation_ == pytest.approx(max(excess))
    # no shift of all thresholds is nearer to both
    assert abs(excess[0] - excess[1]) < 0.02


def test_no_bound_is_the_best_threshold_of_every_group(three):
    X, y, groups = three
    model = by_thresholds(kappa=None).fit(X, y, sensitive_features=groups)
    scores = LogisticRegression().fit(X, y).decision_function(X)
    for group in "abc":
        own, truth = scores[groups == group], y[groups == group] == "yes"
        best = max(np.mean((own > cut) == truth) for cut in np.append(own, -np.inf))
        assert np.mean((own > model.thresholds_[group]) == truth) == pytest.approx(best)


def test_a_loose_bound_changes_nothing(three):
    X, y, groups = three
    free, loose = (by_thresholds(kappa=kappa).fit(X, y, sensitive_features=groups) for kappa in (None, 1.0))
    assert free.thresholds_ == loose.thresholds_


def test_names_of_groups_and_the_order_of_rows_do_not_matter(three):
    X, y, groups = three
    names = {"a": 3, "b": 1, "c": 2}
    rows = np.random.default_rng(0).permutation(y.size)
    one = by_thresholds(constraint="equalized_odds").fit(X, y, sensitive_features=groups)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    other = GroupThresholdClassifier(frozen, constraint="equalized_odds")
    other.fit(X[rows], y[rows], sensitive_features=np.array([names[g] for g in groups])[rows])
    assert other.objective_ == pytest.approx(one.objective_, abs=1e-12)
    assert {names[g]: t for g, t in one.thresholds_.items()} == pytest.approx(other.thresholds_)


def test_weights_are_repeated_rows(three):
    X, y, groups = three
    weights = np.random.default_rng(0).integers(1, 4, y.size)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    one = GroupThresholdClassifier(frozen, 0.03, objective="f1")
    one.fit(X, y, sensitive_features=groups, sample_weight=weights)
    many = GroupThresholdClassifier(frozen, 0.03, objective="f1")
    many.fit(*(np.repeat(each, weights, axis=0) for each in (X, y)), sensitive_features=np.repeat(groups, weights))
    assert one.objective_ == pytest.approx(many.objective_)
    assert one.constraint_values_ == pytest.approx(many.constraint_values_)


def test_thresholds_are_chosen_on_rows_that_the_estimator_has_not_seen(sample):
    X, y, groups = sample
    trees = HistGradientBoostingClassifier(max_iter=30, random_state=0)
    folds = KFold(3, shuffle=True, random_state=0)
    model = GroupThresholdClassifier(trees, 0.02, cv=folds).fit(X, y, sensitive_features=groups)
    scores = cross_val_predict(trees, X, y, cv=folds, method="decision_function")
    decided = scores > np.array([model.thresholds_[g] for g in groups])
    gap = abs(decided[groups == 0].mean() - decided[groups == 1].mean())
    assert model.constraint_values_ == {"demographic_parity": pytest.approx(gap)}
    assert model.objective_ == pytest.approx(np.mean(decided != y))
    np.testing.assert_array_equal(model.estimator_.decision_function(X), trees.fit(X, y).decision_function(X))


def test_folds_have_all_classes_and_groups_and_a_seed(sample):
    X, y, groups = sample
    models = [
        GroupThresholdClassifier(GaussianNB(), cv=cv, random_state=seed).fit(X, y, sensitive_features=groups)
        for cv, seed in ((5, 0), (np.int64(5), 0), (5, 1))
    ]
    assert models[0].thresholds_ == models[1].thresholds_ != models[2].thresholds_
    with pytest.raises(ValueError, match="leaves out 900 rows"):
        GroupThresholdClassifier(GaussianNB(), cv=[(np.arange(900), np.arange(900, 1500))]).fit(
            X, y, sensitive_features=groups
        )
    repeated = GroupThresholdClassifier(GaussianNB(), cv=RepeatedKFold(n_splits=3, n_repeats=2, random_state=0))
    with pytest.raises(ValueError, match="has 1500 in several test parts"):
        repeated.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("wrap", [FrozenEstimator, lambda model: model], ids=["frozen", "prefit"])
def test_a_fitted_estimator_stays_as_it_is(sample, wrap):
    X, y, groups = sample
    fitted = LogisticRegression().fit(X[:700], y[:700])
    model = GroupThresholdClassifier(wrap(fitted), cv="prefit").fit(X[700:], y[700:], sensitive_features=groups[700:])
    assert model.estimator_ is fitted
    with pytest.raises(NotFittedError):
        GroupThresholdClassifier(LogisticRegression(), cv="prefit").fit(X, y, sensitive_features=groups)


def test_prediction_needs_known_groups(three):
    X, y, groups = three
    model = by_thresholds().fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="pass sensitive_features"):
        model.predict(X)
    with pytest.raises(ValueError, match="d"):
        model.predict(X[:1], sensitive_features=["d"])
    with pytest.raises(NotFittedError):
        by_thresholds().predict(X, sensitive_features=groups)


def test_one_group_has_one_threshold_and_a_warning(sample):
    X, y = (column[:300] for column in sample[:2])
    with pytest.warns(FairnessWarning, match="nothing to compare") as caught:
        model = by_thresholds(objective="f1").fit(X, y)
    assert caught[0].filename == __file__
    assert (model.constraint_values_, model.status_) == ({}, "unconstrained")
    scores = LogisticRegression().fit(X, y).decision_function(X)
    assert -model.objective_ == pytest.approx(max(f1_score(y, scores > cut) for cut in np.append(scores, -np.inf)))
    assert f1_score(y, model.predict(X)) == pytest.approx(-model.objective_)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_thresholds(kappa=None).fit(X, y)
    floor = by_thresholds(constraint=GroupRates("true_positive", rule="floor", kappa=0.95))
    with pytest.warns(FairnessWarning):
        floor.fit(X, y)
    assert floor.constraint_values_["true_positive_floor"] >= 0.95


@pytest.fixture(scope="module")
def with_small(three):
    """Rows of three groups and of two that are too small."""
    X, y, groups = three
    groups = groups.copy()
    groups[np.random.default_rng(1).permutation(y.size)[:25]] = ["d"] * 10 + ["e"] * 15
    return X, y, groups


def gap(model, with_small, *names):
    X, _, groups = with_small
    positive = model.predict(X, sensitive_features=groups) == "yes"
    return np.ptp([positive[np.isin(groups, list(name))].mean() for name in names])


def test_small_groups_are_an_error_that_names_the_parameter(with_small):
    X, y, groups = with_small
    with pytest.raises(ValueError, match=r"'d': 10, 'e': 15.*small_groups='merge' or 'ignore'"):
        by_thresholds(kappa=0.02).fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="min_group_size=100"):
        by_thresholds(kappa=0.5, min_group_size=100).fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize("objective", ["accuracy", "f1"])
def test_ignored_groups_are_bounded_by_nothing(with_small, objective):
    X, y, groups = with_small
    model = by_thresholds(kappa=0.02, small_groups="ignore", objective=objective)
    model = model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert model.ignored_groups_ == ["d", "e"]
    assert gap(model, with_small, "a", "b", "c") == pytest.approx(model.constraint_values_["demographic_parity"])
    assert model.constraint_values_["demographic_parity"] <= 0.02
    everything = gap(model, with_small, "a", "b", "c", "d", "e")
    assert everything == pytest.approx(model.constraint_values_all_groups_["demographic_parity"])
    assert everything > 0.02
    same = by_thresholds(constraint=GroupRates(kappa=0.02, small_groups="ignore"), objective=objective)
    assert same.fit(X, y, sensitive_features=groups).thresholds_ == model.thresholds_


def test_ignored_groups_have_their_most_accurate_thresholds(with_small):
    X, y, groups = with_small
    model = by_thresholds(kappa=0.02, small_groups="ignore").fit(X, y, sensitive_features=groups)
    free = by_thresholds(kappa=None).fit(X, y, sensitive_features=groups)
    assert free.ignored_groups_ == []
    is_small = np.isin(groups, ["d", "e"])
    best = accuracy_score(y[is_small], free.predict(X, sensitive_features=groups)[is_small])
    assert accuracy_score(y[is_small], model.predict(X, sensitive_features=groups)[is_small]) == best
    others = ~is_small
    alone = by_thresholds(kappa=0.02).set_params(estimator=FrozenEstimator(model.estimator_))
    alone = alone.fit(X[others], y[others], sensitive_features=groups[others])
    assert model.score(X[others], y[others], sensitive_features=groups[others]) == pytest.approx(1 - alone.objective_)


def test_an_ignored_group_may_lack_the_rows_of_a_rate(with_small):
    X, y, groups = with_small
    y = np.where(groups == "d", "no", y)
    model = by_thresholds(kappa=0.05, constraint="equalized_odds", small_groups="ignore")
    model = model.fit(X, y, sensitive_features=groups)
    assert model.ignored_groups_ == ["d", "e"]
    assert model.constraint_values_["equalized_odds"] <= 0.05
    assert np.isnan(model.constraint_values_all_groups_["equalized_odds"])


@pytest.mark.slow
@pytest.mark.parametrize("constraint", ["demographic_parity", GroupRates(kappa=0.05, small_groups="merge")])
def test_merged_groups_share_a_threshold(with_small, constraint):
    X, y, groups = with_small
    model = by_thresholds(kappa=0.05, constraint=constraint, small_groups="merge")
    model = model.fit(X, y, sensitive_features=groups)
    assert list(model.thresholds_) == model.groups_.tolist() == ["a", "b", "c", "(small groups)"]
    assert model.ignored_groups_ == []
    assert gap(model, with_small, "a", "b", "c", "de") == pytest.approx(model.constraint_values_["demographic_parity"])
    assert model.constraint_values_["demographic_parity"] <= 0.05
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(
        again.predict(X[:9], sensitive_features=groups[:9]), model.predict(X[:9], sensitive_features=groups[:9])
    )
    with pytest.raises(ValueError, match="f"):
        model.predict(X[:1], sensitive_features=["f"])


@pytest.mark.parametrize(("treatment", "n_samples"), [("ignore", 1500), ("merge", 60)])
def test_nothing_is_bounded_where_small_groups_leave_one(with_small, treatment, n_samples):
    X, y, _ = (column[:n_samples] for column in with_small)
    groups = np.where(np.arange(n_samples) < 30, "d", "a")
    with pytest.warns(FairnessWarning, match="Without the small groups.*'d'"):
        model = by_thresholds(kappa=0.02, small_groups=treatment).fit(X, y, sensitive_features=groups)
    assert model.status_ == "unconstrained"
    assert model.constraint_values_ == {}


def test_dataframes_pipelines_pickle_and_clone(three):
    X, y, groups = three
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = GroupThresholdClassifier(make_pipeline(StandardScaler(), LogisticRegression()), 0.03, random_state=0)
    model.fit(frame, y, sensitive_features=pd.DataFrame({"group": groups}))
    assert model.feature_names_in_.tolist() == list("abcd")
    predicted = model.predict(frame, sensitive_features=groups)
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(model)).predict(frame, sensitive_features=groups), predicted
    )
    again = clone(model).fit(frame, y, sensitive_features=groups)
    np.testing.assert_array_equal(again.predict(frame, sensitive_features=groups), predicted)


@pytest.mark.usefixtures("routing")
def test_a_search_over_kappa(three):
    X, y, groups = three
    grid = {"kappa": [0.02, 0.3], "objective": ["accuracy", "f1"]}
    search = GridSearchCV(by_thresholds(), grid, cv=3).fit(X, y, sensitive_features=groups)
    assert search.best_params_["kappa"] == 0.3
    bound = by_thresholds(constraint=GroupRates("true_positive"))
    search = GridSearchCV(bound, {"constraint__kappa": [0.02, 0.3]}, cv=3).fit(X, y, sensitive_features=groups)
    assert search.best_params_["constraint__kappa"] in (0.02, 0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"constraint": "statistical_parity"}, "constraint"),
        ({"constraint": [("a", "b")]}, "list of .name, GroupRates. pairs"),
        ({"constraint": [GroupRates()]}, "list of .name, GroupRates. pairs"),
        ({"constraint": [("a", GroupRates()), ("a", GroupRates())]}, "unique"),
        ({"constraint": GroupRates("score")}, "does not depend on thresholds"),
        ({"constraint": GroupRates(rule="to_overall")}, "rule='to_overall' compares with all rows"),
        ({"constraint": GroupRates(within="strata")}, "within=None"),
        ({"constraint": GroupRates("perhaps")}, "rate must be one of"),
        ({"objective": "zero_one"}, "objective"),
        ({"objective": Logistic()}, "not one of decisions"),
        ({"kappa": 1.5}, "kappa"),
        ({"cv": "fit"}, "cv"),
    ],
)
def test_what_it_cannot_do_is_said(three, options, message):
    X, y, groups = three
    model = by_thresholds(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "thresholds_")


def test_other_refusals(three):
    X, y, groups = three
    with pytest.raises(TypeError, match="gives no scores"):
        GroupThresholdClassifier(LinearSVR()).fit(X, y, sensitive_features=groups)
    few = np.where(np.arange(y.size) < 3, "d", groups)
    with pytest.raises(ValueError, match="'d': 3"):
        by_thresholds().fit(X, y, sensitive_features=few)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["demographic_parity", "equal_opportunity", "equalized_odds"])
def test_real_data(adult, name):
    (X, y, sex), (X_new, y_new, sex_new) = adult
    given = {"constraint": name, "cv": 3, "random_state": 0}
    free, fair = (
        GroupThresholdClassifier(LogisticRegression(max_iter=1000), kappa, **given).fit(X, y, sensitive_features=sex)
        for kappa in (None, 0.02)
    )
    assert free.constraint_values_[name] > 0.07
    assert fair.constraint_values_[name] <= 0.02
    decided = np.where(fair.predict(X_new, sensitive_features=sex_new) > 0, 1.0, -1.0)
    # the standard error of the true positive rate of 590 women is 0.02
    assert group_rates(y_new, decided, sensitive_features=sex_new, **NAMES[name]) <= 0.02 + 0.04
    accuracies = [model.score(X_new, y_new, sensitive_features=sex_new) for model in (free, fair)]
    assert accuracies[1] > accuracies[0] - 0.025


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "constraint"),
    [
        ("demographic_parity", "demographic_parity"),
        ("equal_opportunity", "true_positive_rate_parity"),
        ("predictive_equality", "false_positive_rate_parity"),
    ],
)
def test_as_accurate_as_the_randomised_thresholds_of_fairlearn(adult, name, constraint):
    """Without a random decision; under equalized odds those reach what no thresholds do, see the notes of the class."""
    postprocessing = pytest.importorskip("fairlearn.postprocessing")
    X, y, sex = adult[0][0].toarray(), (adult[0][1] > 0).astype(int), adult[0][2]
    fitted = LogisticRegression(max_iter=1000).fit(X, y)
    theirs = postprocessing.ThresholdOptimizer(
        estimator=fitted,
        constraints=constraint,
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
    )
    predicted = theirs.fit(X, y, sensitive_features=sex).predict(X, sensitive_features=sex, random_state=0)
    gap = group_rates(y, np.where(predicted > 0, 1.0, -1.0), sensitive_features=sex, **NAMES[name])
    ours = GroupThresholdClassifier(fitted, gap, constraint=name, cv="prefit").fit(X, y, sensitive_features=sex)
    assert ours.constraint_values_[name] <= gap + ours.granularity_[name]
    assert ours.score(X, y, sensitive_features=sex) >= accuracy_score(y, predicted) - 1e-3


@pytest.mark.filterwarnings("ignore::fairconstrained.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(8))
def test_thresholds_without_a_decision_are_told_from_rounding(seed):
    """Without negative decisions there is no negative predictive value, whatever sums of weights leave."""
    rng = np.random.default_rng(seed)
    scores, groups, weights = np.round(rng.normal(size=60)), rng.integers(0, 2, 60), rng.choice([1.0, 3.0], 60) / 7
    y = (rng.random(60) < 1 / (1 + np.exp(-scores - 0.5))).astype(int)

    def value(rejected):
        return np.average(y[rejected] == 0, weights=weights[rejected])

    least = [min(value((groups == g) & (scores <= cut)) for cut in np.unique(scores[groups == g])) for g in (0, 1)]
    scored = FrozenEstimator(LogisticRegression().fit(scores[:, None], y))
    ceiling = GroupRates("negative_predictive_value", rule="ceiling", kappa=0.6)
    model = GroupThresholdClassifier(scored, constraint=ceiling, objective="f1")
    model.fit(scores[:, None], y, sensitive_features=groups, sample_weight=weights)
    assert model.status_ == ("optimal" if max(least) <= 0.6 else "infeasible")
    rejected = model.predict(scores[:, None], sensitive_features=groups) == 0
    largest = max(value(rejected & (groups == g)) for g in (0, 1))
    assert largest <= max(0.6, *least) + 1e-5
