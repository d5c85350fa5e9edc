"""Several constraints at once, by name."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairconstrained import ConvergenceWarning, FairnessWarning, PartialParityClassifier, PartialParityRegressor
from fairconstrained.constraints import (
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    LossParity,
    MinorityShare,
    ParityPair,
    RateGap,
    StatisticalParity,
)
from fairconstrained.metrics import (
    granularity,
    partial_equal_opportunity_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)
from fairconstrained.model_selection import make_performance_scorer


def constraints(top=0.15, tpr=0.1):
    return [
        ("top", StatisticalParity(top, interval=(0.0, 0.4))),
        ("tpr", EqualOpportunity(tpr)),
        ("order", GroupAUC(0.2)),
    ]


def check_all_hold(model, sample):
    X, y, groups = sample
    scores = model.decision_function(X, sensitive_features=groups)
    positives = y == 1
    gaps = {
        "top": partial_statistical_parity_gap(None, scores, sensitive_features=groups, interval=(0.0, 0.4)),
        "tpr": partial_equal_opportunity_gap(y, scores, sensitive_features=groups),
        "order": partial_group_auc_gap(y, scores, sensitive_features=groups),
    }
    one_row = {
        "top": granularity(groups, interval=(0.0, 0.4)),
        "tpr": granularity(groups[positives]),
        "order": granularity(groups),
    }
    assert model.status_ == "optimal"
    assert model.constraint_values_ == {name: pytest.approx(gap) for name, gap in gaps.items()}
    kappas = {name: constraint.kappa for name, constraint in model.constraint}
    assert all(gaps[name] <= kappas[name] + one_row[name] + 1e-9 for name in gaps)
    assert model.violation_ == pytest.approx(max(0.0, *(gaps[name] - kappas[name] for name in gaps)))


@pytest.mark.slow
@pytest.mark.parametrize("group_interactions", [False, True], ids=["shared", "by group"])
def test_all_hold_and_are_reported_by_name(classes, group_interactions):
    X, y, groups = classes
    model = PartialParityClassifier(constraint=constraints(), group_interactions=group_interactions)
    model.fit(X, y, sensitive_features=groups)
    check_all_hold(model, classes)
    assert model.multipliers_
    assert all(name.split("[")[0] in ("top", "tpr", "order") for name in model.multipliers_)
    assert {"top", "tpr", "order"} <= model.history_[-1].keys()
    assert model.score(X, y, sensitive_features=groups) > max(y.mean(), 1 - y.mean()) + 0.1


@pytest.mark.slow
def test_a_single_one_is_the_same_as_without_a_list(classes):
    X, y, groups = classes
    listed = PartialParityClassifier(
        kappa=0.9, constraint=[("rate", DemographicParity(0.1, interval=(0.0, 0.6)))]
    )  # the other parameters of constraints are for the single one only
    listed.fit(X, y, sensitive_features=groups)
    plain = PartialParityClassifier(0.1, constraint="demographic_parity", interval=(0.0, 0.6)).fit(
        X, y, sensitive_features=groups
    )
    np.testing.assert_array_equal(listed.coef_, plain.coef_)
    assert list(listed.constraint_values_.values()) == list(plain.constraint_values_.values())
    assert list(listed.constraint_values_) == ["rate"]


@pytest.mark.slow
def test_the_same_notion_twice(classes):
    X, y, groups = classes
    both = [
        ("top", StatisticalParity(0.15, interval=(0.0, 0.3))),
        ("bottom", StatisticalParity(0.25, interval=(0.6, 1.0))),
    ]
    model = PartialParityClassifier(constraint=both).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    for (name, constraint), bound in zip(both, (0.15, 0.25), strict=True):
        gap = partial_statistical_parity_gap(
            None, model.decision_function(X), sensitive_features=groups, interval=constraint.interval
        )
        assert model.constraint_values_[name] == pytest.approx(gap)
        assert gap <= bound + granularity(groups, interval=constraint.interval) + 1e-9


@pytest.mark.slow
def test_kappa_none_only_reports(classes):
    X, y, groups = classes
    model = PartialParityClassifier(constraint=[("rate", DemographicParity(0.1)), ("order", GroupAUC(None))])
    model.fit(X, y, sensitive_features=groups)
    gap = partial_group_auc_gap(y, model.decision_function(X), sensitive_features=groups)
    assert model.constraint_values_["order"] == pytest.approx(gap)
    free = PartialParityClassifier(constraint=[("rate", DemographicParity(None)), ("order", GroupAUC(None))])
    unconstrained = PartialParityClassifier(None).fit(X, y, sensitive_features=groups)
    np.testing.assert_array_equal(free.fit(X, y, sensitive_features=groups).coef_, unconstrained.coef_)
    assert (free.status_, free.violation_) == ("optimal", 0.0)
    free.fit(X, y)  # no fairness was asked for, so that one group is nothing to warn of


def test_one_group_is_said(classes):
    with pytest.warns(FairnessWarning, match="nothing to compare"):
        PartialParityClassifier(constraint=constraints()).fit(classes.X, classes.y)


def test_the_ones_that_do_not_hold_are_named(classes):
    X, y, groups = classes
    model = PartialParityClassifier(constraint=[("rate", DemographicParity(0.01)), ("loose", GroupAUC(0.5))])
    model.set_params(solver="penalized_subgradient", max_iter=1)  # which takes no multiple of its scores
    with pytest.warns(ConvergenceWarning, match=r"^rate is .* exceeds kappa=0\.01") as caught:
        model.fit(X, y, sensitive_features=groups)
    assert len(caught) == 1
    assert model.status_ == "infeasible"


def test_regressor_in_the_units_of_the_target(numbers):
    X, y, groups = numbers
    target = 1000 + 50 * y
    threshold = float(np.quantile(target, 0.6))
    model = PartialParityRegressor(
        constraint=[("high", DemographicParity(0.1, threshold=threshold)), ("top", StatisticalParity(0.3))]
    )
    model.fit(X, target, sensitive_features=groups)
    above = model.predict(X) > threshold
    gap = abs(above[groups == 0].mean() - above[groups == 1].mean())
    assert model.constraint_values_["high"] == pytest.approx(gap)
    assert gap <= 0.1 + granularity(groups) + 1e-9
    assert model.constraint[0][1].threshold == threshold  # what the user wrote stays


# --- parameters


def test_parameters_by_name():
    first, second = StatisticalParity(0.1), GroupAUC(0.2)
    model = PartialParityClassifier(constraint=[("top", first), ("order", second)])
    params = model.get_params()
    assert params["constraint__top"] is first
    assert params["constraint__order__kappa"] == 0.2
    assert params["constraint__top__interval"] == (0.0, 1.0)
    assert not any(name.startswith("constraint__") for name in model.get_params(deep=False))
    model.set_params(constraint__top__kappa=0.3, constraint__order=DemographicParity(0.4), constraint__order__kappa=0.5)
    assert first.kappa == 0.3
    assert isinstance(model.constraint[1][1], DemographicParity)
    assert model.constraint[1][1].kappa == 0.5
    model.set_params(constraint=[("new", GroupAUC())], constraint__new__kappa=0.1, alpha=0.5)
    assert (model.constraint[0][1].kappa, model.alpha) == (0.1, 0.5)


@pytest.mark.slow
def test_clone_is_independent_and_pickles(classes):
    X, y, groups = classes
    model = PartialParityClassifier(constraint=[("rate", DemographicParity(0.2)), ("order", GroupAUC(0.3))], tol=0.05)
    copy = clone(model).set_params(constraint__rate__kappa=0.9)
    assert model.constraint[0][1].kappa == 0.2
    assert copy.constraint[0][1].kappa == 0.9
    assert repr(model) == (
        "PartialParityClassifier(constraint=[('rate', DemographicParity(kappa=0.2)),\n"
        "                                    ('order', GroupAUC(kappa=0.3))],\n"
        "                        tol=0.05)"
    )
    model.fit(X, y, sensitive_features=groups)
    restored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(restored.predict(X), model.predict(X))
    assert restored.constraint_values_ == model.constraint_values_
    assert repr(restored) == repr(model)
    np.testing.assert_array_equal(clone(restored).fit(X, y, sensitive_features=groups).coef_, model.coef_)


@pytest.mark.slow
@pytest.mark.usefixtures("routing")
def test_a_grid_over_the_kappa_of_one_of_them(classes):
    X, y, groups = classes
    named = [("psp", StatisticalParity(0.5, interval=(0.0, 0.5))), ("rate", DemographicParity(0.3))]
    pipe = make_pipeline(StandardScaler(), PartialParityClassifier(constraint=named))
    kappa = "partialparityclassifier__constraint__psp__kappa"
    scoring = make_performance_scorer(accuracy_score)
    search = GridSearchCV(pipe, {kappa: [0.15, 0.6]}, scoring=scoring, cv=2, error_score="raise")
    search.fit(X, y, sensitive_features=groups)
    assert list(search.cv_results_["param_" + kappa]) == [0.15, 0.6]
    tight, loose = search.cv_results_["mean_test_score"]
    assert tight != loose
    best = search.best_estimator_[-1]
    assert best.constraint[0][1].kappa == search.best_params_[kappa]
    assert named[0][1].kappa == 0.5  # the user's own
    assert list(best.constraint_values_) == ["psp", "rate"]


# --- mistakes

ONE = DemographicParity(0.2)


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        ([("a", ONE), ("a", GroupAUC())], r"unique and without '__'; got \['a', 'a'\]"),
        ([("a__b", ONE)], "unique and without '__'"),
        ([ONE], r"list of \(name, constraint\) pairs, such as \[\('top', StatisticalParity"),
        ([("a", ONE, 1)], "pairs"),
        ([(1, ONE)], "pairs"),
        ([("a", "demographic_parity")], "pairs"),
        ([("a", DemographicParity)], "pairs"),
        ({"a": ONE}, "'constraint' parameter of PartialParityClassifier must be"),
        ({"ab": ONE}, "'constraint' parameter of PartialParityClassifier must be"),
        ("inter_group", r"constraint must be one of \['statistical_parity', .*got 'inter_group'"),
        ("parity", "got 'parity'"),
        ([("a", DemographicParity(-1.0))], "kappa must be in"),
        ([("a", EqualizedOdds(0.2, interval=(0.5, 0.2)))], "alpha < beta"),
    ],
)
def test_what_is_no_list_of_named_constraints(classes, listed, message):
    X, y, groups = classes
    model = PartialParityClassifier(constraint=listed)
    assert model.get_params()["constraint"] is listed
    repr(model)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"constraint__b__kappa": 0.1}, r"no constraint 'b'; the names are \['a'\]"),
        ({"constraint__b": ONE}, r"no constraint 'b'; the names are \['a'\]"),
        ({"constraint__a__width": 0.1}, "Invalid parameter 'width' for estimator DemographicParity"),
        ({"width": 0.1}, "Invalid parameter 'width' for estimator PartialParityClassifier"),
    ],
)
def test_parameters_that_are_not_there(params, message):
    model = PartialParityClassifier(constraint=[("a", DemographicParity(0.2))])
    with pytest.raises(ValueError, match=message):
        model.set_params(**params)
    assert model.constraint[0][1].kappa == 0.2


def test_there_are_no_names_without_a_list():
    with pytest.raises(ValueError, match="constraint='statistical_parity' is a name, which has no parameters"):
        PartialParityClassifier().set_params(constraint__a__kappa=0.1)


def test_a_constraint_of_its_own_is_the_named_one_with_these_parameters(classes):
    X, y, groups = classes
    own = PartialParityClassifier(0.9, constraint=DemographicParity(0.1, interval=(0.0, 0.6)))
    named = PartialParityClassifier(0.1, constraint="demographic_parity", interval=(0.0, 0.6))
    own, named = (model.fit(X, y, sensitive_features=groups) for model in (own, named))
    np.testing.assert_array_equal(own.coef_, named.coef_)
    assert own.constraint_values_ == named.constraint_values_
    assert own._bound_params(0.3) == {"constraint__kappa": 0.3}
    free = clone(own).set_params(constraint__kappa=None)
    assert (own.constraint.kappa, free.constraint.kappa) == (0.1, None)
    assert not free._asks_for_fairness()


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("demographic_parity_difference", "demographic_parity"),
        ("pSP", "statistical_parity"),
        ("pEOD", "equalized_odds"),
    ],
)
def test_other_names_of_the_metric_name_the_constraint(classes, alias, name):
    X, y, groups = classes
    one, other = (
        PartialParityClassifier(0.3, constraint=c).fit(X, y, sensitive_features=groups) for c in (alias, name)
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert set(one.constraint_values_) == {name}


@pytest.mark.parametrize("constraint", [RateGap(), LossParity(), MinorityShare(), ParityPair(), EqualOpportunity(0.2)])
def test_scores_of_a_classifier_are_no_predictions_of_a_regressor(numbers, constraint):
    """Which rows are positive would depend on the units of the target, and what is reported with it."""
    model = PartialParityRegressor(constraint=[("rates", constraint)])
    with pytest.raises(ValueError, match=f"{type(constraint).__name__} is about the scores of a classifier"):
        model.fit(numbers.X, numbers.y, sensitive_features=numbers.groups)
