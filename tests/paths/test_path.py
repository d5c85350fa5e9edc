"""The models of a path: each as good as a fit of its own, for every estimator."""

import pickle
import warnings
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from fairconstrained import (
    AUCFairClassifier,
    ConvergenceWarning,
    CorrelationPenaltyClassifier,
    FairBoostingClassifier,
    FairnessWarning,
    FairRanker,
    GroupLossClassifier,
    LossParityClassifier,
    MinorityRateClassifier,
    NeymanPearsonClassifier,
    PairwiseParityClassifier,
    PartialParityClassifier,
    PartialParityClassifierCV,
    PartialParityRegressor,
    RateParityClassifier,
    RegularizedParityClassifier,
    fairness_path,
)
from fairconstrained.constraints import DemographicParity, EqualOpportunity
from fairconstrained.datasets import make_biased_classification
from fairconstrained.estimators._new_row_estimates import NewRowEstimates


def path_of(estimator, sample, **options):
    return fairness_path(estimator, sample.X, sample.y, sensitive_features=sample.groups, **options)


def rates(**options):
    return PartialParityClassifier(**{"constraint": "demographic_parity", **options})


# --- the models


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_every_model_is_as_good_as_a_cold_fit(classes):
    path = path_of(RateParityClassifier(rate="sigmoid"), classes, kappas=[None, 0.15, 0.05])
    for model, row in zip(path.models, path.table.itertuples(), strict=True):
        cold = clone(model).fit(classes.X, classes.y, sensitive_features=classes.groups)
        assert row.status == cold.status_ == "optimal"
        assert row.objective == pytest.approx(cold.objective_, rel=1e-3)
        assert row.gap == pytest.approx(cold.constraint_values_["demographic_parity"], abs=1e-4)
        assert row.gap <= row.kappa + 1e-6


@pytest.mark.slow
def test_the_fits_are_those_of_one_estimator_with_warm_starts(classes):
    kappas = [None, 0.2, 0.1]
    path = path_of(rates(), classes, kappas=kappas)
    by_hand = rates(warm_start=True)
    for model, kappa in zip(path.models, kappas, strict=True):
        by_hand.set_params(kappa=kappa).fit(classes.X, classes.y, sensitive_features=classes.groups)
        np.testing.assert_array_equal(model.coef_, by_hand.coef_)
        assert (model.objective_, model.n_evaluations_) == (by_hand.objective_, by_hand.n_evaluations_)


@pytest.mark.slow
def test_models_have_the_users_parameters_besides_the_bound(classes):
    estimator = RateParityClassifier(alpha=0.01, max_iter=60)
    before = estimator.get_params()
    path = path_of(estimator, classes, kappas=[None, 0.2, 0.1])
    assert [model.kappa for model in path.models] == [None, 0.2, 0.1]
    for model in path.models:
        assert model.get_params() == {**before, "kappa": model.kappa}
    assert estimator.get_params() == before
    assert not hasattr(estimator, "status_")
    again = path_of(RateParityClassifier(warm_start=True), classes, kappas=[0.2, 0.1])
    assert all(model.warm_start for model in again.models)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"hidden_layer_sizes": (2,), "activation": "tanh", "random_state": 0}], ids=str
)
def test_later_fits_leave_earlier_models_alone(classes, options):
    estimator = RateParityClassifier(solver="augmented_lagrangian", **options)
    short, long = (path_of(estimator, classes, kappas=kappas) for kappas in ([0.2], [0.2, 0.1]))
    np.testing.assert_array_equal(
        short.models[0].decision_function(classes.X), long.models[0].decision_function(classes.X)
    )
    assert not np.array_equal(long.models[0].predict(classes.X), long.models[1].predict(classes.X))
    assert long.table["gap"].is_monotonic_decreasing


@pytest.mark.slow
def test_without_warm_starts_models_are_cold_fits(classes):
    path = path_of(rates(), classes, kappas=[0.2, 0.15], warm_start=False)
    cold = rates(kappa=0.15).fit(classes.X, classes.y, sensitive_features=classes.groups)
    np.testing.assert_array_equal(path.models[1].coef_, cold.coef_)
    warm = path_of(rates(), classes, kappas=[0.2, 0.15])
    assert warm.table["n_evaluations"][1] < path.table["n_evaluations"][1]


def test_the_epochs_of_a_network_begin_anew(classes):
    """A solver that goes on from its state would find all its epochs done."""
    estimator = LossParityClassifier(hidden_layer_sizes=(3,), max_epochs=4, random_state=0)
    path = path_of(estimator, classes, kappas=[0.05, 0.02])
    assert [model.n_iter_ for model in path.models] == [4, 4]


