"""The hint that a bound takes most of the accuracy or of the R², and what a fit tells while it goes on."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import d2_absolute_error_score, r2_score
from sklearn.preprocessing import StandardScaler
from torch import nn

from fairconstrained import (
    FairBoostingClassifier,
    FairBoostingRegressor,
    FairHeadClassifier,
    FairHeadRegressor,
    GroupLossClassifier,
    GroupLossRegressor,
    LossParityClassifier,
    PartialParityClassifier,
    PartialParityRegressor,
    RateParityClassifier,
    fairness_path,
)
from fairconstrained.estimators import _usefulness
from fairconstrained.exceptions import ConvergenceWarning, CostlyBoundWarning, FairnessWarning
from fairconstrained.reporting import fairness_report

pytestmark = pytest.mark.usefixtures("new_row_estimates")


def rows(n_samples=2000, shift=2.0):
    """Rows whose one informative feature tells the group as well, so that shared scores cannot use it."""
    rng = np.random.default_rng(0)
    group = rng.choice(["a", "b"], n_samples)
    x = rng.normal(size=n_samples) + shift * (group == "a")
    y = (x + 0.5 * rng.logistic(size=n_samples) > np.median(x)).astype(int)
    return np.stack([x, rng.normal(size=n_samples)], axis=1), y, group


X, Y, GROUPS = rows()
X = X - X.mean(axis=0)
SCORES_ALIKE = PartialParityClassifier(0.01, constraint="statistical_parity")


TARGET = X[:, 0] + 0.2 * X[:, 1]


def model(**options):
    return RateParityClassifier(**{"kappa": 0.01, **options})


def costly(model):
    with pytest.warns(CostlyBoundWarning, match="takes most of the accuracy"):
        return model.fit(X, Y, sensitive_features=GROUPS)


def test_no_model_without_the_bound_is_fitted_where_the_bound_has_no_price(monkeypatch):
    def unexpected(*arguments):
        raise AssertionError("the model without the bound is the fitted one")

    monkeypatch.setattr(_usefulness, "_unbound", unexpected)
    rng = np.random.default_rng(0)
    y = rng.choice(2, 600)  # of which the features tell nothing
    fitted = model(kappa=0.9).fit(rng.normal(size=(600, 10)), y, sensitive_features=rng.choice(2, 600))
    assert (fitted.status_, fitted.multipliers_, fitted.hints_) == ("optimal", {}, [])


def test_a_costly_bound_is_told_with_numbers_that_are_true():
    fitted = costly(model())
    (hint,) = fitted.hints_
    free = model(kappa=None).fit(X, Y, sensitive_features=GROUPS)
    majority = max(Y.mean(), 1 - Y.mean())
    assert f"is {free.score(X, Y):.3f} without the bound, {fitted.score(X, Y):.3f} with it" in hint
    assert f"and {majority:.3f} for always" in hint
    assert fitted.score(X, Y) - majority < 0.5 * (free.score(X, Y) - majority)


@pytest.mark.parametrize(
    ("loss", "measure", "name", "constant"),
    [
        ("squared", r2_score, "R²", "always predicting the mean"),
        ("absolute", d2_absolute_error_score, "D² of absolute errors", "always predicting the median"),
    ],
)
def test_a_costly_bound_of_a_regressor_is_told_with_its_own_score(loss, measure, name, constant):
    bounded = GroupLossRegressor(0.01, constraint="mean_score_parity", loss=loss)
    with pytest.warns(CostlyBoundWarning, match=f"takes most of the {name} above that of {constant}; hints_"):
        bounded.fit(X, TARGET, sensitive_features=GROUPS)
    free = clone(bounded).set_params(kappa=None).fit(X, TARGET, sensitive_features=GROUPS)
    before, after = (measure(TARGET, fitted.predict(X)) for fitted in (free, bounded))
    assert bounded.hints_ == [
        f"The {name} on the training rows is {before:.3f} without the bound, {after:.3f} with it, and 0.000 for "
        f"{constant}. Loosen kappa."
    ]
    assert before > 0.9
    assert after < 0.1


@pytest.mark.slow
def test_a_path_fits_the_model_without_a_bound_once_for_all_hints(monkeypatch):
    freed, of_fit = [], RateParityClassifier._freed
    monkeypatch.setattr(RateParityClassifier, "_freed", lambda *own: freed.append(1) or of_fit(*own))
    options = {"sensitive_features": GROUPS, "kappas": [0.02, 0.01]}
    hints = [each.hints_ for each in fairness_path(model(), X, Y, **options).models]
    assert len(freed) == 1
    assert hints == [costly(model(kappa=kappa)).hints_ for kappa in (0.02, 0.01)]


def test_losses_that_are_made_alike_may_leave_less_than_the_mean():
    of_b, noise = GROUPS == "b", np.random.default_rng(0).normal(size=Y.size)
    y = np.where(of_b, 1.2 * noise, X[:, 1] + 0.1 * noise)
    bounded = GroupLossRegressor(0.01, constraint="loss_parity")
    with pytest.warns(CostlyBoundWarning, match="takes most of the R²"):
        bounded.fit(X, y, sensitive_features=GROUPS)
    assert bounded.status_ == "optimal"
    assert bounded.score(X, y) < 0


def test_no_hint_where_no_prediction_of_the_features_is_better_than_the_mean():
    noise = np.random.default_rng(1).normal(size=Y.size)
    parity = PartialParityRegressor(0.05).fit(X, noise, sensitive_features=GROUPS)
    assert parity.status_ == "optimal"
    assert parity.hints_ == []


def test_what_the_hint_of_a_regressor_advises_costs_less():
    parity = PartialParityRegressor(0.05)
    with pytest.warns(CostlyBoundWarning, match="group_interactions=True often costs less"):
        shared = clone(parity).fit(X, TARGET, sensitive_features=GROUPS)
    other = clone(parity).set_params(group_interactions=True).fit(X, TARGET, sensitive_features=GROUPS)
    assert other.score(X, TARGET, sensitive_features=GROUPS) > shared.score(X, TARGET) + 0.3
    assert other.hints_ == []


def test_what_the_hint_advises_costs_less():
    fitted = costly(model())
    assert "group_interactions=True" in fitted.hints_[0]
    other = model(group_interactions=True).fit(X, Y, sensitive_features=GROUPS)
    assert other.score(X, Y, sensitive_features=GROUPS) > fitted.score(X, Y) + 0.1
    assert other.hints_ == []


@pytest.mark.parametrize("options", [{"kappa": None}, {"kappa": 0.7}, {"new_row_folds": None}])
def test_no_hint_where_there_is_no_bound_that_costs_much_or_no_other_fit_is_wanted(options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model(**options).fit(X, Y, sensitive_features=GROUPS).hints_ == []


def test_no_hint_where_no_model_of_the_features_is_better_than_the_more_frequent_class():
    noise = np.random.default_rng(1).normal(size=(2000, 2))
    y = np.random.default_rng(2).random(2000) < 0.3
    with pytest.warns(FairnessWarning, match="below the threshold"):
        fitted = model().fit(noise, y, sensitive_features=GROUPS)
    assert fitted.status_ == "optimal"
    assert fitted.hints_ == []


def test_no_hint_where_the_bound_is_not_kept():
    with pytest.warns(ConvergenceWarning, match="exceeds kappa"):
        fitted = PartialParityClassifier(0.01, constraint="statistical_parity", solver="idca", max_iter=1).fit(
            X, Y, sensitive_features=GROUPS
        )
    assert fitted.hints_ == []


def test_a_head_is_to_know_the_group():
    base = LogisticRegression()
    head = RateParityClassifier(kappa=0.01)
    told = costly(FairHeadClassifier(base, head, random_state=0, cv=2))
    assert "use_groups=True" in told.hints_[0]
    knows = FairHeadClassifier(base, head, use_groups=True, random_state=0, cv=2)
    assert knows.fit(X, Y, sensitive_features=GROUPS).hints_ == []


def test_a_head_on_a_regressor_is_to_know_the_group():
    told = FairHeadRegressor(LinearRegression(), PartialParityRegressor(0.07), random_state=0, cv=2)
    with pytest.warns(CostlyBoundWarning, match="takes most of the R².* use_groups=True often costs less"):
        told.fit(X, TARGET, sensitive_features=GROUPS)
    assert "without the bound" in told.hints_[0]
    knows = clone(told).set_params(use_groups=True).fit(X, TARGET, sensitive_features=GROUPS)
    assert knows.score(X, TARGET, sensitive_features=GROUPS) > told.score(X, TARGET) + 0.3
    assert knows.hints_ == []


@pytest.mark.filterwarnings("ignore::fairconstrained.exceptions.FairnessWarning")
def test_a_head_is_to_know_groups_that_overlap():
    rng = np.random.default_rng(0)
    of_both = rng.random((2000, 2)) < 0.5
    x = rng.normal(size=2000) + of_both @ [2.0, 1.5]
    y = (x + 0.5 * rng.logistic(size=2000) > np.median(x)).astype(int)
    given = {"sensitive_features": np.hstack([of_both, ~of_both])}
    told, knows = (
        FairHeadClassifier(LogisticRegression(), RateParityClassifier(0.05), use_groups=knows, cv=2, random_state=0)
        for knows in (False, True)
    )
    assert "use_groups=True often costs less" in told.fit(x[:, None], y, **given).hints_[0]
    assert knows.fit(x[:, None], y, **given).score(x[:, None], y, **given) > told.score(x[:, None], y) + 0.1
    assert knows.hints_ == []


@pytest.mark.parametrize(
    ("estimator", "groups", "freedom"),
    [
        (SCORES_ALIKE, GROUPS, "group_interactions=True"),
        (clone(SCORES_ALIKE).set_params(group_interactions=True), GROUPS, "hidden_layer_sizes"),
        (model(), np.stack([X[:, 0] > 0, X[:, 1] > 0.2, Y == 1], axis=1), "hidden_layer_sizes"),
    ],
    ids=["shared scores", "scores of every group", "groups that overlap"],
)
def test_what_a_bound_that_was_missed_advises_can_be_set(estimator, groups, freedom):
    estimator = clone(estimator).set_params(max_iter=1, solver="augmented_lagrangian", new_row_folds=None)
    with pytest.warns(ConvergenceWarning, match=rf"more freedom \({freedom}\), or raise max_iter"):
        estimator.fit(X, Y, sensitive_features=groups)


@pytest.mark.parametrize(
    ("network", "freedom"),
    [({"hidden_layer_sizes": (2,)}, "hidden_layer_sizes"), ({"module": nn.Linear}, "a larger module")],
    ids=["layers", "a module"],
)
def test_a_network_that_missed_its_bound_is_to_be_larger(network, freedom):
    bounded = GroupLossClassifier(0.01, **network, max_iter=2, new_row_folds=None)
    with pytest.warns(ConvergenceWarning, match=rf"more freedom \({freedom}\)"):
        bounded.fit(X, Y, sensitive_features=GROUPS)


@pytest.mark.filterwarnings("ignore:solver 'newton_boosting'. no iterate kept the bound")
def test_trees_are_to_have_a_column_of_the_group(capfd):
    near, y, group = rows(shift=1.0)
    trees = FairBoostingClassifier(0.05, n_estimators=60, num_leaves=8, cv=2)
    with pytest.warns(CostlyBoundWarning, match="adding one often costs less"):
        (hint,) = clone(trees).fit(near, y, sensitive_features=group).hints_
    alone = clone(trees).set_params(kappa=None, verbose=1).fit(near, y, sensitive_features=group)
    _, accuracy = capfd.readouterr().out.split("accuracy: ")
    # both numbers are those of rows that the trees have not seen
    assert f"on the training rows scored out of fold is {float(accuracy.split()[0]):.3f} without the bound" in hint
    assert alone.hints_ == []
    with_group = np.column_stack([near, group == "a"])
    other = clone(trees).fit(with_group, y, sensitive_features=group)
    assert other.score(with_group, y) > 0.7
    assert other.hints_ == []


@pytest.mark.filterwarnings("ignore:solver 'newton_boosting'. no iterate kept the bound")
def test_trees_of_a_regressor_are_to_have_a_column_of_the_group():
    pytest.importorskip("lightgbm")
    trees = FairBoostingRegressor(0.1, n_estimators=40, num_leaves=8, cv=2)
    with pytest.warns(CostlyBoundWarning, match="takes most of the R².* adding one often costs less"):
        (hint,) = trees.fit(X, TARGET, sensitive_features=GROUPS).hints_
    assert "The R² on the training rows scored out of fold is 0." in hint


def test_the_penalty_of_a_network_may_take_most_of_the_accuracy():
    rng = np.random.default_rng(4)
    groups = rng.integers(0, 3, 1500)
    normal = rng.normal(size=(1500, 6)) + 0.4 * groups[:, None]
    y = (normal @ [1, -0.5, 0.7, 0, 0.3, 0] + rng.logistic(size=1500) > 0.8).astype(int)
    skewed = StandardScaler().fit_transform(np.exp(2 * normal))
    network = LossParityClassifier(0.05, hidden_layer_sizes=(8,), random_state=0)
    with pytest.warns(CostlyBoundWarning, match="a smaller alpha often costs less"):
        network.fit(skewed, y, sensitive_features=groups)
    other = clone(network).set_params(alpha=0.005).fit(skewed, y, sensitive_features=groups)
    assert other.score(skewed, y) > network.score(skewed, y) + 0.03
    assert other.new_row_gaps_["loss_parity"].estimate <= 0.05
    assert other.hints_ == []


def test_the_report_says_it():
    fitted = costly(model())
    report = fairness_report(Y, fitted.decision_function(X), sensitive_features=GROUPS, model=fitted, n_resamples=0)
    assert report.hints == fitted.hints_
    assert "for always predicting the more frequent class" in report.to_html()


def test_a_path_shows_the_cost_in_its_table_and_does_not_warn():
    path = fairness_path(RateParityClassifier(), X, Y, sensitive_features=GROUPS, kappas=[None, 0.01])
    assert path.models[1].hints_
    free, bound = path.table["train_accuracy"]
    assert bound < free - 0.1


def test_the_words_of_a_fit(capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")  # a bar is as wide as the terminal
    fitted = costly(model(verbose=1))
    out, err = capfd.readouterr()
    value, gap = fitted.constraint_values_["demographic_parity"], fitted.new_row_gaps_["demographic_parity"]
    assert "(kappa 0.01)" in err
    assert "estimate for new rows" in err
    assert out.splitlines()[1:] == [
        f"  demographic_parity: {value:.4g} on the training rows, about {gap.estimate:.3g} on new rows (standard error "
        f"{gap.standard_error:.2g}); kappa is 0.01",
        f"  accuracy: {fitted.score(X, Y):.4f} on the training rows; always predicting the more frequent class has "
        f"{max(Y.mean(), 1 - Y.mean()):.4f}",
    ]


def test_the_words_of_a_head_and_of_its_folds(capfd):
    costly(FairHeadClassifier(LogisticRegression(), RateParityClassifier(kappa=0.01), cv=2, random_state=0, verbose=1))
    out, err = capfd.readouterr()
    assert "models of the folds" in err
    assert "demographic_parity" in err
    assert out.startswith("RateParityClassifier: optimal")
