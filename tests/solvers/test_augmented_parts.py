"""Parts of the augmented Lagrangian by themselves: multipliers, tightening, stopping, and the points near iterates."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fairconstrained.constraints import StatisticalParity
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import make_solver
from fairconstrained.solvers._augmented import curved
from fairconstrained.solvers._augmented.curved import Curvatures
from fairconstrained.solvers._augmented.iterates import Iterates
from fairconstrained.solvers._augmented.multipliers import Lagrangian
from fairconstrained.solvers._augmented.outer_iterations import OuterIterations
from fairconstrained.solvers._augmented.stopping import Progress
from fairconstrained.solvers._augmented.tightening import Surrogates

# --- multipliers and penalty


def test_the_penalty_doubles_up_to_a_limit_unless_the_violation_has_halved(known):
    lagrangian = Lagrangian(known.problem, 10.0, is_known=False)
    assert lagrangian.named_multipliers is None
    lagrangian.update(np.array([0.1, -0.3]))  # the first violation is always an improvement
    np.testing.assert_allclose(lagrangian.multipliers, [1.0, 0.0])
    assert (lagrangian.penalty, lagrangian.violation) == (10.0, 0.1)
    assert lagrangian.named_multipliers == {"mean_gap[first - second]": 1.0}
    lagrangian.update(np.array([0.05, -0.3]))
    assert lagrangian.penalty == 10.0
    lagrangian.update(np.array([0.04, -0.3]))
    assert lagrangian.penalty == 20.0
    np.testing.assert_allclose(lagrangian.multipliers, [1.9, 0.0])
    for _ in range(10):
        lagrangian.update(np.array([0.04, 0.04]))
    assert lagrangian.penalty == 1000.0
    assert lagrangian.is_largest
    lagrangian.restart()
    assert (lagrangian.penalty, lagrangian.violation, lagrangian.multipliers.any()) == (10.0, np.inf, False)


def test_the_value_is_that_of_the_formula_and_its_gradient_fits(known):
    lagrangian = Lagrangian(known.problem, 4.0, is_known=True)
    lagrangian.multipliers = np.array([0.3, 0.0])
    view, z = FullBatchView(known.problem), np.full(known.params.size, 0.2)
    point = view.at(z)
    squares = np.maximum([0.3, 0.0] + 4.0 * point.constraints, 0) ** 2 - np.array([0.09, 0.0])
    value, gradient = lagrangian.at(point)
    assert value == pytest.approx(point.objective + squares.sum() / 8)
    steps = 1e-6 * np.eye(z.size)
    slopes = [(lagrangian.at(view.at(z + s))[0] - lagrangian.at(view.at(z - s))[0]) / 2e-6 for s in steps]
    np.testing.assert_allclose(gradient, slopes, atol=1e-7)


def test_many_components_begin_with_a_smaller_penalty(parity_problem):
    few, many = (parity_problem(StatisticalParity, 0.1, n_levels=n) for n in (5, 100))
    n_components = len(many.component_names)
    assert len(few.component_names) <= 20 * few.data.n_groups < n_components
    assert Lagrangian(few, 10.0, True).penalty == 10.0
    assert Lagrangian(many, 10.0, True).penalty == pytest.approx(10.0 * 20 * many.data.n_groups / n_components)


def test_new_components_have_no_multiplier_and_the_others_keep_theirs(parity_problem):
    problem = parity_problem(StatisticalParity, 0.05, n_levels=5)
    lagrangian = Lagrangian(problem, 10.0, is_known=True)
    lagrangian.multipliers = np.arange(1.0, lagrangian.multipliers.size + 1)
    before = lagrangian.named_multipliers
    scores = problem.scores(np.array([1.0, -0.5, 0.2, 0.1]))
    constraints = tuple(c.refined(scores, blur=0.05, margin=0.0) for c in problem.constraints)
    lagrangian.replace_constraints(constraints)
    assert lagrangian.multipliers.size == len(lagrangian.problem.component_names) > len(before)
    assert lagrangian.named_multipliers == before
    assert lagrangian.problem.constraints == constraints


# --- tightening


def surrogates(kappa=0.1, scale=1.0, granularity=0.001):
    return Surrogates((SimpleNamespace(kappa=kappa, scale=scale, granularity=granularity, first_blur=0.1),))


def tighten(parts, violation, unresolved=0.0, is_settled=False):
    parts.tighten(np.array([violation]), unresolved, np.array([is_settled]))
    return parts


def test_the_blur_is_halved_to_its_final_value_before_any_margin_moves():
    parts, blurs = surrogates(), []
    assert parts.is_widest
    while parts.is_narrowing:
        blurs.append(tighten(parts, 0.05).blur)
        assert not parts.is_widest
    assert blurs == [0.05, 0.025, 0.02]
    assert parts.margins.tolist() == [0.0]
    other = surrogates()
    other.narrow_in_two_steps()
    assert [tighten(other, 0.0).blur for _ in range(2)] == pytest.approx([0.1 / 5**0.5, 0.02])


@pytest.mark.parametrize(
    ("violation", "unresolved", "is_settled", "margin"),
    [
        (0.04, 0.0, False, 0.02),
        (-0.04, 0.5, False, -0.02),
        (0.04, 0.03, False, 0.0),  # for the multipliers to resolve
        (0.04, 0.019, False, 0.02),
        (0.04, 0.03, True, 0.02),
    ],
)
def test_a_margin_moves_by_half_of_what_the_metric_is_away_from_kappa(violation, unresolved, is_settled, margin):
    parts = surrogates()
    parts.start_narrow()
    assert tighten(parts, violation, unresolved, is_settled).margins.tolist() == pytest.approx([margin])
    assert parts.blur == 0.02


def test_a_surrogate_without_tolerance_becomes_finer_as_far_as_there_are_rows():
    parts = surrogates(kappa=0.1, granularity=0.002)
    parts.start_narrow()
    assert tighten(parts, 0.3).blur == 0.01
    assert parts.margins.tolist() == [0.05]
    assert tighten(parts, 0.3).blur == 0.006  # three rows
    assert tighten(parts, 0.3).blur == 0.006


def test_a_run_that_begins_anew_twice_has_wide_surrogates_until_an_iterate_is_feasible():
    parts = surrogates(kappa=0.1)
    parts.start_narrow()
    parts.restart(1)
    assert (parts.blur, parts.margins.tolist()) == (0.1, [0.0])
    assert tighten(parts, 0.3).blur == 0.05
    assert not parts.is_narrowing
    parts.restart(2)
    assert (parts.blur, parts.is_narrowing) == (0.2, False)
    assert tighten(parts, 0.1).margins.tolist() == pytest.approx([0.05])
    assert parts.blur == 0.2
    tighten(parts, 0.0)
    assert (parts.blur, parts.margins.tolist()) == (0.1, [0.0])
    tighten(parts, 0.1)
    assert (parts.blur, parts.is_narrowing) == (0.05, False)


# --- stopping


def test_feasible_runs_stop_after_as_many_stalls_as_there_is_patience_for():
    progress = Progress(patience=3, tol=0.01)
    for best in (1.0, 0.995):
        progress.count_feasible(1.0, best, 1.0, waits=True)
    progress.count_feasible(1.0, 0.98, 0.98, waits=True)  # an improvement
    for _ in range(3):
        assert not progress.is_over
        progress.count_feasible(0.98, 0.98, 0.98, waits=True)
    assert progress.is_over
    progress.reset()
    assert not progress.is_over


@pytest.mark.parametrize(("waits", "n_iter"), [(True, 12), (False, 3)])
def test_an_iterate_that_promises_more_is_waited_for(waits, n_iter):
    progress, count = Progress(patience=3, tol=0.01), 0
    while not progress.is_over:
        progress.count_feasible(1.0, 1.0, 0.9, waits)
        count += 1
    assert count == n_iter


@pytest.mark.parametrize(("is_hopeful", "is_pressed", "n_iter"), [(True, False, 5), (True, True, 3), (False, False, 2)])
def test_infeasible_runs_stop_where_they_come_no_nearer(is_hopeful, is_pressed, n_iter):
    progress, count = Progress(patience=2, tol=0.01), 0
    progress.see(1.0)
    progress.count_infeasible(lambda: is_hopeful, is_pressed)
    assert not progress.is_over
    while not progress.is_over:
        progress.see(0.95)  # less than a tenth nearer
        progress.count_infeasible(lambda: is_hopeful, is_pressed)
        count += 1
    assert count == n_iter
    progress.restart()
    assert progress.n_restarts == 1
    assert not progress.is_over
    progress.see(5.0)
    progress.count_infeasible(lambda: False, is_pressed)
    assert progress._stalled == 0.0  # the first excess after a restart counts as nearer


def test_coming_nearer_by_a_tenth_begins_to_count_anew():
    progress = Progress(patience=2, tol=0.01)
    for excess in (1.0, 0.9, 0.81):
        progress.see(excess)
        progress.count_infeasible(lambda: False, is_pressed=True)
    assert progress._stalled == 0.0


# --- points between and beyond iterates


def iterates_of(known):
    return Iterates(Lagrangian(known.problem, 10.0, is_known=True), known.params)


def test_the_best_point_between_a_feasible_and_an_infeasible_iterate_is_found_by_bisection(known):
    """The least loss is infeasible; from zero on the way to it, the gap grows until it is as large as kappa."""
    iterates, problem = iterates_of(known), known.problem.without_constraints()
    free = make_solver("augmented_lagrangian", {}, problem).solve(problem, None, np.random.default_rng(0)).model_state
    assert iterates.assess(iterates.moved_to(np.zeros_like(free))) <= 0
    first = iterates.best
    assert iterates.assess(iterates.moved_to(free)) > 0
    assert iterates.last.excess == iterates.infeasible[0].excess > 0
    assert iterates.best.objective < first.objective
    assert iterates.end is iterates.best
    assert iterates.nearest is first
    share = iterates.best.params[0] / free[0]
    assert 16 * share == pytest.approx(round(16 * share))  # four halvings
    beyond = iterates.measure((share + 1 / 16) * free)
    assert beyond.excess > 0
    assert iterates.n_evaluations == 2 + 4 + 1


def test_the_infeasible_iterates_of_least_objective_are_kept(known):
    iterates = iterates_of(known)
    for factor in (5.0, 3.0, 9.0, 4.0, 7.0, 6.0):
        iterates.assess(iterates.moved_to(factor * known.params))
    kept = [kept.params[0] / known.params[0] for kept in iterates.infeasible]
    assert kept == pytest.approx([3.0, 4.0, 5.0, 6.0])
    assert iterates.end is iterates.nearest
    iterates.return_to_nearest()
    np.testing.assert_allclose(iterates.params, iterates.nearest.params)
    np.testing.assert_allclose(iterates.scores, known.problem.scores(iterates.nearest.params))


# --- coordinates that know the curvature


@pytest.mark.parametrize("n_copies", [1, 2])
def test_coordinates_of_the_curvature_are_inverses_and_make_the_objective_round(parity_problem, n_copies):
    problem = parity_problem(StatisticalParity, 0.1)
    problem = replace(problem, model=replace(problem.model, n_copies=n_copies), constraints=())
    rng = np.random.default_rng(0)
    z = rng.normal(size=problem.n_params) / 10
    scores = problem.scores(z)
    coordinates = Curvatures(problem, scores).coordinates(Lagrangian(problem, 10.0, True), z)
    np.testing.assert_allclose(coordinates.to_params(coordinates.from_params(z)), z, atol=1e-8)
    u, gradient = rng.normal(size=(2, z.size))
    assert coordinates.pull(gradient) @ u == pytest.approx(gradient @ coordinates.to_params(u))
    view = FullBatchView(problem)

    def slope(u):
        return coordinates.pull(view.at(coordinates.to_params(u)).gradient(1.0, np.empty(0)))

    here, step = coordinates.from_params(z), 1e-5 * u
    np.testing.assert_allclose((slope(here + step) - slope(here - step)) / 2, step, atol=2e-2 * np.linalg.norm(step))


@pytest.mark.parametrize("units", [2.0**-27, 2.0 ** np.array([-20, 0, 20])])
def test_units_do_not_matter_in_coordinates_of_the_curvature(parity_problem, units):
    problem = parity_problem(StatisticalParity, 0.1)
    problem = replace(problem, model=replace(problem.model, alpha=0.0))
    in_units = problem.on(replace(problem.data, X=problem.data.X * units))
    lagrangian = Lagrangian(problem, 10.0, True)
    z = np.random.default_rng(0).normal(size=problem.n_params) / 10
    scores, aux = problem.scores(z), problem.initial_aux(problem.scores(z))
    z_in_units = np.append(z[:-1] / units, z[-1])
    one = Curvatures(problem, scores).coordinates(lagrangian, np.concatenate([z, aux]))
    lagrangian = Lagrangian(in_units, 10.0, True)
    other = Curvatures(in_units, scores).coordinates(lagrangian, np.concatenate([z_in_units, aux]))
    np.testing.assert_allclose(other.root, one.root, rtol=1e-9, atol=1e-12)


def test_coordinates_of_features_that_are_constant_or_equal(make_data, make_problem):
    data = make_data()
    X = np.column_stack([data.X, data.X[:, 0], np.full(data.n_samples, 1e6), np.zeros(data.n_samples)])
    problem = make_problem(replace(data, X=X), alpha=0.0)
    z = np.zeros(problem.n_params)
    coordinates = Curvatures(problem, problem.scores(z)).of_objective
    u = np.random.default_rng(0).normal(size=z.size)
    np.testing.assert_allclose(coordinates.from_params(coordinates.to_params(u)), u, rtol=1e-6)


def test_slopes_of_components_near_their_bounds_are_steep_directions(parity_problem):
    problem = parity_problem(StatisticalParity, 0.1)
    z = np.random.default_rng(0).normal(size=problem.n_params) / 10
    z = np.concatenate([z, problem.initial_aux(problem.scores(z))])
    lagrangian = Lagrangian(problem, 10.0, True)
    lagrangian.multipliers[0] = 5.0
    coordinates = Curvatures(problem, problem.scores(z)).coordinates(lagrangian, z)
    point, units = FullBatchView(problem).at(z), np.eye(lagrangian.multipliers.size)
    slopes = [point.gradient(0.0, unit) for unit in units]
    near = np.linalg.norm(coordinates.pull(slopes[0]))
    assert near**2 <= 1 / lagrangian.penalty  # as J (H + rho J J')^-1 J' is at most 1 / rho


def test_knowing_the_curvature_saves_evaluations(parity_problem, monkeypatch):
    monkeypatch.setattr(curved, "_ROWS", 0)
    problem, rng = parity_problem(StatisticalParity, 0.05), np.random.default_rng
    known = make_solver("augmented_lagrangian", {}, problem).solve(problem, None, rng(0))
    monkeypatch.setattr(Curvatures, "suits", staticmethod(lambda problem: False))
    unknown = make_solver("augmented_lagrangian", {}, problem).solve(problem, None, rng(0))
    assert known.n_evaluations < 0.6 * unknown.n_evaluations
    assert known.objective <= unknown.objective + 1e-3
    assert not known.status.is_infeasible
    assert not unknown.status.is_infeasible


def test_from_a_thousand_rows_on_levels_are_minimised_with_the_curvature(parity_problem, monkeypatch):
    problem, rng = parity_problem(StatisticalParity, 0.05, counts=(420, 580)), np.random.default_rng
    assert not Curvatures.suits(parity_problem(StatisticalParity, 0.05, counts=(420, 579)))
    solver = make_solver("augmented_lagrangian", {}, problem)
    found = solver.solve(problem, None, rng(0))
    monkeypatch.setattr(Curvatures, "suits", staticmethod(lambda problem: False))
    without = solver.solve(problem, None, rng(0))
    assert found.n_evaluations < 0.75 * without.n_evaluations
    assert found.objective <= without.objective * 1.001
    assert found.status == without.status == "optimal"


def test_a_run_that_comes_no_nearer_begins_anew_without_the_curvature(parity_problem, monkeypatch):
    monkeypatch.setattr(curved, "_ROWS", 0)
    problem, rng = parity_problem(StatisticalParity, 0.05), np.random.default_rng
    solver = make_solver("augmented_lagrangian", {}, problem)
    with monkeypatch.context() as patch:
        patch.setattr(OuterIterations, "_minimise_curved", lambda self, view, curvatures: None)
        rescued = solver.solve(problem, None, rng(0))
    monkeypatch.setattr(Curvatures, "suits", staticmethod(lambda problem: False))
    alone = solver.solve(problem, None, rng(0))
    assert rescued.status == alone.status == "optimal"
    assert rescued.objective == pytest.approx(alone.objective, rel=1e-3)
