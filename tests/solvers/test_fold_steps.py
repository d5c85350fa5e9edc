"""Scores by steps to the fits without a fold: beside those of the fits themselves, and where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, GroupRates, LossParity
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Hinge, Logistic, Squared
from fairconstrained.problem import Problem
from fairconstrained.solvers import AugmentedLagrangian, InteriorPoint, scores_without_folds

N_FOLDS = 5


def problem_of(constraint, loss=None, n_samples=400, n_features=25, effects=(2.0, 0.5), alpha=0.01):
    rng = np.random.default_rng(0)
    groups = rng.random(n_samples) < 0.4
    X = rng.normal(size=(n_samples, n_features))
    y = rng.random(n_samples) < 1 / (1 + np.exp(-np.where(groups, *effects) * X[:, 0]))
    data = FairData.from_arrays(X, 2.0 * y - 1, groups.astype(int), ("a", "b"))
    objective = (Logistic() if loss is None else loss).bind(data)
    return Problem(objective, (constraint.bind(data),), data, model=LinearModel(n_features, alpha=alpha))


def solved(problem):
    solver = AugmentedLagrangian(tol=1e-7, max_iter=200)
    return solver.solve(problem, None, np.random.default_rng(0)).model_state


def test_steps_lead_to_where_the_fits_without_a_fold_end():
    problem = problem_of(LossParity(0.03))
    (constraint,), params = problem.constraints, solved(problem)
    assert constraint.metric(problem.scores(params)) == pytest.approx(0.03, abs=1e-4)
    by_steps = scores_without_folds(problem, params, N_FOLDS)
    by_fits, folds = np.empty(problem.data.n_samples), problem.data.folds(N_FOLDS)
    for fold in range(N_FOLDS):
        rest = solved(problem.on(problem.data.part(np.flatnonzero(folds != fold))))
        by_fits[folds == fold] = problem.scores(rest)[folds == fold]
    moved = np.linalg.norm(by_fits - problem.scores(params))
    assert np.linalg.norm(by_steps - by_fits) < 0.35 * moved
    own, first, second = (constraint.differences(each)[0] for each in (problem.scores(params), by_steps, by_fits))
    assert abs(second - own) > 0.03
    assert first - own == pytest.approx(second - own, rel=0.25)


def test_steps_of_a_bound_that_is_not_active_are_those_of_the_objective():
    loose, free = problem_of(LossParity(0.5)), problem_of(LossParity(5.0))
    params = solved(loose)
    np.testing.assert_array_equal(solved(free), params)
    by_steps = scores_without_folds(loose, params, N_FOLDS)
    rest, folds = [], loose.data.folds(N_FOLDS)
    for fold in range(N_FOLDS):
        part = loose.on(loose.data.part(np.flatnonzero(folds != fold)))
        rest.append(np.where(folds == fold, loose.scores(solved(part)), 0.0))
    moved = np.linalg.norm(sum(rest) - loose.scores(params))
    assert np.linalg.norm(by_steps - sum(rest)) < 0.3 * moved


def test_bounds_that_are_nearly_reached_without_them_are_not_active():
    """Their multipliers are rounding errors, and their slopes balance each other: steps along both lead far away."""
    options = {"n_features": 3, "effects": (1.0, 1.0), "alpha": 1e-4}
    loose = problem_of(GroupRates("log_loss", rule="ceiling", kappa=5.0), **options)
    params = InteriorPoint().solve(loose, None, np.random.default_rng(0)).model_state
    worst = loose.constraints[0].metric(loose.scores(params))
    near = problem_of(GroupRates("log_loss", rule="ceiling", kappa=1.01 * worst), **options)
    expected = scores_without_folds(loose, params, N_FOLDS)
    np.testing.assert_allclose(scores_without_folds(near, params, N_FOLDS), expected, atol=1e-6)


def test_bounds_that_oppose_each_other_ask_for_no_large_steps():
    """Between the least bound that two groups' losses can keep and no bound, their slopes nearly cancel each other."""

    def bounded(kappa):
        constraint = GroupRates("log_loss", rule="ceiling", kappa=kappa)
        problem = problem_of(constraint, n_features=10, effects=(1.5, -1.0))
        return problem, InteriorPoint().solve(problem, None, np.random.default_rng(0)).model_state

    least, largest = (p.constraints[0].metric(p.scores(params)) for p, params in map(bounded, (0.0, 5.0)))
    problem, params = bounded(0.7 * least + 0.3 * largest)
    (constraint,), folds = problem.constraints, problem.data.folds(N_FOLDS)
    by_fits = np.empty(problem.data.n_samples)
    for fold in range(N_FOLDS):
        rest = problem.on(problem.data.part(np.flatnonzero(folds != fold)))
        own = InteriorPoint().solve(rest, None, np.random.default_rng(0)).model_state
        by_fits[folds == fold] = problem.scores(own)[folds == fold]
    by_steps = scores_without_folds(problem, params, N_FOLDS)
    assert constraint.metric(by_steps) == pytest.approx(constraint.metric(by_fits), abs=0.02)


def test_there_are_none_where_they_lead_away_from_the_bound():
    """Losses of groups with other noise are equal where both are bad: there, slopes do not tell where a step leads."""
    rng = np.random.default_rng(2)
    groups, X = rng.integers(0, 2, 400), rng.normal(size=(400, 3))
    y = 0.5 * X[:, 0] + (0.3 + 0.7 * groups) * rng.normal(size=400)
    data = FairData.from_arrays(X, y, groups, ("a", "b"))
    constraint = GroupRates("squared", kappa=0.01).bind(data)
    problem = Problem(Squared().bind(data), (constraint,), data, model=LinearModel(3, alpha=1e-4))
    params = solved(problem)
    assert constraint.metric(problem.scores(params)) <= 0.01 + 1e-6
    assert scores_without_folds(problem, params, N_FOLDS) is None


@pytest.mark.parametrize(("constraint", "loss"), [(LossParity(0.03), Hinge()), (DemographicParity(0.05), None)])
def test_there_are_none_without_second_derivatives(constraint, loss):
    problem = problem_of(constraint, loss)
    assert scores_without_folds(problem, solved(problem), N_FOLDS) is None
