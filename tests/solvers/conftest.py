"""Small problems whose solution is known by other means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from fairconstrained.constraints import LossParity
from fairconstrained.data import FairData
from fairconstrained.domains import Domain
from fairconstrained.objectives import Logistic, Squared
from fairconstrained.points import Anchor
from fairconstrained.problem import Problem
from fairconstrained.solvers import StochasticSolver, sequential_quadratic
from fairconstrained.solvers.stochastic import Method
from fairconstrained.views import FullBatch


class Known(NamedTuple):
    """A problem with one linear constraint, and its primal and dual solution."""

    problem: Problem
    params: np.ndarray
    objective: float
    multiplier: float


def solve_by_kkt(problem: Problem, kappa: float) -> Known:
    """Least squares under ``a v <= kappa``, active: the KKT conditions are one linear system."""
    data, model = problem.data, problem.model
    X = np.hstack([np.vstack(data.blocks), np.ones((data.n_samples, 1))])
    weights, y = data.weights.numpy(), data.y.numpy()
    hessian = X.T @ (weights[:, None] * X) + model.alpha * np.diag([1.0] * data.n_features + [0.0])
    within = data.group_weights.numpy()
    first, second = (within[rows] @ X[rows] for rows in data.slices)
    a = second - first  # the second group has the larger mean score
    system = np.block([[hessian, a[:, None]], [a[None, :], np.zeros((1, 1))]])
    solution = np.linalg.solve(system, np.append(X.T @ (weights * y), kappa))
    params, multiplier = solution[:-1], float(solution[-1])
    assert multiplier > 0
    objective = weights @ (X @ params - y) ** 2 / 2 + model.alpha / 2 * (params[:-1] ** 2).sum()
    return Known(problem, params, float(objective), multiplier)


def _slsqp(problem: Problem) -> Any:
    """The optimum of a smooth problem with two constraints, from zero."""
    view = problem.view(FullBatch)
    return minimize(
        lambda z: (view.at(z).objective, view.at(z).gradient(1.0, np.zeros(2))),
        np.zeros(problem.n_params),
        jac=True,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda z: -view.at(z).constraints,
            "jac": lambda z: -np.stack([view.at(z).gradient(0.0, unit) for unit in np.eye(2)]),
        },
        options={"ftol": 1e-15, "maxiter": 500},
    )


def solve_by_slsqp(problem: Problem) -> Known:
    """Any smooth convex problem with two opposite linear constraints, of which the second is active."""
    found, view = _slsqp(problem), problem.view(FullBatch)
    point = view.at(found.x)
    a = point.gradient(0.0, np.array([0.0, 1.0]))
    multiplier = -float(point.gradient(1.0, np.zeros(2)) @ a) / float(a @ a)
    assert multiplier > 0
    return Known(problem, found.x, point.objective, multiplier)


@pytest.fixture(scope="session", params=["squared", pytest.param("logistic", marks=pytest.mark.slow)])
def known(request: pytest.FixtureRequest, make_data: Any, make_problem: Any, mean_gap: Any) -> Known:
    """A convex problem with its optimum and multiplier."""
    data = make_data(counts=(23, 31), weighted=True, shift=0.8)
    constraint = mean_gap(data, 0.05)
    if request.param == "squared":
        return solve_by_kkt(make_problem(data, constraint, loss=Squared()), 0.05)
    return solve_by_slsqp(make_problem(data, constraint, loss=Logistic()))


class Unequal(NamedTuple):
    """A problem with an active bound on the groups' losses, its optimum, and the optimum without the bound."""

    problem: Problem
    params: np.ndarray
    objective: float
    free: np.ndarray


@pytest.fixture(scope="session")
def unequal(make_data: Any, make_problem: Any) -> Unequal:
    """Log losses of a linear model within 0.05 of each other, where the labels of one group are noisier."""
    data = make_data(counts=(60, 80), shift=0.8)
    flipped = np.random.default_rng(1).random(60) < 0.35
    y = data.y.clone()
    y[:60][torch.from_numpy(flipped)] *= -1
    codes, X = data.codes, data.X
    data = FairData.from_arrays(X, y.numpy(), codes, data.labels)
    problem = make_problem(data, LossParity(0.05).unchecked(data))
    free = problem.without_constraints().view(FullBatch)
    unbounded = minimize(
        lambda z: (free.at(z).objective, free.at(z).gradient(1.0, np.empty(0))), np.zeros(4), jac=True, tol=1e-12
    )
    found = _slsqp(problem)
    assert problem.constraints[0].metric(problem.scores(unbounded.x)) > 0.09  # the bound is active
    return Unequal(problem, found.x, found.fun, unbounded.x)


