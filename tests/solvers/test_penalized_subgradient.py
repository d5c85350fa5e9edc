"""Penalised subgradient descent: what it minimises, and what a weight does."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from fairconstrained.constraints import DemographicParity, PairwiseParity, StatisticalParity
from fairconstrained.problem import Start
from fairconstrained.solvers import Status, make_solver
from fairconstrained.views import FullBatch


def solve(problem, **options):
    solver = make_solver("penalized_subgradient", {"step": 0.05, "max_iter": 300, **options}, problem)
    return solver.solve(problem, None, np.random.default_rng(0))


@pytest.fixture(scope="module")
def problem(make_data, make_problem):
    """On ranks from 0.2 to 0.7, at kappa = 0."""
    data = make_data(counts=(90, 120), shift=0.8)

    def make(notion, normalize=True):
        constraint = notion(0.0, interval=(0.2, 0.7), normalize=normalize, surrogate="ramp")
        return make_problem(data, constraint.unchecked(data), alpha=0.01)

    return make


@pytest.mark.parametrize(
    ("notion", "normalize", "factor"),
    [
        (StatisticalParity, True, 2 / 0.5),
        (StatisticalParity, False, 2.0),
        (DemographicParity, True, 1 / 0.5),
        (DemographicParity, False, 1.0),
    ],
)
def test_the_penalty_is_that_of_equations_114_and_119(problem, notion, normalize, factor):
    made = problem(notion, normalize)
    result = solve(made, weight=0.7, max_iter=5)
    assert result.surrogate_violation > 0
    assert result.history[-1]["penalised_objective"] == pytest.approx(
        result.objective + 0.7 * factor * result.surrogate_violation
    )


@pytest.mark.parametrize("notion", [StatisticalParity, DemographicParity])
def test_the_penalty_stands_for_the_gap(make_data, notion):
    """With a narrow surrogate and the best thresholds, the largest component times the factor is the exact gap."""
    data = make_data(counts=(900, 1200), shift=0.8)
    constraint = notion(0.0, interval=(0.2, 0.7), surrogate_width=1e-3, **_levels(notion)).bind(data)
    scores = np.random.default_rng(0).normal(size=data.n_samples) + 0.3 * data.codes
    aux = torch.from_numpy(constraint.initial_aux(scores))
    largest = float(constraint.values(torch.from_numpy(scores), aux).max())
    assert constraint.penalty_factor * largest == pytest.approx(constraint.metric(scores), abs=0.02)


def _levels(notion):
    return {"n_levels": 100} if notion is StatisticalParity else {}


def test_the_first_step_by_hand(problem):
    """z_1 = z_0 - step (grad f + weight factor grad c_j), j the largest component."""
    made = problem(DemographicParity)
    begin = np.array([0.5, -0.2, 0.1, 0.3])
    view = made.view(FullBatch)
    point = view.at(begin)
    worst = 0.7 * 2.0 * np.eye(2)[point.constraints.argmax()]
    assert point.constraints.max() > 0
    expected = begin - 0.1 * point.gradient(1.0, worst)
    solver = make_solver("penalized_subgradient", {"weight": 0.7, "step": 0.1, "max_iter": 1}, made)
    found = solver.solve(made, Start(begin), np.random.default_rng(0))
    np.testing.assert_allclose(found.model_state, expected)


@pytest.mark.slow
@pytest.mark.parametrize("notion", [StatisticalParity, DemographicParity])
def test_a_larger_weight_leaves_a_smaller_gap_and_a_larger_loss(problem, notion):
    made = problem(notion)
    results = [solve(made, weight=weight, step=0.05, max_iter=150) for weight in (0.0, 0.1, 1.0)]
    gaps = [result.constraint_values[made.constraints[0].name] for result in results]
    losses = [result.objective for result in results]
    assert gaps[0] > gaps[1] > gaps[2]
    assert losses[0] < losses[1] < losses[2]
    assert gaps[2] < 0.5 * gaps[0]


@pytest.mark.slow
def test_weight_zero_is_the_unconstrained_fit(problem):
    made = problem(StatisticalParity)
    free = make_solver("augmented_lagrangian", {}, made.without_constraints())
    expected = free.solve(made.without_constraints(), None, np.random.default_rng(0))
    result = solve(made, weight=0.0, step=1.0, max_iter=500)
    np.testing.assert_allclose(result.model_state, expected.model_state, atol=1e-3)


@pytest.mark.slow
def test_the_best_of_several_steps_wins(problem):
    made = problem(DemographicParity)
    alone = [solve(made, weight=0.3, step=step, max_iter=60) for step in (1e-3, 0.05, 1e-4)]
    together = solve(made, weight=0.3, step=(1e-3, 0.05, 1e-4), max_iter=60)
    np.testing.assert_array_equal(together.model_state, alone[1].model_state)
    assert together.n_iter == sum(result.n_iter for result in alone)


def test_the_length_of_the_best_run_is_known_where_a_run_has_ended(problem):
    made = problem(DemographicParity)
    solver = make_solver("penalized_subgradient", {"weight": 0.3, "step": (1e-3, 0.05, 1e-4), "max_iter": 20}, made)
    result = solver.solve(made, None, np.random.default_rng(0))
    assert solver.chosen_by(result) == replace(solver, step=0.05)
    assert solver.chosen_by(replace(result, history=result.history[:10])) is solver


@pytest.mark.slow
def test_a_bound_that_holds_costs_nothing(make_data, make_problem):
    """At kappa > 0 only what exceeds the bound is penalised: the penalty is exact, and nothing is paid below."""
    data = make_data()
    made = make_problem(data, PairwiseParity(100.0).unchecked(data))
    penalized, free = solve(made, weight=5.0), solve(made.without_constraints())
    np.testing.assert_allclose(penalized.model_state, free.model_state, rtol=1e-12)
    assert penalized.status == Status.COMPLETED
