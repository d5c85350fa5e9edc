"""The stochastic switching subgradient method: its steps, its tolerance, the iterate that it draws, known optima."""

import numpy as np
import pytest

from fairconstrained.domains import Box
from fairconstrained.solvers import StochasticSwitching
from fairconstrained.views import FullBatch

START = (1.5, -0.5)


def paper(o, plane, n_steps, start=START):
    """Algorithm 3 with the largest component as its one constraint, within one epoch; iterates and step lengths."""
    x, tolerance = np.array(start, dtype=float), o.tolerance
    for k in range(n_steps):
        one, two = plane.batches[2 * k % len(plane.batches)], plane.batches[(2 * k + 1) % len(plane.batches)]
        if k >= o.constant_steps:
            tolerance = o.decay * tolerance
        if one.values(x).max() <= tolerance:
            rate, subgradient = o.learning_rate, x - two.target
        else:
            rate, subgradient = o.constraint_rate, two.jacobian(x)[two.values(x).argmax()]
        moved = plane.project(x - rate * subgradient)
        yield x, rate, moved, tolerance
        x = moved


# --- the updates


@pytest.mark.parametrize("domain", [None, Box(-0.7, 1.6)], ids=["plane", "box"])
@pytest.mark.parametrize(
    "options",
    [
        StochasticSwitching(),
        StochasticSwitching(learning_rate=0.1, constraint_rate=0.3, tolerance=0.5, constant_steps=7, decay=0.8),
    ],
    ids=["published", "others"],
)
def test_the_steps_are_those_of_the_paper(make_plane, options, domain):
    plane = make_plane(80, domain=domain)
    method, rates = plane.method(options, START), []
    method.begin_epoch()
    for k, (x, rate, moved, tolerance) in enumerate(paper(options, plane, 40)):
        np.testing.assert_array_equal(method.z, x)
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, moved, atol=1e-12)
        assert method.tolerance == pytest.approx(tolerance, rel=1e-12)
        assert plane.n_drawn == 2 * k + 2
        rates.append(rate)
    assert set(rates) == {options.learning_rate, options.constraint_rate}  # both kinds of steps
    assert method.multipliers is None


def test_the_tolerance_is_constant_then_shrinks_and_begins_anew_with_every_epoch(make_plane):
    plane = make_plane([(0.0, 0.0)])
    method = plane.method(StochasticSwitching(), START)
    for _ in range(2):
        method.begin_epoch()
        for k in range(510):
            method.step(plane, plane)
            assert method.tolerance == pytest.approx(1e-4 * 0.97 ** max(k - 499, 0))


def test_the_tolerance_decides_which_step_is_taken(make_plane):
    """The line is violated by 0.1: within one tolerance, outside the other."""
    for tolerance, rate, direction in [(0.2, 0.5, (-1, 1)), (0.05, 0.1, (-1, 0))]:
        plane = make_plane([(0.0, 1.0)], radius=9.0, slope=(1.0, 0.0), bound=0.9)
        options = StochasticSwitching(learning_rate=0.5, constraint_rate=0.1, tolerance=tolerance)
        method = plane.method(options, (1.0, 0.0))
        method.begin_epoch()
        method.step(plane, plane)
        np.testing.assert_allclose(method.z, np.array([1.0, 0.0]) + rate * np.array(direction))


def test_defaults_are_the_published_parameters():
    o = StochasticSwitching()
    assert (o.learning_rate, o.constraint_rate, o.tolerance, o.constant_steps, o.decay) == (0.5, 0.05, 1e-4, 500, 0.97)
    assert (o.output, o.batch_size) == ("random", 8)


# --- the iterate that is returned