#: Estimators, and a bound for each that moves the optimum.
IDLE = {
    "rates": (rates(), 0.1),
    "ranks": (PartialParityClassifier(), 0.1),
    "AUC": (AUCFairClassifier(constraint="group_auc"), 0.1),
    "smooth rates": (RateParityClassifier(rate="sigmoid"), 0.1),
}


@pytest.mark.parametrize(("estimator", "tight"), IDLE.values(), ids=IDLE)
@pytest.mark.parametrize("folds", [None, 2])
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_bounds_that_move_nothing_are_not_solved_again(classes, estimator, tight, folds):
    estimator = clone(estimator).set_params(new_row_folds=folds)
    path = path_of(estimator, classes, kappas=[0.5, 0.49, 0.48, tight])
    assert (path.table["n_evaluations"] > 0).tolist() == [True, False, False, True]
    cold = clone(estimator).set_params(kappa=0.48).fit(classes.X, classes.y, sensitive_features=classes.groups)
    model = path.models[2]
    for name in ("kappa", "status_", "solver_", "constraint_values_", "granularity_", "multipliers_", "violation_"):
        assert getattr(model, name) == getattr(cold, name), name
    assert model.new_row_gaps_.keys() == cold.new_row_gaps_.keys()
    np.testing.assert_allclose(model.coef_, cold.coef_, rtol=1e-3, atol=1e-3)
    again = path_of(estimator, classes, kappas=[0.5, 0.49], warm_start=False)
    assert all(again.table["n_evaluations"] > 0)


def test_bounds_that_an_estimate_for_new_rows_misses_are_solved_again(classes):
    """The optimum without a bound has a gap of 0.233 on these rows, and an estimate of 0.238."""
    for kappa, is_free in [(0.239, True), (0.235, False)]:
        path = path_of(rates(new_row_folds=2), classes, kappas=[0.9, kappa])
        assert (path.table["n_evaluations"][1] == 0) == is_free
        assert path.table["gap"].round(3).tolist() == [0.233, 0.233]


def test_what_decides_is_the_estimate_that_is_reported(classes, monkeypatch):
    """It is that of the model of all rows, and may be larger than that of the models without a fold."""
    about = NewRowEstimates.about

    def larger(self, *arguments):
        found = about(self, *arguments)
        return replace(found, gaps={name: gap._replace(estimate=0.6) for name, gap in found.gaps.items()})

    monkeypatch.setattr(NewRowEstimates, "about", larger)
    path = path_of(rates(new_row_folds=2), classes, kappas=[0.9, 0.8, 0.5])
    assert (path.table["n_evaluations"] > 0).tolist() == [True, False, True]


@pytest.mark.parametrize("folds", [None, 5])
def test_bounds_on_rows_not_seen_are_solved_again_without_an_estimate(folds):
    X, y, groups = make_biased_classification(400, 12, random_state=0)
    estimator = rates(solver="cross_fitted", new_row_folds=folds)
    path = fairness_path(estimator, X, y, sensitive_features=groups, kappas=[0.95, 0.9])
    assert (path.table["n_evaluations"][1] > 0) == (folds is None)


# --- every estimator

QUERIES = np.repeat(np.arange(40), 10)
ESTIMATORS = {
    "partial": (PartialParityClassifier(constraint="demographic_parity"), "classes", 0.15),
    "by group": (RateParityClassifier(group_interactions=True), "classes", 0.15),
    "regression": (PartialParityRegressor(constraint="demographic_parity", threshold=-0.3), "numbers", 0.03),
    "auc": (AUCFairClassifier(constraint="group_auc"), "classes", 0.15),
    "rates": (RateParityClassifier(rate="indicator"), "classes", 0.15),
    "losses": (LossParityClassifier(hidden_layer_sizes=(3,), max_epochs=4, random_state=0), "classes", 0.02),
    "group losses": (GroupLossClassifier(), "classes", 0.6),
    "minority": (MinorityRateClassifier(rate="indicator", minority=1), "classes", 0.75),
    "ranking": (FairRanker(rate="sigmoid"), "classes", 0.04),
}


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "data", "kappa"), ESTIMATORS.values(), ids=ESTIMATORS.keys())
def test_every_estimator_keeps_its_bounds(request, estimator, data, kappa):
    sample, extra = request.getfixturevalue(data), {"qid": QUERIES} if isinstance(estimator, FairRanker) else {}
    cv = None if isinstance(estimator, AUCFairClassifier) else 2  # its fits take longest
    path = path_of(estimator, sample, kappas=[None, kappa], cv=cv, fit_params=extra)
    assert set(path.table["status"]) <= {"optimal", "completed"}
    for model, row in zip(path.models, path.table.itertuples(), strict=True):
        assert row.gap <= row.kappa + max(model.granularity_.values()) + 1e-12
        measured = model.constraint_values(sample.X, sample.y, sensitive_features=sample.groups, **extra)
        assert row.gap == pytest.approx(max(measured.values()), abs=1e-9)
    assert path.table["objective"].is_monotonic_increasing
    if path.table["objective"].nunique() == 2:  # else the tighter model was the better one without a bound too
        assert path.table["gap"][0] > kappa + max(path.models[0].granularity_.values())
    held_out = path.table.filter(like="_test_")
    assert held_out.shape == (2, 4 if cv else 0)
    assert np.isfinite(held_out.to_numpy()).all()


