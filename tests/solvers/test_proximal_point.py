"""Inexact proximal point methods: the inner methods against restatements, and known optima."""

import numpy as np
import pytest

from fairconstrained import ConvergenceWarning, RateParityClassifier
from fairconstrained.constraints import RateGap
from fairconstrained.datasets import make_biased_classification
from fairconstrained.domains import Box
from fairconstrained.objectives import Logistic
from fairconstrained.points import worst_gradient
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import IPPSSG, IPPConEx
from fairconstrained.solvers._proximal import Subproblem
from fairconstrained.solvers.published.proximal_point import switching


class Source:
    """``f = |z - (2, 1)|^2 / 2`` over a disk and a half plane."""

    def __init__(self):
        self.n_evaluations = 0

    def at(self, z):
        self.n_evaluations += 1
        return SourcePoint(z)


class SourcePoint:
    def __init__(self, z):
        self._z, self.scores = z, z
        self.objective = float(((z - [2.0, 1.0]) ** 2).sum()) / 2
        self.constraints = np.array([z @ z / 2 - 0.5, z[0] - 0.8])

    def gradient(self, objective, multipliers):
        return objective * (self._z - [2.0, 1.0]) + multipliers @ np.stack([self._z, [1.0, 0.0]])


class Everywhere:
    @staticmethod
    def project(z):
        return z


class InTheBox:
    project = staticmethod(Box(-0.7, 0.75).project)


CENTER, RHO = np.array([0.3, -0.4]), 0.5


def values(z):
    """F and G of the subproblem, with their gradients."""
    away = RHO / 2 * ((z - CENTER) ** 2).sum()
    f, c = ((z - [2.0, 1.0]) ** 2).sum() / 2 + away, np.array([z @ z / 2 - 0.5, z[0] - 0.8]) + away
    slope = RHO * (z - CENTER)
    return f, c, z - [2.0, 1.0] + slope, np.stack([z, [1.0, 0.0]]) + slope


def test_the_proximal_terms():
    z, multipliers = np.array([0.7, 0.2]), np.array([0.3, 1.4])
    point = Subproblem(Source(), CENTER, RHO).at(z)
    f, c, gradient, jacobian = values(z)
    assert point.objective == pytest.approx(f)
    np.testing.assert_allclose(point.constraints, c)
    np.testing.assert_allclose(point.gradient(2.0, multipliers), 2 * gradient + multipliers @ jacobian)
    assert point.worst == pytest.approx(c.max())  # machines round it differently
    np.testing.assert_allclose(worst_gradient(point), jacobian[c.argmax()])


def test_subgradient_steps_compute_no_losses_of_the_objective(make_data, make_problem, monkeypatch):
    data = make_data()
    problem = make_problem(data, RateGap(0.05, rate="sigmoid").bind(data))

    def refused(self, scores, targets):
        raise AssertionError("nothing asks for the objective")

    source = Subproblem(FullBatchView(problem), np.zeros(problem.n_params), RHO)
    expected = switching(source, np.zeros(problem.n_params), lambda z: z, 5, lambda k: 0.5, 0.0)
    monkeypatch.setattr(Logistic, "of", refused)
    found = switching(source, np.zeros(problem.n_params), lambda z: z, 5, lambda k: 0.5, 0.0)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("problem", [Everywhere, InTheBox])
def test_the_steps_of_the_switching_method(problem):
    options = IPPSSG(inner_iter=25, proximity=RHO, learning_rate=0.8, tolerance=1e-3)
    z, total, mean, kinds = CENTER, 0.0, np.zeros(2), []
    for k in range(25):
        _, c, gradient, jacobian = values(z)
        kinds.append(c.max() <= 1e-3)
        if kinds[-1]:
            total, mean = total + k + 1, mean + (k + 1) * z
        step = min(0.8, 2 / (RHO * (k + 2)))
        z = problem.project(z - step * (gradient if kinds[-1] else jacobian[c.argmax()]))
    assert {True, False} == set(kinds)
    found = options.solve_subproblem(Subproblem(Source(), CENTER, RHO), CENTER, problem)
    np.testing.assert_allclose(found, mean / total)


@pytest.mark.parametrize("problem", [Everywhere, InTheBox])
def test_the_steps_of_constraint_extrapolation(problem):
    options = IPPConEx(inner_iter=25, proximity=RHO, learning_rate=0.4, tau=2.0)
    t0 = 2 / (RHO * 0.4) - 1
    z, y, total, mean = CENTER, 0.0, 0.0, np.zeros(2)
    lines = [values(CENTER)[1].max()] * 2
    seen = []
    for k in range(25):
        theta = (k + t0 + 1) / (k + t0 + 2)
        y = max(y + ((1 + theta) * lines[-1] - theta * lines[-2]) * (k + 1) / 2.0, 0.0)
        seen.append(y)
        _, c, gradient, jacobian = values(z)
        moved = problem.project(z - 2 / (RHO * (k + t0 + 1)) * (gradient + y * jacobian[c.argmax()]))
        lines.append(c.max() + jacobian[c.argmax()] @ (moved - z))
        z, total, mean = moved, total + k + t0 + 2, mean + (k + t0 + 2) * moved
    assert max(seen) > 0.1
    found = options.solve_subproblem(Subproblem(Source(), CENTER, RHO), CENTER, problem)
    np.testing.assert_allclose(found, mean / total)


def test_the_first_step_of_constraint_extrapolation_has_the_given_length():
    options = IPPConEx(inner_iter=1, proximity=1e-3, learning_rate=0.3)
    start = np.array([0.1, 0.1])  # feasible, so that the multiplier stays zero
    found = options.solve_subproblem(Subproblem(Source(), start, 1e-3), start, Everywhere)
    np.testing.assert_allclose(found, start - 0.3 * (start - [2.0, 1.0]))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "atol"),
    [(IPPSSG(max_iter=30, learning_rate=0.3), 0.05), (IPPConEx(max_iter=60), 0.005)],
    ids=["ssg", "conex"],
)
def test_known_optimum(known, solver, atol):
    result = solver.solve(known.problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, known.params, atol=atol)
    assert result.objective == pytest.approx(known.objective, abs=atol)
    assert result.constraint_values["mean_gap"] <= 0.05 + 2e-3
    assert len(result.history) == solver.max_iter
    assert result.n_evaluations == solver.max_iter * (solver.inner_iter + 1 + isinstance(solver, IPPConEx)) + 1


def test_from_an_infeasible_start_the_nearest_iterate_is_taken(known):
    """Too few steps to become feasible: the least violated iterate goes on."""
    view = FullBatchView(known.problem)
    start = 5 * known.params
    options = IPPSSG(inner_iter=3, proximity=0.1, learning_rate=1e-3)
    found = options.solve_subproblem(Subproblem(view, start, 0.1), start, known.problem)
    before, after = (view.at(z).constraints.max() for z in (start, found))
    assert 0 < after < before


def test_a_subproblem_that_diverges_ends_the_run():
    X, y, group = make_biased_classification(n_samples=600, random_state=0)
    options = {"learning_rate": 100.0, "proximity": 0.3, "tau": 1e-3}
    model = RateParityClassifier(0.05, solver="ipp_conex", solver_options=options)
    with pytest.warns(
        ConvergenceWarning,
        match="stopped in iteration 1: it met a loss that is not finite; the last parameters",
    ):
        model.fit(X, y, sensitive_features=group)
    assert np.isfinite(model.coef_).all()
    assert model.constraint_values_["demographic_parity"] <= 0.05
