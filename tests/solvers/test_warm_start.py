"""Following the path of solutions over kappa."""

from dataclasses import replace

import numpy as np
import pytest

from fairconstrained.constraints import AUCGap, DemographicParity, LossParity, RateGap, StatisticalParity
from fairconstrained.exceptions import StopTraining
from fairconstrained.problem import Start
from fairconstrained.solvers import AugmentedLagrangian, make_solver
from fairconstrained.solvers._augmented.iterates import Iterate, extrapolated
from fairconstrained.solvers._augmented.warm_start import without_idle_components
from fairconstrained.solvers.sequential_quadratic import SequentialQuadratic
from fairconstrained.terms import Measured
from tests.solvers.conftest import have_steps_diverge


def iterate(position, excess):
    return Iterate(np.array([float(position)]), 0.0, Measured({}, np.array([excess]), excess), {})


def test_extrapolation_undoes_the_excess_where_it_is_linear():
    np.testing.assert_allclose(extrapolated(iterate(0, 3.0), iterate(2, 1.0)), [3.0])
    np.testing.assert_allclose(extrapolated(iterate(0, 3.0), iterate(2, 1.0), share=2.0), [4.0])
    np.testing.assert_allclose(extrapolated(iterate(0, 3.0), iterate(1, 2.9)), [2.5])  # a bounded step


@pytest.mark.parametrize("excess", [-0.1, 0.0, 3.0, 4.0])
def test_no_extrapolation_from_feasible_points_or_away_from_feasibility(excess):
    assert extrapolated(iterate(0, 3.0), iterate(1, excess)) is None


def test_levels_without_a_multiplier_are_dropped_save_the_first_ones(parity_problem):
    (constraint,) = parity_problem(StatisticalParity, 0.1).constraints
    first = constraint.components
    levels = np.concatenate([first, [0.123, 0.456]])
    sides = len(constraint.component_names) // first.size
    multipliers = np.zeros((levels.size, sides))
    multipliers[-1, 0] = 2.0
    start = without_idle_components(Start(np.zeros(1), (levels,), (multipliers.ravel(),)), (constraint,))
    np.testing.assert_array_equal(start.components[0], [*first, 0.456])
    np.testing.assert_array_equal(start.multipliers[0].reshape(-1, sides)[-1], multipliers[-1])
    assert start.multipliers[0].sum() == 2.0


def test_a_start_of_other_constraints_stays_as_it_is(parity_problem):
    start = Start(np.zeros(1))
    assert without_idle_components(start, parity_problem(StatisticalParity, 0.1).constraints) is start


@pytest.mark.slow
@pytest.mark.parametrize("notion", [StatisticalParity, DemographicParity])
def test_along_a_path_the_exact_gap_is_kept_and_runs_are_cheaper(parity_problem, notion):
    start, warm, cold = None, [], []
    for kappa in (0.2, 0.13, 0.08):
        problem = parity_problem(notion, kappa, counts=(400, 500))
        solver = make_solver("augmented_lagrangian", {}, problem)
        result = solver.solve(problem, start, np.random.default_rng(0))
        reference = solver.solve(problem, None, np.random.default_rng(0))
        (constraint,) = problem.constraints
        assert constraint.exact(problem.scores(result.model_state)) <= constraint.granularity
        assert result.objective == pytest.approx(reference.objective, rel=0.02)
        start = result.start
        warm.append(result.n_evaluations)
        cold.append(reference.n_evaluations)
    assert sum(warm[1:]) < sum(cold[1:])


@pytest.mark.parametrize("bound", [AUCGap, lambda kappa: RateGap(kappa, rate="sigmoid")])
def test_bounds_that_count_no_rows_are_followed_in_a_few_newton_steps(make_data, make_problem, bound):
    data, start = make_data(counts=(900, 1200), shift=0.4), None
    for kappa in (0.1, 0.06, 0.04):
        problem = make_problem(data, bound(kappa).bind(data), alpha=0.01)
        solver = make_solver("augmented_lagrangian", {}, problem)
        result = solver.solve(problem, start, np.random.default_rng(0))
        if start is not None:
            cold = solver.solve(problem, None, np.random.default_rng(0))
            assert (result.status, result.is_stationary) == ("optimal", True)
            assert problem.measured(problem.scores(result.model_state)).excess <= 0
            assert result.objective == pytest.approx(cold.objective, rel=2e-3)
            assert sum(result.multipliers.values()) == pytest.approx(sum(cold.multipliers.values()), rel=0.2)
            assert result.n_evaluations < cold.n_evaluations / 3
        start = result.start


