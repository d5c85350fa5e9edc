"""Stochastic IDCA: its convex models on mini-batches, the primal-dual steps, known optima, and what it returns."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.domains import L2Ball
from fairconstrained.models.layers import mlp
from fairconstrained.models.module import ModuleModel
from fairconstrained.objectives import TruncatedLogistic
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status
from fairconstrained.solvers.published.stochastic_idca import StochasticIDCA, _BatchModel
from fairconstrained.views import DifferenceOfConvex, FullBatch, Stochastic
from tests.history import comparable

RAMP = {"surrogate": "ramp", "surrogate_width": 0.8}
each_notion = pytest.mark.parametrize(
    "constraint",
    [StatisticalParity(0.15), DemographicParity(0.15), StatisticalParity(0.15, n_levels=4, **RAMP)],
    ids=["pSP", "pDP", "pSP ramp"],
)


def run(problem, start=None, seed=0, **options):
    solver = StochasticIDCA(**{"max_outer": 4, "max_inner": 40, **options})
    return solver.solve(problem, start, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def batch_problem(make_data, make_problem):
    """``batch_problem(constraint, kind of model)``: a mini-batch whose objective has a concave part too."""

    def make(constraint, kind="linear"):
        data = make_data(counts=(90, 120), shift=0.8)
        model = {"linear": make_problem(data).model, "network": ModuleModel(partial(mlp, activation="tanh"), 3)}[kind]
        problem = Problem(TruncatedLogistic().bind(data), (constraint.unchecked(data),), data, model=model)
        return problem.view(Stochastic).sample(np.random.default_rng(0), 40).problem

    return make


def draw(problem, count, scale=0.5):
    """Random points near the fair start, so that thresholds lie among the scores."""
    rng = np.random.default_rng(1)
    start = problem.fair_start(None, rng)
    return start + scale * rng.normal(size=(count, start.size))


# --- convex models on mini-batches


@each_notion
def test_for_linear_models_it_is_the_model_of_idca_on_the_batch(batch_problem, constraint):
    problem = batch_problem(constraint)
    anchor, z, moved = draw(problem, 3)
    model = _BatchModel(problem, anchor, z, proximity=0.0)
    expected = problem.view(DifferenceOfConvex).linearize(anchor).at(z)
    m = expected.constraints.size
    jacobian = np.stack([expected.gradient(0.0, unit) for unit in np.eye(m)])
    # to what the difference quotient costs
    np.testing.assert_allclose(model.linearised(z), expected.constraints, atol=1e-5)
    np.testing.assert_allclose(model.linearised(moved), expected.constraints + jacobian @ (moved - z), atol=1e-5)
    weights = np.random.default_rng(2).uniform(size=1 + m)
    np.testing.assert_allclose(model.gradient(weights), expected.gradient(weights[0], weights[1:]), atol=1e-10)


@pytest.mark.parametrize("kind", ["linear", "network"])
@each_notion
def test_it_touches_the_batch_from_above(batch_problem, constraint, kind):
    """Also for networks: the tangent is taken in the scores, where the split is convex."""
    problem = batch_problem(constraint, kind)
    anchor, *others = draw(problem, 6)
    view = problem.view(FullBatch)
    at_anchor = _BatchModel(problem, anchor, anchor, proximity=0.0).linearised(anchor)
    np.testing.assert_allclose(at_anchor, view.at(anchor).constraints, atol=1e-12)
    for z in others:
        above = _BatchModel(problem, anchor, z, proximity=0.0).linearised(z) - view.at(z).constraints
        assert above.min() >= -1e-6
        assert above.max() > 1e-4


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_gradient_and_values_belong_together(batch_problem, kind):
    problem = batch_problem(DemographicParity(0.15), kind)
    anchor, z, *directions = draw(problem, 8)

    def value(z):
        return _BatchModel(problem, anchor, z, proximity=0.3).linearised(z) @ np.array([0.7, 1.1])

    gradient = _BatchModel(problem, anchor, z, proximity=0.3).gradient(np.array([0.0, 0.7, 1.1]))
    for direction in directions:
        step = 1e-3 * direction / np.linalg.norm(direction)
        assert gradient @ step == pytest.approx((value(z + step) - value(z - step)) / 2, rel=1e-3, abs=1e-7)


def test_proximity_is_a_parabola_around_the_outer_iterate(batch_problem):
    problem = batch_problem(DemographicParity(0.15))
    anchor, z, moved = draw(problem, 3)
    flat, curved = (_BatchModel(problem, anchor, z, proximity) for proximity in (0.0, 0.4))
    weights = np.array([2.0, 0.5, 1.0])
    added = curved.gradient(weights) - flat.gradient(weights)
    np.testing.assert_allclose(added, 3.5 * 0.4 * (z - anchor))
    # the tangent of the parabola at z
    parabola = 0.2 * (z - anchor) @ (z - anchor) + 0.4 * (z - anchor) @ (moved - z)
    np.testing.assert_allclose(curved.linearised(moved) - flat.linearised(moved), parabola)


# --- the primal-dual steps


def test_the_next_outer_iterate_is_the_mean_of_the_inner_ones(parity_problem):
    """After one step the mean is the start; after two, it is half a step of length V / (2 alpha) away."""
    problem = parity_problem(DemographicParity, 1.0)  # kappa = 1: the queues stay empty
    start = np.full(problem.n_params, 0.1)
    z = problem.start(start)
    one = run(problem, Start(start), max_outer=1, max_inner=1)
    np.testing.assert_array_equal(one.model_state, start)
    batch = problem.view(Stochastic).sample(np.random.default_rng(0), 64).problem
    gradient = batch.view(FullBatch).at(z).gradient(1.0, np.zeros(2))
    two = run(problem, Start(start), max_outer=1, max_inner=2, step=3.0)
    expected = z - np.sqrt(2) / (2 * 2 / 3) * gradient / 2
    np.testing.assert_allclose(two.model_state, expected[: problem.n_params], atol=1e-12)


def test_known_optimum(known):
    result = run(known.problem, max_outer=4, max_inner=100, step=4.0)
    assert result.objective == pytest.approx(known.objective, rel=0.02)
    assert result.constraint_values["mean_gap"] <= 0.05 + 0.02
    np.testing.assert_allclose(result.model_state, known.params, atol=0.15)


@pytest.mark.slow
def test_queues_that_are_kept_leave_less_violation(parity_problem):
    problem = parity_problem(DemographicParity, 0.1)
    options = {"select": "last", "max_outer": 4, "max_inner": 40, "step": 6.0}
    kept, emptied = (run(problem, warm_queues=warm, **options) for warm in (True, False))
    assert comparable(kept.history)[0] == comparable(emptied.history)[0]
    assert kept.surrogate_violation < 0.5 * emptied.surrogate_violation


def test_a_domain_is_respected(known):
    assert np.linalg.norm(known.params) > 0.35
    result = run(replace(known.problem, domain=L2Ball(0.3)), step=4.0)
    assert 0.25 < np.linalg.norm(result.model_state) <= 0.3 + 1e-9


@pytest.mark.slow
@each_notion
def test_linear_models(make_data, make_problem, constraint):
    data = make_data(counts=(90, 120), shift=0.8)
    problem = make_problem(data, constraint.unchecked(data), alpha=0.01)
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    result = run(problem, step=4.0, select="last")
    assert result.objective < start.objective - 0.02
    assert result.surrogate_violation <= 0.02


@pytest.mark.slow
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_networks(make_data, n_outputs):
    data = make_data(counts=(90, 120), shift=0.8)
    model = ModuleModel(partial(mlp, hidden_layer_sizes=(6,)), 3, n_outputs, alpha=0.01)
    problem = Problem(TruncatedLogistic().bind(data), (DemographicParity(0.15).unchecked(data),), data, model=model)
    start = problem.view(FullBatch).at(problem.fair_start(None, np.random.default_rng(0)))
    result = run(problem, step=6.0, max_inner=30, proximity=0.05, select="last")
    assert result.objective < start.objective - 0.02
    assert result.surrogate_violation <= 0.01


# --- what it returns


def feasible_objectives(result, problem):
    (constraint,) = problem.constraints
    limit = constraint.kappa + constraint.granularity
    return [record["objective"] for record in result.history if record[constraint.name] <= limit]


@pytest.mark.slow
def test_best_is_the_best_feasible_iterate(parity_problem):
    problem = parity_problem(DemographicParity, 0.1)
    best, last = (run(problem, select=select, step=4.0) for select in ("best", "last"))
    assert comparable(best.history) == comparable(last.history)
    objectives = feasible_objectives(best, problem)
    assert 0 < len(objectives) < 4  # the surrogate allows more than the metric, so that later iterates violate it
    assert best.objective == pytest.approx(min(objectives))
    assert best.status == Status.COMPLETED
    assert last.objective == pytest.approx(last.history[-1]["objective"])
    assert last.status == Status.INFEASIBLE


def test_without_a_feasible_iterate_the_last_one_is_returned(parity_problem):
    problem = parity_problem(DemographicParity, 0.02)
    start = Start(np.array([2.0, 0.0, 0.0, 0.0]))
    result = run(problem, start, max_outer=2, max_inner=5)
    assert feasible_objectives(result, problem) == []
    assert result.objective == pytest.approx(result.history[-1]["objective"])
    assert result.status == Status.INFEASIBLE


@pytest.mark.slow
def test_another_seed_draws_other_batches(parity_problem):
    problem = parity_problem(DemographicParity, 0.1)
    one, same, other = (run(problem, seed=seed, max_outer=1).model_state for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()


@pytest.mark.slow
def test_evaluations_are_passes_over_the_data(parity_problem):
    problem = parity_problem(DemographicParity, 0.1, counts=(100, 100))
    result = run(problem, max_outer=2, max_inner=50, batch_size=20)
    assert [record["n_evaluations"] for record in result.history] == [6, 12]  # 50 * 20 / 200 and one to assess
    assert result.n_evaluations == 13


@pytest.mark.parametrize("surrogate", ["logistic", "ramp"])
def test_divergence_ends_the_run_and_says_what_to_do(parity_problem, surrogate):
    problem = parity_problem(StatisticalParity, 0.1, surrogate=surrogate, surrogate_width=0.1)
    result = run(problem, step=1e7, max_outer=1, max_inner=100)
    assert result.message.startswith("training stopped in iteration 1: it met a loss that is not finite")
    assert result.message.endswith("Standardise X or lower step, or raise proximity.")
    np.testing.assert_array_equal(result.model_state, 0.0)
