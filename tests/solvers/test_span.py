"""Span: optima known by other means, the promise for every kind of constraint, and the problems that it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import expit

from fairconstrained import AUCFairClassifier, PartialParityClassifier, PartialParityRegressor
from fairconstrained.constraints import (
    AUCGap,
    DemographicParity,
    EqualizedOdds,
    EqualOpportunity,
    GroupAUC,
    LossParity,
    RateGap,
    StatisticalParity,
)
from fairconstrained.exceptions import IncompatibleProblem, StopTraining
from fairconstrained.metrics import independence_gap
from fairconstrained.objectives import Scaled, Squared
from fairconstrained.problem import Start
from fairconstrained.solvers import (
    AugmentedLagrangian,
    SequentialQuadratic,
    Span,
    Status,
    _directions,
    sequential_quadratic,
    span,
)
from fairconstrained.solvers._unconstrained import unconstrained
from tests.solvers.conftest import raise_floating_point_error, solve_by_kkt


def solved(problem, start=None, **options):
    return Span(**options).solve(problem, start, np.random.default_rng(0))


def drawn(n_samples, n_features, seed=0):
    """Rows whose label and group depend on a few features each."""
    rng = np.random.default_rng(seed)
    groups = rng.random(n_samples) < 0.35
    X = rng.normal(size=(n_samples, n_features))
    X[:, :2] += 0.8 * groups[:, None]
    y = rng.random(n_samples) < expit(1.5 * X[:, 0] + X[:, 2] - 0.7)
    return X, y.astype(int), groups.astype(int)


@pytest.fixture(scope="module")
def rows():
    return drawn(500, 15)


def fitted(rows, kappa=0.05, sample_weight=None, **params):
    X, y, groups = rows
    params = {"solver": "span", "random_state": 0, "constraint": "demographic_parity"} | params
    return PartialParityClassifier(kappa, **params).fit(X, y, sensitive_features=groups, sample_weight=sample_weight)


def test_least_squares_under_a_linear_bound_are_in_the_span_of_the_first_round(make_data, make_problem, mean_gap):
    data = make_data(counts=(60, 90), n_features=15, weighted=True, shift=0.8)
    known = solve_by_kkt(make_problem(data, mean_gap(data, 0.05), loss=Squared()), 0.05)
    result = solved(known.problem, max_rounds=1)
    assert result.objective == pytest.approx(known.objective, rel=1e-3)
    np.testing.assert_allclose(result.model_state, known.params, atol=5e-3)
    assert sum(result.multipliers.values()) == pytest.approx(known.multiplier, rel=0.05)


def test_log_losses_of_groups_come_near_to_the_optimum(unequal):
    result = solved(unequal.problem)
    assert result.objective == pytest.approx(unequal.objective, rel=2e-3)
    assert result.constraint_values["loss_parity"] <= 0.05 + 1e-9


@pytest.mark.parametrize(
    "notion", [DemographicParity, pytest.param(StatisticalParity, marks=pytest.mark.slow), EqualOpportunity]
)
def test_the_objective_is_near_that_of_all_coefficients(make_data, make_problem, notion):
    data = make_data(counts=(300, 400), n_features=20, shift=0.3)
    problem = make_problem(data, notion(0.1).unchecked(data), alpha=1e-3)
    result = solved(problem)
    every = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0))
    free = AugmentedLagrangian().solve(problem.without_constraints(), None, np.random.default_rng(0))
    assert not result.status.is_infeasible
    assert result.objective - free.objective <= 1.5 * (every.objective - free.objective) + 1e-3


@pytest.mark.parametrize("weighted", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "bound",
    [
        DemographicParity(0.05),
        StatisticalParity(0.1, interval=(0.2, 0.8)),
        EqualOpportunity(0.08),
        EqualizedOdds(0.08),
        GroupAUC(0.03),
        AUCGap(0.04),
        LossParity(0.03),
        RateGap(0.05),
    ],
    ids=lambda bound: type(bound).__name__,
)
def test_kappa_holds_on_the_training_rows(rows, bound, weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2, 500) if weighted else None
    model = fitted(rows, kappa=0.05, constraint=[("bound", bound)], sample_weight=weight)
    assert model.constraint_values_["bound"] <= bound.kappa + model.granularity_["bound"]
    assert not model.status_.startswith("infeasible")
    assert model.score(rows[0], rows[1]) > 0.7


def test_several_bounds_at_once(rows):
    both = [("odds", EqualizedOdds(0.1)), ("losses", LossParity(0.05))]
    model = fitted(rows, constraint=both)
    assert all(model.constraint_values_[name] <= bound.kappa + model.granularity_[name] for name, bound in both)


def test_a_bound_that_holds_anyway_leaves_the_unconstrained_model(rows):
    model, free = fitted(rows, kappa=0.9), fitted(rows, kappa=None, solver="augmented_lagrangian")
    np.testing.assert_allclose(model.coef_, free.coef_, atol=1e-6)
    assert model.multipliers_ == {}


@pytest.mark.slow
def test_bounds_hold_better_on_new_rows_than_those_of_all_coefficients():
    X, y, groups = drawn(10_000, 40, seed=9)
    gaps = {"span": 0.0, "augmented_lagrangian": 0.0}
    for solver in gaps:
        for seed in range(2):
            model = fitted(drawn(400, 40, seed), kappa=0.02, solver=solver)
            gaps[solver] += independence_gap(y, model.predict(X), sensitive_features=groups) / 2
    assert gaps["span"] < gaps["augmented_lagrangian"]


@pytest.mark.slow
def test_sparse_rows_are_as_dense_ones(rows):
    X, y, groups = rows
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    dense, sparse = fitted((X, y, groups)), fitted((sp.csr_array(X), y, groups))
    np.testing.assert_allclose(sparse.decision_function(X), dense.decision_function(X), atol=0.02)


@pytest.mark.slow
def test_units_of_the_features_do_not_matter_without_a_penalty():
    X, y, groups = drawn(500, 15)
    units = 10.0 ** np.linspace(-3, 3, X.shape[1])
    one, other = (fitted((features, y, groups), alpha=0.0) for features in (X, X * units))
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)
    np.testing.assert_allclose(other.coef_ * units, one.coef_, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_a_part_of_the_rows_is_enough_for_the_curvature(monkeypatch):
    """In the mean of three draws: one fit may end at another local optimum, which differs by 3 %."""
    ratios = []
    for seed in range(3):
        X, y, groups = drawn(500, 15, seed)
        rare = np.zeros((500, 1))
        rare[5] = 1.0  # perhaps in none of the rows that are drawn
        X = np.hstack([X, rare])
        every = fitted((X, y, groups))
        with monkeypatch.context() as patch:
            patch.setattr(_directions, "_WORK", 200 * 17**2)
            part = fitted((X, y, groups))
        assert part.constraint_values_["demographic_parity"] <= 0.05 + part.granularity_["demographic_parity"]
        ratios.append(part.objective_ / every.objective_)
    assert np.mean(ratios) == pytest.approx(1.0, rel=0.01)


def test_without_an_intercept_and_with_constant_features(rows):
    _, y, groups = rows
    model = fitted(rows, fit_intercept=False)
    assert model.intercept_ == 0
    assert model.constraint_values_["demographic_parity"] <= 0.05 + model.granularity_["demographic_parity"]
    constant = fitted((np.ones((500, 2)), y, groups))
    assert constant.constraint_values_ == {"demographic_parity": 0.0}


def test_regression(rows):
    X, _, groups = rows
    y = X[:, 0] + X[:, 2] + 0.3 * np.random.default_rng(2).normal(size=500)
    model = PartialParityRegressor(0.1, interval=(0.1, 0.5), solver="span", random_state=0)
    model.fit(X, y, sensitive_features=groups)
    assert model.constraint_values_["statistical_parity"] <= 0.1 + model.granularity_["statistical_parity"]
    assert model.score(X, y) > 0.5


def test_a_ranking_objective(rows):
    X, y, groups = rows
    model = AUCFairClassifier(0.03, objective="auc", solver="span", random_state=0)
    model.fit(X, y, sensitive_features=groups)
    assert max(model.constraint_values_.values()) <= 0.03 + max(model.granularity_.values())


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [500, 2500], ids=["steps", "augmented Lagrangian"])
def test_a_warm_start_goes_on_from_another_bound(n_samples):
    """In the mean of three draws, as either fit may end at another local optimum."""
    ratios = []
    for seed in range(3):
        X, y, groups = drawn(n_samples, 15, seed)
        cold = fitted((X, y, groups), 0.04)
        warm = fitted((X, y, groups), 0.08, warm_start=True)
        warm.set_params(kappa=0.04).fit(X, y, sensitive_features=groups)
        assert warm.n_evaluations_ < cold.n_evaluations_  # without those of the unconstrained model, for one thing
        assert warm.constraint_values_["demographic_parity"] <= 0.04 + warm.granularity_["demographic_parity"]
        ratios.append(warm.objective_ / cold.objective_)
    assert np.mean(ratios) <= 1.04


def change_results(monkeypatch, change):
    """Have both methods that work in a span return ``change(result, problem)``."""
    for method in (SequentialQuadratic, AugmentedLagrangian):

        def changed(self, problem, *args, solve=method.solve):
            return change(solve(self, problem, *args), problem)

        monkeypatch.setattr(method, "solve", changed)


def test_few_rows_are_counted_by_short_runs(rows):
    """Steps and a random search in place of outer iterations with some thirty evaluations each."""
    model = fitted(rows, new_row_folds=None)
    assert model.status_ == "optimal"
    assert model.n_evaluations_ < 60


def test_the_first_round_ends_where_the_next_one_begins(rows, monkeypatch):
    """That is at the widest surrogate, where rows are counted at levels: what is narrower would be done twice."""
    n_iter, n_evaluations = [], []

    def noted(result, given):
        n_iter.append(result.n_iter)
        n_evaluations.append(result.n_evaluations)
        return result

    change_results(monkeypatch, noted)
    model = fitted(rows, kappa=0.1, constraint=StatisticalParity(0.1), new_row_folds=None)
    assert model.status_ == "optimal"
    assert len(n_iter) == 2
    assert n_iter[0] == 1 < n_iter[1]
    assert n_evaluations[0] < n_evaluations[1]


def test_a_round_without_a_next_one_has_all_iterations(make_data, make_problem, monkeypatch):
    data = make_data(counts=(90, 120), n_features=12, shift=0.8)
    problem = make_problem(data, StatisticalParity(0.1).unchecked(data))
    n_iter = []

    def noted(result, given):
        n_iter.append(result.n_iter)
        return result

    change_results(monkeypatch, noted)
    assert solved(problem, max_rounds=1).status is Status.OPTIMAL
    assert n_iter[0] > 1


def test_a_random_search_follows_the_steps(rows, monkeypatch):
    searched = fitted(rows, new_row_folds=None)
    monkeypatch.setattr(span, "polished", lambda problem, params, others: params)
    assert searched.objective_ < fitted(rows, new_row_folds=None).objective_


def test_steps_that_keep_the_bounds_are_not_lost_where_outer_iterations_do_not(make_data, make_problem, monkeypatch):
    data = make_data(counts=(90, 120), n_features=12)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    statuses = iter([Status.MAX_ITER, Status.INFEASIBLE])
    change_results(monkeypatch, lambda result, given: replace(result, status=next(statuses)))
    result = solved(problem, max_rounds=1)
    assert result.status is Status.MAX_ITER
    assert problem.measured(problem.scores(result.model_state)).excess <= 0


def test_outer_iterations_follow_steps_that_have_diverged(make_data, make_problem, monkeypatch):
    data = make_data(counts=(90, 120), n_features=12)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    results = []

    def noted(result, given):
        results.append(result)
        return result

    monkeypatch.setattr(sequential_quadratic._Steps, "step", raise_floating_point_error)
    change_results(monkeypatch, noted)
    result = solved(problem, max_rounds=1)
    assert [each.has_diverged for each in results] == [True, False]
    assert (result.status, result.message) == (Status.OPTIMAL, "")
    assert problem.measured(problem.scores(result.model_state)).excess <= 0


def test_outer_iterations_follow_steps_that_do_not_settle(make_data, make_problem, monkeypatch):
    data = make_data(counts=(90, 120), n_features=12)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    results = []

    def wanders(result, given):
        results.append(replace(result, status=Status.MAX_ITER) if len(results) % 2 == 0 else result)
        return results[-1]

    change_results(monkeypatch, wanders)
    result = solved(problem, max_rounds=1)
    steps, iterations = results
    assert result.status is iterations.status is Status.OPTIMAL
    assert result.n_iter == steps.n_iter + iterations.n_iter
    assert len(result.history) == len(steps.history) + len(iterations.history)
    assert np.all(np.diff([record["n_evaluations"] for record in result.history]) >= 0)


def test_all_coefficients_are_chosen_where_no_span_keeps_the_bounds(make_data, make_problem, monkeypatch):
    data = make_data(counts=(90, 120), n_features=20)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    whole = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0))
    n_evaluations = []

    def fails_in_spans(result, given):
        n_evaluations.append(result.n_evaluations)
        return result if given is problem else replace(result, status=Status.INFEASIBLE)

    change_results(monkeypatch, fails_in_spans)
    seen = []
    result = Span().solve(problem, None, np.random.default_rng(0), seen.append)
    assert len(n_evaluations) == 5  # of two methods in each of two spans, and of one in the whole
    assert result.status is whole.status is Status.OPTIMAL
    assert result.objective == pytest.approx(whole.objective, rel=1e-3)
    assert problem.measured(problem.scores(result.model_state)).excess <= 0
    assert result.n_evaluations >= n_evaluations[-1]
    assert len(seen) == len(result.history)
    for name in ("n_iter", "n_evaluations", "seconds"):
        assert np.all(np.diff([record[name] for record in result.history]) >= 0), name


def test_a_fit_to_a_part_of_the_rows_stays_in_the_span(make_data, make_problem, monkeypatch):
    data = make_data(counts=(300, 400), n_features=20, shift=0.5)
    problem = make_problem(data, StatisticalParity(0.1).bind(data))
    solver, rng = Span(), np.random.default_rng(0)
    near = solver.start_of_parts(problem, solver.solve(problem, None, rng))
    part, sizes = problem.on(data.part(np.arange(0, 700, 2))), []

    def fails(result, given):
        sizes.append(given.n_params)
        return replace(result, status=Status.INFEASIBLE)

    change_results(monkeypatch, fails)
    assert solver.for_parts(part).solve(part, near, rng).status is Status.INFEASIBLE
    assert max(sizes) < part.n_params


def test_a_round_that_keeps_the_bounds_is_not_lost_where_later_ones_do_not(make_data, make_problem, monkeypatch):
    data = make_data(counts=(90, 120), n_features=12)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    first = solved(problem, max_rounds=1)
    n_runs = 0

    def fails_later(result, given):
        nonlocal n_runs
        n_runs += 1
        return result if n_runs == 1 else replace(result, status=Status.INFEASIBLE)

    change_results(monkeypatch, fails_later)
    result = solved(problem)
    assert n_runs > 1
    assert result.status is first.status is Status.OPTIMAL
    assert result.objective == first.objective


def test_a_warm_start_that_leads_nowhere_leaves_all_coefficients_to_the_fit_without_one(rows, monkeypatch):
    """An estimator begins anew where a warm start has led to no model within the bounds."""
    model = fitted(rows, 0.08, warm_start=True, new_row_folds=None)
    sizes = []

    def fails_at_first(result, problem):
        sizes.append(problem.data.n_features)
        return result if len(sizes) > 2 else replace(result, status=Status.INFEASIBLE)

    change_results(monkeypatch, fails_at_first)
    X, y, groups = rows
    model.set_params(kappa=0.04).fit(X, y, sensitive_features=groups)
    assert model.status_ == "optimal"
    assert max(sizes) < X.shape[1]


def test_the_start_is_in_the_span(make_data, make_problem):
    data = make_data(counts=(90, 120), n_features=12)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    best = AugmentedLagrangian().solve(problem, None, np.random.default_rng(0))
    result = solved(problem, Start(best.model_state))
    assert not result.status.is_infeasible
    assert result.objective <= best.objective * (1 + 1e-9)


def test_a_callback_ends_all_rounds_and_may_choose_the_parameters(make_data, make_problem):
    data = make_data(counts=(90, 120), n_features=12)
    problem = make_problem(data, DemographicParity(0.1).unchecked(data))
    seen = []

    def stop(record):
        seen.append(record["params"])
        if len(seen) == 2:
            raise StopTraining(params=seen[0])

    result = Span().solve(problem, None, np.random.default_rng(0), stop)
    assert len(seen) == 2
    np.testing.assert_array_equal(result.model_state, seen[0])


@pytest.mark.parametrize(
    ("params", "needs"),
    [
        ({"group_interactions": True}, "linear scores, shared by all groups"),
        ({"hidden_layer_sizes": (3,)}, "linear scores, shared by all groups"),
    ],
)
def test_other_models_are_refused(rows, params, needs):
    with pytest.raises(IncompatibleProblem, match=f"solver 'span' needs {needs}.*'augmented_lagrangian'"):
        fitted(rows, **params)


def test_very_wide_data_are_refused():
    X = sp.csr_array(np.eye(30, 5001))
    with pytest.raises(IncompatibleProblem, match="at most 5,000 features, and there are 5,001"):
        fitted((X, np.arange(30) % 2, np.arange(30) // 15), kappa=0.5)


@dataclass(frozen=True)
class _WithCosts(Squared):
    """An objective of the user that holds an array or a tensor."""

    costs: object = None


@pytest.mark.parametrize("make_costs", [np.ones, torch.ones])
def test_objectives_that_hold_arrays_are_compared(make_data, make_problem, make_costs):
    """Parameters are kept for the next run on the same data, if its objective is the same."""
    data = make_data(counts=(40, 50))
    problems = [make_problem(data, loss=_WithCosts(costs=make_costs(2)), alpha=alpha) for alpha in (0.1, 0.1, 1.0)]
    first, second, other = (unconstrained(problem)[0] for problem in problems)
    np.testing.assert_array_equal(first, second)
    assert np.linalg.norm(other) < np.linalg.norm(first)


class _Weighing(Squared):
    """An objective of the user that is no dataclass, and so has the equality of `Squared`, which ignores its factor."""

    factor = 1.0

    def __init__(self, factor):
        if factor != 1:
            object.__setattr__(self, "factor", factor)

    def of(self, scores, targets):
        return self.factor * super().of(scores, targets)

    def slope(self, scores, targets):
        return self.factor * super().slope(scores, targets)

    def curvature(self, scores, targets):
        return self.factor * super().curvature(scores, targets)

    def second_derivative(self, scores, targets):
        return self.factor * super().second_derivative(scores, targets)


def test_objectives_that_are_no_dataclasses_are_told_apart(make_data, make_problem):
    """Also within another objective."""
    data = make_data(counts=(40, 50))
    assert _Weighing(1.0) == _Weighing(20.0)
    for within in (lambda loss: loss, lambda loss: Scaled(loss, 2.0)):
        light, heavy = (
            unconstrained(make_problem(data, loss=within(_Weighing(factor)), alpha=0.1))[0] for factor in (1.0, 20.0)
        )
        assert np.linalg.norm(heavy) > 1.01 * np.linalg.norm(light)  # the penalty weighs less