@pytest.mark.slow
def test_errors_of_classes_are_bounded_without_groups(classes):
    estimator = NeymanPearsonClassifier({0: 0.1}, constraint="error")
    path = fairness_path(estimator, classes.X, classes.y, sensitive_features=None, kappas=[None, 0.08, 0.04], cv=2)
    negatives = classes.y == 0
    errors = [np.mean(model.predict(classes.X)[negatives] != 0) for model in path.models]
    np.testing.assert_allclose(path.table["gap"], errors)  # of the first model, too, which bounds nothing
    assert errors[0] > 0.08
    assert (np.array(errors[1:]) <= np.array([0.08, 0.04]) + 1 / negatives.sum()).all()
    assert [model.bounds for model in path.models] == [None, {0: 0.08}, {0: 0.04}]
    assert path.gaps == ("error[0]",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "score"),
    [(RegularizedParityClassifier(max_iter=50), "accuracy"), (CorrelationPenaltyClassifier(), "roc_auc")],
    ids=["gaps", "correlation"],
)
def test_weights_of_a_penalty(classes, estimator, score):
    path = path_of(estimator, classes, kappas=[0.0, 1.0], param="weight", warm_start=False)
    assert path.kappas.tolist() == [0.0, 1.0]
    cold = clone(estimator).set_params(weight=1.0).fit(classes.X, classes.y, sensitive_features=classes.groups)
    assert path.table["gap"][1] == max(cold.constraint_values_.values())
    assert path.scores == (score,)
    assert path.table["gap"].is_monotonic_decreasing
    with pytest.raises(ValueError, match=r"has a weight in place of a bound.*param='weight'"):
        path_of(estimator, classes)


@pytest.mark.slow
def test_where_kappa_bounds_a_surrogate_it_has_to_be_given(classes):
    estimator = PairwiseParityClassifier(solver="augmented_lagrangian")
    with pytest.raises(ValueError, match="kappas must be given: kappa of PairwiseParityClassifier bounds a surrogate"):
        path_of(estimator, classes)
    path = path_of(estimator, classes, kappas=[0.3, 1.0])
    assert path.kappas.tolist() == [1.0, 0.3]
    assert path.table["gap"].is_monotonic_decreasing


def test_where_the_unconstrained_gap_does_not_exist_kappas_have_to_be_given():
    X, y, groups = make_biased_classification(800, random_state=1)
    top = rates(constraint="equalized_odds", interval=(0, 0.05), ranks="group", new_row_folds=None)
    with pytest.raises(ValueError, match=r"kappas must be given: the gap .*does not exist"):
        fairness_path(top, X, y, sensitive_features=groups)


