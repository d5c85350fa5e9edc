"""The switching subgradient method: its guarantee on convex problems with a known solution."""

from dataclasses import dataclass

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.domains import Box
from fairconstrained.solvers import SSG, Status, SwitchingSubgradient, make_solver
from fairconstrained.solvers.published.switching_subgradient import SwitchingSteps
from fairconstrained.views import FullBatch


def switch(source, start, project, tolerance, n_iter, rate=None):
    """The steps after some of them on the points of a source."""
    steps = SwitchingSteps(start, tolerance, rate)
    while not steps.finished and n_iter:
        steps.advance(source, project)
        n_iter -= 1
    return steps


@dataclass
class Quadratic:
    """minimise |z - target|^2 / 2 subject to given convex functions <= 0, as a source of points."""

    target: np.ndarray
    values: object
    jacobian: object
    asked: int = 0

    def at(self, z):
        self.asked += 1
        return QuadraticPoint(self, z)


class QuadraticPoint:
    def __init__(self, source, z):
        self._gradient, self._jacobian = z - source.target, source.jacobian(z)
        self.objective = float(self._gradient @ self._gradient) / 2
        self.constraints = source.values(z)
        self.scores = z

    def gradient(self, objective, multipliers):
        return objective * self._gradient + multipliers @ self._jacobian


#: problem, optimum, multipliers
LINE = (
    Quadratic(np.array([2.0]), lambda z: z - 1, lambda z: np.ones((1, 1))),
    np.array([1.0]),
    np.array([1.0]),
)
DISK = (
    Quadratic(np.array([1.2, 1.6]), lambda z: np.array([(z @ z - 1) / 2]), lambda z: z[None, :]),
    np.array([0.6, 0.8]),
    np.array([1.0]),
)
CORNER = (
    Quadratic(np.array([2.0, 3.0]), lambda z: z - np.array([1.0, 0.5]), lambda z: np.eye(2)),
    np.array([1.0, 0.5]),
    np.array([1.0, 2.5]),
)
INACTIVE = (
    Quadratic(np.array([0.3, -0.2]), lambda z: np.array([(z @ z - 1) / 2]), lambda z: z[None, :]),
    np.array([0.3, -0.2]),
    np.array([0.0]),
)
SMALL = {"line": LINE, "disk": DISK, "corner": CORNER, "inactive": INACTIVE}


def everywhere(z):
    return z


@pytest.mark.parametrize(("source", "optimum", "multipliers"), SMALL.values(), ids=SMALL.keys())
@pytest.mark.parametrize("start", [0.0, 2.5])
def test_known_optimum_to_the_tolerance(source, optimum, multipliers, start):
    """f <= f* + eps and g <= eps are the method's guarantee; duality bounds f from below by f* - |lambda| eps."""
    eps = 0.01
    best = switch(source, np.full(optimum.size, start), everywhere, lambda t: eps, 5000)
    value = source.at(optimum).objective
    # the multipliers are the ones of the optimum
    np.testing.assert_allclose(source.at(optimum).gradient(1.0, multipliers), 0, atol=1e-12)
    assert best.best.objective <= value + eps
    assert best.best.objective >= value - multipliers.sum() * eps - 1e-12
    assert source.at(best.output()).constraints.max() <= eps
    assert source.at(best.output()).objective == best.best.objective
    # strong convexity turns the values into a distance
    assert np.linalg.norm(best.output() - optimum) <= np.sqrt(2 * (1 + multipliers.sum()) * eps)


def test_diminishing_tolerance_ends_closer():
    source, optimum, _ = DISK
    coarse = switch(source, np.zeros(2), everywhere, lambda t: 0.05, 3000)
    fine = switch(source, np.zeros(2), everywhere, lambda t: 0.5 / (t + 1) ** 0.5, 3000)
    assert np.linalg.norm(fine.output() - optimum) < np.linalg.norm(coarse.output() - optimum)


def test_iterates_are_projected():
    source, _, _ = CORNER
    box = Box(0.0, np.array([0.4, 9.0]))
    best = switch(source, np.zeros(2), box.project, lambda t: 0.005, 5000)
    np.testing.assert_allclose(best.output(), [0.4, 0.5], atol=0.05)
    assert best.output()[0] <= 0.4


