"""The penalty-barrier method: its function, every update, the outside package, and known optima."""

import numpy as np
import pytest

from fairconstrained.domains import Box
from fairconstrained.solvers import PenaltyBarrier
from fairconstrained.solvers.published.penalty_barrier import _slope
from tests.solvers.adam import AdamByHand

START = (1.5, -0.5)
OPTIONS = {
    "defaults": PenaltyBarrier(),
    "long steps": PenaltyBarrier(
        learning_rate=0.05, min_multiplier=0.1, dual_memory=0.6, penalty_memory=0.3, delta=2.0
    ),
    "narrow": PenaltyBarrier(
        learning_rate=0.05, min_multiplier=0.2, max_multiplier=0.5, min_penalty=0.4, max_penalty=0.6
    ),
}


def phi(u):
    return u + u**2 / 2 if u >= -0.5 else -np.log(-2 * u) / 4 - 3 / 8


def dphi(u):
    return 1 + u if u >= -0.5 else -1 / (4 * u)


def test_the_slope_is_that_of_the_function_and_continuous():
    at = np.array([-30.0, -2.0, -0.6, -0.4, 0.0, 0.7, 12.0])
    expected = [(phi(u + 1e-6) - phi(u - 1e-6)) / 2e-6 for u in at]
    np.testing.assert_allclose(_slope(at), expected, rtol=1e-6)
    edge = -0.5 + np.array([-1e-9, 1e-9])
    assert [phi(u) for u in edge] == pytest.approx([-3 / 8] * 2, abs=1e-8)
    np.testing.assert_allclose(_slope(edge), 0.5, atol=1e-8)
    assert _slope(np.array([0.0])) == 1.0  # so that multipliers of active constraints stay as they are


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("domain", [None, Box(-0.7, 1.6)], ids=["plane", "box"])
def test_the_steps_in_numpy(make_plane, options, domain):
    o, plane = options, make_plane(90, domain=domain)
    method = plane.method(o, START)
    x, adam = np.array(START), AdamByHand(2)
    multipliers, penalties = [o.min_multiplier] * 2, [o.max_penalty] * 2
    for k in range(30):
        if k % 10 == 0:
            epoch = k // 10
            method.begin_epoch()
        gamma = 1 - 1 / (epoch**0.5 + 1 / (1 - o.dual_memory))
        keep = 1 - 1 / (epoch**0.5 + 1 / (1 - o.penalty_memory))
        if epoch == 0:
            assert (gamma, keep) == (pytest.approx(o.dual_memory), pytest.approx(o.penalty_memory))
        xi, one, two = plane.batches[3 * k : 3 * k + 3]
        values, gradient = two.values(x), x - xi.target
        for i in range(2):
            c, p, weight = values[i], penalties[i], multipliers[i] * dphi(values[i] / penalties[i])
            gradient = gradient + weight * one.jacobian(x)[i]
            moved = gamma * multipliers[i] + (1 - gamma) * weight
            multipliers[i] = min(max(moved, o.min_multiplier), o.max_multiplier)
            divisor = dphi(c) if dphi(c) < 1 else o.delta * dphi(c)
            penalties[i] = min(max(keep * p + (1 - keep) * p / divisor, o.min_penalty), o.max_penalty)
        x = plane.project(x - o.learning_rate * adam.direction(gradient))
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, x, atol=1e-12)
        np.testing.assert_allclose(method.penalties, penalties, atol=1e-12)
        above = [value if value > o.min_multiplier else 0.0 for value in multipliers]
        np.testing.assert_allclose(method.multipliers, above, atol=1e-12)
        assert plane.n_drawn == 3 * k + 3


def test_multipliers_and_penalties_of_the_outside_package(make_plane):
    torch = pytest.importorskip("torch")
    outside = pytest.importorskip("humancompatible.train.dual_optim")
    o = PenaltyBarrier(learning_rate=0.05, min_multiplier=0.05, dual_memory=0.4, penalty_memory=0.6, delta=1.5)
    plane = make_plane(90)
    method = plane.method(o, START)
    dual = outside.PBM(
        m=2,
        penalty_mult=o.penalty_memory,
        gamma=o.dual_memory,
        delta=o.delta,
        dual_range=(o.min_multiplier, o.max_multiplier),
        penalty_range=(o.min_penalty, o.max_penalty),
        epoch_length=10,
    )
    for k in range(30):
        if k % 10 == 0:
            method.begin_epoch()
        values = plane.batches[3 * k + 2].values(method.z)
        method.step(plane, plane)
        dual.update(torch.from_numpy(values).float())
        known = dual.duals.numpy()
        np.testing.assert_allclose(method.multipliers, np.where(known > 0.05 + 1e-7, known, 0.0), rtol=1e-5)
        np.testing.assert_allclose(method.penalties, dual.penalties.numpy(), rtol=1e-5)


def test_multipliers_of_what_holds_by_far_go_back_to_none(make_plane):
    plane = make_plane([(2.0, 0.0)], radius=0.5, slope=(1.0, 0.0), bound=3.0)  # the line is far beyond the disk
    method = plane.method(PenaltyBarrier(learning_rate=0.05, min_multiplier=1e-6), (0, 0))
    for _ in range(2500):
        method.begin_epoch()
        method.step(plane, plane)
    np.testing.assert_allclose(method.z, [1.0, 0.0], atol=1e-3)
    np.testing.assert_allclose(method.multipliers, [1.0, 0.0], atol=0.01)
    assert method.multipliers[1] == 0.0
    np.testing.assert_allclose(method.penalties[1], 1.0)


def test_known_optimum_primal_and_dual(known):
    n = known.problem.data.n_samples
    options = PenaltyBarrier(max_epochs=800, batch_size=n, learning_rate=0.02)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, known.params, atol=1e-3)
    assert result.constraint_values["mean_gap"] == pytest.approx(0.05, abs=1e-3)
    multipliers = {name: value for name, value in result.multipliers.items() if value > 1e-3}
    assert multipliers == {"mean_gap[second - first]": pytest.approx(known.multiplier, abs=1e-3)}
