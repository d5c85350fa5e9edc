"""Boosted trees under bounds: every constraint, the rows they take, their folds, and what scikit-learn expects."""

import pickle
import sys
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GridSearchCV

from benchmarks._common import load_a9a
from fairconstrained import (
    ConvergenceWarning,
    FairBoostingClassifier,
    FairBoostingRegressor,
    FairnessReport,
    FairnessWarning,
    certify,
    fairness_path,
    fairness_report,
)
from fairconstrained.callbacks import Checkpoint
from fairconstrained.constraints import DemographicParity, GroupRates, PairwiseParity, QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators import new_rows
from fairconstrained.exceptions import StopTraining
from fairconstrained.metrics import (
    group_rates,
    inter_group_auc_gap,
    loss_parity_gap,
    partial_demographic_parity_gap,
    partial_equalized_odds_gap,
    partial_statistical_parity_gap,
)
from fairconstrained.models.boosted_trees import BoostedTrees
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import NewtonBoosting
from tests.estimators.test_promise_matrix import CONSTRAINTS, excess

#: Few trees of one booster, whose bounds are about the rows that they are fitted to: most tests take their scores.
SMALL = {"n_estimators": 60, "num_leaves": 4, "cv": None}


@pytest.fixture(scope="module")
def rows():
    return make_biased_classification(
        600, 4, group_proportions=(0.6, 0.4), group_shift=(0.8, 0.0), separation=(1.0, 2.0), random_state=0
    )


def fitted(rows, *args, **params):
    X, y, groups = rows
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)  # rates of probabilities are not those of decisions
        return FairBoostingClassifier(*args, **{**SMALL, **params}).fit(X, y, sensitive_features=groups)


@pytest.fixture(scope="module")
def free(rows):
    return fitted(rows, None, n_estimators=150)


@pytest.fixture(scope="module")
def fair(rows):
    return fitted(rows, 0.1)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_trees_keep_every_bound(rows, free, name):
    X, y, groups = rows
    make, metric, options = CONSTRAINTS[name]

    def value_of(model):
        return metric(y, model.decision_function(X), sensitive_features=groups, **options)

    kappa = 0.4 * (value_of(free) - (name == "parity_pair"))
    if name == "majority_share":  # no less than the share that equal scores would give
        kappa = (value_of(free) + np.mean(groups != 1)) / 2
    if name == "ceiling":  # errors are no gap, that all of it could be removed
        kappa = 0.9 * value_of(free)
    model = fitted(rows, constraint=[("bound", make(kappa))], n_estimators=150)
    value = value_of(model)
    assert model.constraint_values_ == {"bound": pytest.approx(value, abs=1e-9)}
    assert excess(name, kappa, value) <= model.granularity_["bound"] + 1e-9
    assert model.status_ == "completed"
    constant = -y.mean() * np.log(y.mean()) - (1 - y.mean()) * np.log(1 - y.mean())
    # The bound does not cost everything; a bound that costs next to nothing may even lead to better trees.
    assert free.objective_ - 0.01 < model.objective_ < 0.9 * constant
    assert model.prices_["bound"] >= 0


@pytest.mark.parametrize("constraint", [PairwiseParity(0.02), QuadraticAUCGap(0.02)])
def test_trees_follow_the_slopes_of_surrogates_that_are_bounded_themselves(rows, constraint):
    X, y, groups = rows
    data = FairData.from_arrays(X, 2.0 * y - 1, groups, ("a", "b"))
    model = BoostedTrees({"num_leaves": 4, "num_threads": 1}, (), 4)
    problem = Problem(Logistic().bind(data), (constraint.bind(data),), data, model=model)

    def largest(problem_to_solve):
        result = NewtonBoosting(n_trees=100).solve(problem_to_solve, None, np.random.default_rng(0))
        return problem.constraints[0].exact(problem.scores(result.model_state))

    assert largest(problem.without_constraints()) > 0.05
    assert largest(problem) <= max(problem.constraints[0].granularity, 0.005)


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        ("demographic_parity", partial_demographic_parity_gap),
        ("equalized_odds", partial_equalized_odds_gap),
        ("statistical_parity", partial_statistical_parity_gap),
        ("inter_group", inter_group_auc_gap),
        ("loss_parity", loss_parity_gap),
    ],
)
def test_names_stand_for_their_metrics(rows, name, metric):
    X, y, groups = rows
    model = fitted(rows, None, constraint=name, n_estimators=10)
    value = metric(y, model.decision_function(X), sensitive_features=groups)
    assert model.constraint_values_ == {name: pytest.approx(value)}


def test_interval_and_threshold_belong_to_the_named_bounds(rows):
    X, y, groups = rows
    options = {"interval": (0.0, 0.5), "n_estimators": 150}
    model = fitted(rows, 0.1, threshold=0.4, **options)
    scores = model.decision_function(X)
    gap = partial_demographic_parity_gap(y, scores, sensitive_features=groups, threshold=0.4, interval=(0.0, 0.5))
    assert model.constraint_values_["demographic_parity"] == pytest.approx(gap)
    np.testing.assert_array_equal(model.predict(X), scores > 0.4)


def test_without_kappa_it_is_lightgbm(rows):
    X, y, _ = rows
    model = fitted(rows, None, n_estimators=20)
    plain = lgb.LGBMClassifier(n_estimators=20, num_leaves=4, verbosity=-1, n_jobs=1).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], plain.booster_.predict(X), atol=1e-5)


