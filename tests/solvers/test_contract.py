"""Promises of every solver: reproducibility, honest results, history, readable errors."""

import pickle
from contextlib import redirect_stdout
from dataclasses import FrozenInstanceError, fields, replace
from functools import cache
from io import StringIO
from typing import Any, NamedTuple

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, PairwiseParity, QuadraticAUCGap, StatisticalParity
from fairconstrained.domains import L2Ball
from fairconstrained.exceptions import IncompatibleProblem, StopTraining
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic, PairwiseAUC
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import SOLVERS, IterativeSolver, Solver, SolverResult, make_solver
from fairconstrained.views import ConvexQuadratic, FullBatch, SingleRows
from tests.covering import each_value
from tests.history import comparable
from tests.quick import QUICK

#: Options with which the multipliers of the active constraint are above zero at the end.
LONG_ENOUGH = {
    "alm": {"max_epochs": 40, "dual_rate": 0.5},
    "multiplier_model": {"max_epochs": 60, "multiplier_rate": 0.05},
    "plada": {"learning_rate": 0.01},  # longer steps diverge on squared errors
    "ssl_alm": {"max_epochs": 40, "dual_rate": 0.5},
}
#: These take convex quadratic constraints only, objectives that count errors, mean losses, counted rows, or networks;
#: their own files have their contract.
OF_FEW_PROBLEMS = {"cross_fitted_network", "span_search", "sequential_quadratic", "interior_point", "group_weights"}
ELSEWHERE = {
    name for name, s in SOLVERS.items() if any(issubclass(view, (ConvexQuadratic, SingleRows)) for view in s.requires)
} | OF_FEW_PROBLEMS
NAMES = sorted(set(SOLVERS) - ELSEWHERE)
each_solver = pytest.mark.parametrize("name", NAMES)
#: Methods that never weigh a constraint by a multiplier of its own that they would return.
WITHOUT_MULTIPLIERS = {
    "adam",
    "exact_penalty",
    "idca",
    "ipc",
    "ipp_conex",
    "ipp_ssg",
    "online_subgradient",
    "penalized_subgradient",
    "penalty",
    "sgd",
    "ssg",
    "stochastic_ghost",
    "stochastic_idca",
    "stochastic_switching",
    "switching_subgradient",
}
#: The callback gets the records of its first part only, which goes by epochs; the rest is in its own file.
TWO_PARTS = "adam_lagrangian"
ONE_PART = {TWO_PARTS: {"polish": False}}
each_iterative_solver = pytest.mark.parametrize("name", [n for n in NAMES if issubclass(SOLVERS[n], IterativeSolver)])
#: Its state has rows, which no checkpoint should have: a run goes on from the parameters of a record.
HOLDS_ROWS = "augmented_lagrangian"
NOTIONS = (StatisticalParity, DemographicParity)
SURROGATES = ("logistic", "ramp", "smoothstep")
#: A notion for every solver, in turn: to a solver they are components and no more.
NOTION_OF = {name: NOTIONS[i % 2] for i, name in enumerate(NAMES)}
each_solver_with_a_notion = pytest.mark.parametrize(("name", "notion"), NOTION_OF.items())


def solve(name, problem, start=None, callback=None, seed=0, **options):
    solver = make_solver(name, {**QUICK[name], **options}, problem)
    return solver.solve(problem, start, np.random.default_rng(seed), callback)


class Watched(NamedTuple):
    """A run, what its callback saw, and what it printed."""

    problem: Problem
    solver: Solver
    start: Start
    result: SolverResult
    seen: list[dict[str, Any]]
    printed: str


@pytest.fixture(scope="module")
def watched(parity_problem):
    """``watched(name, **options)``: a run under the notion of the solver, which many tests look at."""

    @cache
    def run(name, **options):
        problem, seen = parity_problem(NOTION_OF[name], 0.3), []
        solver, start = make_solver(name, QUICK[name] | options, problem), Start(np.full(problem.n_params, 0.1))
        with redirect_stdout(StringIO()) as printed:
            result = solver.solve(problem, start, np.random.default_rng(0), lambda record: seen.append(dict(record)))
        return Watched(problem, solver, start, result, seen, printed.getvalue())

    return run


def test_every_solver_is_tested_here():
    assert set(QUICK) | ELSEWHERE == set(SOLVERS)


# --- results


@each_solver
def test_result_is_frozen_and_what_its_parameters_give(watched, name):
    problem, result = watched(name).problem, watched(name).result
    with pytest.raises(FrozenInstanceError):
        result.objective = 0.0
    scores = problem.scores(result.model_state)
    (constraint,) = problem.constraints
    assert result.model_state.shape == (problem.n_params,)
    assert result.constraint_values == {constraint.name: pytest.approx(constraint.metric(scores))}
    assert result.objective == pytest.approx(
        problem.without_constraints().view(FullBatch).at(result.model_state).objective
    )
    feasible = constraint.exact(scores) <= constraint.granularity
    assert result.status.is_infeasible == (not feasible)
    assert result.n_iter >= 1
    assert result.n_evaluations >= result.n_iter


