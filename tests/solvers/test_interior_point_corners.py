"""Exact optima of losses with corners: against linear programs, and the lower bound that goes with them."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog

from fairconstrained.constraints import GroupRates
from fairconstrained.data import FairData
from fairconstrained.models import LinearModel
from fairconstrained.objectives import ROW_LOSS_OBJECTIVES, BoundLargestMean
from fairconstrained.problem import Problem
from fairconstrained.solvers import Status, make_solver

LOSSES = ["hinge", "absolute"]
TOL = 1e-4


def drawn(loss, n=200, n_features=4, n_groups=3, seed=0, few_values=False):
    """Rows whose groups want different coefficients, with weights."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, n_features)), np.arange(n) % n_groups
    X = (X > 0.5).astype(float) if few_values else X
    scores = (X * (rng.normal(size=(n_groups, n_features)) + 0.5)[groups]).sum(axis=1)
    y = np.where(scores + rng.logistic(size=n) > 0, 1.0, -1.0)
    y = y if loss == "hinge" else np.round(scores + rng.standard_t(3, size=n), 0 if few_values else 9)
    return FairData.from_arrays(X, y, groups, tuple(range(n_groups)), rng.uniform(0.5, 2, n))


def solved(data, loss, kappa=None, alpha=0.0, **options):
    """Result with a bound on every group, or with the largest loss as the objective where there is none."""
    means = GroupRates(loss, rule="ceiling", kappa=kappa or 0.0).unchecked(data)
    row_loss, model = ROW_LOSS_OBJECTIVES[loss], LinearModel(data.n_features, alpha=alpha)
    if kappa is None:
        problem = Problem(BoundLargestMean(row_loss, data, means=means), (), data, model=model)
    else:
        problem = Problem(row_loss.bind(data), (means,), data, model=model)
    return make_solver("interior_point", {"tol": TOL} | options, problem).solve(problem, None, np.random.default_rng(0))


def by_linear_program(data, loss, kappa=None):
    """Optimum without a penalty, with the coefficients, the losses of the rows and a level as variables."""
    X, y, n = np.column_stack([data.X, np.ones(data.n_samples)]), data.y.numpy(), data.n_samples
    sides = [(-y[:, None] * X, -np.ones(n))] if loss == "hinge" else [(X, y), (-X, -y)]
    weights = data.weights.numpy() / data.weights.numpy().sum()
    means = np.stack([np.where(data.codes == g, weights, 0.0) for g in range(data.n_groups)])
    means /= means.sum(axis=1, keepdims=True)
    rows = [sp.hstack([sp.csr_array(side), -sp.csr_array(sp.eye(n)), sp.csr_array((n, 1))]) for side, _ in sides]
    level = np.full((data.n_groups, 1), -1.0 if kappa is None else 0.0)
    rows.append(sp.hstack([sp.csr_array((data.n_groups, X.shape[1])), sp.csr_array(means), sp.csr_array(level)]))
    limits = np.concatenate([*(limit for _, limit in sides), np.full(data.n_groups, kappa or 0.0)])
    costs = np.concatenate([np.zeros(X.shape[1]), 0 * weights if kappa is None else weights, [float(kappa is None)]])
    bounds = [(None, None)] * X.shape[1] + [(0, None)] * n + [(None, None)]
    found = linprog(costs, sp.csr_array(sp.vstack(rows)), limits, bounds=bounds, method="highs")
    assert found.success
    return found.fun


def assert_encloses(result, optimum):
    """The objective and the lower bound are on both sides of an optimum, and close."""
    assert result.status is Status.OPTIMAL
    assert optimum - 1e-9 <= result.objective <= optimum * (1 + TOL)
    assert 0 <= result.duality_gap <= TOL * result.objective
    assert result.objective - result.duality_gap <= optimum + 1e-9


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", [{}, {"n": 120, "n_features": 40, "n_groups": 2}, {"n": 400, "few_values": True}])
def test_the_least_largest_loss_is_that_of_a_linear_program(loss, case):
    """Also with a third as many coefficients as rows, and where many rows are at their corners."""
    data = drawn(loss, **case)
    result = solved(data, loss)
    assert_encloses(result, by_linear_program(data, loss))
    assert sum(result.multipliers.values()) == pytest.approx(1)
    assert result.n_iter <= 100