def test_the_booster_has_the_scores(rows, fair):
    X = rows[0]
    scores = fair.decision_function(X)
    np.testing.assert_array_equal(fair.booster_.predict(X, raw_score=True), scores)
    assert fair.booster_.num_trees() == fair.n_trees_ <= 60
    contributions = fair.booster_.predict(X, pred_contrib=True)  # TreeSHAP
    np.testing.assert_allclose(contributions.sum(axis=1), scores, atol=1e-9)
    assert fair.feature_importances_.sum() == pytest.approx(1.0)
    gains = fair.booster_.feature_importance("gain")
    np.testing.assert_allclose(fair.feature_importances_, gains / gains.sum())


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["age", "hours per week", "a[1]", "b:c"], ["age", "hours_per_week", "a_1_", "b_c"]),
        (["a b", "a_b", "c", "d"], ["Column_0", "Column_1", "Column_2", "Column_3"]),  # no longer different
    ],
)
def test_the_booster_has_the_names_of_the_features(rows, columns, expected):
    X, y, groups = rows
    model = fitted((pd.DataFrame(X, columns=columns), y, groups), 0.1)
    assert model.booster_.feature_name() == expected
    assert fitted(rows, 0.1).booster_.feature_name() == [f"Column_{place}" for place in range(4)]
    np.testing.assert_array_equal(model.predict(pd.DataFrame(X, columns=columns)), fitted(rows, 0.1).predict(X))


def table(rows, seed=0):
    """Rows with a column of categories and with missing values."""
    X, y, groups = rows
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(X.copy(), columns=["a", "b", "c", "d"])  # older pandas would write into X
    frame.loc[rng.random(len(y)) < 0.2, "a"] = np.nan
    kinds = np.where(y, rng.choice(["x", "y"], len(y)), rng.choice(["y", "z"], len(y)))
    frame["kind"] = pd.Categorical(np.where(rng.random(len(y)) < 0.1, None, kinds), ["never", "z", "y", "x"])
    return frame, y, groups


def test_missing_values_and_categories(rows):
    frame, y, groups = table(rows)
    model = fitted((frame, y, groups), 0.1)
    assert model.status_ == "completed"
    assert model.feature_importances_[4] > 0.2
    without = fitted((frame.drop(columns="kind"), y, groups), 0.1)
    assert model.objective_ < without.objective_ - 0.05
    # codes of the categories, whatever the order in which new rows know them
    reordered = frame.assign(kind=frame["kind"].astype(object).astype("category"))
    np.testing.assert_array_equal(model.decision_function(frame), model.decision_function(reordered))
    unseen, missing = frame.copy(), frame.copy()
    unseen["kind"] = pd.Categorical(["new"] * len(y))
    missing["kind"] = pd.Categorical([None] * len(y), ["x"])
    np.testing.assert_array_equal(model.decision_function(unseen), model.decision_function(missing))
    values = model.constraint_values(frame, y, sensitive_features=groups)
    assert values == pytest.approx(model.constraint_values_)


def test_named_columns_are_categories_too(rows):
    frame, y, groups = table(rows)
    strings = frame.assign(kind=frame["kind"].astype(object))
    by_type = fitted((frame, y, groups), 0.1)
    by_name = fitted((strings, y, groups), 0.1, categorical_features=["kind"])
    by_number = fitted((strings.to_numpy(dtype=object), y, groups), 0.1, categorical_features=[4])
    by_mask = fitted((strings, y, groups), 0.1, categorical_features=[False] * 4 + [True])
    for other in (by_name, by_number, by_mask):
        assert other.score(strings if other is not by_number else strings.to_numpy(dtype=object), y) > 0.75
    # categories of strings are in alphabetical order, so that trees may differ by ties
    assert by_name.objective_ == pytest.approx(by_type.objective_, abs=0.02)
    np.testing.assert_array_equal(by_name.decision_function(strings), by_mask.decision_function(strings))


def test_sparse_rows_give_the_same_model(rows):
    X, y, groups = rows
    few = np.where(np.abs(X) < 0.5, 0.0, X)
    dense, sparse = fitted((few, y, groups), 0.1), fitted((sp.csr_array(few), y, groups), 0.1)
    np.testing.assert_allclose(sparse.decision_function(few), dense.decision_function(few), atol=1e-9)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_array(few)), dense.decision_function(few), atol=1e-9)


@pytest.mark.parametrize("cst", [[1, 0, 0, 0], {"a": 1}])
def test_scores_are_monotone(rows, cst):
    X, y, groups = rows
    frame = pd.DataFrame(X.copy(), columns=["a", "b", "c", "d"])  # older pandas would write into X
    grid = pd.DataFrame(np.tile(X[:40], (25, 1)), columns=frame.columns)
    grid["a"] = np.repeat(np.linspace(-3, 3, 25), 40)

    def falls(model):
        return np.diff(model.decision_function(grid).reshape(25, 40), axis=0).min()

    assert falls(fitted((frame, y, groups), 0.2, monotonic_cst=cst, n_estimators=100)) >= 0
    assert falls(fitted((frame, y, groups), 0.2, n_estimators=100)) < 0


