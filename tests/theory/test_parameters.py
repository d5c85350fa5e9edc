"""Parameters of the papers' theorems against arithmetic done by hand, and methods that run with them."""

from math import ceil, exp, log, sqrt

import numpy as np
import pytest

from fairconstrained import theory

IPC = {"lipschitz": 1.5, "diameter": 2.0, "weak_convexity": 0.4, "proximity": 1.0}
ONLINE = {"gradient_bound": 1.0, "value_bound": 0.5, "diameter": 2.0, "proximity": 0.7, "slater": 0.3}


@pytest.mark.parametrize(
    ("lipschitz", "slater", "largest", "limited_by"),
    [(0.1, 1.0, 1.0, "distance"), (1.0, 20.0, 4.0, "lipschitz"), (1.0, 0.5, 32.0, "slater")],
)
def test_idca(lipschitz, slater, largest, limited_by):
    found = theory.idca_parameters(0.1, lipschitz=lipschitz, strong_convexity=0.5, slater=slater, objective_gap=0.25)
    assert found.limited_by == limited_by
    assert found.max_iter == round(2 * largest * 0.25 / (0.5 * 0.01))
    assert found.precision == pytest.approx(0.5 / 8 / largest * 0.01)


def test_a_solution_needs_one_subproblem():
    found = theory.idca_parameters(0.1, lipschitz=1.0, strong_convexity=0.5, slater=0.1, objective_gap=0.0)
    assert found.max_iter == 1
    assert theory.ssg_iterations(0.1, lipschitz=1.0, strong_convexity=0.5, distance=0.0) == 1


def test_switching_subgradients_solve_a_strongly_convex_problem():
    """Algorithm 2 of the partial fairness paper with the number of steps of its Proposition 6.4."""
    mu, precision = 1.0, 1e-2
    solution = np.array([0.5, 0.5])  # of min |v - (1, 1)|^2 / 2 subject to v_1 + v_2 <= 1, made strongly convex
    v, best = np.zeros(2), np.inf

    def objective(v):
        return mu / 2 * ((v - 1) ** 2).sum()

    def constraint(v):  # zero at the solution, strongly convex
        return v.sum() - 1 + mu / 2 * ((v - solution) ** 2).sum()

    lipschitz = 2.5  # of both functions in the unit square, where all iterates stay
    steps = theory.ssg_iterations(
        precision, lipschitz=lipschitz, strong_convexity=mu, distance=np.linalg.norm(solution)
    )
    assert steps == ceil(lipschitz**2 / (precision * mu) * log(1 + mu * 0.5 / precision))
    for _ in range(steps):
        if constraint(v) <= precision:
            best = min(best, objective(v))
            gradient, length = mu * (v - 1), precision
        else:
            gradient, length = 1 + mu * (v - solution), constraint(v)
        v = np.clip(v - length * gradient / (gradient @ gradient), 0, 1)
    assert best - objective(solution) <= precision


def test_ipc():
    found = theory.ipc_parameters(0.1, **IPC, slater=0.3, objective_gap=0.6)
    modulus, multiplier = 0.6, (1.5 + 1.0 * 2.0) / sqrt(2 * 0.3 * 0.6)
    assert found.max_iter == 400
    assert found.multiplier_bound == pytest.approx(multiplier)
    assert found.precision == pytest.approx(sqrt(modulus / 4 / (multiplier + 1)) * 0.1)
    assert found.limited_by == "multipliers"
    # the two parts of the proof's last line, each half of the squared accuracy
    assert 2 * 0.6 / (found.max_iter * modulus) == pytest.approx(0.1**2 / 2)
    assert 2 * found.precision**2 / modulus * (multiplier + 1) == pytest.approx(0.1**2 / 2)


def test_a_stiff_proximal_term_needs_no_more_precision_than_the_accuracy():
    found = theory.ipc_parameters(
        0.1, lipschitz=1.0, diameter=1.0, weak_convexity=0.0, proximity=50.0, slater=1e4, objective_gap=1.0
    )
    assert found.limited_by == "convexity"
    assert found.precision == pytest.approx(0.1 / sqrt(1 + 51 / sqrt(2 * 1e4 * 50)))


