"""The Moreau envelope around other methods: one step in NumPy, the same optima, and what it leaves alone."""

import pickle

import numpy as np
import pytest

from fairconstrained.points import Anchor, objective_gradient
from fairconstrained.problem import FullBatchView
from fairconstrained.solvers import SOLVERS, NuPI, StochasticALM, StochasticSolver, make_solver
from fairconstrained.views import FullBatch

START = (1.5, -0.5)
#: Options that make every solver take long steps; every one but those with a plain step has another rule for it.
NAMES = sorted(name for name, solver in SOLVERS.items() if issubclass(solver, StochasticSolver))
NAMES.remove("cross_fitted_network")  # its networks take the steps of "adam_lagrangian"


def solve(problem, name, start=None, seed=0, **options):
    options = {"max_epochs": 3, "batch_size": 20, **options}
    if name == "adam_lagrangian":
        options |= {"polish": False, "decay": False}
    return make_solver(name, options, problem).solve(problem, start, np.random.default_rng(seed))


# --- the step


def test_gradient_descent_in_an_envelope_in_numpy(make_plane):
    """A penalty in place of constraints, so that only the objective has the term."""
    plane = make_plane(60)
    solver = SOLVERS["penalty"](learning_rate=0.1, weight=0.7, smoothing=1.5, averaging=0.3)
    method = plane.method(solver, START)
    x, z = np.array(START), np.array(START)
    for batch in plane.batches[:40]:
        violated = batch.values(x) > 0
        gradient = x - batch.target + 0.7 * batch.jacobian(x).T @ violated + 1.5 * (x - z)
        x, z = x - 0.1 * gradient, z + 0.3 * (x - z)
        solver.take_step(method, plane, plane)
        np.testing.assert_allclose(method.z, x, atol=1e-12)
        np.testing.assert_allclose(method.center, z, atol=1e-12)


def test_adam_divides_the_whole_gradient_by_its_size(make_plane):
    """The term is part of the gradient that Adam scales, as in the authors' package."""
    plane = make_plane([(2.0, 1.0)])
    solver = NuPI(learning_rate=0.1, smoothing=4.0, averaging=0.0)
    method = plane.method(solver, (0, 0))
    for _ in range(2):
        solver.take_step(method, plane, plane)
    first = 0.1 * np.ones(2)  # Adam's first step has the length of the rate
    gradients = np.array([[-2.0, -1.0], first - [2.0, 1.0] + 4.0 * first])
    mean = (0.09 * gradients[0] + 0.1 * gradients[1]) / (1 - 0.81)
    square = (0.000999 * gradients[0] ** 2 + 0.001 * gradients[1] ** 2) / (1 - 0.999**2)
    np.testing.assert_allclose(method.z, first - 0.1 * mean / (np.sqrt(square) + 1e-8), atol=1e-6)


def test_points_near_an_anchor(unequal):
    problem, rng = unequal.problem, np.random.default_rng(0)
    z, center, weights = rng.normal(size=4), rng.normal(size=4), np.array([0.3, 0.7])
    view, plain = FullBatchView(problem), FullBatchView(problem).at(z)
    view.anchor = Anchor(center, 1.7)
    for point in (view.at(z), *FullBatchView.at_each([view, view], z)):
        assert point.objective == pytest.approx(plain.objective + 0.85 * ((z - center) ** 2).sum())
        np.testing.assert_array_equal(point.constraints, plain.constraints)
        np.testing.assert_array_equal(point.scores, plain.scores)
        expected = plain.gradient(2.0, weights) + 2.0 * 1.7 * (z - center)
        np.testing.assert_allclose(point.gradient(2.0, weights), expected, atol=1e-12)
        np.testing.assert_array_equal(point.gradient(0.0, weights), plain.gradient(0.0, weights))
    assert objective_gradient(plain) == pytest.approx(objective_gradient(problem.view(FullBatch).at(z)))


