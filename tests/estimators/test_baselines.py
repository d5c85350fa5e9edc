"""The paper's baselines as estimators: what they promise, and what they only report."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from fairconstrained import (
    ConvergenceWarning,
    FairnessWarning,
    PairwiseParityClassifier,
    PartialParityClassifier,
    RegularizedParityClassifier,
)
from fairconstrained.metrics import (
    inter_group_auc_gap,
    intra_group_auc_gap,
    partial_demographic_parity_gap,
    partial_group_auc_gap,
    partial_statistical_parity_gap,
)
from fairconstrained.solvers import PenalizedSubgradient

AUC_GAPS = {
    "group_auc": partial_group_auc_gap,
    "inter_group": inter_group_auc_gap,
    "intra_group": intra_group_auc_gap,
}
PARITY_GAPS = {
    "statistical_parity": partial_statistical_parity_gap,
    "demographic_parity": partial_demographic_parity_gap,
}


def surrogate(notion, scores, y, groups):
    """The largest of eqs. 102, 105 and 107 at kappa = 0, by all pairs of rows."""
    cells = {(g, label): scores[(groups == g) & (y == label)] for g in (0, 1) for label in (0, 1)}
    whole = {g: scores[groups == g] for g in (0, 1)}

    def sigma(first, second):
        return ((1 + first[:, None] - second) ** 2 / 2).mean()

    formulas = {
        "group_auc": lambda k, h: sigma(whole[k], whole[h]) - 0.5,
        "inter_group": lambda k, h: sigma(cells[k, 1], cells[h, 0]) + sigma(cells[k, 0], cells[h, 1]) - 1,
        "intra_group": lambda k, h: sigma(cells[k, 1], cells[k, 0]) + sigma(cells[h, 0], cells[h, 1]) - 1,
    }
    return max(formulas[notion](0, 1), formulas[notion](1, 0))


@pytest.mark.parametrize("notion", sorted(AUC_GAPS))
@pytest.mark.parametrize("group_interactions", [False, True], ids=["shared", "by group"])
def test_pairwise_bounds_the_surrogate_and_reports_the_gap(classes, notion, group_interactions):
    X, y, groups = classes
    model = PairwiseParityClassifier(0.4, constraint=notion, group_interactions=group_interactions)
    model.fit(X, y, sensitive_features=groups)
    scores = model.decision_function(X, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert surrogate(notion, scores, y, groups) == pytest.approx(0.4, abs=1e-5)  # active
    gap = AUC_GAPS[notion](y, scores, sensitive_features=groups)
    assert model.constraint_values_ == {notion: pytest.approx(gap)}
    assert model.violation_ <= 1e-6
    free = clone(model).set_params(kappa=None).fit(X, y, sensitive_features=groups)
    assert surrogate(notion, free.decision_function(X, sensitive_features=groups), y, groups) > 0.5
    assert free.objective_ < model.objective_
    assert free.status_ == "optimal"


@pytest.mark.slow
def test_another_solver_keeps_the_same_bound(classes):
    X, y, groups = classes
    model = PairwiseParityClassifier(0.4, solver="augmented_lagrangian").fit(X, y, sensitive_features=groups)
    default = PairwiseParityClassifier(0.4).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert model.objective_ == pytest.approx(default.objective_, rel=2e-3)
    assert surrogate("group_auc", model.decision_function(X), y, groups) <= 0.4 + 1e-5


def test_a_violated_surrogate_is_never_silent(classes):
    X, y, groups = classes
    model = PairwiseParityClassifier(0.1, solver="penalized_subgradient", solver_options={"weight": 0.0}, max_iter=20)
    with pytest.warns(ConvergenceWarning, match="the surrogate of group_auc is .* exceeds kappa=0.1 by more than"):
        model.fit(X, y, sensitive_features=groups)
    assert model.status_ == "infeasible"
    exceeds = surrogate("group_auc", model.decision_function(X), y, groups) - 0.1
    assert model.violation_ == pytest.approx(exceeds)


def test_pairwise_not_settled_is_said(classes):
    X, y, groups = classes
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter"):
        PairwiseParityClassifier(0.4, max_iter=2).fit(X, y, sensitive_features=groups)


@pytest.mark.slow
def test_a_weight_asks_for_no_number_of_rows(classes):
    few = type(classes)(*(column[:40] for column in classes))
    model = RegularizedParityClassifier(0.1, max_iter=100).fit(few.X, few.y, sensitive_features=few.groups)
    gap = partial_statistical_parity_gap(None, model.decision_function(few.X), sensitive_features=few.groups)
    assert model.constraint_values_ == {"statistical_parity": pytest.approx(gap)}


@pytest.mark.slow
@pytest.mark.parametrize("parity", sorted(PARITY_GAPS))
@pytest.mark.parametrize("group_interactions", [False, True], ids=["shared", "by group"])
def test_a_larger_weight_leaves_a_smaller_gap(classes, parity, group_interactions):
    X, y, groups = classes
    model = RegularizedParityClassifier(
        interval=(0.1, 0.6),
        constraint=parity,
        group_interactions=group_interactions,
        solver_options={"step": 0.05},
        max_iter=120,
    )
    gaps, losses = [], []
    for weight in (0.0, 0.1, 1.0):
        fitted = clone(model).set_params(weight=weight).fit(X, y, sensitive_features=groups)
        scores = fitted.decision_function(X, sensitive_features=groups)
        gap = PARITY_GAPS[parity](None, scores, sensitive_features=groups, interval=(0.1, 0.6))
        assert fitted.constraint_values_ == {parity: pytest.approx(gap)}
        assert (fitted.status_, fitted.violation_) == ("completed", 0.0)  # nothing is promised
        gaps.append(gap)
        losses.append(fitted.objective_)
    assert gaps[0] > gaps[1] > gaps[2]
    assert losses[0] < losses[1] < losses[2]


def test_weight_zero_is_the_unconstrained_fit(classes):
    X, y, groups = classes
    model = RegularizedParityClassifier(0.0, solver_options={"step": 1.0}, max_iter=500)
    model.fit(X, y, sensitive_features=groups)
    free = PartialParityClassifier(kappa=None).fit(X, y, sensitive_features=groups)
    np.testing.assert_allclose(model.coef_, free.coef_, atol=5e-3)


@pytest.mark.parametrize(
    ("model", "advice"),
    [
        (PairwiseParityClassifier(), "set kappa=None"),
        (RegularizedParityClassifier(0.1, max_iter=5), "set weight=0"),
    ],
)
def test_one_group_is_said(classes, model, advice):
    with pytest.warns(FairnessWarning, match=advice):
        model.fit(classes.X, classes.y)


def test_folds_are_fitted_with_the_steps_that_all_rows_have_chosen(classes, monkeypatch):
    """So a fold takes one run in place of one for every length."""
    X, y, groups = classes
    solve, steps = PenalizedSubgradient.solve, []

    def noted(self, *args):
        steps.append(self.step)
        return solve(self, *args)

    monkeypatch.setattr(PenalizedSubgradient, "solve", noted)
    model = RegularizedParityClassifier(0.1, max_iter=30, new_row_folds=3).fit(X, y, sensitive_features=groups)
    assert steps == [(0.005, 0.02, 0.05), 0.05, 0.05, 0.05]
    alone = clone(model).set_params(solver_options={"step": 0.05}).fit(X, y, sensitive_features=groups)
    assert model.new_row_gaps_ == alone.new_row_gaps_


@pytest.mark.parametrize("model", [PairwiseParityClassifier(None), RegularizedParityClassifier(0.0, max_iter=5)])
def test_no_fairness_asked_for_none_missed(classes, model):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(classes.X, classes.y)


@pytest.mark.parametrize(
    "model",
    [PairwiseParityClassifier(-0.1), PairwiseParityClassifier(constraint="xauc"), RegularizedParityClassifier(-1)],
)
def test_invalid_parameters(classes, model):
    with pytest.raises(ValueError, match=r"parameter of (Pairwise|Regularized)ParityClassifier must be"):
        model.fit(classes.X, classes.y, sensitive_features=classes.groups)
