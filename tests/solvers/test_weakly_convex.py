"""Weakly convex problems of two variables with known solutions, for every solver that could solve them."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

from fairconstrained.constraints import BoundConstraint
from fairconstrained.data import FairData
from fairconstrained.domains import Box, L1Ball
from fairconstrained.models import LinearModel
from fairconstrained.objectives import Loss
from fairconstrained.problem import Problem, Start
from fairconstrained.solvers import Status, make_solver, near_stationarity
from fairconstrained.views import RowLosses, Stochastic


@dataclass(frozen=True)
class Quadratic(Loss):
    """Two rows of weight 1/2, one of each target, whose mean loss is ``s' diag(curvatures) s / 2``."""

    curvatures: tuple

    def of(self, scores, targets):
        return torch.where(targets > 0, *self.curvatures) * scores**2

    def slope(self, scores, targets):
        return 2 * torch.where(targets > 0, *self.curvatures) * scores

    def split(self, scores, targets):
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class QuadraticBound(BoundConstraint, RowLosses, Stochastic):
    """``s' diag(curvatures) s / 2 <= kappa``."""

    loss: Quadratic
    data: FairData
    kappa: float
    margin: float = 0.0
    granularity: float = 0.02
    name: str = "quadratic_bound"
    component_names = ("quadratic_bound",)

    @property
    def row_loss(self):
        return self.loss

    def metric(self, scores):
        return float(self.data.weights @ self.loss.of(torch.from_numpy(scores), self.data.y))

    def of_losses(self, losses, aux):
        return np.array([self.data.weights.numpy() @ losses - self.kappa + self.margin])

    def row_weights(self, multipliers):
        return multipliers[0] * self.data.weights.numpy(), np.empty(0)

    def refined(self, scores, *, blur, margin):
        return replace(self, margin=margin)

    def on(self, data):
        return replace(self, data=data)


def two_variables(objective, constraint, kappa, domain):
    """The scores are the variables: a linear model without intercept on the identity."""
    data = FairData.from_arrays(np.eye(2), np.array([1.0, -1.0]), np.array([0, 1]), ("a", "b"))
    bounded = QuadraticBound(Quadratic(constraint), data, kappa)
    return Problem(
        Quadratic(objective).bind(data), (bounded,), data, model=LinearModel(2, fit_intercept=False), domain=domain
    )


#: The example of the paper, its solution and where it begins.
PAPER = two_variables((10.0, -1.0), (50.0, -5.0), 10.0, L1Ball(1.0)), [0.0, 1.0], -0.5, [0.0, 0.5]
#: |x_2| <= 0.8 by the constraint.
ACTIVE = two_variables((10.0, -1.0), (-2.0, 5.0), 1.6, L1Ball(1.0)), [0.0, 0.8], -0.32, [0.0, 0.5]
#: Outside of the hyperbola x_1^2 - x_2^2 = 0.25: a convex objective, and a constraint that is not.
HYPERBOLA = two_variables((2.0, 1.0), (-2.0, 2.0), -0.25, Box(-1.0, 1.0)), [0.5, 0.0], 0.25, [0.9, 0.3]

#: Options with which a solver takes less than half a second.
SOLVERS = {
    "augmented_lagrangian": {},
    "exact_penalty": {},
    "ipc": {"inner_iter": 200, "max_iter": 9},
    "ipc/online": {"oracle": "online", "inner_iter": 100, "max_iter": 8},
    "ipc/augmented_lagrangian": {"oracle": "augmented_lagrangian", "max_iter": 9},
    "ipc/level_set": {"oracle": "level_set", "max_iter": 9},
    "ipp_conex": {"proximity": 10.0, "max_iter": 8, "inner_iter": 50},
    "ipp_ssg": {"proximity": 10.0, "max_iter": 8, "inner_iter": 60, "learning_rate": 0.05},
    "online_subgradient": {"max_iter": 500},
    "ssg": {"learning_rate": 0.05, "max_iter": 300},
    "switching_subgradient": {"max_iter": 400},
}
#: These look for a feasible point first.
WITH_FEASIBILITY = ("exact_penalty", "ipc", "ipc/online", "ipc/augmented_lagrangian", "online_subgradient")


def solve(name, problem, start, seed=0, **options):
    solver = make_solver(name.split("/")[0], {**SOLVERS[name], **options}, problem)
    return solver.solve(problem, Start(np.array(start)), np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("example", "name"),
    [(example, name) for example in ("paper", "active") for name in sorted(SOLVERS)],
)
def test_the_solution_is_known(name, example):
    problem, solution, objective, start = {"paper": PAPER, "active": ACTIVE}[example]
    result = solve(name, problem, start)
    assert not result.status.is_infeasible
    assert result.objective == pytest.approx(objective, abs=0.02)
    np.testing.assert_allclose(result.model_state, solution, atol=0.03)


@pytest.mark.parametrize("name", ["exact_penalty", "online_subgradient", "ssg"])
def test_a_constraint_that_is_not_convex(name):
    problem, solution, objective, start = HYPERBOLA
    result = solve(name, problem, start)
    assert result.objective == pytest.approx(objective, abs=0.006)
    np.testing.assert_allclose(result.model_state, solution, atol=0.005)


def test_solutions_are_stationary_and_other_points_are_not():
    for problem, solution, _, start in (PAPER, ACTIVE, HYPERBOLA):
        assert near_stationarity(problem, np.array(solution), 10.0) <= 1e-6
        assert near_stationarity(problem, np.array(start), 10.0) > 1e-2
    # a saddle point of the objective, inside the constraint and the domain, is stationary too
    assert near_stationarity(PAPER[0], np.zeros(2), 10.0) <= 1e-6


# --- infeasible starts


@pytest.mark.parametrize("name", WITH_FEASIBILITY)
def test_a_constraint_that_never_holds(name):
    """``|s|^2 / 2 + 1 <= 0``."""
    problem = two_variables((10.0, -1.0), (1.0, 1.0), -1.0, L1Ball(1.0))
    result = solve(name, problem, [0.3, 0.5])
    assert result.status == Status.INFEASIBLE_STATIONARY
    assert result.status.is_infeasible
    np.testing.assert_allclose(result.model_state, 0.0, atol=0.01)
    assert result.surrogate_violation == pytest.approx(1.0, abs=1e-3)
    for words in ("stationary point of the violation", "random_state", "looser bounds", "larger domain"):
        assert words in result.message
    assert len(result.history) >= 1


@pytest.mark.parametrize("name", WITH_FEASIBILITY)
def test_the_start_decides_where_the_violation_has_several_minima(name):
    """``x_1^2 - x_2^2 >= 0.5`` holds for large x_1, not for the most negative one of the domain."""
    domain = Box(np.array([-0.5, -1.0]), np.array([2.0, 1.0]))
    problem = two_variables((2.0, 1.0), (-2.0, 2.0), -0.5, domain)
    trapped = solve(name, problem, [-0.3, 0.2])
    assert trapped.status == Status.INFEASIBLE_STATIONARY
    np.testing.assert_allclose(trapped.model_state, [-0.5, 0.0], atol=0.01)
    assert trapped.surrogate_violation == pytest.approx(0.25, abs=1e-3)
    free = solve(name, problem, [0.3, 0.2], max_iter=2 if name.startswith("ipc") else 200)
    assert free.status != Status.INFEASIBLE_STATIONARY
    assert free.message == ""
    assert free.model_state[0] > 0.6