def test_without_a_feasible_iterate_the_start_is_returned():
    source = Quadratic(np.zeros(1), lambda z: np.array([1.0 + abs(z[0])]), lambda z: np.sign(z)[None, :])
    start = np.array([4.0])
    best = switch(source, start, everywhere, lambda t: 1e-3, 20)
    assert best.n_feasible == 0
    assert best.best.objective == np.inf
    np.testing.assert_array_equal(best.output(), start)


def test_a_zero_gradient_ends_the_run():
    source, optimum, _ = INACTIVE
    before = source.asked
    best = switch(source, optimum, everywhere, lambda t: 0.01, 1000)
    assert source.asked == before + 1
    np.testing.assert_array_equal(best.output(), optimum)


def test_the_best_of_the_nearly_feasible_iterates_is_kept():
    line, _, _ = LINE
    seen = []

    class Watched:
        def at(self, z):
            seen.append((z, line.at(z)))
            return seen[-1][1]

    best = switch(Watched(), np.zeros(1), everywhere, lambda t: 0.1, 7)
    assert len(seen) == 7
    feasible = [(point.objective, z) for z, point in seen if point.constraints.max() <= 0.1]
    assert best.n_feasible == len(feasible)
    assert (best.best.objective, best.output()) == min(feasible)


# --- the solver


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["static", "diminishing"])
def test_known_problem(known, schedule):
    eps = {"static": 1e-3, "diminishing": 1.0}[schedule]
    options = {"max_iter": 1500, "schedule": schedule, "eps": eps}
    solver = make_solver("switching_subgradient", options, known.problem)
    result = solver.solve(known.problem, None, np.random.default_rng(0))
    assert result.objective == pytest.approx(known.objective, abs=5e-3)
    assert result.constraint_values["mean_gap"] <= 0.05 + 5e-3


def test_the_schedules_differ(parity_problem):
    problem = parity_problem(DemographicParity, 0.2)
    results = [
        SwitchingSubgradient(max_iter=50, eps=0.05, schedule=schedule).solve(problem, None, np.random.default_rng(0))
        for schedule in ("static", "diminishing")
    ]
    assert not np.array_equal(results[0].model_state, results[1].model_state)


@pytest.mark.slow
@pytest.mark.parametrize("notion", [StatisticalParity, DemographicParity])
def test_kappa_bounds_the_surrogate(parity_problem, notion):
    problem = parity_problem(notion, 0.1)
    result = SwitchingSubgradient(max_iter=400, eps=1e-3).solve(problem, None, np.random.default_rng(0))
    assert result.surrogate_violation <= 1e-3
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    assert result.objective < start.objective
    assert result.status in (Status.COMPLETED, Status.INFEASIBLE)


@pytest.mark.slow
def test_the_history_stays_short(parity_problem):
    result = SwitchingSubgradient(max_iter=1000).solve(
        parity_problem(DemographicParity, 0.2), None, np.random.default_rng(0)
    )
    assert 100 <= len(result.history) <= 250


def test_ssg_takes_a_fixed_step_on_the_objective():
    """By hand: three steps of 0.3 times the gradient, then a step to the line, as long as its excess."""
    source, _, _ = LINE
    seen = []
    switch(source, np.zeros(1), lambda z: seen.append(z.copy()) or z, lambda t: 0.0, 5, rate=0.3)
    expected = [0.6, 1.02, 1.0, 1.3, 1.0]  # 2 (1 - 0.7), 0.6 + 0.3 * 1.4, back, 1 + 0.3, back
    np.testing.assert_allclose(np.ravel(seen), expected)


@pytest.mark.slow
def test_ssg_on_a_known_problem(known):
    result = SSG(max_iter=3000, learning_rate=0.02, eps=1e-4).solve(known.problem, None, np.random.default_rng(0))
    assert result.objective == pytest.approx(known.objective, abs=0.01)
    assert result.constraint_values["mean_gap"] <= 0.05 + 2e-4
    np.testing.assert_allclose(result.model_state, known.params, atol=0.1)