@pytest.mark.slow
@pytest.mark.parametrize("burn_in", [0, 3])
def test_iterates_are_drawn_in_proportion_to_the_steps_that_follow_them(make_plane, burn_in):
    plane = make_plane(20)
    options = StochasticSwitching(learning_rate=0.5, constraint_rate=0.1, burn_in=burn_in)
    visited = list(paper(options, plane, 7))
    rates = np.array([rate for _, rate, _, _ in visited])
    rates[:burn_in] = 0.0
    assert set(rates[burn_in:]) == {0.5, 0.1}
    n_runs, counts = 1500, np.zeros(7)
    for seed in range(n_runs):
        plane.n_drawn = 0
        method = plane.method(options, START, seed)
        method.begin_epoch()
        for _ in range(7):
            method.step(plane, plane)
        (index,) = (k for k, (x, _, _, _) in enumerate(visited) if np.allclose(x, method.output(), atol=1e-9))
        counts[index] += 1
    shares = rates / rates.sum()
    deviations = (counts / n_runs - shares) / np.sqrt(np.maximum(shares * (1 - shares), 1e-12) / n_runs)
    assert np.abs(deviations).max() < 4
    assert not counts[:burn_in].any()


def test_before_the_burn_in_is_over_the_last_iterate_is_returned(make_plane):
    plane = make_plane(20)
    method = plane.method(StochasticSwitching(burn_in=100), START)
    method.begin_epoch()
    for _ in range(10):
        method.step(plane, plane)
    assert method.output() is method.z


def solve(problem, callback=None, seed=0, **options):
    options = {"max_epochs": 8, "batch_size": 20, "learning_rate": 0.2, "constraint_rate": 0.2, **options}
    return StochasticSwitching(**options).solve(problem, None, np.random.default_rng(seed), callback)


def test_output_last_random_and_best(unequal):
    problem, seen = unequal.problem, []
    last = solve(problem, lambda record: seen.append(record["params"].copy()), output="last")
    np.testing.assert_array_equal(last.model_state, seen[-1])
    random = [solve(problem, seed=seed).model_state for seed in range(4)]
    assert not any(np.array_equal(one, seen[-1]) for one in random)
    assert len({tuple(params) for params in random}) == 4
    (constraint,) = problem.constraints
    objective = problem.without_constraints().view(FullBatch)
    feasible = [p for p in seen if constraint.exact(problem.scores(p)) <= constraint.granularity]
    assert 0 < len(feasible) < len(seen)
    best = min(feasible, key=lambda params: objective.at(params).objective)
    for output in ("last", "random"):
        np.testing.assert_array_equal(solve(problem, output=output, select="best").model_state, best)


# --- optima


def test_noisy_targets_end_near_the_known_optimum(make_plane):
    """The nearest point of the disk to the mean target; the mean of the iterates is within their noise."""
    targets = np.array([1.2, 1.6]) + np.random.default_rng(0).normal(size=(4000, 2)) * 0.3
    plane = make_plane(targets, radius=0.5)
    method = plane.method(StochasticSwitching(learning_rate=0.02, constraint_rate=0.02), (0, 0))
    method.begin_epoch()
    iterates = []
    for _ in range(2000):
        method.step(plane, plane)
        iterates.append(method.z)
    # the mean of the noise of the last 1500 objective steps is about 0.3 / sqrt(1500)
    np.testing.assert_allclose(np.mean(iterates[500:], axis=0), [0.6, 0.8], atol=0.03)
    # no step but the first ones leaves the disk by more than a step on the objective is long
    longest = 0.02 * np.linalg.norm(targets - [0.6, 0.8], axis=1).max()
    assert np.linalg.norm(iterates[500:], axis=1).max() < 1 + longest


@pytest.mark.slow
def test_the_loss_gap_at_the_optimum(unequal):
    """All rows in every step, the optimum by SLSQP."""
    problem, optimum, objective, free = unequal
    n = problem.data.n_samples
    options = {"max_epochs": 600, "batch_size": n, "learning_rate": 0.05, "constraint_rate": 0.05, "output": "last"}
    result = solve(problem, **options)
    # the constraint is kept up to one step: |gradient|^2 * rate
    assert result.constraint_values["loss_parity"] == pytest.approx(0.05, abs=0.01)
    assert result.objective == pytest.approx(objective, abs=0.005)
    assert np.linalg.norm(result.model_state - optimum) < 0.25 * np.linalg.norm(free - optimum)
    drawn = solve(problem, **{**options, "output": "random", "burn_in": 300})
    assert drawn.objective == pytest.approx(objective, abs=0.01)
