"""The controller of multipliers: every update, its limits, the outside package, and known optima."""

import numpy as np
import pytest

from fairconstrained.domains import Box
from fairconstrained.solvers import NuPI
from tests.solvers.adam import AdamByHand

START = (1.5, -0.5)
OPTIONS = {
    "defaults": NuPI(),
    "long memory": NuPI(learning_rate=0.05, integral_gain=0.3, proportional_gain=0.8, memory=0.7),
    "gradient ascent": NuPI(learning_rate=0.05, integral_gain=0.3, proportional_gain=0.0),
    "small multipliers": NuPI(learning_rate=0.05, integral_gain=0.5, max_multiplier=0.4),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("domain", [None, Box(-0.7, 1.6)], ids=["plane", "box"])
def test_the_steps_in_numpy(make_plane, options, domain):
    o, plane = options, make_plane(90, domain=domain)
    method = plane.method(o, START)
    x, multipliers, average, adam = np.array(START), np.zeros(2), np.zeros(2), AdamByHand(2)
    for k in range(30):
        xi, one, two = plane.batches[3 * k : 3 * k + 3]
        violations, before = one.values(x), average
        average = o.memory * before + (1 - o.memory) * violations
        multipliers = multipliers + o.integral_gain * violations + o.proportional_gain * (average - before)
        multipliers = np.minimum(np.maximum(multipliers, 0), o.max_multiplier)
        gradient = x - xi.target + two.jacobian(x).T @ multipliers
        x = plane.project(x - o.learning_rate * adam.direction(gradient))
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, x, atol=1e-12)
        np.testing.assert_allclose(method.multipliers, multipliers, atol=1e-12)
        assert plane.n_drawn == 3 * k + 3


def test_multipliers_are_the_sum_and_a_proportion_of_the_violations(make_plane):
    """As long as nothing is clipped: violated all the time, by a point that does not move."""
    plane = make_plane([(3.0, 0.0)], radius=0.5, slope=(1.0, 0.0), bound=1.0)
    o = NuPI(learning_rate=1e-12, integral_gain=0.2, proportional_gain=0.5, memory=0.9)
    method = plane.method(o, (3.0, 0.0))
    violations = np.array([4.0, 2.0])
    for k in range(1, 20):
        method.step(plane, plane)
        average = (1 - 0.9**k) * violations
        np.testing.assert_allclose(method.multipliers, 0.2 * k * violations + 0.5 * average, rtol=1e-9)


def test_multipliers_of_the_outside_package(make_plane):
    """Which leaves the proportional part out of the first step: a constant of the sum, where nothing is clipped."""
    torch = pytest.importorskip("torch")
    outside = pytest.importorskip("humancompatible.train.dual_optim")
    o = NuPI(learning_rate=0.01, integral_gain=0.05, proportional_gain=0.7, memory=0.3)
    plane = make_plane([(3.0, 2.0)], radius=0.5, slope=(1.0, 0.5), bound=1.0)
    method = plane.method(o, (3.0, 2.0))
    dual = outside.nuPI(
        m=2, nu=o.memory, ki=o.integral_gain, kp=o.proportional_gain, is_ineq=True, dual_range=(0.0, 100.0)
    )
    first = 0.7 * 0.7 * plane.batches[0].values(method.z)
    for _ in range(20):
        values = plane.batches[0].values(method.z)
        method.step(plane, plane)
        dual.update(torch.from_numpy(values).float())
        np.testing.assert_allclose(method.multipliers, dual.duals.numpy() + first, rtol=1e-5)


def test_the_proportional_part_damps_oscillations(make_plane):
    """The multiplier oscillates less about its limit, 1, for (2 - 1) = y z on the border of the disk."""
    highest = {}
    for gain in (0.0, 1.0, 5.0):
        plane = make_plane([(2.0, 0.0)], radius=0.5, bound=3.0)
        method = plane.method(NuPI(learning_rate=0.02, integral_gain=0.2, proportional_gain=gain), (0, 0))
        highest[gain] = 0.0
        for _ in range(600):
            method.step(plane, plane)
            highest[gain] = max(highest[gain], method.multipliers[0])
        np.testing.assert_allclose(method.z, [1.0, 0.0], atol=0.01)
    assert highest[5.0] < 1.4 < highest[1.0] < 1.8 < highest[0.0]


def test_known_optimum_primal_and_dual(known):
    n = known.problem.data.n_samples
    options = NuPI(max_epochs=500, batch_size=n, learning_rate=0.02, integral_gain=0.1)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, known.params, atol=1e-4)
    assert result.constraint_values["mean_gap"] == pytest.approx(0.05, abs=1e-5)
    assert result.multipliers == {"mean_gap[second - first]": pytest.approx(known.multiplier, abs=1e-4)}


def test_the_loss_gap_at_the_optimum(unequal):
    problem, optimum, *_ = unequal
    options = NuPI(max_epochs=500, batch_size=140, learning_rate=0.02, integral_gain=0.1)
    result = options.solve(problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, optimum, atol=1e-3)
    assert result.constraint_values["loss_parity"] == pytest.approx(0.05, abs=1e-4)
