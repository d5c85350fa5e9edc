"""The (smoothed) augmented Lagrangian on mini-batches: every update, and known optima, primal and dual."""

import numpy as np
import pytest

from fairconstrained.constraints import LossParity
from fairconstrained.domains import Box
from fairconstrained.objectives import Logistic
from fairconstrained.problem import Start
from fairconstrained.solvers import SSLALM, StochasticALM
from fairconstrained.views import FullBatch

START = (1.5, -0.5)


def paper(o, plane, n_steps):
    """Algorithm 2 in the joint variables (x, s), of which the second half is at least 0."""
    x, y, z = np.append(START, [0.0, 0.0]), np.zeros(2), np.append(START, [0.0, 0.0])
    for k in range(n_steps):
        xi, one, two = plane.batches[3 * k : 3 * k + 3]
        y = y + o.dual_rate * (one.values(x[:2]) + x[2:])
        if np.sqrt((y**2).sum()) >= o.max_multiplier:
            y = np.zeros(2)
        jacobian = np.hstack([one.jacobian(x[:2]), np.eye(2)])
        gradient = np.append(x[:2] - xi.target, np.zeros(2)) + jacobian.T @ y
        gradient += o.penalty * jacobian.T @ (two.values(x[:2]) + x[2:]) + o.smoothing * (x - z)
        moved = x - o.learning_rate * gradient
        z = z + o.averaging * (x - z)
        x = np.append(plane.project(moved[:2]), np.maximum(moved[2:], 0))
        yield x, y, z


OPTIONS = {
    "ssl_alm": SSLALM(),
    "alm": StochasticALM(),
    "long steps": SSLALM(learning_rate=0.1, dual_rate=0.3, penalty=0.7, smoothing=0.9, averaging=0.2),
    "small multipliers": SSLALM(learning_rate=0.05, dual_rate=0.8, max_multiplier=1.5),
    "no penalty": StochasticALM(learning_rate=0.2, dual_rate=0.4, penalty=0.0),
}


# --- the updates


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS.keys())
@pytest.mark.parametrize("domain", [None, Box(-0.7, 1.6)], ids=["plane", "box"])
def test_the_steps_are_those_of_the_paper(make_plane, options, domain):
    plane = make_plane(90, domain=domain)
    method = plane.method(options, START)
    for k, (x, y, z) in enumerate(paper(options, plane, 30)):
        options.take_step(method, plane, plane)
        np.testing.assert_allclose(np.append(method.z, method.slack), x, atol=1e-12)
        np.testing.assert_allclose(method.multipliers, y, atol=1e-12)
        if options.smoothing:
            np.testing.assert_allclose(np.append(method.center, method.slack_center), z, atol=1e-12)
        assert plane.n_drawn == 3 * k + 3


def test_the_multipliers_begin_anew_when_they_are_too_long(make_plane):
    seen = {}
    for bound in (1.5, 1e6):
        plane = make_plane(200)
        options = SSLALM(learning_rate=0.05, dual_rate=0.8, max_multiplier=bound)
        method = plane.method(options, START)
        seen[bound] = []
        for _ in range(100):
            options.take_step(method, plane, plane)
            seen[bound].append(np.linalg.norm(method.multipliers))
    assert max(seen[1.5]) < 1.5 < max(seen[1e6])
    assert 0 < seen[1.5].count(0.0) < 50  # the very zero, and not always
    assert seen[1e6].count(0.0) == 0