def test_scores_of_unseen_rows_choose_the_number_of_trees(rows):
    params = {"cv": 3, "n_estimators": 400}
    model = fitted(rows, 0.15, early_stopping_rounds=20, **params)
    assert model.n_trees_ <= 3 * model.n_iter_ < 1200
    assert model.n_boosters_ == 3
    assert model.constraint_values_["demographic_parity"] <= 0.15 + model.granularity_["demographic_parity"]
    free, training = fitted(rows, None, early_stopping_rounds=20, **params), fitted(rows, None, n_estimators=400)
    assert free.n_trees_ / 3 < training.n_trees_
    new = make_biased_classification(
        4000, 4, group_proportions=(0.6, 0.4), group_shift=(0.8, 0.0), separation=(1.0, 2.0), random_state=1
    )
    losses = [log_loss(new[1], one.predict_proba(new[0])) for one in (free, training)]
    assert losses[0] < losses[1]


@pytest.mark.slow
def test_by_default_the_bound_holds_on_new_rows():
    """On rows that trees have memorised it says little of new ones."""
    options = {"group_proportions": (0.6, 0.4), "group_shift": (0.8, 0.0), "separation": (1.0, 2.0)}
    X, y, groups = make_biased_classification(14_000, 4, random_state=3, **options)
    train, new, name = slice(0, 4000), slice(4000, None), "demographic_parity"

    def fit(**params):
        model = FairBoostingClassifier(0.05, new_row_folds=None, **params)
        return model.fit(X[train], y[train], sensitive_features=groups[train])

    model, memorised = fit(), fit(cv=None)
    for each in (model, memorised):
        assert each.constraint_values_[name] <= 0.05 + each.granularity_[name]
    gap, far = (each.constraint_values(X[new], y[new], sensitive_features=groups[new]) for each in (model, memorised))
    assert gap[name] < 0.08  # the rate difference of 4000 rows has a standard error of .016
    assert far[name] > 0.2
    scores = model.decision_function(X[new])
    np.testing.assert_array_equal(fit().decision_function(X[new]), scores)
    np.testing.assert_array_equal(model.booster_.predict(X[new], raw_score=True), scores)
    assert model.booster_.num_trees() == model.n_trees_


def test_folds_are_taken_where_they_have_a_use(rows):
    X, y, groups = rows
    auto = {"cv": "auto", "n_estimators": 5, "new_row_folds": None}
    assert fitted(rows, 0.5, **auto).n_boosters_ == 5
    assert fitted(rows, None, **auto).n_boosters_ == 1
    assert fitted(rows, None, early_stopping_rounds=3, **auto).n_boosters_ == 5
    assert fitted(rows, "minimax", constraint="bounded_group_loss", **auto).n_boosters_ == 5
    assert fitted(rows, 0.5, **auto | {"cv": 3}).n_boosters_ == 3
    many = [np.tile(column, (18,) + (1,) * (column.ndim - 1)) for column in rows]  # 10,800 rows
    assert fitted(many, 0.5, **auto).n_boosters_ == 2
    small = np.where(np.arange(len(y)) % 120 == 0, "small", groups)  # 5 rows
    few = fitted((X, y, small), 0.5, **auto)
    assert few.n_boosters_ == 5
    assert (
        few.granularity_["demographic_parity"]
        == fitted((X, y, small), 0.5, n_estimators=5).granularity_["demographic_parity"]
    )  # all rows count, as without folds


def test_the_bounded_scores_are_the_estimate_for_new_rows(rows, monkeypatch):
    """Another fit takes place only where folds are asked for."""
    solve, fits = NewtonBoosting.solve, []
    monkeypatch.setattr(NewtonBoosting, "solve", lambda *args: fits.append(args) or solve(*args))
    model = fitted(rows, 0.2, cv=2)
    assert len(fits) == 1
    gap = model.new_row_gaps_["demographic_parity"]
    # chance in the rates of two groups goes in both directions
    assert gap.estimate == pytest.approx(model.constraint_values_["demographic_parity"], abs=0.02 * gap.standard_error)
    assert 0.02 < gap.standard_error < 0.06  # of a difference of rates of 360 and 240 rows
    assert fitted(rows, 0.2, cv=2, new_row_folds=3).new_row_gaps_["demographic_parity"].how == "3-fold cross-fitting"
    assert len(fits) == 1 + 1 + 3
    assert fitted(rows, 0.2, cv=2, new_row_folds=None).new_row_gaps_ == {}


def test_estimates_of_several_groups_are_means_over_samples():
    """A bound holds what is chance in the rates of its rows, so that the largest difference is larger on others."""
    rng = np.random.default_rng(0)
    groups = rng.choice(4, 800, p=[0.55, 0.15, 0.15, 0.15])
    X = rng.normal(size=(800, 4)) + 0.4 * groups[:, None]
    y = (X[:, 0] + rng.normal(size=800) > 0.5).astype(int)
    model = fitted((X, y, groups), 0.1, n_estimators=20, cv=5)
    (value,), (gap,) = model.constraint_values_.values(), model.new_row_gaps_.values()
    decisions = model._answering_rows_of_fit(X, y, sensitive_features=groups).predict(X)
    drawn = [rng.binomial(n, decisions[groups == k].mean(), 4000) / n for k, n in enumerate(np.bincount(groups))]
    gaps = np.ptp(drawn, axis=0)
    assert gap.estimate == pytest.approx(gaps.mean(), abs=0.3 * gaps.std())
    assert gap.estimate > value + 0.4 * gaps.std()
    assert gap.standard_error == pytest.approx(gaps.std(), rel=0.4)  # 25 draws tell it to a seventh
    assert "np." not in repr(gap)  # numbers of Python, as in all other estimates
    free = fitted((X, y, groups), 1.0, n_estimators=20, cv=5)  # a bound without effect holds nothing
    assert free.new_row_gaps_["demographic_parity"].estimate == free.constraint_values_["demographic_parity"]


