"""The best shifts of scores: fewer errors, within the bounds of all constraints."""

import numpy as np
import pytest

from fairconstrained.constraints import DemographicParity, StatisticalParity
from fairconstrained.constraints._some_rows import on_some_rows
from fairconstrained.objectives import Logistic, PairwiseAUC, ZeroOne
from fairconstrained.solvers import beats_constants, best_shifted


@pytest.fixture(scope="module")
def data(make_data):
    return make_data(counts=(15, 19), weighted=True)


def params_of(problem, seed):
    return np.random.default_rng(seed).normal(size=problem.n_params)


def error_of(problem, params):
    predicted = np.where(problem.scores(params) > problem.threshold, 1.0, -1.0)
    return problem.data.weights.numpy() @ (predicted != problem.data.y.numpy())


@pytest.mark.parametrize("n_copies", [1, 2])
@pytest.mark.parametrize("notion", [None, DemographicParity, StatisticalParity])
def test_the_best_shift_lowers_the_error_and_keeps_the_constraint(data, make_problem, n_copies, notion):
    constraints = [notion(0.3).unchecked(data)] if notion else []
    problem = make_problem(data, *constraints, loss=ZeroOne(), n_copies=n_copies)
    gained = []
    for seed in range(10):
        params = params_of(problem, seed)
        finished = best_shifted(problem, params)
        gained.append(error_of(problem, params) - error_of(problem, finished))
        for constraint in constraints:
            before, after = (constraint.exact(problem.scores(p)) for p in (params, finished))
            assert after <= max(before, constraint.granularity)
            if before <= 0:
                assert gained[-1] >= -1e-12
        moved = (finished - params).reshape(n_copies, 4)
        np.testing.assert_array_equal(moved[:, :3], 0)  # intercepts only
    assert max(gained) > 0.01
    if notion is not DemographicParity:
        assert min(gained) >= -1e-12


@pytest.mark.parametrize("n_copies", [1, 2])
def test_the_best_shift_lets_no_constraint_break_another(data, make_problem, n_copies):
    """Each constraint's search sees its own only: that of statistical parity moves all rows past the threshold."""
    constraints = [DemographicParity(0.1).unchecked(data), StatisticalParity(0.9).unchecked(data)]
    problem = make_problem(data, *constraints, loss=ZeroOne(), n_copies=n_copies)
    changed = 0
    for seed in range(30):
        params = params_of(problem, seed)
        finished = best_shifted(problem, params)
        changed += not np.array_equal(params, finished)
        for constraint in constraints:
            before, after = (constraint.exact(problem.scores(p)) for p in (params, finished))
            assert after <= max(before, constraint.granularity)
    assert changed > 5


@pytest.mark.parametrize("n_copies", [1, 2])
def test_the_best_shift_does_not_give_up_the_objective_for_bounds_that_are_kept(data, make_problem, n_copies):
    """The best offsets for some of the rows, which is all that each constraint's search sees, may be bad for others."""
    halves = [slice(k, None, 2) for k in range(2)]
    parts = [data.part(np.arange(data.n_samples)[half]) for half in halves]
    constraints = [
        on_some_rows(DemographicParity(0.5).unchecked(part), data, half)
        for part, half in zip(parts, halves, strict=True)
    ]
    problem = make_problem(data, *constraints, loss=ZeroOne(), n_copies=n_copies)
    n_kept = 0
    for seed in range(30):
        params = params_of(problem, seed)
        if all(c.exact(problem.scores(params)) <= c.granularity for c in constraints):
            n_kept += 1
            assert error_of(problem, best_shifted(problem, params)) <= error_of(problem, params) + 1e-12
    assert n_kept > 5


def test_the_best_shift_leaves_other_objectives_alone(data, make_problem):
    problem = make_problem(data, StatisticalParity(0.3).unchecked(data))
    params = params_of(problem, 0)
    assert best_shifted(problem, params) is params


def test_the_best_shift_does_not_depend_on_the_intercept_that_a_loss_of_pairs_leaves_open(data, make_problem):
    problem = make_problem(data, loss=PairwiseAUC())
    params = params_of(problem, 0)
    shifted = best_shifted(problem, params)
    drifted = shifted + np.append(np.zeros(params.size - 1), 1e-4)
    np.testing.assert_array_equal(problem.scores(drifted) > 0, problem.scores(shifted) > 0)
    np.testing.assert_allclose(best_shifted(problem, drifted), shifted, rtol=0, atol=1e-12)


def test_decisions_beat_constants_where_they_have_fewer_errors_than_one_decision_for_all(data, make_problem):
    problem = make_problem(data, loss=ZeroOne())
    y, weights = data.y.numpy(), data.weights.numpy()
    fewest = min(weights[y > 0].sum(), weights[y < 0].sum())
    answers = set()
    for seed in range(10):
        params = params_of(problem, seed)
        answers.add(beats_constants(problem, params))
        assert beats_constants(problem, params) == (error_of(problem, params) < fewest)
    assert answers == {True, False}
    assert not beats_constants(problem, np.zeros(problem.n_params))
    assert beats_constants(make_problem(data, loss=Logistic()), np.zeros(problem.n_params))