# --- around every solver


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_centre_that_does_not_move_holds_the_iterate(unequal, name):
    """Around the start, with all of the weight: no method gets away from it. It would without."""
    problem = unequal.problem
    begin = problem.fair_start(None, np.random.default_rng(0))
    rate = {"learning_rate": 0.001}
    free = solve(problem, name, max_epochs=30, learning_rate=0.05)
    held = solve(problem, name, max_epochs=30, smoothing=200.0, averaging=0.0, **rate)
    distances = [np.linalg.norm(result.model_state - begin[:4]) for result in (held, free)]
    assert distances[0] < 0.1 < distances[1]
    assert held.message == ""


@pytest.mark.parametrize("name", NAMES)
def test_records_are_without_the_term(unequal, name):
    result = solve(unequal.problem, name, smoothing=2.0)
    view = unequal.problem.without_constraints().view(FullBatch)
    assert result.objective == pytest.approx(view.at(result.model_state).objective)
    assert all(record["objective"] < 2 for record in result.history)


@pytest.mark.parametrize("name", NAMES)
def test_going_on_in_an_envelope_is_as_if_the_run_had_not_ended(unequal, name):
    first, whole = (solve(unequal.problem, name, smoothing=1.0, max_epochs=n) for n in (2, 4))
    then = solve(unequal.problem, name, start=pickle.loads(pickle.dumps(first.start)), smoothing=1.0, max_epochs=4)
    np.testing.assert_array_equal(then.model_state, whole.model_state)
    assert then.multipliers == whole.multipliers


def test_a_run_that_goes_on_may_begin_an_envelope_and_leave_it(unequal):
    first = solve(unequal.problem, "sgd", max_epochs=2)
    assert first.start.solver_state.method.center is None
    held = solve(unequal.problem, "sgd", start=first.start, max_epochs=4, smoothing=50.0, averaging=0.0)
    np.testing.assert_array_equal(held.start.solver_state.method.center, first.start.solver_state.method.z)
    left = solve(unequal.problem, "sgd", start=held.start, max_epochs=5)
    free = solve(unequal.problem, "sgd", start=held.start, max_epochs=5, smoothing=50.0, averaging=0.0)
    assert not np.array_equal(left.model_state, free.model_state)
    assert left.start.solver_state.method.center is None
    plain = solve(unequal.problem, "sgd", max_epochs=5)
    assert np.linalg.norm(left.model_state - held.model_state) > 0
    assert not np.array_equal(left.model_state, plain.model_state)


# --- optima


@pytest.mark.parametrize(
    "options",
    [
        {"name": "alm", "max_epochs": 600, "learning_rate": 0.2, "dual_rate": 0.4, "averaging": 0.3},
        pytest.param(
            {"name": "nupi", "max_epochs": 700, "learning_rate": 0.02, "integral_gain": 0.1}, marks=pytest.mark.slow
        ),
        pytest.param({"name": "penalty_barrier", "max_epochs": 1000, "learning_rate": 0.02}, marks=pytest.mark.slow),
    ],
    ids=lambda options: options["name"],
)
def test_the_optimum_is_that_of_the_method_itself(known, options):
    n = known.problem.data.n_samples
    options = {"batch_size": n, "smoothing": 1.0, **options}
    result = solve(known.problem, **options)
    np.testing.assert_allclose(result.model_state, known.params, atol=1e-3)
    assert result.multipliers["mean_gap[second - first]"] == pytest.approx(known.multiplier, abs=1e-3)


def test_alm_in_an_envelope_is_ssl_alm(unequal):
    alm, ssl = (solve(unequal.problem, name, smoothing=2.0, averaging=0.5) for name in ("alm", "ssl_alm"))
    np.testing.assert_array_equal(alm.model_state, ssl.model_state)
    np.testing.assert_array_equal(ssl.model_state, solve(unequal.problem, "ssl_alm").model_state)
    assert not np.array_equal(alm.model_state, solve(unequal.problem, "alm").model_state)


@pytest.mark.parametrize(("option", "value"), [("smoothing", -1.0), ("averaging", 1.5), ("smoothing", "2")])
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} of solver 'alm' must be .*; got {value!r}"):
        StochasticALM(**{option: value})
