"""Projected descent: optima in a domain, when it stops, and what the augmented Lagrangian makes of it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained.constraints import RateGap
from fairconstrained.domains import Box, L1Ball, L2Ball, Product
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Logistic
from fairconstrained.problem import FullBatchView, Problem
from fairconstrained.solvers import AugmentedLagrangian
from fairconstrained.solvers._quasi_newton import QuasiNewtonDescent
from fairconstrained.solvers._spectral import SpectralDescent, descend

H = np.array([[9.0, 2.0, 0.0], [2.0, 1.0, 0.3], [0.0, 0.3, 0.5]])
B = np.array([1.0, -2.0, 1.5])


def quadratic(x):
    return float(x @ H @ x / 2 + B @ x), H @ x + B


def itself(x):
    return x


@pytest.mark.parametrize("domain", [Box(-0.5, 0.8), Box(-100, 100), L2Ball(1.0)], ids=["box", "large box", "ball"])
def test_the_minimum_in_a_domain(domain):
    found, settled = descend(SpectralDescent(itself, np.zeros(3), domain.project, quadratic), 500, 1e-10)
    constraints = [] if isinstance(domain, Box) else [{"type": "ineq", "fun": lambda x: 1 - x @ x}]
    bounds = [(domain.lower, domain.upper)] * 3 if isinstance(domain, Box) else None
    best = minimize(quadratic, np.zeros(3), jac=True, bounds=bounds, constraints=constraints, tol=1e-12).x
    assert settled
    np.testing.assert_allclose(found, best, atol=1e-5)
    assert np.abs(domain.project(found - quadratic(found)[1]) - found).max() < 1e-6


def test_the_start_is_projected_and_every_iterate_stays_inside():
    seen = []

    def at(x):
        seen.append(x)
        return x

    descend(SpectralDescent(at, np.full(3, 7.0), L1Ball(1.0).project, quadratic), 100, 1e-10)
    assert max(np.abs(x).sum() for x in seen) <= 1 + 1e-12


def test_it_stops_where_little_is_gained():
    """Without ``ftol`` it goes on in the flat directions; where that ends depends on rounding, and is not asserted."""
    curvatures = np.logspace(-6, 0, 12)
    counts = {}

    def slow(x):
        return 1 + float(curvatures @ (x - 1) ** 2), 2 * curvatures * (x - 1)

    for ftol in (0.0, 1e-6):
        seen = []
        descent = SpectralDescent(lambda x, seen=seen: seen.append(x) or x, np.zeros(12), itself, slow)
        found, settled = descend(descent, 5000, 1e-14, ftol)
        assert settled or ftol == 0
        assert slow(found)[0] < 1 + 1e-4
        counts[ftol] = len(seen)
    assert counts[1e-6] < counts[0.0] / 2
    assert not descend(SpectralDescent(itself, np.zeros(12), itself, slow), 5, 1e-12)[1]


def test_a_constant_step_is_gradient_descent():
    descent = SpectralDescent(itself, np.ones(3), itself, quadratic, step=0.01)
    assert descent.advance()
    np.testing.assert_allclose(descent.z, np.ones(3) - 0.01 * quadratic(np.ones(3))[1])


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_units_do_not_matter(unit):
    """A quadratic function of ``z / unit`` in a ball, from zero and from the border."""
    inverse = np.array([[3.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    minimiser = np.array([0.5, -1.0, 2.0])

    def value_and_gradient(z):
        residual = z / unit - minimiser
        return 1 + float(residual @ inverse @ residual) / 2, inverse @ residual / unit

    for start in (np.zeros(3), np.array([0.0, 4.0, 0.0])):
        project = L2Ball(4.0 * unit).project
        # without a unit of the gradient there is none that is small enough
        descent = SpectralDescent(itself, unit * start, project, value_and_gradient)
        found, settled = descend(descent, 300, gtol=-1.0, ftol=1e-14)
        assert settled
        np.testing.assert_allclose(found / unit, minimiser, atol=1e-6)


def test_quasi_newton_steps_take_fewer_evaluations():
    """The minimiser is on the border of a ball, and curvatures differ by a factor of 10,000."""
    curvatures, counts, found = np.logspace(-2, 2, 30), {}, {}

    def bent(x, name):
        counts[name] = counts.get(name, 0) + 1
        residual = x - np.linspace(3.0, -1.0, 30)
        return 1 + float(curvatures @ residual**2) / 2, curvatures * residual

    project = L1Ball(10.0).project
    for name, descent in {
        "gradient": SpectralDescent(itself, np.zeros(30), project, lambda x: bent(x, "gradient")),
        "curvature": QuasiNewtonDescent(lambda x: bent(x, "curvature"), np.zeros(30), project),
    }.items():
        found[name], settled = descend(descent, 1000, 1e-8)
        assert settled
    np.testing.assert_allclose(found["curvature"], found["gradient"], atol=1e-6)
    assert np.abs(found["curvature"]).sum() == pytest.approx(10)
    assert counts["curvature"] < counts["gradient"] / 2


def test_quasi_newton_steps_go_on_where_the_function_is_not_convex():
    """The start is near a maximum between two minima; the slope of the other function is the same everywhere."""

    def wavy(x):
        return float(np.cos(3 * x).sum() + x @ x / 20), -3 * np.sin(3 * x) + x / 10

    found, settled = descend(QuasiNewtonDescent(wavy, np.full(4, 0.01), Box(-2, 2).project), 200, 1e-8)
    assert settled
    np.testing.assert_allclose(wavy(found)[1], 0, atol=1e-7)
    flat = QuasiNewtonDescent(lambda x: (float(x.sum()), np.ones(3)), np.ones(3), Box(-1, 1).project)
    np.testing.assert_allclose(descend(flat, 50, 1e-8)[0], -1)


@pytest.fixture
def rates(make_data):
    data = make_data((150, 120), shift=0.8)
    return Problem(Logistic().bind(data), (RateGap(0.05, rate="sigmoid").unchecked(data),), data, model=LinearModel(3))


@pytest.mark.parametrize("radius", [0.3, 50.0])
@pytest.mark.parametrize("ball", [L1Ball, L2Ball])
def test_the_augmented_lagrangian_in_a_domain(rates, ball, radius):
    """Against SLSQP; the l1 norm is that of six non-negative variables there."""
    problem = replace(rates, domain=Product(((slice(0, 3), ball(radius)),)))
    result = AugmentedLagrangian(tol=1e-7, max_iter=100, inner_iter=200).solve(problem, None, np.random.default_rng(0))
    view = FullBatchView(rates)
    split = np.hstack([np.eye(3), -np.eye(3), np.zeros((3, 1))])
    split = np.vstack([split, np.eye(7)[-1]])

    def norm(v):
        return v[:6].sum() if ball is L1Ball else np.linalg.norm(split[:3] @ v)

    best = minimize(
        lambda v: view.at(split @ v).objective,
        np.full(7, 0.01),
        bounds=[(0, None)] * 6 + [(None, None)],
        constraints=[
            {"type": "ineq", "fun": lambda v: -view.at(split @ v).constraints},
            {"type": "ineq", "fun": lambda v: radius - norm(v)},
        ],
        options={"maxiter": 500, "ftol": 1e-12},
    )
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best.fun, abs=2e-5)
    assert result.constraint_values["demographic_parity"] <= 0.05 + 1e-6
    assert np.linalg.norm(result.model_state[:3], 1 if ball is L1Ball else 2) <= radius + 1e-12
