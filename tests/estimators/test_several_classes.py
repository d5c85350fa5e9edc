"""Classifiers of more than two classes: the promise, invariances, and what they refuse."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from fairconstrained import (
    AUCFairClassifier,
    LossParityClassifier,
    PartialParityClassifier,
    PartialParityClassifierCV,
    RateParityClassifier,
    fairness_path,
    metrics,
)
from fairconstrained.constraints import DemographicParity, GroupRates, StatisticalParity
from fairconstrained.exceptions import ConvergenceWarning, FairnessWarning, IncompatibleProblem
from fairconstrained.metrics import METRICS
from fairconstrained.solvers import SOLVERS, AugmentedLagrangian, Status
from fairconstrained.solvers._unconstrained import unconstrained
from tests.quick import OF_MEAN_LOSSES

#: Gaps of the predictions or scores that kappa bounds.
BOUNDED = {
    "rate demographic_parity": (RateParityClassifier, "demographic_parity", metrics.independence_gap),
    "rate equal_opportunity": (RateParityClassifier, "equal_opportunity", metrics.equal_opportunity_gap),
    "rate equalized_odds": (RateParityClassifier, "equalized_odds", metrics.separation_gap),
    "rate predictive_equality": (RateParityClassifier, "predictive_equality", metrics.predictive_equality_gap),
    "partial demographic_parity": (PartialParityClassifier, "demographic_parity", metrics.independence_gap),
    "partial equal_opportunity": (PartialParityClassifier, "equal_opportunity", metrics.equal_opportunity_gap),
    "partial equalized_odds": (PartialParityClassifier, "equalized_odds", metrics.separation_gap),
    "partial statistical_parity": (PartialParityClassifier, "statistical_parity", metrics.statistical_parity_gap),
    "partial group_auc": (PartialParityClassifier, "group_auc", metrics.group_auc_gap),
}


def draw(n, n_features=4, seed=0, n_classes=3):
    """Rows of several classes, of which the features of two groups give different shares."""
    rng = np.random.default_rng(seed)
    groups = rng.integers(0, 2, n)
    X = rng.normal(size=(n, n_features))
    X[:, :2] += 0.6 * groups[:, None]
    weights = np.random.default_rng(7).normal(size=(4, n_classes)) * 1.5
    y = (X[:, :4] @ weights + rng.gumbel(size=(n, n_classes))).argmax(axis=1)
    return X, np.array(["high", "low", "mid", "none"])[y], np.array(["f", "m"])[groups]


@pytest.fixture(scope="module")
def sample():
    return draw(600)


def fitted(model, sample, **others):
    X, y, groups = sample
    return model.set_params(new_row_folds=None).fit(X, y, sensitive_features=groups, **others)


@pytest.mark.parametrize(("estimator", "constraint", "metric"), BOUNDED.values(), ids=BOUNDED)
def test_kappa_bounds_the_metric_that_the_user_reads(sample, estimator, constraint, metric):
    X, y, groups = sample
    free = fitted(estimator(None, constraint=constraint), sample)
    kappa = round(0.6 * max(free.constraint_values_.values()), 2)
    model = fitted(estimator(kappa, constraint=constraint), sample)
    read = metric(y, getattr(model, METRICS[metric.__name__].response)(X), sensitive_features=groups)
    (name,) = model.constraint_values_
    assert read == pytest.approx(model.constraint_values_[name], abs=1e-9)
    assert read <= kappa + model.granularity_[name] + 1e-9 < free.constraint_values_[name]
    assert model.status_ == "optimal"
    assert model.objective_ >= free.objective_
    assert max(model.class_gaps_[name].values()) == model.constraint_values_[name]
    assert model.prices_[name] >= 0
    # not at the price of the model: a constant one is right as often as the most frequent class
    assert model.score(X, y) > pd.Series(y).value_counts(normalize=True).max() + 0.05


def test_without_a_bound_it_is_multinomial_regression(sample):
    X, y, _ = sample
    model = fitted(RateParityClassifier(None, alpha=1e-2), sample)
    plain = LogisticRegression(C=1 / (1e-2 * len(y)), tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=1e-5)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-6)
    np.testing.assert_allclose(X @ model.coef_.T + model.intercept_, model.decision_function(X), rtol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    expected = log_loss(y, model.predict_proba(X)) + 1e-2 / 2 * (model.coef_**2).sum()
    assert model.objective_ == pytest.approx(expected)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    loose = fitted(RateParityClassifier(1.0, alpha=1e-2), sample)
    np.testing.assert_allclose(loose.coef_, model.coef_, atol=1e-4)
    np.testing.assert_allclose(model.to_sklearn().predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_names_and_order_of_classes_and_rows_do_not_matter(sample):
    X, y, groups = sample
    model = fitted(RateParityClassifier(0.1), sample)
    order = np.random.default_rng(1).permutation(len(y))
    permuted = fitted(RateParityClassifier(0.1), (X[order], y[order], groups[order]))
    np.testing.assert_allclose(permuted.predict_proba(X), model.predict_proba(X), atol=5e-3)
    # the columns move with the names
    renamed = pd.Series(y).map({"high": "z", "low": "a", "mid": "m"}).to_numpy()
    other = fitted(RateParityClassifier(0.1), (X, renamed, groups))
    assert other.classes_.tolist() == ["a", "m", "z"]
    assert other.objective_ == pytest.approx(model.objective_, rel=5e-3)
    assert other.constraint_values_["demographic_parity"] <= 0.1 + other.granularity_["demographic_parity"]


def test_weights_are_repeated_rows_and_zeros_are_no_rows(sample):
    X, y, groups = (column[:400] for column in sample)
    weights = np.random.default_rng(2).integers(0, 3, 400)
    model = fitted(RateParityClassifier(None, alpha=0.1), (X, y, groups), sample_weight=weights)
    rows = np.repeat(np.arange(400), weights)
    repeated = fitted(RateParityClassifier(None, alpha=0.1), (X[rows], y[rows], groups[rows]))
    np.testing.assert_allclose(model.coef_, repeated.coef_, atol=1e-5)
    assert model.constraint_values_["demographic_parity"] == pytest.approx(
        repeated.constraint_values_["demographic_parity"], abs=1e-9
    )
    with pytest.raises(ValueError, match="rows of positive weight"):
        fitted(RateParityClassifier(0.1), sample, sample_weight=(sample[1] != "mid").astype(float))
    # a class without weight beside three with some is as if it were not there
    four = draw(900, n_classes=4)
    kept = four[1] != "none"
    without = fitted(RateParityClassifier(None), four, sample_weight=kept.astype(float))
    assert without.classes_.tolist() == ["high", "low", "mid"]
    np.testing.assert_allclose(
        without.coef_, fitted(RateParityClassifier(None), tuple(column[kept] for column in four)).coef_, atol=1e-5
    )


def test_it_is_copied_saved_and_takes_tables_and_sparse_rows(sample):
    X, y, groups = sample
    model = fitted(PartialParityClassifier(0.1, constraint="demographic_parity"), sample)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(clone(model).fit(X, y, sensitive_features=groups).coef_, model.coef_)
    table = pd.DataFrame(X, columns=list("wxyz"))
    named = fitted(clone(model), (table, pd.Series(y), pd.Series(groups)))
    assert named.feature_names_in_.tolist() == list("wxyz")
    np.testing.assert_array_equal(named.coef_, model.coef_)
    sparse = fitted(clone(model), (sp.csr_array(X), y, groups))
    assert sparse.objective_ == pytest.approx(model.objective_, rel=1e-3)
    assert model.constraint_values(X, y, sensitive_features=groups) == pytest.approx(model.constraint_values_)


def test_tables_by_class_and_group(sample):
    X, y, groups = sample
    model = fitted(RateParityClassifier(0.1, constraint="equal_opportunity"), sample)
    predicted = model.predict(X)
    table = model.group_rates_
    assert table.index.names == ["class", "group"]
    rows = (y == "low") & (groups == "m")
    assert table.loc[("low", "m"), "rate_positive"] == pytest.approx((predicted[rows] == "low").mean())
    assert table["compared_as"].tolist() == ["f", "m"] * 3
    assert model.exact_gaps_ == pytest.approx(model.constraint_values_)


@pytest.mark.slow
def test_several_constraints_each_with_its_kappa(sample):
    constraints = [("rates", DemographicParity(0.15)), ("scores", StatisticalParity(0.2, interval=(0.0, 0.5)))]
    model = fitted(PartialParityClassifier(constraint=constraints), sample)
    for name, constraint in constraints:
        assert model.constraint_values_[name] <= constraint.kappa + model.granularity_[name]
    assert set(model.class_gaps_["scores"]) == {"high", "low", "mid"}


@pytest.mark.slow
def test_losses_and_rates_at_once(sample):
    mixed = [("losses", GroupRates("log_loss", kappa=0.05)), ("rates", GroupRates("selection", kappa=0.2))]
    model = fitted(RateParityClassifier(constraint=mixed), sample)
    assert model.status_ == "optimal"
    losses = metrics.loss_parity_gap(sample[1], model.decision_function(sample[0]), sensitive_features=sample[2])
    assert losses == pytest.approx(model.constraint_values_["losses"], abs=1e-9)
    assert "losses" not in model.class_gaps_  # they are of all classes


@pytest.mark.parametrize("constraint", ["demographic_parity", "equalized_odds"])
def test_networks_bound_multinomial_losses(sample, constraint):
    X, y, groups = sample
    model = LossParityClassifier(0.02, constraint=constraint, hidden_layer_sizes=(8,), random_state=0)
    model = fitted(model, sample)
    value = metrics.loss_parity_gap(y, model.decision_function(X), sensitive_features=groups, constraint=constraint)
    assert value == pytest.approx(model.constraint_values_["loss_parity"], abs=1e-9)
    assert value <= 0.02 + 1e-6
    assert model.predict_proba(X).shape == (600, 3)
    assert model.group_losses_.index.get_level_values("group").unique().tolist() == ["f", "m"]
    assert model.score(X, y) > 0.5
    stopped = LossParityClassifier(0.02, hidden_layer_sizes=(8,), early_stopping=True, random_state=0, max_epochs=20)
    assert fitted(stopped, sample).constraint_values_["loss_parity"] <= 0.02 + 1e-6


@pytest.mark.slow
def test_networks_bound_rates(sample):
    model = fitted(RateParityClassifier(0.1, hidden_layer_sizes=(8,), random_state=0), sample)
    assert model.solver_ == "adam_lagrangian"
    assert (
        metrics.independence_gap(sample[1], model.predict(sample[0]), sensitive_features=sample[2])
        <= 0.1 + model.granularity_["demographic_parity"]
    )


def test_a_stream_of_several_classes(sample):
    X, y, groups = sample
    model = LossParityClassifier(0.1, hidden_layer_sizes=(8,), random_state=0, new_row_folds=None)
    classes = ["high", "low", "mid"]
    for rows in np.array_split(np.arange(600), 3):
        model.partial_fit(X[rows], y[rows], classes, sensitive_features=groups[rows])
    assert model.predict_proba(X).shape == (600, 3)
    assert model.score(X, y) > 0.4


@pytest.mark.slow
def test_estimates_on_new_rows_are_what_new_rows_show():
    sample, new = draw(900, 12), draw(20000, 12, seed=1)
    model = RateParityClassifier(0.05, new_row_folds=2).fit(*sample[:2], sensitive_features=sample[2])
    assert model.solver_ == "cross_fitted"
    value = model.constraint_values(*new[:2], sensitive_features=new[2])["demographic_parity"]
    gap = model.new_row_gaps_["demographic_parity"]
    assert abs(gap.estimate - value) <= 4 * gap.standard_error + 0.02
    assert value <= 0.05 + 3 * gap.standard_error
    # the rows themselves keep it by less if all coefficients are free
    free = fitted(RateParityClassifier(0.05, solver="augmented_lagrangian"), sample)
    assert free.constraint_values(*new[:2], sensitive_features=new[2])["demographic_parity"] > value
    assert free.score(*sample[:2]) > model.score(*sample[:2]) - 0.02


@pytest.mark.slow
def test_a_promise_for_new_rows(sample):
    model = RateParityClassifier(0.12, promise="new_rows").fit(*sample[:2], sensitive_features=sample[2])
    assert model.status_ == "optimal"
    gap = model.new_row_gaps_["demographic_parity"]
    assert gap.estimate <= 0.12 + model.granularity_["demographic_parity"]


@pytest.mark.slow
def test_digits_keep_their_bound():
    X, y = (column[:600] for column in load_digits(n_class=6, return_X_y=True))
    rng = np.random.default_rng(0)
    groups = rng.random(y.size) < np.where(y % 2 == 0, 0.6, 0.4)
    model = RateParityClassifier(0.03, constraint="demographic_parity", alpha=1e-2, new_row_folds=None)
    model = model.fit(X / 16, y, sensitive_features=groups)
    gap = metrics.independence_gap(y, model.predict(X / 16), sensitive_features=groups)
    assert gap <= 0.03 + model.granularity_["demographic_parity"]
    assert model.coef_.shape == (6, 64)
    assert model.score(X / 16, y) > 0.75


@pytest.mark.slow
def test_a_path_and_the_choice_on_it(sample):
    X, y, groups = sample
    path = fairness_path(RateParityClassifier(new_row_folds=None), X, y, sensitive_features=groups, kappas=[0.2, 0.1])
    assert (path.table["gap"] <= path.table["kappa"] + 0.003).all()
    chosen = PartialParityClassifierCV(
        constraint="demographic_parity", bound=0.25, kappas=[0.2], cv=2, new_row_folds=None
    )
    chosen.fit(X, y, sensitive_features=groups)
    assert chosen.predict_proba(X).shape == (600, 3)


#: Solvers that need a view, or a model, which several classes do not offer.
OF_TWO_CLASSES = {
    "idca",
    "iqrc",
    "level_set",
    "mirror_descent",
    "moments",
    "multiplier_model",
    "projected_gradient",
    "sequential_quadratic",
    "span",
    "span_search",
    "stochastic_idca",
}
#: Solvers that have a turn in the fast tier, one for each way in which constraints enter.
FAST = {"adam", "alm", "augmented_lagrangian", "cross_fitted", "exact_penalty", "plada", "stochastic_ghost", "ssg"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    "solver",
    [
        pytest.param(name, marks=() if name in FAST else pytest.mark.slow)
        for name in sorted(set(SOLVERS) - OF_TWO_CLASSES - {*OF_MEAN_LOSSES})
    ],
)
def test_solvers_of_several_classes(sample, solver):
    options = {"inner_iter": 100} if solver == "ipc" else None  # its own number of steps takes fifteen seconds
    model = RateParityClassifier(0.3, solver=solver, solver_options=options, max_iter=1, random_state=0)
    model = fitted(model, tuple(column[:200] for column in sample))
    assert model.decision_function(sample[0]).shape == (600, 3)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("solver", sorted(OF_TWO_CLASSES))
def test_other_solvers_say_which_ones_work(sample, solver):
    with pytest.raises(IncompatibleProblem, match=r"'adam_lagrangian'.*'augmented_lagrangian'.*'cross_fitted'"):
        fitted(RateParityClassifier(0.3, solver=solver), sample)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (RateParityClassifier(group_interactions=True), "group_interactions=True is for two classes, and y has 3"),
        (PartialParityClassifier(threshold=0.5), "threshold=0.5 is for two classes"),
        (PartialParityClassifier(objective="auc"), "PairwiseAUC is an objective for two classes"),
        (RateParityClassifier(objective="zero_one"), "objective must be 'logistic'"),
        (LossParityClassifier(loss="hinge"), "Hinge is an objective for two classes"),
        (AUCFairClassifier(), r"Only binary.*take RateParityClassifier, PartialParityClassifier or LossParity"),
    ],
)
def test_parameters_for_two_classes_are_refused(sample, model, message):
    X, y, groups = sample
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=groups)
    assert not hasattr(model, "classes_")


def test_tags_say_who_takes_several_classes():
    several = {RateParityClassifier, PartialParityClassifier, LossParityClassifier, PartialParityClassifierCV}
    for kind in several | {AUCFairClassifier}:
        assert get_tags(kind()).classifier_tags.multi_class is (kind in several)


def test_a_model_of_two_classes_after_one_of_three(sample):
    X, y, groups = sample
    model = fitted(RateParityClassifier(0.1), sample)
    two = y != "mid"
    model.fit(X[two], y[two], sensitive_features=groups[two])
    assert model.coef_.shape == (1, 4)
    assert model.decision_function(X).shape == (600,)
    assert model.class_gaps_ == {}
    with pytest.raises(ValueError, match="unknown classes"):
        model.constraint_values(X, y, sensitive_features=groups)


def test_a_bound_that_no_iterate_keeps_is_kept_by_retreat(sample):
    X, y, groups = sample
    with pytest.warns(ConvergenceWarning):
        model = fitted(RateParityClassifier(0.0, max_iter=1), sample)
    gap = metrics.independence_gap(y, model.predict(X), sensitive_features=groups)
    assert gap <= model.granularity_["demographic_parity"] + 1e-9
    assert model.status_ == "max_iter"


def test_a_warning_says_that_all_rows_have_one_class_and_none_that_a_class_is_never_predicted():
    """There is no threshold to set, and a rare class is often predicted for no row without a bound, too."""
    rng = np.random.default_rng(0)
    groups, rare, noise = rng.integers(0, 2, 300), rng.random(300) < 0.1, rng.normal(size=300)
    two = np.where(noise > 0, "a", "b")
    fitted(RateParityClassifier(0.2), (noise[:, None], np.where(rare, "c", two), groups))
    with pytest.warns(FairnessWarning, match="all rows are predicted as the same class, where demographic_parity is 0"):
        fitted(RateParityClassifier(0.2), (noise[:, None], np.where(rare, np.where(noise > 0, "c", "b"), "a"), groups))


@pytest.mark.slow
def test_crime_in_thirds(real_folder):
    table = pd.read_parquet(real_folder / "communities_crime.parquet")
    numbers = table.select_dtypes("number").dropna(axis=1)
    crime = numbers["ViolentCrimesPerPop"]
    groups = np.where(numbers["racepctblack"] > numbers["racepctblack"].median(), "above", "below")
    left_out = [name for name in numbers if name in ("ViolentCrimesPerPop", "fold", "state") or "race" in name]
    X = StandardScaler().fit_transform(numbers.drop(columns=left_out))
    y = np.array(["low", "mid", "high"])[np.digitize(crime, crime.quantile([1 / 3, 2 / 3]))]
    parts = train_test_split(X, y, groups, test_size=0.4, random_state=0, stratify=y)
    X_train, X_test, y_train, y_test, groups_train, groups_test = parts
    free = RateParityClassifier(None, alpha=0.01).fit(X_train, y_train, sensitive_features=groups_train)
    model = RateParityClassifier(0.1, alpha=0.01, new_row_folds=None)
    model.fit(X_train, y_train, sensitive_features=groups_train)
    gaps = [
        metrics.independence_gap(y_test, known.predict(X_test), sensitive_features=groups_test)
        for known in (free, model)
    ]
    assert model.solver_ == "cross_fitted"
    assert model.constraint_values_["demographic_parity"] <= 0.1 + model.granularity_["demographic_parity"]
    # 400 new rows of each group: three standard errors of a difference of two shares
    assert gaps[1] <= 0.1 + 3 * np.sqrt(2 * 0.25 / 400) < gaps[0]
    assert model.score(X_test, y_test) > 0.45


def test_networks_of_several_classes_warn_of_unscaled_features(sample):
    X, y, groups = sample
    model = LossParityClassifier(0.5, hidden_layer_sizes=(4,), max_epochs=3, random_state=0, new_row_folds=None)
    with pytest.warns(ConvergenceWarning, match=r"features \[0\] of X are so large"):
        model.fit(X * np.where(np.arange(X.shape[1]), 1.0, 1e4), y, sensitive_features=groups)


@pytest.mark.slow
def test_a_ratio_of_the_rates_of_each_of_ten_classes():
    X, y = (part[:700] for part in load_digits(return_X_y=True))
    groups = X[:, 1] + X[:, 1].std() * np.random.default_rng(0).normal(size=700) > X[:, 1].mean()
    X = StandardScaler().fit_transform(X[:, ::3])
    model = RateParityClassifier(0.2, constraint="demographic_parity_ratio", new_row_folds=None, random_state=0)
    model.fit(X, y, sensitive_features=groups)
    decided = pd.crosstab(groups, model.predict(X), normalize="index")
    least = (decided.min() / decided.max()).min()
    assert least >= 0.8 - 1e-9
    assert model.constraint_values_["demographic_parity_ratio"] == pytest.approx(1 - least)
    assert model.score(X, y) > 0.85


@pytest.mark.filterwarnings("ignore")
def test_scores_of_few_rows_are_no_worse_than_constant_ones():
    """Multiples of the scores have the same gap, and the smaller ones hedge better."""
    X, y = load_iris(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    groups = np.where(X[:, 1] + 0.3 * np.random.default_rng(0).normal(size=150) > np.median(X[:, 1]), "hi", "lo")
    order = np.random.default_rng(1).permutation(150)
    model = PartialParityClassifier(0.15, new_row_folds=None).fit(X[order], y[order], sensitive_features=groups[order])
    assert model.constraint_values_["statistical_parity"] <= 0.15 + model.granularity_["statistical_parity"]
    assert log_loss(y, model.predict_proba(X)) <= np.log(3) + 1e-9  # how much better depends on rounding


@pytest.mark.slow
@pytest.mark.parametrize("hidden", [None, (4,)], ids=["linear", "network"])
def test_where_only_constant_scores_keep_the_bound_they_are_the_best_ones(hidden):
    """They are the log shares of the classes, up to a constant, rather than zero for every class."""
    rng = np.random.default_rng(0)
    groups, y = rng.integers(0, 2, 300), rng.choice(["a", "b", "c"], 300, p=[0.2, 0.6, 0.2])
    X = groups[:, None] + 0.1 * rng.normal(size=(300, 1))
    model = PartialParityClassifier(0.05, hidden_layer_sizes=hidden, solver="augmented_lagrangian", random_state=0)
    with pytest.warns(ConvergenceWarning, match="all rows have the same score.*hidden_layer_sizes"):
        fitted(model, (X, y, groups))
    shares = np.unique(y, return_counts=True)[1] / 300
    assert model.predict_proba(X) == pytest.approx(np.tile(shares, (300, 1)), abs=1e-3)
    assert model.constraint_values_["statistical_parity"] == 0.0


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("keeps_stricter", [True, False])
def test_where_a_run_loses_its_way_one_under_a_stricter_bound_finds_it(sample, monkeypatch, keeps_stricter):
    """It need not keep the stricter bound, only the one that was asked for."""
    X, y, groups = sample
    model = RateParityClassifier(0.1, new_row_folds=None, random_state=0)
    solve = AugmentedLagrangian.solve

    def losing(self, problem, *arguments, **options):
        found = solve(self, problem, *arguments, **options)
        if problem.constraints and problem.constraints[0].kappa == 0.1:
            wrong = -unconstrained(problem)[0]
            return replace(found, model_state=wrong, status=Status.INFEASIBLE, candidates=())
        return found if keeps_stricter or not problem.constraints else replace(found, status=Status.INFEASIBLE)

    strict = clone(model).set_params(kappa=0.05).fit(X, y, sensitive_features=groups)
    monkeypatch.setattr(AugmentedLagrangian, "solve", losing)
    model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "completed"
    (value,), (granularity,) = model.constraint_values_.values(), model.granularity_.values()
    assert value <= 0.1 + granularity
    assert model.objective_ <= 1.001 * strict.objective_
    assert model.prices_ == pytest.approx({"demographic_parity": np.nan}, nan_ok=True)
