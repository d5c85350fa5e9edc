"""Sequential quadratic programs: their solutions, and bounds on counted rows that few coefficients keep."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained import RateParityClassifier
from fairconstrained.constraints import DemographicParity, EqualizedOdds, GroupRates, QuadraticAUCGap
from fairconstrained.data import FairData
from fairconstrained.datasets import make_biased_classification
from fairconstrained.distributed.errors import ProcessLost
from fairconstrained.exceptions import IncompatibleProblem, StopTraining
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import FullBatchView, Problem, Start
from fairconstrained.solvers import (
    AugmentedLagrangian,
    SequentialQuadratic,
    _quadratic_program,
    best_rescaled,
    cross_fitted,
    make_solver,
    sequential_quadratic,
)
from fairconstrained.solvers._quadratic_program import ELASTIC, ProgramNotSolved, QuadraticProgram

NAME = "sequential_quadratic"
OTHER = AugmentedLagrangian()


def solved(problem, start=None, callback=None, **options):
    solver = make_solver(NAME, options, problem)
    return solver.solve(problem, start, np.random.default_rng(0), callback)


@pytest.fixture
def parity(parity_problem):
    """``parity(notion, kappa)``: a problem of 1,000 rows whose unconstrained optimum keeps no small bound."""
    return lambda notion, kappa, counts=(400, 600): parity_problem(notion, kappa, counts)


# --- the quadratic program


@pytest.mark.parametrize("seed", range(6))
def test_a_program_has_the_solution_of_a_general_method(seed):
    rng = np.random.default_rng(seed)
    n_params, n_components = 3, 4
    root = rng.normal(size=(n_params, n_params))
    program = QuadraticProgram(
        rng.normal(size=n_params),
        root @ root.T + np.eye(n_params),
        rng.normal(size=n_components),
        rng.normal(size=(n_components, n_params)),
    )
    step, multipliers = program.solved()
    found = minimize(
        lambda v: program.gradient @ v[:-1] + v[:-1] @ program.hessian @ v[:-1] / 2 + ELASTIC * v[-1] ** 2 / 2,
        np.append(step, 1.0),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: v[-1] - program.values - program.slopes @ v[:-1]},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(step, found.x[:-1], atol=2e-4)
    slope = program.gradient + program.hessian @ step + program.slopes.T @ multipliers
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)
    slack = multipliers.sum() / ELASTIC  # the slope in the slack is zero
    left = program.values + program.slopes @ step - slack
    assert left.max() <= 1e-8
    np.testing.assert_allclose(multipliers * left, 0.0, atol=1e-6)
    assert multipliers.min() >= 0


def test_bounds_that_exclude_each_other_leave_a_slack():
    program = QuadraticProgram(np.zeros(1), np.eye(1), np.array([1.0, 1.0]), np.array([[1.0], [-1.0]]))
    step, multipliers = program.solved()
    np.testing.assert_allclose(step, 0.0, atol=1e-6)
    np.testing.assert_allclose(multipliers, ELASTIC / 2, rtol=1e-6)


def test_without_bounds_a_step_is_that_of_newton():
    program = QuadraticProgram(np.array([2.0, -1.0]), np.diag([4.0, 0.5]), np.empty(0), np.empty((0, 2)))
    step, multipliers = program.solved()
    np.testing.assert_allclose(step, [-0.5, 2.0])
    assert multipliers.size == 0
    assert program.gain(step, 1.0) == pytest.approx(0.5 + 1.0)


# --- solutions


@pytest.mark.parametrize("notion", [DemographicParity, EqualizedOdds])
@pytest.mark.parametrize("kappa", [0.05, 0.1])
def test_the_bound_holds_and_the_result_says_what_its_parameters_give(parity, notion, kappa):
    problem = parity(notion, kappa)
    found = solved(problem)
    (constraint,) = problem.constraints
    scores = problem.scores(found.model_state)
    assert found.status == "optimal"
    assert found.constraint_values[constraint.name] <= kappa + constraint.granularity
    assert found.constraint_values == problem.measured(scores).values
    assert found.objective == pytest.approx(problem.objective_at(found.model_state, scores))
    assert found.objective > solved(problem.without_constraints()).objective


@pytest.mark.slow
@pytest.mark.parametrize("notion", [DemographicParity, EqualizedOdds])
def test_objectives_are_those_of_the_augmented_lagrangian_on_average_for_fewer_evaluations(make_data, notion):
    """The optima are local, so that single ones differ."""
    logs, evaluations = [], []
    for seed in range(8):
        data = make_data(counts=(1200, 1800), n_features=6, shift=0.4, seed=seed)
        bound = notion(0.05).bind(data)
        problem = Problem(Logistic().bind(data), (bound,), data, model=LinearModel(6, alpha=0.01))
        results = [s.solve(problem, None, np.random.default_rng(0)) for s in (SequentialQuadratic(), OTHER)]
        # as estimators do with the results of both
        ends = [best_rescaled(problem, [one.model_state, *one.candidates]) for one in results]
        mine, theirs = (problem.objective_at(end, problem.scores(end)) for end in ends)
        logs.append(np.log(mine / theirs))
        evaluations.append(results[0].n_evaluations / results[1].n_evaluations)
    assert np.mean(logs) < 0.005
    assert np.max(logs) < 0.03
    assert np.mean(evaluations) < 0.3


def test_a_multiplier_is_about_the_slope_of_the_least_objective(parity):
    """Between bounds far enough apart that single rows do not matter."""
    low, middle, high = (solved(parity(DemographicParity, kappa)) for kappa in (0.06, 0.1, 0.14))
    ((name, multiplier),) = middle.multipliers.items()
    assert "demographic_parity" in name
    assert multiplier == pytest.approx((low.objective - high.objective) / 0.08, rel=0.3)


def four_fifths(shift=-3.0, n_samples=3000):
    """A problem with the four-fifths rule and two features, the second of which is the group."""
    rng = np.random.default_rng(0)
    codes = np.repeat([0, 1], n_samples // 2)
    X = np.column_stack([rng.normal(size=n_samples), 2.0 * codes - 1.0])
    y = np.where(2 * X[:, 0] + X[:, 1] + shift + rng.logistic(size=n_samples) > 0, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, ("a", "b"))
    bound = GroupRates("selection", rule="ratio", kappa=0.2).bind(data)
    return Problem(Logistic().bind(data), (bound,), data, model=LinearModel(2, alpha=1e-3))


@pytest.mark.parametrize("shift", [-1.0, -3.0])
def test_a_ratio_is_brought_to_its_bound_as_a_difference_is(shift):
    """With a slack that is small only for differences, the run went to and fro, and ended at ratios of about .16."""
    found = solved(four_fifths(shift))
    assert found.status == "optimal"
    assert 0.18 < found.constraint_values["demographic_parity_ratio"] <= 0.2


def test_the_factor_that_is_for_quadratic_penalties_changes_no_step():
    problem = four_fifths()
    (bound,) = problem.constraints
    found = solved(problem)
    undamped = solved(replace(problem, constraints=(replace(bound, unit=1.0),)))
    np.testing.assert_allclose(found.model_state, undamped.model_state, rtol=1e-6)
    assert found.multipliers.keys() == undamped.multipliers.keys()
    for name, multiplier in found.multipliers.items():
        assert bound.damping * multiplier == pytest.approx(undamped.multipliers[name], rel=1e-6)


def test_without_constraints_it_is_the_unconstrained_optimum(parity):
    problem = parity(DemographicParity, 0.1).without_constraints()
    found = solved(problem)
    slopes = FullBatchView(problem).at(found.model_state).gradient(1.0, np.empty(0))
    np.testing.assert_allclose(slopes, 0.0, atol=1e-4)
    assert (found.status, found.multipliers) == ("optimal", {})


def test_a_loose_bound_leaves_the_unconstrained_optimum_alone(parity):
    problem = parity(DemographicParity, 0.9)
    found, free = solved(problem), solved(problem.without_constraints())
    np.testing.assert_array_equal(found.model_state, free.model_state)
    assert (found.status, found.multipliers) == ("optimal", {})


def test_a_start_spares_the_unconstrained_optimum(parity):
    problem = parity(DemographicParity, 0.1)
    cold = solved(problem)
    warm = solved(problem, Start(cold.model_state))
    assert warm.multipliers == pytest.approx(cold.multipliers, rel=0.1)  # also where no step is better than the start
    assert warm.history[0]["objective"] == pytest.approx(cold.objective)
    assert warm.objective <= cold.objective + 1e-9
    assert warm.n_evaluations < cold.n_evaluations


def test_a_start_near_the_solution_waits_for_one_step(parity):
    problem = parity(DemographicParity, 0.1)
    cold = solved(problem)
    near = replace(cold.start, previous=cold.model_state + 1e-3)
    found = solved(problem, near)
    assert found.constraint_values["demographic_parity"] <= 0.1 + problem.constraints[0].granularity
    assert found.n_iter <= solved(problem, replace(near, previous=None)).n_iter
    assert found.n_iter <= 2
    assert found.objective <= cold.objective + 1e-9


@pytest.mark.parametrize("seed", [1, 10])
def test_steps_beyond_the_bounds_ask_for_smaller_ones(make_data, make_problem, monkeypatch, seed):
    data = make_data((60, 80, 70), seed=seed, shift=1.0)
    problem = make_problem(data, EqualizedOdds(0.02).unchecked(data))
    found = solved(problem)
    assert not found.status.is_infeasible
    assert found.constraint_values["equalized_odds"] <= 0.02 + problem.constraints[0].granularity
    monkeypatch.setattr(sequential_quadratic, "_TIGHTENED", 0)
    assert solved(problem).status.is_infeasible


def test_the_same_problem_has_the_same_solution(parity):
    problem = parity(EqualizedOdds, 0.1)
    np.testing.assert_array_equal(solved(problem).model_state, solved(problem).model_state)


def test_of_many_components_the_largest_are_looked_at(parity):
    problem = parity(DemographicParity, 0.1, (200, 200, 210, 210, 220, 230))
    assert len(problem.component_names) > _quadratic_program._MOST_COMPONENTS
    found = solved(problem)
    assert found.status == "optimal"
    assert found.constraint_values["demographic_parity"] <= 0.1 + problem.constraints[0].granularity


def test_bounds_that_exclude_each_other_are_found_to_do_so(make_data, make_problem):
    data = make_data(counts=(300, 400), shift=0.8)
    rules = {"floor": 0.9, "ceiling": 0.1}
    bounds = [GroupRates(rate="selection_rate", rule=rule, kappa=kappa).bind(data) for rule, kappa in rules.items()]
    found = solved(make_problem(data, *bounds, alpha=0.01))
    assert found.status == "infeasible"


# --- what it takes, and how it ends


def test_it_says_which_problems_it_takes(make_data, make_problem, parity):
    problem = parity(DemographicParity, 0.1)
    data = problem.data
    auc = make_problem(data, QuadraticAUCGap(0.2).bind(data))
    wide = make_data(counts=(60, 60), n_features=80)
    cases = {
        "bounds on counted rows": auc,
        "linear scores of at most 80 coefficients": make_problem(wide, DemographicParity(0.2).bind(wide)),
    }
    for message, case in cases.items():
        with pytest.raises(IncompatibleProblem, match=message):
            make_solver(NAME, {}, case)


@pytest.mark.parametrize("rate", ["selection", "error"])
def test_ratios_are_not_for_its_long_steps(parity, rate):
    """From the unconstrained optimum, ratios of errors on law school came to log losses that were 1.7 % larger."""
    problem = parity(DemographicParity, 0.1)
    ratio = GroupRates(rate, rule="ratio", kappa=0.2).bind(problem.data)
    assert SequentialQuadratic.suits(problem)
    assert not SequentialQuadratic.suits(replace(problem, constraints=(ratio,)))


def test_it_ends_where_it_is_told_to(parity):
    problem, seen = parity(DemographicParity, 0.05), []

    def stop(record):
        seen.append(record)
        if len(seen) == 2:
            raise StopTraining

    assert len(solved(problem, callback=stop).history) == 2
    assert solved(problem, max_time=0.0).n_iter <= 1
    assert solved(problem, max_iter=1).n_iter == 1


def failing(error):
    """Function of any arguments that raises an error."""

    def fail(*args, **kwargs):
        raise error

    return fail


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_another_method_goes_on_where_a_program_is_not_solved(monkeypatch, parity):
    monkeypatch.setattr(_quadratic_program, "nnls", failing(RuntimeError("Maximum number of iterations reached.")))
    assert solved(parity(DemographicParity, 0.3)).status in ("max_iter", "infeasible")
    X, y, groups = make_biased_classification(900, 10, random_state=0)
    model = RateParityClassifier(0.1, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.solver_ == "cross_fitted"
    assert model.status_ in ("optimal", "completed")


@pytest.mark.usefixtures("new_row_estimates")
def test_other_fits_tell_the_estimate_where_a_program_is_not_solved(monkeypatch):
    monkeypatch.setattr(cross_fitted, "newton_step", failing(ProgramNotSolved("Maximum number of iterations reached.")))
    X, y, groups = make_biased_classification(900, 10, random_state=0)
    model = RateParityClassifier(0.1, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.new_row_gaps_["demographic_parity"].how == "2-fold cross-fitting"


@pytest.mark.usefixtures("new_row_estimates")
def test_a_lost_process_ends_the_estimate_at_once(monkeypatch):
    monkeypatch.setattr(cross_fitted, "newton_step", failing(ProcessLost("process 1 does not answer")))
    X, y, groups = make_biased_classification(900, 10, random_state=0)
    with pytest.raises(ProcessLost, match="does not answer"):
        RateParityClassifier(0.1, random_state=0).fit(X, y, sensitive_features=groups)


def test_it_is_an_option_of_estimators():
    X, y, groups = make_biased_classification(1000, 5, random_state=0)
    model = RateParityClassifier(0.05, solver=NAME, random_state=0).fit(X, y, sensitive_features=groups)
    assert model.solver_ == NAME
    assert model.violation_ <= model.granularity_["demographic_parity"]
    assert model.prices_["demographic_parity"] > 0


def test_options_are_checked():
    with pytest.raises(ValueError, match="blur"):
        SequentialQuadratic(blur=0.0)
