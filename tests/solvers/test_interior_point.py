"""The interior point method: known optima, the conditions of optimality, and bounds that cannot be kept."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from fairconstrained.constraints import DemographicParity, GroupRates, LossParity
from fairconstrained.data import FairData
from fairconstrained.exceptions import IncompatibleProblem, StopTraining
from fairconstrained.models import LinearModel
from fairconstrained.objectives import (
    Absolute,
    BoundLargestMean,
    Hinge,
    Logistic,
    RoundedCorner,
    Scaled,
    Score,
    Squared,
    TruncatedLogistic,
)
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status, make_solver

ALPHA = 1e-3
LOSSES = {"log_loss": Logistic(), "squared": Squared()}


def drawn(n=400, n_features=3, n_groups=2, seed=0):
    """Rows whose groups want different coefficients, with weights."""
    rng = np.random.default_rng(seed)
    X, groups = rng.normal(size=(n, n_features)), np.arange(n) % n_groups
    w = rng.normal(size=(n_groups, n_features)) + 1.0
    y = np.where((X * w[groups]).sum(axis=1) + rng.logistic(size=n) > 0.5 * groups, 1.0, -1.0)
    return FairData.from_arrays(X, y, groups, tuple(range(n_groups)), rng.uniform(0.5, 2, n))


def bounded(data, kappa, loss="log_loss", alpha=ALPHA):
    bound = GroupRates(loss, rule="ceiling", kappa=kappa).unchecked(data)
    return Problem(LOSSES[loss].bind(data), (bound,), data, model=LinearModel(data.n_features, alpha=alpha))


def largest(data, loss="log_loss", alpha=ALPHA):
    means = GroupRates(loss, rule="ceiling", kappa=0.0).unchecked(data)
    objective = BoundLargestMean(LOSSES[loss], data, means=means)
    return Problem(objective, (), data, model=LinearModel(data.n_features, alpha=alpha))


def solved(problem, start=None, callback=None, **options):
    solver = make_solver("interior_point", options, problem)
    return solver.solve(problem, start, np.random.default_rng(0), callback)


def functions(data, loss):
    """Mean loss, penalty and mean losses of the groups in numpy, as functions of all coefficients."""
    X, y, weights = data.X, data.y.numpy(), data.weights.numpy()

    def losses(w):
        s = X @ w[:-1] + w[-1]
        return np.logaddexp(0, -y * s) if loss == "log_loss" else (s - y) ** 2 / 2

    cells = [np.where(data.codes == g, weights, 0.0) for g in range(data.n_groups)]
    return (
        lambda w: weights @ losses(w) / weights.sum(),
        lambda w: ALPHA / 2 * w[:-1] @ w[:-1],
        lambda w: np.array([c @ losses(w) / c.sum() for c in cells]),
    )


def by_scipy(data, loss, kappa=None):
    """The optimum by sequential quadratic programming, with a level as a variable where kappa is None."""
    mean, penalty, means = functions(data, loss)
    n = data.n_features + 1
    if kappa is None:
        fun, bound, start = lambda z: z[n] + penalty(z[:n]), lambda z: z[n] - means(z[:n]), np.append(np.zeros(n), 1.0)
    else:
        fun, bound, start = lambda z: mean(z) + penalty(z), lambda z: kappa - means(z), np.zeros(n)
    found = minimize(
        fun,
        start,
        constraints={"type": "ineq", "fun": bound},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert found.success
    return found.fun, found.x[:n]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_groups", [2, 5])
def test_the_least_largest_loss_is_that_of_another_program(loss, n_groups):
    data = drawn(n_groups=n_groups)
    optimum, _ = by_scipy(data, loss)
    result = solved(largest(data, loss), tol=1e-6)
    assert result.status is Status.OPTIMAL
    assert optimum - 1e-9 <= result.objective <= optimum * (1 + 1e-6)
    assert result.objective - result.duality_gap <= optimum + 1e-9  # a lower bound
    assert 0 <= result.duality_gap <= 1e-6 * optimum
    assert sum(result.multipliers.values()) == pytest.approx(1)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_least_mean_loss_within_bounds_is_that_of_another_program(loss):
    data = drawn(n_groups=3)
    least, free = by_scipy(data, loss)[0], solved(bounded(data, None, loss))
    kappa = (2 * least + functions(data, loss)[2](free.model_state).max()) / 3
    optimum, params = by_scipy(data, loss, kappa)
    result = solved(bounded(data, kappa, loss))
    assert result.status is Status.OPTIMAL
    np.testing.assert_allclose(result.model_state, params, atol=2e-3)
    assert result.objective == pytest.approx(optimum, rel=1e-5)
    assert result.objective - result.duality_gap <= optimum + 1e-9
    assert result.surrogate_violation <= 0
    assert max(result.constraint_values.values()) <= kappa


def test_the_conditions_of_optimality_hold():
    data = drawn(n_groups=4)
    least = solved(largest(data)).objective
    problem = bounded(data, 1.02 * least)
    result = solved(problem, tol=1e-8)
    mean, penalty, means = functions(data, "log_loss")
    multipliers = np.array([result.multipliers.get(f"bounded_group_loss[{g}]", 0.0) for g in range(4)])
    assert 0 < (multipliers > 0).sum() < 4
    slack = 1.02 * least - means(result.model_state)
    assert (slack >= 0).all()
    np.testing.assert_allclose(slack * multipliers, 0, atol=1e-7)
    z, step = result.model_state, 1e-6
    lagrangian = lambda w: mean(w) + penalty(w) + multipliers @ means(w)  # noqa: E731
    slopes = [(lagrangian(z + step * e) - lagrangian(z - step * e)) / (2 * step) for e in np.eye(z.size)]
    np.testing.assert_allclose(slopes, 0, atol=1e-5)


def test_multipliers_are_the_price():
    data = drawn()
    kappa = 1.02 * solved(largest(data)).objective
    up, here, down = (solved(bounded(data, k), tol=1e-8) for k in (kappa + 1e-4, kappa, kappa - 1e-4))
    assert sum(here.multipliers.values()) == pytest.approx((down.objective - up.objective) / 2e-4, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_that_cannot_be_kept_are_told_from_those_that_can(loss):
    """Also from those between the least bound and the loss of the penalised minimax model."""
    data, alpha = drawn(n_groups=3), 0.3
    penalised = solved(largest(data, loss, alpha))
    worst = functions(data, loss)[2](penalised.model_state).max()
    least = solved(largest(data, loss, 0.0), tol=1e-8).objective
    assert least < 0.999 * worst
    for kappa in (least * (1 + 1e-4), (least + worst) / 2, worst * (1 + 1e-4)):
        found = solved(bounded(data, kappa, loss, alpha))
        assert found.status is Status.OPTIMAL
        assert max(found.constraint_values.values()) <= kappa
    refused = solved(bounded(data, 0.999 * least, loss, alpha))
    assert refused.status is Status.INFEASIBLE
    assert refused.duality_gap is None
    assert refused.multipliers is None
    assert float(refused.message.rsplit(" ", 1)[1].rstrip(".")) == pytest.approx(least, rel=1e-4)
    assert max(refused.constraint_values.values()) == pytest.approx(worst, rel=1e-3)


def test_the_largest_loss_is_the_limit_of_bounds():
    data = drawn(n_groups=3)
    minimax = solved(largest(data, alpha=1e-8), tol=1e-6)
    tight = solved(bounded(data, minimax.objective * (1 + 1e-6), alpha=1e-8))
    np.testing.assert_allclose(tight.model_state, minimax.model_state, atol=0.02)


def test_of_the_models_with_the_least_largest_loss_it_is_the_one_of_least_mean_loss():
    """A group that no coefficient helps fixes the largest loss, and leaves the rest to the others."""
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0], [1.0]], 100, axis=0) * rng.normal(size=(200, 1))
    y = np.where(np.arange(200) < 100, np.tile([1.0, -1.0], 100), np.where(X[:, 0] + rng.logistic(size=200) > 0, 1, -1))
    data = FairData.from_arrays(X, y, np.arange(200) // 100, (0, 1), None)
    problem = largest(data, alpha=1e-6)
    result = solved(problem)
    assert result.objective == pytest.approx(np.log(2), rel=1e-4)
    w, mean = result.model_state, functions(data, "log_loss")[0]
    assert w[0] > 0.5
    assert mean(w) <= min(mean(np.array([c, 0.0])) for c in np.linspace(0, 3, 31)) + 1e-3


OTHERS = {
    "a rounded corner": lambda data: replace(bounded(data, 0.6), objective=Hinge().bind(data)),
    "not convex": lambda data: replace(bounded(data, 0.6), objective=TruncatedLogistic().bind(data)),
    "differences": lambda data: replace(bounded(data, 0.6), constraints=(LossParity(0.1).unchecked(data),)),
    "decisions": lambda data: replace(bounded(data, 0.6), constraints=(DemographicParity(0.1).unchecked(data),)),
    "copies": lambda data: replace(bounded(data, 0.6), model=LinearModel(data.n_features, 2)),
    "many": lambda data: replace(bounded(data, 0.6), model=LinearModel(5000)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_problems_are_refused_with_a_reason(name):
    with pytest.raises(IncompatibleProblem, match=r"solver 'interior_point' needs .*(losses|linear|coefficients)"):
        make_solver("interior_point", {}, OTHERS[name](drawn(n=60)))


def test_history_start_and_a_callback():
    problem, seen = largest(drawn()), []
    cold = solved(problem, callback=lambda record: seen.append(dict(record)))
    assert (
        [record["n_iter"] for record in cold.history]
        == list(range(1, cold.n_iter + 1))
        == list(range(1, len(seen) + 1))
    )
    assert all({"objective", "largest", "complementarity"} <= set(record) for record in cold.history)
    warm = solved(problem, start=Start(cold.model_state))
    assert warm.objective == pytest.approx(cold.objective, rel=1e-4)

    def stop(record):
        if record["n_iter"] == 3:
            raise StopTraining

    stopped = solved(problem, callback=stop)
    assert stopped.n_iter == 3
    assert stopped.objective >= cold.objective * (1 - 1e-4)


ROUNDED = [RoundedCorner(Hinge(1e-9), 0.5), RoundedCorner(Absolute(), 0.5)]


@pytest.mark.parametrize(
    "loss", [Logistic(), Squared(), Scaled(Logistic(), 3.0), TruncatedLogistic(), Score(), *ROUNDED]
)
def test_second_derivatives(loss):
    scores, y = torch.linspace(-3, 3, 13, dtype=torch.float64), torch.tensor([1.0, -1.0] * 6 + [1.0]).double()
    numeric = (loss.slope(scores + 1e-5, y) - loss.slope(scores - 1e-5, y)) / 2e-5
    np.testing.assert_allclose(loss.second_derivative(scores, y), numeric, atol=1e-8)
