"""The feasibility phase: what it leaves alone, what it finds, and what it says when there is nothing to find."""

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity
from fairconstrained.domains import Box
from fairconstrained.problem import FullBatchView, Start
from fairconstrained.solvers import IPC, Status, _feasibility
from fairconstrained.solvers._base import Recorder, surrogate_result
from fairconstrained.solvers._feasibility import FromFeasible, find_feasible


class Quartic:
    """``c = ((z_1^2 - 1)^2 + z_1 / 4 + z_2^2 - level, z_2 - 1)``: the first has two minima along z_1."""

    def __init__(self, level):
        self.level, self.n = level, 0

    def at(self, z):
        self.n += 1
        return QuarticPoint(z, self.level)


class QuarticPoint:
    def __init__(self, z, level):
        self.scores, self.objective = z, 0.0
        self.constraints = np.array([(z[0] ** 2 - 1) ** 2 + z[0] / 4 + z[1] ** 2 - level, z[1] - 1])
        self._jacobian = np.array([[4 * z[0] * (z[0] ** 2 - 1) + 0.25, 2 * z[1]], [0.0, 1.0]])

    def gradient(self, objective, multipliers):
        return multipliers @ self._jacobian


def everywhere(z):
    return z


def never():
    raise AssertionError("a feasible start needs no proximal step")


def test_a_feasible_start_is_kept():
    source, start = Quartic(1.0), np.array([-1.0, 0.1])
    z, is_stationary = find_feasible(source, start, everywhere, 0.0, never)
    assert z is start
    assert (is_stationary, source.n) == (False, 1)
    slightly = Quartic(-0.3)
    z, _ = find_feasible(slightly, start, everywhere, 0.1, never)
    assert 0 < slightly.at(z).constraints.max() <= 0.1


@pytest.mark.parametrize("start", [[-2.0, 1.5], [-0.5, 3.0], [3.0, -1.0]])
def test_feasible_points_are_found(start):
    source = Quartic(0.5)
    z, is_stationary = find_feasible(source, np.array(start), everywhere, 1e-4, lambda: 10.0)
    assert source.at(z).constraints.max() <= 1e-4 < source.at(np.array(start)).constraints.max()
    assert not is_stationary


def test_a_local_minimum_of_the_violation_is_recognised():
    """With the level -0.1, only the minimum near z_1 = -1 is feasible; that near 1 has a value of 0.23."""
    roots = np.roots([4.0, 0.0, -4.0, 0.25]).real
    right, left, source = roots.max(), roots.min(), Quartic(-0.1)
    z, is_stationary = find_feasible(source, np.array([1.5, 0.5]), everywhere, 1e-4, lambda: 10.0)
    assert is_stationary
    np.testing.assert_allclose(z, [right, 0.0], atol=1e-2)
    assert source.at(z).constraints.max() == pytest.approx((right**2 - 1) ** 2 + right / 4 + 0.1, abs=1e-4)
    other, is_stationary = find_feasible(source, np.array([-1.5, 0.5]), everywhere, 1e-4, lambda: 10.0)
    assert not is_stationary
    assert other[0] == pytest.approx(left, abs=0.4)
    assert source.at(other).constraints.max() <= 1e-4


def test_a_minimum_at_the_edge_of_the_domain_is_recognised():
    project = Box(0.2, 0.6).project
    z, is_stationary = find_feasible(Quartic(-0.1), np.array([0.3, 0.5]), project, 1e-4, lambda: 10.0)
    assert is_stationary
    np.testing.assert_allclose(z, [0.6, 0.2], atol=1e-2)


def test_few_steps_are_no_verdict(monkeypatch):
    monkeypatch.setattr(_feasibility, "_MOST_STEPS", 2)
    source = Quartic(0.5)
    z, is_stationary = find_feasible(source, np.array([5.0, 5.0]), everywhere, 1e-4, lambda: 1000.0)
    assert source.at(z).constraints.max() > 1
    assert not is_stationary


class Stationary(FromFeasible):
    is_stationary = True

    def step(self, source, problem):
        raise AssertionError("it is finished")


def test_the_metric_decides_the_status(known):
    """At a stationary point of the surrogate's violation, the metric may hold all the same."""
    near, far = (
        Stationary(IPC(), z).conclude(surrogate_result(known.problem, z, 1, 0, Recorder(None, 0)), known.problem)
        for z in (known.params, 10 * known.params)
    )
    assert (near.status, far.status) == (Status.COMPLETED, Status.INFEASIBLE_STATIONARY)
    assert "stationary point of the violation" in near.message
    assert near.message == far.message


def test_statuses_that_are_infeasible():
    assert {status for status in Status if status.is_infeasible} == {"infeasible", "infeasible_stationary"}


def test_a_solver_begins_where_the_constraints_hold(parity_problem):
    """From far out, before the first subproblem."""
    problem = parity_problem(DemographicParity, 0.2)
    start = Start(np.array([1.0, 1.0, 0.5, 0.0]))
    assert FullBatchView(problem).at(problem.start(start.model_state)).constraints.max() > 0.1
    result = IPC(max_iter=2, inner_iter=40, proximity=1.0).solve(problem, start, np.random.default_rng(0))
    assert result.history[0]["surrogate_violation"] <= 1e-4


class Slope:
    """``c = z - 1``, whose proximal steps have the length 1 / r."""

    def at(self, z):
        return SlopePoint(z)


class SlopePoint:
    def __init__(self, z):
        self.scores, self.objective, self.constraints = z, 0.0, z - 1

    def gradient(self, objective, multipliers):
        return multipliers


def test_steps_become_longer(monkeypatch):
    """Steps of one length would be 99."""
    monkeypatch.setattr(_feasibility, "_MOST_STEPS", 12)
    z, is_stationary = find_feasible(Slope(), np.array([100.0]), everywhere, 0.0, lambda: 1.0)
    assert z <= 1.0
    assert not is_stationary
