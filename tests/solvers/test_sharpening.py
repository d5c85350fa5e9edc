"""Programs with smooth decisions that become sharper, for few coefficients under bounds on counted rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fairconstrained import RateParityClassifier
from fairconstrained.constraints import DemographicParity, GroupRates
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Problem
from fairconstrained.solvers import SequentialQuadratic
from fairconstrained.solvers._sharpening import NARROW, sharpened


def two_features(constraint, n_samples=3000):
    """A problem of two features, the second of which is the group; labels depend on both."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], n_samples // 2)
    X = np.column_stack([rng.normal(size=n_samples), 2.0 * codes - 1.0])
    y = np.where(X.sum(axis=1) + rng.logistic(size=n_samples) > 0, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    return Problem(Logistic().bind(data), (constraint.bind(data),), data, model=LinearModel(2, alpha=1e-3))


def unconstrained(problem):
    return SequentialQuadratic().solve(problem.without_constraints(), None, np.random.default_rng(0))


def test_bounds_that_do_not_bind_lead_to_the_unconstrained_optimum():
    problem = two_features(DemographicParity(0.9))
    found = sharpened(problem, np.zeros(3))
    assert found.objective == pytest.approx(unconstrained(problem).objective, rel=1e-4)
    assert found.n_evaluations > 0


@pytest.mark.parametrize("constraint", [DemographicParity(0.02), GroupRates("selection", rule="ratio", kappa=0.03)])
def test_equal_rates_take_the_group_out_of_the_scores(constraint):
    """The first feature has the same distribution in both groups, so that only the second one parts their rates."""
    problem = two_features(constraint)
    found = sharpened(problem, unconstrained(problem).model_state)
    first, second, _ = found.params
    assert abs(second) < 0.1 * first
    assert found.objective == pytest.approx(problem.objective_at(found.params, problem.scores(found.params)))
    assert problem.measured(problem.scores(found.params)).violations.max() < 0.02


def test_the_factor_that_is_for_quadratic_penalties_changes_no_program():
    problem = two_features(GroupRates("selection", rule="ratio", kappa=0.2))
    undamped = replace(problem, constraints=tuple(replace(bound, unit=1.0) for bound in problem.constraints))
    found, other = (sharpened(each, unconstrained(problem).model_state) for each in (problem, undamped))
    np.testing.assert_allclose(found.params, other.params, rtol=1e-6)
    assert found.objective == pytest.approx(other.objective)


def test_from_a_solution_nearby_it_takes_less():
    problem = two_features(DemographicParity(0.05))
    far = sharpened(problem, unconstrained(problem).model_state)
    near = sharpened(problem, far.params, NARROW)
    assert near.objective == pytest.approx(far.objective, rel=0.01)
    assert near.n_evaluations < far.n_evaluations


def test_bounds_out_of_reach_have_no_objective():
    """Labels are right in no more than about 80 % of the rows."""
    problem = two_features(GroupRates("error", rule="ceiling", kappa=0.02, min_group_size=50), 600)
    found = sharpened(problem, unconstrained(problem).model_state)
    assert found.objective == np.inf
    assert np.isfinite(found.params).all()


def test_a_group_that_is_harder_does_not_cost_all_of_the_accuracy():
    """The quadratic programs alone end where scores are about zero, and 57 % of the decisions are right."""
    rng = np.random.default_rng(2)
    hard = rng.random(4000) < 0.15
    X = rng.normal(size=(4000, 12))
    X[:, 0] += hard
    noise = np.where(hard, 6.0, 0.8) * rng.logistic(size=4000)
    y = 1.5 * X[:, 1:4].sum(axis=1) - 2.5 + 1.2 * hard + noise > 0
    model = RateParityClassifier(0.2, constraint="equalized_odds_ratio", random_state=0, new_row_folds=None)
    model.fit(X, y, sensitive_features=hard)
    assert model.solver_ == "cross_fitted"
    assert model.constraint_values_["equalized_odds_ratio"] <= 0.2
    assert model.score(X, y) > 0.72
    assert model.objective_ < 0.6