def test_a_promise_for_new_rows_takes_a_margin_of_the_bounded_scores(rows):
    model = fitted(rows, 0.2, cv=2, promise="new_rows")
    gap = model.new_row_gaps_["demographic_parity"]
    assert gap.estimate + gap.standard_error / 4 <= 0.2 + model.granularity_["demographic_parity"]
    assert model.status_ == "completed"


@pytest.mark.slow
def test_the_rows_of_the_bound_are_named(rows, capsys):
    X, y, groups = rows
    words = {}
    for cv, where in ((None, "training rows"), (2, "training rows scored out of fold")):
        model = fitted(rows, 0.2, cv=cv, verbose=1)
        report = FairnessReport.from_estimator(model, X, y, sensitive_features=groups, n_resamples=None).to_html()
        assert f"{model.constraint_values_['demographic_parity']:.4g} on the {where}" in report
        words[where] = capsys.readouterr()
    for where, printed in words.items():
        assert f"on the {where}" in printed.out + printed.err


def test_an_auc_gap_that_trees_overfit_is_bounded_out_of_fold():
    """The gap of the trees' own rows has to have the other sign; all trees but the first few were given up once."""
    X, y, groups = make_biased_classification(12_000, n_features=12, random_state=1)
    options = {"constraint": "inter_group", "n_estimators": 100}
    model = FairBoostingClassifier(0.02, new_row_folds=None, **options)
    model.fit(X[:2000], y[:2000], sensitive_features=groups[:2000])
    assert model.constraint_values_["inter_group"] <= 0.02 + model.granularity_["inter_group"]
    assert model.n_trees_ > 20
    new = slice(2000, None)
    assert roc_auc_score(y[new], model.decision_function(X[new])) > 0.85
    assert model.constraint_values(X[new], y[new], sensitive_features=groups[new])["inter_group"] < 0.06


def test_a_free_model_stops_early(rows):
    model = fitted(rows, None, cv=2, early_stopping_rounds=10, n_estimators=300)
    assert model.n_trees_ / 2 < model.n_iter_ < 300
    objectives = {record["n_iter"]: record["objective"] for record in model.history_}
    assert objectives[model.n_trees_ / 2] == min(objectives.values()) == model.objective_


def test_a_bounded_model_stops_early_at_the_best_trees_within_the_bound(rows):
    """Only trees of the second half are waited for, when the multipliers have found their values."""
    model = fitted(rows, 0.1, cv=2, early_stopping_rounds=10, n_estimators=200)
    assert 100 < model.n_iter_ < 200
    most = 0.1 + model.granularity_["demographic_parity"]
    within = {r["n_iter"]: r["objective"] for r in model.history_ if r["n_iter"] and r["demographic_parity"] <= most}
    assert model.constraint_values_["demographic_parity"] <= most
    assert model.objective_ <= min(within.values())
    assert all(within[number] > min(within.values()) for number in within if number > model.n_iter_ - 10)


def test_the_threshold_of_errors_is_not_moved_on_rows_that_the_trees_know(rows):
    """The first trees with the fewest errors within the bound are the model: no other threshold is taken from them."""
    model = fitted(rows, 0.5, objective="zero_one", num_leaves=31)
    objectives = {record["n_iter"]: record["objective"] for record in model.history_}
    assert model.objective_ == objectives[model.n_trees_]


def test_decisions_no_better_than_one_for_all_rows_get_another_threshold():
    """Two trees of rare positives decide all rows alike; some threshold of their scores has fewer errors."""
    X, y, groups = make_biased_classification(600, 4, positive_rates=(0.1, 0.2), separation=2.5, random_state=0)
    model = fitted((X, y, groups), 0.5, objective="zero_one", n_estimators=2)
    assert np.mean(model.predict(X) != y) < y.mean()


def test_more_trees_and_another_kappa(rows):
    X, y, groups = rows
    model = fitted(rows, 0.1, warm_start=True)
    first = model.n_trees_, model.booster_.predict(X, raw_score=True, num_iteration=5)
    model.set_params(n_estimators=90).fit(X, y, sensitive_features=groups)
    assert first[0] < model.n_trees_ <= 90
    np.testing.assert_allclose(model.booster_.predict(X, raw_score=True, num_iteration=5), first[1])
    model.set_params(kappa=0.2).fit(X, y, sensitive_features=groups)
    assert model.history_[0]["n_iter"] == 0
    assert model.history_[0]["multipliers"]
    assert model.constraint_values_["demographic_parity"] <= 0.2 + model.granularity_["demographic_parity"]


def test_a_warm_start_with_another_constraint_begins_without_multipliers(rows):
    X, y, groups = rows
    model = fitted(rows, 0.2, warm_start=True)
    for name in ("statistical_parity", "equalized_odds", "demographic_parity"):
        model.set_params(constraint=name, kappa=0.5).fit(X, y, sensitive_features=groups)
        assert not any(model.history_[0]["multipliers"].values())
        assert model.constraint_values_[name] <= 0.5 + model.granularity_[name]