@pytest.mark.slow
def test_one_of_several_constraints(classes):
    constraints = [("tpr", EqualOpportunity(0.5)), ("rate", DemographicParity(0.2))]
    estimator = PartialParityClassifier(constraint=constraints)
    path = path_of(estimator, classes, kappas=[0.3, 0.15], param="constraint__tpr__kappa")
    assert [dict(model.constraint)["tpr"].kappa for model in path.models] == [0.3, 0.15]
    assert [dict(model.constraint)["rate"].kappa for model in path.models] == [0.2, 0.2]
    assert constraints[0][1].kappa == 0.5  # the user's own constraint is not one of the path's
    assert path.gaps == ("tpr", "rate")
    each = path.table[["gap_tpr", "gap_rate"]]
    np.testing.assert_array_equal(path.table["gap"], each.max(axis=1))
    assert (each["gap_tpr"] <= path.kappas + path.models[0].granularity_["tpr"] + 1e-12).all()
    # what the other bound costs is not changed by this one
    assert path.table["price"].tolist() == [model.prices_["tpr"] for model in path.models]
    assert path.models[0].prices_["rate"] > 0
    both = path_of(estimator, classes, kappas=[0.3], cv=2)
    assert {"mean_test_gap_tpr", "std_test_gap_rate"} <= set(both.table)
    assert both.table["mean_test_gap"][0] >= both.table[["mean_test_gap_tpr", "mean_test_gap_rate"]].max(axis=None)
    assert [constraint.kappa for _, constraint in both.models[0].constraint] == [0.3, 0.3]
    with pytest.raises(ValueError, match="kappas must be given with param='constraint__tpr__kappa'"):
        path_of(estimator, classes, param="constraint__tpr__kappa")
    with pytest.raises(ValueError, match="no constraint 'bottom'"):
        path_of(estimator, classes, kappas=[0.1], param="constraint__bottom__kappa")


@pytest.mark.parametrize("scoring", ["accuracy", lambda model, X, y: model.score(X, y)], ids=["name", "function"])
def test_boosted_trees_are_judged_by_scores_of_rows_that_they_have_not_seen(scoring):
    """Trees memorise these labels, of which little can be learnt."""
    pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    y = (X[:, 0] + rng.normal(size=400) > 0).astype(int)
    weights = rng.integers(0, 3, 400).astype(float)
    model = FairBoostingClassifier(n_estimators=30, learning_rate=0.3, lgbm_params={"min_child_samples": 3})
    path = fairness_path(
        model, X, y, sensitive_features=groups, sample_weight=weights, kappas=[None, 0.3], scoring=scoring
    )
    assert path.models[0].score(X, y, sample_weight=weights) > 0.9
    assert (path.table.filter(regex="train_(accuracy|score)") < 0.75).all(axis=None)
    for model in path.models:
        columns = {"sensitive_features": groups, "sample_weight": weights}
        answering = model._answering_rows_of_fit(X, y, **columns)
        assert answering.constraint_values(X, y, **columns) == pytest.approx(model.constraint_values_)


# --- what goes wrong


def test_estimators_of_others_are_refused(classes):
    with pytest.raises(TypeError, match=r"one of fairconstrained, or a Pipeline.*LogisticRegression"):
        path_of(LogisticRegression(), classes)
    with pytest.raises(ValueError, match="PartialParityClassifierCV chooses its own kappa; take PartialParityClass"):
        path_of(PartialParityClassifierCV(), classes)


@pytest.mark.parametrize("name", ["n_kappas", "cv", "scoring", "verbose", "warm_start"])
def test_invalid_arguments_are_named(classes, name):
    with pytest.raises(ValueError, match=f"The '{name}' parameter of fairness_path must be"):
        path_of(rates(), classes, **{name: -1.5})
    with pytest.raises(ValueError, match="The 'alpha' parameter of PartialParityClassifier must be"):
        path_of(rates(alpha=-1.0), classes)


def test_a_single_group_is_said_whatever_the_bounds(classes):
    one = type(classes)(classes.X, classes.y, np.zeros(len(classes.y)))
    with pytest.warns(FairnessWarning, match="only one group, 0.0. The path has one model, the unconstrained one"):
        path_of(rates(), one)
    with pytest.warns(
        FairnessWarning, match="^PartialParityClassifier: There is nothing to compare: there is only one group"
    ) as caught:
        path_of(rates(), one, kappas=[0.2, 0.1])
    assert len(caught) == 1


def test_errors_say_for_which_bound_and_fold(classes):
    few = type(classes)(*(column[:100] for column in classes))
    with pytest.raises(ValueError, match=r"^PartialParityClassifier with kappa=0.01: .*at least 50 rows"):
        path_of(rates(), few, kappas=[0.2, 0.01])
    folds = [(np.arange(100, 200), np.arange(100)), (np.arange(390), np.arange(390, 400))]
    with pytest.raises(ValueError, match=r"^PartialParityClassifier with kappa=0.01, fold 1 of 2: .*at least 50 rows"):
        path_of(rates(), classes, kappas=[0.2, 0.01], cv=folds)
    X = classes.X.copy()
    X[3] = np.nan
    with pytest.raises(ValueError, match=r"^Input X contains NaN"):
        fairness_path(rates(), X, classes.y, sensitive_features=classes.groups)
    with pytest.raises(ValueError, match=r"missing values in 1 rows"):
        fairness_path(rates(), classes.X, classes.y, sensitive_features=[None, *classes.groups[1:]], cv=2)
    with pytest.raises(ValueError, match=r"399"):
        fairness_path(rates(), classes.X, classes.y, sensitive_features=classes.groups[1:], cv=2)