@pytest.mark.slow
@each_solver
def test_several_constraints_at_once(make_data, make_problem, name):
    data = make_data(counts=(90, 120))
    problem = make_problem(data, StatisticalParity(0.4).unchecked(data), DemographicParity(0.2).unchecked(data))
    result = solve(name, problem)
    scores = problem.scores(result.model_state)
    assert result.constraint_values == {c.name: pytest.approx(c.metric(scores)) for c in problem.constraints}
    assert set(result.constraint_values) == {"statistical_parity", "demographic_parity"}


@each_solver
def test_multipliers_are_positive_or_there_are_none(known, name):
    """The bound is active: an empty dict would say that loosening it gains nothing."""
    result = solve(name, known.problem, **LONG_ENOUGH.get(name, {}))
    assert not result.has_diverged
    (constraint,) = known.problem.constraints
    if name in WITHOUT_MULTIPLIERS:
        assert result.multipliers is None
        assert np.isnan(constraint.price(result.multipliers))
        return
    assert set(result.multipliers) <= set(known.problem.component_names)
    assert result.multipliers
    assert min(result.multipliers.values()) > 0
    assert constraint.price(result.multipliers) > 0


@pytest.mark.parametrize("name", sorted(ELSEWHERE - OF_FEW_PROBLEMS))
def test_multipliers_of_solvers_for_quadratic_constraints(make_data, name):
    data = make_data(counts=(90, 120), weighted=True, shift=0.8)
    loss, bound = PairwiseAUC(loss="quadratic"), QuadraticAUCGap(0.2)
    if name == "projected_gradient":
        loss, bound = Logistic(), PairwiseParity(0.1)
    problem = Problem(loss.bind(data), (bound.bind(data),), data, model=LinearModel(data.n_features, alpha=0.05))
    result = make_solver(name, QUICK.get(name, {}), problem).solve(problem, None, np.random.default_rng(0))
    assert max(result.multipliers.values()) > 0.01
    assert min(result.multipliers.values()) > 0


@each_solver
def test_a_problem_without_constraints(make_data, make_problem, name):
    problem = make_problem(make_data(counts=(90, 120), shift=0.8), alpha=0.01)
    result = solve(name, problem)
    start = problem.view(FullBatch).at(np.zeros(problem.n_params)).objective
    assert result.constraint_values == {}
    assert result.multipliers == (None if name in WITHOUT_MULTIPLIERS else {})
    assert not result.status.is_infeasible
    assert result.objective < 0.9 * start


@each_value(name=NAMES, surrogate=SURROGATES, notion=NOTIONS)
def test_a_kappa_that_allows_everything(parity_problem, name, surrogate, notion):
    problem = parity_problem(notion, 1.0, surrogate=surrogate)
    result = solve(name, problem)
    assert not result.status.is_infeasible
    assert result.objective < 0.9 * problem.view(FullBatch).at(problem.start(np.zeros(problem.n_params))).objective


@each_solver
def test_parameters_stay_in_the_domain_or_the_solver_refuses(known, name):
    problem = replace(known.problem, domain=L2Ball(0.3))
    assert np.linalg.norm(known.params) > 0.35
    if name in problem.working_solvers():
        assert np.linalg.norm(solve(name, problem).model_state) <= 0.3 + 1e-9
        return
    with pytest.raises(IncompatibleProblem, match=f"solver '{name}' does not take the domain L2Ball"):
        solve(name, problem)


# --- reproducibility


@each_solver
def test_the_same_run_twice_is_the_same_bit_for_bit_and_verbose_prints_a_line_for_every_record(watched, name, capsys):
    problem, solver, start, one, *_ = watched(name)
    assert solver == make_solver(name, QUICK[name], problem)
    other = make_solver(name, QUICK[name] | {"verbose": 1}, problem).solve(problem, start, np.random.default_rng(0))
    np.testing.assert_array_equal(one.model_state, other.model_state)
    assert comparable(one.history) == comparable(other.history)
    assert (one.objective, one.multipliers, one.status) == (other.objective, other.multipliers, other.status)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(other.history)
    assert "objective" in lines[0]


