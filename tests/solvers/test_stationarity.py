"""Near-stationarity against SLSQP, and estimates of curvature against eigenvalues."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from fairconstrained.constraints import RateGap
from fairconstrained.domains import Box, L1Ball, L2Ball, Simplex
from fairconstrained.points import objective_gradient
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import near_stationarity, stationarity
from fairconstrained.solvers._curvature import extreme_curvatures, modulus
from fairconstrained.solvers._proximal import Subproblem
from fairconstrained.solvers._stationarity import _nearest, proximal_distance, proximal_solution


class Quadratics:
    """An objective and m constraints ``z'Az/2 + b'z + c`` with random indefinite matrices."""

    def __init__(self, d, m, seed):
        rng = np.random.default_rng(seed)
        parts = rng.normal(size=(m + 1, d, d)) / np.sqrt(2 * d)
        self.A = parts + parts.transpose(0, 2, 1)
        self.b, self.c = rng.normal(size=(m + 1, d)), np.append(0.0, -rng.uniform(0, 1, m))
        self.modulus = -min(np.linalg.eigvalsh(A)[0] for A in self.A)
        self.start = rng.normal(size=d) / 2

    def at(self, z):
        return QuadraticsPoint(self, z)


class QuadraticsPoint:
    def __init__(self, source, z):
        self._gradients = source.A @ z + source.b
        values = (source.A @ z / 2 + source.b) @ z + source.c
        self.objective, self.constraints, self.scores = float(values[0]), values[1:], z

    def gradient(self, objective, multipliers):
        return np.append(objective, multipliers) @ self._gradients


def by_slsqp(source, z, r, domain):
    """The distance, with the domain as bounds or as one more constraint."""
    level = max(source.at(z).constraints.max(initial=0.0), 0.0)
    units = np.eye(source.at(z).constraints.size)
    constraints = [
        {
            "type": "ineq",
            "fun": lambda y: level - source.at(y).constraints - r / 2 * ((y - z) @ (y - z)),
            "jac": lambda y: -np.array([source.at(y).gradient(0.0, unit) + r * (y - z) for unit in units]),
        }
    ] * (len(units) > 0)
    if isinstance(domain, L2Ball):
        constraints += [{"type": "ineq", "fun": lambda y: domain.radius**2 - y @ y, "jac": lambda y: -2 * y}]
    found = minimize(
        lambda y: source.at(y).objective + r / 2 * ((y - z) @ (y - z)),
        z,
        jac=lambda y: objective_gradient(source.at(y)) + r * (y - z),
        method="SLSQP",
        bounds=[(domain.lower, domain.upper)] * z.size if isinstance(domain, Box) else None,
        constraints=constraints,
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return float(np.linalg.norm(found.x - z))


def everywhere(z):
    return z


@pytest.mark.parametrize("domain", [None, Box(-0.5, 0.5), L2Ball(0.8)], ids=["none", "box", "ball"])
@pytest.mark.parametrize(("d", "m"), [(2, 1), (5, 0), (5, 2), (20, 8)])
@pytest.mark.parametrize("seed", range(2))
def test_distance_is_that_of_slsqp(d, m, domain, seed):
    source = Quadratics(d, m, seed)
    project = everywhere if domain is None else domain.project
    z, r = project(source.start), 2 * source.modulus
    distance = proximal_distance(source, z, project, r)
    assert distance == pytest.approx(by_slsqp(source, z, r, domain), abs=1e-6)
    assert distance > 1e-3


def test_many_variables_in_an_l1_ball_satisfy_the_optimality_conditions():
    """From the solution y, the multipliers that fit best leave no projected gradient."""
    source = Quadratics(300, 3, 0)
    project, r = L1Ball(5.0).project, 2 * source.modulus
    z = project(3 * source.start)
    level = max(source.at(z).constraints.max(), 0.0)
    subproblem = Subproblem(source, z, r)
    y = proximal_solution(subproblem, z, project, Box(0.0, np.inf), 1.0, level).z
    point = subproblem.at(y)
    assert point.constraints.max() <= level + 1e-6
    active = [unit for unit, value in zip(np.eye(3), point.constraints, strict=True) if value > level - 1e-6]
    assert len(active) in (1, 2)

    def residual(multipliers):
        lagrangian = point.gradient(1.0, np.abs(multipliers) @ np.array(active))
        return np.linalg.norm(project(y - lagrangian) - y)

    found = minimize(residual, np.ones(len(active)), method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12})
    assert found.fun <= 1e-5


def test_the_largest_of_several_functions():
    """With the dual set `Simplex`: the proximal point of a maximum, against SLSQP in (y, t)."""
    source = Quadratics(4, 3, 1)
    z, r = source.start, 2 * source.modulus
    y = proximal_solution(Subproblem(source, z, r), z, everywhere, Simplex(), 0.0).z
    found = minimize(
        lambda v: v[-1] + r / 2 * ((v[:-1] - z) @ (v[:-1] - z)),
        np.append(z, 10.0),
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: v[-1] - source.at(v[:-1]).constraints},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    np.testing.assert_allclose(y, found.x[:-1], atol=1e-5)


# --- problems of the package


@pytest.mark.parametrize("domain", [None, Box(-0.3, 0.3)], ids=["none", "box"])
def test_rates_of_two_groups(parity_problem, domain):
    problem = replace(parity_problem(RateGap, 0.1), domain=domain)
    view, r = FullBatchView(problem), 2.0
    params = problem.project(np.array([0.5, -0.2, 0.1, 0.0]))
    expected = by_slsqp(view, problem.start(params), r, domain)
    assert near_stationarity(problem, params, r) == pytest.approx(expected, abs=1e-5)
    assert expected > 0.03


def test_the_optimum_is_stationary(known, unequal):
    for problem, params in (known[:2], unequal[:2]):
        assert near_stationarity(problem, params, 1.0) <= 1e-5
        assert near_stationarity(problem, params + 0.1, 1.0) > 1e-2


def test_multipliers_satisfy_the_optimality_conditions_of_the_subproblem(known):
    """Eq. 7, and the bounds on what the problem itself lacks that follow from it."""
    view, r = FullBatchView(known.problem), 1.0
    params = 0.97 * known.params
    report = stationarity(known.problem, params, r)
    z = params + 0.0
    assert report.distance == near_stationarity(known.problem, params, r)
    level = report.violation
    assert level == max(view.at(z).constraints.max(), 0.0)
    nearest = _nearest(view, z, known.problem.project, r)
    y, multipliers = nearest
    assert list(report.multipliers) == list(known.problem.component_names)
    np.testing.assert_array_equal(list(report.multipliers.values()), multipliers)
    assert multipliers.max() > 1e-3
    assert report.distance > 1e-3
    total = multipliers.sum()
    np.testing.assert_allclose(view.at(y).gradient(1.0, multipliers) + (1 + total) * r * (y - z), 0.0, atol=1e-6)
    lagrangian = np.linalg.norm(view.at(y).gradient(1.0, multipliers))
    assert report.kkt_residual == pytest.approx(lagrangian, rel=1e-4)  # no domain, so that the bound is attained
    slack = multipliers @ (level - view.at(y).constraints)
    assert report.complementarity == pytest.approx(slack, abs=1e-6)
    assert report.proximity == r


def test_at_the_optimum_the_multipliers_are_those_of_the_problem(known):
    report = stationarity(known.problem, known.params, 1.0)
    assert report.kkt_residual <= 1e-4
    assert max(report.multipliers.values()) == pytest.approx(known.multiplier, abs=1e-3)


def test_auxiliary_variables_take_part(many_groups):
    """With twelve groups, a centre of the losses is one more variable, with which the optimum is stationary."""
    problem, view = many_groups, FullBatchView(many_groups)
    n_aux = problem.constraints[0].n_aux
    begin, m = problem.start(np.zeros(problem.n_params)), len(problem.component_names)
    found = minimize(
        lambda z: view.at(z).objective,
        begin,
        jac=lambda z: view.at(z).gradient(1.0, np.zeros(m)),
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda z: -view.at(z).constraints,
            "jac": lambda z: -np.array([view.at(z).gradient(0.0, unit) for unit in np.eye(m)]),
        },
        options={"ftol": 1e-15, "maxiter": 500},
    )
    assert n_aux == 1
    assert view.at(found.x).constraints.max() >= -1e-7  # active
    assert near_stationarity(problem, found.x[:-1], 1.0) <= 1e-4
    assert near_stationarity(problem, found.x[:-1] + 0.1, 1.0) > 1e-2


@pytest.mark.parametrize("proximity", [0.0, -1.0, float("nan")])
def test_proximity_must_be_positive(known, proximity):
    with pytest.raises(ValueError, match="proximity must be a finite number above 0"):
        near_stationarity(known.problem, known.params, proximity)


# --- curvature


@pytest.mark.parametrize("d", [1, 2, 20, 21, 80])
def test_curvature_of_quadratics(d):
    source = Quadratics(d, 2, 0)
    found = modulus(source, source.start, everywhere, np.random.default_rng(0))
    assert found == pytest.approx(source.modulus, rel=1e-3)
    values = np.linalg.eigvalsh(source.A[0])
    low, high = extreme_curvatures(
        lambda z: source.at(z).gradient(1.0, np.zeros(2)), source.start, np.random.default_rng(0)
    )
    assert low == pytest.approx(values[0], rel=1e-2, abs=1e-8)
    assert high == pytest.approx(values[-1], rel=1e-2, abs=1e-8)


@pytest.mark.parametrize("d", [3, 30])
def test_curvature_of_convex_and_of_linear_functions(d):
    source = Quadratics(d, 1, 0)
    source.A[:] = np.diag(np.linspace(1, 4, d)), np.zeros((d, d))
    assert modulus(source, source.start, everywhere, np.random.default_rng(0)) == pytest.approx(0.4, rel=1e-3)
    source.A[:] = 0.0
    assert modulus(source, source.start, everywhere, np.random.default_rng(0)) == 1.0


def test_curvature_is_looked_for_in_the_domain():
    """``-z^4 / 12``, whose curvature is ``-z^2``."""

    class Quartic:
        def at(self, z):
            return QuarticPoint(z)

    class QuarticPoint:
        def __init__(self, z):
            self.z, self.constraints = z, np.empty(0)

        def gradient(self, objective, multipliers):
            return -objective * self.z**3 / 3

    near, far = (
        modulus(Quartic(), np.zeros(1), Box(-width, width).project, np.random.default_rng(0)) for width in (1e-2, 10.0)
    )
    assert 0 < near <= 1e-4 + 1e-8
    assert far > 1e-3
    assert far == modulus(Quartic(), np.zeros(1), Box(-10, 10).project, np.random.default_rng(0))
