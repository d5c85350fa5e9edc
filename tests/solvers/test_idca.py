"""IDCA: its convex models bound the problem, so that it never loses what it has."""

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.objectives import TruncatedLogistic
from fairconstrained.problem import Start
from fairconstrained.solvers import IDCA, Status
from fairconstrained.views import DifferenceOfConvex, FullBatch

EPS = 1e-3


def run(problem, start=None, **options):
    solver = IDCA(**{"max_outer": 8, "max_inner": 60, "eps": EPS, **options})
    return solver.solve(problem, start, np.random.default_rng(0))


#: Half of all combinations, such that any two of the three choices meet.
COMBINATIONS = [
    (notion, surrogate, (i + j) % 2 == 0)
    for i, notion in enumerate([StatisticalParity, DemographicParity])
    for j, surrogate in enumerate(["logistic", "ramp", "smoothstep"])
]


@pytest.mark.slow
@pytest.mark.parametrize(("notion", "surrogate", "normalize"), COMBINATIONS)
def test_its_convex_models_decrease_and_the_surrogate_stays_feasible(parity_problem, notion, surrogate, normalize):
    problem = parity_problem(notion, 0.15, surrogate=surrogate, normalize=normalize)
    result = run(problem, max_outer=5)
    objectives = [record["objective"] for record in result.history]
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    assert len(objectives) == 5
    assert (np.diff([start.objective, *objectives]) <= 1e-12).all()
    assert objectives[-1] < start.objective - 1e-3
    assert result.objective <= objectives[-1] + 1e-12  # the model bounds the problem from above
    assert result.surrogate_violation <= EPS
    assert all(record["n_feasible"] >= 1 for record in result.history)


@pytest.mark.slow
def test_objectives_that_are_not_convex(make_data, make_problem):
    data = make_data(counts=(90, 120))
    problem = make_problem(data, DemographicParity(0.15).unchecked(data), loss=TruncatedLogistic())
    objectives = [record["objective"] for record in run(problem).history]
    assert (np.diff(objectives) <= 1e-12).all()
    assert objectives[-1] < objectives[0] - 1e-3


def test_known_optimum(known):
    result = run(known.problem, max_outer=15, max_inner=100)
    assert result.objective == pytest.approx(known.objective, rel=5e-3)
    assert result.objective >= known.objective - known.multiplier * EPS
    assert result.constraint_values["mean_gap"] <= 0.05 + EPS
    np.testing.assert_allclose(result.model_state, known.params, atol=0.1)


@pytest.mark.slow
def test_warm_start(known):
    start = known.params + 0.05
    result = run(known.problem, start=Start(start), max_outer=10, max_inner=100)
    assert result.objective == pytest.approx(known.objective, rel=5e-3)


def test_counts_evaluations_and_reports_the_exact_metric(parity_problem):
    problem = parity_problem(StatisticalParity, 0.15)
    result = run(problem, max_outer=3, max_inner=10)
    assert result.n_iter == 3
    assert result.n_evaluations == 3 * (1 + 10) + 3 + 1  # linearisations, points, records, and the report
    assert result.status in (Status.COMPLETED, Status.INFEASIBLE)
    assert result.multipliers is None


def test_a_step_never_leaves_a_feasible_point_for_a_worse_one(parity_problem):
    """The start itself is the first candidate of every subproblem."""
    problem = parity_problem(StatisticalParity, 0.15)
    z = problem.fair_start(None, np.random.default_rng(0))
    model = problem.view(DifferenceOfConvex).linearize(z)
    assert model.at(z).objective == pytest.approx(problem.view(FullBatch).at(z).objective)
    result = run(problem, max_outer=1, max_inner=1)
    np.testing.assert_array_equal(result.model_state, z[: problem.n_params])