def test_all_fits_of_a_path_have_folds(rows):
    X, y, groups = rows
    for name, kappa in (("statistical_parity", 0.4), ("bounded_group_loss", 0.6)):
        model = FairBoostingClassifier(constraint=name, n_estimators=20, num_leaves=4)
        path = fairness_path(model, X, y, sensitive_features=groups, kappas=[None, kappa])
        assert [fit.n_boosters_ for fit in path.models] == [5, 5]
        assert path.models[1].constraint_values_[name] <= kappa + path.models[1].granularity_[name]


def test_what_cannot_be_measured_on_other_rows_has_no_estimate(rows, monkeypatch):
    monkeypatch.setitem(new_rows._FOLDS, "training", 5)
    model = fitted(rows, constraint=QuadraticAUCGap(1.0), cv=2)
    (estimate,) = model.new_row_gaps_.values()
    assert np.isnan(estimate.estimate)
    assert "cannot be measured" in estimate.how


def test_trees_that_are_no_use_are_said(rows):
    for params in ({"min_child_samples": 1000}, {"min_gain_to_split": 1e9}):
        with pytest.warns(ConvergenceWarning, match="no tree could be grown"):
            model = fitted(rows, 0.1, lgbm_params=params)
        assert (model.n_trees_, model.booster_) == (0, None)
    with pytest.warns(ConvergenceWarning, match=r"that of a constant score 0\.69.* Lower learning_rate"):
        fitted(rows, 0.3, learning_rate=5.0)
    with pytest.raises(ValueError, match="cv=601 folds need as many rows, and there are 600; lower cv"):
        fitted(rows, 0.1, cv=601)


def test_a_constant_in_place_of_worse_trees_is_said():
    """Nothing can be learnt from these rows, and a constant within the bound has a lower loss than all trees."""
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 800)
    X, y = rng.normal(size=(800, 4)) + 0.5 * groups[:, None], rng.integers(0, 2, 800)
    with pytest.warns(ConvergenceWarning, match="worse than a constant within the bound.*all rows have the same score"):
        model = FairBoostingClassifier(
            0.05, constraint="statistical_parity", n_estimators=12, num_leaves=8, learning_rate=0.5
        ).fit(X, y, sensitive_features=groups)
    assert model.n_trees_ == 0
    assert np.isnan(model.prices_["statistical_parity"])


def test_a_constant_score_beyond_the_bound_is_not_compared_with():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(1500, 3)), rng.integers(0, 2, 1500)
    y = X[:, 0] + rng.logistic(size=1500) > 3.0
    floor = GroupRates("true_positive", rule="floor", kappa=0.3)
    model = fitted((X, y, groups), constraint=floor, n_estimators=150, cv=2)  # a warning is an error here
    assert model.objective_ > log_loss(y, np.full(1500, y.mean()))  # that constant finds no positive row
    assert model.constraint_values_["true_positive_floor"] >= 0.3
    assert model.status_ == "completed"


def test_callbacks_see_records_and_end_the_fit(rows):
    seen = []

    def watch(record):
        seen.append(record["n_iter"])
        if record["n_iter"] == 20:
            raise StopTraining

    model = fitted(rows, None, callbacks=[watch])
    assert seen[-1] == 20 == model.n_trees_ == model.n_iter_


def test_a_checkpoint_of_other_data_is_refused(rows, tmp_path):
    X, y, groups = rows
    path = tmp_path / "checkpoint"
    fitted(rows, None, n_estimators=10, callbacks=[Checkpoint(path)])
    assert fitted(rows, None, n_estimators=20, callbacks=[Checkpoint(path)]).history_[0]["n_iter"] > 0
    for others in ((X, 1 - y, groups), (X[:, :2], y, groups)):
        with pytest.raises(ValueError, match="reached with other data"):
            fitted(others, None, n_estimators=20, callbacks=[Checkpoint(path)])


@pytest.mark.parametrize("kappa", [None, 0.5])
def test_a_checkpoint_keeps_the_best_trees_of_a_fit(rows, tmp_path, kappa):
    options = {"n_estimators": 40, "learning_rate": 0.5, "cv": 2, "callbacks": [Checkpoint(tmp_path / "checkpoint")]}
    whole, again = (fitted(rows, kappa, **options) for _ in range(2))
    assert whole.n_trees_ < 80  # a finished fit ends with its best trees, not with all
    assert again.n_trees_ == whole.n_trees_
    np.testing.assert_allclose(again.decision_function(rows[0]), whole.decision_function(rows[0]), atol=1e-12)
    assert again.constraint_values_ == pytest.approx(whole.constraint_values_)
    assert again.objective_ == pytest.approx(whole.objective_)
    assert [record["n_iter"] for record in again.history_] == [40]
    fewer = fitted(rows, kappa, **{**options, "n_estimators": 3})  # more than these are no start
    assert fewer.history_[0]["n_iter"] == 0
    more = fitted(rows, kappa, **options)
    assert more.history_[0]["n_iter"] == 3
    assert more.objective_ < fewer.objective_