@each_solver_with_a_notion
def test_neither_problem_nor_start_is_changed(watched, parity_problem, name, notion):
    problem, unused = watched(name).problem, parity_problem(notion, 0.3)
    np.testing.assert_array_equal(watched(name).start.model_state, 0.1)
    assert problem.component_names == unused.component_names
    assert (problem.data.y == unused.data.y).all()
    assert (problem.data.weights == unused.data.weights).all()
    np.testing.assert_array_equal(problem.data.X, unused.data.X)


# --- history


@each_solver
def test_callback_sees_every_record_of_the_history_and_nothing_is_printed(watched, name):
    run = watched(name, **ONE_PART.get(name, {}))
    assert run.printed == ""
    # the parameters and the state, where a solver gives them, would make the history large
    told = [{key: record[key] for key in record if key not in ("params", "state")} for record in run.seen]
    assert comparable(told) == comparable(run.result.history)
    assert [record.get("seconds") for record in told] == [record.get("seconds") for record in run.result.history]
    assert len(told) >= 2
    for key in ("n_iter", "n_evaluations"):
        values = [record[key] for record in told]
        assert values == sorted(values)
    assert all(np.isfinite(record["objective"]) for record in told)


@each_solver_with_a_notion
def test_an_interruption_by_the_callback_comes_through(parity_problem, name, notion):
    def interrupt(record):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve(name, parity_problem(notion, 0.3), callback=interrupt)


# --- the loop


@each_iterative_solver
def test_a_callback_ends_the_run_and_may_choose_earlier_parameters(parity_problem, name):
    seen = []

    def stop(record):
        seen.append(record)
        if len(seen) == 2:
            raise StopTraining(seen[0]["params"])

    result = solve(name, parity_problem(StatisticalParity, 0.3), callback=stop, **ONE_PART.get(name, {}))
    assert len(result.history) == len(seen) == 2
    np.testing.assert_array_equal(result.model_state, seen[0]["params"])


@each_solver
def test_a_callback_that_stops_at_the_first_record_ends_every_solver(parity_problem, name):
    seen = []

    def stop(record):
        seen.append(record)
        raise StopTraining

    problem = parity_problem(StatisticalParity, 0.3)
    result = solve(name, problem, callback=stop, **ONE_PART.get(name, {}))
    assert len(result.history) == len(seen) == 1
    assert result.stopped_by == "a callback"
    assert seen[0]["seconds"] >= 0
    assert result.status.is_infeasible == (not problem.holds(problem.scores(result.model_state)))


@each_iterative_solver
def test_no_step_is_taken_when_the_time_is_over(parity_problem, name):
    result = solve(name, parity_problem(StatisticalParity, 0.3), max_time=0.0, **ONE_PART.get(name, {}))
    assert result.n_iter == 1
    assert len(result.history) <= 2  # the start may have a record


@each_iterative_solver
def test_an_interruption_may_keep_what_was_found(parity_problem, name):
    def interrupt(record):
        if record["n_iter"] > 0:
            raise KeyboardInterrupt

    problem = parity_problem(StatisticalParity, 0.3)
    options = {"keep_on_interrupt": True, **ONE_PART.get(name, {})}
    result = solve(name, problem, callback=interrupt, **options)
    assert "was interrupted, and the best model so far is kept" in result.message
    assert result.n_iter == result.history[-1]["n_iter"]


@each_iterative_solver
def test_a_run_goes_on_from_a_record_to_the_same_end(watched, name):
    problem, solver, _, whole, seen, _ = watched(name, **ONE_PART.get(name, {}))
    start = pickle.loads(pickle.dumps(seen[len(seen) // 2]["state"]))
    if name == HOLDS_ROWS:
        assert start.solver_state is None
        assert start.model_state.size == problem.n_params
        return
    assert start.solver_state is not None
    again = solver.solve(problem, start, np.random.default_rng(0))  # one object: it keeps no state
    np.testing.assert_array_equal(again.model_state, whole.model_state)
    one, other = (
        # the rest may measure its first iterate once more
        [record | {"n_evaluations": None} for record in comparable(run.history)]
        for run in (again, whole)
    )
    assert one == other


# --- errors


def test_unknown_solver_lists_the_known_ones(known):
    with pytest.raises(ValueError, match=r"one of \['auto', 'adam', .*'idca', .*\], got 'newton'"):
        make_solver("newton", {}, known.problem)


@each_solver
def test_unknown_option_lists_the_known_ones(known, name):
    with pytest.raises(ValueError, match=f"solver '{name}' has no option \\['shoes'\\]; its options are") as raised:
        make_solver(name, {"shoes": 2}, known.problem)
    assert all(repr(option.name) in str(raised.value) for option in fields(SOLVERS[name]))


@each_solver
def test_solvers_name_their_option_for_the_iterations(name):
    assert SOLVERS[name].iterations_option in {option.name for option in fields(SOLVERS[name])}
    assert SOLVERS[name].name == name