@pytest.fixture(scope="session")
def many_groups(make_problem: Any) -> Problem:
    """Twelve groups, whose losses are bounded through an auxiliary variable behind the parameters."""
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(12), rng.integers(5, 20, 12))
    X = rng.normal(size=(codes.size, 3))
    y = np.where(X[:, 0] + rng.normal(size=codes.size) > 0, 1.0, -1.0)
    data = FairData.from_arrays(X, y, codes, tuple("abcdefghijkl"))
    return make_problem(data, LossParity(0.05).unchecked(data))


@dataclass(frozen=True)
class PlaneBatch:
    """A mini-batch in the plane: ``f = |z - target|^2 / 2``, ``c = (|z|^2 / 2 - radius, slope z - bound)``."""

    target: np.ndarray
    radius: float
    slope: np.ndarray
    bound: float
    anchor: Anchor | None = None

    def at(self, z: np.ndarray) -> PlanePoint:
        return PlanePoint(self, z)

    def values(self, z: np.ndarray) -> np.ndarray:
        return np.array([z @ z / 2 - self.radius, self.slope @ z - self.bound])

    def jacobian(self, z: np.ndarray) -> np.ndarray:
        return np.stack([z, self.slope])


class PlanePoint:
    def __init__(self, batch: PlaneBatch, z: np.ndarray) -> None:
        self._batch, self._z = batch, z
        self.constraints = batch.values(z)

    def gradient(self, objective: float, multipliers: np.ndarray) -> np.ndarray:
        slope = self._z - self._batch.target
        if self._batch.anchor is not None:
            slope = slope + self._batch.anchor.weight * (self._z - self._batch.anchor.center)
        return objective * slope + multipliers @ self._batch.jacobian(self._z)


class Plane:
    """All that a method on mini-batches asks of its problem, and of the source of them.

    The batches are given; they come one after the other, and from the beginning again.
    """

    component_names = ("disk", "line")
    anchor: Anchor | None = None

    def __init__(self, batches: list[PlaneBatch], domain: Domain | None = None) -> None:
        self.batches, self._domain, self.n_drawn = batches, domain, 0

    def project(self, z: np.ndarray) -> np.ndarray:
        return z if self._domain is None else self._domain.project(z)

    def batch(self) -> PlaneBatch:
        self.n_drawn += 1
        return replace(self.batches[(self.n_drawn - 1) % len(self.batches)], anchor=self.anchor)

    def objective_batch(self) -> PlaneBatch:
        return self.batch()

    def constraint_batch(self) -> PlaneBatch:
        return self.batch()

    def separate_points(self, z: np.ndarray) -> list[PlanePoint]:
        return [self.batch().at(z) for _ in range(3)]

    def method(self, options: StochasticSolver, start: Any, seed: int = 0) -> Method:
        return options._method(self, np.asarray(start, dtype=float), np.random.default_rng(seed))


@pytest.fixture(scope="session")
def make_plane() -> Callable[..., Plane]:
    """``make_plane(targets, radius, slope, bound, domain)`` with a batch for every target, or that many random ones."""

    def make(
        targets: Any, radius: float = 0.5, slope: Any = (0.0, 0.0), bound: float = 1.0, domain: Domain | None = None
    ) -> Plane:
        if not isinstance(targets, int):
            return Plane([PlaneBatch(np.asarray(t), radius, np.asarray(slope), bound) for t in targets], domain)
        rng = np.random.default_rng(0)
        batches = [
            PlaneBatch(rng.normal(size=2) * 2, rng.uniform(0.2, 1), rng.normal(size=2), rng.normal())
            for _ in range(targets)
        ]
        return Plane(batches, domain)

    return make


@pytest.fixture(scope="session")
def parity_problem(make_data: Any, make_problem: Any) -> Callable[..., Problem]:
    """A problem of the package: ``parity_problem(notion, kappa, **parameters of the constraint)``."""

    def make(notion: type, kappa: float, counts: tuple[int, ...] = (90, 120), **parameters: Any) -> Problem:
        data = make_data(counts=counts, shift=0.8)
        return make_problem(data, notion(kappa, **parameters).bind(data), alpha=0.01)

    return make


@pytest.fixture(autouse=True)
def _global_random_states_unchanged() -> Any:
    """Solvers take their randomness from the generator that they are given, from nowhere else."""
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    yield
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002


def have_steps_diverge(monkeypatch):
    """Have all further runs of sequential quadratic programs diverge; a list with an entry for each of them."""
    runs = []

    def step(*args):
        runs.append(1)
        raise_floating_point_error()

    monkeypatch.setattr(sequential_quadratic._Steps, "step", step)
    return runs


def raise_floating_point_error(*args):
    """Stand in for a step of a method, and have its run diverge."""
    raise FloatingPointError