def test_same_seed_same_model(rows):
    X = rows[0]
    options = {"lgbm_params": {"bagging_fraction": 0.5, "bagging_freq": 1}, "n_estimators": 100}
    first, second, other = (fitted(rows, 0.1, random_state=seed, **options).decision_function(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_copies_predict_the_same(rows, fair):
    X, y, groups = rows
    copied = pickle.loads(pickle.dumps(fair))
    np.testing.assert_array_equal(copied.decision_function(X), fair.decision_function(X))
    np.testing.assert_array_equal(copied.feature_importances_, fair.feature_importances_)
    again = clone(fair).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(again.decision_function(X), fair.decision_function(X))


def test_strings_and_weights(rows):
    X, y, groups = rows
    names = np.where(y, "yes", "no")
    weights = np.random.default_rng(0).uniform(0.2, 2.0, y.size)
    weights[:30] = 0.0
    model = FairBoostingClassifier(0.1, **SMALL).fit(X, names, sensitive_features=groups, sample_weight=weights)
    assert set(model.predict(X)) == {"no", "yes"}
    gap = partial_demographic_parity_gap(
        y, model.decision_function(X), sensitive_features=groups, sample_weight=weights
    )
    assert model.constraint_values_["demographic_parity"] == pytest.approx(gap)


@pytest.mark.slow
def test_paths_searches_reports_and_certificates(rows, fair):
    X, y, groups = rows
    path = fairness_path(FairBoostingClassifier(**SMALL), X, y, kappas=[0.3, 0.2], sensitive_features=groups)
    assert [model.kappa for model in path.models] == [0.3, 0.2]
    for model in path.models:
        assert model.constraint_values_["demographic_parity"] <= model.kappa + 0.005
    search = GridSearchCV(FairBoostingClassifier(**SMALL), {"num_leaves": [2, 4]}, cv=2)
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        search.fit(X, y)
    new = make_biased_classification(500, 4, group_proportions=(0.6, 0.4), random_state=5)
    certificate = certify(fair, new[0], new[1], sensitive_features=new[2], metric="demographic_parity")
    assert certificate is not None
    with pytest.raises(ValueError, match="rows are among those"):
        certify(fair, X, y, sensitive_features=groups, metric="demographic_parity")
    report = fairness_report(new[1], fair.decision_function(new[0]), sensitive_features=new[2], n_resamples=None)
    assert len(report.gaps)


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 2, 800)
    X = rng.normal(size=(800, 3)) + 0.6 * groups[:, None]
    return X, 10 + 3 * (X[:, 0] ** 2 + X[:, 1]) + rng.normal(size=800), groups


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kappa"), [("statistical_parity", 0.15), ("demographic_parity", 0.1)])
def test_regression_in_any_unit(regression, name, kappa):
    X, y, groups = regression
    options = {"constraint": name, "threshold": 15.0, "n_estimators": 150, "num_leaves": 8, "cv": None}
    free = FairBoostingRegressor(None, **options).fit(X, y, sensitive_features=groups)
    model = FairBoostingRegressor(kappa, **options).fit(X, y, sensitive_features=groups)
    assert free.constraint_values_[name] > kappa + 0.05
    assert model.constraint_values_[name] <= kappa + model.granularity_[name]
    assert model.status_ == "completed"
    assert 0.3 < model.score(X, y) < free.score(X, y) + 0.02
    scores = (model.predict(X) - y.mean()) / y.std()
    np.testing.assert_allclose(model.booster_.predict(X), scores, atol=1e-9)
    unseen = FairBoostingRegressor(0.5, **options | {"cv": 2}).fit(X, y, sensitive_features=groups)
    assert unseen.constraint_values_[name] <= 0.5 + unseen.granularity_[name]
    assert unseen.score(X, y) > 0.3


def test_a_bound_out_of_reach_is_said(rows, monkeypatch):
    with pytest.warns(ConvergenceWarning, match="no iterate kept the bound"):
        model = fitted(rows, 0.0, constraint="statistical_parity", n_estimators=5)
    assert model.multipliers_ is None
    assert model.booster_ is None
    assert set(model.feature_importances_) == {0.0}
    # constant scores are within every bound here; without the search for them nothing is
    monkeypatch.setattr("fairconstrained.estimators._base.best_rescaled", lambda problem, states, *_: states[0])
    with pytest.warns(ConvergenceWarning, match=r"loss_parity is .* Loosen kappa, raise n_estimators"):
        model = fitted(rows, 0.0, constraint="loss_parity", n_estimators=1)
    assert model.status_ == "infeasible"


def test_one_group_is_said(rows):
    X, y, _ = rows
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        model = FairBoostingClassifier(**SMALL).fit(X, y)
    assert model.status_ == "unconstrained"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"early_stopping_rounds": 5}, "set cv, such as 2"),
        ({"lgbm_params": {"objective": "binary"}}, "lgbm_params has 'objective'"),
        ({"lgbm_params": {"boosting": "dart"}}, "another boosting than 'gbdt'"),
        ({"monotonic_cst": [1, 2, 0, 0]}, "one of -1, 0 and 1 for each of 4 features"),
        ({"monotonic_cst": {"e": 1}}, r"\['e'\], which are no names of features"),
        ({"categorical_features": ["e"]}, "'e', which is neither the name nor the number"),
        ({"categorical_features": [True, False]}, "a mask of 2 columns, and X has 4"),
        ({"categorical_features": [0], "monotonic_cst": [1, 0, 0, 0]}, "a direction for a column of categories"),
        ({"constraint": "other"}, "constraint must be one of"),
        ({"callbacks": [3]}, "callbacks must be functions"),
    ],
)
def test_wrong_parameters(rows, params, message):
    with pytest.raises(ValueError, match=message):
        fitted(rows, **params)


