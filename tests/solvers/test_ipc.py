"""The inexact proximally constrained method: its oracles against restatements, its constants, and how it ends."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained.constraints import DemographicParity, LossParity
from fairconstrained.domains import Box
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.problem import FullBatchView, Start
from fairconstrained.solvers import IPC, IPPSSG, Status, make_solver, near_stationarity
from fairconstrained.solvers._curvature import modulus, weak_convexity
from fairconstrained.solvers._proximal import Subproblem
from fairconstrained.solvers.published._online import OnlineSteps, control_parameters
from fairconstrained.solvers.published._smooth_oracles import augmented_lagrangian, level_set
from fairconstrained.views import FullBatch

CENTER, RHO_HAT, RHO = np.array([0.3, -0.4]), 1.5, 0.5
TARGET = np.array([2.0, 1.0])


class Source:
    """``f = |z - (2, 1)|^2 / 2`` over a disk and a half plane."""

    def at(self, z):
        return SourcePoint(z)


class SourcePoint:
    def __init__(self, z):
        self._z, self.scores = z, z
        self.objective = float(((z - TARGET) ** 2).sum()) / 2
        self.constraints = np.array([z @ z / 2 - 0.5, z[0] - 0.8])

    def gradient(self, objective, multipliers):
        return objective * (self._z - TARGET) + multipliers @ np.stack([self._z, [1.0, 0.0]])


def everywhere(z):
    return z


PROJECTIONS = {"plane": everywhere, "box": Box(-0.7, 0.75).project}
each_projection = pytest.mark.parametrize("project", PROJECTIONS.values(), ids=PROJECTIONS.keys())


def proximal_values(z):
    """Values and gradients of the subproblem's constraints, and its objective's gradient."""
    away = z - CENTER
    c = np.array([z @ z / 2 - 0.5, z[0] - 0.8]) + RHO_HAT / 2 * away @ away
    return c, np.stack([z, [1.0, 0.0]]) + RHO_HAT * away, z - TARGET + RHO_HAT * away


@each_projection
@pytest.mark.parametrize(("V", "alpha"), [(np.sqrt(30), 30), (1.0, 2.0)], ids=["theory", "tuned"])
def test_the_steps_of_the_online_oracle_are_those_of_algorithm_3(project, V, alpha):
    K = 30
    z, Q, seen = CENTER, np.zeros(2), []
    subproblem = Subproblem(Source(), CENTER, RHO_HAT)
    steps = OnlineSteps(CENTER, V, alpha)
    for _ in range(K):
        np.testing.assert_allclose(steps.z, z, atol=1e-12)
        steps.advance(subproblem, project)
        theta, zeta, zeta_0 = proximal_values(z)
        moved = project(z - (V * zeta_0 + Q[0] * zeta[0] + Q[1] * zeta[1]) / (2 * alpha))
        Q = np.array([max(Q[i] + theta[i] + zeta[i] @ (moved - z), 0) for i in range(2)])
        seen.append(Q.max())
        z = moved
    assert len(seen) == K
    assert max(seen) > 0.1


class FakeProblem:
    def __init__(self, project):
        self.project = project


@each_projection
def test_the_steps_of_the_switching_oracle_are_those_of_algorithm_2(project):
    options = IPC(inner_iter=25, precision=0.05, proximity=RHO_HAT, weak_convexity=RHO)
    method = options._method(FakeProblem(project), CENTER, None)
    method._set_moduli(None, None)
    z, total, mean, kinds = CENTER, 0.0, np.zeros(2), []
    for k in range(25):
        c, jacobian, gradient = proximal_values(z)
        kinds.append(c.max() <= 0.05**2)
        if kinds[-1]:
            total, mean = total + k + 1, mean + (k + 1) * z
        z = project(z - 2 / ((RHO_HAT - RHO) * (k + 2)) * (gradient if kinds[-1] else jacobian[c.argmax()]))
    assert {True, False} == set(kinds)
    found = method._solution(SimpleNamespace(view=Source()), FakeProblem(project))
    np.testing.assert_allclose(found, mean / total)


def test_the_result_of_the_online_oracle_is_the_mean_of_its_iterates(known):
    subproblem = Subproblem(FullBatchView(known.problem), np.zeros(4), 1.0)
    for given, controls in (((2.0, 5.0), (2.0, 5.0)), (("theory", "theory"), (np.sqrt(20), 20))):
        options = IPC(
            oracle="online", inner_iter=20, max_iter=1, proximity=1.0, online_V=given[0], online_alpha=given[1]
        )
        result = options.solve(known.problem, Start(np.zeros(4)), np.random.default_rng(0))
        steps, iterates = OnlineSteps(np.zeros(4), *controls), []
        for _ in range(20):
            iterates.append(steps.z)
            steps.advance(subproblem, everywhere)
        np.testing.assert_allclose(result.model_state, np.mean(iterates, axis=0))


def test_control_parameters():
    """ "auto" is V times the largest curvature: here those of the objective and of the disk are 1 + rho_hat."""
    subproblem, rng = Subproblem(Source(), CENTER, RHO_HAT), np.random.default_rng(0)

    def controls(V, alpha):
        return control_parameters(V, alpha, 50, subproblem, CENTER, everywhere, rng)

    assert controls(2.0, "auto") == (2.0, pytest.approx(2.0 * (1 + RHO_HAT)))
    assert controls("theory", "theory") == (np.sqrt(50), 50)
    assert controls(0.3, 0.7) == (0.3, 0.7)


def test_ipp_ssg_is_the_switching_oracle_with_shorter_steps(parity_problem):
    """With no weak convexity and no limit of the step they are the same."""
    problem = parity_problem(DemographicParity, 0.2)
    one = IPC(max_iter=3, inner_iter=25, proximity=0.7, weak_convexity=0.0, precision=1e-2)
    other = IPPSSG(max_iter=3, inner_iter=25, proximity=0.7, learning_rate=1e9, tolerance=1e-4)
    results = [solver.solve(problem, None, np.random.default_rng(0)) for solver in (one, other)]
    np.testing.assert_array_equal(results[0].model_state, results[1].model_state)


# --- known optima, and how it ends


@pytest.mark.parametrize(
    ("options", "atol"),
    [
        (IPC(max_iter=4, inner_iter=200, proximity=0.5), 0.02),
        (IPC(max_iter=5, inner_iter=100, oracle="online", proximity=0.5), 0.01),
        (IPC(max_iter=8, oracle="augmented_lagrangian", proximity=0.5), 1e-3),
        (IPC(max_iter=8, oracle="level_set", proximity=0.5), 1e-3),
    ],
    ids=["switching", "online", "augmented_lagrangian", "level_set"],
)
def test_known_optimum(known, options, atol):
    result = options.solve(known.problem, None, np.random.default_rng(0))
    assert result.objective == pytest.approx(known.objective, abs=atol)
    assert result.surrogate_violation <= 0.02
    assert result.message == ""
    assert len(result.history) == options.max_iter


def test_the_switching_oracle_stays_feasible_up_to_the_square_of_the_precision(parity_problem):
    problem = parity_problem(DemographicParity, 0.1)
    result = IPC(max_iter=3, inner_iter=60, precision=0.03).solve(problem, None, np.random.default_rng(0))
    assert max(record["surrogate_violation"] for record in result.history) <= 0.03**2
    start = problem.view(FullBatch).at(problem.start(np.zeros(problem.n_params)))
    assert result.objective < start.objective


@pytest.mark.slow
def test_it_stops_where_it_is_nearly_stationary(known):
    options = IPC(max_iter=30, inner_iter=100, proximity=1.0, stationarity_tol=0.05)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    assert result.status == Status.OPTIMAL
    assert result.n_iter < 30
    assert result.n_iter == len(result.history)
    distance = result.history[-1]["distance"]
    assert distance <= 0.05
    assert distance == pytest.approx(near_stationarity(known.problem, result.model_state, 1.0), abs=1e-6)
    assert all(("distance" in record) == (record["step"] <= 0.1) for record in result.history)
    assert all(record.get("distance", 1.0) > 0.05 for record in result.history[:-1])


def test_it_says_when_it_is_not_nearly_stationary(known):
    options = IPC(max_iter=2, inner_iter=50, proximity=1.0, stationarity_tol=1e-6)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    assert result.status == Status.MAX_ITER
    plain = replace(options, stationarity_tol=None).solve(known.problem, None, np.random.default_rng(0))
    assert plain.status == Status.COMPLETED
    np.testing.assert_array_equal(plain.model_state, result.model_state)


def test_without_a_tolerance_no_distance_is_computed(known):
    """Also where it does not move: with too few inner iterations, of which only the first is feasible."""
    options = IPC(max_iter=3, inner_iter=2, proximity=0.01)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    assert [record["step"] for record in result.history] == [0.0, 0.0, 0.0]
    assert all("distance" not in record for record in result.history)
    assert result.status == Status.COMPLETED


@pytest.mark.parametrize("oracle", ["augmented_lagrangian", "level_set"])
@pytest.mark.parametrize("project", PROJECTIONS.values(), ids=PROJECTIONS.keys())
def test_smooth_oracles_solve_the_subproblem(oracle, project):
    """Definition 2: objective and constraints within the square of the precision, against SLSQP."""
    precision = 0.03
    subproblem = Subproblem(Source(), CENTER, RHO_HAT)
    z = {"augmented_lagrangian": augmented_lagrangian, "level_set": level_set}[oracle](
        subproblem, CENTER, project, precision**2
    )
    bounds = [(-0.7, 0.75)] * 2 if project is not everywhere else None

    def objective(y):
        return ((y - TARGET) ** 2).sum() / 2 + RHO_HAT / 2 * (y - CENTER) @ (y - CENTER)

    best = minimize(
        objective, CENTER, bounds=bounds, constraints={"type": "ineq", "fun": lambda y: -proximal_values(y)[0]}
    )
    assert abs(objective(z) - best.fun) <= precision**2
    assert proximal_values(z)[0].max() <= precision**2
    assert objective(CENTER) - best.fun > 0.3
    np.testing.assert_array_equal(project(z), z)


@pytest.mark.slow
def test_the_level_set_oracle_is_feasible_without_a_tolerance(parity_problem):
    problem = parity_problem(DemographicParity, 0.1)
    options = IPC(max_iter=4, oracle="level_set", precision=0.03)
    result = options.solve(problem, None, np.random.default_rng(0))
    assert max(record["surrogate_violation"] for record in result.history) <= 1e-12
    other = replace(options, oracle="augmented_lagrangian").solve(problem, None, np.random.default_rng(0))
    assert result.objective == pytest.approx(other.objective, abs=4 * 0.03**2)


# --- the drawn iterate


@pytest.mark.slow
@pytest.mark.parametrize("oracle", ["switching", "online"])
def test_the_random_output_is_one_of_the_iterates(known, oracle):
    options = IPC(max_iter=6, inner_iter=20, oracle=oracle, proximity=1.0, online_alpha=2.0)
    iterates = [np.zeros(4)]
    options.solve(known.problem, None, np.random.default_rng(0), lambda record: iterates.append(record["params"]))
    drawn = []
    for seed in range(12):
        result = replace(options, output="random").solve(known.problem, None, np.random.default_rng(seed))
        drawn.append(result.history[-1]["n_iter"])
        np.testing.assert_allclose(result.model_state, iterates[drawn[-1]], atol=1e-12)
        assert len(result.history) == max(drawn[-1], 1)  # the start has a record where it is the result
    again = replace(options, output="random").solve(known.problem, None, np.random.default_rng(seed))
    np.testing.assert_array_equal(result.model_state, again.model_state)
    assert set(drawn) <= set(range(6))
    assert len(set(drawn)) >= 4


# --- constants


@pytest.mark.slow
def test_the_proximity_is_twice_the_estimated_modulus(parity_problem):
    problem = parity_problem(DemographicParity, 0.2)
    options = IPC(max_iter=1, inner_iter=20)
    automatic = options.solve(problem, None, np.random.default_rng(0))
    view, z = FullBatchView(problem), problem.fair_start(None, np.random.default_rng(0))
    rho = modulus(view, z, problem.project, np.random.default_rng(0))
    given = replace(options, proximity=2 * rho, weak_convexity=rho).solve(problem, None, np.random.default_rng(0))
    np.testing.assert_array_equal(automatic.model_state, given.model_state)
    assert weak_convexity(problem, z[: problem.n_params]) == rho > 0.1
    other = replace(options, proximity=4 * rho).solve(problem, None, np.random.default_rng(0))
    assert not np.allclose(other.model_state, given.model_state, atol=1e-4)


@pytest.mark.parametrize(("precision", "n_steps"), [(1e-2, 10_000), (0.1, 100), (0.3, 12)])
def test_inner_iterations_follow_from_the_precision(precision, n_steps):
    assert IPC(precision=precision).n_inner == n_steps
    assert IPC(precision=precision, inner_iter=7).n_inner == 7


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 10}, "batch_size=10 needs oracle='online'; oracle='switching' takes all rows"),
        ({"output": "random", "stationarity_tol": 0.1}, "stationarity_tol=0.1 needs output='last'"),
        ({"proximity": 1.0, "weak_convexity": 1.0}, "weak_convexity must be below proximity, got 1 and 1"),
    ],
)
def test_options_out_of_range(known, options, message):
    with pytest.raises(ValueError, match=message):
        IPC(**options).solve(known.problem, None, np.random.default_rng(0))


# --- mini-batches


def test_mini_batches_come_near_the_optimum(unequal):
    options = IPC(oracle="online", inner_iter=350, max_iter=2, batch_size=20, proximity=1.0, online_alpha=5.0)
    result = options.solve(unequal.problem, None, np.random.default_rng(0))
    start = unequal.problem.view(FullBatch).at(np.zeros(4)).objective
    assert result.objective <= unequal.objective + 0.5 * (start - unequal.objective)
    # 350 steps on 20 of 140 rows are 50 passes
    passes = [record["n_evaluations"] for record in result.history]
    assert passes == [pytest.approx(50, abs=3), pytest.approx(100, abs=4)]
    short = replace(options, inner_iter=20)
    one, same, other = (
        short.solve(unequal.problem, None, np.random.default_rng(seed)).model_state for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_mini_batches_need_terms_that_have_them(make_data, make_problem, mean_gap):
    data = make_data()
    problem = make_problem(data, mean_gap(data, 0.1, FullBatch))
    make_solver("ipc", {}, problem)
    options = IPC(oracle="online", batch_size=10, inner_iter=5, max_iter=1, proximity=1.0)
    with pytest.raises(IncompatibleProblem, match="solver 'ipc' needs the view Stochastic, which 'mean_gap'"):
        options.solve(problem, None, np.random.default_rng(0))
    replace(options, batch_size=None).solve(problem, None, np.random.default_rng(0))


@pytest.mark.slow
def test_auxiliary_variables_of_many_groups(make_data, make_problem):
    """They are variables like others, for every oracle."""
    data = make_data(counts=(9, 9, 9, 9, 9, 9, 9, 9))
    problem = make_problem(data, LossParity(0.2).unchecked(data))
    for oracle in ("switching", "online", "augmented_lagrangian", "level_set"):
        options = IPC(oracle=oracle, inner_iter=30, max_iter=2, proximity=1.0)
        result = options.solve(problem, None, np.random.default_rng(0))
        assert result.model_state.shape == (problem.n_params,)
        assert result.objective < problem.view(FullBatch).at(problem.start(np.zeros(problem.n_params))).objective