def test_slacks_are_never_negative_and_take_up_what_is_not_needed(make_plane):
    plane = make_plane([(2.0, 0.0)], radius=0.5, slope=(1.0, 0.0), bound=3.0)  # the line is far beyond the disk
    method = plane.method(StochasticALM(learning_rate=0.1, dual_rate=0.1), (0, 0))
    least = np.inf
    for _ in range(2000):
        method.step(plane, plane)
        least = min(least, method.slack.min())
    assert least == 0.0
    np.testing.assert_allclose(method.z, [1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(method.slack, [0.0, 2.0], atol=1e-6)  # c + s = 0
    np.testing.assert_allclose(method.multipliers, [1.0, 0.0], atol=1e-6)  # (2 - 1) = y z


def test_alm_is_ssl_alm_without_smoothing(make_plane):
    assert StochasticALM().smoothing == 0.0
    iterates = []
    for options in (SSLALM(smoothing=0.0), StochasticALM()):
        plane = make_plane(20)
        method = plane.method(options, START)
        for _ in range(10):
            options.take_step(method, plane, plane)
        iterates.append(method.z)
    np.testing.assert_array_equal(*iterates)


def test_smoothing_holds_the_iterate_near_its_centre(make_plane):
    for smoothing in (0.0, 2.0):
        plane = make_plane([(2.0, 1.0)])
        # neither constraints nor a centre that moves
        options = SSLALM(learning_rate=0.1, smoothing=smoothing, averaging=0.0, dual_rate=0.0, penalty=0.0)
        method = plane.method(options, (0, 0))
        for _ in range(300):
            options.take_step(method, plane, plane)
        np.testing.assert_allclose(method.z, np.array([2.0, 1.0]) / (1 + smoothing), atol=1e-4)
        if smoothing:
            np.testing.assert_array_equal(method.center, 0)


def test_defaults_are_the_published_parameters():
    o = SSLALM()
    published = {"smoothing": 2.0, "penalty": 1.0, "learning_rate": 0.01, "dual_rate": 0.05, "averaging": 0.5}
    assert {name: getattr(o, name) for name in published} == published
    assert (o.max_multiplier, o.batch_size, o.constraint_batch_size, o.balance) == (10.0, 8, None, 1.0)


# --- optima


@pytest.mark.parametrize("solver", [SSLALM, StochasticALM])
def test_known_optimum_primal_and_dual(known, solver):
    """With all rows in every batch there is no noise, and the method ends at the KKT point."""
    n = known.problem.data.n_samples
    options = solver(max_epochs=600, batch_size=n, learning_rate=0.2, dual_rate=0.4)
    result = options.solve(known.problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, known.params, atol=1e-4)
    assert result.objective == pytest.approx(known.objective, abs=1e-5)
    assert result.constraint_values["mean_gap"] == pytest.approx(0.05, abs=1e-5)
    multipliers = {name: value for name, value in result.multipliers.items() if value > 1e-3}
    assert multipliers == {"mean_gap[second - first]": pytest.approx(known.multiplier, abs=1e-4)}


@pytest.mark.slow
@pytest.mark.parametrize("solver", [SSLALM, StochasticALM])
def test_the_loss_gap_at_the_optimum(unequal, solver):
    """A bound on the groups' losses, the optimum by SLSQP; and the same from mini-batches up to their noise."""
    problem, optimum, objective, free = unequal
    n = problem.data.n_samples
    exact = solver(max_epochs=1500, batch_size=n, learning_rate=0.2, dual_rate=0.4)
    result = exact.solve(problem, None, np.random.default_rng(0))
    np.testing.assert_allclose(result.model_state, optimum, atol=1e-3)
    assert result.constraint_values["loss_parity"] == pytest.approx(0.05, abs=1e-4)
    last, noisy = [], solver(max_epochs=150, batch_size=24, learning_rate=0.05, dual_rate=0.2)
    noisy.solve(problem, Start(optimum), np.random.default_rng(0), lambda r: last.append(r["params"].copy()))
    mean = np.mean(last[50:], axis=0)
    assert np.abs(mean - optimum).max() < 0.1
    near, far = (problem.constraints[0].metric(problem.scores(params)) for params in (mean, free))
    assert abs(near - 0.05) < 0.02 < far - 0.05
    assert problem.without_constraints().view(FullBatch).at(mean).objective == pytest.approx(objective, abs=0.01)


def test_a_warm_start_with_other_comparisons(make_data, make_problem):
    """Other comparisons than in the run before: training begins anew, from the parameters that it came to."""
    data = make_data(counts=(40, 50, 30), shift=0.8)
    one, other = (
        make_problem(data, LossParity(0.01, constraint=notion).unchecked(data), loss=Logistic())
        for notion in ("demographic_parity", "equalized_odds")
    )
    assert len(one.component_names) < len(other.component_names)
    first = SSLALM(max_epochs=2).solve(one, None, np.random.default_rng(0))
    then = SSLALM(max_epochs=3).solve(other, first.start, np.random.default_rng(0))
    assert [record["n_iter"] for record in then.history] == [1, 2, 3]
    assert len(then.history[-1]["multipliers"]) == len(other.component_names)
    cold = SSLALM(max_epochs=3).solve(other, None, np.random.default_rng(0))
    assert then.history[0]["objective"] < cold.history[0]["objective"]