def test_wrong_rows(rows):
    X, y, groups = rows
    with pytest.raises(ValueError, match="NaN"):
        FairBoostingRegressor(**SMALL).fit(X, np.where(y, 1.0, np.nan), sensitive_features=groups)
    with pytest.raises(ValueError, match="infinity"):
        fitted((np.where(X > 2, np.inf, X), y, groups))
    frame, *_ = table(rows)
    strings = frame.assign(kind=frame["kind"].astype(object))
    with pytest.raises(ValueError, match=r"\['kind'\] hold strings"):
        fitted((strings, y, groups))
    with pytest.raises(ValueError, match="X is sparse"):
        fitted((sp.csr_array(X), y, groups), categorical_features=[0])


def test_lightgbm_is_asked_for_by_name(rows, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(ImportError, match="pip install"):
        fitted(rows)


@pytest.mark.slow
@pytest.mark.usefixtures("real_folder")
def test_equalized_odds_on_real_rows():
    data = load_a9a()
    y = data.y > 0
    train, test = np.flatnonzero(data.is_train), np.flatnonzero(~data.is_train)
    model = FairBoostingClassifier(0.02, constraint="equalized_odds", learning_rate=0.05)  # as in the benchmark
    model.fit(data.X[train], y[train], sensitive_features=data.groups[train])
    assert model.status_ == "completed"
    assert model.constraint_values_["equalized_odds"] <= 0.02 + model.granularity_["equalized_odds"]
    scores = model.decision_function(data.X[test])
    gap = partial_equalized_odds_gap(y[test], scores, sensitive_features=data.groups[test])
    assert gap <= 0.06  # without a bound .100; the training rows are memorised
    assert model.score(data.X[test], y[test]) >= 0.84


def test_a_constraint_of_a_users_own_parameters(rows):
    model = fitted(rows, constraint=DemographicParity(0.2))
    model.set_params(constraint__kappa=0.1)
    assert model.constraint.kappa == 0.1


def test_one_decision_for_all_rows_keeps_no_bound_that_more_trees_break(rows):
    X, y, groups = rows
    with (
        pytest.warns(ConvergenceWarning, match="no iterate kept the bound"),
        pytest.warns(FairnessWarning, match="below the threshold, where demographic_parity is 0"),
    ):
        model = FairBoostingClassifier(0.05, n_estimators=3, num_leaves=4, cv=3).fit(X, y, sensitive_features=groups)
    assert model.status_ != "completed"


def test_a_tight_bound_shifts_late_trees_and_not_the_first_ones():
    """The first trees accept everybody, which keeps the bound; the later ones, closest to it, only need a shift."""
    options = {"group_proportions": (0.6, 0.4), "group_shift": (0.8, 0.0), "separation": (1.0, 2.0)}
    X, y, groups = make_biased_classification(3000, 4, random_state=3, **options)
    kept = (y == 1) | (np.arange(len(y)) % 2 == 0)
    trees = {"n_estimators": 60, "num_leaves": 4, "cv": None}
    model = FairBoostingClassifier(0.0, constraint="equalized_odds", new_row_folds=None, **trees)
    with pytest.warns(ConvergenceWarning, match="no iterate kept the bound"):
        model.fit(X[kept], y[kept], sensitive_features=groups[kept])
    assert model.constraint_values_["equalized_odds"] <= model.granularity_["equalized_odds"]
    assert model.n_trees_ > 30
    assert model.score(X[kept], y[kept]) > y[kept].mean() + 0.01


@pytest.mark.parametrize(("kappa", "keeps_the_trees"), [(0.02, True), (0.05, False)])
def test_few_rows_are_learnt_before_the_multipliers_have_found_their_values(kappa, keeps_the_trees):
    """Then a multiple or shift, of these trees or of those of least loss, costs less than all numbers of trees."""
    options = {"group_proportions": (0.1, 0.9), "group_shift": (-1.0, 0.0), "separation": (2.0, 2.0)}
    X, y, groups = make_biased_classification(6000, 4, random_state=0, **options)
    model = FairBoostingClassifier(kappa, n_estimators=100, learning_rate=0.2, cv=2)
    model.fit(X[:700], y[:700], sensitive_features=groups[:700])
    most = kappa + model.granularity_["demographic_parity"]
    records = [record for record in model.history_ if record["n_iter"] and record["demographic_parity"] <= most]
    assert model.constraint_values_["demographic_parity"] <= most
    assert model.objective_ < min(record["objective"] for record in records) - 0.015
    assert (model.multipliers_ is not None) == keeps_the_trees
    assert log_loss(y[700:], model.predict_proba(X[700:])) < (0.44 if keeps_the_trees else 0.415)


def worst_loss(model, rows):
    X, y, groups = rows
    return group_rates(y, model.decision_function(X), sensitive_features=groups, rate="log_loss", rule="ceiling")


def test_the_worst_loss_falls_from_none_to_a_bound_to_minimax(rows, free):
    least = fitted(rows, "minimax", constraint="bounded_group_loss", n_estimators=150)
    kappa = (worst_loss(least, rows) + worst_loss(free, rows)) / 2
    bounded = fitted(rows, kappa, constraint="bounded_group_loss", n_estimators=150)
    for model in (least, bounded):
        assert model.status_ == "completed"
        assert model.constraint_values_ == {"bounded_group_loss": pytest.approx(worst_loss(model, rows))}
    assert worst_loss(least, rows) < 0.95 * worst_loss(free, rows)
    assert worst_loss(bounded, rows) <= kappa
    assert least.objective_ == pytest.approx(worst_loss(least, rows))
    assert np.isnan(least.prices_["bounded_group_loss"])


def test_the_worst_error_of_a_regressor(rows):
    X, _, groups = rows
    y = 100 * (X[:, 0] ** 2 + np.random.default_rng(0).normal(size=len(X)) * (1 + 2 * (groups == 1)))

    def worst(kappa):
        model = FairBoostingRegressor(kappa, constraint="bounded_group_loss", random_state=0, **SMALL)
        errors = (model.fit(X, y, sensitive_features=groups).predict(X) - y) ** 2 / 2
        largest = max(errors[groups == group].mean() for group in np.unique(groups))
        assert model.constraint_values_ == {"bounded_group_loss": pytest.approx(largest)}
        return largest

    assert worst("minimax") < 0.95 * worst(None)


@pytest.mark.slow
def test_bounds_that_learning_alone_keeps_are_kept():
    """With few rows, the weights that a bound gives to groups hinder learning, by which alone it is kept."""
    X, y = load_diabetes(return_X_y=True)
    groups = np.where(X[:, 1] > 0, "m", "f")

    def fit(kappa):
        model = FairBoostingRegressor(kappa, constraint="bounded_group_loss", n_estimators=30, cv=5, random_state=0)
        return model.fit(X, y, sensitive_features=groups)

    free, least = (fit(kappa).constraint_values_["bounded_group_loss"] for kappa in (None, "minimax"))
    assert least < 0.99 * free
    for kappa in (least + 1, (least + free) / 2, free + 1):
        model = fit(kappa)
        assert model.status_ == "completed"
        assert model.constraint_values_["bounded_group_loss"] <= kappa
        assert model.n_iter_ == 30
    with pytest.warns(
        ConvergenceWarning, match=r"bounded_group_loss is \d+ on the training rows scored out of fold and"
    ):
        assert fit(0.5 * free).status_ == "infeasible"


@pytest.mark.parametrize("share", [0.999, 0.9])
def test_below_the_least_loss_that_is_reached_the_result_is_as_near_as_that(share):
    rng = np.random.default_rng(1)
    X, groups = rng.normal(size=(300, 4)), rng.integers(0, 3, 300)
    y = X[:, 0] * (1 + groups) + rng.normal(size=300) * (1 + 0.6 * groups)

    def fit(kappa):
        model = FairBoostingRegressor(kappa, constraint="bounded_group_loss", n_estimators=30, cv=3, random_state=0)
        return model.fit(X, y, sensitive_features=groups)

    least = fit("minimax").constraint_values_["bounded_group_loss"]
    with pytest.warns(ConvergenceWarning, match="bounded_group_loss"):
        model = fit(share * least)
    assert model.status_ == "infeasible"
    assert model.constraint_values_["bounded_group_loss"] <= least * (1 + 1e-9)
    assert model.violation_ == pytest.approx(model.constraint_values_["bounded_group_loss"] - share * least)


def test_minimax_takes_the_loss_of_the_objective(rows):
    with pytest.raises(ValueError, match=r"constraint must be 'bounded_group_loss'; got 'demographic_parity'"):
        fitted(rows, "minimax")
    with pytest.raises(ValueError, match=r"Set objective='logistic' or 'squared', without class_weight"):
        fitted(rows, "minimax", constraint="bounded_group_loss", objective="zero_one")


@pytest.mark.parametrize(("cv", "rates"), [(None, [0.1, 0.1, 0.1]), (3, [0.1, 0.2, 0.2])])
def test_parts_of_the_rows_have_fewer_trees_in_proportion(monkeypatch, cv, rates):
    """Where bounds are about scores out of fold, the steps are longer by as much."""
    grown = []

    def solve(solver, problem, *rest):
        grown.append((solver.n_trees, solver.learning_rate))
        return original(solver, problem, *rest)

    original = NewtonBoosting.solve
    monkeypatch.setattr(NewtonBoosting, "solve", solve)
    X, y, groups = make_biased_classification(400, random_state=0)
    options = {"n_estimators": 5, "new_row_folds": 2, "cv": cv, "random_state": 0}
    model = FairBoostingClassifier(kappa=0.5, **options)
    model.fit(X, y, sensitive_features=groups)
    assert grown[:3] == list(zip([5, 2, 2], rates, strict=True))


def test_the_scores_of_the_folds_are_forgotten_with_the_rows():
    X, y, groups = make_biased_classification(400, random_state=0)
    model = FairBoostingClassifier(kappa=0.2, n_estimators=5, new_row_folds=2)
    model.fit(X, y, sensitive_features=groups)
    assert len(model._fitted.of_folds) == 2
    expected = model.decision_function(X)
    model.forget_rows()
    assert model._fitted.of_folds == ()
    np.testing.assert_array_equal(model.decision_function(X), expected)