def test_one_warning_for_all_fits_that_missed_their_bound(classes):
    estimator = PartialParityClassifier(solver="switching_subgradient", max_iter=40)
    with pytest.warns(ConvergenceWarning) as caught:
        path = path_of(estimator, classes, kappas=[None, 0.05], cv=2)
    assert path.table["status"].tolist()[1:] == ["infeasible"]
    (summary,) = [str(warning.message) for warning in caught]
    assert "3 of 6 fits did not keep kappa (all rows: 0.05; fold 1 of 2: 0.05; fold 2 of 2: 0.05). The" in summary
    assert "The first message of PartialParityClassifier: statistical_parity is" in summary
    assert caught[0].filename == __file__  # it points at the user's line


class Telling(RateParityClassifier):
    """Warns of other things than its status, for some bounds."""

    said: ClassVar[dict] = {0.2: "stopped in iteration 3.", 0.1: "stopped in iteration 51.", 0.05: "diverged."}

    def fit(self, X, y, *, sensitive_features=None, sample_weight=None):
        super().fit(X, y, sensitive_features=sensitive_features, sample_weight=sample_weight)
        if self.kappa in self.said:
            warnings.warn(self.said[self.kappa], ConvergenceWarning, stacklevel=2)
        return self


def test_one_warning_says_which_fits_warned_of_what(classes):
    with pytest.warns(ConvergenceWarning) as caught:
        path_of(Telling(), classes, kappas=[None, 0.2, 0.1, 0.05])
    assert [str(warning.message) for warning in caught] == [
        "3 of 4 fits gave a warning (all rows: 0.2, 0.1, 0.05). "
        "The first message of Telling, in 2 of 4 fits (all rows: 0.2, 0.1): stopped in iteration 3. "
        "Another message, in 1 of 4 fits (all rows: 0.05): diverged."
    ]


class TellingMore(Telling):
    said: ClassVar[dict] = dict(zip([0.9, 0.8, 0.7, 0.6], ["slow", "far off!", "flat.", "odd"], strict=True))


@pytest.mark.parametrize(("n_kinds", "end"), [(3, "flat."), (4, "flat. 1 more kind is not shown.")])
def test_messages_end_with_a_stop_and_those_left_out_are_counted(classes, n_kinds, end):
    with pytest.warns(ConvergenceWarning) as caught:
        path_of(TellingMore(), classes, kappas=[None, *list(TellingMore.said)[:n_kinds]])
    (text,) = [str(warning.message) for warning in caught]
    assert ": slow. Another message" in text
    assert ": far off! Another message" in text
    assert text.endswith(end)


class TellingToo(Telling):
    said: ClassVar[dict] = {0.9: "slow."}


def test_another_warning_is_one_beside_a_missed_bound(classes):
    with pytest.warns(ConvergenceWarning) as caught:
        path_of(TellingToo(max_iter=1), classes, kappas=[0.9, 0.01])
    (text,) = [str(warning.message) for warning in caught]
    assert text.startswith(
        "1 of 2 fits ended before the objective settled (all rows: 0.01), and 1 of 2 fits gave another"
    )


def test_other_warnings_come_once(classes):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fairness_path(rates(), classes.X, classes.y, sensitive_features=None, kappas=[0.3, 0.2, 0.1], cv=2)
    assert [warning.category for warning in caught] == [FairnessWarning]
    assert "There is nothing to compare: sensitive_features was not given" in str(caught[0].message)


# --- what is in a path


def test_the_table(path):
    assert path.table.columns.tolist() == [
        "kappa",
        "objective",
        "gap",
        "status",
        "price",
        "multipliers",
        "n_evaluations",
        "seconds",
        "new_row_gap",
        "new_row_standard_error",
        "train_accuracy",
        "mean_test_gap",
        "std_test_gap",
        "mean_test_accuracy",
        "std_test_accuracy",
    ]
    assert path.table["objective"].is_monotonic_increasing
    for model, row in zip(path.models, path.table.itertuples(), strict=True):
        assert row.price == sum(model.prices_.values())
        assert row.multipliers == {name: value for name, value in model.multipliers_.items() if value != 0}
        assert row.n_evaluations == model.n_evaluations_
        assert row.seconds > 0
    assert path.table["multipliers"][0] == {}
    assert path.table["price"][2] > path.table["price"][0] == 0
    assert (path.scores, path.gaps, path.n_splits) == (("accuracy",), ("demographic_parity",), 3)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_the_price_is_the_slope_of_the_objective(classes):
    """Checked by finite differences of the least objective, for a smooth rate."""
    path = path_of(RateParityClassifier(rate="sigmoid", tol=1e-6), classes, kappas=[0.1, 0.099])
    slope = np.diff(path.table["objective"]).item() / 0.001
    assert path.table["price"].mean() == pytest.approx(slope, rel=0.02)


