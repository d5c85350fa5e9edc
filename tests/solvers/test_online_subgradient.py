"""The online subgradient method on one problem: known optima, which iterate is returned, mini-batches."""

from dataclasses import replace

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity
from fairconstrained.domains import L1Ball
from fairconstrained.exceptions import IncompatibleProblem
from fairconstrained.problem import FullBatchView, Start
from fairconstrained.solvers import OnlineSubgradient
from fairconstrained.solvers.published._online import OnlineSteps
from fairconstrained.views import FullBatch


@pytest.mark.slow
def test_known_optimum(known):
    result = OnlineSubgradient(max_iter=400).solve(known.problem, None, np.random.default_rng(0))
    assert result.objective == pytest.approx(known.objective, abs=0.01)
    assert result.surrogate_violation <= 1e-4
    np.testing.assert_allclose(result.model_state, known.params, atol=0.1)


@pytest.mark.slow
def test_the_result_is_the_nearly_feasible_iterate_of_least_objective(known):
    n_iter = 150
    view, project = FullBatchView(known.problem), known.problem.project
    steps, seen = OnlineSteps(np.zeros(4), 2.0, 3.0), []
    for _ in range(n_iter):
        z, point = steps.z, steps.advance(view, project)
        if point.constraints.max() <= 0.01:
            seen.append((point.objective, tuple(z)))
    assert 1 < len(seen) < n_iter
    options = OnlineSubgradient(max_iter=n_iter, precision=0.1, V=2.0, alpha=3.0)
    result = options.solve(known.problem, Start(np.zeros(4)), np.random.default_rng(0))
    assert (result.objective, tuple(result.model_state)) == min(seen)


def test_the_first_steps_in_numpy(known):
    """With the values and gradients of the problem's points, against the formulas of the docstring."""
    view, V, alpha = FullBatchView(known.problem), 0.5, 2.0
    z, Q, expected = np.zeros(4), np.zeros(2), []
    for _ in range(40):
        expected.append(z)
        point = view.at(z)
        zeta = np.stack([point.gradient(0.0, unit) for unit in np.eye(2)])
        moved = z - (V * point.gradient(1.0, np.zeros(2)) + Q @ zeta) / (2 * alpha)
        z, Q = moved, np.maximum(Q + point.constraints + zeta @ (moved - z), 0.0)
    assert Q.max() > 0
    seen = []
    options = OnlineSubgradient(max_iter=40, V=V, alpha=alpha)
    options.solve(
        known.problem, Start(np.zeros(4)), np.random.default_rng(0), lambda record: seen.append(record["params"])
    )
    np.testing.assert_allclose(seen, [*expected[1:], z], atol=1e-12)


def test_parameters_stay_in_the_domain(parity_problem):
    problem = replace(parity_problem(DemographicParity, 0.3), domain=L1Ball(0.2))
    result = OnlineSubgradient(max_iter=50).solve(problem, None, np.random.default_rng(0))
    assert np.abs(result.model_state).sum() == pytest.approx(0.2)


@pytest.mark.slow
def test_the_history_stays_short_and_counts_the_steps(known):
    result = OnlineSubgradient(max_iter=450, alpha=1.0).solve(known.problem, None, np.random.default_rng(0))
    assert [record["n_iter"] for record in result.history] == list(range(2, 451, 2))
    assert result.n_iter == 450
    assert 450 + 225 <= result.n_evaluations <= 450 + 225 + 5  # the steps, and the records


# --- mini-batches


@pytest.mark.slow
def test_mini_batches(unequal):
    options = OnlineSubgradient(max_iter=700, batch_size=20, alpha=5.0)
    result = options.solve(unequal.problem, None, np.random.default_rng(0))
    start = unequal.problem.view(FullBatch).at(np.zeros(4)).objective
    assert result.objective <= unequal.objective + 0.5 * (start - unequal.objective)
    assert result.surrogate_violation <= 1e-4  # measured on all rows
    # 20 of 140 rows in every step, and a measurement in every third
    assert result.n_evaluations == pytest.approx(100 + 234, abs=5)
    short = OnlineSubgradient(max_iter=30, batch_size=20)
    one, same, other = (
        short.solve(unequal.problem, None, np.random.default_rng(seed)).model_state for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_mini_batches_need_terms_that_have_them(make_data, make_problem, mean_gap):
    data = make_data()
    problem = make_problem(data, mean_gap(data, 0.1, FullBatch))
    with pytest.raises(IncompatibleProblem, match="needs the view Stochastic, which 'mean_gap'"):
        OnlineSubgradient(max_iter=5, batch_size=10).solve(problem, None, np.random.default_rng(0))
    OnlineSubgradient(max_iter=5).solve(problem, None, np.random.default_rng(0))