@pytest.mark.parametrize("loss", LOSSES)
def test_the_least_mean_loss_within_bounds_is_that_of_a_linear_program(loss):
    data = drawn(loss)
    least, free = by_linear_program(data, loss), max(solved(data, loss, 1e3).constraint_values.values())
    for kappa in (1e3, (least + free) / 2, least * (1 + 1e-3)):
        result = solved(data, loss, kappa)
        assert_encloses(result, by_linear_program(data, loss, kappa))
        assert max(result.constraint_values.values()) <= kappa
        assert bool(result.multipliers) == (kappa < free)


@pytest.mark.parametrize("loss", LOSSES)
def test_multipliers_are_the_price(loss):
    data = drawn(loss)
    least, free = by_linear_program(data, loss), max(solved(data, loss, 1e3).constraint_values.values())
    kappa, step = (least + free) / 2, 1e-3 * least
    down, up = (by_linear_program(data, loss, k) for k in (kappa - step, kappa + step))
    price = sum(solved(data, loss, kappa, tol=1e-6).multipliers.values())
    assert price == pytest.approx((down - up) / (2 * step), rel=0.05)  # the optimum has kinks in kappa


@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_that_cannot_be_kept_are_told_with_the_least_that_can(loss):
    data = drawn(loss)
    least = by_linear_program(data, loss)
    refused = solved(data, loss, 0.999 * least)
    assert refused.status is Status.INFEASIBLE
    assert refused.duality_gap is None
    assert refused.multipliers is None
    assert float(refused.message.rsplit(" ", 1)[1].rstrip(".")) == pytest.approx(least, rel=TOL)
    assert max(refused.constraint_values.values()) == pytest.approx(least, rel=TOL)


@pytest.mark.parametrize("loss", LOSSES)
def test_of_the_models_with_the_least_largest_loss_it_is_the_one_of_least_mean_loss(loss):
    data = drawn(loss, n_groups=5)
    result = solved(data, loss)
    weights, scores = data.weights.numpy(), data.X @ result.model_state[:-1] + result.model_state[-1]
    y = data.y.numpy()
    losses = np.maximum(1 - y * scores, 0) if loss == "hinge" else np.abs(scores - y)
    limit = by_linear_program(data, loss) * (1 + TOL / 4)
    assert weights @ losses / weights.sum() <= by_linear_program(data, loss, limit) * (1 + 1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_with_a_penalty_no_weights_have_a_larger_optimum(loss):
    """The lower bound is the value of the fit with the multipliers as weights, here as weights of the rows."""
    data, alpha = drawn(loss), 0.05
    result = solved(data, loss, alpha=alpha)
    shares = [result.multipliers.get(f"{loss}_ceiling[{g}]", 0.0) for g in range(3)]
    sums = [data.weights.numpy()[data.codes == g].sum() for g in range(3)]
    weights = data.weights.numpy() * (np.array(shares) / sums)[data.codes]
    seen = weights > 0
    weighted = FairData.from_arrays(data.X[seen], data.y.numpy()[seen], 0 * data.codes[seen], (0,), weights[seen])
    problem = Problem(ROW_LOSS_OBJECTIVES[loss].bind(weighted), (), weighted, model=LinearModel(4, alpha=alpha))
    fit = make_solver("interior_point", {"tol": 1e-7}, problem).solve(problem, None, np.random.default_rng(0))
    assert result.objective - result.duality_gap <= fit.objective
    assert fit.objective <= result.objective
    assert result.duality_gap <= TOL * result.objective


def test_a_perfect_model_is_optimal():
    data = drawn("absolute")
    exact = FairData.from_arrays(data.X, data.X @ np.arange(4.0), data.codes, (0, 1, 2), None)
    result = solved(exact, "absolute")
    assert result.status is Status.OPTIMAL
    assert result.objective <= 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_ten_thousand_rows_and_fifty_columns(loss):
    data = drawn(loss, n=10_000, n_features=50, n_groups=4)
    one, other = solved(data, loss, alpha=1e-4), solved(data, loss, alpha=1e-4)
    assert one.status is Status.OPTIMAL
    assert one.duality_gap <= TOL * one.objective
    assert one.n_iter <= 100  # Newton steps, each about as long as one of a logistic regression
    np.testing.assert_array_equal(one.model_state, other.model_state)