def on_the_way(make_data, make_problem):
    """The solver, a problem with a small bound on AUC gaps, and the start that a larger bound leads to."""
    data = make_data(counts=(900, 1200), shift=0.4)
    loose, tight = (make_problem(data, AUCGap(kappa).bind(data), alpha=0.01) for kappa in (0.1, 0.02))
    solver = make_solver("augmented_lagrangian", {}, tight)
    return solver, tight, solver.solve(loose, None, np.random.default_rng(0)).start


def test_where_newton_steps_do_not_settle_iterations_follow(make_data, make_problem, monkeypatch):
    solver, tight, start = on_the_way(make_data, make_problem)
    seen = []

    def watch(record):
        seen.append(record["n_iter"])
        if len(seen) == 2:
            raise StopTraining

    monkeypatch.setattr(SequentialQuadratic, "n_epochs", lambda self, problem: 1)
    result, cold = (solver.solve(tight, begin, np.random.default_rng(0)) for begin in (start, None))
    assert (result.status, result.is_stationary) == ("optimal", False)
    assert result.objective == pytest.approx(cold.objective, rel=2e-3)
    solver.solve(tight, start, np.random.default_rng(0), watch)
    assert len(seen) == 2


def test_where_newton_steps_diverge_iterations_follow(make_data, make_problem, monkeypatch):
    solver, tight, start = on_the_way(make_data, make_problem)
    diverged = have_steps_diverge(monkeypatch)
    result = solver.solve(tight, start, np.random.default_rng(0))
    assert diverged
    cold = solver.solve(tight, None, np.random.default_rng(0))
    assert (result.status, result.message) == ("optimal", "")
    assert result.objective == pytest.approx(cold.objective, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "notion"),
    [
        ("augmented_lagrangian", StatisticalParity),
        ("augmented_lagrangian", LossParity),
        ("sequential_quadratic", DemographicParity),
        ("span", DemographicParity),
        ("cross_fitted", DemographicParity),
    ],
)
def test_a_run_from_constant_scores_is_one_without_a_start(make_data, make_problem, name, notion):
    """Where nothing else keeps the last bound, its multipliers hold a run at the constant."""
    data = make_data(counts=(900, 1200), shift=0.4)
    tight, loose = (make_problem(data, notion(kappa).unchecked(data), alpha=0.01) for kappa in (0.005, 0.08))
    solver = make_solver(name, {}, loose)
    start = solver.solve(tight, None, np.random.default_rng(0)).start
    constant = replace(start, model_state=np.zeros(tight.n_params), previous=None)
    warm, cold = (solver.solve(loose, begin, np.random.default_rng(0)) for begin in (constant, None))
    assert (warm.status, warm.objective) == (cold.status, cold.objective)
    assert np.ptp(loose.scores(warm.model_state)) > 1


def test_among_few_rows_the_outer_iterations_follow_a_path(make_data, make_problem):
    data = make_data(counts=(90, 120), shift=0.4)
    loose, tight = (make_problem(data, AUCGap(kappa).bind(data), alpha=0.01) for kappa in (0.1, 0.05))
    solver = make_solver("augmented_lagrangian", {}, tight)
    start = solver.solve(loose, None, np.random.default_rng(0)).start
    assert not solver.solve(tight, start, np.random.default_rng(0)).is_stationary


def test_fits_to_a_part_of_the_rows_begin_at_the_result(parity_problem):
    problem, solver = parity_problem(StatisticalParity, 0.1, (300, 250)), AugmentedLagrangian()
    result = solver.solve(problem, None, np.random.default_rng(0))
    part = problem.on(problem.data.part(np.arange(0, 550, 2)))
    near = solver.start_of_parts(problem, result)
    warm, cold = (solver.solve(part, start, np.random.default_rng(0)) for start in (near, None))
    assert warm.n_evaluations < cold.n_evaluations
    assert warm.objective == pytest.approx(cold.objective, rel=0.02)


@pytest.mark.parametrize(("notion", "kappa"), [(DemographicParity, 0.1), (StatisticalParity, 1.0)])
def test_fits_to_a_part_begin_anew_where_a_start_would_know_other_rows_or_bounds_nothing(parity_problem, notion, kappa):
    problem, solver = parity_problem(notion, kappa), AugmentedLagrangian()
    result = solver.solve(problem, None, np.random.default_rng(0))
    assert solver.start_of_parts(problem, result) is None


@pytest.mark.parametrize(("counts", "narrows"), [((440, 660), True), ((900, 1100), False)])
def test_a_path_of_levels_narrows_its_surrogate_anew_below_two_thousand_rows(parity_problem, counts, narrows):
    start, rng = None, np.random.default_rng(0)
    for kappa in (0.2, 0.1):
        problem = parity_problem(StatisticalParity, kappa, counts=counts)
        result = make_solver("augmented_lagrangian", {}, problem).solve(problem, start, rng)
        start = result.start
    blurs = [record["blur"] for record in result.history]
    assert (max(blurs) > blurs[-1]) == narrows