def test_a_path_prints_and_pickles(path, classes):
    text = repr(path)
    assert text.startswith("FairnessPath of 3 models, kappa inf to 0.02, 3 folds")
    assert "mean_test_gap" in text
    assert path._repr_html_().count("<tr") == 4
    copy = pickle.loads(pickle.dumps(path))
    pd.testing.assert_frame_equal(copy.table, path.table)
    np.testing.assert_array_equal(copy.models[2].predict(classes.X), path.models[2].predict(classes.X))
    with pytest.raises(AttributeError, match="cannot assign"):
        path.models = []


def test_progress_is_shown_on_request(classes, capfd):
    for verbose in (1, 0):
        path_of(RateParityClassifier(), classes, kappas=[None], cv=2, verbose=verbose)
        shown = capfd.readouterr().err
        words = ("all rows", "fold 2 of 2", "no bound: gap 0.", ", objective 0.")
        assert [word in shown for word in words] == [bool(verbose)] * 4


# --- forms of the data


@pytest.mark.slow
def test_forms_of_features_and_groups(classes):
    X = np.where(np.abs(classes.X) > 0.5, classes.X, 0.0)
    options = {"kappas": [0.15], "cv": 2}
    plain = fairness_path(RateParityClassifier(), X, classes.y, sensitive_features=classes.groups, **options)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(400)[::-1])
    names = pd.Series(np.where(classes.groups == 1, "yes", "no"), index=frame.index)
    groups = {"csr": classes.groups, "coo": classes.groups.tolist(), "frame": names}
    for (kind, given), table in zip(groups.items(), (sp.csr_array(X), sp.coo_array(X), frame), strict=True):
        other = fairness_path(RateParityClassifier(), table, classes.y, sensitive_features=given, **options)
        for column in ("gap", "mean_test_gap", "mean_test_accuracy"):
            assert other.table[column][0] == pytest.approx(plain.table[column][0], abs=1e-4), kind
    assert list(other.models[0].feature_names_in_) == ["a", "b", "c"]


@pytest.mark.slow
def test_several_columns_and_overlapping_groups(classes):
    columns = pd.DataFrame({"first": classes.groups, "second": np.where(np.arange(400) % 2, "odd", "even")})
    path = fairness_path(RateParityClassifier(), classes.X, classes.y, sensitive_features=columns, kappas=[0.1], cv=2)
    assert len(path.models[0].groups_) == 4
    table = columns.assign(second=columns["second"] == "odd", first=columns["first"] == 1)
    path = fairness_path(RateParityClassifier(), classes.X, classes.y, sensitive_features=table, kappas=[0.1], cv=2)
    assert list(path.models[0].groups_) == ["first", "second"]
    rate = path.models[0].decision_function(classes.X) > 0
    gap = abs(rate[table["first"]].mean() - rate[table["second"]].mean())
    assert path.table["gap"][0] == pytest.approx(gap)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::fairconstrained.FairnessWarning")
def test_weights_count_in_fits_and_measurements(classes):
    """Rows with weight two are rows that come twice, in the fits and in what is measured."""
    weights = 1.0 + (np.arange(400) % 2)
    twice = np.repeat(np.arange(400), weights.astype(int))
    options = {"kappas": [0.1]}
    weighted = path_of(RateParityClassifier(rate="sigmoid"), classes, sample_weight=weights, **options)
    repeated = path_of(
        RateParityClassifier(rate="sigmoid"), type(classes)(*(column[twice] for column in classes)), **options
    )
    for column in ("objective", "gap", "train_accuracy"):
        assert weighted.table[column][0] == pytest.approx(repeated.table[column][0], abs=1e-3)
    plain = path_of(RateParityClassifier(rate="sigmoid"), classes, **options)
    assert weighted.table["train_accuracy"][0] != plain.table["train_accuracy"][0]