@pytest.mark.parametrize(("lipschitz", "limited_by"), [(1.5, "proximal term"), (3.0, "functions")])
def test_the_switching_oracle_has_the_square_of_the_proximal_slope(lipschitz, limited_by):
    found = theory.switching_iterations(0.1, **{**IPC, "lipschitz": lipschitz, "proximity": 1.2})
    assert found.n_iter == ceil(4 * (lipschitz**2 + 1.2**2 * 4) / (0.8 * 0.01))
    assert found.limited_by == limited_by


def test_the_online_oracle():
    K, m, delta = 1000, 3, 0.1
    values, gradients = 0.5 + 0.7 * sqrt(3) / 2 * 4, 1.0 + 0.7 * 2
    S = values + sqrt(3) * gradients * 2
    queue = (
        0.15
        + S
        + 2 * 4 / 0.3
        + (2 * gradients * 2 + S**2) / 0.3
        + 8 * S**2 / 0.3 * log(1 + 32 * S**2 / 0.09 * exp(0.3 / (8 * S)))
        + 8 * S**2 / 0.3 * log(2 * K / delta)
    )
    found = theory.online_bound(K, **ONLINE, n_constraints=m, delta=delta)
    first = 4 + gradients**2 / 4 + S**2 / 2 + sqrt(log(10)) * values * queue
    assert found.objective == pytest.approx(first / sqrt(K))
    assert found.constraints == pytest.approx((queue + gradients**2 + sqrt(3) * gradients**2 / 2 * queue) / sqrt(K))
    assert found.limited_by == "constraints"


def test_the_online_bound_is_finite_for_any_slater_constant():
    bounds = [theory.online_bound(100, **{**ONLINE, "slater": slater}) for slater in (1e3, 1e4, 1e6)]
    assert np.isfinite([bound.objective for bound in bounds]).all()
    near = [theory.online_bound(100, **{**ONLINE, "slater": s}).objective for s in (46.99, 47.01)]
    assert near[0] == pytest.approx(near[1], rel=1e-2)


def test_plada():
    found = theory.plada_steps(smoothness=2.0, constraint_lipschitz=0.5)
    assert (found.rho, found.slack_rate) == (5.0, pytest.approx(1 / 15))
    assert found.learning_rate == pytest.approx(1 / (2.0 + 3 * 5 * 0.25))
    assert found.limited_by == "constraints"
    assert theory.plada_steps(smoothness=2.0, constraint_lipschitz=0.1).limited_by == "objective"
    assert theory.plada_steps(smoothness=0.0, constraint_lipschitz=1.0, alpha=4.0, beta=0.5).rho == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("function", "arguments", "change", "message"),
    [
        (theory.plada_steps, {"smoothness": 1.0, "constraint_lipschitz": 1.0}, {"beta": 1.0}, "beta must lie"),
        (theory.plada_steps, {"smoothness": 1.0, "constraint_lipschitz": 1.0}, {"alpha": 1.0}, "alpha must be above 1"),
        (theory.plada_steps, {"smoothness": 1.0, "constraint_lipschitz": 1.0}, {"smoothness": -1.0}, "at least 0"),
        (theory.switching_iterations, {"precision": 0.1, **IPC}, {"proximity": 0.4}, "proximity must be above"),
        (theory.switching_iterations, {"precision": 0.1, **IPC}, {"precision": 0.0}, "precision must be a finite"),
        (theory.online_bound, {"n_iter": 10, **ONLINE}, {"n_iter": 0}, "n_iter must be an integer"),
        (theory.online_bound, {"n_iter": 10, **ONLINE}, {"slater": np.nan}, "slater must be a finite"),
        (theory.online_bound, {"n_iter": 10, **ONLINE}, {"delta": "x"}, "delta must lie"),
    ],
)
def test_constants_out_of_range_are_named(function, arguments, change, message):
    function(**arguments)
    with pytest.raises(ValueError, match=message):
        function(**{**arguments, **change})
